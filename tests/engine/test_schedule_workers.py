"""Schedules in real workers: one run per slot, whoever inserts it, and whoever dies."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, Worker, seconds, until

PERIOD: Final = 2.0 if faults.LONG else 1.0
SLOTS: Final = 30 if faults.LONG else 6
FAULTS: Final = 5 if faults.LONG else 1
SPEC: Final = faults.QUICK + faults.JOBS + f"""
[schedules.often]
job = "plain"
every = "{PERIOD:.0f}s"
overlap = "allow"
payload = {{ n = 1 }}
"""
# The clock of one process, as wrong as SHIFT says.
SHIFTED: Final = """
import os, time

shift = float(os.environ.get("QGEN_TEST_SHIFT", "0"))
seconds, nanoseconds = time.time, time.time_ns
time.time = lambda: seconds() + shift
time.time_ns = lambda: nanoseconds() + round(shift * 1e9)
"""
INSERTED: Final = re.compile(r"schedule often: slot (\S+) has its job")


def slots(package: Package) -> list[float]:
    """The slots that have a job, in seconds since the epoch."""
    rows = package.sql("SELECT slot FROM jobs WHERE schedule = 'often' ORDER BY slot")
    return [seconds(row["slot"]) for row in rows]


def each_once(package: Package) -> None:
    """No slot of the whole time is missing or has two runs."""
    found = slots(package)
    steps = {round(b - a, 3) for a, b in itertools.pairwise(found)}
    assert steps == {PERIOD}, found


def crew(package: Package, folder: Path, stack: ExitStack) -> Iterator[Worker]:
    """Workers whose clocks are five seconds apart."""
    (folder / "sitecustomize.py").write_text(SHIFTED, "utf-8")
    for shift in (0, 5, -5):
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
            until(lambda lost=lost: len(slots(package)) >= lost + 3, "more slots")
            worker.thaw()  # it goes on, or ends because it was declared dead
        each_once(package)


def inserter(workers: list[Worker]) -> Worker:
    """Who says that it inserted the newest slot."""

    def newest(worker: Worker) -> Any:
        return max(INSERTED.findall(worker.log()), default="")

    return max((each for each in workers if each.running), key=newest)
