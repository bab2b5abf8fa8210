"""The killer test: 500 paid jobs of two steps under kills, freezes, wipes, restarts.

The judges are the provider's own bill, plain SQL, and a database trigger that looks at
every window at every commit.
"""

from __future__ import annotations

import itertools
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine import faults
from engine.faults import Worker
from engine.money import shop
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent, job

import servers

REAPER = Path(__file__).with_name("reaper.py")
JOBS = 500
CAP = 40_000_000
FROZEN = 7.0  # seconds until a frozen worker is woken: it was declared dead
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
def killable(
    dialect: str, request: pytest.FixtureRequest
) -> Iterator[servers.Postgres | None]:
    """The PostgreSQL of this test alone; None on SQLite."""
    found = request.getfixturevalue("own_pg") if dialect == "postgresql" else None
    yield found


@pytest.fixture
def database_url(
    dialect: str, killable: servers.Postgres | None, tmp_path: Path
) -> Iterator[str]:
    if killable is None:
        yield f"sqlite:///{tmp_path / 'record.db'}"
        return
    with servers.database(killable) as url:
        yield url


def watch_the_cap(package: faults.Package) -> None:
    """A trigger writes down every commit that leaves a window above the cap."""
    package.sql("CREATE TABLE above (key text, amount bigint)")
    over = f"NEW.spent + NEW.reserved + NEW.unknown > {CAP}"
    note = "INSERT INTO above VALUES (NEW.key, NEW.spent + NEW.reserved + NEW.unknown)"
    if package.dialect == "sqlite":
        package.sql(
            f"CREATE TRIGGER watch AFTER UPDATE ON jobs_spend WHEN {over} "
            f"BEGIN {note}; END"
        )
        return
    package.sql(
        f"CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {over}"
        f" THEN {note}; END IF; RETURN NULL; END $$"
    )
    package.sql(
        "CREATE CONSTRAINT TRIGGER watch AFTER INSERT OR UPDATE ON jobs_spend DEFERRABLE"
        " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION watch()"
    )


class Disaster:
    """Two workers that are restarted, and everything that happens to them."""

    def __init__(
        self,
        package: faults.Package,
        bill: Provider,
        redis: servers.Redis,
        pg: servers.Postgres | None,
    ) -> None:
        self.package, self.bill, self.redis, self.pg = package, bill, redis, pg
        self.deaths: Counter[str] = Counter()
        self._seeds = itertools.count()
        self._workers: list[Worker] = []
        self._frozen: dict[int, float] = {}
        self._held: dict[str, float] = {}
        self._wipes = [100, 200, 300]
        self._restarts = [150, 350]

    def run(self) -> None:
        """Until no job is queued, active or held."""
        deadline = time.monotonic() + 400
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
            for worker in self._workers:
                worker.close()
                self._count(worker)

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
            elif _is_stopped(worker.pid):
                since = self._frozen.setdefault(worker.pid, time.monotonic())
                if time.monotonic() - since > FROZEN:
                    worker.send(signal.SIGCONT)
            else:
                self._frozen.pop(worker.pid, None)
        while len(self._workers) < 2:
            name = self.package.tree.name
            env = {"REAPER": str(next(self._seeds))}
            worker = self.package.start(str(REAPER), "-m", name, "worker", env=env)
            self._workers.append(worker)

    def _count(self, worker: Worker) -> None:
        found = re.findall(r"reaper: (\S+): (SIG\w+)", worker.log())
        self.deaths.update(f"{point} {number}" for point, number in found)

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


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


@pytest.mark.parametrize("keys", [False, True], ids=["keyless", "keyed"])
def test_nothing_is_billed_twice(
    open_shop: Shop,
    bill: Provider,
    keyed_bill: Provider,
    own_redis: servers.Redis,
    killable: servers.Postgres | None,
    keys: bool,
) -> None:
    provider = keyed_bill if keys else bill
    package = open_shop(spec(KEYS if keys else ""), provider)
    watch_the_cap(package)
    package.api.enqueue_many([package.api.Work(n=n, steps=2) for n in range(JOBS)])
    disaster = Disaster(package, provider, own_redis, killable)
    disaster.run()
    states = package.states()
    print(disaster.deaths, states, len(provider.charges()))
    assert sum(disaster.deaths.values()) >= 10, disaster.deaths
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
