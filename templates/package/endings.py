"""The end of an attempt, as a value: what an outcome decides and the record writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .database import Row

# Releases that use no attempt; from then on each uses one.
FREE_RELEASES: Final = 20


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends.  ``delay`` is seconds until it may start again.

    ``paid``: its row may hold money, which is settled in the same transaction.
    """

    id: str
    fence: int
    attempt: int
    state: str
    outcome: str
    worker: str = ""
    started_at: int = 0
    reason: str | None = None
    result: str | None = None
    error: str | None = None
    cause: str | None = None
    traceback: str | None = None
    delay: float = 0.0
    priority: str = "normal"
    defers: int = 0
    releases: int = 0
    throttles: int = 0
    max_elapsed: float | None = None
    stranded: bool = False
    paid: bool = False


def used(row: Row) -> int:
    """Attempts that count: waits grow with it, and at ``tries`` a job is exhausted."""
    free = min(int(row["releases"]), FREE_RELEASES)
    return int(row["attempt"]) - free - int(row["throttles"]) - int(row["defers"])
