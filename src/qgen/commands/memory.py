"""What a finished run leaves for the fast path: all that its answer rests on."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .. import approvals, lock, noop
from ..data import folder
from .say import Said
from .work import Work

# The libraries whose version shapes the answer.
_LIBRARIES: Final = ("black", "click", "jinja2", "jsonschema", "pydantic", "ruff")


def keep(work: Work, said: Said) -> None:
    """Remember a run after which the disk is what the spec makes.

    Call it only then: the answer is given again for the same bytes.
    """
    if not work.private.path.is_dir():
        return  # a check of a project that was never built here writes nothing
    files = work.compilation.files
    paths = {work.spec.name, lock.NAME}
    paths |= {file.path for file in files if file.kind in ("managed", "append")}
    absent: set[str] = set()
    if work.tree.at(approvals.NAME).exists():
        paths.add(approvals.NAME)
    else:
        absent.add(approvals.NAME)
    places = {stub.paths for stub in work.compilation.stubs}
    places |= {(f.path, *f.unless) for f in files if f.kind == "once"}
    for candidates in places:
        for path in candidates:
            if work.tree.at(path).exists():
                paths.add(path)
                break
            absent.add(path)
    noop.remember(str(work.root), work.spec.name, paths, absent, _tools(), said)


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
