"""What a build would do to each path, decided before anything is written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..files import File
from ..lock import Lock
from ..signature import has_signature, is_intact, normal
from .tree import Found, Tree

# Turns Python text into what black prints, or None where black cannot read it.
Blacken = Callable[[str], str | None]

_CONFLICT: Final = re.compile(r"^<<<<<<< .*^>>>>>>> ", re.MULTILINE | re.DOTALL)


class State(StrEnum):
    """What is found at a path, compared with what should be there."""

    SAME = "same"
    MISSING = "missing"  # to be written; nothing is there
    CHANGED = "changed"  # as an earlier build left it
    REFORMATTED = "reformatted"  # only a formatter or the line ends touched it
    CONFLICTED = "conflicted"  # a merge left its markers
    EDITED = "edited"  # a person changed it
    FOREIGN = "foreign"  # qgen never wrote it
    FROZEN = "frozen"  # append-only, and would change
    REFUSED = "refused"  # a link, a folder, or out of bounds
    ORPHANED = "orphaned"  # no longer made, unmodified: removed
    KEPT = "kept"  # no longer made, but not qgen's to remove
    OWNED = "owned"  # the user's: written once, or ejected


STOPS: Final = {State.EDITED, State.FOREIGN, State.FROZEN, State.REFUSED}


@dataclass(frozen=True, slots=True)
class Step:
    """One path: what is there, what should be, and why it is refused or kept."""

    path: str
    state: State
    before: str | None = None
    after: str | None = None
    why: str = ""

    @property
    def stops(self) -> bool:
        """True when nothing is built before a person has decided."""
        return self.state in STOPS

    @property
    def removes(self) -> bool:
        """True when the build removes the file."""
        return self.state is State.ORPHANED

    def done(self) -> Step:
        """The step that the next build finds here."""
        left_alone = self.after is None or self.state is State.OWNED
        return self if left_alone else Step(self.path, State.SAME)

    def diff(self) -> Iterator[str]:
        """What would change, as a unified diff without line ends."""
        before, after = normal(self.before or ""), self.after or ""
        sides = (f"{self.path} (on disk)", f"{self.path} (from the spec)")
        return difflib.unified_diff(
            before.splitlines(), after.splitlines(), *sides, lineterm="", n=2
        )


def make(
    tree: Tree,
    files: Iterable[File],
    lock: Lock,
    unfinished: Iterable[str],
    blacken: Blacken,
) -> tuple[Step, ...]:
    """Compare the files with the disk, in both directions; sorted by path.

    ``unfinished`` are paths that an interrupted build may have written without having
    listed them; they count as listed.  Reads the disk, writes nothing.
    """
    wanted = {file.path: file for file in files}
    listed = {**lock.kinds, **dict.fromkeys(unfinished, "managed")}
    steps = [
        _wanted(tree, file, path in listed, blacken) for path, file in wanted.items()
    ]
    gone = (
        path
        for path, kind in listed.items()
        if path not in wanted and kind in ("managed", "append")
    )
    steps += filter(None, (_gone(tree, path) for path in gone))
    return tuple(sorted(steps, key=lambda step: step.path))


def _wanted(tree: Tree, file: File, listed: bool, blacken: Blacken) -> Step:
    found = tree.look(file.path)
    if is_owned(tree, file):
        return Step(file.path, State.OWNED, found.text)
    if found.refused:
        return Step(file.path, State.REFUSED, None, file.text, found.refused)
    state = _state(file, found.text, listed, blacken)
    return Step(file.path, state, found.text, file.text)


def is_owned(tree: Tree, file: File) -> bool:
    """True for a file that is not qgen's to write: ejected, or written once already."""
    if file.kind == "once":
        return any(_occupied(tree.look(p)) for p in (file.path, *file.unless))
    return file.kind == "ejected"


def _occupied(found: Found) -> bool:
    return found.text is not None or bool(found.refused)


def _state(file: File, text: str | None, listed: bool, blacken: Blacken) -> State:
    """The order of the questions matters: the cheap ones answer nearly always."""
    if text is None:
        return State.MISSING
    if text == file.text:
        return State.SAME
    if is_intact(text):
        if normal(text) == file.text:
            return State.REFORMATTED
        return State.FROZEN if file.kind == "append" else State.CHANGED
    if not listed and not has_signature(text):
        return State.FOREIGN
    if _CONFLICT.search(text):
        return State.CONFLICTED
    if file.path.endswith(".py"):
        black = blacken(normal(text))
        if black is not None and (black == file.text or is_intact(black)):
            return State.REFORMATTED
    return State.EDITED


def _gone(tree: Tree, path: str) -> Step | None:
    """A listed path that is no longer made: removed only if it is as qgen left it."""
    found = tree.look(path)
    if found.refused:
        return Step(path, State.KEPT, why=found.refused)
    if found.text is None:
        return None
    if not is_intact(found.text):
        return Step(path, State.KEPT, found.text, why="was edited")
    return Step(path, State.ORPHANED, found.text)


def stopping(steps: Sequence[Step]) -> list[Step]:
    """The steps that need a person's decision."""
    return [step for step in steps if step.stops]
