"""Which template makes which file: the overlays and the generated suite.

``templates/package/`` is in every package; ``templates/<dialect>/`` and
``templates/<target>/`` add what differs, and what a target shares with others of its
kind (``templates/forking/``).  The same path in two of them is an error: no overlay may
quietly replace another's file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Final

from .data import folder
from .render import SUFFIX
from .signature import ENGINE, has_signature, is_intact, signed, with_header
from .targets import TARGETS

# The folder of a target's overlay that belongs to the generated tests.
TESTS: Final = "tests/"

# Rendered once per job: not a file of its own.
_PER_JOB: Final = "jobs/job.py.j2"


class Clash(Exception):
    """Two overlays hold the same path: a bug in qgen's templates."""


@dataclass(frozen=True, slots=True)
class Source:
    """A template and the path of its file, below the package or below its tests."""

    template: str
    path: str

    @property
    def is_rendered(self) -> bool:
        """False for an engine file, which is copied byte for byte."""
        return self.template.endswith(SUFFIX)


def package(dialect: str, target: str) -> tuple[Source, ...]:
    """What makes a package, sorted by path."""
    found: dict[str, Source] = {}
    for overlay in ("package", dialect, *TARGETS[target].shares, target):
        for source in sources(overlay):
            if source.path.startswith(TESTS):
                continue
            if source.path in found:
                both = f"{found[source.path].template} and {source.template}"
                raise Clash(f"{both} are the same file")
            found[source.path] = source
    return tuple(found[path] for path in sorted(found))


def suite(target: str) -> tuple[Source, ...]:
    """What makes the generated tests, sorted by path."""
    found = {source.path: source for source in sources("tests")}
    for source in sources(target):
        if source.path.startswith(TESTS):
            path = source.path.removeprefix(TESTS)
            found[path] = Source(source.template, path)
    return tuple(found[path] for path in sorted(found))


@cache
def engine(template: str) -> str:
    """An engine file's text.

    Released templates carry a current signature and are copied byte for byte; one that
    is being worked on is signed here, so that a build never takes it for edited.
    """
    text = (folder("templates") / template).read_text("utf-8")
    if is_intact(text):
        return text
    if has_signature(text):
        return signed(text)
    return with_header(template, ENGINE, text)


@cache
def sources(overlay: str) -> tuple[Source, ...]:
    """The templates of one overlay, sorted."""
    root = folder("templates")
    found = (
        Source(
            path.relative_to(root).as_posix(),
            path.relative_to(root / overlay).as_posix().removesuffix(SUFFIX),
        )
        for path in sorted((root / overlay).rglob("*"))
        if path.is_file() and not _is_private(path.relative_to(root / overlay))
    )
    return tuple(found)


def _is_private(path: PurePath) -> bool:
    """Caches, hidden files, and the template that is rendered once per job."""
    hidden = any(part.startswith((".", "__pycache__")) for part in path.parts)
    return hidden or path.as_posix() == _PER_JOB
