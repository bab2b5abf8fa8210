"""rq alone, and the durable rq that one writes by hand: the id goes through Redis.

rq's own pool runs the workers, of the class that the mode is compared with. A forked
horse runs one job, so the hand-written one connects to its database for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker, Worker
from rq.worker_pool import WorkerPool

from bench import ticks
from bench.rows import Rows
from bench.systems import SLOTS, Client, Payload, redis_url

CLASSES = {"fork": Worker, "simple": SimpleWorker}
RECORDS = {driver: Rows(driver) for driver in ("psycopg", "sqlite3")}


def job(payload: Payload) -> None:
    ticks.work()


def durable_job(driver: str, job_id: str) -> None:
    RECORDS[driver].work(job_id)


class RqClient:
    def __init__(self, driver: str) -> None:
        self.driver = driver
        self.function: Callable[..., None] = durable_job if driver else job

    async def open(self) -> None:
        self.queue = Queue(connection=Redis.from_url(redis_url()))

    async def enqueue(self, payload: Payload) -> None:
        (arguments,) = self.arguments([payload])
        self.queue.enqueue(self.function, args=arguments, result_ttl=0)

    async def enqueue_many(self, payloads: Sequence[Payload]) -> None:
        self.queue.enqueue_many(
            [
                Queue.prepare_data(self.function, args=arguments, result_ttl=0)
                for arguments in self.arguments(payloads)
            ]
        )

    def arguments(self, payloads: Sequence[Payload]) -> list[tuple[Any, ...]]:
        """Of the function; a durable one's rows are in the record then."""
        if not self.driver:
            return [(payload,) for payload in payloads]
        ids = RECORDS[self.driver].insert(payloads)
        return [(self.driver, job_id) for job_id in ids]

    async def close(self) -> None:
        self.queue.connection.close()


class OnRq:
    def __init__(self, mode: str, driver: str) -> None:
        self.mode = mode
        self.driver = driver

    def setup(self) -> None:
        RECORDS[self.driver].setup()

    def client(self) -> Client:
        return RqClient(self.driver)

    def worker(self) -> None:
        WorkerPool(
            ["default"],
            connection=Redis.from_url(redis_url()),
            num_workers=SLOTS[f"rq-{self.mode}"],
            worker_class=CLASSES[self.mode],
        ).start(logging_level="WARNING")


def adapter(option: str) -> OnRq:
    """The mode, and the driver of the hand-written one's record."""
    mode, _, driver = option.partition(" ")
    return OnRq(mode, driver)
