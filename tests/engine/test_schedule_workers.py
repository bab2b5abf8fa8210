"""Schedules in real workers: one run per slot, whoever inserts it, and whoever dies."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from engine import clock, faults
from engine.clock import Clock
from engine.conftest import Make
from engine.faults import Package, Worker, seconds, until

import servers

PERIOD: Final = 2.0 if faults.LONG else 1.0
SLOTS: Final = 30 if faults.LONG else 6
STALL: Final = 4.0  # `stall.after` of this spec
FAULTS: Final = 5 if faults.LONG else 1
SPEC: Final = faults.QUICK + faults.JOBS + f"""
[schedules.often]
job = "plain"
every = "{PERIOD:.0f}s"
overlap = "allow"
payload = {{ n = 1 }}
"""
STEP: Final = 0.35  # seconds between the rounds of one worker and those of the next
# Slots of each minute, and what each schedule does with those that it missed.
MISSED: Final = {
    "skips": 'missed = "skip"',
    "catches_one": 'missed = "one"',
    "catches_all": 'missed = "all"\nmax_missed = 5',
    "spreads": 'missed = "all"\nmax_missed = 5\noverlap = "allow"',
}
MINUTELY: Final = faults.QUICK + faults.JOBS + "".join(f"""
[schedules.{name}]
job = "plain"
every = "1m"
{rule}
payload = {{ n = {n} }}
""" for n, (name, rule) in enumerate(MISSED.items()))
# The clock of one process, as wrong as SHIFT says.
SHIFTED: Final = """
import os, time

shift = float(os.environ.get("QGEN_TEST_SHIFT", "0"))
seconds, nanoseconds = time.time, time.time_ns
time.time = lambda: seconds() + shift
time.time_ns = lambda: nanoseconds() + round(shift * 1e9)
"""
INSERTED: Final = re.compile(r"schedule often: slot (\S+) has its job")


def slots(package: Package, schedule: str = "often") -> list[float]:
    """The slots that have a job, in seconds since the epoch."""
    rows = package.rows(f"schedule = '{schedule}'")
    return sorted(seconds(row["slot"]) for row in rows)


def each_once(package: Package) -> None:
    """No slot of the whole time is missing or has two runs."""
    found = slots(package)
    steps = {round(b - a, 3) for a, b in itertools.pairwise(found)}
    assert steps == {PERIOD}, found


def crew(package: Package, folder: Path, stack: ExitStack) -> Iterator[Worker]:
    """Workers whose clocks are five seconds apart, and whose rounds come in turn."""
    (folder / "sitecustomize.py").write_text(SHIFTED, "utf-8")
    for shift in (0, 5, -5):
        time.sleep(STEP)
        path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))
        env = {"PYTHONPATH": path, "QGEN_TEST_SHIFT": str(shift)}
        yield stack.enter_context(package.worker(env=env))


@faults.on("postgresql")
def test_three_workers_with_their_clocks_apart(make: Make, tmp_path: Path) -> None:
    package = make(SPEC)
    with ExitStack() as stack:
        workers = list(crew(package, tmp_path, stack))
        package.ready(*workers)
        until(lambda: len(slots(package)) >= SLOTS, "the slots", SLOTS * PERIOD + 60)
        each_once(package)
        ids = [str(row["id"]) for row in package.rows("schedule = 'often'")[:SLOTS]]
        until(lambda: {run.id for run in package.ledger.ends()}.issuperset(ids), "runs")
    starts = [run.id for run in package.ledger.starts()]
    assert len(starts) == len(set(starts))


@faults.on("postgresql")
@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_whoever_inserted_the_last_slot_is_lost(make: Make, fault: str) -> None:
    """And the next slots have each their one job."""
    package = make(SPEC)
    with ExitStack() as stack:
        workers = [stack.enter_context(package.worker()) for _ in range(3)]
        package.ready(*workers)
        for _ in range(FAULTS):
            before = len(slots(package))
            until(lambda before=before: len(slots(package)) > before, "a slot")
            worker = inserter(workers)
            if fault == "kill":
                worker.kill()
            else:
                worker.freeze()
            workers.remove(worker)
            workers.append(stack.enter_context(package.worker()))
            lost = len(slots(package))
            if fault == "freeze" and package.dialect == "sqlite":
                # Frozen inside a write it stops all writers, which is a stated limit.
                time.sleep(STALL + 1)
                worker.thaw()
            until(lambda lost=lost: len(slots(package)) >= lost + 3, "more slots")
            worker.thaw()  # it goes on, or ends because it was declared dead
        each_once(package)
        done = [str(row["id"]) for row in package.rows("schedule = 'often'")]
        until(
            lambda: {run.id for run in package.ledger.ends()}.issuperset(done), "runs"
        )


def inserter(workers: list[Worker]) -> Worker:
    """Who says that it inserted the newest slot."""

    def newest(worker: Worker) -> Any:
        return max(INSERTED.findall(worker.log()), default="")

    return max((each for each in workers if each.running), key=newest)


@faults.on("postgresql")
def test_three_workers_after_ten_hours_without_any(
    dialect: str,
    database_url: str,
    own_redis: servers.Redis,
    tmp_path: Path,
    clean_environment: None,
) -> None:
    """They come back all at once: what was missed is as each schedule says, once.

    The record's clock is moved; `test_schedules.py` has every rule by itself.
    """
    tree = clock.build(dialect, MINUTELY)
    package = tree.at(database_url, own_redis.url, tmp_path / "run")
    moved = Clock(package)
    moved.at("2026-06-01T11:59:00.5")
    package.migrate()
    with package.worker() as worker:
        begun = "SELECT name FROM jobs_schedules"
        until(lambda: len(package.sql(begun)) == len(MISSED), worker.log)
        moved.at("2026-06-01T11:59:59")
        until(lambda: package.states()["completed"] == len(MISSED), worker.log)
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
    moved.at("2026-06-01T22:00:02")
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(package.worker())
        wanted = {
            "skips": ["22:00"],
            "catches_one": ["21:59"],
            "catches_all": ["21:55", "21:56", "21:57", "21:58", "21:59"],
            "spreads": ["21:55", "21:56", "21:57", "21:58", "21:59", "22:00"],
        }
        many = len(MISSED) + sum(map(len, wanted.values()))
        until(
            lambda: package.states()["completed"] == many, lambda: str(caught(package))
        )
        assert caught(package) == wanted
    skipped = package.sql("SELECT name, skipped FROM jobs_schedules")
    assert {row["name"]: row["skipped"] for row in skipped} == {
        "skips": 599,
        "catches_one": 599,
        "catches_all": 595,
        "spreads": 594,
    }
    rows = package.rows("schedule = 'spreads'")[1:]
    due = sorted(seconds(row["run_at"]) for row in rows)[1:]
    assert all(0.9 < b - a < 1.1 for a, b in itertools.pairwise(due)), due
    assert all(row["started_at"] >= row["run_at"] for row in rows)
    starts = [run.id for run in package.ledger.starts()]
    assert len(starts) == len(set(starts)) == many


def caught(package: Package) -> dict[str, list[str]]:
    """The slots after the first, by schedule."""

    def shown(slot: float) -> str:
        return time.strftime("%H:%M", time.gmtime(slot))

    return {name: [shown(slot) for slot in slots(package, name)[1:]] for name in MISSED}
