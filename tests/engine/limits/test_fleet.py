"""Limits over real worker processes: killed, with rows deleted and cancelled at random.

The short runs are for every day; QGEN_LONG=1 runs each for as long as it is stated.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
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
LIMIT, WINDOW = (60, 60.0) if faults.LONG else (20, 2.0)


@faults.on("postgresql")
def test_a_limit_holds_whatever_dies(make: Make) -> None:
    """Two of each value: never more, free again in time, and the queue drains."""
    package = make(KEYED)
    api = package.api
    chance = random.Random(5)
    count = 400 if faults.LONG else 90
    payloads = [
        api.Work(n=n, who=f"key {n % 3}", seconds=chance.uniform(0.02, 0.4))
        for n in range(count)
    ]
    ids = [each.id for each in api.enqueue_many(payloads)]
    workers = [package.worker() for _ in range(3)]
    until(package.ledger.starts, "the first starts")
    most: Counter[str] = Counter()
    begun = time.monotonic()
    kills = [0.3 * CHAOS, 0.6 * CHAOS]
    while (spent := time.monotonic() - begun) < CHAOS:
        sample(package, most)
        if kills and spent > kills[0]:
            kills.pop(0)
            workers.pop(0).kill()
            workers.append(package.worker())
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
        sample(package, most)
        return not package.rows("state IN ('queued', 'active')")

    until(drained, "the queue drains", 240 if faults.LONG else faults.PATIENCE)
    assert most and max(most.values()) == 2


def sample(package: faults.Package, most: Counter[str]) -> None:
    """How many of each value run at this moment, and did at most."""
    found = package.sql(
        "SELECT running_key, count(*) AS count FROM jobs WHERE state = 'active'"
        " GROUP BY running_key"
    )
    for row in found:
        most[row["running_key"]] = max(most[row["running_key"]], row["count"])


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
    for _ in range(3):
        package.worker()
    until(lambda: len(package.boots()) == 3, "three workers")
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
