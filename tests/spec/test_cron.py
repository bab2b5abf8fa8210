"""Cron lines and the clock on the wall, against an oracle that counts every second.

The oracle knows nothing of offsets: it lets a wall clock go on second by second (here:
minute by minute), notes what it shows, and applies the written rule word by word.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from qgen.resolve.cron import engine

cron = engine()
MINUTE, HOUR, DAY = 60, 3600, 86_400
ZONES = ("America/New_York", "Europe/Paris", "Australia/Lord_Howe", "Pacific/Apia")


def slots(line: str, zone: str, begins: str, ends: str) -> list[str]:
    """The slots after one instant and up to another, in UTC."""
    found, at = [], stamp(begins) * 1000
    made = cron.Cron(cron.read(line), cron.zone_of(zone))
    while (slot := made.after(at)) is not None and slot <= stamp(ends) * 1000:
        found.append(slot)
        at = slot
    assert made.count(stamp(begins) * 1000, stamp(ends) * 1000) == len(found)
    return [
        datetime.fromtimestamp(slot / 1000, UTC).strftime("%d %H:%M") for slot in found
    ]


def stamp(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


# (zone, from, to) around a change, then line -> slots in UTC as `day hour:minute`.
NY_SPRING = ("America/New_York", "2026-03-08T04:59", "2026-03-09T04:59")
NY_AUTUMN = ("America/New_York", "2026-11-01T03:59", "2026-11-02T04:59")
PARIS_SPRING = ("Europe/Paris", "2026-03-28T22:59", "2026-03-29T21:59")
PARIS_AUTUMN = ("Europe/Paris", "2026-10-24T21:59", "2026-10-25T22:59")
HOWE_SPRING = ("Australia/Lord_Howe", "2026-10-03T13:29", "2026-10-04T12:59")
HOWE_AUTUMN = ("Australia/Lord_Howe", "2026-04-04T12:59", "2026-04-05T13:29")
APIA = ("Pacific/Apia", "2011-12-29T09:59", "2011-12-31T09:59")


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [
        # New York, 2:00 -> 3:00 at 07:00Z
        ("30 2 * * *", NY_SPRING, ["08 07:00"]),
        ("*/10 2 * * *", NY_SPRING, ["08 07:00"]),
        ("0 2,3 * * *", NY_SPRING, ["08 07:00"]),
        ("30 1-3 * * *", NY_SPRING, ["08 06:30", "08 07:00", "08 07:30"]),
        ("30 4 * * *", NY_SPRING, ["08 08:30"]),
        ("30 2 * * 1", NY_SPRING, []),
        # New York, 2:00 -> 1:00 at 06:00Z
        ("30 1 * * *", NY_AUTUMN, ["01 05:30"]),
        ("0,30 1 * * *", NY_AUTUMN, ["01 05:00", "01 05:30"]),
        ("0 2 * * *", NY_AUTUMN, ["01 07:00"]),
        ("30 0-2 * * *", NY_AUTUMN, ["01 04:30", "01 05:30", "01 07:30"]),
        # Paris, 2:00 -> 3:00 and 3:00 -> 2:00, both at 01:00Z
        ("30 2 * * *", PARIS_SPRING, ["29 01:00"]),
        ("4 16 * * *", PARIS_SPRING, ["29 14:04"]),
        ("30 2 * * *", PARIS_AUTUMN, ["25 00:30"]),
        ("4 16 * * *", PARIS_AUTUMN, ["25 15:04"]),
        # Lord Howe, 2:00 -> 2:30 at 15:30Z and 2:00 -> 1:30 at 15:00Z
        ("15 2 * * *", HOWE_SPRING, ["03 15:30"]),
        ("0,15,45 2 * * *", HOWE_SPRING, ["03 15:30", "03 15:45"]),
        ("45 1 * * *", HOWE_AUTUMN, ["04 14:45"]),
        ("15 1,2 * * *", HOWE_AUTUMN, ["04 14:15", "04 15:45"]),
        # Apia: no 30 December 2011
        ("0 9 * * *", APIA, ["29 19:00", "30 10:00", "30 19:00"]),
        ("0 0 * * *", APIA, ["29 10:00", "30 10:00"]),
        ("0 9-17 30 12 *", APIA, ["30 10:00"]),
        ("0 9 * * 5", APIA, ["30 10:00"]),
    ],
)
def test_a_daily_line_over_a_change_of_the_clock(line, place, expected):
    assert slots(line, *place) == expected


@pytest.mark.parametrize(
    ("line", "place", "runs"),
    [
        ("0 * * * *", NY_SPRING, 24),
        ("30 * * * *", NY_SPRING, 24),
        ("0 * * * *", NY_AUTUMN, 25),
        ("*/15 * * * *", NY_AUTUMN, 100),
        ("30 * * * *", PARIS_SPRING, 23),
        ("30 * * * *", PARIS_AUTUMN, 25),
        ("0 * * * *", APIA, 48),
    ],
)
def test_an_hourly_line_runs_every_real_hour(line, place, runs):
    found = slots(line, *place)
    assert len(found) == runs == len(set(found))


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [
        # 2:00 does not come: the slot an hour after 1:00, then 3:00 again
        ("0 * * * *", HOWE_SPRING, ["14:30", "15:30", "16:00"]),
        ("15 * * * *", HOWE_SPRING, ["14:45", "15:45", "16:15"]),
        ("45 * * * *", HOWE_SPRING, ["14:15", "15:15", "15:45"]),
        # 1:30 comes twice: so does the slot; 2:00 is an hour and a half after 1:00
        ("30 * * * *", HOWE_AUTUMN, ["14:30", "15:00", "16:00"]),
        ("0 * * * *", HOWE_AUTUMN, ["14:00", "15:00", "15:30"]),
    ],
)
def test_where_the_clock_moves_by_half_an_hour(line, place, expected):
    """Never more than an hour from one to the next."""
    found = slots(line, *place)
    at = next(n for n, slot in enumerate(found) if slot.endswith(expected[0]))
    assert [slot[3:] for slot in found[at : at + 3]] == expected


# --- the oracle -------------------------------------------------------------------


def shown(zone: ZoneInfo, begins: int, ends: int) -> Iterator[tuple[int, datetime]]:
    """Each minute and what the clock on the wall shows then."""
    for second in range(begins, ends, MINUTE):
        yield second, datetime.fromtimestamp(second, zone).replace(tzinfo=None, fold=0)


def matches(line: object, wall: datetime) -> bool:
    of_day = wall.hour * HOUR + wall.minute * MINUTE
    day = (wall.date() - datetime(1970, 1, 1).date()).days
    return of_day in line.times and line.on(day)  # type: ignore[attr-defined]


def by_the_rule(line, zone: ZoneInfo, clock: list[tuple[int, datetime]]) -> list[int]:
    """The slots of a line by the written rule, from what the clock shows."""
    found: set[int] = set()
    before: datetime | None = None
    seen: set[datetime] = set()
    for second, wall in clock:
        if matches(line, wall) and (line.hourly or wall not in seen):
            found.add(second)
        if before is not None and not line.hourly:
            skipped = before + timedelta(minutes=1)
            while skipped < wall:  # the clock jumped over it
                if matches(line, skipped):
                    found.add(second)
                skipped += timedelta(minutes=1)
        before = wall
        seen.add(wall)
    if line.hourly:
        for second in list(found):
            late = second + HOUR
            wall = datetime.fromtimestamp(late, zone).replace(tzinfo=None, fold=0)
            day = (wall.date() - datetime(1970, 1, 1).date()).days
            if late <= clock[-1][0] and line.on(day):
                between = range(second + MINUTE, late + 1, MINUTE)
                if not any(each in found for each in between):
                    found.add(late)
    return sorted(found)


def changes(zone: ZoneInfo, years: range) -> Iterator[int]:
    """The seconds at which the zone's clock is changed."""
    second = stamp(f"{years[0]}-01-01")
    end = stamp(f"{years[-1]}-12-31")
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    while second < end:
        second += HOUR // 2
        new = datetime.fromtimestamp(second, zone).utcoffset()
        if new != offset:
            yield second
        offset = new


def lines(chance: random.Random, count: int) -> Iterator[str]:
    """Lines of every kind, dense around the hours of changes."""
    for _ in range(count):
        minutes = chance.choice(["0", "30", "15", "45", "*/20", "5,35", "59", "*/7"])
        hours = chance.choice(
            ["*", "*", "*/2", "0", "1", "2", "3", "0-3", "1,2", "23", "0-23", "9"]
        )
        day = chance.choice(["*", "*", "*", "1", "30", "8,29"])
        weekday = chance.choice(["*", "*", "*", "0", "5,6", "1-5"])
        yield f"{minutes} {hours} {day} * {weekday}"


@pytest.mark.parametrize("name", ZONES)
def test_every_minute_around_every_change(name):
    """Every change of four years, in each zone, with twenty lines or more."""
    years = range(2010, 2014) if name == "Pacific/Apia" else range(2024, 2028)
    zone, chance = ZoneInfo(name), random.Random(name)
    seen = 0
    for change in changes(zone, years):
        begins, ends = change - 27 * HOUR, change + 27 * HOUR
        # The oracle must have seen the day before: a repeated time was shown then.
        clock = list(shown(zone, begins - 27 * HOUR, ends))
        for text in ("15 * * * *", *lines(chance, 5)):
            line = cron.read(text)
            made = cron.Cron(line, zone)
            wanted = by_the_rule(line, zone, clock)
            wanted = [second for second in wanted if second >= begins]
            at, found = (begins - 1) * 1000, []
            while (slot := made.after(at)) is not None and slot < ends * 1000:
                found.append(slot // 1000)
                at = slot
            assert found == wanted, (text, name, change)
            count = made.count((begins - 1) * 1000, (ends - 1) * 1000)
            assert count == len(wanted), (text, name, change)
            for _ in range(10):  # from anywhere
                start = chance.randrange(begins, ends)
                later = [second for second in wanted if second > start]
                if later:
                    assert made.after(start * 1000 + 5) == later[0] * 1000
        seen += 1
    assert seen >= 5


# --- lines ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("0 0 29 2 *", "2026-01-01", "2028-02-29"),
        ("0 0 29 2 *", "2096-03-01", "2104-02-29"),
        ("0 0 29 2 */7", "2026-01-01", "2032-02-29"),  # and a Sunday
        ("0 0 13 * 5", "2026-01-10", "2026-01-13"),  # the 13th or a Friday
        ("0 0 */10 * 1", "2026-01-02", "2026-05-11"),  # a Monday that is 1, 11, 21, 31
        ("30 7 * * mon-fri", "2026-01-03", "2026-01-05T07:30"),
        ("0 0 1 jan *", "2026-01-02", "2027-01-01"),
        ("0 0 * * 7", "2026-01-01", "2026-01-04"),
        ("*/20 * * * * *", "2026-01-01", "2026-01-01T00:00:20"),
        ("5 4 3 2 1 *", "2026-01-01", "2026-01-02T03:04:05"),
    ],
)
def test_the_next_slot(line, after, expected):
    made = cron.Cron(cron.read(line), UTC)
    assert made.after(stamp(after) * 1000) == stamp(expected) * 1000


@pytest.mark.parametrize(
    "line",
    [
        *("0 0 31 2 *", "0 0 30,31 2 *", "0 0 31 4,6,9,11 *"),
        *("60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8"),
        *("*/0 * * * *", "5-1 * * * *", "a * * * *", "1, * * * *"),
        *("* * * *", "* * * * * * *", "@daily"),
    ],
)
def test_a_line_that_is_none(line):
    with pytest.raises(cron.NotCron):
        cron.read(line)


def test_a_slot_is_counted_in_no_time_however_many_there_are():
    """Every second of ten years: by days, not one by one."""
    made = cron.Cron(cron.read("* * * * * *"), ZoneInfo("Europe/Paris"))
    begins, ends = stamp("2016-01-01"), stamp("2016-02-01")
    assert made.count(begins * 1000, ends * 1000) == ends - begins


@pytest.mark.parametrize("zone", [*ZONES, "Antarctica/Troll", "Antarctica/Casey"])
@pytest.mark.parametrize("line", ["*/29 * * * *", "*/29 0-22 * * *", "*/29 * * * 0,6"])
def test_a_count_is_the_number_of_slots(line: str, zone: str) -> None:
    """Whole stretches beside a change, against one slot after another, over a year."""
    made = cron.Cron(cron.read(line), cron.zone_of(zone))
    for begins in range(stamp("2010-01-01"), stamp("2011-01-01"), 9 * DAY + 1234):
        start, end = begins * 1000, (begins + 9 * DAY + 1234) * 1000
        assert made.count(start, end) == sum(
            1 for _ in made._between(begins, end // 1000)
        )


def test_years_of_seconds_are_counted_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of every second: slot by slot only for the hours beside a change."""
    made = cron.Cron(cron.read("* * * * * *"), cron.zone_of("Europe/Paris"))
    steps, after = [], cron.Cron.after
    monkeypatch.setattr(
        cron.Cron, "after", lambda self, at: steps.append(at) or after(self, at)
    )
    year = stamp("2025-06-01") * 1000, stamp("2026-06-01") * 1000
    assert made.count(*year) == 365 * DAY
    assert len(steps) < 12 * HOUR
