"""What shapes all that qgen makes: itself, its templates, and libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from .. import noop
from ..data import folder

# The libraries whose version shapes the answer.
_LIBRARIES: Final = ("black", "click", "jinja2", "jsonschema", "pydantic", "ruff")


@cache
def tools() -> dict[str, list[int]]:
    """The stamps of all that shapes what is made."""
    return noop.stamps(_tools())


def _tools() -> Iterator[str]:
    """qgen itself, its templates and the libraries, as files and folders to look at."""
    for root in (Path(__file__).parents[1], folder("templates")):
        for path in (root, *root.rglob("*")):
            if "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield str(path)
    for name in _LIBRARIES:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            yield found.origin
