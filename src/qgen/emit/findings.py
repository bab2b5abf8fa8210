"""What the disk differs in, as diagnostics."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from .. import deploy
from ..diagnostics.catalogue import files as codes
from ..diagnostics.catalogue.code import Code
from ..diagnostics.value import Diagnostic, Place
from ..handlers import Stub, defined
from .plan import State, Step
from .tree import Tree

_BUILD: Final = "run qgen build"
_FORCE: Final = "run qgen build --force; a copy is kept under .qgen/backup/"

# Per state: its code, what is wrong with the path, and what to do.
_TEXTS: Final[dict[State, tuple[Code, str, str]]] = {
    State.EDITED: (
        codes.EDITED,
        "was edited since qgen wrote it",
        "take the edit back, hand the file over with qgen eject, or "
        + _FORCE.removeprefix("run "),
    ),
    State.FOREIGN: (
        codes.FOREIGN,
        "was not written by qgen",
        f"rename it, or {_FORCE}",
    ),
    State.FROZEN: (
        codes.FROZEN,
        "is a migration and would change",
        f"undo what changed the table; if no database has run it, {_FORCE}",
    ),
    State.REFUSED: (
        codes.REFUSED,
        "is not written",
        "put a plain file or folder there",
    ),
    State.MISSING: (codes.MISSING, "is missing", _BUILD),
    State.CHANGED: (codes.CHANGED, "is out of date", _BUILD),
    State.REFORMATTED: (
        codes.REFORMATTED,
        "was reformatted, or its line ends were changed",
        f"{_BUILD}, and exclude its folder from the formatter; in pyproject.toml:"
        ' [tool.ruff] extend-exclude = ["{folder}"],'
        " [tool.black] extend-exclude = '{folder}'",
    ),
    State.CONFLICTED: (codes.CONFLICTED, "has conflict markers", _BUILD),
    State.ORPHANED: (codes.ORPHANED, "is no longer made", _BUILD),
    State.KEPT: (codes.KEPT, "is no longer made and was kept", "remove it by hand"),
}


def finding(step: Step, folder: str) -> Diagnostic | None:
    """The diagnostic of a step; None where all is well."""
    if step.state not in _TEXTS:
        return None
    code, what, todo = _TEXTS[step.state]
    todo = todo.replace("{folder}", str(PurePosixPath(step.path).parent))
    why = f": {step.why}" if step.why else ""
    message = f"this file {what}{why}."
    place = Place(folder + step.path)
    return Diagnostic(place, code.code, code.severity, message, todo + ".")


def findings(steps: Iterable[Step], folder: str = "") -> Iterator[Diagnostic]:
    """All of them.  ``folder`` leads from here to the spec's folder, ``""`` or ``sub/``."""
    return (found for step in steps if (found := finding(step, folder)) is not None)


def lock_finding(path: str) -> Diagnostic:
    """The lock lists other paths than the spec makes."""
    message = "this file does not list what the spec makes."
    place, severity = Place(path), codes.LOCK.severity
    return Diagnostic(place, codes.LOCK.code, severity, message, f"{_BUILD}.")


def missing_stubs(
    tree: Tree, stubs: Iterable[Stub], whole: Container[str], met: set[str]
) -> Iterator[tuple[Stub, str]]:
    """The jobs whose handlers module exists and lacks the function, and its path.

    A module whose mark is among ``whole`` lacks none and is not parsed; the marks of all
    that lack none are put into ``met``.
    """
    modules: dict[tuple[str, ...], list[Stub]] = {}
    for stub in stubs:
        modules.setdefault(stub.paths, []).append(stub)
    for paths, wanted in modules.items():
        path, text = _module(tree, paths)
        if text is None:
            continue
        mark = _mark(text, wanted)
        names = None if mark in whole else defined(text)
        missing = [s for s in wanted if names is not None and s.function not in names]
        if not missing:
            met.add(mark)
        yield from ((stub, path) for stub in missing)


def _mark(text: str, wanted: Iterable[Stub]) -> str:
    """Of a module's text and of the functions that are looked for in it."""
    names = " ".join(sorted(stub.function for stub in wanted))
    data = f"{names}\n{text}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(data).hexdigest()


def stub_finding(stub: Stub, path: str) -> Diagnostic:
    """A handler to be written, with its stub as the help."""
    message = f"there is no function {stub.function} here for {stub.use}."
    help_ = f"add it:\n\n{stub.text}"
    return Diagnostic(Place(path), codes.STUB.code, "warning", message, help_)


def stop_findings(tree: Tree, needed: float, folder: str) -> Iterator[Diagnostic]:
    """Each stop period in the user's compose file that is below what the spec needs."""
    code = codes.STOP_PERIOD
    for short in deploy.short_stops(tree.look(deploy.COMPOSE).text or "", needed):
        end = short.column + len(short.written)
        at = (short.line, short.column, short.line, end)
        place = Place(folder + deploy.COMPOSE, *at)
        message = f"this stop period, {short.written}, is below what the spec needs."
        help_ = f"write stop_grace_period: {short.needed}"
        yield Diagnostic(place, code.code, code.severity, message, help_)


def _module(tree: Tree, paths: tuple[str, ...]) -> tuple[str, str | None]:
    """The first of the paths that exists, and its text."""
    for path in paths:
        text = tree.look(path).text
        if text is not None:
            return path, text
    return paths[0], None
