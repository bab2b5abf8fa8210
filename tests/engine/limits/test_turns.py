"""Turns: tenants one after the other, priority and age within, none forgotten."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

from engine import clock
from engine.limits.desk import SLOTS, SPEC, Desk
from engine.units import Engine

import servers


def test_a_small_tenant_waits_for_no_large_one(desk: Desk) -> None:
    """One has a thousand rows and one ten: the ten are done within the first hundred."""
    desk.put("fair", 1000, who="large")
    small = desk.put("fair", 10, who="small")
    first = list(itertools.islice(desk.worked_off(), 100))
    assert set(small) <= set(first)
    assert len(set(first)) == 100


def test_more_tenants_than_one_look_takes_in(desk: Desk) -> None:
    """Every one of 300 has its turn before any has its third."""
    for who in range(300):
        desk.put("fair", 3, who=f"tenant {who}")
    order = [
        desk.row(id_)["tenant"] for id_ in itertools.islice(desk.worked_off(), 600)
    ]
    assert max(Counter(order).values()) == 2
    assert len(set(order)) == 300


def test_rows_without_a_tenant_take_their_turn_too(desk: Desk) -> None:
    """They count as one tenant together."""
    desk.put("fair", 200, who="large")
    free = desk.put("free", 20)
    first = list(itertools.islice(desk.worked_off(), 60))
    assert set(free) <= set(first)


def test_within_a_tenant_priority_and_age_decide(desk: Desk) -> None:
    """The tenant's own high row is its next one."""
    desk.put("fair", 50, who="x", priority="low")
    (high,) = desk.put("fair", who="x", priority="high")
    assert desk.fill()[0].id == high


def test_without_tenants_the_high_one_is_next(desk: Desk) -> None:
    """A thousand low rows wait, each held by a value of its own; then a high one."""
    for n in range(500):
        desk.put("keyed", who=f"value {n}", priority="low")
    desk.put("free", 500, priority="low")
    (high,) = desk.put("keyed", who="late", priority="high")
    messages = desk.fill()
    assert messages[0].id == high
    assert min(messages, key=lambda message: message.sort_at).id == high


def test_turns_hold_in_redis_too(desk: Desk) -> None:
    """A younger tenant's row is not sorted behind what the older one has published."""
    desk.put("fair", 100, who="old")
    old = desk.fill()
    desk.claim(old[:4])
    (young,) = desk.put("fair", who="young")
    new = desk.fill()
    assert young in [message.id for message in new]
    later = [m for m in new if m.id != young]
    (message,) = [m for m in new if m.id == young]
    assert max(m.sort_at for m in old) < message.sort_at
    assert message.sort_at <= min((m.sort_at for m in later), default=message.sort_at)


def test_a_steady_flow_of_high_rows_lets_a_low_one_through(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> None:
    """Each minute as many high rows come as can start: it waits for twenty minutes."""
    tree = clock.build(dialect, SPEC)
    package = tree.at(database_url, redis_server.url, tmp_path / "run")
    moved = clock.Clock(package)
    moved.at("2026-06-01T12:00:00")
    engine = Engine(package)
    desk = Desk(engine)
    (low,) = desk.put("free", priority="low")
    desk.put("free", SLOTS + 4, priority="high")
    waiting: list[Any] = desk.fill()  # the whole window is theirs
    for minute in range(1, 60):
        moved.at(f"2026-06-01T12:{minute:02d}:00")
        desk.put("free", SLOTS, priority="high")
        waiting += desk.fill()
        waiting.sort(key=lambda message: message.sort_at)
        claims = desk.claim(waiting[:SLOTS]).admitted.values()
        assert len(claims) == SLOTS
        del waiting[:SLOTS]
        desk.finish(claims)
        if low in [claim.id for claim in claims]:
            break
    engine.close()
    assert 20 <= minute <= 20 + 3  # two for what is in the window before it


def test_rows_for_later_hold_nothing_up(desk: Desk) -> None:
    """Three hundred tenants wait for later, and one row is due."""
    for who in range(300):
        desk.put("fair", who=f"tenant {who}", delay=7200)
    (due,) = desk.put("fair", who="z")
    assert [message.id for message in desk.fill()] == [due]


def test_a_tenants_blocked_rows_do_not_block_its_others(desk: Desk) -> None:
    """`both` takes turns by one field and is limited by another."""
    desk.put("both", 2, who="x")  # n = 0 and n = 1
    assert len(desk.claim(desk.fill()).admitted) == 2
    desk.put("both", 2, who="x")  # the same two values: busy
    (free,) = desk.put("both", who="x", n=2)
    assert [message.id for message in desk.fill()] == [free]
