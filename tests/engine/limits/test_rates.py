"""Rates: never more starts than allowed in any window, and not many fewer."""

from __future__ import annotations

import random
import time

import pytest
from engine.limits.desk import Desk
from engine.units import Engine


def test_a_rate_lets_so_many_start(desk: Desk) -> None:
    """Three in two seconds: the fourth waits for the first to leave the window."""
    ids = desk.put("free", 5, queue="rated")
    claims = desk.claim(desk.marked(ids))
    assert len(claims.admitted) == 3
    assert desk.reasons(ids) == {("active", None): 3, ("queued", "rate"): 2}
    started = desk.row(next(iter(claims.admitted)))["started_at"]
    for id_ in claims.refused:
        row = desk.row(id_)
        assert row["attempt"] == 0
        assert 2.0 <= seconds(row["run_at"]) - seconds(started) < 3.0


def test_two_claims_at_once_share_a_rate(desk: Desk) -> None:
    """The second begins while the first is not committed, and sees what it started."""
    messages = desk.marked(desk.put("free", 6, queue="rated"))
    done = desk.raced(messages[:3], messages[3:])
    assert [len(claims.admitted) for claims in done] == [3, 0]


def test_an_agents_rate_counts_starts_in_every_queue(desk: Desk) -> None:
    """Two in ten minutes, wherever its jobs run; a job without an agent passes."""
    ids = desk.put("paid", 2, queue="wide") + desk.put("paid", 2)
    (free,) = desk.put("free")
    claims = desk.claim(desk.marked([*ids, free]))
    assert free in claims.admitted
    assert desk.reasons(ids) == {("active", None): 2, ("queued", "rate"): 2}
    desk.put("paid", 50)
    (other,) = desk.put("free")
    assert [message.id for message in desk.fill()] == [other]


def test_a_dispatch_publishes_what_the_rate_lets_start(desk: Desk) -> None:
    """Published rows count as started; it says when the rate opens again."""
    desk.put("free", 9, queue="rated")
    messages = desk.fill()
    assert len(messages) == 3
    assert desk.fill() == []
    desk.claim(messages)
    desk.turns.opens = None
    assert desk.fill() == []
    assert 1.0 < desk.turns.opens <= 2.01
    time.sleep(desk.turns.opens)
    assert len(desk.fill()) == 3


def test_no_window_holds_more_starts_than_the_rate(desk: Desk) -> None:
    """Claims as fast as they come for three windows: the record's own instants tell."""
    ids = desk.put("free", 12, queue="rated")
    begun = time.monotonic()
    while time.monotonic() < begun + 6.3:
        waiting = [id_ for id_ in ids if desk.row(id_)["state"] == "queued"]
        desk.engine.package.sql(
            "UPDATE jobs SET run_at = created_at WHERE state = 'queued'"
        )
        desk.finish(desk.claim(desk.marked(waiting[:2])).admitted.values())
    starts = sorted(
        seconds(row["started_at"]) for row in map(desk.row, ids) if row["started_at"]
    )
    assert len(starts) >= 6
    for at in starts:
        assert sum(at <= other <= at + 2.0 for other in starts) <= 3


def seconds(instant: object) -> float:
    """An instant as plain SQL gives it."""
    if hasattr(instant, "timestamp"):
        return float(instant.timestamp())
    return float(str(instant)) / 1000


# --- the window, as arithmetic -----------------------------------------------------


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("most", [1, 3, 60, 5000])
def test_the_window_slides(engine: Engine, most: int) -> None:
    """Random starts against every window by hand; a large rate loses a step at most."""
    rates, rate_of = engine.part("rates"), engine.part("definitions").Rate
    rate = rate_of(starts=most, seconds=10.0)
    chance = random.Random(most)
    starts: list[tuple[int, int]] = []
    all_starts: list[int] = []
    now = 1_000_000
    for _ in range(400):
        now += chance.choice([0, 1, 7, 400, 3000])
        for _ in range(chance.choice([1, 1, max(1, most // 3)])):
            wait = rates.wait(starts, rate, now)
            if wait == 0:
                starts = rates.noted(starts, rate, now, [now])
                all_starts.append(now)
            else:
                assert rates.room(starts, rate, now) <= 0
                assert rates.wait(starts, rate, now + wait) == 0
                assert rates.room(starts, rate, now + wait - 1) <= 0
        counted = sum(1 for at in all_starts if at >= now - 10_000)
        assert counted <= most
    assert len(starts) <= 1002


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_clock_put_back_blocks_no_rate_for_ever(engine: Engine) -> None:
    """Starts that lie ahead count as now: a window later they count no more."""
    rates, rate_of = engine.part("rates"), engine.part("definitions").Rate
    rate = rate_of(starts=1, seconds=10.0)
    starts = [(9_000_000, 1)]
    assert rates.wait(starts, rate, 1_000_000) == 10_002
    starts = rates.noted(starts, rate, 1_000_000, [])
    assert rates.wait(starts, rate, 1_010_002) == 0
