"""``qgen explain QG123``: what a code means, with an example."""

from __future__ import annotations

import sys

from qgen.diagnostics.catalogue import ALL
from qgen.diagnostics.page import explanation
from qgen.spec.suggest import nearest


def run(code: str) -> int:
    """Print one entry of the catalogue; 2 for a code that there is not."""
    found = ALL.get(code.upper())
    if found is None:
        near = nearest(code, [each.lower() for each in ALL], 0.6)
        hint = f"; did you mean {near.upper()}?" if near else ", such as QG401"
        print(f"qgen: there is no code {code}{hint}", file=sys.stderr)
        return 2
    print(explanation(found), end="")
    return 0
