"""PostgreSQL: rows are locked by id and gates by key, whatever order a caller names."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from engine import units
from engine.faults import until
from engine.limits.desk import SPEC, Desk

import servers


@pytest.fixture
def desk(
    pg_database: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> Iterator[Desk]:
    with units.engine("postgresql", pg_database, redis_server, tmp_path, SPEC) as made:
        yield Desk(made)


def queued_up(desk: Desk, held: str, *calls: Callable[[Any], object]) -> list[object]:
    """What becomes of these transactions: each begins when the one before it waits,
    the first for a row that another has locked until all wait."""
    url = desk.engine.package.database_url
    said: list[object] = [None] * len(calls)

    def run(number: int) -> None:
        try:
            with desk.engine.transaction() as tx:
                said[number] = calls[number](tx)
        except Exception as error:
            said[number] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(calls))]
    with psycopg.connect(url) as blocker, psycopg.connect(url, autocommit=True) as eye:
        blocker.execute(held)
        for waiting, thread in enumerate(threads, 1):
            thread.start()
            until(lambda: waits(eye) == waiting, f"{waiting} wait")  # noqa: B023
        blocker.rollback()
        for thread in threads:
            thread.join()
    return said


def waits(eye: psycopg.Connection[Any]) -> int:
    row = eye.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_marks_are_taken_back_in_the_order_of_a_claim(desk: Desk) -> None:
    low, high = sorted(desk.marked(desk.put("free", 2)), key=lambda m: m.id)
    door, record = desk.part("door"), desk.part("record")
    said = queued_up(
        desk,
        f"SELECT 1 FROM jobs WHERE id = '{low.id}' FOR UPDATE",
        lambda tx: len(door.claim(tx, [low, high], desk.boot, units.nobody).admitted),
        lambda tx: record.undispatch(tx, [high, low]),
    )
    assert said == [2, 0]


def test_a_new_gate_is_made_before_one_is_locked(desk: Desk) -> None:
    """A claim and a provider's 429, both of a gate that is there and one that is not."""
    gates, money = desk.part("gates"), desk.part("money_statements")
    with desk.engine.transaction() as tx:
        gates.make(tx, ["agent:m"])

    def close(tx: Any) -> None:
        gates.make(tx, ["agent:b", "agent:m"])
        batch = [{"key": key, "delay": 1} for key in ("agent:b", "agent:m")]
        tx.run(money.GATES_CLOSE, batch=json.dumps(batch))

    said = queued_up(
        desk,
        "SELECT 1 FROM jobs_gates WHERE key = 'agent:m' FOR UPDATE",
        lambda tx: len(gates.lock(tx, ["agent:b", "agent:m"])),
        close,
    )
    assert said == [2, None]
