"""What becomes of the slots that are due, by ``missed`` and ``overlap``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from . import slots
from .database import Row
from .definitions import Schedule

# A slot that is older than this was missed, milliseconds.
MISSED: Final = 60_000


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of the slots that are due.

    ``runs`` get a job now, ``owed`` (missed ones) one after another when the run before
    has ended; ``overlapped`` and ``missed`` count those that get none.
    """

    slot: int | None
    runs: tuple[int, ...] = ()
    owed: tuple[int, ...] = ()
    overlapped: int = 0
    missed: int = 0


def decide(schedule: Schedule, row: Row) -> Move:
    """What to do with everything that is due, by ``missed`` and ``overlap``."""
    of, now = slots.of(schedule), int(row["now"])
    last = int(row["begun_at"] if row["slot"] is None else row["slot"])
    late = max(last, now - MISSED - 1)
    keep = {"skip": 0, "one": 1, "all": schedule.max_missed}[schedule.missed]
    before: list[int] = json.loads(row["owed"])
    owed = [*before, *slots.latest(of, keep, last, late)][-keep:] if keep else []
    missed = of.count(last, late) + len(before) - len(owed)
    fresh = slots.between(of, late, now)
    slot = max(slots.latest(of, 1, last, now), default=row["slot"])
    if schedule.overlap == "allow":
        return Move(slot, (*owed, *fresh), missed=missed)
    if row["unfinished"]:
        return Move(slot, (), tuple(owed), len(fresh), missed)
    if owed:
        return Move(slot, (owed[0],), tuple(owed[1:]), len(fresh), missed)
    return Move(slot, tuple(fresh[:1]), (), len(fresh[1:]), missed)
