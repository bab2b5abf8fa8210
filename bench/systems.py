"""The systems that are compared, and what a system has to be able to do."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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

# Jobs at once, the same for every system of a cell. A process each, two cores: 2.
SLOTS: Mapping[str, int] = {
    "arq": 50,
    "rq-fork": 2,
    "rq-simple": 2,
    "celery-prefork": 2,
    "celery-threads": 10,
}


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
    hand-written system that this one's ratio is taken to, and `least` is the bound of
    the drain's. `kind` is the backend and its mode, as in tests/cells.py.
    """

    name: str
    module: str
    option: str
    dialect: str | None
    unfinished: str | None
    against: str | None
    settings: str
    kind: str = "arq"
    least: float = 1.5

    @property
    def bare(self) -> str:
        """The name of the backend alone."""
        return f"{self.kind} bare"

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


def _cell(kind: str, settings: str) -> tuple[System, ...]:
    """A backend in one mode whose functions are plain: bench/on_<target>.py."""
    target, _, mode = kind.partition("-")
    module, slots = f"bench.on_{target}", f"{SLOTS[kind]} at once"
    records = (
        ("psycopg", "postgresql", "a connection for each slot"),
        ("sqlite3", "sqlite", "one connection a process, WAL, synchronous=FULL"),
    )
    return (
        System(
            f"{kind} bare",
            module,
            mode,
            None,
            None,
            None,
            f"{slots}; {settings}",
            kind,
        ),
        *(
            System(
                f"{kind} hand-written {driver}",
                module,
                f"{mode} {driver}",
                dialect,
                _HAND_WRITTEN,
                None,
                f"{slots}; {connections}; three commits a job",
                kind,
            )
            for driver, dialect, connections in records
        ),
        *(
            System(
                f"{kind} generated {dialect}",
                "bench.generated",
                dialect,
                dialect,
                _GENERATED,
                f"{kind} hand-written {driver}",
                f"bench/specs/queue.toml: concurrency {SLOTS[kind]},"
                f" {mode}, everything else default",
                kind,
                1.3,
            )
            for driver, dialect, _ in records
        ),
    )


_CELERY = "no results, no gossip, mingle or heartbeat; acknowledged early"

# By kind: everything that is measured in one run, beside each other.
CELLS: Mapping[str, tuple[System, ...]] = {
    "arq": SYSTEMS,
    "rq-fork": _cell("rq-fork", "WorkerPool of Worker, result_ttl=0"),
    "rq-simple": _cell("rq-simple", "WorkerPool of SimpleWorker, result_ttl=0"),
    "celery-prefork": _cell("celery-prefork", _CELERY),
    "celery-threads": _cell("celery-threads", _CELERY),
}

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
    everything = chain(*CELLS.values(), PAID)
    return next(system for system in everything if system.name == name)


def redis_url() -> str:
    return os.environ["REDIS_URL"]


def database_url() -> str:
    return os.environ["DATABASE_URL"]
