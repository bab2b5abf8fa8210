"""Time zones: those that there are, by the names that the tz database has now."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from qgen.diagnostics.catalogue import values
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest


def check(draft: Draft) -> Iterator[Finding]:
    """The zone of money, and that of each schedule."""
    spec = draft.spec
    named: list[tuple[Path, str]] = [(("spend", "timezone"), spec.spend.timezone)]
    for name, schedule in spec.schedules.items():
        named.append((("schedules", name, "timezone"), schedule.timezone))
    for path, zone in named:
        if zone == "UTC" or zone in zones():
            continue
        near = nearest(zone, lower := {each.lower(): each for each in zones()})
        message = f"there is no time zone {shown(zone)}."
        write = 'write "UTC" or an area and a city, such as "Australia/Sydney"'
        help = f"did you mean `{lower[near]}`?" if near else write
        yield Finding(values.NOT_A_ZONE, path, message, help)


@cache
def zones() -> frozenset[str]:
    """Every zone, as the tzdata package lists them: alike on every machine."""
    return frozenset((files("tzdata") / "zones").read_text("utf-8").split())
