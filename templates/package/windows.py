"""Windows of spending: where they begin, what they are called, which caps apply.

Pure functions of the database's instant; zones come from zoneinfo, so both dialects
have the same windows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from .definitions import Agent, Period

PERIODS: Final[tuple[Period, ...]] = ("hour", "day", "week", "month")

_LONGEST_KEY: Final = 200


@dataclass(frozen=True, slots=True)
class Limit:
    """A cap in one window; ``of`` is a value of the agent's ``each_by``, or None.

    ``spec`` is what the spec says, ``cap`` what applies: a brake lowers it.
    """

    key: str
    agent: str
    of: str | None
    period: Period
    starts: int
    ends: int
    cap: int
    spec: int


def bounds(period: Period, now: int, zone: ZoneInfo) -> tuple[int, int]:
    """First millisecond of the window that ``now`` lies in, and of the next one.

    Days begin at the zone's midnight, weeks on Monday; hours are real hours, so the
    hour that a clock change repeats is two windows.
    """
    local = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
    if period == "hour":
        into = (local.minute * 60 + local.second) * 1000 + now % 1000
        return now - into, now - into + 3_600_000
    first = local.date()
    if period == "day":
        after = first + timedelta(days=1)
    elif period == "week":
        first -= timedelta(days=first.weekday())
        after = first + timedelta(days=7)
    else:
        first = first.replace(day=1)
        after = (first + timedelta(days=32)).replace(day=1)
    return _midnight(first, zone), _midnight(after, zone)


def limits(
    agent: Agent,
    of: str | None,
    now: int,
    zone: ZoneInfo,
    brakes: Mapping[tuple[str, str], int],
) -> list[Limit]:
    """Every cap on the agent now, of the value ``of`` too; the brakes are in them."""
    found: list[Limit] = []
    for period in PERIODS:
        starts, ends = bounds(period, now, zone)
        if period in agent.caps:
            spec = agent.caps[period]
            cap = min(spec, brakes.get((agent.name, period), spec))
            key = _key(agent.name, None, period, starts)
            found.append(Limit(key, agent.name, None, period, starts, ends, cap, spec))
        if period in agent.each_caps and of is not None:
            cap = agent.each_caps[period]
            key = _key(agent.name, of, period, starts)
            found.append(Limit(key, agent.name, of, period, starts, ends, cap, cap))
    return found


def cap_key(value: Any) -> str:
    """The name of a payload field's value: its JSON, or a digest where that is long."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    if len(text) <= _LONGEST_KEY:
        return text
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def rows(found: Iterable[Limit]) -> list[dict[str, object]]:
    """The window rows of these limits, each once, by key."""
    unique = {limit.key: limit for limit in found}
    return [
        {
            "key": key,
            "agent": limit.agent,
            "cap_key": limit.of,
            "period": limit.period,
            "starts_at": limit.starts,
            "ends_at": limit.ends,
        }
        for key, limit in sorted(unique.items())
    ]


def _key(agent: str, of: str | None, period: str, starts: int) -> str:
    start = datetime.fromtimestamp(starts / 1000, UTC).strftime("%Y-%m-%dT%H:%MZ")
    return "|".join((agent, of or "", period, start))


def _midnight(day: date, zone: ZoneInfo) -> int:
    # In a gap this is the gap's first instant; twice the same midnight: the first.
    return round(datetime.combine(day, time(), zone).timestamp() * 1000)
