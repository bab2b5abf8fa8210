"""A finding: a problem by key path, before its place in the file is looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qgen.diagnostics.catalogue.code import Code
from qgen.diagnostics.value import Diagnostic, Related
from qgen.spec.source import Source
from qgen.spec.spans import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at ``path``; ``also`` are the other keys that it is a relation with.

    ``unless`` names what it also rests on: where a part of that was refused, nothing is
    said.  ``meant`` is the key that a misspelt one stands for.
    """

    code: Code
    path: Path
    message: str
    help: str
    at: Literal["key", "value"] = "value"
    also: tuple[tuple[Path, str], ...] = ()
    unless: tuple[Path, ...] = ()
    meant: Path | None = None

    def paths(self) -> tuple[Path, ...]:
        """The keys that the finding names."""
        return (self.path, *(path for path, _ in self.also))

    def placed(self, source: Source) -> Diagnostic:
        """The diagnostic at its place in the file; a key that is not there is no
        second place."""
        related = [
            Related(source.locate(path, "key"), label)
            for path, label in self.also
            if path in source.spans
        ]
        place = source.locate(self.path, self.at)
        return source.problem(self.code, place, self.message, self.help, related)
