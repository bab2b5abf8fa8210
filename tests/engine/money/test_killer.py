"""The killer test: 500 paid jobs of two steps under kills, freezes, wipes, restarts.

The judges are the provider's own bill, plain SQL, and a database trigger that looks at
every window at every commit.  On the chosen cell (`tests/cells.py`); with QGEN_LONG=1 on
every backend in each of its modes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from cells import CHOSEN, KINDS, Kind
from engine import faults
from engine.faults import Worker
from engine.money import shop
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent, job

import servers

REAPER = Path(__file__).with_name("reaper.py")
JOBS = 500
CAP = 40_000_000
FROZEN = 7.0  # seconds until a frozen process is woken: it was declared dead
CELLS = list(KINDS.values()) if faults.LONG else [CHOSEN]
DECIDES = 12.0  # seconds a held job waits for late truth before a person looks

PATIENT = """
[retries.patient]
tries = 60
wait = "200ms"
factor = 1

[workers.main]
queues = ["default"]
concurrency = 8
"""
KEYS = 'provider_keys = true\nprovider_key_ttl = "24h"'


def spec(more: str) -> str:
    cap = f'day = "{CAP // 1_000_000}"'
    return (
        PATIENT
        + agent("writer", cap, more)
        + job("work", more='retry = "patient"\ntimeout = "60s"')
    )


@pytest.fixture
def database_url(own_database_url: str) -> str:
    """Of a server of its own: these tests stop it."""
    return own_database_url


class Disaster:
    """Two workers that are restarted, and everything that happens to them."""

    def __init__(
        self,
        package: faults.Package,
        bill: Provider,
        redis: servers.Redis,
        pg: servers.Postgres | None,
        kind: Kind,
    ) -> None:
        # Where a process commits for one job alone, the points are visited more often.
        self._chance = "0.005" if kind.supervised else "0.008"
        self.package, self.bill, self.redis, self.pg = package, bill, redis, pg
        self.deaths: Counter[str] = Counter()
        self.points: Counter[str] = Counter()
        self._seeds = itertools.count()
        self._workers: list[Worker] = []
        self._sessions: set[int] = set()
        self._over = threading.Event()
        self._waker = threading.Thread(target=self._wake, daemon=True)
        self._held: dict[str, float] = {}
        self._wipes = [100, 200, 300]
        self._restarts = [150, 350]

    def run(self) -> None:
        """Until no job is queued, active or held."""
        deadline = time.monotonic() + 400
        self._waker.start()
        try:
            while True:
                self._keep_two()
                states = self._states()
                if states and not set(states) & {"queued", "active", "held"}:
                    return
                assert time.monotonic() < deadline, (states, self.deaths, self._logs())
                done = sum(states.values()) - states["queued"] - states["active"]
                if self._wipes and done >= self._wipes[0]:
                    self._wipes.pop(0)
                    self.redis.flush()
                if self.pg is not None and self._restarts and done >= self._restarts[0]:
                    self._restarts.pop(0)
                    self.pg.restart()
                self._decide()
                time.sleep(0.2)
        finally:
            self._over.set()
            self._waker.join()
            for worker in self._workers:
                worker.close()
                self._count(worker)
            for pid in self._processes():
                _send(pid, signal.SIGKILL)

    def _states(self) -> Counter[str]:
        try:
            return self.package.states()
        except Exception:
            return Counter({"queued": 1})  # the database is just away

    def _keep_two(self) -> None:
        for worker in list(self._workers):
            if not worker.running:
                worker.close()
                self._count(worker)
                self._workers.remove(worker)
        while len(self._workers) < 2:
            name = self.package.tree.name
            env = {"REAPER": str(next(self._seeds)), "REAPER_CHANCE": self._chance}
            worker = self.package.start(str(REAPER), "-m", name, "worker", env=env)
            self._workers.append(worker)
            self._sessions.add(worker.pid)

    def _wake(self) -> None:
        """In a thread: one that is frozen in a transaction of SQLite stops all the rest,
        the commands of this test too."""
        frozen: dict[int, float] = {}
        while not self._over.wait(0.2):
            stopped = [pid for pid, state in self._processes().items() if state == "T"]
            now = time.monotonic()
            frozen = {pid: frozen.get(pid, now) for pid in stopped}
            for pid, since in frozen.items():
                if now - since > FROZEN:
                    _send(pid, signal.SIGCONT)

    def _processes(self) -> dict[int, str]:
        """Every process of every worker with its state, whose parent is gone too.

        A session without a process is forgotten: its number may be somebody else's soon.
        """
        known = set(self._sessions)
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,sid=,stat="],
            capture_output=True,
            text=True,
            check=True,
        )
        lines = [line.split() for line in listed.stdout.splitlines()]
        self._sessions -= known - {int(session) for _, session, _ in lines}
        return {
            int(pid): state[0]
            for pid, session, state in lines
            if int(session) in self._sessions and state[0] != "Z"
        }

    def _count(self, worker: Worker) -> None:
        found = re.findall(r"reaper: (\S+): (\w+)", worker.log())
        self.deaths.update(fate for _, fate in found)
        self.points.update(point for point, _ in found)

    def _decide(self) -> None:
        """A person looks at the provider's bill for jobs that are held for long."""
        try:
            held = self.package.rows("state = 'held'")
        except Exception:
            return
        billed = self.bill.billed()
        for row in held:
            since = self._held.setdefault(row["id"], time.monotonic())
            if time.monotonic() - since < DECIDES:
                continue
            for call in shop.calls(
                self.package, f"job_id = '{row['id']}' AND state = 'unknown'"
            ):
                said = ["--by", "ann", "--note", "the bill", "--step", call["step"]]
                spent = (
                    ["--spent", "0.02"]
                    if billed[row["id"], call["step"]]
                    else ["--not-spent"]
                )
                self.package.run("dead-letters", "resolve", row["id"], *spent, *said)

    def _logs(self) -> str:
        return "\n".join(worker.log()[-3000:] for worker in self._workers)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@pytest.mark.parametrize("kind", CELLS, ids=[kind.name for kind in CELLS])
@pytest.mark.parametrize("keys", [False, True], ids=["keyless", "keyed"])
def test_nothing_is_billed_twice(
    open_shop: Shop,
    bill: Provider,
    keyed_bill: Provider,
    own_redis: servers.Redis,
    killable: servers.Postgres | None,
    keys: bool,
    kind: Kind,
) -> None:
    provider = keyed_bill if keys else bill
    package = open_shop(spec(KEYS if keys else ""), provider, kind=kind)
    shop.watch_the_cap(package, CAP)
    package.api.enqueue_many([package.api.Work(n=n, steps=2) for n in range(JOBS)])
    disaster = Disaster(package, provider, own_redis, killable, kind)
    disaster.run()
    states = package.states()
    print(kind.name, disaster.deaths, disaster.points, states, len(provider.charges()))
    assert sum(disaster.deaths.values()) >= 10, disaster.deaths
    if kind.supervised:  # parts of a worker, and workers as a whole
        assert disaster.deaths["alone"] and disaster.deaths["whole"], disaster.deaths
    billed = provider.billed()
    assert not [step for step, times in billed.items() if times > 1]
    shop.on_the_ledger(package, provider)
    assert package.sql("SELECT * FROM above") == []
    shop.audit(package)
    spent = sum(call["cost"] for call in shop.calls(package))
    assert spent == len(provider.charges()) * 20_000
    if keys:
        assert states == {"completed": JOBS}
    else:
        # what a person has decided stays a dead letter; all else is done
        decided = package.sql(
            "SELECT DISTINCT subject FROM jobs_decisions WHERE kind = 'resolve'"
        )
        assert states["completed"] + states["failed"] == JOBS
        assert states["failed"] <= len(decided)
