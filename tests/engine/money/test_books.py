"""The books, transition by transition, without a worker: each test is one rule.

`dev.py mutants` breaks the engine line by line and names the test here that must fail.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from engine import faults
from engine.money import shop
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent, job
from engine.money.test_caps import engine

KEYS = 'provider_keys = true\nprovider_key_ttl = "24h"'
SPEC = (
    agent("writer", 'day = "1.00", month = "9", job = "0.90"')
    + job("work", "0.40")
    + agent("keyed", 'day = "9"', KEYS)
    + job("sure", "0.40", "keyed", does="work")
    + job("whole", "0.40", "keyed", 'billing = "attempt"', does="work")
    + agent("again", 'day = "9"', 'on_unknown = "retry"')
    + job("twice", "0.40", "again", does="work")
    + agent("strict", 'day = "0.50"', 'when_capped = "deny"')
    + job("denied", "0.40", "strict", does="work")
    + agent("unlimited", "")
    + job("nothing", "0.40", "unlimited", does="work")
)
MAX = 400_000
PARTS = "record door messages outcomes plain books calls".split()


class Desk:
    """A boot of this process, and the engine's functions called by hand."""

    def __init__(self, package: faults.Package) -> None:
        self.package = package
        ((self.boot, self.database),) = engine(package, 1)
        for name in PARTS:
            setattr(self, name, package.part(name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def enqueue(self, kind: str, count: int = 1) -> list[str]:
        payload = getattr(self.package.api, kind)
        found = self.package.api.enqueue_many([payload(n=n) for n in range(count)])
        return [str(each.id) for each in found]

    def claim(self, *ids: str) -> Any:
        """The claims of what was admitted."""
        self.package.sql(
            "UPDATE jobs SET dispatch = dispatch + 1, dispatched_at = created_at,"
            " run_at = created_at WHERE state = 'queued'"
        )
        numbers = {row["id"]: row["dispatch"] for row in self.package.rows()}
        messages = [self.messages.Message(id_, numbers[id_]) for id_ in ids]
        with self.database.transaction() as tx:
            claims = self.door.claim(tx, messages, self.boot, lambda _id: False)
        return [claims.admitted[id_] for id_ in ids if id_ in claims.admitted]

    def first(self, kind: str = "Work") -> Any:
        """The claim of one new job."""
        (claim,) = self.claim(*self.enqueue(kind))
        return claim

    def batch(self, claim: Any, change: Callable[[Any], Any]) -> Any:
        """What ``change(books)`` returns, when it is written."""
        refused = self.package.part("database").DataError
        with self.database.transaction() as tx:
            books = self.books.Books(tx)
            books.lock([claim.id])
            try:
                done = change(books)
                books.flush()
            except refused as error:
                raise AssertionError("a constraint had to stop it") from error
        return done

    def open(self, claim: Any, step: str = "s", **more: Any) -> Any:
        asked = self.calls.Opening(claim.id, claim.fence, claim.agent, step, **more)
        _, (opened,) = self.batch(
            claim, lambda books: self.plain.write_calls(books, [], [asked])
        )
        return opened

    def settle(self, claim: Any, opened: Any, cost: int = 20_000, **more: Any) -> str:
        values = {"state": "settled", "kept": '{"t": 1}'} | more
        report = self.calls.Report(
            call=opened.call,
            job_id=claim.id,
            agent=claim.agent,
            cost=cost,
            **values,
        )
        (state,), _ = self.batch(
            claim, lambda books: self.plain.write_calls(books, [report], [])
        )
        return str(state)

    def end(self, claim: Any, **changes: Any) -> str | None:
        """Ends the attempt, completed unless told otherwise; the row's new state."""
        held = self.outcomes.Held.by(self.boot, claim)
        ending = dataclasses.replace(self.outcomes.completed(held, "fine"), **changes)
        with self.database.transaction() as tx:
            states = self.record.finish(tx, [ending])
        return states.get(claim.id)  # type: ignore[no-any-return]

    def lose(self, claim: Any) -> str | None:
        """The worker has died: what recovery makes of it."""
        held = self.outcomes.Held.by(self.boot, claim)
        ending = dataclasses.replace(self.outcomes.lost(held), stranded=False)
        with self.database.transaction() as tx:
            states = self.record.finish(tx, [ending])
        return states.get(claim.id)  # type: ignore[no-any-return]

    def resolve(self, claim: Any, spent: str | None, step: str | None = None) -> Any:
        return self.package.part("resolving").resolve(
            claim.id, step=step, spent=spent, by="ann", note="looked"
        )

    def row(self, claim: Any) -> Any:
        return self.package.row(claim.id)

    def states(self) -> list[str]:
        return [call["state"] for call in shop.calls(self.package)]

    def window(self, who: str = "writer") -> tuple[int, int, int]:
        """spent, reserved, unknown; alike in all windows of the agent."""
        found = {
            (w["spent"], w["reserved"], w["unknown"])
            for key, w in shop.windows(self.package).items()
            if key.startswith(f"{who}|")
        }
        (one,) = found
        return one


@pytest.fixture
def desk(
    open_shop: Shop, bill: Provider, request: pytest.FixtureRequest
) -> Iterator[Desk]:
    package = open_shop(SPEC, bill)
    found = Desk(package)
    failed = request.session.testsfailed
    yield found
    if request.session.testsfailed == failed:  # else the test has said it
        shop.audit(package)


def refused(desk: Desk, *what: Any, **how: Any) -> str:
    """Why a call was not opened."""
    try:
        return str(getattr(desk.open(*what, **how), "why", "it was opened"))
    except Exception as error:
        return f"only a constraint stopped it: {error}"


def test_a_claim_reserves_and_an_end_gives_back(desk: Desk) -> None:
    claim = desk.first()
    assert desk.window() == (0, MAX, 0)
    assert desk.row(claim)["reserved"] == MAX
    assert desk.end(claim) == "completed"
    assert desk.window() == (0, 0, 0)


def test_a_call_takes_its_money_from_the_attempt(desk: Desk) -> None:
    claim = desk.first()
    opened = desk.open(claim, max_cost=100_000)
    assert desk.row(claim)["reserved"] == 300_000
    assert desk.window() == (0, MAX, 0)
    assert desk.settle(claim, opened) == "settled"
    assert desk.window() == (20_000, 300_000, 0)
    assert desk.row(claim)["cost"] == 20_000
    assert desk.end(claim) == "completed"
    assert desk.window() == (20_000, 0, 0)


def test_a_released_call_gives_the_attempt_its_money_back(desk: Desk) -> None:
    claim = desk.first()
    opened = desk.open(claim)
    assert desk.settle(claim, opened, 0, state="released", kept=None) == "released"
    assert desk.row(claim)["reserved"] == MAX
    assert desk.open(claim, "t", max_cost=MAX).max_cost == MAX


def test_a_released_step_is_opened_once_more(desk: Desk) -> None:
    claim = desk.first()
    first = desk.open(claim, max_cost=150_000)
    desk.settle(claim, first, 0, state="released", kept=None)
    second = desk.open(claim, max_cost=150_000)
    assert second.key == first.key and second.call != first.call
    assert desk.row(claim)["reserved"] == MAX - 150_000
    assert desk.settle(claim, second) == "settled"


def test_calls_of_one_batch(desk: Desk) -> None:
    """They share what is left of the attempt, and the costs that came with them."""
    claim = desk.first()

    def asked(step: str, most: int) -> Any:
        return desk.calls.Opening(claim.id, claim.fence, claim.agent, step, most)

    _, opened = desk.batch(
        claim,
        lambda books: desk.plain.write_calls(
            books, [], [asked(step, 150_000) for step in ("a", "b", "c")]
        ),
    )
    assert [type(each).__name__ for each in opened] == ["Opened", "Opened", "Shut"]
    assert desk.row(claim)["reserved"] == MAX - 300_000
    reports = [
        desk.calls.Report(each.call, claim.id, claim.agent, "settled", 20_000)
        for each in opened[:2]
    ]
    states, (last,) = desk.batch(
        claim,
        lambda books: desk.plain.write_calls(books, reports, [asked("d", 100_000)]),
    )
    assert states == ["settled", "settled"]
    assert desk.window() == (40_000, 100_000, 0)
    assert desk.settle(claim, last) == "settled"


def test_a_report_counts_once(desk: Desk) -> None:
    claim = desk.first()
    opened = desk.open(claim)
    for _ in range(3):
        desk.settle(claim, opened)
    assert desk.row(claim)["cost"] == 20_000
    assert desk.window() == (20_000, 0, 0)


def test_more_than_reserved_is_booked_in_full(desk: Desk) -> None:
    claim = desk.first()
    desk.settle(claim, desk.open(claim, max_cost=100_000), 150_000)
    assert desk.row(claim)["cost"] == 150_000
    assert desk.window() == (150_000, 300_000, 0)


def test_an_attempt_opens_no_more_than_it_reserved(desk: Desk) -> None:
    claim = desk.first()
    assert refused(desk, claim, max_cost=MAX + 1) == "room"
    desk.open(claim, "a", max_cost=300_000)
    assert refused(desk, claim, "b", max_cost=100_001) == "room"


@pytest.mark.parametrize("why", ["fence", "dead", "late", "cancelled"])
def test_who_may_not_open_a_call(desk: Desk, why: str) -> None:
    claim = desk.first()
    if why == "fence":
        claim = dataclasses.replace(claim, fence=claim.fence - 1)
    elif why == "dead":
        desk.package.sql("UPDATE jobs_boots SET dead_at = started_at")
    elif why == "late":
        desk.package.sql("UPDATE jobs SET deadline_at = created_at")
    else:
        desk.package.sql("UPDATE jobs SET cancel_requested_at = created_at")
    assert refused(desk, claim) == "over"


def test_a_lost_reply_does_not_open_twice(desk: Desk) -> None:
    claim = desk.first()
    assert desk.open(claim) == desk.open(claim)
    assert desk.states() == ["open"]


def test_a_settled_step_is_not_bought_again(desk: Desk) -> None:
    claim = desk.first()
    desk.settle(claim, desk.open(claim))
    assert desk.lose(claim) == "queued"
    (again,) = desk.claim(claim.id)
    assert desk.row(claim)["reserved"] == MAX - 20_000
    assert desk.open(again) == desk.calls.Shut("kept", "", '{"t": 1}')


def test_another_request_fails_the_step(desk: Desk) -> None:
    claim = desk.first()
    desk.settle(claim, desk.open(claim, request_hash="a"))
    desk.lose(claim)
    (again,) = desk.claim(claim.id)
    assert desk.open(again, request_hash="b").why == "request"


@pytest.mark.parametrize("state", ["completed", "failed", "queued"])
def test_an_open_call_holds_its_job(desk: Desk, state: str) -> None:
    claim = desk.first()
    desk.open(claim)
    assert desk.end(claim, state=state, reason=None) == "held"
    assert desk.window() == (0, 0, MAX)
    assert desk.states() == ["unknown"]


def test_unknown_money_counts_against_the_cap(desk: Desk) -> None:
    for _ in range(2):
        claim = desk.first()
        desk.open(claim)
        desk.end(claim)
    assert desk.window() == (0, 0, 2 * MAX)
    assert desk.claim(*desk.enqueue("Work")) == []
    (waiting,) = desk.package.rows("state = 'queued'")
    assert waiting["reason"] == "budget"


def test_a_batch_shares_no_room(desk: Desk) -> None:
    assert len(desk.claim(*desk.enqueue("Work", 10))) == 2


def test_keys_send_the_call_again_in_the_same_money(desk: Desk) -> None:
    claim = desk.first("Sure")
    opened = desk.open(claim)
    assert desk.lose(claim) == "queued"
    assert desk.window("keyed") == (0, 0, MAX)
    (again,) = desk.claim(claim.id)
    assert desk.row(claim)["reserved"] == 0
    resent = desk.open(again)
    assert resent.key == opened.key
    assert desk.window("keyed") == (0, MAX, 0)
    # the first opening reports more, later: one charge, the larger
    desk.settle(again, resent, 20_000)
    desk.settle(again, opened, 30_000)
    assert desk.row(claim)["cost"] == 30_000
    assert desk.end(again) == "completed"


def test_an_attempt_that_is_one_call_is_not_sent_again(desk: Desk) -> None:
    """Its handler is given no key: run again, it would be billed again."""
    claim = desk.first("Whole")
    desk.open(claim, "attempt", max_cost=None)
    assert desk.lose(claim) == "held"
    assert desk.window("keyed") == (0, 0, MAX)


def test_the_larger_report_of_a_key_counts_in_either_order(desk: Desk) -> None:
    claim = desk.first("Sure")
    first = desk.open(claim)
    assert desk.lose(claim) == "queued"
    (again,) = desk.claim(claim.id)
    second = desk.open(again)
    assert desk.settle(claim, first, 30_000) == "superseded"
    assert desk.settle(again, second, 10_000) == "settled"
    assert desk.row(claim)["cost"] == 30_000


def test_a_key_that_the_provider_has_forgotten_holds_the_job(desk: Desk) -> None:
    claim = desk.first("Sure")
    desk.open(claim)
    day = "86400000" if desk.package.dialect == "sqlite" else "interval '1 day'"
    desk.package.sql(f"UPDATE jobs_calls SET opened_at = opened_at - {day}")
    assert desk.lose(claim) == "held"


def test_a_second_sending_that_failed_proves_nothing_of_the_first(desk: Desk) -> None:
    claim = desk.first("Sure")
    desk.open(claim)
    desk.lose(claim)
    (again,) = desk.claim(claim.id)
    resent = desk.open(again)
    assert desk.settle(again, resent, 0, state="released", kept=None) == "unknown"


def test_paying_again_books_both(desk: Desk) -> None:
    claim = desk.first("Twice")
    first = desk.open(claim)
    assert desk.lose(claim) == "queued"
    assert desk.window("again") == (MAX, 0, 0)
    (again,) = desk.claim(claim.id)
    second = desk.open(again)
    assert second.key != first.key
    desk.settle(again, second)
    assert desk.row(claim)["cost"] == MAX + 20_000
    # late truth of the first: a correction, and the job does not move
    desk.settle(again, first, 30_000)
    assert desk.row(claim)["cost"] == 50_000
    assert desk.row(claim)["state"] == "active"


def test_what_is_held_has_an_instant(desk: Desk) -> None:
    """It has not finished: the end of its last attempt is the one that counts."""
    claim = desk.first()
    desk.open(claim)
    assert desk.lose(claim) == "held"
    (cause,) = desk.package.part("dead_letters").causes()
    shown = desk.package.part("operations").show(claim.id)
    (attempt,) = shown["attempts"]
    assert cause["state"] == "held"
    assert cause["oldest"] == cause["newest"] == attempt["ended_at"]


def test_the_last_attempt_is_held_in_any_case(desk: Desk) -> None:
    claim = desk.first("Sure")
    desk.open(claim)
    desk.package.sql("UPDATE jobs SET tries = 1")
    assert desk.lose(dataclasses.replace(claim, tries=1)) == "held"


def test_a_cancel_books_what_was_open(desk: Desk) -> None:
    claim = desk.first()
    opened = desk.open(claim)
    desk.package.sql("UPDATE jobs SET cancel_requested_at = created_at")
    assert desk.lose(claim) == "cancelled"
    assert desk.window() == (MAX, 0, 0)
    desk.settle(claim, opened)
    assert desk.row(claim)["cost"] == 20_000
    assert desk.row(claim)["state"] == "cancelled"


def test_late_truth_moves_a_held_job_when_nothing_is_unknown(desk: Desk) -> None:
    claim = desk.first()
    one = desk.open(claim, "a", max_cost=100_000)
    two = desk.open(claim, "b", max_cost=100_000)
    desk.end(claim)
    desk.settle(claim, one)
    assert desk.row(claim)["state"] == "held"
    desk.settle(claim, two)
    assert desk.row(claim)["state"] == "queued"
    assert desk.window() == (40_000, 0, 0)


def test_after_a_person_truth_is_a_correction(desk: Desk) -> None:
    claim = desk.first()
    opened = desk.open(claim)
    desk.end(claim)
    assert desk.resolve(claim, None)["state"] == "failed"
    assert desk.row(claim)["reason"] == "worker_lost"
    desk.settle(claim, opened)
    assert desk.row(claim)["state"] == "failed"
    assert desk.row(claim)["cost"] == 20_000
    (entry,) = desk.package.sql("SELECT * FROM jobs_corrections")
    assert entry["amount"] == 20_000
    shop.audit(desk.package)


def test_spent_without_an_answer_is_no_answer(desk: Desk) -> None:
    claim = desk.first()
    desk.open(claim)
    desk.end(claim)
    assert desk.resolve(claim, "0.10")["cost"] == "0.10"
    assert desk.row(claim)["reason"] == "no_answer"
    # a correction by hand, later
    assert desk.resolve(claim, "0.05", "s")["cost"] == "0.05"


def test_a_person_sets_a_resolved_call_right(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    def resolve(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        said = ("--by", "ann", "--note", "looked")
        command = ["dead-letters", "resolve", claim.id, *words, *said]
        code = desk.package.part("__main__").main(command)
        return code, "".join(capsys.readouterr())

    claim = desk.first()
    desk.open(claim)
    desk.end(claim)
    refused = json.loads(resolve("--spent", "99", "--json")[1])["error"]
    assert refused["code"] == "refused"
    assert "0.40 at most, and 99.00 is more: --above-max" in refused["message"]
    assert desk.states() == ["unknown"]
    code, text = resolve("--spent", "99", "--above-max")
    assert code == 0 and f"its cause is {desk.row(claim)['cause']}" in text
    assert desk.window() == (99_000_000, 0, 0)
    assert resolve("--spent", "0.41")[0] == 1
    done = json.loads(resolve("--spent", "0.12", "--json")[1])
    assert done == {"id": claim.id, "cost": "0.12", "state": "failed"}
    assert resolve("--not-spent")[0] == 0
    assert desk.window() == (0, 0, 0)
    entries = desk.package.sql("SELECT * FROM jobs_corrections ORDER BY corrected_at")
    assert [e["amount"] for e in entries] == [-98_880_000, -120_000]
    assert {e["decided_by"] for e in entries} == {"ann"}
    shop.audit(desk.package)
    desk.package.part("__main__").main(["show", claim.id])
    (call,) = shop.calls(desk.package)
    assert f"provider key: {call['provider_key']}" in capsys.readouterr().out


def test_a_job_stays_under_its_own_cap(desk: Desk) -> None:
    (id_,) = desk.enqueue("Work")
    desk.package.sql("UPDATE jobs SET cost = 0")
    claim = desk.claim(id_)[0]
    desk.settle(claim, desk.open(claim), 800_000, kept=None)
    desk.lose(claim)
    assert desk.claim(id_) == []
    row = desk.package.row(id_)
    assert (row["state"], row["reason"]) == ("failed", "denied_cap")


def test_a_call_stays_under_the_cap_of_its_job(desk: Desk) -> None:
    claim = desk.first()
    dear = desk.open(claim, "s1", max_cost=200_000)
    desk.settle(claim, dear, 800_000)
    shut = desk.open(claim, "s2", max_cost=200_000)
    assert "above its cap" in getattr(shut, "message", "")
    assert desk.states() == ["settled"]


def test_a_cap_that_is_full_denies_where_the_spec_says_so(desk: Desk) -> None:
    claim = desk.first("Denied")
    desk.settle(claim, desk.open(claim), 200_000)
    desk.end(claim)
    assert desk.claim(*desk.enqueue("Denied")) == []
    failed = desk.package.rows("state = 'failed'")
    assert [row["reason"] for row in failed] == ["denied_cap"]


def test_no_cap_is_no_money(desk: Desk) -> None:
    assert desk.claim(*desk.enqueue("Nothing")) == []
    (row,) = desk.package.rows()
    assert row["reason"] == "denied_no_cap"


def test_a_429_closes_the_gate_for_all(desk: Desk) -> None:
    claim = desk.first()
    opened = desk.open(claim)
    desk.settle(claim, opened, 0, state="released", kept=None, gate=60.0)
    assert desk.claim(*desk.enqueue("Work")) == []
    (waiting,) = desk.package.rows("state = 'queued'")
    assert waiting["reason"] == "throttled"


@faults.on("postgresql")
def test_a_row_that_is_locked_keeps_no_other_from_its_call(desk: Desk) -> None:
    locked, free = desk.claim(*desk.enqueue("Work", 2))
    till, paid = desk.package.part("till"), desk.package.part("paid")
    database = desk.package.part("database").Database(desk.package.database_url, 1.0)
    orders = [
        paid.Order(desk.calls.Opening(claim.id, claim.fence, claim.agent, "s"))
        for claim in (locked, free)
    ]
    desk_till = till.Till(database, lambda: True, lambda calls: [c() for c in calls])
    with psycopg.connect(desk.package.database_url) as other:
        other.execute("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE", [locked.id])
        assert desk_till.write(orders) == orders[:1]
        assert orders[1].answer.given and not orders[0].answer.given
    assert desk_till.write(orders[:1]) == []
    database.close()
    assert desk.states() == ["open", "open"]
