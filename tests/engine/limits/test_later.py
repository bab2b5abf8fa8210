"""Rows for later cost nothing: neither those that are due, nor the worker, nor Redis.

The short run has a few thousand of them; QGEN_LONG=1 has a hundred thousand.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from engine import faults
from engine.faults import Worker, seconds, until
from engine.units import Engine

Make = Callable[..., faults.Package]

LATER = 100_000 if faults.LONG else 3_000
DUE = 100
ROUNDS = 20 if faults.LONG else 6
HOURS = [1.0, 0.15] if faults.LONG else [1.0]


@contextlib.contextmanager
def opened(package: faults.Package) -> Iterator[Any]:
    """A connection of the caller's own, in one transaction."""
    if package.dialect == "postgresql":
        with psycopg.connect(package.database_url) as server:
            yield server
        return
    import sqlite3

    path = package.database_url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        yield file


@dataclass(frozen=True)
class Figures:
    """What a hundred due rows took, and what was there when they were done."""

    wait: float  # seconds from the first row's insert to the last one's start
    claim: float  # seconds one dispatch and claim of ten rows take, at best
    memory: int  # bytes of the worker's processes
    redis: int  # bytes


def measured(package: faults.Package) -> Figures:
    """A hundred rows through a worker that has just started."""
    engine = Engine(package)
    claim = claiming(engine)
    with package.worker() as worker:
        package.ready(worker)
        ids = [
            one.id
            for one in engine.api.enqueue_many(
                [engine.api.Work(n=n) for n in range(DUE)]
            )
        ]
        done = f"state = 'completed' AND id >= '{min(ids)}'"
        until(lambda: len(package.rows(done)) == DUE, worker.log)
        used = int(engine.redis.info("memory")["used_memory"])
        memory = resident(worker)
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
    rows = package.rows(done)
    created = min(seconds(row["created_at"]) for row in rows)
    started = max(seconds(row["started_at"]) for row in rows)
    engine.close()
    return Figures(started - created, claim, memory, used)


def claiming(engine: Engine) -> float:
    """The best of several rounds: what a busy machine adds is not the statements'."""
    boot, times = engine.boot(slots=20), []
    for _ in range(ROUNDS):
        for _ in range(10):
            engine.put()
        begun = time.perf_counter()
        messages = engine.dispatch()
        claims = engine.claims(*messages, boot=boot).admitted.values()
        times.append(time.perf_counter() - begun)
        assert len(claims) == 10
        engine.finish(
            *(engine.outcomes.completed(engine.held(c, boot), None) for c in claims)
        )
    engine.package.sql("DELETE FROM jobs_boots")
    return min(times)


def resident(worker: Worker) -> int:
    """Bytes of memory of a worker and of what it has started."""
    pids = ",".join(map(str, worker.family()))
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", pids], capture_output=True, text=True, check=True
    )
    return 1024 * sum(map(int, told.stdout.split()))


@faults.on("postgresql")
@pytest.mark.parametrize("hours", HOURS)
def test_rows_for_later_cost_nothing(make: Make, hours: float) -> None:
    """A hundred due rows run as if the others were not there.

    Also some minutes before their time, when by their bonus these come first.
    """
    package = make()
    before = measured(package)
    api = package.api
    for first in range(0, LATER, 5000):
        with opened(package) as connection:
            for n in range(first, min(first + 5000, LATER)):
                api.enqueue(api.Work(n=n), delay=3600 * hours, connection=connection)
    after = measured(package)
    print(f"with none {before}\nwith {LATER} {after}")
    assert package.states()["queued"] == LATER
    assert after.wait < 2 * before.wait + 1
    assert after.claim < 2 * before.claim + 0.002
    assert after.memory < 1.1 * before.memory
    assert after.redis < before.redis + 256 * 1024
