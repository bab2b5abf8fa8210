"""``.qgen/``, the ignored folder beside the spec: everything in it may be deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_UNFINISHED: Final = "unfinished"
_STAGE: Final = "stage"


class Unwritable(Exception):
    """qgen's own folder is a link, or a file: nothing is written through it."""


@dataclass(frozen=True, slots=True)
class Private:
    """The folder ``.qgen`` of a project."""

    root: Path

    @property
    def path(self) -> Path:
        """The folder itself; it may not exist."""
        return self.root / ".qgen"

    def create(self) -> None:
        """Make the folder, ignored by git through its own ``.gitignore``."""
        if self.path.is_symlink():
            raise Unwritable(".qgen is a link: remove it")
        self.path.mkdir(exist_ok=True)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")

    @contextmanager
    def alone(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the project: a second build waits, after calling ``waiting``.

        The lock is the kernel's, so a killed build leaves none behind.
        """
        self.create()
        with open(self.path / "building", "a") as held:
            _take(held.fileno(), waiting)
            yield

    # --- the journal of a build that writes ---

    def unfinished(self) -> tuple[str, ...]:
        """The paths that an interrupted build may have written; empty after a whole one."""
        try:
            text = (self.path / _UNFINISHED).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return ()
        return tuple(line for line in text.splitlines() if line)

    def begin(self, paths: Iterable[str]) -> None:
        """Say what is about to be written, before any of it is.

        What an earlier, interrupted build named stays named until a build is whole.
        """
        names = sorted({*self.unfinished(), *paths})
        new = self.path / f"{_UNFINISHED}.new"
        new.write_text("".join(f"{name}\n" for name in names), "utf-8")
        os.replace(new, self.path / _UNFINISHED)

    def end(self) -> None:
        """Everything is written."""
        (self.path / _UNFINISHED).unlink(missing_ok=True)

    @contextmanager
    def stage(self) -> Iterator[Path]:
        """An empty folder on the project's disk, gone afterwards."""
        place = self.path / _STAGE
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def backup(self) -> Path:
        """A new, numbered folder for copies of what ``--force`` overwrites."""
        place = self.path / "backup"
        place.mkdir(exist_ok=True)
        taken = [int(each.name) for each in place.iterdir() if each.name.isdigit()]
        new = place / str(max(taken, default=0) + 1)
        new.mkdir()
        return new


def _take(descriptor: int, waiting: Callable[[], None]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: generated code is POSIX, the compiler need not be
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
