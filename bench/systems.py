"""The systems that are compared, and what a system has to be able to do."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

Payload = dict[str, str | int]

# arq as a user who has read its source would set it. At its defaults one worker
# drains about 200 jobs a second, because it looks into Redis twice a second.
ARQ_TUNED: Mapping[str, float] = {
    "max_jobs": 50,
    "poll_delay": 0.01,
    "queue_read_limit": 1000,
    "keep_result": 0,
}
NO_PROVIDER = ", no provider,"  # in the name of a system
POOL = 10  # database connections of the hand-written worker


class Client(Protocol):
    """What enqueues."""

    async def open(self) -> None: ...
    async def enqueue(self, payload: Payload) -> None: ...
    async def enqueue_many(self, payloads: Sequence[Payload]) -> None: ...
    async def close(self) -> None: ...


class Adapter(Protocol):
    """A system: it finds its servers in REDIS_URL and DATABASE_URL."""

    def setup(self) -> None:
        """Make the tables, in an empty database."""

    def client(self) -> Client: ...

    def worker(self) -> None:
        """Run the worker until SIGTERM."""


@dataclass(frozen=True)
class System:
    """`module` holds a function `adapter(option) -> Adapter`.

    `dialect` is the database of the record, None for bare Redis. `unfinished` counts
    the rows that are not done: a drain ends when it says 0. `against` names the
    hand-written system that this one's ratio is taken to.
    """

    name: str
    module: str
    option: str
    dialect: str | None
    unfinished: str | None
    against: str | None
    settings: str

    def adapter(self) -> Adapter:
        module = importlib.import_module(self.module)
        return cast(Adapter, module.adapter(self.option))


_HAND_WRITTEN = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
_GENERATED = "SELECT count(*) FROM bench_jobs WHERE state IN ('queued', 'active')"
_TUNED = ", ".join(f"{key}={value:g}" for key, value in ARQ_TUNED.items())

SYSTEMS: tuple[System, ...] = (
    System("arq bare", "bench.arq_bare", "", None, None, None, _TUNED),
    *(
        System(
            f"hand-written {driver}",
            "bench.arq_durable",
            driver,
            "sqlite" if driver == "sqlite3" else "postgresql",
            _HAND_WRITTEN,
            None,
            f"{_TUNED}; {connections}; three commits a job",
        )
        for driver, connections in (
            ("asyncpg", f"pool of {POOL}"),
            ("psycopg", f"pool of {POOL}"),
            ("sqlite3", "one connection, WAL, synchronous=FULL"),
        )
    ),
    *(
        System(
            f"generated {dialect}",
            "bench.generated",
            dialect,
            dialect,
            _GENERATED,
            against,
            "bench/specs/queue.toml: concurrency 50, everything else default",
        )
        for dialect, against in (
            ("postgresql", "hand-written asyncpg"),
            ("sqlite", "hand-written sqlite3"),
        )
    ),
)
BARE = SYSTEMS[0].name

# The same jobs of two calls each: bare, and with every call on the record.  "no
# provider": an answer out of thin air, so that nothing hides what the record costs.
PAID: tuple[System, ...] = tuple(
    System(
        f"{who}{where} {dialect}",
        "bench.paid",
        who,
        dialect,
        _GENERATED,
        None if who == "unpaid" else f"unpaid{where} {dialect}",
        "bench/paid.py: concurrency 32, everything else default",
    )
    for dialect in ("postgresql", "sqlite")
    for where in ("", NO_PROVIDER)
    for who in ("unpaid", "one agent", "200 agents")
)

# Modules with a `spec()`, of which qgen builds the worker.
GENERATED = ("bench.generated", "bench.paid")


def find(name: str) -> System:
    return next(system for system in (*SYSTEMS, *PAID) if system.name == name)


def redis_url() -> str:
    return os.environ["REDIS_URL"]


def database_url() -> str:
    return os.environ["DATABASE_URL"]
