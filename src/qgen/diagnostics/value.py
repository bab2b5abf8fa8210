"""A diagnostic is a value: what is wrong, where, and what to write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A span of a file: lines and columns count from 1 in characters, the end is past it.

    Line 0 means the file as a whole.
    """

    file: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        """``queue.toml:12:3``, or the file alone."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that belongs to the problem, and what is there."""

    place: Place
    label: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem.  ``message`` says what is wrong, ``help`` what to write; both are one
    sentence in the user's words and never hold a secret."""

    place: Place
    code: str
    severity: Severity
    message: str
    help: str
    related: tuple[Related, ...] = ()

    @property
    def is_error(self) -> bool:
        """False for a warning."""
        return self.severity == "error"


def ordered(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Each once, in the order of the file."""
    unique = dict.fromkeys(found)
    return tuple(sorted(unique, key=lambda d: (d.place, d.code, d.message)))


def has_errors(found: Iterable[Diagnostic]) -> bool:
    """True when something must be mended before anything is built."""
    return any(each.is_error for each in found)
