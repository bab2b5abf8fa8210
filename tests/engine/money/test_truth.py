"""Late truth: what becomes of calls whose worker died, froze, or lost the database."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from engine import faults
from engine.faults import Worker, until
from engine.money import shop
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent, job

import servers

SPEC = (
    agent()
    + job("work")
    + job("plain", more='timeout = "1s"')
    + job("crash")
    + agent("keyed", 'day = "1000"', 'provider_keys = true\nprovider_key_ttl = "24h"')
    + job("sure", "0.20", "keyed", does="crash")
    + agent("again", 'day = "1000"', 'on_unknown = "retry"')
    + job("twice", "0.20", "again", does="crash")
)

ONCE = "\n[retries.once]\ntries = 1\n"


def called(bill: Provider, times: int = 1) -> None:
    """Waits until the provider has written so many charges."""
    until(lambda: len(bill.charges()) >= times, f"{times} charges")


def frozen_in_a_call(
    package: faults.Package, bill: Provider, worker: Worker, gate: Path, do: str = ""
) -> str:
    """A job whose worker is frozen in a call that the provider has billed; its id."""
    package.ready(worker)
    id_ = package.api.enqueue(package.api.Work(do=f"gate={gate} {do or 'ok'}")).id
    called(bill)
    worker.send(signal.SIGSTOP)
    return str(id_)


def test_a_worker_killed_in_a_call_leaves_its_job_held(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    id_ = package.api.enqueue(package.api.Crash()).id
    with package.worker(), package.worker(), package.worker():
        row = package.in_state(id_, "held")
    assert row["reason"] == "unknown"
    assert len(bill.charges()) == 1
    shop.audit(package)
    (window,) = shop.windows(package).values()
    assert window == {"spent": 0, "reserved": 0, "unknown": 200_000}


def test_with_provider_keys_the_call_is_sent_again(
    open_shop: Shop, keyed_bill: Provider
) -> None:
    package = open_shop(SPEC, keyed_bill)
    id_ = package.api.enqueue(package.api.Sure()).id
    with package.worker(), package.worker(), package.worker():
        row = package.in_state(id_, "completed", "held", "failed")
    assert row["state"] == "completed", row
    assert row["cost"] == 20_000
    assert len(keyed_bill.charges()) == 1
    states = [call["state"] for call in shop.calls(package)]
    assert states == ["superseded", "settled"]
    shop.audit(package)


def test_on_unknown_retry_pays_again_and_books_both(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    id_ = package.api.enqueue(package.api.Twice()).id
    with package.worker(), package.worker(), package.worker():
        row = package.in_state(id_, "completed", "held", "failed")
    assert row["state"] == "completed", row
    assert row["cost"] == 220_000  # the lost one at its most, and the second
    assert len(bill.charges()) == 2
    assert [c["purchase"] for c in shop.calls(package)] == [1, 2]
    shop.audit(package)


def test_late_truth_lets_a_held_job_go_on(
    open_shop: Shop, bill: Provider, tmp_path: Path
) -> None:
    package = open_shop(SPEC, bill)
    gate = tmp_path / "gate"
    with package.worker() as first:
        id_ = frozen_in_a_call(package, bill, first, gate)
        with package.worker():
            package.in_state(id_, "held")
            gate.touch()
            first.send(signal.SIGCONT)
            row = package.in_state(id_, "completed")
            assert first.exit_code() == 1
    assert row["cost"] == 20_000
    assert len(bill.charges()) == 1
    assert not package.sql("SELECT * FROM jobs_corrections")
    shop.audit(package)


def test_truth_after_a_decision_is_a_correction(
    open_shop: Shop, bill: Provider, tmp_path: Path
) -> None:
    package = open_shop(SPEC, bill)
    gate = tmp_path / "gate"
    with package.worker() as first:
        id_ = frozen_in_a_call(package, bill, first, gate)
        with package.worker():
            cause = package.in_state(id_, "held")["cause"]
            refused = package.run("dead-letters", "replay", cause)
            assert refused.returncode == 1
            said = ("--by", "ann", "--note", "the provider's page shows nothing")
            done = package.json("dead-letters", "resolve", id_, "--not-spent", *said)
            assert done == {"id": id_, "cost": "0.00", "state": "failed"}
            row = package.row(id_)
            assert row["reason"] == "worker_lost"
            package.json("dead-letters", "approve", row["cause"], *said, "--limit", "1")
            package.json("dead-letters", "replay", row["cause"])
            package.in_state(id_, "completed")
            gate.touch()
            first.send(signal.SIGCONT)
            assert first.exit_code() == 1
            until(
                lambda: package.sql("SELECT * FROM jobs_corrections"),
                "a correction",
            )
        assert "correction" in first.log()
    row = package.row(id_)
    assert row["cost"] == 40_000
    assert row["state"] == "completed"
    assert len(bill.charges()) == 2
    assert [call["cost"] for call in shop.calls(package)] == [20_000, 20_000]
    shop.audit(package)
    shown = package.json("show", id_)["paid_calls"]
    assert shown[0]["corrections"][0]["amount"] == "0.02"


def test_spent_without_an_answer_is_bought_again_only_on_request(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    said = ("--by", "ann", "--note", "on the provider's page")
    with package.worker():
        id_ = package.api.enqueue(package.api.Work(do="ok reset ok", steps=2)).id
        # the first step is another count at the provider: its first word is "ok"
        row = package.in_state(id_, "completed", "held")
        assert row["state"] == "completed", row
        id_ = package.api.enqueue(package.api.Work(do="reset ok")).id
        package.in_state(id_, "held")
        done = package.json("dead-letters", "resolve", id_, "--spent", "0.03", *said)
        assert done == {"id": id_, "cost": "0.03", "state": "failed"}
        row = package.row(id_)
        assert row["reason"] == "no_answer"
        cause = row["cause"]
        package.json("dead-letters", "approve", cause, *said, "--limit", "1")
        refused = package.run("dead-letters", "replay", cause)
        assert refused.returncode == 1, refused.stdout
        assert "--pay-again" in refused.stdout
        package.json("dead-letters", "replay", cause, "--pay-again")
        row = package.in_state(id_, "completed")
    assert row["cost"] == 50_000
    shop.audit(package)


def test_cancelled_in_a_call_and_killed(
    open_shop: Shop, bill: Provider, tmp_path: Path
) -> None:
    package = open_shop(SPEC, bill)
    with package.worker() as first:
        id_ = frozen_in_a_call(package, bill, first, tmp_path / "gate")
        package.json("cancel", id_)
        first.send(signal.SIGKILL)
        with package.worker():
            row = package.in_state(id_, "cancelled")
    assert row["cost"] == 200_000
    (call,) = shop.calls(package)
    assert (call["state"], bool(call["estimated"])) == ("settled", True)
    shop.audit(package)
    assert len(package.ledger.starts()) == 1


def test_a_held_job_is_cancelled_at_once(open_shop: Shop, bill: Provider) -> None:
    package = open_shop(SPEC, bill)
    with package.worker():
        id_ = package.api.enqueue(package.api.Work(do="reset")).id
        package.in_state(id_, "held")
        assert package.json("cancel", id_)["cancelled"] == [id_]
    assert package.row(id_)["cost"] == 200_000
    shop.audit(package)


def test_a_plain_handler_past_its_timeout_opens_no_further_call(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    with package.worker():
        id_ = package.api.enqueue(package.api.Plain(steps=3, then="sleep")).id
        row = package.in_state(id_, "failed", "held", "completed")
    assert (row["state"], row["reason"]) == ("failed", "timed_out"), row
    assert list(bill.billed()) == [(id_, "s0")]
    shop.audit(package)


@contextlib.contextmanager
def away(package: faults.Package, pg: servers.Postgres | None) -> Iterator[None]:
    """The database does not answer."""
    if pg is not None:
        pg.stop()
        try:
            yield
        finally:
            pg.start()
        return
    path = package.database_url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        yield
        file.execute("ROLLBACK")


@pytest.fixture
def database_url(own_database_url: str) -> str:
    """Of a server of its own: these tests stop it."""
    return own_database_url


@pytest.mark.parametrize("seconds", [2, 12, *([20, 180] if faults.LONG else [])])
def test_database_away_between_call_and_settle(
    open_shop: Shop,
    bill: Provider,
    killable: servers.Postgres | None,
    tmp_path: Path,
    seconds: int,
) -> None:
    package = open_shop(SPEC, bill)
    gate = tmp_path / "gate"
    with package.worker() as first, package.worker() as second:
        package.ready(first, second)
        id_ = package.api.enqueue(package.api.Work(do=f"gate={gate}")).id
        called(bill)
        with away(package, killable):
            gate.touch()
            time.sleep(seconds)
        row = package.in_state(id_, "completed")
    assert row["cost"] == 20_000
    assert row["attempt"] == 1
    assert len(bill.charges()) == 1
    shop.audit(package)


def test_what_could_not_be_written_waits_in_the_spool(
    open_shop: Shop, bill: Provider, killable: servers.Postgres | None, tmp_path: Path
) -> None:
    package = open_shop(SPEC, bill)
    gate = tmp_path / "gate"
    spool = tmp_path / "run" / "spool"
    with package.worker() as first:
        package.ready(first)
        id_ = package.api.enqueue(package.api.Work(do=f"gate={gate}")).id
        called(bill)
        with away(package, killable):
            gate.touch()
            until(lambda: list(spool.glob("*.json")), "a file in the spool")
            first.send(signal.SIGKILL)
    (file,) = spool.glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert spool.stat().st_mode & 0o777 == 0o700
    with package.worker():
        row = package.in_state(id_, "completed")
    assert row["cost"] == 20_000
    assert len(bill.charges()) == 1
    assert not list(spool.iterdir())
    shop.audit(package)


@faults.on("sqlite")
def test_a_handler_that_locks_the_record_is_told(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC + job("locker", more='retry = "once"') + ONCE, bill)
    with package.worker():
        id_ = package.api.enqueue(package.api.Locker()).id
        row = package.in_state(id_, "failed")
        package.in_state(package.api.enqueue(package.api.Work()).id, "completed")
    assert "commit it before job.paid_call" in str(row["error"])
    assert not [charge for charge in bill.charges() if charge.job == id_]
    shop.audit(package)


def test_two_operators_at_once_replay_once(open_shop: Shop, bill: Provider) -> None:
    package = open_shop(
        SPEC + job("once", more='retry = "once"', does="work") + ONCE, bill
    )
    said = ("--by", "ann", "--note", "fixed", "--limit", "10")
    with package.worker():
        payloads = [package.api.Once(n=n, then="raise") for n in range(5)]
        ids = [each.id for each in package.api.enqueue_many(payloads)]
        for id_ in ids:
            cause = package.in_state(id_, "failed")["cause"]
        package.json("dead-letters", "approve", cause, *said)
        barrier = threading.Barrier(2)

        def press(_turn: int) -> list[str]:
            barrier.wait()
            pressed = package.run("dead-letters", "replay", cause, "--json")
            # one who comes after the other finds none left
            return list(json.loads(pressed.stdout).get("replayed", ()))

        with ThreadPoolExecutor(2) as two:
            replayed = [id_ for found in two.map(press, range(2)) for id_ in found]
        assert sorted(replayed) == sorted(ids)
        until(
            lambda: {row["attempt"] for row in package.rows("state = 'failed'")} == {2},
            "the replayed jobs",
        )
    # its step was settled: nobody buys it again, however often it runs
    assert set(bill.billed().values()) == {1}
    assert {row["replays"] for row in package.rows()} == {1}
    shop.audit(package)
