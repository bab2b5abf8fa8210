"""Pause and resume; jobs that are too late; routing to another queue."""

from __future__ import annotations

import pytest
from engine.limits.desk import Desk
from engine.units import instant


def test_a_paused_queue_starts_nothing(desk: Desk) -> None:
    """Nothing is published or claimed, no attempt is used; resumed, it goes on."""
    pauses = desk.part("pauses")
    taken, waits = desk.put("free", 2)
    messages = desk.marked([taken])
    assert pauses.pause("default", "Ada", "a fault") == {"paused": ["default"]}
    claims = desk.claim(messages)
    assert claims.refused == [taken]
    assert desk.reasons([taken, waits]) == {
        ("queued", "paused"): 1,
        ("queued", None): 1,
    }
    assert desk.row(taken)["attempt"] == 0
    assert desk.fill() == []
    late = desk.engine.api.enqueue(desk.engine.api.Free(n=3)).id
    assert desk.row(late)["dispatched_at"] is None
    assert desk.engine.api.publish([late]) == 0
    (other,) = desk.put("free", queue="wide")
    assert [message.id for message in desk.fill()] == [other]
    assert pauses.resume("default", "Ada") == {"paused": []}
    assert {message.id for message in desk.fill()} == {taken, waits, late}


def test_the_write_of_a_claim_tests_the_pause(desk: Desk) -> None:
    """It was paused between the look under lock and the write."""
    (message,) = desk.marked(desk.put("free"))
    desk.part("pauses").pause("default", "Ada")
    batch = f'[{{"id": "{message.id}", "dispatch": {message.dispatch}}}]'
    assert desk.engine.ask("CLAIM_WRITE", boot=desk.boot, batch=batch) == []


def test_a_pause_holds_for_former_names(desk: Desk) -> None:
    """Rows under an alias wait as well, and the alias names the queue."""
    (id_,) = desk.put("free", queue="narrow")
    desk.engine.package.sql("UPDATE jobs SET queue = 'slim' WHERE id = ?", id_)
    assert desk.part("pauses").pause("slim", "Ada") == {"paused": ["narrow"]}
    assert desk.fill() == []
    assert desk.claim(desk.marked([id_])).refused == [id_]


def test_a_paused_agent_starts_none_of_its_jobs(desk: Desk) -> None:
    """In any queue; a job without an agent passes."""
    pauses = desk.part("pauses")
    (paid,) = desk.put("paid")
    (free,) = desk.put("free")
    assert pauses.pause("writer", "Ada") == {"paused": ["writer"]}
    assert [message.id for message in desk.fill()] == [free]
    assert desk.claim(desk.marked([paid])).refused == [paid]
    assert desk.reasons([paid]) == {("queued", "paused"): 1}
    pauses.resume("agent:writer", "Ada")
    desk.engine.make_due(paid)
    assert [message.id for message in desk.fill()] == [paid]


def test_a_pause_is_seen_and_remembered(desk: Desk) -> None:
    """In `status`, and as a decision with its name and reason; `health` is not alarmed."""
    desk.put("free")
    desk.part("pauses").pause("queue:default", "Ada", "a fault")
    now = desk.part("operations").status()
    assert now["paused"] == ["default"]
    assert now["queues"]["default"]["paused"] is True
    assert now["queues"]["wide"]["paused"] is False
    decided = desk.engine.package.sql(
        "SELECT kind, subject, by, note FROM jobs_decisions"
    )
    assert [tuple(row.values()) for row in decided] == [
        ("pause", "queue:default", "Ada", "a fault")
    ]
    assert desk.part("operations").due(("default",)) == 0
    assert desk.part("health")._waiting() == []


def test_only_what_exists_is_paused(desk: Desk) -> None:
    """The refusal names what there is."""
    with pytest.raises(
        desk.part("errors").NotFound, match="default, narrow, rated, wide"
    ):
        desk.part("pauses").pause("defualt", "Ada")


# --- too late ----------------------------------------------------------------------


def test_a_job_that_has_not_started_in_time_fails(desk: Desk) -> None:
    """By the sweep or by a claim, whichever is first; what follows a failure follows."""
    swept, claimed = desk.put("brisk", 2)
    messages = desk.marked([claimed])
    expire(desk)
    assert desk.fill() == []
    desk.claim(messages)
    assert desk.row(claimed)["reason"] == "expired"
    sweep(desk)
    for id_ in (swept, claimed):
        row = desk.row(id_)
        assert (row["state"], row["reason"], row["attempt"]) == ("failed", "expired", 0)
    followers = desk.engine.package.sql(
        "SELECT id FROM jobs WHERE job = 'brisk.on_failed'"
    )
    assert len(followers) == 2
    assert len(desk.fill()) == 2


def test_the_write_of_a_claim_tests_the_expiry(desk: Desk) -> None:
    """It came too late between the look under lock and the write."""
    (message,) = desk.marked(desk.put("brisk"))
    expire(desk)
    batch = f'[{{"id": "{message.id}", "dispatch": {message.dispatch}}}]'
    assert desk.engine.ask("CLAIM_WRITE", boot=desk.boot, batch=batch) == []


def test_what_has_started_once_is_never_too_late(desk: Desk) -> None:
    """A retry after the hour: it had started in time."""
    (id_,) = desk.put("brisk")
    claim = desk.claim(desk.fill()).admitted[id_]
    held = desk.engine.held(claim, desk.boot)
    desk.engine.finish(desk.engine.outcomes.released(held))
    expire(desk)
    sweep(desk)
    desk.engine.make_due(id_)
    assert id_ in desk.claim(desk.fill()).admitted


def test_a_replay_of_what_came_too_late_runs(desk: Desk) -> None:
    """A person wants it run, late as it is."""
    (id_,) = desk.put("brisk")
    expire(desk)
    sweep(desk)
    letters = desk.part("dead_letters")
    letters.approve(desk.row(id_)["cause"], by="Ada", note="run it", limit=1)
    assert letters.replay(desk.row(id_)["cause"], by="Ada")["replayed"] == [id_]
    desk.engine.make_due(id_)
    sweep(desk)
    assert id_ in desk.claim(m for m in desk.fill() if m.id == id_).admitted


def test_the_time_counts_from_when_it_is_due(desk: Desk) -> None:
    """Not from the enqueue: a job for tomorrow is not late today."""
    (id_,) = desk.put("brisk", delay=7200)
    row = desk.row(id_)
    late = row["expires_at"] - row["run_at"]
    assert late == 3_600_000 if isinstance(late, int) else late.total_seconds() == 3600


def expire(desk: Desk) -> None:
    """The hour is over."""
    at = instant(desk.engine.package.dialect)
    desk.engine.package.sql(f"UPDATE jobs SET expires_at = {at}")


def sweep(desk: Desk) -> None:
    recovery = desk.part("recovery")
    sweeper = recovery.Sweeper(desk.engine.database(), None)
    sweeper._expire(recovery.Counts())


# --- routing -----------------------------------------------------------------------


def test_a_job_may_be_sent_to_another_queue(desk: Desk) -> None:
    """Any that the spec declares, by a former name too; another is refused."""
    assert desk.row(desk.put("free", queue="wide")[0])["queue"] == "wide"
    assert desk.row(desk.put("free", queue="slim")[0])["queue"] == "narrow"
    with pytest.raises(desk.part("errors").Refused, match="there is no queue 'other'"):
        desk.put("free", queue="other")
