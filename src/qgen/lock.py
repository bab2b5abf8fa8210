"""``qgen.lock``: which files a build made, committed beside the spec.

It is dull on purpose: the versions once, then one sorted line per path with its kind,
so that two branches merge line by line.  It is read as untrusted input: a line that is
not understood, a conflict marker too, says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .files import File

NAME: Final = "qgen.lock"
_HEADER: Final = "# What qgen build made. Commit it; qgen alone writes it.\n"
_LINE: Final = re.compile(r"(managed|once|append|ejected) (\S.*)")


@dataclass(frozen=True, slots=True)
class Lock:
    """The kind of each path that is listed; ``ejected`` paths are their owner's now."""

    kinds: dict[str, str]

    @property
    def ejected(self) -> frozenset[str]:
        """The paths that a person took over with ``qgen eject``."""
        return frozenset(path for path, kind in self.kinds.items() if kind == "ejected")


def parse(text: str | None) -> Lock:
    """Read a lock; none, or a damaged one, lists what can be read."""
    found = (_LINE.fullmatch(line.strip()) for line in (text or "").splitlines())
    return Lock({line[2]: line[1] for line in found if line})


def text_of(files: Iterable[File], versions: Iterable[str]) -> str:
    """The lock of these files: the same for the same files and versions."""
    listed = sorted((file.path, file.kind) for file in files)
    lines = [*versions, *(f"{kind} {path}" for path, kind in listed)]
    return _HEADER + "".join(f"{line}\n" for line in lines)


def paths_of(text: str) -> str:
    """The lines that name files, without the versions."""
    return "".join(f"{line}\n" for line in text.splitlines() if _LINE.fullmatch(line))
