"""What a paid call turned out to be, and what that makes of its job."""

from __future__ import annotations

from decimal import Decimal

import pytest
from engine import faults
from engine.money import shop
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent, job

SPEC = (
    agent()
    + job("work")
    + job("swallow")
    + job("impatient")
    + job("loop")
    + job("plain")
    + job("odd")
    + job("whole", more='billing = "attempt"')
)


@pytest.fixture
def package(open_shop: Shop, bill: Provider) -> faults.Package:
    return open_shop(SPEC, bill)


def ended(package: faults.Package, kind: str, **payload: object) -> faults.Row:
    """One job of a kind, until it has ended or is held."""
    with package.worker():
        id_ = package.api.enqueue(getattr(package.api, kind)(**payload)).id
        row = package.in_state(id_, "completed", "failed", "held")
    shop.audit(package)
    return row


@pytest.mark.parametrize("kind", ["Work", "Plain"])
def test_three_steps(package: faults.Package, bill: Provider, kind: str) -> None:
    row = ended(package, kind, steps=3)
    assert row["state"] == "completed", row
    assert row["cost"] == 60_000
    assert row["result"] == [{"text": f"s{n} of {row['id']}"} for n in range(3)]
    assert [c.cost for c in bill.charges()] == ["0.02"] * 3
    assert [c["state"] for c in shop.calls(package)] == ["settled"] * 3


@pytest.mark.parametrize(
    ("do", "state", "reason", "billed", "call"),
    [
        ("500", "held", "unknown", 1, "unknown"),
        ("408", "held", "unknown", 0, "unknown"),
        ("409", "held", "unknown", 0, "unknown"),
        ("reset", "held", "unknown", 1, "unknown"),
        ("400", "failed", "never_retry", 0, "released"),
        ("403", "failed", "never_retry", 0, "released"),
        ("unreadable", "failed", "no_answer", 1, "settled"),
    ],
)
def test_what_proves_nothing_holds_the_job(
    package: faults.Package,
    bill: Provider,
    do: str,
    state: str,
    reason: str,
    billed: int,
    call: str,
) -> None:
    row = ended(package, "Work", do=do)
    assert (row["state"], row["reason"], row["attempt"]) == (state, reason, 1), row
    assert len(bill.charges()) == billed
    assert [c["state"] for c in shop.calls(package)] == [call]


def test_a_call_never_sent_is_tried_again(
    package: faults.Package, bill: Provider
) -> None:
    row = ended(package, "Work", do="refused")
    assert (row["state"], row["reason"], row["attempt"]) == ("failed", "exhausted", 3)
    assert [c["state"] for c in shop.calls(package)] == ["released"] * 3
    assert not bill.charges()


def test_settled_steps_are_replayed(package: faults.Package, bill: Provider) -> None:
    row = ended(package, "Work", steps=3, then="raise")
    assert (row["state"], row["attempt"]) == ("failed", 3)
    assert set(bill.billed().values()) == {1}
    assert row["cost"] == 60_000


@pytest.mark.parametrize("kind", ["Swallow", "Impatient"])
def test_a_handler_cannot_swallow_an_unknown_call(
    package: faults.Package, kind: str
) -> None:
    row = ended(package, kind, do="reset" if kind == "Swallow" else "hang")
    assert (row["state"], row["reason"]) == ("held", "unknown"), row
    assert not package.ledger.lines("caught") or kind == "Impatient"


def test_a_step_named_twice_is_an_error(
    package: faults.Package, bill: Provider
) -> None:
    row = ended(package, "Loop")
    assert row["state"] == "failed"
    assert "same#2" in str(row["error"])
    assert len(bill.charges()) == 1


@pytest.mark.parametrize("kind", ["Work", "Plain"])
def test_a_429_closes_the_gate_and_uses_no_attempt(
    package: faults.Package, bill: Provider, kind: str
) -> None:
    row = ended(package, kind, do="429=0.5 429=0.5 ok")
    assert row["state"] == "completed", row
    assert row["throttles"] == 2
    assert row["attempt"] == 3
    (gate,) = package.sql("SELECT * FROM jobs_gates")
    assert gate["key"] == "agent:writer"


@pytest.mark.parametrize(
    ("then", "cost", "estimated"),
    [
        ("negative", "0.20", True),
        ("nan", "0.20", True),
        ("infinite", "0.20", True),
        ("text", "0.20", True),
        ("true", "0.20", True),
        ("raises", "0.20", True),
        ("none", "0.20", True),
        ("above", "9.5", False),
        ("fine,bytes", "0.02", False),
    ],
)
def test_odd_costs_and_answers(
    package: faults.Package, bill: Provider, then: str, cost: str, estimated: bool
) -> None:
    row = ended(package, "Odd", then=then, do="odd")
    assert row["state"] == "completed", row
    assert row["cost"] == Decimal(cost) * 1_000_000
    (call,) = shop.calls(package)
    assert bool(call["estimated"]) is estimated
    assert call["kept"] is not None
    assert len(bill.charges()) == 1


def test_an_answer_that_cannot_be_kept(package: faults.Package, bill: Provider) -> None:
    row = ended(package, "Odd", then="fine,raises")
    assert (row["state"], row["reason"]) == ("failed", "no_answer")
    assert row["cost"] == 20_000
    assert len(bill.charges()) == 1


def test_an_attempt_billed_as_a_whole(package: faults.Package, bill: Provider) -> None:
    row = ended(package, "Whole")
    assert (row["state"], row["cost"]) == ("completed", 20_000), row
    row = ended(package, "Whole", do="reset")
    assert row["state"] == "held", row
