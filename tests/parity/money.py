"""What every backend does alike with money.

The judge is the bill of a provider, which is a process of its own, and the books in plain
SQL: at the end of each behaviour they balance, and nothing was charged beside them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from engine import faults
from engine.faults import Package, until
from engine.money import shop
from engine.money.shop import Provider, agent, job
from parity.stage import Stage
from parity.table import behaviour

FOLLOW: Final = (
    'reply = "tested_handlers:reply"\non_failed = "tested_handlers:on_failed"'
)
CAP: Final = 600_000  # of the agent `poor`: three jobs at a time
SPEC: Final = (
    f"{faults.QUICK}\n[workers.main]\nconcurrency = 2\n"
    + agent()
    + job("work")
    + job("plain")
    + job("crash")
    + job("followed", more=FOLLOW, does="work")
    + agent("sure", more='provider_keys = true\nprovider_key_ttl = "24h"')
    + job("keyed", who="sure", does="crash")
    + agent("poor", f'day = "{CAP / 1_000_000}"')
    + job("dear", who="poor", does="work")
    + agent("slow")
    + job("calm", who="slow", does="work")
)


@contextmanager
def opened(stage: Stage, keyed: bool = False) -> Iterator[tuple[Package, Provider]]:
    """The package that spends, and its provider; the books are judged at the end."""
    with shop.provider(stage.folder / "provider", keyed) as bill:
        package = stage.open(SPEC, shop.HANDLERS)
        package.env["QGEN_TEST_PROVIDER"] = bill.port
        yield package, bill
        shop.audit(package)
        shop.on_the_ledger(package, bill)


@contextmanager
def survivors(stage: Stage, package: Package) -> Iterator[None]:
    """So many workers that one is left to judge when a job takes its process along."""
    with ExitStack() as stack:
        for _ in range(1 if stage.kind.supervised else 2):
            stack.enter_context(package.worker())
        yield


def charged(bill: Provider, times: int = 1) -> None:
    """Waits until the provider has written so many charges."""
    until(lambda: len(bill.charges()) >= times, f"{times} charges")


@behaviour()
def holds_a_job_whose_call_is_unknown(stage: Stage) -> None:
    """Killed after the provider has answered: it is not asked again, a person decides."""
    with opened(stage) as (package, bill):
        api = package.api
        with survivors(stage, package):
            id_ = api.enqueue(api.Crash()).id
            row = package.in_state(id_, "held")
            assert (row["reason"], row["attempt"]) == ("unknown", 1)
            for other in (api.Work(), api.Plain()):
                package.in_state(api.enqueue(other).id, "completed")
            assert bill.billed()[id_, "s0"] == 1
            (window,) = shop.windows(package).values()
            assert window == {"spent": 40_000, "reserved": 0, "unknown": 200_000}
            said = ("--by", "ann", "--note", "on its page", "--spent", "0.02")
            package.json("dead-letters", "resolve", id_, *said)
        row = package.row(id_)
        assert (row["state"], row["reason"]) == ("failed", "no_answer")
        assert row["cost"] == 20_000


@behaviour()
def late_truth_moves_a_held_job(stage: Stage) -> None:
    """Its process is frozen in the call, taken for dead, and then brings the answer."""
    gate = stage.gate()
    with opened(stage) as (package, bill):
        api = package.api
        with survivors(stage, package):
            id_ = api.enqueue(api.Work(do=f"gate={gate}", steps=2)).id
            charged(bill)
            (charge,) = bill.charges()
            os.kill(charge.pid, signal.SIGSTOP)
            package.in_state(id_, "held")
            gate.touch()
            os.kill(charge.pid, signal.SIGCONT)
            row = package.in_state(id_, "completed")
        assert (row["cost"], row["attempt"]) == (40_000, 2)
        assert set(bill.billed().values()) == {1}


@behaviour()
def asks_a_provider_of_keys_again(stage: Stage) -> None:
    """Killed after the answer: asked once more with the same key, which bills once."""
    with opened(stage, keyed=True) as (package, bill):
        api = package.api
        with survivors(stage, package):
            row = package.in_state(api.enqueue(api.Keyed()).id, "completed", "held")
        assert (row["state"], row["cost"], row["attempt"]) == ("completed", 20_000, 2)
        assert len(bill.charges()) == 1
        states = [call["state"] for call in shop.calls(package)]
        assert states == ["superseded", "settled"]


@behaviour()
def passes_no_cap(stage: Stage) -> None:
    """Two workers want twelve jobs at once, and there is money for three."""
    gate = stage.gate()
    with opened(stage) as (package, bill):
        api = package.api
        shop.watch_the_cap(package, CAP)
        dear = [api.Dear(n=n, cost="0.20", do=f"gate={gate}") for n in range(12)]
        api.enqueue_many(dear)
        with package.worker() as first, package.worker() as second:
            package.ready(first, second)
            charged(bill, 3)
            time.sleep(1.5)  # in which a fourth would start
            assert len(bill.charges()) == 3
            gate.touch()
            until(lambda: package.states()["completed"] == 3, "the three")
            until(
                lambda: len(package.rows("reason = 'budget'")) == 9,
                lambda: f"what the others wait for: {package.rows()}",
            )
        assert package.sql("SELECT * FROM above") == []
        assert package.states() == {"completed": 3, "queued": 9}


@behaviour()
def cancels_in_a_paid_call(stage: Stage) -> None:
    """No further call opens; the open one is booked at the most it may have cost."""
    with opened(stage) as (package, bill):
        api = package.api
        with package.worker():
            id_ = api.enqueue(api.Work(do=f"gate={stage.gate()}", steps=2)).id
            charged(bill)
            assert api.cancel(id_) == "cancelling"
            row = package.in_state(id_, "cancelled")
            package.in_state(api.enqueue(api.Work()).id, "completed")
        assert row["cost"] == 200_000
        (call,) = shop.calls(package, f"job_id = '{id_}'")
        assert (call["state"], bool(call["estimated"])) == ("settled", True)
        assert bill.billed()[id_, "s1"] == 0


@behaviour()
def a_429_stops_its_agent(stage: Stage) -> None:
    """Nobody of the agent starts until the time is over; others do; no attempt is used."""
    with opened(stage) as (package, bill):
        api = package.api
        with package.worker():
            first = api.enqueue(api.Calm(n=1, do="429=2.5 ok")).id
            until(lambda: package.row(first)["reason"] == "throttled", "the 429")
            api.enqueue_many([api.Calm(n=n) for n in (2, 3)])
            api.enqueue(api.Work(n=4))
            assert package.settled() == {"completed": 4}
        begun = package.ledger.starts(1)[0].at
        assert all(package.ledger.starts(n)[0].at - begun > 2.4 for n in (2, 3))
        assert package.ledger.starts(4)[0].at - begun < 2.4
        row = package.row(first)
        assert (row["attempt"], row["throttles"], row["cost"]) == (2, 1, 20_000)
        assert len(bill.charges()) == 4


@behaviour()
def each_end_is_followed_once(stage: Stage) -> None:
    """A reply after success, an alarm after failure: jobs of their own, unpaid."""
    with opened(stage) as (package, _bill):
        api = package.api
        with package.worker():
            good = api.enqueue(api.Followed()).id
            bad = api.enqueue(api.Followed(do="400")).id
            package.in_state(good, "completed")
            package.in_state(bad, "failed")
            package.settled()
        assert [run.id for run in package.ledger.lines("reply")] == [good]
        assert [run.id for run in package.ledger.lines("failed")] == [bad]
        assert package.states() == {"completed": 3, "failed": 1}
