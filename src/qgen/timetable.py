"""What the plan says of schedules: when they run, and their slots after an instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from .model import Model, Schedule
from .resolve.cron import slots
from .resolve.units import span

# A Monday, and the first day of a leap year.  It is past, so no zone will change it, and
# the same spec gives the same page wherever and whenever it is made.
EXAMPLE: Final = datetime(2024, 1, 1, tzinfo=UTC)
MISSED: Final = {
    "skip": "skipped",
    "one": "one run for all of them",
    "all": "the last {} are caught up",
}
OVERLAP: Final = {"skip": "the slot is skipped", "allow": "it runs beside it"}


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule as a person reads it."""

    name: str
    job: str
    when: str
    zone: str
    missed: str
    overlap: str
    slots: str


def rows(model: Model, after: datetime = EXAMPLE) -> list[Row]:
    """Every schedule with its first slots after an instant."""
    return [
        Row(
            name=each.name,
            job=each.job,
            when=each.cron or f"every {span(each.every or 0)}",
            zone=each.timezone,
            missed=MISSED[each.missed].format(each.max_missed),
            overlap=OVERLAP[each.overlap],
            slots=following(each, after),
        )
        for each in model.schedules
    ]


def following(schedule: Schedule, after: datetime) -> str:
    """Its first three slots after an instant, or that it is switched off."""
    if not schedule.enabled:
        return "switched off"
    found = slots(schedule.cron, schedule.every, schedule.timezone, after, 3)
    return ", ".join(shown(slot) for slot in found)


def shown(slot: datetime) -> str:
    """``Mon 2024-01-01 07:30+11:00``, with seconds where there are any."""
    spec = "seconds" if slot.second or slot.microsecond else "minutes"
    return f"{slot:%a} {slot.replace(microsecond=0).isoformat(' ', spec)}"
