"""arq alone, tuned: as fast as it goes, and a wiped Redis loses everything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from arq import create_pool, func
from arq.connections import ArqRedis, RedisSettings
from arq.typing import WorkerCoroutine
from arq.worker import Worker

from bench import ticks
from bench.systems import ARQ_TUNED, Client, Payload, redis_url

WIDTH = (
    50  # enqueue calls at once in a bulk: arq has no bulk call, each uses a connection
)


async def job(context: dict[str, Any], payload: Payload) -> None:
    await ticks.handle()


class BareClient:
    redis: ArqRedis

    async def open(self) -> None:
        self.redis = await create_pool(RedisSettings.from_dsn(redis_url()))

    async def enqueue(self, payload: Payload) -> None:
        await self.redis.enqueue_job("job", payload)

    async def enqueue_many(self, payloads: Sequence[Payload]) -> None:
        for start in range(0, len(payloads), WIDTH):
            chunk = payloads[start : start + WIDTH]
            await asyncio.gather(*map(self.enqueue, chunk))

    async def close(self) -> None:
        await self.redis.aclose()


class Bare:
    def setup(self) -> None:
        pass

    def client(self) -> Client:
        return BareClient()

    def worker(self) -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        settings: dict[str, Any] = dict(ARQ_TUNED)
        redis = RedisSettings.from_dsn(redis_url())
        function = func(cast(WorkerCoroutine, job), name="job")
        Worker([function], redis_settings=redis, **settings).run()


def adapter(option: str) -> Bare:
    return Bare()
