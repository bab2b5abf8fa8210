"""A worker dies or freezes at a named point of the engine.

The real generated worker runs, one function of it wrapped so that it says when it is
there (`faulty.py`); the test kills or freezes it from outside.  Killed: the row is as
far as its last commit.  Frozen past `stall.after` and thawed: another worker has taken
over, the old process changes nothing more and ends with an error.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, Worker, until

STALL = 3.0
SPEC = faults.QUICK.replace('after = "4s"', 'after = "3s"') + faults.JOBS

# point: (attempts of the row at the end, handler runs) after a kill.
KILLED = {
    "after-dequeue": (1, 1),
    "inside-claim": (1, 1),
    "after-claim": (2, 1),
    "before-finish": (2, 2),
    "inside-finish": (2, 2),
    "after-finish": (1, 1),
    "mid-dispatch": (1, 1),
    "after-dispatch": (1, 1),
}
# ... and after a freeze: (attempts, most handler runs).  A process that thaws with a
# claim in hand may start its handler before it reads that it was declared dead; its
# attempt is counted.  On SQLite a process frozen inside a transaction holds the file:
# the others wait, and what it wrote counts.
FROZEN = {
    "sqlite": {
        "after-dequeue": (1, 1),
        "inside-claim": (1, 1),
        "after-claim": (2, 2),
        "before-finish": (2, 2),
        "inside-finish": (1, 1),
        "after-finish": (1, 1),
        "mid-dispatch": (1, 1),
        "after-dispatch": (1, 1),
    },
    "postgresql": {
        "after-dequeue": (1, 1),
        "inside-claim": (1, 1),
        "after-claim": (2, 2),
        "before-finish": (2, 2),
        "inside-finish": (2, 2),
        "after-finish": (1, 1),
        "mid-dispatch": (1, 1),
        "after-dispatch": (1, 1),
    },
}


def stopped_at(package: Package, point: str, folder: Path) -> tuple[Worker, str]:
    """A worker that waits at the point with the only job there is."""
    folder.mkdir()
    api = package.api
    worker = package.faulty(point, folder)
    try:
        if "dispatch" in point:
            # Not published by the caller: the worker's own dispatch takes it.
            with package.part("connections").POOL.database() as database:
                with database.transaction() as tx:
                    id_ = inserted(package, tx)
        else:
            id_ = api.enqueue(api.Work(n=1)).id
        until((folder / "reached").exists, lambda: f"{point} reached\n{worker.log()}")
    except BaseException:
        worker.close()
        raise
    return worker, id_


def inserted(package: Package, tx: object) -> str:
    """A row that is committed and not yet published."""
    connection = tx._connection  # type: ignore[attr-defined]
    id_: str = package.api.enqueue(package.api.Work(n=1), connection=connection).id
    return id_


def release(folder: Path) -> None:
    (folder / "go").touch()


def check_end(package: Package, id_: str, attempts: int, runs: tuple[int, int]) -> None:
    row = package.in_state(id_, "completed", "failed", "cancelled")
    assert row["state"] == "completed", row
    assert row["attempt"] == attempts, (row, package.attempts(id_))
    starts = package.ledger.starts(1)
    assert runs[0] <= len(starts) <= runs[1], starts
    assert len({run.attempt for run in starts}) == len(starts), starts
    assert len(package.attempts(id_)) == attempts - 1
    time.sleep(2.5)  # two sweeps: nothing comes after the end
    assert package.row(id_) == row
    assert package.ledger.starts(1) == starts


@pytest.mark.parametrize("point", KILLED)
def test_killed(make: Make, tmp_path: Path, point: str) -> None:
    """SIGKILL at the point: another worker brings the row to its end.

    A claim that was not committed uses no attempt, a committed one uses one; an ending
    that was committed stands, and the handler does not run again.  C006, C013.
    """
    package = make(SPEC)
    worker, id_ = stopped_at(package, point, tmp_path / "point")
    with worker, package.worker():
        worker.kill()
        attempts, runs = KILLED[point]
        check_end(package, id_, attempts, (runs, runs))


@pytest.mark.parametrize("point", KILLED)
def test_frozen(make: Make, tmp_path: Path, dialect: str, point: str) -> None:
    """SIGSTOP at the point for longer than `stall.after`, then SIGCONT.

    The others declare the process dead (on SQLite only if it does not hold the file);
    thawed, it changes nothing and exits with an error.  C009, C012.
    """
    package = make(SPEC)
    worker, id_ = stopped_at(package, point, tmp_path / "point")
    holds_the_file = dialect == "sqlite" and point.startswith("inside")
    with worker, package.worker() as other:
        package.ready(other) if not holds_the_file else time.sleep(1)
        worker.freeze()
        time.sleep(STALL + 1)
        if not holds_the_file:
            until(
                lambda: any(
                    boot["pid"] == worker.pid and boot["dead_at"] is not None
                    for boot in package.boots()
                ),
                lambda: f"its declaration as dead\n{other.log()}",
            )
            if point != "after-dequeue":
                package.in_state(id_, "completed")
        release(tmp_path / "point")
        worker.thaw()
        if holds_the_file:
            worker.terminate()
            assert worker.exit_code() == 0, worker.log()
        else:
            assert worker.exit_code() == 1, worker.log()
        attempts, most = FROZEN[dialect][point]
        check_end(package, id_, attempts, (1, most))


@faults.on("postgresql")
def test_a_caller_that_dies(make: Make, tmp_path: Path) -> None:
    """Killed between the commit of its row and the push: the job is accepted and runs."""
    package = make(SPEC)
    folder = tmp_path / "point"
    folder.mkdir()
    words = ("enqueue", "work", '{"n": 1}')
    with package.faulty("mid-dispatch", folder, *words) as caller:
        until((folder / "reached").exists, caller.log)
        caller.kill()
    (row,) = package.rows()
    assert row["dispatched_at"] is not None, "marked, and never pushed"
    with package.worker():
        check_end(package, row["id"], 1, (1, 1))


def test_killed_while_it_migrates(make: Make, tmp_path: Path, dialect: str) -> None:
    """A migration is all or nothing; the next one makes every table."""
    folder = tmp_path / "point"
    package = unmigrated(make, dialect, tmp_path)
    folder.mkdir()
    with package.faulty("mid-migrate", folder, "migrate") as migrator:
        until((folder / "reached").exists, migrator.log)
        migrator.kill()
    package.migrate()
    assert package.rows() == []
    assert package.part("migrate").drift() == []


def test_frozen_while_it_migrates(make: Make, tmp_path: Path, dialect: str) -> None:
    """A second migrator waits for a frozen one; then there is nothing left to do."""
    folder = tmp_path / "point"
    package = unmigrated(make, dialect, tmp_path)
    folder.mkdir()
    with package.faulty("mid-migrate", folder, "migrate") as migrator:
        until((folder / "reached").exists, migrator.log)
        migrator.freeze()
        with package.start("-m", package.name, "migrate") as second:
            time.sleep(STALL)
            assert second.running, second.log()
            release(folder)
            migrator.thaw()
            assert migrator.exit_code() == 0, migrator.log()
            assert second.exit_code() == 0, second.log()
            assert "0001" in migrator.log() and "0001" not in second.log()
    assert package.part("migrate").drift() == []


def unmigrated(make: Make, dialect: str, folder: Path) -> Package:
    """The package on the test's database, all its tables dropped again."""
    package = make(SPEC)
    package.drop_every_table()
    return package
