"""The durable arq that one writes by hand: a row per job, and arq to run it.

The rows are those of bench/rows.py, reached by asyncio: a pool, prepared statements.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, Protocol, cast

from arq import create_pool, func
from arq.connections import ArqRedis, RedisSettings
from arq.typing import WorkerCoroutine
from arq.worker import Worker

from bench import ticks
from bench.arq_bare import WIDTH
from bench.rows import DONE, INDEX, INSERT, Row, new_rows, open_sqlite, statements
from bench.systems import ARQ_TUNED, POOL, Client, Payload, database_url, redis_url


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
        self.connection = open_sqlite()

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


class DurableClient:
    redis: ArqRedis

    def __init__(self, store: Store) -> None:
        self.store = store

    async def open(self) -> None:
        await self.store.open()
        self.redis = await create_pool(RedisSettings.from_dsn(redis_url()))

    async def enqueue(self, payload: Payload) -> None:
        (row,) = new_rows([payload])
        await self.store.run(INSERT, *row)
        await self.push(row[0])

    async def enqueue_many(self, payloads: Sequence[Payload]) -> None:
        rows = new_rows(payloads)
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
        self.sql = statements(driver)

    def setup(self) -> None:
        async def create() -> None:
            store = STORES[self.driver]()
            await store.open()
            await store.run(self.sql.table)
            await store.run(INDEX)
            await store.close()

        asyncio.run(create())

    def client(self) -> Client:
        return DurableClient(STORES[self.driver]())

    async def job(self, context: dict[str, Any], text_id: str) -> None:
        store: Store = context["store"]
        job_id = uuid.UUID(text_id)
        if not await store.run(self.sql.claim, job_id):
            return
        try:
            await ticks.handle()
        except Exception as error:
            await store.run(self.sql.fail, repr(error), job_id)
            return
        await store.run(self.sql.finish, DONE, job_id)

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
