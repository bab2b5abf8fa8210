"""celery alone, and the durable celery that one writes by hand: the id goes through Redis."""

from __future__ import annotations

from collections.abc import Sequence

from celery import Celery

from bench import ticks
from bench.rows import Rows
from bench.systems import SLOTS, Client, Payload, redis_url

QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
RECORDS = {driver: Rows(driver) for driver in ("psycopg", "sqlite3")}

app = Celery("bench", broker=redis_url())
app.conf.update(
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


def _job(payload: Payload) -> None:
    ticks.work()


def _durable_job(driver: str, job_id: str) -> None:
    RECORDS[driver].work(job_id)


job = app.task(_job, name="job")
# Late: an early acknowledgement loses what a killed worker was running.
durable_job = app.task(
    _durable_job, name="durable_job", acks_late=True, reject_on_worker_lost=True
)


class CeleryClient:
    """celery has no bulk call: one message after the other, over one connection."""

    def __init__(self, driver: str) -> None:
        self.driver = driver

    async def open(self) -> None:
        pass

    async def enqueue(self, payload: Payload) -> None:
        await self.enqueue_many([payload])

    async def enqueue_many(self, payloads: Sequence[Payload]) -> None:
        if not self.driver:
            for payload in payloads:
                job.delay(payload)
            return
        for job_id in RECORDS[self.driver].insert(payloads):
            durable_job.delay(self.driver, job_id)

    async def close(self) -> None:
        app.close()


class OnCelery:
    def __init__(self, mode: str, driver: str) -> None:
        self.mode = mode
        self.driver = driver

    def setup(self) -> None:
        RECORDS[self.driver].setup()

    def client(self) -> Client:
        return CeleryClient(self.driver)

    def worker(self) -> None:
        slots = str(SLOTS[f"celery-{self.mode}"])
        app.worker_main(
            ["worker", "-l", "WARNING", "-P", self.mode, "-c", slots, *QUIET]
        )


def adapter(option: str) -> OnCelery:
    """The mode, and the driver of the hand-written one's record."""
    mode, _, driver = option.partition(" ")
    return OnCelery(mode, driver)
