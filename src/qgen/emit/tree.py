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
    """A folder that nothing qgen does may leave, through ``..`` or through a link."""

    root: Path
    _folders: dict[PurePosixPath, str] = field(default_factory=dict)

    def at(self, path: str) -> Path:
        """The path on disk.  Ask ``look`` first whether it may be used."""
        return self.root / path

    def look(self, path: str) -> Found:
        """Read a file, or say why it is out of bounds.  Raises OSError if unreadable."""
        pure = PurePosixPath(path)
        refused = self._outside(pure)
        if refused:
            return Found(refused=refused)
        try:
            mode = os.lstat(self.root / path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return Found()
        if stat.S_ISLNK(mode):
            return Found(refused="is a link")
        if not stat.S_ISREG(mode):
            return Found(refused="is not a file")
        data = (self.root / path).read_bytes()
        return Found(data.decode("utf-8", "surrogateescape"))

    def _outside(self, path: PurePosixPath) -> str:
        plain = path.parts and "\\" not in str(path) and "\0" not in str(path)
        if path.is_absolute() or ".." in path.parts or not plain:
            return "is not below the folder of the spec"
        return self._folder(path.parent)

    def _folder(self, folder: PurePosixPath) -> str:
        """Empty when the folder, if it exists, is really inside; else what is wrong."""
        if folder == PurePosixPath("."):
            return ""
        known = self._folders.get(folder)
        if known is None:
            known = self._folder(folder.parent) or self._one(folder)
            self._folders[folder] = known
        return known

    def _one(self, folder: PurePosixPath) -> str:
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
