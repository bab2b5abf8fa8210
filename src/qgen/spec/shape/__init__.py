"""The shape of a spec: every key, its kind, its default.  The one truth of the language.

The JSON Schema and docs/spec.md are printed from these classes.  What passes the schema
builds them.  A key's description is what an editor shows; its ``default`` is what an
absent key means, and ``None`` there means that the description tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from qgen.spec.shape.base import Shape, key, needed
from qgen.spec.shape.jobs import Defaults, FieldTable, Job, Schedule
from qgen.spec.shape.services import (
    Project,
    Record,
    Redis,
    Retention,
    Shutdown,
    Stall,
)
from qgen.spec.shape.work import Agent, CapEach, Queue, Retry, Spend, Windows, Worker
from qgen.spec.words import Duration, Name, Reference, Variable

__all__ = [
    "KNOBS",
    "Agent",
    "CapEach",
    "Defaults",
    "FieldTable",
    "Job",
    "Project",
    "Queue",
    "Record",
    "Redis",
    "Retention",
    "Retry",
    "Schedule",
    "Shape",
    "Shutdown",
    "Spec",
    "Spend",
    "Stall",
    "Windows",
    "Worker",
]


class Arq(Shape):
    """The knobs of arq."""

    poll_delay: Duration | None = key(None, "How often an idle worker looks.")


class Rq(Shape):
    """The knobs of rq."""

    worker: Literal["fork", "simple"] = key(
        "fork", "`fork`: a process of its own for each job; `simple`: none."
    )


class Celery(Shape):
    """The knobs of celery."""

    pool: Literal["prefork", "threads"] = key("prefork", "What runs the jobs.")


class Targets(Shape):
    """The few knobs of one backend; those of another target are ignored."""

    arq: Arq | None = key(None, "For arq.")
    rq: Rq | None = key(None, "For rq.")
    celery: Celery | None = key(None, "For celery.")


KNOBS: Final[Mapping[str, type[Shape]]] = {"arq": Arq, "rq": Rq, "celery": Celery}


class Spec(Shape):
    """A durable job queue: its record, its jobs, its workers."""

    schema_version: int = needed("Version of this language: 1.", ge=1, le=1)
    project: Project = needed("Names and places of what is generated.")
    record: Record = key(Record(), "The database row is the record.")
    redis: Redis = key(Redis(), "Redis only runs the work.")
    stall: Stall = key(Stall(), "How a dead process is told from a living one.")
    shutdown: Shutdown = key(Shutdown(), "What happens at SIGTERM.")
    retention: Retention = key(Retention(), "How long finished rows are kept.")
    spend: Spend = key(Spend(), "How money is counted.")
    agents: dict[Name, Agent] = key({}, "Who spends money.")
    retries: dict[Name, Retry] = key({}, "Retry policies; `default` always exists.")
    defaults: Defaults = key(Defaults(), "Keys for the jobs that do not give them.")
    queues: dict[Name, Queue] = key({}, "Queues; `default` needs no table.")
    workers: dict[Name, Worker] = key(
        {}, "Worker processes; without any, `main` serves every queue."
    )
    jobs: dict[Name, Job] = needed("The jobs.", min_length=1)
    schedules: dict[Name, Schedule] = key({}, "Jobs that start by the clock.")
    env: dict[Variable, Reference] = key(
        {}, "Variable = the key that a deployment may override with it."
    )
    targets: Targets = key(Targets(), "The few knobs of each backend.")
