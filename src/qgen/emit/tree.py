"""The disk below the spec's folder: what is at a path, and whether it may be touched."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Found:
    """What is at a path: its text, nothing (None), or why qgen may not touch it."""

    text: str | None = None
    refused: str = ""


@dataclass(slots=True)
class Tree:
    """A folder that nothing qgen does may leave, through ``..`` or through a link.

    ``once``: each path is read at its first look, and is then what it was.
    """

    root: Path
    once: bool = False
    _folders: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, Found] = field(default_factory=dict)

    def at(self, path: str) -> Path:
        """The path on disk.  Ask ``look`` first whether it may be used."""
        return self.root / path

    def look(self, path: str) -> Found:
        """Read a file, or say why it is out of bounds.  Raises OSError if unreadable."""
        found = self._seen.get(path) if self.once else None
        if found is None:
            found = self._look(path)
            if self.once:
                self._seen[path] = found
        return found

    def _look(self, path: str) -> Found:
        refused = self._outside(path)
        if refused:
            return Found(refused=refused)
        place = os.path.join(self.root, path)
        try:
            mode = os.lstat(place).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return Found()
        if stat.S_ISLNK(mode):
            return Found(refused="is a link")
        if not stat.S_ISREG(mode):
            return Found(refused="is not a file")
        with open(place, "rb", buffering=0) as file:
            return Found(file.read().decode("utf-8", "surrogateescape"))

    def _outside(self, path: str) -> str:
        pure = PurePosixPath(path)
        plain = pure.parts and "\\" not in path and "\0" not in path
        if pure.is_absolute() or ".." in pure.parts or not plain:
            return "is not below the folder of the spec"
        return self._folder(str(pure.parent))

    def _folder(self, folder: str) -> str:
        """Empty when the folder, if it exists, is really inside; else what is wrong."""
        if folder == ".":
            return ""
        known = self._folders.get(folder)
        if known is None:
            above = str(PurePosixPath(folder).parent)
            known = self._folder(above) or self._one(folder)
            self._folders[folder] = known
        return known

    def _one(self, folder: str) -> str:
        place = self.root / folder
        if place.is_symlink():
            try:
                inside = place.resolve(strict=True).is_relative_to(self.root.resolve())
            except (OSError, RuntimeError):
                return f"{folder} is a link that leads nowhere"
            if not inside:
                return f"{folder} is a link that leaves the folder of the spec"
        if place.exists() and not place.is_dir():
            return f"{folder} is not a folder"
        return ""
