"""SIGTERM, cancel and timeout: three ends that are told apart."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, until

# Grace 3 s: a job that waits for its gate ends within it, or not at all.
SPEC = faults.QUICK.replace('grace = "2s"', 'grace = "3s"') + faults.JOBS + """
[jobs.brief]
timeout = "1s"
tries = 1
handler = "tested_handlers:work"
[jobs.brief.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""
SHORT, LONG = 1, 2


@pytest.fixture
def package(make: Make) -> Package:
    return make(SPEC)


def two_jobs(package: Package, gate: Path) -> tuple[str, str]:
    """A job that ends when its gate opens, and one that would run for an hour."""
    api = package.api
    short = api.enqueue(api.Work(n=SHORT, mode=f"gate:{gate}")).id
    long = api.enqueue(api.Work(n=LONG, seconds=3600)).id
    return short, long


def both_run(package: Package) -> None:
    until(
        lambda: package.ledger.starts(SHORT) and package.ledger.starts(LONG),
        "the start of both jobs",
    )


@pytest.mark.parametrize("how", ["process", "group"])
def test_sigterm(package: Package, tmp_path: Path, how: str) -> None:
    """The short job finishes within the grace, the long one is released.

    Released uses no attempt; another worker takes it.  The process ends with 0.
    """
    gate = tmp_path / "gate"
    with package.worker() as worker:
        short, long = two_jobs(package, gate)
        both_run(package)
        if how == "group":
            worker.send_group(signal.SIGTERM)
        else:
            worker.terminate()
        until(lambda: "draining" in worker.log(), worker.log)
        gate.touch()
        package.in_state(short, "completed")
        assert worker.running, "the long job had its grace still before it"
        assert worker.exit_code() == 0, worker.log()
    row = package.row(long)
    assert (row["state"], row["reason"], row["releases"]) == ("queued", "released", 1)
    assert [a["outcome"] for a in package.attempts(long)] == ["released"]
    assert len(package.ledger.lines("stopped", LONG)) == 1
    (boot,) = package.boots()
    assert boot["dead_at"] is not None, "it did not say goodbye"
    with package.worker():
        until(lambda: len(package.ledger.starts(LONG)) == 2, "its second run")
        row = package.in_state(long, "active")
        assert row["attempt"] - row["releases"] == 1, "an attempt was used"
    assert len(package.ledger.starts(SHORT)) == 1


@faults.on("sqlite")
def test_a_second_sigterm_releases_at_once(package: Package, tmp_path: Path) -> None:
    """Nobody waits for the grace: both jobs are released and the process ends with 0."""
    package = long_grace(package, tmp_path)
    with package.worker() as worker:
        ids = two_jobs(package, tmp_path / "never")
        both_run(package)
        worker.terminate()
        until(lambda: "draining" in worker.log(), worker.log)
        assert package.states() == {"active": 2}
        worker.terminate()
        assert worker.exit_code(30) == 0, worker.log()
    for id_ in ids:
        row = package.row(id_)
        assert (row["state"], row["reason"]) == ("queued", "released")
        assert row["attempt"] == row["releases"] == 1


def long_grace(package: Package, folder: Path) -> Package:
    """The same package with a grace that no test waits for."""
    spec = SPEC.replace('grace = "3s"', 'grace = "10m"')
    tree = faults.build(package.dialect, spec)
    return tree.at(package.database_url, package.redis_url, folder / "long-grace")


@faults.on("sqlite")
def test_sigint_is_the_same(package: Package) -> None:
    """Ctrl-C drains like SIGTERM; an idle worker ends with 0."""
    with package.worker() as worker:
        package.ready(worker)
        worker.send(signal.SIGINT)
        assert worker.exit_code() == 0, worker.log()


@faults.on("postgresql")
def test_a_draining_worker_takes_nothing(package: Package, tmp_path: Path) -> None:
    """What is enqueued during the drain waits, published or not, and is not lost."""
    api = package.api
    with package.worker() as worker:
        two_jobs(package, tmp_path / "never")
        both_run(package)
        worker.terminate()
        until(lambda: "draining" in worker.log(), worker.log)
        late = api.enqueue_many([api.Work(n=n) for n in range(10, 20)])
        assert worker.exit_code() == 0, worker.log()
    assert {package.row(one.id)["attempt"] for one in late} == {0}
    with package.worker():
        for one in late:
            package.in_state(one.id, "completed")


@faults.on("sqlite")
def test_handlers_that_do_not_stop(package: Package) -> None:
    """A handler that swallows its cancellation, and a plain one that sleeps on.

    Both are released, the process ends by itself, and no attempt is used.
    """
    api = package.api
    with package.worker() as worker:
        ids = [
            api.enqueue(api.Work(n=1, mode="stubborn", seconds=3600)).id,
            api.enqueue(api.Plain(n=2, seconds=3600)).id,
            api.enqueue(api.Plain(n=3, mode="polite", seconds=3600)).id,
        ]
        until(lambda: len(package.ledger.starts()) == 3, "their starts")
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
    for id_ in ids:
        row = package.row(id_)
        assert (row["state"], row["reason"]) == ("queued", "released"), row
        assert row["attempt"] == row["releases"] == 1
    assert len(package.ledger.lines("stopped", 3)) == 1, "job.cancelled did not tell"


def test_three_different_ends(package: Package) -> None:
    """Cancel, timeout and shutdown are told apart, though each cancels the handler.

    A timeout uses an attempt, a shutdown does not, a cancel is final.  C060.
    """
    api = package.api
    with package.worker() as worker:
        cancelled = api.enqueue(api.Work(n=1, seconds=3600)).id
        timed_out = api.enqueue(api.Brief(n=2, seconds=3600)).id
        released = api.enqueue(api.Work(n=3, seconds=3600)).id
        until(lambda: len(package.ledger.starts()) == 3, "their starts")
        assert api.cancel(cancelled, by="somebody") == "cancelling"
        package.in_state(cancelled, "cancelled")
        package.in_state(timed_out, "failed")
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
    row = package.row(cancelled)
    assert (row["state"], row["cancelled_by"]) == ("cancelled", "somebody")
    assert package.row(timed_out)["reason"] == "timed_out"
    row = package.row(released)
    assert (row["state"], row["reason"]) == ("queued", "released")
    assert row["attempt"] - row["releases"] == 0
    ends = [
        package.attempts(id_)[0]["outcome"] for id_ in (cancelled, timed_out, released)
    ]
    assert ends == ["cancelled", "timed_out", "released"]


def test_cancel(package: Package) -> None:
    """Queued: at once.  Finished: a no-op that says so.  Unknown: an error.  C072.

    A hundred cancels of finished jobs leave a running one and its worker alone.
    """
    api = package.api
    errors = package.part("errors")
    waiting = api.enqueue(api.Work(n=1), delay=3600).id
    assert api.cancel(waiting) == "cancelled"
    assert api.cancel(waiting) == "already_finished"
    other = api.enqueue(api.Work(n=1), delay=3600).id
    assert api.cancel(other, by="a\0b\ud800c") == "cancelled"
    assert package.row(other)["cancelled_by"] == r"a\u0000b\ud800c"
    done = api.enqueue_many([api.Work(n=2) for _ in range(100)])
    with package.worker() as worker:
        for one in done:
            package.in_state(one.id, "completed")
        before = package.rows("state = 'completed'")
        runs = api.enqueue(api.Work(n=3, seconds=2)).id
        until(lambda: package.ledger.starts(3), "its start")
        assert {api.cancel(one.id) for one in done} == {"already_finished"}
        assert package.in_state(runs, "completed")["attempt"] == 1
        assert worker.running
    assert package.rows(f"state = 'completed' AND id <> '{runs}'") == before
    with pytest.raises(errors.NotFound):
        api.cancel("01890000-0000-7000-8000-000000000000")
    with pytest.raises(errors.NotFound):
        api.cancel("no id")
    assert package.ledger.starts(1) == []


@faults.on("postgresql")
def test_a_cancel_that_meets_a_retry(package: Package) -> None:
    """A cancel of a running job holds although its handler raises: it is not retried."""
    api = package.api
    with package.worker():
        id_ = api.enqueue(api.Plain(n=1, mode="polite", seconds=3600)).id
        until(lambda: package.ledger.starts(1), "its start")
        assert api.cancel(id_) == "cancelling"
        assert package.in_state(id_, "cancelled")["attempt"] == 1
    assert len(package.ledger.starts(1)) == 1


def test_a_cancel_of_a_job_whose_worker_died(package: Package) -> None:
    """Recovery turns it into cancelled instead of running it again; its key is free.

    C023.
    """
    api = package.api
    with package.worker() as worker:
        id_ = api.enqueue(api.Work(n=1, seconds=3600)).id
        until(lambda: package.ledger.starts(1), "its start")
        worker.kill()
    assert api.cancel(id_) == "cancelling"
    with package.worker():
        package.in_state(id_, "cancelled")
    assert len(package.ledger.starts(1)) == 1


@faults.on("sqlite")
def test_a_cancel_of_a_blocked_process(package: Package, tmp_path: Path) -> None:
    """A handler that blocks the event loop is cancelled all the same.

    It does not stop within the grace, so it is ended with its process; the neighbour is
    recovered and completes.
    """
    api = package.api
    gate = tmp_path / "gate"
    with package.worker() as worker:
        neighbour = api.enqueue(api.Work(n=2, mode=f"gate:{gate}")).id
        until(lambda: package.ledger.starts(2), "its start")
        id_ = api.enqueue(api.Work(n=1, mode="block", seconds=3600)).id
        until(lambda: package.ledger.starts(1), "its start")
        assert api.cancel(id_) == "cancelling"
        package.in_state(id_, "cancelled")
        assert worker.exit_code() == 1, worker.log()
    gate.touch()
    with package.worker():
        row = package.in_state(neighbour, "completed")
    assert row["attempt"] - row["releases"] == 1
    assert len(package.ledger.starts(1)) == 1


@faults.on("postgresql")
def test_twenty_releases_are_free(make: Make) -> None:
    """From the twenty-first on a release uses an attempt: nothing waits for ever."""
    spec = faults.QUICK.replace("tries = 3", "tries = 2").replace(
        'grace = "2s"', 'grace = "1s"'
    )
    package = make(spec + faults.JOBS)
    api = package.api
    id_ = api.enqueue(api.Work(n=1, seconds=3600)).id
    package.sql("UPDATE jobs SET attempt = 19, releases = 19 WHERE id = ?", id_)
    states = []
    for _ in range(3):
        before = len(package.ledger.starts(1))
        with package.worker() as worker:
            started_again(package, before)
            worker.terminate()
            time.sleep(0.3)
            worker.terminate()
            assert worker.exit_code() == 0, worker.log()
        row = package.row(id_)
        states.append((row["state"], row["reason"]))
    assert states == [
        ("queued", "released"),
        ("queued", "released"),
        ("failed", "exhausted"),
    ]


def started_again(package: Package, before: int) -> None:
    until(lambda: len(package.ledger.starts(1)) > before, "its next run")


@faults.on("sqlite")
def test_sigterm_to_a_blocked_process(package: Package) -> None:
    """A handler that blocks the event loop is released; the process ends with 0."""
    api = package.api
    with package.worker() as worker:
        blocking = api.enqueue(api.Work(n=1, mode="block", seconds=3600)).id
        until(lambda: package.ledger.starts(1), "its start")
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
    row = package.row(blocking)
    assert (row["state"], row["reason"]) == ("queued", "released")
    assert row["attempt"] == row["releases"] == 1


@faults.on("postgresql")
def test_under_arqs_own_command(package: Package, tmp_path: Path) -> None:
    """`arq <package>.worker.Main` hosts the same worker: it drains and ends with 0."""
    gate = tmp_path / "gate"
    with package.start("-m", "arq", f"{package.name}.worker.Main") as worker:
        short, long = two_jobs(package, gate)
        both_run(package)
        worker.terminate()
        time.sleep(0.5)  # within the grace
        gate.touch()
        assert worker.exit_code() == 0, worker.log()
    assert package.row(short)["state"] == "completed"
    row = package.row(long)
    assert (row["state"], row["reason"]) == ("queued", "released")


def test_cancels_race_with_claims(package: Package) -> None:
    """Two hundred jobs are cancelled while a worker takes them: each answer is true.

    `cancelled`: it never ran.  `cancelling`: it did, and is cancelled or had ended.
    """
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        made = api.enqueue_many([api.Work(n=n, seconds=0.02) for n in range(200)])
        answers = {n: api.cancel(one.id) for n, one in enumerate(made)}
        package.settled()
        assert worker.running
    for n, answer in answers.items():
        row = package.row(made[n].id)
        starts = package.ledger.starts(n)
        if answer == "cancelled":
            assert (row["state"], starts) == ("cancelled", []), row
        elif answer == "cancelling":
            assert row["state"] in ("cancelled", "completed"), row
            assert len(starts) <= 1
        else:
            assert (row["state"], len(starts)) == ("completed", 1), row
