"""Write a plan: all of it or, when interrupted, what the next build completes.

The order makes that true.  Every new text is staged on the same disk first (most lie
there already, where they were proved), so a full disk changes nothing.  Then the journal names what will be written; then each file
takes its place by one rename; then orphans go; the lock is last; the journal goes.
A kill leaves files that are each old or new, and a journal that the next build reads.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..lock import NAME as LOCK
from .plan import State, Step
from .private import Private
from .tree import Tree

_UNCHANGED: Final = {State.SAME, State.OWNED, State.KEPT}


def changes(steps: Sequence[Step]) -> list[Step]:
    """The steps that touch the disk, once those that stop are decided for writing."""
    return [step for step in steps if step.state not in _UNCHANGED]


@dataclass(frozen=True, slots=True)
class Staging:
    """A folder on the project's disk, and the paths whose new texts it holds already."""

    place: Path
    ready: frozenset[str] = frozenset()

    def put(self, path: str, text: str) -> Path:
        """Where the text of ``path`` lies ready for its rename."""
        place = self.place / path
        if path not in self.ready:
            place.parent.mkdir(parents=True, exist_ok=True)
            with open(place, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        return place


def apply(
    tree: Tree,
    private: Private,
    steps: Sequence[Step],
    lock: str,
    staging: Staging,
) -> Path | None:
    """Make the disk what the plan says.  The caller holds ``private.alone``.

    Steps that stop are written as well (that is what ``--force`` asks for), after a
    copy under ``.qgen/backup/``, whose folder is returned.  Nothing that is a link or
    out of bounds is ever written.  Raises OSError; then the journal tells the rest.
    """
    doing = [step for step in changes(steps) if step.state is not State.REFUSED]
    new_lock = lock if tree.look(LOCK).text != lock else None
    if not doing and new_lock is None:
        private.end()
        return None
    kept = _back_up(private, [step for step in doing if step.stops])
    staged = [
        (staging.put(step.path, step.after), step.path)
        for step in doing
        if step.after is not None
    ]
    last = staging.put(LOCK, new_lock) if new_lock is not None else None
    private.begin(step.path for step in doing)
    for source, path in staged:
        _replace(source, tree.at(path))
    for step in doing:
        if step.state is State.ORPHANED:
            _remove(tree.root, tree.at(step.path))
    if last is not None:
        _replace(last, tree.at(LOCK))
    private.end()
    return kept


def _replace(source: Path, target: Path) -> None:
    """One rename; the mode of a file that was there stays."""
    try:
        shutil.copymode(target, source)
    except FileNotFoundError:
        target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, target)


def _back_up(private: Private, steps: Sequence[Step]) -> Path | None:
    copies = [step for step in steps if step.before is not None]
    if not copies:
        return None
    place = private.backup()
    for step in copies:
        copy = place / step.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((step.before or "").encode("utf-8", "surrogateescape"))
    return place


def _remove(root: Path, path: Path) -> None:
    """Remove an orphan, what Python compiled from it, and the folders left empty."""
    path.unlink(missing_ok=True)
    cache = path.parent / "__pycache__"
    for compiled in cache.glob(f"{path.stem}.*.pyc") if path.suffix == ".py" else ():
        compiled.unlink(missing_ok=True)
    for folder in (cache, *path.parents):
        if folder == root:
            return
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            if folder != cache:
                return
