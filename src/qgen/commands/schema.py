"""``qgen schema``: the JSON Schema of the language, for editors and other tools."""

from __future__ import annotations

from qgen.diagnostics.schema import text as diagnostics
from qgen.spec.schema import text as queue


def run(kind: str = "queue") -> int:
    """Print the schema of a spec, or of ``--format json``."""
    print(queue() if kind == "queue" else diagnostics(), end="")
    return 0
