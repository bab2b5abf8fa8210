"""What every backend does alike with time and flow: schedules, limits, pauses, order.

Nothing of it lives in Redis or in a backend's own scheduler: the rows decide.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

from engine.faults import LONG, Package, Run, seconds, until
from parity.stage import SPEC, Stage
from parity.table import behaviour

SCHEDULED: Final = SPEC + """
[schedules.often]
job = "plain"
every = "1s"
overlap = "allow"
missed = "all"  # a tick that a busy machine delays makes up for it
payload = { n = 1 }

[schedules.hung]
job = "plain"
every = "1s"
payload = { n = 2, mode = "gate:GATE" }
"""
LOW: Final = 1000 if LONG else 30


def most_at_once(runs: Sequence[Run]) -> int:
    """How many of these runs went on at the same moment."""
    marks = sorted((run.at, 1 if run.what == "start" else -1) for run in runs)
    return max(itertools.accumulate(step for _, step in marks))


def paused(package: Package, what: str, word: str = "pause") -> None:
    """By a person."""
    package.json(word, what, "--by", "ann")


@behaviour()
def runs_each_slot_once(stage: Stage) -> None:
    """Two workers tick; each slot has one job, which runs once, and none is missing.

    Beside them the run of another schedule hangs: its own slots are skipped and counted.
    """
    package = stage.open(SCHEDULED.replace("GATE", str(stage.gate())))

    def told() -> Any:
        return package.json("status")["schedules"]["hung"]

    with package.worker() as first, package.worker() as second:
        package.ready(first, second)
        until(lambda: len(package.ledger.ends(1)) >= 4, "four slots")
        until(lambda: told()["skipped_in_a_row"] >= 2, lambda: f"two: {told()}")
        hung = told()
    assert (len(package.rows("schedule = 'hung'")), hung["last_state"]) == (1, "active")
    # A first tick that is late has skipped a slot before the run began to hang.
    assert hung["skipped"] >= hung["skipped_in_a_row"]
    slots = [seconds(row["slot"]) for row in package.rows("schedule = 'often'")]
    assert {round(b - a, 3) for a, b in itertools.pairwise(sorted(slots))} == {1.0}
    starts = [run.id for run in package.ledger.starts()]
    assert len(starts) == len(set(starts))


@behaviour()
def runs_no_more_than_max_running(stage: Stage) -> None:
    """Two of a queue over four slots of two workers, and not fewer either."""
    api = stage.package.api
    with stage.worker() as first, stage.worker() as second:
        stage.package.ready(first, second)
        api.enqueue_many([api.Narrow(n=n, seconds=0.4) for n in range(8)])
        stage.completed(8)
    assert most_at_once(stage.package.ledger.lines()) == 2


@behaviour()
def starts_no_more_than_the_rate(stage: Stage) -> None:
    """Three in any two seconds over two workers, by the record's own clock."""
    api = stage.package.api
    with stage.worker() as first, stage.worker() as second:
        stage.package.ready(first, second)
        api.enqueue_many([api.Rated(n=n) for n in range(6)])
        stage.completed(6)
    starts = [seconds(row["started_at"]) for row in stage.package.rows()]
    for at in starts:
        assert sum(at <= other < at + 2 for other in starts) <= 3, sorted(starts)


@behaviour()
def pauses_and_goes_on(stage: Stage) -> None:
    """What runs ends, nothing of the queue starts, other queues do; then all run."""
    gate = stage.gate()
    api = stage.package.api
    with stage.worker():
        stage.add(1, mode=f"gate:{gate}")
        stage.started(1)
        paused(stage.package, "queue:default")
        stage.add(2, 3)
        gate.touch()
        until(lambda: stage.package.ledger.ends(1), "the one that ran")
        elsewhere = api.enqueue_many([api.Rated(n=n) for n in range(10, 14)])
        for one in elsewhere:  # the fourth waits two seconds for its rate
            stage.package.in_state(one.id, "completed")
        assert not [run for n in (2, 3, 4) for run in stage.package.ledger.starts(n)]
        paused(stage.package, "queue:default", "resume")
        stage.completed(8)


@behaviour()
def the_high_one_is_next(stage: Stage) -> None:
    """Before it come the low ones that are taken at that moment, and not all of the six
    that are in Redis: celery takes as many ahead as it has slots."""
    gate = stage.gate()
    api = stage.package.api
    with stage.worker():
        stage.add(1, 2, mode=f"gate:{gate}")
        stage.started(1), stage.started(2)
        for n in range(100, 100 + LOW):
            api.enqueue(api.Work(n=n, seconds=0.02), priority="low")
        until(
            lambda: stage.package.rows(
                "priority = 'low' AND dispatched_at IS NOT NULL"
            ),
            "the first low ones in Redis",
        )
        api.enqueue(api.Work(n=99), priority="high")
        gate.touch()
        stage.started(99)
    order = [run.n for run in stage.package.ledger.starts()]
    print(f"before the high one: {order.index(99) - 2}")
    assert order.index(99) < 2 + 6, order


@behaviour()
def an_old_low_one_is_next(stage: Stage) -> None:
    """High ones keep coming, each before the last has begun: one that is older goes
    first, be it a low one that waited twenty minutes longer."""
    gate = stage.gate()
    api = stage.package.api
    with stage.worker():
        stage.add(1, 2, mode=f"gate:{gate}")
        stage.started(1), stage.started(2)
        low = api.enqueue(api.Work(n=99), priority="low").id
        minutes = "1260000"
        if stage.dialect == "postgresql":
            minutes = "interval '21 minutes'"
        stage.package.sql(
            f"UPDATE jobs SET run_at = run_at - {minutes}, dispatched_at = NULL,"
            f" sort_at = run_at - {minutes} WHERE id = ?",
            low,
        )
        until(lambda: stage.package.row(low)["dispatch"] == 2, "its place in Redis")
        for n in range(100, 140):
            api.enqueue(api.Work(n=n, seconds=0.02), priority="high")
        gate.touch()
        stage.completed(43)
    order = [run.n for run in stage.package.ledger.starts()]
    print(f"before the low one: {order.index(99) - 2}; high ones: {order[2:]}")
    assert order.index(99) < 2 + 4, order
    assert order.index(100) < 2 + 6 + 4, order
