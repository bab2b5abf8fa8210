"""Every write of the record tests again what was true when it was decided.

Claims, endings, marks and replays, one transaction each and in a stated order: whatever
a stale list, an old holder or a lost reply asks for is refused by the statement itself.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from engine import faults
from engine.units import Engine, instant

# --- the fence ------------------------------------------------------------------


@pytest.mark.parametrize("way", ["complete", "retry", "cancel"])
def test_an_old_holder_ends_nothing(engine: Engine, way: str) -> None:
    """A process that was given up comes back after the next attempt has begun."""
    old, new = engine.boot(), engine.boot()
    first = engine.claimed(old)
    held = engine.held(first, old)
    engine.finish(engine.outcomes.released(held))
    second = engine.claimed_again(new, first.id)
    job = engine.job["work"]
    late = {
        "complete": engine.outcomes.completed(held, "late"),
        "retry": engine.outcomes.raised(held, job, RuntimeError("late")),
        "cancel": engine.outcomes.cancelled(held),
    }[way]
    assert engine.finish(late) == {}
    row = engine.row(first.id)
    assert (row["state"], row["worker"], row["attempt"]) == ("active", new, 2)
    ending = engine.outcomes.completed(engine.held(second, new), "right")
    assert engine.finish(ending) == {first.id: "completed"}
    assert engine.row(first.id)["result"] == "right"


def test_so_many_429s_and_no_more(engine: Engine) -> None:
    """They use no attempt, so they have a bound of their own: the row counts them."""
    boot, job = engine.boot(), engine.job["work"]
    said = engine.part("errors").Throttled("429", 1.0)
    most = engine.outcomes.MOST_THROTTLES
    id_ = engine.put()
    engine.package.sql(
        "UPDATE jobs SET attempt = ?, throttles = ? WHERE id = ?",
        most - 1,
        most - 1,
        id_,
    )
    states = []
    for _ in range(2):
        claim = engine.claimed_again(boot, id_)
        assert claim.used == 1
        engine.finish(
            engine.outcomes.ended_by_call(engine.held(claim, boot), job, said)
        )
        row = engine.row(id_)
        states.append((row["state"], row["reason"], row["throttles"]))
    assert most == 100
    assert states == [
        ("queued", "throttled", most),
        ("failed", "waited_out", most),
    ]


def test_a_row_that_waits_has_no_end(engine: Engine) -> None:
    """Never from queued to completed, or to another attempt, whatever the fence."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    engine.finish(engine.outcomes.released(engine.held(claim, boot)))
    before = engine.row(claim.id)
    fence = before["fence"]
    values = {"id": claim.id, "fence": fence, "attempt": 1}
    ending = engine.part("endings").Ending
    good = ending(**values, state="completed", outcome="completed", result="1")
    bad = ending(**values, state="queued", outcome="raised", worker=boot, delay=5.0)
    assert engine.finish(good) == {}
    assert engine.finish(bad) == {}
    assert engine.row(claim.id) == before


def test_an_ending_is_told_again(engine: Engine) -> None:
    """The commit's reply was lost: the same ending is known as done, another is not."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    ending = engine.outcomes.completed(engine.held(claim, boot), 1)
    assert engine.finish(ending) == {claim.id: "completed"}
    assert engine.finish(ending) == {}
    other = engine.outcomes.cancelled(engine.held(claim, boot))
    with engine.transaction() as tx:
        assert engine.record.ended_already(tx, ending)
        assert not engine.record.ended_already(tx, other)


# --- the claim ------------------------------------------------------------------


def test_a_claim_counts_its_attempt(engine: Engine) -> None:
    """The attempt is in the row before the handler begins."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    row = engine.row(claim.id)
    assert (row["attempt"], row["state"], row["worker"]) == (1, "active", boot)
    assert (claim.attempt, claim.used, claim.fence) == (1, 1, row["fence"])
    assert row["dispatched_at"] is None


def test_only_the_newest_dispatch_starts_a_row(engine: Engine) -> None:
    """A message of an earlier dispatch is dropped, and takes no mark back."""
    old = engine.dispatched()
    with engine.transaction() as tx:
        assert engine.record.undispatch(tx, [old]) == 1
    (new,) = engine.dispatch()
    assert (old.dispatch, new.dispatch) == (1, 2)
    boot = engine.boot()
    before = engine.row(old.id)
    claims = engine.claims(old, boot=boot)
    assert (claims.admitted, claims.dropped) == ({}, [old.id])
    with engine.transaction() as tx:
        assert engine.record.undispatch(tx, [old]) == 0
    assert engine.row(old.id) == before
    assert old.id in engine.claims(new, boot=boot).admitted


def admit(engine: Engine, boot: str, id_: str, dispatch: int) -> list[str]:
    """What the write of a claim admits when its look was wrong."""
    batch = json.dumps([{"id": id_, "dispatch": dispatch, "timeout": None}])
    return [str(r["id"]) for r in engine.ask("CLAIM_WRITE", boot=boot, batch=batch)]


def test_the_write_of_a_claim_tests_its_dispatch(engine: Engine) -> None:
    boot = engine.boot()
    message = engine.dispatched()
    assert admit(engine, boot, message.id, message.dispatch + 1) == []
    assert admit(engine, boot, message.id, message.dispatch) == [message.id]


def test_the_write_of_a_claim_tests_the_state(engine: Engine) -> None:
    """Another process was faster: the row is its own, under the same dispatch."""
    boot, other = engine.boot(), engine.boot()
    message = engine.dispatched()
    assert admit(engine, other, message.id, message.dispatch) == [message.id]
    assert admit(engine, boot, message.id, message.dispatch) == []
    assert engine.row(message.id)["worker"] == other


def test_the_write_of_a_claim_tests_the_time(engine: Engine) -> None:
    boot = engine.boot()
    message = engine.dispatched()
    later = instant(engine.package.dialect, 60)
    engine.package.sql(f"UPDATE jobs SET run_at = {later} WHERE id = ?", message.id)
    assert admit(engine, boot, message.id, message.dispatch) == []


def test_a_message_that_came_early(engine: Engine) -> None:
    """The row is not due any more: its mark is taken back, and it waits its time."""
    boot = engine.boot()
    message = engine.dispatched()
    later = instant(engine.package.dialect, 60)
    engine.package.sql(f"UPDATE jobs SET run_at = {later} WHERE id = ?", message.id)
    run_at = engine.row(message.id)["run_at"]
    claims = engine.claims(message, boot=boot)
    assert (claims.admitted, claims.refused) == ({}, [message.id])
    row = engine.row(message.id)
    assert (row["state"], row["dispatched_at"], row["run_at"]) == (
        "queued",
        None,
        run_at,
    )


def test_the_dead_claim_nothing(engine: Engine) -> None:
    """A boot that was declared dead, or that nobody has heard of, starts no job."""
    message = engine.dispatched()
    dead = engine.boot(dead=True)
    nobody = "00000000-0000-4000-8000-000000000000"
    for boot in (dead, nobody):
        assert engine.claims(message, boot=boot).admitted == {}
    assert engine.row(message.id)["state"] == "queued"
    assert message.id in engine.claims(message, boot=engine.boot()).admitted


def test_a_claim_whose_reply_was_lost(engine: Engine) -> None:
    """The same message again, and this process does not run it: adopted, not counted."""
    boot = engine.boot()
    message = engine.dispatched()
    first = engine.claims(message, boot=boot).admitted[message.id]
    again = engine.claims(message, boot=boot)
    assert list(again.admitted) == [message.id], again
    adopted = again.admitted[message.id]
    assert (adopted.fence, adopted.attempt) == (first.fence, 1)
    assert engine.row(message.id)["attempt"] == 1
    other = engine.claims(message, boot=engine.boot())
    assert (other.admitted, other.dropped) == ({}, [message.id])


def test_a_message_that_came_twice(engine: Engine) -> None:
    """This process runs the row already: the second message starts nothing."""
    boot = engine.boot()
    message = engine.dispatched()
    assert engine.claims(message, boot=boot).admitted
    again = engine.claims(message, boot=boot, mine=lambda id_: id_ == message.id)
    assert (again.admitted, again.dropped) == ({}, [message.id])


# --- what uses an attempt --------------------------------------------------------


def test_defers_use_no_attempt(engine: Engine) -> None:
    """Three defers of a job with one try; its one failure is its end."""
    boot = engine.boot()
    job = engine.job["single"]
    claim = engine.claimed(boot, engine.api.Single(n=1))
    for n in range(3):
        assert claim.used == 1, f"after {n} defers"
        ending = engine.outcomes.raised(
            engine.held(claim, boot), job, engine.api.Defer(0)
        )
        assert engine.finish(ending) == {claim.id: "queued"}
        claim = engine.claimed_again(boot, claim.id)
    assert (claim.attempt, claim.used, claim.defers) == (4, 1, 3)
    again = engine.outcomes.raised(engine.held(claim, boot), job, engine.api.Defer(0))
    assert (again.state, again.reason) == ("failed", "waited_out")
    ending = engine.outcomes.raised(engine.held(claim, boot), job, RuntimeError())
    assert (ending.state, ending.reason) == ("failed", "exhausted")


def test_twenty_releases_use_no_attempt(engine: Engine) -> None:
    """From then on each uses one: a job that never ends in time ends all the same."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    used = [claim.used]
    while engine.row(claim.id)["state"] == "active":
        engine.finish(engine.outcomes.released(engine.held(claim, boot)))
        if engine.row(claim.id)["state"] == "queued":
            claim = engine.claimed_again(boot, claim.id)
            used.append(claim.used)
        assert len(used) < 50, "it is released for ever"
    assert used == [1] * 21 + [2, 3]
    row = engine.row(claim.id)
    assert (row["state"], row["reason"]) == ("failed", "exhausted")


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_the_tries_are_the_limit(engine: Engine) -> None:
    """A failure, a deadline and a lost worker each use one of three."""
    boot = engine.boot()
    job = engine.job["work"]
    outcomes = engine.outcomes
    claim = engine.claimed(boot)
    for attempt in (1, 2, 3):
        held = engine.held(claim, boot)
        endings = [
            outcomes.raised(held, job, RuntimeError()),
            outcomes.timed_out(held, job),
            outcomes.lost(held),
        ]
        expected = "queued" if attempt < 3 else "failed"
        assert {ending.state for ending in endings} == {expected}, attempt
        engine.finish(endings[0])
        if attempt < 3:
            claim = engine.claimed_again(boot, claim.id)
    assert engine.row(claim.id)["attempt"] == 3


# --- the way back to the queue ---------------------------------------------------


@pytest.mark.parametrize("way", ["retry", "release", "defer"])
def test_a_cancel_ends_every_way_back(engine: Engine, way: str) -> None:
    """Asked for while it ran: what would queue it again cancels it."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    with engine.transaction() as tx:
        assert engine.record.cancel(tx, claim.id, "me") == "cancelling"
    assert engine.row(claim.id)["state"] == "active"
    held = engine.held(claim, boot)
    job = engine.job["work"]
    ending = {
        "retry": engine.outcomes.raised(held, job, RuntimeError()),
        "release": engine.outcomes.released(held),
        "defer": engine.outcomes.raised(held, job, engine.api.Defer(1)),
    }[way]
    assert engine.finish(ending) == {claim.id: "cancelled"}
    row = engine.row(claim.id)
    assert row["cancelled_by"] == "me"
    assert row["finished_at"] is not None


def test_max_elapsed_counts_from_the_first_start(engine: Engine) -> None:
    """The next attempt would begin too late: the row fails now."""
    boot = engine.boot()
    early, late = engine.claimed(boot), engine.claimed(boot)
    past = instant(engine.package.dialect, -100)
    sql = f"UPDATE jobs SET first_started_at = {past} WHERE id = ?"
    engine.package.sql(sql, late.id)

    def ending(claim: Any) -> Any:
        return engine.part("endings").Ending(
            id=claim.id,
            fence=claim.fence,
            attempt=1,
            state="queued",
            outcome="raised",
            worker=boot,
            started_at=claim.started_at,
            reason="retry",
            cause="0123456789ab",
            delay=10.0,
            max_elapsed=60.0,
        )

    states = engine.finish(ending(early), ending(late))
    assert states == {early.id: "queued", late.id: "failed"}
    row = engine.row(late.id)
    assert (row["reason"], row["cause"]) == ("waited_out", "0123456789ab")


def test_the_order_of_a_queue(engine: Engine) -> None:
    """High before normal before low, whichever came first, and after a retry too."""
    low, normal, high = (
        engine.put(priority=priority) for priority in ("low", "normal", "high")
    )
    messages = engine.dispatch()
    assert [message.id for message in messages] == [high, normal, low]
    boot = engine.boot()
    claims = engine.claims(*messages, boot=boot).admitted
    for id_ in (low, normal, high):
        engine.finish(engine.outcomes.released(engine.held(claims[id_], boot)))
        time.sleep(0.002)
    again = [message.id for message in engine.dispatch()]
    assert again == [high, normal, low]


# --- the window ------------------------------------------------------------------


def test_the_window_is_a_limit(engine: Engine) -> None:
    """What is outstanding counts: a second round finds no room."""
    for n in range(20):
        engine.put(engine.api.Work(n=n))
    assert len(engine.dispatch(target=6)) == 6
    assert engine.dispatch(target=6) == []
    assert len(engine.dispatch(target=8)) == 2


def test_an_enqueue_keeps_to_the_window(engine: Engine) -> None:
    """Four rows beyond the living slots are published at once, the rest wait."""
    engine.boot(slots=2)
    engine.boot(slots=3, dead=True)
    many = engine.api.enqueue_many([engine.api.Work(n=n) for n in range(20)])
    engine.api.enqueue(engine.api.Work(n=20))
    assert len(many) == 20
    marked = engine.package.rows("dispatched_at IS NOT NULL")
    assert len(marked) == 6
    assert engine.waiting() == 6


def test_rows_of_unknown_jobs_are_passed_over(engine: Engine) -> None:
    """No living worker knows the job, or only an older version: it is not published."""
    engine.put()
    assert engine.dispatch(jobs="{}") == []
    assert engine.dispatch(jobs='{"work": 0}') == []
    assert len(engine.dispatch(jobs='{"work": 1}')) == 1


# --- enqueue ---------------------------------------------------------------------


def test_one_unfinished_job_per_key(engine: Engine) -> None:
    """The index says it, whoever looked before: a twin is answered with its state."""
    first = engine.put(engine.api.Alone(n=1, note="a"))
    again = engine.api.enqueue(engine.api.Alone(n=1, note="b"))
    assert tuple(again) == (first, False, "queued")
    other = engine.api.enqueue(engine.api.Alone(n=2))
    assert other.created
    assert len(engine.package.rows()) == 2


def test_a_key_stands_for_one_payload(engine: Engine) -> None:
    """The same key and payload: the same id.  Another payload raises, and adds nothing."""
    work = engine.api.Work
    first = engine.api.enqueue(work(n=1), key="order 1")
    again = engine.api.enqueue(work(n=1), key="order 1")
    assert (again.id, again.created) == (first.id, False)
    with pytest.raises(engine.part("errors").KeyConflict):
        engine.api.enqueue(work(n=2), key="order 1")
    assert len(engine.package.rows()) == 1


def test_nothing_of_a_callers_transaction_is_published(engine: Engine) -> None:
    """Neither marked nor pushed before the caller commits; `publish` is for after."""
    id_ = engine.put()
    row = engine.row(id_)
    assert (row["dispatch"], row["dispatched_at"]) == (0, None)
    assert engine.waiting() == 0
    assert engine.api.publish([id_]) == 1
    assert engine.waiting() == 1


# --- cancel, replay ---------------------------------------------------------------


def test_a_job_that_runs_is_only_asked_to_stop(engine: Engine) -> None:
    """Its worker ends it; a job that waits is cancelled at once, and stays so."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    waiting = engine.put()
    rows = engine.ask("CANCEL_WAITING", id=claim.id, by="me")
    assert rows == []
    with engine.transaction() as tx:
        assert engine.record.cancel(tx, claim.id, "me") == "cancelling"
        assert engine.record.cancel(tx, waiting, "me") == "cancelled"
        assert engine.record.cancel(tx, waiting, "me") == "already_finished"
    assert engine.row(claim.id)["state"] == "active"


def failed(engine: Engine, many: int) -> tuple[list[str], str]:
    """Rows that have failed with one cause, the oldest first."""
    boot = engine.boot()
    job = engine.job["single"]
    ids: list[str] = []
    for n in range(many):
        claim = engine.claimed(boot, engine.api.Single(n=n))
        error = RuntimeError(f"ticket {n} is broken")
        ending = engine.outcomes.raised(engine.held(claim, boot), job, error)
        assert engine.finish(ending) == {claim.id: "failed"}
        ids.append(claim.id)
        time.sleep(0.002)
    (cause,) = {engine.row(id_)["cause"] for id_ in ids}
    return ids, cause


def test_a_replay_needs_an_approval(engine: Engine) -> None:
    """Of what failed before it, and of no more rows than it says."""
    letters = engine.part("dead_letters")
    ids, cause = failed(engine, 3)
    assert letters.replay(cause, by="me")["replayed"] == []
    letters.approve(cause, by="you", note="fixed", limit=2)
    time.sleep(0.002)
    later, same = failed(engine, 1)
    assert same == cause
    answer = letters.replay(cause, by="me")
    assert answer["replayed"] == ids[:2]
    assert {each["id"] for each in answer["refused"]} == {ids[2], *later}
    assert letters.replay(cause, by="me")["replayed"] == []
    letters.approve(cause, by="you", note="fixed again", limit=10)
    assert letters.replay(cause, by="me")["replayed"] == [ids[2], *later]


def test_what_failed_after_the_approval_waits_for_another(engine: Engine) -> None:
    letters = engine.part("dead_letters")
    ids, cause = failed(engine, 1)
    letters.approve(cause, by="you", note="fixed", limit=10)
    time.sleep(0.002)
    later, _ = failed(engine, 1)
    answer = letters.replay(cause, by="me")
    assert answer["replayed"] == ids
    assert [each["id"] for each in answer["refused"]] == later


def test_a_replay_of_an_old_list(engine: Engine) -> None:
    """The row was replayed and has failed again since the list was read."""
    ids, _ = failed(engine, 1)
    row = engine.row(ids[0])
    replay = {"id": row["id"], "tries": 5, "delay": 0, "bonus": 0}
    old = json.dumps([replay | {"fence": row["fence"] - 1}])
    assert engine.ask("REPLAY", batch=old) == []
    assert engine.row(ids[0]) == row
    now = json.dumps([replay | {"fence": row["fence"]}])
    assert len(engine.ask("REPLAY", batch=now)) == 1
    assert engine.ask("REPLAY", batch=now) == []


def test_no_row_is_replayed_for_ever(engine: Engine) -> None:
    """`max_replays` is for life: three by default, then the row stays failed."""
    letters = engine.part("dead_letters")
    ids, cause = failed(engine, 1)
    engine.package.sql("UPDATE jobs SET replays = 2")
    letters.approve(cause, by="you", note="fixed", limit=10)
    assert letters.replay(cause, by="me")["replayed"] == ids
    engine.package.sql(
        "UPDATE jobs SET state = 'failed', finished_at = started_at, cause = ?", cause
    )
    answer = letters.replay(cause, by="me")
    assert answer["replayed"] == []
    assert [each["id"] for each in answer["refused"]] == ids


def test_a_handler_that_may_still_run(engine: Engine) -> None:
    """Recovery ended the attempt, and its process lives: no replay before it is gone."""
    letters = engine.part("dead_letters")
    boot = engine.boot()
    claim = engine.claimed(boot, engine.api.Single(n=1))
    ending = engine.outcomes.lost(engine.held(claim, boot))
    at = instant(engine.package.dialect, -60)
    engine.package.sql(f"UPDATE jobs SET deadline_at = {at}")
    assert engine.finish(ending) == {claim.id: "failed"}
    cause = engine.row(claim.id)["cause"]
    letters.approve(cause, by="you", note="fixed", limit=10)
    assert letters.replay(cause, by="me")["replayed"] == []
    with engine.transaction() as tx:
        tx.run(engine.statements.BOOT_END, boot=boot)
    assert letters.replay(cause, by="me")["replayed"] == [claim.id]


# --- rows that wait ----------------------------------------------------------------


def test_a_row_that_moved_is_not_failed(engine: Engine) -> None:
    """The sweep or a claim would fail it as unknown or unreadable: it runs by now."""
    message = engine.dispatched()
    boot = engine.boot()
    seen = engine.row(message.id)
    assert engine.claims(message, boot=boot).admitted
    running = engine.row(message.id)
    with engine.transaction() as tx:
        for row in (seen, running):
            assert not engine.record.fail_queued(tx, row, "unknown_job", "nobody")
    assert engine.row(message.id) == running


def test_a_row_that_came_back_is_not_failed(engine: Engine) -> None:
    """It ran in between and waits again: what was decided before does not count."""
    message = engine.dispatched()
    boot = engine.boot()
    seen = engine.row(message.id)
    claim = engine.claims(message, boot=boot).admitted[message.id]
    engine.finish(engine.outcomes.released(engine.held(claim, boot)))
    with engine.transaction() as tx:
        assert not engine.record.fail_queued(tx, seen, "unknown_job", "nobody")
    assert engine.row(message.id)["state"] == "queued"


HOUR = -3700


@pytest.mark.parametrize(
    ("payload", "version", "age", "state"),
    [
        ('{"n": 1, "lang": "de"}', None, 0, "queued"),  # by newer code
        ('{"lang": "de"}', None, 0, "queued"),  # a field has another name there
        ('{"n": 1, "lang": "de"}', None, HOUR, "failed"),  # no deploy takes so long
        ("{}", None, 0, "failed"),  # nobody reads it
        ('{"n": "x"}', None, 0, "failed"),
        ("{}", 0, 0, "queued"),  # older code reads it
        ("{}", 0, HOUR, "failed"),
    ],
    ids=["newer", "renamed", "late", "missing", "wrong", "older", "older-late"],
)
def test_what_another_version_reads_is_left_to_it(
    engine: Engine, payload: str, version: int | None, age: int, state: str
) -> None:
    """A row that does not fit here waits for the worker that it fits.  C103."""
    message = engine.dispatched()
    when = instant(engine.package.dialect, age)
    engine.package.sql(
        f"UPDATE jobs SET created_at = {when}, payload = ?, payload_version = ?"
        " WHERE id = ?",
        payload,
        engine.job["work"].version if version is None else version,
        message.id,
    )
    claims = engine.claims(message, boot=engine.boot())
    row = engine.row(message.id)
    assert (row["state"], row["attempt"], claims.admitted) == (state, 0, {})
    assert row["reason"] == ("unsupported" if state == "queued" else "bad_payload")
    assert claims.refused == ([message.id] if state == "queued" else [])


def test_a_refusal_is_of_its_own_dispatch(engine: Engine) -> None:
    """The row was published again meanwhile: its new mark and time are let alone."""
    message = engine.dispatched()
    before = engine.row(message.id)
    refusal = {"id": message.id, "reason": "unsupported", "delay": 60_000}
    old = json.dumps([refusal | {"dispatch": message.dispatch + 1}])
    assert engine.ask("REFUSE", batch=old) == []
    assert engine.row(message.id) == before
    now = json.dumps([refusal | {"dispatch": message.dispatch}])
    assert len(engine.ask("REFUSE", batch=now)) == 1


def test_an_attempt_without_a_start_is_recovered(engine: Engine) -> None:
    """Somebody's script made the row active and gave it no time."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    engine.package.sql("UPDATE jobs SET started_at = NULL, first_started_at = NULL")
    with engine.transaction() as tx:
        tx.run(engine.statements.BOOT_END, boot=boot)
    (row,) = engine.ask("STRANDED")
    lost = engine.outcomes.lost(engine.outcomes.Held.of(row))
    assert engine.finish(lost) == {claim.id: "queued"}
    (kept,) = engine.package.sql("SELECT outcome FROM jobs_attempts")
    assert kept["outcome"] == lost.outcome


# --- transactions -------------------------------------------------------------------


@faults.on("postgresql")
def test_a_commit_that_rolls_back_is_an_error(engine: Engine) -> None:
    """PostgreSQL answers a COMMIT after an error as if all were well."""
    database, unavailable = engine.database(), engine.part("errors").Unavailable
    id_ = engine.put()
    with pytest.raises(unavailable, match="rolled back"), database.transaction() as tx:
        engine.record.cancel(tx, id_, "me")
        with contextlib.suppress(engine.part("database").DataError):
            tx.all("SELECT 1 / 0 AS no")
    assert engine.row(id_)["state"] == "queued"
    with database.transaction() as tx:
        assert engine.record.cancel(tx, id_, "me") == "cancelled"
    assert engine.row(id_)["state"] == "cancelled"


# --- retention ----------------------------------------------------------------------


def test_only_what_has_ended_long_ago_is_pruned(engine: Engine) -> None:
    """By state: how long ago a row has ended, never how old it is."""
    boot = engine.boot()
    waiting, runs = engine.put(), engine.claimed(boot)
    old, new = engine.claimed(boot), engine.claimed(boot)
    for claim in (old, new):
        engine.finish(engine.outcomes.completed(engine.held(claim, boot), None))
    past = instant(engine.package.dialect, -100)
    engine.package.sql(f"UPDATE jobs SET created_at = {past}")
    engine.package.sql(f"UPDATE jobs SET finished_at = {past} WHERE id = ?", old.id)
    with engine.transaction() as tx:
        tx.run(engine.statements.PRUNE, completed=60_000, failed=0, cancelled=0)
    left = {row["id"] for row in engine.package.rows()}
    assert left == {waiting, runs.id, new.id}
    with engine.transaction() as tx:  # None: for ever
        tx.run(engine.statements.PRUNE, completed=None, failed=None, cancelled=None)
    assert len(engine.package.rows()) == 3
