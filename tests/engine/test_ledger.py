"""The thread that batches claims and endings, driven step by step without its thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from engine.units import Engine, nobody


class Shaky:
    """A database that fails at stated transactions: before they begin, or after."""

    def __init__(self, database: Any, error: Exception) -> None:
        self._database = database
        self._error = error
        self.before = self.after = self.begun = 0

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        self.begun += 1
        if self.before:
            self.before -= 1
            raise self._error
        with self._database.transaction() as tx:
            yield tx
        if self.after:
            self.after -= 1
            raise self._error

    def close(self) -> None:
        self._database.close()


class Stage:
    """A ledger of one boot, what it registered and what it answered, in order."""

    def __init__(
        self, engine: Engine, patience: float = 5.0, linger: float = 0.0
    ) -> None:
        errors, dispatch = engine.part("errors"), engine.part("dispatch")
        self.engine = engine
        self.boot = engine.boot()
        self.away = errors.Unavailable("it is away")
        self.database = Shaky(engine.database(patience), self.away)
        self.events: list[tuple[str, str]] = []
        self.fit: Callable[[], bool] = lambda: True
        self.ledger = engine.part("ledger").Ledger(
            self.boot,
            self.database,
            dispatch.Dispatcher(engine.database(), None),
            mine=nobody,
            fit=lambda: self.fit(),
            register=lambda claim: self.events.append(("registered", claim.id)),
            deliver=lambda calls: [call() for call in calls],
            linger=linger,
        )

    def claim(self, *messages: Any) -> dict[str, Any]:
        """Claims these messages as one batch."""
        answers: dict[str, Any] = {}

        def reply(id_: str) -> Callable[[Any], None]:
            def answer(claim: Any) -> None:
                self.events.append(("answered", id_))
                answers[id_] = claim

            return answer

        item = self.engine.part("claimer").Request
        self.ledger._claimer.write([item(m, reply(m.id)) for m in messages])
        return answers

    def finish(self, *endings: Any) -> dict[str, str | None]:
        """Writes these endings as one batch."""
        states: dict[str, str | None] = {}

        def done(id_: str) -> Callable[[str | None], None]:
            return lambda state: states.__setitem__(id_, state)

        item = self.engine.part("finisher").Finish
        self.ledger._finisher.write([item(e, done(e.id)) for e in endings])
        return states

    def both(self, claim: Any, message: Any) -> tuple[str | None, Any]:
        """Completes one and claims the other, as one batch; what was answered."""
        answers: list[Any] = []
        finish = self.engine.part("finisher").Finish
        request = self.engine.part("claimer").Request
        self.database.begun = 0
        self.ledger._write_jobs(
            [finish(self.completed(claim), answers.append)],
            [request(message, answers.append)],
        )
        state, claimed = answers
        return state, claimed

    def completed(self, claim: Any, result: object = None) -> Any:
        return self.engine.outcomes.completed(
            self.engine.held(claim, self.boot), result
        )


@pytest.fixture
def stage(engine: Engine) -> Stage:
    return Stage(engine)


def test_registered_before_it_is_answered(stage: Stage) -> None:
    """Nobody, the beat neither, ever sees an active row that this process denies."""
    first, second = stage.engine.dispatched(), stage.engine.dispatched()
    answers = stage.claim(first, second)
    assert set(answers) == {first.id, second.id}
    assert [what for what, _ in stage.events] == ["registered"] * 2 + ["answered"] * 2


def test_endings_wait_for_the_database(stage: Stage) -> None:
    """Away for two tries: the same ending is written by the third."""
    claim = stage.engine.claimed(stage.boot)
    stage.database.before = 2
    assert stage.finish(stage.completed(claim, 7)) == {claim.id: "completed"}
    assert stage.engine.row(claim.id)["result"] == 7


def test_an_ending_whose_reply_was_lost(stage: Stage) -> None:
    """Committed, and nobody heard: repeated, it is known as done."""
    claim = stage.engine.claimed(stage.boot)
    stage.database.after = 1
    assert stage.finish(stage.completed(claim, 7)) == {claim.id: "completed"}


def test_one_bad_ending_spoils_no_batch(stage: Stage) -> None:
    """What the database refuses is written by itself; its neighbours are as they were."""
    engine = stage.engine
    one, bad, two = (engine.claimed(stage.boot) for _ in range(3))
    refused = engine.part("endings").Ending(
        id=bad.id, fence=bad.fence, attempt=1, state="finished", outcome="finished"
    )
    states = stage.finish(stage.completed(one), refused, stage.completed(two))
    assert (states[one.id], states[two.id]) == ("completed", "completed")
    assert states[bad.id] is None
    assert engine.row(bad.id)["state"] == "active"


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_result_that_is_refused_ends_its_job(stage: Stage) -> None:
    """The job was done: it is completed with the beginning of its result, not run again."""
    claim = stage.engine.claimed(stage.boot)
    ending = stage.engine.part("endings").Ending(
        id=claim.id,
        fence=claim.fence,
        attempt=1,
        state="completed",
        outcome="completed",
        result='"half a text',
    )
    assert stage.finish(ending) == {claim.id: "completed"}
    assert stage.engine.row(claim.id)["result"]["$begins"] == '"half a text'


def test_who_cannot_beat_claims_nothing(stage: Stage) -> None:
    """The claim waits; when the process stops instead, another may have the row."""
    message = stage.engine.dispatched()

    def fit() -> bool:
        stage.ledger.stop_claiming()
        return False

    stage.fit = fit
    assert stage.claim(message) == {message.id: None}
    row = stage.engine.row(message.id)
    assert (row["state"], row["attempt"], row["dispatched_at"]) == ("queued", 0, None)


def test_what_a_drain_has_taken_is_given_back(stage: Stage) -> None:
    """Taken off Redis and not claimed: no sweep is needed to find it."""
    message = stage.engine.dispatched()
    stage.ledger.stop_claiming()
    assert stage.claim(message) == {message.id: None}
    assert stage.engine.row(message.id)["dispatched_at"] is None


def test_two_messages_of_one_row_in_a_batch(stage: Stage) -> None:
    """The newest is claimed, once; the other is answered with nothing."""
    engine = stage.engine
    old = engine.dispatched()
    with engine.transaction() as tx:
        engine.record.undispatch(tx, [old])
    (new,) = engine.dispatch()
    got: list[Any] = []
    item = engine.part("claimer").Request
    stage.ledger._claimer.write([item(m, got.append) for m in (old, new, new)])
    assert [claim is not None for claim in got] == [False, True, False]
    assert engine.row(new.id)["attempt"] == 1


def test_a_claim_is_pending_while_it_is_written(stage: Stage) -> None:
    """So the beat, which looks meanwhile, does not take it for a stray."""
    message = stage.engine.dispatched()
    seen: list[bool] = []

    def fit() -> bool:
        seen.append(stage.ledger.pending(message.id))
        return True

    stage.fit = fit
    answered = threading.Event()
    stage.ledger.claim(message, lambda _claim: answered.set())
    stage.ledger.start()
    assert answered.wait(30)
    assert stage.ledger.close(10)
    assert seen == [True]
    assert not stage.ledger.pending(message.id)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_locked_row_holds_up_no_other(engine: Engine) -> None:
    """Somebody's open transaction has one row: the others of its batch are written."""
    stage = Stage(engine, patience=0.3)
    one, locked, two = (engine.claimed(stage.boot) for _ in range(3))
    ended = threading.Event()
    with psycopg.connect(engine.package.database_url) as other:
        other.execute("SELECT id FROM jobs WHERE id = %s FOR UPDATE", [locked.id])
        states = stage.finish(*(stage.completed(each) for each in (one, locked, two)))
        assert states == {one.id: "completed", two.id: "completed"}
    stage.ledger.finish(stage.completed(locked), lambda _state: ended.set())
    stage.ledger.start()
    assert ended.wait(30)
    assert stage.ledger.close(10)
    assert engine.row(locked.id)["state"] == "completed"


def test_an_ending_and_the_next_claim_share_a_commit(stage: Stage) -> None:
    """Both are written; the ending before the claim, as their rows are locked."""
    ended, message = stage.engine.claimed(stage.boot), stage.engine.dispatched()
    state, claimed = stage.both(ended, message)
    assert (state, claimed.id, stage.database.begun) == ("completed", message.id, 1)
    states = [stage.engine.row(each.id)["state"] for each in (ended, message)]
    assert states == ["completed", "active"]


def test_a_row_before_the_one_that_ends_is_claimed_by_itself(stage: Stage) -> None:
    """Everybody locks rows in the order of their ids: so does this."""
    message, ended = stage.engine.dispatched(), stage.engine.claimed(stage.boot)
    state, claimed = stage.both(ended, message)
    assert (state, claimed.id, stage.database.begun) == ("completed", message.id, 2)


def test_a_shared_commit_whose_reply_was_lost(stage: Stage) -> None:
    """Repeated, each by itself: the ending is known as done, the claim is taken over."""
    ended, message = stage.engine.claimed(stage.boot), stage.engine.dispatched()
    stage.database.after = 1
    state, claimed = stage.both(ended, message)
    assert (state, claimed.id) == ("completed", message.id)
    assert stage.engine.row(message.id)["attempt"] == 1


def test_an_ending_waits_for_a_claim_that_came_the_last_time(engine: Engine) -> None:
    """The first one waits for nobody; the second shares its commit with the claim."""
    stage = Stage(engine, linger=30.0)
    first, second = (engine.claimed(stage.boot) for _ in range(2))
    messages = engine.dispatched(), engine.dispatched()
    stage.database.begun = 0
    stage.ledger.start()
    for ended, message in zip((first, second), messages, strict=True):
        written, claimed = threading.Event(), threading.Event()
        stage.ledger.finish(stage.completed(ended), lambda _s, w=written: w.set())
        if ended is first:
            assert written.wait(20)
        stage.ledger.claim(message, lambda _c, c=claimed: c.set())
        assert claimed.wait(20) and written.wait(20)
    assert stage.ledger.close(10)
    assert stage.database.begun == 3


def test_progress_is_the_holders(stage: Stage) -> None:
    """An old holder writes none over that of the attempt that runs now."""
    engine = stage.engine
    old = engine.claimed(stage.boot)
    engine.finish(engine.outcomes.released(engine.held(old, stage.boot)))
    new = engine.claimed_again(stage.boot, old.id)
    note = engine.part("ledger")._Progress
    stage.ledger._write_progress([note(new.id, new.fence, '{"value": 2}')])
    stage.ledger._write_progress([note(old.id, old.fence, '{"value": 1}')])
    assert engine.row(old.id)["progress"] == {"value": 2}
