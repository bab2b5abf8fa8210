"""A worker process without its loop: its watchdog and its end, step by step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from engine.faults import until
from engine.units import Engine


class Worker:
    """A process that has started its boot and its ledger; it cannot leave the test."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.codes: list[int] = []
        (worker,) = engine.part("registry").WORKERS
        self.service = engine.part("service").Service()
        self.process = engine.part("process").Process(
            worker,
            "arq",
            lambda calls: [call() for call in calls],
            self.service.dispatcher,
        )
        self.process._exit = self.codes.append
        self.process.runner._ledger = self.process.ledger
        self.process.beat.start(worker, "arq")
        self.process.ledger.start()
        self.service.dispatcher.start(("default",), rounds=False)
        self.service._sweeps.start()

    def attempt(self, payload: Any) -> Any:
        """A row that this process has claimed and whose handler does nothing."""
        claim = self.engine.claimed(self.process.beat.boot, payload)
        self.process.runner.register(claim)
        return self.process.runner.attempts[claim.id]


@pytest.fixture
def worker(engine: Engine) -> Iterator[Worker]:
    made = Worker(engine)
    yield made
    made.service.stop_sweeping()
    made.process.close()


@pytest.fixture(params=["sqlite"])
def dialect(request: pytest.FixtureRequest) -> str:
    """Nothing here knows the database."""
    return str(request.param)


def test_the_watchdog_ends_what_does_not_stop(worker: Worker) -> None:
    """Five seconds past its deadline: the attempt is over, and the process must go."""
    attempt = worker.attempt(worker.engine.api.Brief(n=1))
    worker.process._tick(attempt.deadline + 4.9)
    assert not attempt.over
    assert worker.process.phase == "running"
    worker.process._tick(attempt.deadline + 5.1)
    assert attempt.over
    row = worker.engine.package.in_state(attempt.claim.id, "queued")
    assert row["reason"] == "retry"
    (tried,) = worker.engine.package.attempts(attempt.claim.id)
    assert tried["outcome"] == "timed_out"
    assert worker.process.phase != "running"
    assert worker.process.exit_code == 1


def test_a_cancelled_job_that_does_not_stop(worker: Worker) -> None:
    """It gets the grace, then it is cancelled without its consent."""
    attempt = worker.attempt(worker.engine.api.Work(n=1))
    worker.process._cancel(attempt.claim.id, attempt.claim.fence)
    worker.process._tick(attempt.cancel_seen_at + 1.9)
    assert not attempt.over
    worker.process._tick(attempt.cancel_seen_at + 2.1)
    worker.engine.package.in_state(attempt.claim.id, "cancelled")
    assert worker.process.exit_code == 1


def lives(engine: Engine, boot: str) -> bool:
    rows = engine.package.sql("SELECT dead_at FROM jobs_boots WHERE id = ?", boot)
    return [row["dead_at"] for row in rows] == [None]


def test_the_boot_ends_after_the_last_write(worker: Worker) -> None:
    """While endings may still come it lives, so nobody recovers its rows meanwhile."""
    process, engine = worker.process, worker.engine
    attempt = worker.attempt(engine.api.Work(n=1))
    alive: list[bool] = []
    write = process.ledger._finisher.write

    def written(finishes: Any, repeated: bool = False) -> None:
        time.sleep(0.3)  # whoever would end the boot now has the time for it
        alive.append(lives(engine, process.beat.boot))
        write(finishes, repeated)

    process.ledger._finisher.write = written
    process.close()
    assert alive == [True]
    assert not lives(engine, process.beat.boot)
    row = engine.row(attempt.claim.id)
    assert (row["state"], row["reason"], row["releases"]) == ("queued", "released", 1)


def test_the_second_signal_releases_at_once(worker: Worker) -> None:
    """The first one drains for the grace; jobs that run are let alone meanwhile."""
    attempt = worker.attempt(worker.engine.api.Work(n=1))
    now = time.monotonic()
    worker.process._signalled(15, None)
    worker.process._tick(now + 0.5)
    assert (worker.process.phase, attempt.stopping) == ("draining", None)
    worker.process._signalled(15, None)
    worker.process._tick(now + 0.6)
    assert (worker.process.phase, attempt.stopping) == ("releasing", "release")


def test_a_stray_of_this_process_is_released(worker: Worker) -> None:
    """Active for this boot, and nobody here runs it: no attempt is used."""
    engine, process = worker.engine, worker.process
    claim = engine.claimed(process.beat.boot)
    until(lambda: engine.row(claim.id)["state"] == "queued", "its release")
    row = engine.row(claim.id)
    assert (row["reason"], row["releases"], row["attempt"]) == ("released", 1, 1)
