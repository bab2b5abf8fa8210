"""``qgen.lock``: what a build made, committed beside the spec.

It is dull on purpose: the versions and the target once, then one sorted line per job
with the fields of its payload and one per path with its kind, so that two branches merge
line by line.  It is read as untrusted input: a line that is not understood, a conflict
marker too, says nothing; nor do two targets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .files import File

NAME: Final = "qgen.lock"
_HEADER: Final = "# What qgen build made. Commit it; qgen alone writes it.\n"
_LINE: Final = re.compile(r"(managed|once|append|ejected) (\S.*)")
_PAYLOAD: Final = re.compile(r"payload (\S+) (\d{1,10})((?: \w+\??)*)")
_TARGET: Final = re.compile(r"target ([a-z]+)")


@dataclass(frozen=True, slots=True)
class Payload:
    """A version of a payload: its fields, and whether each must be given."""

    version: int
    fields: dict[str, bool]


@dataclass(frozen=True, slots=True)
class Lock:
    """The kind of each path that is listed, the payload of each job, and the target.

    ``ejected`` paths are their owner's now.  ``target`` None: none was built yet, or two
    branches built two.
    """

    kinds: Mapping[str, str]
    payloads: Mapping[str, Payload]
    target: str | None = None

    @property
    def ejected(self) -> frozenset[str]:
        """The paths that a person took over with ``qgen eject``."""
        return frozenset(path for path, kind in self.kinds.items() if kind == "ejected")


@lru_cache(4)  # a command asks several times for what it found and what it leaves
def parse(text: str | None) -> Lock:
    """Read a lock; none, or a damaged one, lists what can be read."""
    lines = [line.strip() for line in (text or "").splitlines()]
    files = filter(None, map(_LINE.fullmatch, lines))
    payloads = filter(None, map(_PAYLOAD.fullmatch, lines))
    targets = {line[1] for line in filter(None, map(_TARGET.fullmatch, lines))}
    return Lock(
        {line[2]: line[1] for line in files},
        {line[1]: Payload(int(line[2]), _fields(line[3])) for line in payloads},
        targets.pop() if len(targets) == 1 else None,
    )


def text_of(
    files: Iterable[File],
    payloads: dict[str, Payload],
    target: str,
    versions: Iterable[str],
) -> str:
    """The lock of these files and payloads: the same for the same ones."""
    listed = sorted((file.path, file.kind) for file in files)
    lines = [
        *versions,
        f"target {target}",
        *(_line(name, payload) for name, payload in sorted(payloads.items())),
        *(f"{kind} {path}" for path, kind in listed),
    ]
    return _HEADER + "".join(f"{line}\n" for line in lines)


def without_payloads(text: str) -> str:
    """The same lock, saying nothing of rows that may wait."""
    lines = (line for line in text.splitlines() if not _PAYLOAD.fullmatch(line.strip()))
    return "".join(f"{line}\n" for line in lines)


def _line(name: str, payload: Payload) -> str:
    fields = (
        f" {each}{'' if needed else '?'}" for each, needed in payload.fields.items()
    )
    return f"payload {name} {payload.version}{''.join(fields)}"


def _fields(text: str) -> dict[str, bool]:
    return {each.removesuffix("?"): not each.endswith("?") for each in text.split()}
