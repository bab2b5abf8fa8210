"""What earlier runs rendered: what is made of the same again is not rendered again.

``.qgen/rendered.json`` keeps two digests for each path: of what its text was made of, and
of the text.  The text itself is taken from the disk, and only while it is the one that
was kept; so whatever happens to either, a text is rendered again or is the right one.
Beside them it keeps which handlers modules lacked no function, each by one digest of its
text and of the names that were looked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from .. import noop
from ..emit.private import Private
from ..emit.tree import Tree
from ..files import File

NAME: Final = "rendered.json"
_DAMAGE: Final = (OSError, ValueError, LookupError, TypeError, AttributeError)

Stamps = Mapping[str, object]


class Rendered:
    """The memory of a project; an unusable one is empty.

    ``whole`` are the marks of handlers modules that were found to lack nothing, ``met``
    those of them that this run asked for, or found.
    """

    def __init__(self, root: Path, tools: Stamps) -> None:
        self._root, self._tools = root, _made_by(tools)
        self._tree = Tree(root)
        self._kept: dict[str, tuple[str, str]] = {}
        self.whole: frozenset[str] = frozenset()
        self.met: set[str] = set()
        try:
            known = json.loads((Private(root).path / NAME).read_bytes())
            if known["tools"] == self._tools:
                whole = frozenset(known["whole"])
                self._kept = {
                    path: (made_of, digest)
                    for path, (made_of, digest) in known["files"].items()
                }
                self.whole = whole
        except (*_DAMAGE, RecursionError):
            return

    def recall(self, path: str, made_of: str) -> str | None:
        """The text that was made of this, if it still stands at ``path``."""
        kept, digest = self._kept.get(path, ("", ""))
        if kept != made_of:
            return None
        try:
            text = self._tree.look(path).text
        except OSError:
            return None
        return text if text is not None and _digest(text) == digest else None

    def keep(self, files: Iterable[File]) -> None:
        """Remember the texts of a run that ended well.  Failing to is no failure."""
        kept = {f.path: (f.made_of, _digest(f.text)) for f in files if f.made_of}
        known = {"tools": self._tools, "files": kept, "whole": sorted(self.met)}
        noop.write(str(Private(self._root).path / NAME), known)


def _made_by(tools: Stamps) -> dict[str, object]:
    """qgen, its templates and libraries as they are, and this Python."""
    return {**tools, "python": sys.version}


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
