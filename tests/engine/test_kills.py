"""Workers die at any moment, Redis forgets, the database restarts: nothing is lost."""

from __future__ import annotations

import random
import secrets
import time
from pathlib import Path

import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, Supervisor

import servers

SPEC = """
[stall]
heartbeat = "1s"
after = "3s"
sweep = "1s"

[retries.default]
tries = 50
wait = "100ms"
max_wait = "1s"

[workers.main]
concurrency = 8
"""


def explained(package: Package) -> None:
    """Every start of a handler has an attempt of its row, and none has two."""
    starts: dict[str, list[int]] = {}
    for run in package.ledger.starts():
        starts.setdefault(run.id, []).append(run.attempt)
    for row in package.rows():
        runs = starts.get(row["id"], [])
        assert len(runs) == len(set(runs)), f"an attempt ran twice: {runs} of {row}"
        assert runs, f"completed without a run: {row}"
        assert max(runs) == row["attempt"], (runs, row)
        lost = package.attempts(row["id"])
        assert len(lost) == row["attempt"] - 1, (lost, row)
        assert {a["outcome"] for a in lost} <= {"worker_lost", "released"}, lost


def storm(package: Package, kills: int, redis: servers.Redis, seed: int) -> Supervisor:
    """SIGKILLs at random times, three FLUSHALLs among them, while jobs are left."""
    dice = random.Random(seed)
    flushes = set(dice.sample(range(kills), 3))
    with Supervisor(package, 2) as supervisor:
        for kill in range(kills):
            time.sleep(dice.uniform(0.05, 0.6))
            supervisor.kill(dice.choice)
            if kill in flushes:
                redis.flush()
        states = package.settled(240)
        assert dict(states) == {"completed": len(package.rows())}
        codes = supervisor.stop()
    assert codes == [0, 0]
    return supervisor


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_forty_kills_on_sqlite(make: Make, own_redis: servers.Redis) -> None:
    """Of 1,000 jobs none is lost, none stuck, and every extra run is an attempt.

    Two supervised workers, 40 SIGKILLs, 3 FLUSHALLs.  C004, C006.
    """
    package = make(SPEC + faults.JOBS)
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    enqueue(package)
    storm(package, 40, own_redis, seed)
    explained(package)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_forty_kills_on_postgresql(
    dialect: str,
    own_redis: servers.Redis,
    own_pg: servers.Postgres,
    tmp_path: Path,
    clean_environment: None,
) -> None:
    """The same on PostgreSQL, which is restarted twice meanwhile.  C004, C006."""
    tree = faults.build(dialect, SPEC + faults.JOBS)
    package = tree.at(own_pg.url, own_redis.url, tmp_path / "run").migrate()
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    enqueue(package)
    dice = random.Random(seed + 1)
    with Restarts(own_pg, [dice.uniform(3, 6), dice.uniform(3, 6)]):
        storm(package, 40, own_redis, seed)
    explained(package)


def enqueue(package: Package) -> None:
    """1,000 jobs that together take two workers about 20 seconds."""
    api = package.api
    api.enqueue_many([api.Work(n=n, seconds=0.3) for n in range(1000)])


class Restarts:
    """Restarts a server after each of these pauses, beside whatever goes on."""

    def __init__(self, server: servers.Owned, pauses: list[float]) -> None:
        self._server = server
        self._pauses = pauses
        self._failed: list[BaseException] = []

    def __enter__(self) -> None:
        import threading

        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        assert not self._failed, self._failed

    def _run(self) -> None:
        try:
            for pause in self._pauses:
                time.sleep(pause)
                self._server.restart()
        except BaseException as error:
            self._failed.append(error)


@faults.on("postgresql")
def test_a_job_that_always_kills_its_worker(make: Make) -> None:
    """It is failed `worker_lost` after its three tries; all others complete.  C056.

    What runs beside it is lost with it, comes back, and does not meet it each time.
    """
    package = make(faults.QUICK.replace("200ms", "3s") + faults.JOBS)
    api = package.api
    poison = api.enqueue(api.Work(n=-1, mode="die")).id
    others = api.enqueue_many([api.Work(n=n) for n in range(40)])
    with Supervisor(package, 2):
        package.settled(120)
    row = package.row(poison)
    assert (row["state"], row["reason"]) == ("failed", "worker_lost")
    assert row["attempt"] == 3
    assert [a["outcome"] for a in package.attempts(poison)] == ["worker_lost"] * 3
    assert len(package.ledger.starts(-1)) == 3
    for other in others:
        assert package.row(other.id)["state"] == "completed"
