"""Schedules on both databases, with a clock that is moved: one run per slot."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from engine import clock, faults
from engine.clock import Clock, stamp
from engine.units import Engine

import servers

WORK = 'job = "work"\npayload = { n = 1 }\n'
SPEC = faults.QUICK + faults.JOBS + f"""
[jobs.alone]
unique_by = ["n"]
[jobs.alone.payload]
n = "int"

[agents.writer]
owner = "ann"
cap = {{ day = "0.10" }}
[jobs.paid]
agent = "writer"
max_cost = "0.05"
handler = "tested_handlers:plain"

[schedules.costly]
job = "paid"
every = "1m"
missed = "all"
max_missed = 5
overlap = "allow"
[schedules.skips]
{WORK}every = "1m"
[schedules.catches_one]
{WORK}every = "1m"
missed = "one"
[schedules.catches_all]
{WORK}every = "1m"
missed = "all"
max_missed = 5
[schedules.all_at_once]
{WORK}every = "1m"
missed = "all"
max_missed = 5
overlap = "allow"
[schedules.unique]
job = "alone"
payload = {{ n = 7 }}
cron = "0 12 * * *"
[schedules.off]
{WORK}every = "1m"
enabled = false
"""


class Timed(Engine):
    """The engine with a clock to move, and what the tests ask of its schedules."""

    def __init__(self, package: faults.Package) -> None:
        self.clock = Clock(package)
        super().__init__(package)
        self.schedules = self.part("schedules")
        self.record_database = self.database()

    def tick(self, at: str | float | None = None, starts: bool = False) -> Any:
        if at is not None:
            self.clock.at(at)
        return self.schedules.tick(self.record_database, starts)

    def known(self, name: str) -> Any:
        (found,) = [s for s in self.schedules.SCHEDULES if s.name == name]
        return found

    def only(self, monkeypatch: pytest.MonkeyPatch, *found: Any) -> None:
        """From now on the package has these schedules."""
        monkeypatch.setattr(self.schedules, "SCHEDULES", found)

    def slots(self, name: str) -> list[str]:
        """The slots that have a job, as UTC."""
        rows = self.package.rows(f"schedule = '{name}'")
        return sorted(shown(row["slot"]) for row in rows)

    def end(self, name: str, state: str = "completed") -> None:
        """The schedule's unfinished runs end, as if a worker had run them."""
        finished = "1" if self.package.dialect == "sqlite" else "now()"
        self.package.sql(
            f"UPDATE jobs SET state = '{state}', finished_at = {finished},"
            " dispatched_at = NULL WHERE schedule = ? AND state = 'queued'",
            name,
        )

    def row_of(self, name: str) -> Any:
        (row,) = self.package.sql("SELECT * FROM jobs_schedules WHERE name = ?", name)
        return row

    def overview(self, name: str) -> Any:
        with self.transaction() as tx:
            return self.schedules.overview(tx)[name]


def shown(slot: Any) -> str:
    found = (
        slot if isinstance(slot, datetime) else datetime.fromtimestamp(slot / 1000, UTC)
    )
    return found.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def made(
    dialect: str,
    url: str,
    redis: servers.Redis | servers.External,
    folder: Path,
    spec: str,
) -> Timed:
    return Timed(clock.build(dialect, spec).at(url, redis.url, folder))


@pytest.fixture
def timed(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> Iterator[Timed]:
    engine = made(dialect, database_url, redis_server, tmp_path / "run", SPEC)
    engine.tick("2026-06-01T11:59:30")
    yield engine
    engine.close()


# --- one run per slot -------------------------------------------------------------


def test_a_slot_has_one_job_however_often_it_is_looked_at(timed: Timed) -> None:
    for second in (5, 6, 20, 50):
        timed.tick(f"2026-06-01T12:00:{second:02d}")
        timed.end("skips")
    assert timed.slots("skips") == ["2026-06-01 12:00:00"]
    timed.tick("2026-06-01T12:01:00.100")
    assert timed.slots("skips") == ["2026-06-01 12:00:00", "2026-06-01 12:01:00"]
    assert timed.overview("skips")["skipped"] == 0
    row, *_ = timed.package.rows("schedule = 'skips'")
    assert (row["job"], row["payload"]["n"], row["state"]) == ("work", 1, "completed")


class Stale:
    """A database whose look at a schedule is one that is old by now."""

    def __init__(self, database: Any, row: Any) -> None:
        self.transaction = database.transaction
        self._row = row

    @contextmanager
    def reading(self) -> Iterator[Any]:
        yield self

    def one(self, _sql: str, **_params: object) -> Any:
        return self._row


def test_of_two_that_decide_on_one_turn_one_moves_it(timed: Timed) -> None:
    """Both have read the row before either writes."""
    schedule = timed.known("skips")
    timed.clock.at("2026-06-01T12:10:05")
    statements = timed.part("schedule_statements")
    with timed.transaction() as tx:
        row = tx.one(statements.SCHEDULE_READ, name="skips")
    stale = Stale(timed.record_database, row)
    assert timed.schedules._move(stale, schedule).slots == 1
    before = timed.row_of("skips")
    assert timed.schedules._move(stale, schedule).slots == 0
    assert timed.row_of("skips") == before
    assert timed.slots("skips") == ["2026-06-01 12:10:00"]


def test_what_is_due_is_counted_with_no_transaction_open(
    timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count that takes longer than a transaction may idle: the schedule moves on."""
    real = timed.schedules.decide

    def decide(schedule: Any, row: Any) -> Any:
        time.sleep(1.5)
        return real(schedule, row)

    monkeypatch.setattr(timed.schedules, "decide", decide)
    timed.only(monkeypatch, timed.known("skips"))
    timed.record_database = timed.database(patience=1.0)
    assert timed.tick("2026-06-01T12:10:05").failed == 0
    assert timed.slots("skips") == ["2026-06-01 12:10:00"]


def test_a_slot_that_has_a_job_gets_no_other(timed: Timed) -> None:
    """The last guard: a row of schedules that was put back, by a person or a backup."""
    before = timed.row_of("skips")
    timed.tick("2026-06-01T12:00:05")
    timed.end("skips")
    timed.package.sql(
        "UPDATE jobs_schedules SET slot = NULL, turn = 0, begun_at = ?, next_at = ?"
        " WHERE name = 'skips'",
        before["begun_at"],
        before["next_at"],
    )
    timed.tick()
    assert timed.slots("skips") == ["2026-06-01 12:00:00"]


def test_the_message_is_there_to_be_published_at_once(timed: Timed) -> None:
    timed.clock.at("2026-06-01T12:00:01")
    timed.boot()
    ticked = timed.tick()
    ids = {row["id"] for row in timed.package.rows("schedule IS NOT NULL")}
    assert {message.id for message in ticked.messages} == ids
    assert ticked.slots == len(ids) == 6
    assert 0 < ticked.pause <= 1  # the sweep of this spec


def test_the_pause_ends_at_the_next_slot(timed: Timed) -> None:
    assert timed.tick("2026-06-01T12:00:59.700").pause == pytest.approx(0.3, abs=0.25)


# --- missed -----------------------------------------------------------------------


def ten_hours(timed: Timed) -> None:
    """All workers down from noon on, in the middle of nothing."""
    timed.tick("2026-06-01T12:00:05")
    for name in ("skips", "catches_one", "catches_all", "all_at_once"):
        timed.end(name)
    timed.tick("2026-06-01T22:00:30")


def new(timed: Timed, name: str) -> list[str]:
    """The slots after the outage, without the day."""
    return [slot[11:] for slot in timed.slots(name)][1:]


def test_missed_skip(timed: Timed) -> None:
    """The slot half a minute ago is on time; 599 minutes are not."""
    ten_hours(timed)
    assert new(timed, "skips") == ["22:00:00"]
    assert timed.overview("skips")["skipped"] == 599


def test_missed_one(timed: Timed) -> None:
    """One run for all that was missed, and no second one beside it."""
    ten_hours(timed)
    assert new(timed, "catches_one") == ["21:59:00"]
    assert timed.overview("catches_one")["skipped"] == 599
    timed.end("catches_one")
    timed.tick("2026-06-01T22:01:01")
    assert new(timed, "catches_one") == ["21:59:00", "22:01:00"]


def test_missed_all_one_after_another(timed: Timed) -> None:
    """The last five, each when the one before has ended; what is due meanwhile is
    skipped, since a run of the schedule is unfinished."""
    ten_hours(timed)
    due = ["21:55:00", "21:56:00", "21:57:00", "21:58:00", "21:59:00"]
    for number, _ in enumerate(due):
        timed.tick()
        assert new(timed, "catches_all") == due[: number + 1]
        assert timed.overview("catches_all")["owed"] == 4 - number
        timed.end("catches_all")
    timed.tick("2026-06-01T22:01:02")
    assert new(timed, "catches_all") == [*due, "22:01:00"]
    assert timed.overview("catches_all")["skipped"] == 594 + 1


def test_missed_all_at_once_where_runs_may_overlap(timed: Timed) -> None:
    """Spread, a second between two of them."""
    ten_hours(timed)
    due = ["21:55:00", "21:56:00", "21:57:00", "21:58:00", "21:59:00", "22:00:00"]
    assert new(timed, "all_at_once") == due
    assert timed.overview("all_at_once")["skipped"] == 594
    rows = timed.package.rows("schedule = 'all_at_once'")[1:]
    starts = [row["run_at"] for row in sorted(rows, key=lambda row: row["slot"])][:5]
    waits = [second(b) - second(a) for a, b in itertools.pairwise(starts)]
    assert waits == pytest.approx([1.0] * 4, abs=0.5)


def test_what_is_caught_up_stays_under_the_caps(timed: Timed) -> None:
    """Money for two runs: of six that are due two begin, the others wait for it."""
    ten_hours(timed)
    timed.tick("2026-06-01T22:00:50")  # all six are due by now
    wanted = [r["id"] for r in timed.package.rows("schedule = 'costly'")][1:]
    timed.package.sql("DELETE FROM jobs WHERE schedule <> 'costly'")
    boot = timed.boot(slots=20)
    timed.dispatch()
    found = timed.messages.messages_of(
        timed.package.rows("state = 'queued' AND dispatched_at IS NOT NULL")
    )
    claims = timed.claims(*found, boot=boot)
    assert (len(claims.admitted), len(wanted)) == (2, 6)
    waiting = timed.package.rows("state = 'queued'")
    assert {row["reason"] for row in waiting} == {"budget"}
    assert len(waiting) == 5


def second(instant: Any) -> float:
    return instant.timestamp() if isinstance(instant, datetime) else instant / 1000


def test_what_is_owed_is_not_forgotten_in_a_second_outage(timed: Timed) -> None:
    ten_hours(timed)
    timed.end("catches_all")
    timed.tick("2026-06-01T22:03:30")  # 22:01 and 22:02 were missed too
    timed.end("catches_all")
    for _ in range(6):
        timed.tick()
        timed.end("catches_all")
    assert new(timed, "catches_all") == [
        *("21:55:00", "21:57:00", "21:58:00", "21:59:00", "22:01:00", "22:02:00")
    ]


# --- overlap ----------------------------------------------------------------------


def test_a_hung_job_stops_no_other_schedule(timed: Timed) -> None:
    """Its own slots are skipped, counted, and seen in status."""
    for minute in range(6):
        timed.tick(f"2026-06-01T12:{minute:02d}:01")
        timed.end("catches_one")
    assert timed.slots("skips") == ["2026-06-01 12:00:00"]
    assert len(timed.slots("catches_one")) == 6
    assert len(timed.slots("all_at_once")) == 6
    status = timed.package.json("status")["schedules"]["skips"]
    assert (status["skipped"], status["skipped_in_a_row"]) == (5, 5)
    assert status["last_state"] == "queued"
    assert status["next_slot"] == "2026-06-01T12:06:00.000Z"
    timed.end("skips")
    timed.tick("2026-06-01T12:06:01")
    overview = timed.overview("skips")
    assert (overview["skipped"], overview["skipped_in_a_row"]) == (5, 0)


@pytest.mark.parametrize("state", ["queued", "active", "held"])
def test_a_run_is_unfinished_until_it_has_ended(timed: Timed, state: str) -> None:
    timed.tick("2026-06-01T12:00:01")
    if state != "queued":
        worker = timed.boot() if state == "active" else None
        timed.package.sql(
            "UPDATE jobs SET state = ?, worker = ?, dispatched_at = NULL"
            " WHERE schedule = 'skips'",
            state,
            worker,
        )
    timed.tick("2026-06-01T12:01:01")
    assert timed.slots("skips") == ["2026-06-01 12:00:00"]


def test_an_alarm_rises_after_several_in_a_row(timed: Timed, caplog: Any) -> None:
    levels = []
    for minute in range(5):
        caplog.clear()
        timed.tick(f"2026-06-01T12:{minute:02d}:01")
        levels.append(
            [r.levelname for r in caplog.records if "skips" in r.getMessage()]
        )
    assert levels[1:] == [["WARNING"], ["WARNING"], ["ERROR"], ["ERROR"]]


def test_a_short_restart_is_no_alarm(
    timed: Timed, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Slots that came due while no worker looked are counted; a run that hangs alarms."""
    caplog.set_level("INFO")
    often = replace(timed.known("skips"), every=5.0)
    timed.only(monkeypatch, often)
    timed.tick("2026-06-01T12:00:01", starts=True)
    levels = []
    for second in ("06", "41", "46", "51"):  # a restart of half a minute in between
        caplog.clear()
        timed.tick(f"2026-06-01T12:00:{second}")
        levels.append([r.levelname for r in caplog.records if "slot" in r.getMessage()])
    assert levels == [["INFO"], ["INFO", "WARNING"], ["WARNING"], ["ERROR"]]
    overview = timed.overview("skips")
    assert (overview["skipped"], overview["skipped_in_a_row"]) == (9, 3)


def test_health_misses_who_runs_the_schedules(timed: Timed) -> None:
    """With no row of theirs left: nobody makes one either.  Switched off they need nobody."""
    timed.package.sql("DELETE FROM jobs")
    health = timed.part("health")
    assert health._timed() == [
        "queue default: 0 live workers, so its schedules do not run: all_at_once, "
        "catches_all, catches_one, costly, skips, unique"
    ]
    timed.boot()
    assert health._timed() == []


def test_a_slot_folds_into_an_unfinished_twin(timed: Timed) -> None:
    timed.put(timed.api.Alone(n=7))
    timed.tick("2026-06-01T12:00:01")
    assert timed.slots("unique") == []
    assert timed.overview("unique")["skipped"] == 1


def test_a_schedule_that_fails_does_not_stop_the_others(
    timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = timed.schedules.payload_of

    def payload_of(schedule: Any) -> Any:
        assert schedule.name != "catches_all", "no payload"
        return real(schedule)

    monkeypatch.setattr(timed.schedules, "payload_of", payload_of)
    assert timed.tick("2026-06-01T12:00:01").failed == 1
    assert timed.slots("skips") and not timed.slots("catches_all")
    monkeypatch.setattr(timed.schedules, "payload_of", real)
    timed.tick("2026-06-01T12:00:03")
    assert timed.slots("catches_all") == ["2026-06-01 12:00:00"]


# --- deploys ----------------------------------------------------------------------


def changed(schedule: Any, **values: Any) -> Any:
    from dataclasses import replace

    return replace(schedule, **values)


def test_one_that_is_switched_off_has_no_slots(timed: Timed) -> None:
    timed.tick("2026-06-01T12:00:01")
    assert timed.slots("off") == []
    assert timed.overview("off")["next_slot"] is None


def test_another_line_begins_anew_and_catches_up_nothing(
    timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_ = timed.known("all_at_once")
    daily = changed(all_, every=None, cron="0 15 * * *")
    timed.only(monkeypatch, daily)
    timed.tick("2026-06-01T12:00:01", starts=True)
    timed.only(monkeypatch, changed(all_, every=5.0))
    timed.tick("2026-06-01T14:59:59.500", starts=True)
    assert timed.slots("all_at_once") == []
    timed.tick("2026-06-01T15:00:10.100")
    assert len(timed.slots("all_at_once")) == 3


def test_side_by_side_the_version_that_started_last_has_its_way(
    timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = timed.known("skips")
    new_ = changed(old, every=None, cron="30 12 * * *")
    timed.only(monkeypatch, new_)
    timed.tick("2026-06-01T11:59:50", starts=True)
    timed.only(monkeypatch, old)  # a worker of before, still there
    for minute in (1, 2, 3):
        timed.tick(f"2026-06-01T12:0{minute}:01")
    assert timed.slots("skips") == []
    # The new version is withdrawn: its line is nobody's any more.
    timed.tick("2026-06-01T12:31:05")
    timed.tick("2026-06-01T12:32:01")
    assert timed.slots("skips") == ["2026-06-01 12:32:00"]


def test_one_that_was_removed_begins_anew_when_it_comes_back(
    timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_ = timed.known("all_at_once")
    timed.tick("2026-06-01T12:00:01")
    timed.only(monkeypatch)
    timed.tick("2026-06-01T12:01:30")  # perhaps one of before will still come
    assert not timed.row_of("all_at_once")["resting"]
    timed.tick("2026-06-01T12:02:05")
    assert timed.row_of("all_at_once")["resting"]
    timed.only(monkeypatch, all_)
    timed.tick("2026-06-02T08:00:30", starts=True)
    assert timed.slots("all_at_once") == ["2026-06-01 12:00:00"]
    timed.tick("2026-06-02T08:01:01")
    assert timed.slots("all_at_once")[1:] == ["2026-06-02 08:01:00"]


def test_a_renamed_one_is_a_new_one(
    timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed.tick("2026-06-01T12:00:01")
    timed.only(monkeypatch, changed(timed.known("catches_all"), name="renamed"))
    timed.tick("2026-06-01T22:00:30", starts=True)
    assert timed.slots("renamed") == []
    timed.tick("2026-06-01T22:01:01")
    assert timed.slots("renamed") == ["2026-06-01 22:01:00"]


def test_a_clock_that_was_wrong_for_a_while_stops_nothing(timed: Timed) -> None:
    """The database's clock was a year ahead: when it is right again, slots go on, and
    none that ran before runs again."""
    timed.tick("2026-06-01T12:00:01")
    timed.end("skips")
    timed.tick("2027-06-01T12:00:01")
    timed.end("skips")
    timed.tick("2026-06-01T12:00:02")
    timed.tick("2026-06-01T12:01:01")
    assert timed.slots("skips") == [
        *("2026-06-01 12:00:00", "2026-06-01 12:01:00", "2027-06-01 12:00:00")
    ]


# --- daylight saving --------------------------------------------------------------

# line, zone -> what runs over the days of the change, in UTC.
CHANGES = {
    ("2011-12-30T07:45", "2011-12-30T20:10", "Pacific/Apia"): {
        "30 2 * * *": ["30 10:00", "30 12:30"],
        "0 9 * * *": ["30 10:00", "30 19:00"],
        "0 * * * *": 13,
    },
    ("2026-03-08T04:45", "2026-03-08T13:10", "America/New_York"): {
        "30 2 * * *": ["08 07:00"],
        "0 9 * * *": ["08 13:00"],
        "0 * * * *": 9,
    },
    ("2026-03-28T22:45", "2026-03-29T07:10", "Europe/Paris"): {
        "30 2 * * *": ["29 01:00"],
        "0 9 * * *": ["29 07:00"],
        "0 * * * *": 9,
    },
    ("2026-04-04T12:45", "2026-04-04T22:40", "Australia/Lord_Howe"): {
        "45 1 * * *": ["04 14:45"],
        "0 9 * * *": ["04 22:30"],
        "0 * * * *": 11,
    },
    ("2026-10-03T13:15", "2026-10-03T22:10", "Australia/Lord_Howe"): {
        "15 2 * * *": ["03 15:30"],
        "0 9 * * *": ["03 22:00"],
        "0 * * * *": 10,
    },
    ("2026-10-24T21:45", "2026-10-25T08:10", "Europe/Paris"): {
        "30 2 * * *": ["25 00:30"],
        "0 9 * * *": ["25 08:00"],
        "0 * * * *": 11,
    },
    ("2026-11-01T03:45", "2026-11-01T14:10", "America/New_York"): {
        "30 1 * * *": ["01 05:30"],
        "0 9 * * *": ["01 14:00"],
        "0 * * * *": 11,
    },
}


def table() -> Iterator[tuple[str, str, str]]:
    """Name, line and zone of every schedule of the table."""
    lines = {(line, zone) for (_, _, zone), of in CHANGES.items() for line in of}
    for number, (line, zone) in enumerate(sorted(lines)):
        yield f"s{number}", line, zone


@faults.on("sqlite")
def test_both_changes_of_the_clock_in_each_zone(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> None:
    """The record's clock goes through each change by quarters of an hour."""
    spec = (
        faults.QUICK
        + faults.JOBS
        + "".join(
            f'[schedules.{name}]\n{WORK}cron = "{line}"\ntimezone = "{zone}"\n'
            'overlap = "allow"\n'
            for name, line, zone in table()
        )
    )
    engine = made(dialect, database_url, redis_server, tmp_path / "run", spec)
    for (begins, ends, zone), expected in CHANGES.items():
        here = [name for name, _, its_zone in table() if its_zone == zone]
        known = tuple(map(engine.known, here))
        with pytest.MonkeyPatch.context() as patch:
            engine.only(patch, *known)
            at = stamp(begins)
            while at <= stamp(ends):
                engine.tick(at + 0.5)
                at += 900  # no slot of the table is at another minute
        for name, line, its_zone in table():
            if its_zone != zone or line not in expected:
                continue
            found = [
                slot[8:16]
                for slot in engine.slots(name)
                if begins < slot.replace(" ", "T") <= ends
            ]
            wanted = expected[line]
            assert (found if isinstance(wanted, list) else len(found)) == wanted, (
                line,
                zone,
            )
    engine.close()


# --- the commands -----------------------------------------------------------------


def test_recover_inserts_what_is_due(timed: Timed) -> None:
    timed.clock.at("2026-06-01T12:00:05")
    assert timed.package.json("recover")["slots"] == 6
    assert timed.slots("skips") == ["2026-06-01 12:00:00"]


def test_status_shows_each_schedule(timed: Timed) -> None:
    timed.clock.at("2026-06-01T12:00:05")
    found = timed.package.json("status")["schedules"]
    assert sorted(found) == sorted(s.name for s in timed.schedules.SCHEDULES)
    assert found["unique"] == {
        "job": "alone",
        "line": "0 12 * * * UTC",
        "enabled": True,
        "last_slot": None,
        "last_run": None,
        "last_state": None,
        "next_slot": "2026-06-02T12:00:00.000Z",
        "owed": 0,
        "skipped": 0,
        "skipped_in_a_row": 0,
    }
    assert "catches_all" in timed.package.run("status").stdout
    assert json.dumps(found)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_deployment_overrides_when_it_runs(dialect: str, tmp_path: Path) -> None:
    """A line, a distance and the switch, each by its variable."""
    spec = faults.QUICK + faults.JOBS + f"""
[schedules.nightly]
{WORK}cron = "0 3 * * *"
[schedules.often]
{WORK}every = "1m"
[env]
TESTED_CRON = "schedules.nightly.cron"
TESTED_EVERY = "schedules.often.every"
TESTED_ON = "schedules.often.enabled"
"""
    package = faults.build(dialect, spec).at("sqlite:///x.db", "", tmp_path)
    asked = "import sys; from importlib import import_module as i;"
    asked += " print([(s.cron, s.every, s.enabled) for s in"
    asked += " i(sys.argv[1] + '.registry').SCHEDULES])"
    env = {"TESTED_CRON": "5 4 * * *", "TESTED_EVERY": "90s", "TESTED_ON": "false"}
    with package.start("-c", asked, package.name, env=env) as process:
        assert process.exit_code() == 0
        told = process.log().strip()
    assert told == "[('5 4 * * *', None, True), (None, 90.0, False)]"


def test_a_tick_does_not_read_the_runs_of_years(timed: Timed) -> None:
    """Each question about a schedule's runs is served by an index of its own."""
    lite = timed.package.dialect == "sqlite"
    numbers = "generate_series(1, 20000) AS n"
    id_, payload, slot = "gen_random_uuid()", "'{}'::jsonb", "to_timestamp(n)"
    if lite:
        numbers = "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c"
        numbers += " WHERE n < 20000) SELECT n FROM c)"
        id_, payload, slot = "hex(randomblob(16))", "'{}'", "n * 1000"
    timed.package.sql(
        "INSERT INTO jobs (id, job, queue, priority, sort_at, state, payload,"
        " payload_version, tries, run_at, created_at, finished_at, schedule, slot)"
        f" SELECT {id_}, 'work', 'default', 'normal', {slot}, 'completed', {payload},"
        f" 1, 3, {slot}, {slot}, {slot}, 'skips', {slot} FROM {numbers}"
    )
    timed.package.sql("ANALYZE jobs")
    statements = timed.part("schedule_statements")
    explain = "EXPLAIN QUERY PLAN" if lite else "EXPLAIN"
    for sql, index in (
        (statements.SCHEDULE_READ, "jobs_scheduled"),
        (statements.SCHEDULES_SHOWN, "jobs_slot"),
    ):
        text = sql.replace(":name", "'skips'").replace("%(name)s", "'skips'")
        plan = str(timed.package.sql(f"{explain} {text}"))
        assert index in plan, plan
        assert "Seq Scan on jobs t" not in plan and "SCAN t" not in plan, plan
