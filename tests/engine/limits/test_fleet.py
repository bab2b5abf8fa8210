"""Limits over real worker processes: killed, with rows deleted and cancelled at random.

The short runs are for every day; QGEN_LONG=1 runs each for as long as it is stated.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine import faults
from engine.faults import seconds, until

Make = Callable[..., faults.Package]

PAYLOAD = """
n = "int"
who = { type = "str", default = "" }
mode = { type = "str", default = "" }
seconds = { type = "float", default = 0.0 }
"""
KEYED = faults.QUICK + f"""
[jobs.work]
max_running = 2
max_running_by = "who"
[jobs.work.payload]
{PAYLOAD}"""
FREE = f"\n[jobs.work.payload]\n{PAYLOAD}"
CHAOS = 30.0 if faults.LONG else 6.0  # seconds of kills, cancels and deletions
FREE_AGAIN = 4.0 + 1.0  # seconds: `stall.after` and `sweep` of this spec
LENIENCY = 2.0 if faults.LONG else 10.0  # seconds, on a machine with other work
LIMIT, WINDOW = (60, 60.0) if faults.LONG else (20, 2.0)


@dataclass
class Seen:
    """What was sampled of a limit: the most of each value at once, and since when the
    processes of a killed worker hold nothing any more."""

    package: faults.Package
    most: Counter[str] = field(default_factory=Counter)
    lost: dict[str, float] = field(default_factory=dict)
    freed: list[float] = field(default_factory=list)

    def killed(self, worker: faults.Worker) -> None:
        """Kills a worker, and waits from now on for what it held."""
        family = worker.family()
        boots = [boot["id"] for boot in self.package.boots() if boot["pid"] in family]
        worker.kill()
        self.lost |= dict.fromkeys(map(str, boots), time.monotonic())

    def sample(self) -> None:
        """Looks at what runs at this moment."""
        active = "SELECT running_key, worker FROM jobs WHERE state = 'active'"
        rows = self.package.sql(active)
        for key, count in Counter(row["running_key"] for row in rows).items():
            self.most[key] = max(self.most[key], count)
        for boot in self.lost.keys() - {str(row["worker"]) for row in rows}:
            self.freed.append(time.monotonic() - self.lost.pop(boot))


@faults.on("postgresql")
def test_a_limit_holds_whatever_dies(make: Make) -> None:
    """Two of each value: never more, free again in time, and the queue drains."""
    package = make(KEYED)
    api = package.api
    chance = random.Random(5)
    count = 900 if faults.LONG else 180
    payloads = [
        api.Work(n=n, who=f"key {n % 3}", seconds=chance.uniform(0.02, 0.4))
        for n in range(count)
    ]
    ids = [each.id for each in api.enqueue_many(payloads)]
    seen = Seen(package)
    kills = [0.3 * CHAOS, 0.6 * CHAOS]
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(package.worker()) for _ in range(3)]
        until(package.ledger.starts, "the first starts")
        begun = time.monotonic()
        while (spent := time.monotonic() - begun) < CHAOS:
            seen.sample()
            if kills and spent > kills[0]:
                kills.pop(0)
                seen.killed(workers.pop(0))
                workers.append(stack.enter_context(package.worker()))
            if chance.random() < 0.1:
                api.cancel(chance.choice(ids)) if rows_left(package, ids) else None
            if chance.random() < 0.05:
                package.sql(
                    "DELETE FROM jobs WHERE id IN"
                    " (SELECT id FROM jobs WHERE state = 'active' LIMIT 1)"
                )
            time.sleep(0.05)
        package.sql("UPDATE jobs SET run_at = created_at WHERE state = 'queued'")

        def drained() -> bool:
            seen.sample()
            return not package.rows("state IN ('queued', 'active')")

        until(drained, "the queue drains", 240 if faults.LONG else faults.PATIENCE)
    print(f"most {seen.most}, free after {seen.freed}")
    assert seen.most and max(seen.most.values()) == 2
    assert len(seen.freed) >= 2 and not seen.lost
    assert max(seen.freed) < FREE_AGAIN + LENIENCY, seen.freed


def rows_left(package: faults.Package, ids: list[Any]) -> bool:
    """Drops the ids of rows that were deleted."""
    left = {str(row["id"]) for row in package.sql("SELECT id FROM jobs")}
    ids[:] = [id_ for id_ in ids if id_ in left]
    return bool(ids)


@faults.on("postgresql")
def test_a_rate_holds_over_the_fleet(make: Make) -> None:
    """Three workers: no window of `started_at` holds more, the second full one few fewer."""
    rated = f'\n[queues.default]\nrate = "{LIMIT}/{WINDOW:.0f}s"\n'
    package = make(faults.QUICK + rated + FREE)
    api = package.api
    package.ready(*(package.worker() for _ in range(3)))
    api.enqueue_many([api.Work(n=n) for n in range(3 * LIMIT)])
    patience = 3 * WINDOW + faults.PATIENCE
    until(lambda: not package.rows("state <> 'completed'"), "all are done", patience)
    starts = sorted(seconds(row["started_at"]) for row in package.rows())
    for at in starts:
        assert sum(at <= other <= at + WINDOW for other in starts) <= LIMIT
    second = [at for at in starts if WINDOW <= at - starts[0] < 2 * WINDOW]
    assert len(second) >= LIMIT - 2


@faults.on("sqlite")
def test_a_small_tenant_is_done_first(make: Make) -> None:
    """A real worker on one of each: ten jobs beside a thousand (10,000 with QGEN_LONG)."""
    package = make(
        faults.QUICK
        + f'\n[jobs.work]\ntenant_by = "who"\n[jobs.work.payload]\n{PAYLOAD}'
    )
    api = package.api
    count = 10_000 if faults.LONG else 1_000
    for n in range(0, count, 1000):
        api.enqueue_many([api.Work(n=n + i, who="large") for i in range(1000)])
    api.enqueue_many([api.Work(n=count + n, who="small") for n in range(10)])
    package.worker()
    small = "tenant LIKE '%small%' AND state <> 'completed'"
    until(lambda: not package.rows(small), "the small tenant is done")
    order = [run.n for run in package.ledger.ends()]
    assert max(order.index(count + n) for n in range(10)) < 100
