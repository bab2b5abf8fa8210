"""The Python API: enqueue, publish, wait, cancel.

The row first, the poke second: a job is accepted when its row is committed.  Redis away
does not fail an enqueue; the next dispatch round publishes the row.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import threading
import time
import uuid
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from . import catalog, record, statements
from .broker import Broker
from .codec import check_payload, decode
from .database import AsyncTransaction, Database, Row, Transaction, callers
from .definitions import BONUS, Job, Priority
from .dispatch import Publisher
from .errors import KeyConflict, NotFound, Refused
from .record import TERMINAL, Message
from .registry import PROJECT
from .settings import database_url

_PATIENCE: Final = 10.0
_MAX_KEY: Final = 400
_MAX_DELAY: Final = 10 * 366 * 86_400.0


class Enqueued(NamedTuple):
    """An accepted job; ``created`` is False where a key or a live twin already had it."""

    id: str
    created: bool
    state: str


@dataclass(frozen=True, slots=True)
class _Order:
    """One row to insert."""

    id: str
    job: Job
    queue: str
    priority: Priority
    payload: str
    delay: float
    run_at: int | None
    unique_key: str | None
    key: str | None


# A piece of SQL work that asks for answers: runs over any connection, sync or async.
_Steps = Generator[tuple[str, dict[str, object]], list[Row], Any]


def enqueue(
    payload: BaseModel,
    *,
    key: str | None = None,
    delay: float | timedelta | None = None,
    run_at: datetime | None = None,
    queue: str | None = None,
    priority: Priority | None = None,
    connection: object = None,
) -> Enqueued:
    """Accepts one job and returns its id.

    ``key``: the same key and payload return the same id with ``created=False``, another
    payload raises KeyConflict.  ``delay`` (seconds or timedelta) or ``run_at`` (aware
    datetime): not before.  ``connection``: the caller's own (see ``callers``); the row
    is then part of the caller's transaction and nothing is published before its commit.
    Raises PayloadRefused, KeyConflict, Unavailable, SetupError.
    """
    order = _order(payload, key, delay, run_at, queue, priority)
    return _insert([order], connection)[0]


def enqueue_many(
    payloads: Iterable[BaseModel], *, connection: object = None
) -> list[Enqueued]:
    """Accepts many jobs in one statement, all or none; answers are in the same order."""
    orders = [_order(payload, None, None, None, None, None) for payload in payloads]
    return _insert(orders, connection)


async def aenqueue(
    payload: BaseModel,
    *,
    key: str | None = None,
    delay: float | timedelta | None = None,
    run_at: datetime | None = None,
    queue: str | None = None,
    priority: Priority | None = None,
    connection: object = None,
) -> Enqueued:
    """``enqueue`` from async code; ``connection`` may be an async one."""
    order = _order(payload, key, delay, run_at, queue, priority)
    return (await _ainsert([order], connection))[0]


async def aenqueue_many(
    payloads: Iterable[BaseModel], *, connection: object = None
) -> list[Enqueued]:
    """``enqueue_many`` from async code."""
    orders = [_order(payload, None, None, None, None, None) for payload in payloads]
    return await _ainsert(orders, connection)


def publish(ids: Iterable[str]) -> int:
    """Publishes rows right after the caller's own commit; returns how many.

    Only a fast path: what is not published here, the next dispatch round takes.
    """
    wanted = [str(_uuid(id_)) for id_ in ids]
    publisher = _publisher()
    with _POOL.database() as database:
        with database.transaction() as tx:
            rows = tx.all(statements.DISPATCH_IDS, ids=json.dumps(wanted))
        messages = record.messages_of(rows)
        return publisher.push(database, messages)


def wait(id: str, timeout: float = 30) -> Row:
    """The row, as soon as it has ended, or as it is after ``timeout`` seconds.

    Reads the row, never Redis: it works for any queue and whatever Redis forgot.
    """
    id_ = str(_uuid(id))
    until = time.monotonic() + timeout
    pause = 0.01
    while True:
        row = read(id_)
        left = until - time.monotonic()
        if row["state"] in TERMINAL or left <= 0:
            return row
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.5)


async def await_result(id: str, timeout: float = 30) -> Row:
    """``wait`` from async code."""
    id_ = str(_uuid(id))
    until = time.monotonic() + timeout
    pause = 0.01
    while True:
        row = await asyncio.to_thread(read, id_)
        left = until - time.monotonic()
        if row["state"] in TERMINAL or left <= 0:
            return row
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.5)


def cancel(id: str, *, by: str = "api") -> str:
    """Cancels a job: ``cancelled``, ``cancelling`` (it runs), or ``already_finished``.

    Raises NotFound.  A job that runs is stopped at its worker's next beat.
    """
    id_ = str(_uuid(id))
    with _POOL.database() as database, database.transaction() as tx:
        answer = record.cancel(tx, id_, by)
    if answer == "not_found":
        raise NotFound(f"no job has the id {id_}")
    return answer


def read(id: str) -> Row:
    """The row with its JSON columns decoded and its instants as aware datetimes."""
    id_ = str(_uuid(id))
    with _POOL.database() as database, database.transaction() as tx:
        row = tx.one(statements.ROW, id=id_)
    if row is None:
        raise NotFound(f"no job has the id {id_}")
    return presented(row)


def presented(row: Row) -> Row:
    """A row for Python: JSON decoded where it can be, instants as datetimes."""
    shown = dict(row)
    for name in ("payload", "result", "error", "progress", "windows"):
        shown[name] = decode(shown[name])
    for name, value in shown.items():
        if value is not None and name.endswith(("_at", "slot")):
            shown[name] = datetime.fromtimestamp(value / 1000, UTC)
    return shown


def _order(
    payload: BaseModel,
    key: str | None,
    delay: float | timedelta | None,
    run_at: datetime | None,
    queue: str | None,
    priority: Priority | None,
) -> _Order:
    job = catalog.job_of(payload)
    text = check_payload(payload)
    if key is not None and not 0 < len(key) <= _MAX_KEY:
        raise Refused(f"a key has 1 to {_MAX_KEY} characters, not {len(key)}")
    if key is not None and "\x00" in key:
        raise Refused("a key must not contain a NUL character")
    if delay is not None and run_at is not None:
        raise Refused("give delay= or run_at=, not both")
    if priority is not None and priority not in BONUS:
        raise Refused(f"priority is one of {', '.join(BONUS)}, not {priority!r}")
    if run_at is not None and run_at.tzinfo is None:
        raise Refused("run_at= needs a time zone: use datetime.now(timezone.utc) + ...")
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay or 0.0
    if not 0 <= seconds <= _MAX_DELAY:
        raise Refused(f"delay= is 0 or more seconds, at most ten years, not {delay!r}")
    unique = None
    if job.unique_by:
        values = json.loads(text)
        fields = [values.get(name) for name in job.unique_by]
        unique = f"{job.name}:{_digest(json.dumps(fields, sort_keys=True))}"
    return _Order(
        id=_uuid7(),
        job=job,
        queue=catalog.queue_named(queue) if queue else job.queue,
        priority=priority or job.priority,
        payload=text,
        delay=seconds,
        run_at=None if run_at is None else round(run_at.timestamp() * 1000),
        unique_key=unique,
        key=key,
    )


def _steps(orders: Sequence[_Order], window: bool) -> _Steps:
    """Inserts orders; the answer is what was enqueued and what is to be published."""
    answers: list[Enqueued | None] = [None] * len(orders)
    fresh: list[tuple[int, _Order]] = []
    for n, order in enumerate(orders):
        if order.key is not None:
            known = yield from _known_key(order)
            if known is not None:
                answers[n] = known
                continue
        fresh.append((n, order))
    messages: list[Message] = []
    for _ in range(3):
        if not fresh:
            break
        rows = yield (
            statements.ENQUEUE,
            {
                "batch": json.dumps(
                    [_values(n, o) for n, o in fresh], ensure_ascii=False
                ),
                "window": window,
                "stall_after": round(PROJECT.stall_after * 1000),
            },
        )
        inserted = {row["id"]: row for row in rows}
        again: list[tuple[int, _Order]] = []
        for n, order in fresh:
            if order.id in inserted:
                answers[n] = Enqueued(order.id, True, "queued")
                continue
            twins = yield (statements.TWIN_READ, {"unique_key": order.unique_key})
            if not twins:
                again.append((n, order))  # the twin ended between the two statements
                continue
            twin = twins[0]
            if order.key is not None:
                yield (statements.KEY_FOLD, {"key": order.key, "id": twin["id"]})
            answers[n] = Enqueued(str(twin["id"]), False, twin["state"])
        messages += record.messages_of(row for row in rows if row["dispatch"])
        fresh = again
    if fresh:
        raise Refused(
            "the unique key is taken by a row that this transaction cannot see: use the "
            "READ COMMITTED isolation level, or enqueue again"
        )
    return [answer for answer in answers if answer is not None], messages


def _known_key(order: _Order) -> _Steps:
    digest = _digest(f"{order.job.name}\0{order.payload}")
    taken = yield (
        statements.KEY_CLAIM,
        {"key": order.key, "request_hash": digest, "id": order.id},
    )
    if taken:
        return None
    rows = yield (statements.KEY_READ, {"key": order.key})
    if not rows:
        raise Refused(f"the key {order.key!r} is being used by another transaction")
    if rows[0]["request_hash"] != digest:
        raise KeyConflict(
            f"the key {order.key!r} was used for job {rows[0]['id']} with another payload: "
            "use a new key for new work"
        )
    return Enqueued(str(rows[0]["id"]), False, rows[0]["state"])


def _values(n: int, order: _Order) -> dict[str, object]:
    return {
        "n": n,
        "id": order.id,
        "job": order.job.name,
        "queue": order.queue,
        "priority": order.priority,
        "bonus": round(BONUS[order.priority] * 1000),
        "payload": order.payload,
        "payload_version": order.job.version,
        "tries": catalog.policy_of(order.job).tries,
        "delay": round(order.delay * 1000),
        "run_at": order.run_at,
        "unique_key": order.unique_key,
        "request_key": order.key,
    }


def _insert(orders: Sequence[_Order], connection: object) -> list[Enqueued]:
    if not orders:
        return []
    if connection is not None:
        enqueued, _ = _driven(callers(connection), _steps(orders, window=False))
        return list(enqueued)
    publisher = _publisher()  # first: an address that is not set must not leave a row
    with _POOL.database() as database:
        with database.transaction() as tx:
            enqueued, messages = _driven(tx, _steps(orders, window=True))
        publisher.push(database, messages)
    return list(enqueued)


async def _ainsert(orders: Sequence[_Order], connection: object) -> list[Enqueued]:
    if connection is None:
        return await asyncio.to_thread(_insert, orders, None)
    if not orders:
        return []
    tx = AsyncTransaction(connection)
    steps = _steps(orders, window=False)
    answer: list[Row] | None = None
    while True:
        try:
            sql, params = steps.send(answer)  # type: ignore[arg-type]
        except StopIteration as stop:
            return list(stop.value[0])
        answer = await tx.all(sql, **params)


def _driven(tx: Transaction, steps: _Steps) -> Any:
    answer: list[Row] | None = None
    while True:
        try:
            sql, params = steps.send(answer)  # type: ignore[arg-type]
        except StopIteration as stop:
            return stop.value
        answer = tx.all(sql, **params)


class _Pool:
    """Idle connections of this process, handed to one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Database] = []
        self._key: tuple[int, str] = (0, "")

    @contextmanager
    def database(self) -> Generator[Database]:
        """A connection to the record, given back at the end."""
        key = (os.getpid(), database_url())
        with self._lock:
            if key != self._key:  # forked, or the address has changed
                self._idle, self._key = [], key
            database = self._idle.pop() if self._idle else Database(key[1], _PATIENCE)
        try:
            yield database
        finally:
            with self._lock:
                if key == self._key and len(self._idle) < 8:
                    self._idle.append(database)
                else:
                    database.close()


_POOL: Final = _Pool()
_publishers: dict[tuple[int, str | None], Publisher] = {}


def _publisher() -> Publisher:
    key = (os.getpid(), os.environ.get(PROJECT.redis_env))
    if key not in _publishers:
        _publishers[key] = Publisher(Broker())
    return _publishers[key]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(str(text))
    except ValueError:
        raise NotFound(f"no job has the id {text!s:.80}: an id is a UUID") from None


def _uuid7() -> str:
    """A UUIDv7 (RFC 9562): ordered by time, so new rows go to the end of the index."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))
