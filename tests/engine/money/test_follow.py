"""What follows a job's end: a reply after success, an alarm after failure, once each."""

from __future__ import annotations

from engine import faults
from engine.faults import until
from engine.money import shop
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent, job

FOLLOW = 'reply = "tested_handlers:reply"\non_failed = "tested_handlers:on_failed"'
SPEC = (
    agent()
    + job("work", more=FOLLOW)
    + agent("none", "")
    + job("denied", "0.01", "none", more=FOLLOW, does="work")
)


def followers(package: faults.Package, suffix: str) -> list[faults.Row]:
    return [row for row in package.rows() if row["job"].endswith(f".{suffix}")]


def test_a_reply_follows_success_and_does_not_run_the_job_again(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    with package.worker():
        id_ = package.api.enqueue(package.api.Work()).id
        package.settled()
        until(lambda: package.ledger.lines("reply"), "a reply")
        package.settled()
    (reply,) = followers(package, "reply")
    assert reply["state"] == "completed"
    assert reply["payload"]["id"] == id_
    assert reply["payload"]["result"] == [{"text": f"s0 of {id_}"}]
    assert [run.id for run in package.ledger.lines("reply")] == [id_]
    assert not followers(package, "on_failed")


def test_an_alarm_follows_each_dead_letter_once(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    said = ("--by", "ann", "--note", "mended", "--limit", "1")
    with package.worker():
        id_ = package.api.enqueue(package.api.Work(do="400 400 ok")).id
        for times in (1, 2):
            row = package.in_state(id_, "failed")
            package.settled()
            assert len(followers(package, "on_failed")) == times
            package.json("dead-letters", "approve", row["cause"], *said)
            package.json("dead-letters", "replay", row["cause"])
        package.in_state(id_, "completed")
        package.settled()
    assert {run.id for run in package.ledger.lines("failed")} == {id_}
    assert len(followers(package, "reply")) == 1


def test_an_alarm_follows_a_job_denied_for_its_budget(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    with package.worker():
        id_ = package.api.enqueue(package.api.Denied()).id
        package.in_state(id_, "failed")
        until(lambda: package.ledger.lines("failed"), "an alarm")
    shop.audit(package)
