"""``max_running`` over the fleet: never exceeded, never leaking, never in the way."""

from __future__ import annotations

from typing import Any

import pytest
from engine.limits.desk import Desk

LIMITED: list[tuple[str, dict[str, Any], int]] = [
    ("free", {"queue": "narrow"}, 2),
    ("alone", {}, 1),
    ("keyed", {"who": "x"}, 2),
]
limited = pytest.mark.parametrize(
    "job, values, most", LIMITED, ids=["queue", "job", "value"]
)


@limited
def test_a_batch_starts_no_more_than_the_limit(
    desk: Desk, job: str, values: dict[str, Any], most: int
) -> None:
    """Taken together, they share the room; the others wait and have used no attempt."""
    ids = desk.put(job, 5, **values)
    claims = desk.claim(desk.marked(ids))
    assert len(claims.admitted) == most
    assert desk.reasons(ids) == {("active", None): most, ("queued", "busy"): 5 - most}
    assert {desk.row(id_)["attempt"] for id_ in claims.refused} == {0}
    assert {desk.row(id_)["dispatched_at"] for id_ in claims.refused} == {None}


@limited
def test_two_claims_at_once_start_no_more_than_the_limit(
    desk: Desk, job: str, values: dict[str, Any], most: int
) -> None:
    """The second begins while the first is not committed, and sees what it started."""
    messages = desk.marked(desk.put(job, 2 * most, **values))
    done = desk.raced(messages[:most], messages[most:])
    assert [len(claims.admitted) for claims in done] == [most, 0]


@limited
def test_a_dispatch_publishes_no_more_than_may_start(
    desk: Desk, job: str, values: dict[str, Any], most: int
) -> None:
    """What runs and what is published already is counted; what ended makes room."""
    desk.put(job, 5, **values)
    messages = desk.fill()
    assert len(messages) == most
    assert desk.fill() == []
    claims = desk.claim(messages)
    assert len(claims.admitted) == most
    assert desk.fill() == []
    desk.finish(list(claims.admitted.values())[:1])
    assert len(desk.fill()) == 1


@limited
def test_no_slot_leaks(desk: Desk, job: str, values: dict[str, Any], most: int) -> None:
    """A running row is deleted by hand, another's worker dies: their places are free."""
    desk.put(job, 6, **values)
    claims = list(desk.claim(desk.fill()).admitted)
    desk.engine.package.sql("DELETE FROM jobs WHERE id = ?", claims[0])
    again = desk.claim(desk.fill())
    assert len(again.admitted) == 1
    recovery = desk.part("recovery")
    sweeper = recovery.Sweeper(desk.engine.database(), _NoBroker())
    with desk.engine.transaction() as tx:
        tx.run(desk.engine.statements.BOOT_END, boot=desk.boot)
    desk.boot = desk.start()
    counts = recovery.Counts()
    sweeper._recover(counts)
    assert counts.recovered == most
    assert len(desk.claim(desk.fill()).admitted) == most


class _NoBroker:
    """Nothing of these tests asks Redis."""


def test_each_value_has_a_room_of_its_own(desk: Desk) -> None:
    """Two of each of three values run; the null of a missing field would be one more."""
    for who in ("x", "y", "z"):
        desk.put("keyed", 4, who=who)
    claims = desk.claim(desk.fill()).admitted.values()
    assert sorted(claim.payload.who for claim in claims) == [
        "x",
        "x",
        "y",
        "y",
        "z",
        "z",
    ]


def test_a_queue_counts_the_rows_of_its_former_names(desk: Desk) -> None:
    """Rows that wait under an alias run in the same two places."""
    ids = desk.put("free", 4, queue="narrow")
    for id_ in ids[:2]:
        desk.engine.package.sql("UPDATE jobs SET queue = 'slim' WHERE id = ?", id_)
    claims = desk.claim(desk.marked(ids))
    assert len(claims.admitted) == 2
    assert desk.fill() == []


def test_rows_that_cannot_start_take_no_place_in_the_window(desk: Desk) -> None:
    """A thousand rows of a full value stand before one of another, which is next."""
    desk.put("keyed", 1000, who="full")
    running = desk.claim(desk.fill())
    assert len(running.admitted) == 2
    (free,) = desk.put("free")
    (other,) = desk.put("keyed", who="other")
    assert {message.id for message in desk.fill()} == {free, other}


def test_running_keys_beyond_one_look_are_found(desk: Desk) -> None:
    """Each of 40 values is full and has 25 urgent rows; the next value is reached."""
    for n in range(40):
        desk.claim(desk.marked(desk.put("keyed", 2, who=f"full {n:02}")))
        desk.put("keyed", 25, who=f"full {n:02}", priority="high")
    (free,) = desk.put("keyed", who="next")
    assert [message.id for message in desk.fill()] == [free]


def test_a_row_of_before_there_were_limits_runs(desk: Desk) -> None:
    """It has no lane and no running key: it is published, and counted from its claim."""
    ids = desk.put("keyed", 3, who="x")
    desk.engine.package.sql(
        "UPDATE jobs SET lane = NULL, running_key = NULL, tenant = NULL"
    )
    claims = desk.claim(desk.fill())
    assert len(claims.admitted) == 2
    (waits,) = set(ids) - set(claims.admitted)
    assert desk.row(waits)["reason"] == "busy"
    assert {desk.row(id_)["running_key"] for id_ in claims.admitted} == {'keyed:"x"'}


def test_the_most_urgent_of_a_batch_start(desk: Desk) -> None:
    """Whatever order Redis gave them in: the places go by priority and age."""
    low = desk.put("alone", priority="low")
    high = desk.put("alone", priority="high")
    claims = desk.claim(desk.marked([*low, *high]))
    assert list(claims.admitted) == high


def test_a_caller_waits_for_no_round(desk: Desk) -> None:
    """A row that a limit might hold back is published by its own enqueue, if it may."""
    api = desk.engine.api
    first = api.enqueue(api.Alone(n=1)).id
    second = api.enqueue(api.Alone(n=2)).id
    free = api.enqueue(api.Free(n=3)).id
    dispatched = [bool(desk.row(id_)["dispatched_at"]) for id_ in (first, second, free)]
    assert dispatched == [True, False, True]
