"""The durable arq that one writes by hand: a row per job, and arq to run it.

Three commits a job: insert, claim, finish. It is the reference, so it is written as a
good engineer would in an afternoon and no slower than need be: primary-key updates,
a pool, prepared statements. It has no fence, no batches and (here) no sweep, so it
guarantees less than the generated worker does.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any, Protocol, cast

from arq import create_pool, func
from arq.connections import ArqRedis, RedisSettings
from arq.typing import WorkerCoroutine
from arq.worker import Worker

from bench import ticks
from bench.arq_bare import WIDTH
from bench.systems import ARQ_TUNED, POOL, Client, Payload, database_url, redis_url

TABLE = """
CREATE TABLE jobs (
    id {uuid} PRIMARY KEY,
    kind text NOT NULL,
    payload {json} NOT NULL,
    state text NOT NULL DEFAULT 'queued',
    attempts int NOT NULL DEFAULT 0,
    created_at {time} NOT NULL DEFAULT {now},
    queued_at {time} NOT NULL DEFAULT {now},
    started_at {time},
    finished_at {time},
    result {json},
    error text
)"""
INDEX = (
    "CREATE INDEX jobs_open ON jobs (state, queued_at)"
    " WHERE state IN ('queued', 'running')"
)
INSERT = "INSERT INTO jobs (id, kind, payload) VALUES (?, ?, ?)"
CLAIM = (
    "UPDATE jobs SET state = 'running', attempts = attempts + 1, started_at = {now}"
    " WHERE id = ? AND state = 'queued' RETURNING kind, payload, attempts"
)
FINISH = (
    "UPDATE jobs SET state = 'done', finished_at = {now}, result = ?"
    " WHERE id = ? AND state = 'running'"
)
FAIL = (
    "UPDATE jobs SET state = 'failed', finished_at = {now}, error = ?"
    " WHERE id = ? AND state = 'running'"
)

Row = Sequence[Any]


class Store(Protocol):
    """One statement is one transaction."""

    async def open(self) -> None: ...
    async def run(self, sql: str, *values: Any) -> list[Row]: ...
    async def run_many(self, sql: str, rows: Sequence[Row]) -> None: ...
    async def close(self) -> None: ...


class Asyncpg:
    async def open(self) -> None:
        import asyncpg

        self.pool = await asyncpg.create_pool(
            database_url(), min_size=POOL, max_size=POOL
        )

    async def run(self, sql: str, *values: Any) -> list[Row]:
        async with self.pool.acquire() as connection:
            return list(await connection.fetch(numbered(sql), *values))

    async def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        async with self.pool.acquire() as connection:
            await connection.executemany(numbered(sql), rows)

    async def close(self) -> None:
        await self.pool.close()


class Psycopg:
    async def open(self) -> None:
        from psycopg import AsyncConnection

        self.connections: asyncio.Queue[AsyncConnection] = asyncio.Queue()
        for _ in range(POOL):
            connection = await AsyncConnection.connect(database_url(), autocommit=True)
            connection.prepare_threshold = 0
            self.connections.put_nowait(connection)

    async def run(self, sql: str, *values: Any) -> list[Row]:
        connection = await self.connections.get()
        try:
            done = await connection.execute(sql.replace("?", "%s").encode(), values)
            return list(await done.fetchall()) if done.description else []
        finally:
            self.connections.put_nowait(connection)

    async def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        connection = await self.connections.get()
        try:
            async with connection.transaction(), connection.cursor() as cursor:
                await cursor.executemany(sql.replace("?", "%s").encode(), rows)
        finally:
            self.connections.put_nowait(connection)

    async def close(self) -> None:
        while not self.connections.empty():
            await self.connections.get_nowait().close()


class Sqlite:
    """Straight calls: a commit takes less time than a trip to a thread and back."""

    async def open(self) -> None:
        self.connection = sqlite3.connect(sqlite_path(), isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
            self.connection.execute(f"PRAGMA {pragma}")

    async def run(self, sql: str, *values: Any) -> list[Row]:
        values = tuple(str(v) if isinstance(v, uuid.UUID) else v for v in values)
        return self.connection.execute(sql, values).fetchall()

    async def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(sql, [(str(row[0]), *row[1:]) for row in rows])
        self.connection.execute("COMMIT")

    async def close(self) -> None:
        self.connection.close()


STORES: dict[str, type[Store]] = {
    "asyncpg": Asyncpg,
    "psycopg": Psycopg,
    "sqlite3": Sqlite,
}


def numbered(sql: str) -> str:
    first, *rest = sql.split("?")
    return first + "".join(f"${n}{part}" for n, part in enumerate(rest, 1))


def sqlite_path() -> str:
    return database_url().removeprefix("sqlite:///")


class DurableClient:
    redis: ArqRedis

    def __init__(self, store: Store) -> None:
        self.store = store

    async def open(self) -> None:
        await self.store.open()
        self.redis = await create_pool(RedisSettings.from_dsn(redis_url()))

    async def enqueue(self, payload: Payload) -> None:
        job_id = uuid.uuid4()
        await self.store.run(INSERT, job_id, "job", json.dumps(payload))
        await self.push(job_id)

    async def enqueue_many(self, payloads: Sequence[Payload]) -> None:
        rows = [(uuid.uuid4(), "job", json.dumps(payload)) for payload in payloads]
        await self.store.run_many(INSERT, rows)
        for start in range(0, len(rows), WIDTH):
            chunk = rows[start : start + WIDTH]
            await asyncio.gather(*(self.push(job_id) for job_id, *_ in chunk))

    async def push(self, job_id: uuid.UUID) -> None:
        await self.redis.enqueue_job("job", str(job_id), _job_id=str(job_id))

    async def close(self) -> None:
        await self.store.close()
        await self.redis.aclose()


class Durable:
    def __init__(self, driver: str) -> None:
        self.driver = driver
        sqlite = driver == "sqlite3"
        now = "(julianday())" if sqlite else "now()"
        types = {"uuid": "text", "json": "text", "time": "real"}
        if not sqlite:
            types = {"uuid": "uuid", "json": "jsonb", "time": "timestamptz"}
        self.table = TABLE.format(now=now, **types)
        self.claim, self.finish, self.fail = (
            sql.format(now=now) for sql in (CLAIM, FINISH, FAIL)
        )

    def setup(self) -> None:
        async def create() -> None:
            store = STORES[self.driver]()
            await store.open()
            await store.run(self.table)
            await store.run(INDEX)
            await store.close()

        asyncio.run(create())

    def client(self) -> Client:
        return DurableClient(STORES[self.driver]())

    async def job(self, context: dict[str, Any], text_id: str) -> None:
        store: Store = context["store"]
        job_id = uuid.UUID(text_id)
        if not await store.run(self.claim, job_id):
            return
        try:
            await ticks.handle()
        except Exception as error:
            await store.run(self.fail, repr(error), job_id)
            return
        await store.run(self.finish, json.dumps({"ok": True}), job_id)

    def worker(self) -> None:
        async def start(ctx: dict[Any, Any]) -> None:
            ctx["store"] = STORES[self.driver]()
            await ctx["store"].open()

        async def stop(ctx: dict[Any, Any]) -> None:
            await ctx["store"].close()

        asyncio.set_event_loop(asyncio.new_event_loop())
        settings: dict[str, Any] = dict(ARQ_TUNED)
        Worker(
            [func(cast(WorkerCoroutine, self.job), name="job")],
            redis_settings=RedisSettings.from_dsn(redis_url()),
            on_startup=start,
            on_shutdown=stop,
            **settings,
        ).run()


def adapter(option: str) -> Durable:
    return Durable(option)
