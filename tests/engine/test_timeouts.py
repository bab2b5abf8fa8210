"""Handlers that block, that ignore their deadline, or that never return."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, Supervisor, until

STALL = 4.0
JOB = """
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""
SPEC = (
    faults.QUICK
    + faults.JOBS
    + "".join(
        f"""
[jobs.{name}]
timeout = "2s"
tries = {tries}
handler = "tested_handlers:{handler}"
[jobs.{name}.payload]{JOB}"""
        for name, tries, handler in [
            ("once", 1, "work"),
            ("twice", 2, "work"),
            ("plain_once", 1, "plain"),
            ("plain_twice", 2, "plain"),
        ]
    )
)


@pytest.fixture
def package(make: Make) -> Package:
    return make(SPEC)


@faults.on("postgresql")
def test_a_blocked_event_loop_is_not_a_stall(package: Package) -> None:
    """`time.sleep` in an async handler for three times `stall.after`: it runs once.

    Beats come from a thread of their own; a second worker watches.  C014, C015, C016.
    """
    api = package.api
    with package.worker() as one, package.worker() as two:
        package.ready(one, two)
        id_ = api.enqueue(api.Work(n=1, mode="block", seconds=3 * STALL)).id
        until(lambda: package.ledger.starts(1), "its start")
        row = package.in_state(id_, "completed")
        assert row["attempt"] == 1
        assert one.running and two.running
    assert len(package.ledger.starts(1)) == 1
    assert package.attempts(id_) == []


@faults.on("sqlite")
def test_a_busy_interpreter_is_not_a_stall(make: Make) -> None:
    """A long pure-Python loop holds the interpreter lock: the job runs once.  C015."""
    handlers = faults.HANDLERS + """

def spin(job, payload):
    note("start", job, payload.n)
    until = time.monotonic() + payload.seconds
    while time.monotonic() < until:
        sum(range(1000))
    note("end", job, payload.n)
"""
    package = make(faults.QUICK + f"[jobs.spin.payload]{JOB}" + faults.JOBS, handlers)
    api = package.api
    with package.worker() as one, package.worker() as two:
        package.ready(one, two)
        ids = [api.enqueue(api.Spin(n=n, seconds=2 * STALL)).id for n in range(2)]
        for id_ in ids:
            assert package.in_state(id_, "completed")["attempt"] == 1
    assert len(package.ledger.starts()) == 2


def test_an_async_handler_past_its_timeout(package: Package) -> None:
    """With tries 1 it is failed `timed_out`; with 2 a second attempt runs.

    The worker lives, and a neighbour is unharmed.
    """
    api = package.api
    with package.worker() as worker:
        neighbour = api.enqueue(api.Work(n=3, seconds=6)).id
        once = api.enqueue(api.Once(n=1, seconds=3600)).id
        twice = api.enqueue(api.Twice(n=2, seconds=3600)).id
        assert package.in_state(once, "failed")["reason"] == "timed_out"
        row = package.in_state(twice, "failed")
        assert (row["reason"], row["attempt"]) == ("timed_out", 2)
        assert package.in_state(neighbour, "completed")["attempt"] == 1
        assert worker.running
    assert [a["outcome"] for a in package.attempts(twice)] == ["timed_out"] * 2
    assert len(package.ledger.starts(1)) == 1
    assert len(package.ledger.starts(2)) == 2
    assert len(package.ledger.lines("stopped")) == 3


@faults.on("postgresql")
def test_a_blocked_handler_past_its_timeout(package: Package, tmp_path: Path) -> None:
    """The watchdog ends what a cancellation cannot: tries 1 failed, 2 a second attempt.

    Its process goes too, with an error; the neighbours in it are recovered and complete
    without using an attempt.  C091.
    """
    api = package.api
    gate = tmp_path / "gate"
    with Supervisor(package, 1) as supervisor:
        first = supervisor.workers[0]
        neighbour = api.enqueue(api.Work(n=3, mode=f"gate:{gate}")).id
        until(lambda: package.ledger.starts(3), "its start")
        once = api.enqueue(api.Once(n=1, mode="block", seconds=3600)).id
        assert package.in_state(once, "failed")["reason"] == "timed_out"
        assert first.exit_code() == 1, first.log()
        until(lambda: len(package.ledger.starts(3)) == 2, "its second run")
        twice = api.enqueue(api.Twice(n=2, mode="block", seconds=3600)).id
        row = package.in_state(twice, "failed", patience=90)
        assert (row["reason"], row["attempt"]) == ("timed_out", 2)
        gate.touch()
        row = package.in_state(neighbour, "completed")
        assert row["attempt"] - row["releases"] == 1, package.attempts(neighbour)
    assert len(package.ledger.starts(1)) == 1
    assert len(package.ledger.starts(2)) == 2


@faults.on("sqlite")
def test_a_plain_handler_that_never_returns(package: Package, tmp_path: Path) -> None:
    """A thread cannot be stopped: the watchdog ends the attempt, then the process.

    A plain neighbour that ends within the grace is unharmed.  C091.
    """
    api = package.api
    gate = tmp_path / "gate"
    with package.worker() as first:
        neighbour = api.enqueue(api.Plain(n=3, mode=f"gate:{gate}")).id
        until(lambda: package.ledger.starts(3), "its start")
        once = api.enqueue(api.PlainOnce(n=1, seconds=3600)).id
        assert package.in_state(once, "failed")["reason"] == "timed_out"
        gate.touch()
        assert first.exit_code() == 1, first.log()
        assert package.row(neighbour)["state"] == "completed"
    with Supervisor(package, 1):
        twice = api.enqueue(api.PlainTwice(n=2, seconds=3600)).id
        row = package.in_state(twice, "failed", patience=90)
        assert (row["reason"], row["attempt"]) == ("timed_out", 2)
    assert len(package.ledger.starts(1)) == 1
    assert len(package.ledger.starts(2)) == 2
    assert len(package.ledger.starts(3)) == 1


@faults.on("postgresql")
def test_a_plain_handler_that_listens(package: Package) -> None:
    """`job.cancelled` tells a plain handler of its deadline; the process lives on."""
    api = package.api
    with package.worker() as worker:
        id_ = api.enqueue(api.PlainOnce(n=1, mode="polite", seconds=3600)).id
        assert package.in_state(id_, "failed")["reason"] == "timed_out"
        until(lambda: package.ledger.lines("stopped", 1), "its own stop")
        last = api.enqueue(api.Work(n=2)).id
        package.in_state(last, "completed")
        assert worker.running, worker.log()


@faults.on("sqlite")
def test_a_stubborn_handler(package: Package) -> None:
    """One that swallows its cancellation and goes on is ended by the watchdog."""
    api = package.api
    with package.worker() as worker:
        id_ = api.enqueue(api.Once(n=1, mode="stubborn", seconds=3600)).id
        assert package.in_state(id_, "failed")["reason"] == "timed_out"
        assert worker.exit_code() == 1, worker.log()


@faults.on("postgresql")
def test_a_frozen_process_and_its_deadline(package: Package) -> None:
    """Deadline + 15 s + sweep: the record ends the attempt of a process that beats on.

    Here the process's watchdog is gone with its threads: it is frozen, and its beat is
    kept alive by hand, as if only the beat had survived.
    """
    api = package.api
    with package.worker() as stuck:
        package.ready(stuck)
        id_ = api.enqueue(api.Once(n=1, seconds=3600)).id
        until(lambda: package.ledger.starts(1), "its start")
        stuck.freeze()
        now = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
        if package.dialect == "postgresql":
            now = "now()"
        beat = f"UPDATE jobs_boots SET last_seen = {now} WHERE pid = {stuck.pid}"
        with package.worker() as other:
            package.ready(other)

            def ended() -> bool:
                package.sql(beat)
                time.sleep(0.3)
                return bool(package.row(id_)["state"] == "failed")

            until(ended, other.log)
            (boot,) = [b for b in package.boots() if b["pid"] == stuck.pid]
            assert boot["dead_at"] is None, "a living boot was declared dead"
    assert package.row(id_)["reason"] == "timed_out"
    assert len(package.ledger.starts(1)) == 1
