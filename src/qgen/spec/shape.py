"""The shape of a spec: every key, its kind, its default.  The one truth of the language.

The JSON Schema and docs/spec.md are printed from these classes.  What passes the schema
builds them.  A key's description is what an editor shows; its ``default`` is what an
absent key means, and ``None`` there means that the description tells.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from qgen.spec import words
from qgen.spec.words import (
    Duration,
    DurationOrNone,
    Exceptional,
    FieldName,
    Folder,
    Function,
    Money,
    Name,
    Rate,
    Reference,
    Text,
    Variable,
    Wire,
    Zone,
)


def key(default: Any, description: str, **limits: Any) -> Any:
    """A key that may be left out."""
    return Field(default, description=description, **limits)


def needed(description: str, **limits: Any) -> Any:
    """A key that must be there."""
    return Field(description=description, **limits)


class Shape(BaseModel):
    """A table: no unknown keys, no conversions (a boolean is no number)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Project(Shape):
    """Names and places of what is generated."""

    name: Name = needed("Prefix of Redis keys and, by default, of package and table.")
    package: Annotated[str, words.PACKAGE] | None = key(
        None, "Import name of the generated package; `<name>_queue` by default."
    )
    output: Folder = key("src", "The package goes to `<output>/<package>`.")
    tests: Folder | None = key(
        None, "Folder of the generated pytest suite; `tests/<package>` by default."
    )
    handlers: Annotated[str, words.MODULE] | None = key(
        None, "Module with one function per job; `<name>_handlers` by default."
    )
    target: Literal["arq", "rq", "celery"] = key(
        "arq", "The backend when the command line names none."
    )


Column = Literal[
    "id", "job", "queue", "priority", "state", "reason", "payload", "result", "error",
    "attempt", "tries", "run_at", "created_at", "started_at", "finished_at", "tenant",
    "cost", "progress",
]  # fmt: skip
State = Literal["queued", "active", "held", "completed", "failed", "cancelled"]


class Record(Shape):
    """The database row is the record."""

    dialect: Literal["postgresql", "sqlite"] = key("sqlite", "The database.")
    url_env: Variable = key("DATABASE_URL", "Variable that holds its address.")
    table: Annotated[str, words.TABLE] | None = key(
        None, "The table of the jobs; `<name>_jobs` by default."
    )
    migrations: Literal["sql", "alembic"] = key("sql", "Who applies the migrations.")
    versions: Folder | None = key(None, "Folder of alembic's revision files.")
    existing: bool = key(False, "Adopt a table that is already there.")
    id_type: Literal["uuid", "bigint", "text"] = key("uuid", "Type of its key.")
    columns: dict[
        Column,
        Annotated[str, words.COLUMN],
    ] = key({}, "Our name of a column = their name.")
    states: dict[
        State,
        Annotated[str, words.STATE]
        | Annotated[list[Annotated[str, words.STATE]], Field(min_length=1)],
    ] = key({}, "Our state = their word; of a list the first is written, all are read.")


class Redis(Shape):
    """Redis only runs the work."""

    url_env: Variable = key("REDIS_URL", "Variable that holds its address.")
    tls: bool | None = key(
        None, "Demand or refuse TLS; by default as the address says."
    )
    verify: bool = key(True, "Check the server's certificate.")
    ca_file_env: Variable | None = key(
        None, "Variable that holds the path of a CA file; the system's CAs by default."
    )


class Stall(Shape):
    """How a dead worker process is told from a living one."""

    heartbeat: Duration = key("15s", "How often a process says that it lives.")
    after: Duration = key("60s", "Silent this long is dead: its jobs are recovered.")
    sweep: Duration = key("10s", "How often recovery looks.")


class Shutdown(Shape):
    """What happens at SIGTERM."""

    grace: Duration = key("30s", "Running jobs may finish this long.")


class Retention(Shape):
    """How long finished rows are kept."""

    completed: DurationOrNone = key("30d", "Rows of completed jobs.")
    failed: DurationOrNone = key("180d", "Rows of failed jobs, the dead letters.")
    cancelled: DurationOrNone = key("30d", "Rows of cancelled jobs.")


class Spend(Shape):
    """How money is counted."""

    unit: Text = key("USD", "Any unit counted in decimals: USD, tokens.")
    timezone: Zone = key("UTC", "Where a day of spending begins.")


class Windows(Shape):
    """Caps per window."""

    hour: Money | None = key(None, "Cap of one hour.")
    day: Money | None = key(None, "Cap of one day.")
    week: Money | None = key(None, "Cap of one week.")
    month: Money | None = key(None, "Cap of one month.")


class Cap(Windows):
    """Caps of an agent; the lowest that applies wins and "0" lets nothing be spent."""

    job: Money | None = key(None, "Cap of one job with all its attempts and replays.")


class CapEach(Windows):
    """Caps of every value of a payload field."""

    by: Reference = needed("The payload field.")


class Agent(Shape):
    """Somebody who spends money: its owner and its caps."""

    owner: Text = needed("Who may raise its caps.")
    cap: Cap | None = key(None, "Its caps; without one all its paid jobs are denied.")
    cap_each: CapEach | None = key(None, "Caps of every value of a payload field.")
    when_capped: Literal["wait", "deny"] = key("wait", "What a job without room does.")
    on_unknown: Literal["hold", "retry"] = key(
        "hold", "After a call that may have been billed: ask, or pay again."
    )
    provider_keys: bool = key(False, "Its provider bills one call per key.")
    provider_key_ttl: Duration | None = key(None, "How long the provider knows a key.")
    not_billed: list[Exceptional] = key([], "Errors that prove a call cost nothing.")
    rate: Rate = key("none", "Most starts in a time.")


class Retry(Shape):
    """A retry policy."""

    tries: int = key(3, "Attempts in all.", ge=1, le=1000)
    wait: Duration = key("10s", "Wait before the second attempt.")
    ladder: Annotated[list[Duration], Field(min_length=1, max_length=100)] | None = key(
        None, "The waits one by one instead; the last repeats."
    )
    factor: float = key(2, "Each wait is this much longer; 1 = fixed.", ge=1, le=100)
    max_wait: Duration = key("10m", "The longest wait.")
    jitter: float = key(0.2, "Waits are spread by this share.", ge=0, le=1)
    max_elapsed: DurationOrNone = key("none", "No attempt later than this.")
    max_replays: int = key(3, "Replays of a dead letter in its life.", ge=0, le=1000)
    never: list[Exceptional] = key([], "Exceptions that end a job at once.")
    only: list[Exceptional] = key([], "Nothing else is retried.")


class Queue(Shape):
    """A queue."""

    aliases: list[Wire] = key([], "Former names: rows waiting under them still run.")
    max_running: int | None = key(
        None, "Most running jobs over all workers.", ge=1, le=1_000_000
    )
    rate: Rate = key("none", "Most starts in a time.")


class Worker(Shape):
    """One worker process."""

    queues: Annotated[list[Reference], Field(min_length=1)] | None = key(
        None, "The queues it serves, in order of preference; all of them by default."
    )
    concurrency: int = key(4, "Jobs at a time.", ge=1, le=10_000)
    recycle_after_jobs: int | None = key(
        None, "A fresh process after so many jobs.", ge=1, le=1_000_000_000
    )
    on_start: Function | None = key(None, "Called once when the process starts.")
    on_stop: Function | None = key(None, "Called once when it ends.")


class Defaults(Shape):
    """Any key of a job but its payload, for the jobs that do not give it."""

    description: Text | None = key(None, "What the job does.")
    handler: Function | None = key(
        None, "Function that runs it; `<project.handlers>:<job>` by default."
    )
    queue: Reference = key("default", "Its queue.")
    agent: Reference | None = key(None, "Who pays; a job without one is not paid.")
    max_cost: Money | None = key(None, "The most one attempt may cost.")
    billing: Literal["calls", "attempt"] = key("calls", "What one paid call is.")
    retry: Reference = key("default", "Its retry policy.")
    tries: int | None = key(
        None, "Attempts in all; the policy's by default.", ge=1, le=1000
    )
    timeout: DurationOrNone = key("10m", "The handler is stopped after it.")
    soft_timeout: Duration | None = key(None, "The handler is warned after it.")
    longest: Duration | None = key(
        None, "The longest run seen; the timeout by default."
    )
    priority: Literal["high", "normal", "low"] = key("normal", "Which go first.")
    unique_by: Annotated[list[Reference], Field(min_length=1)] | None = key(
        None, "Payload fields: at most one unfinished job of their values."
    )
    max_running: int | None = key(None, "Most running at a time.", ge=1, le=1_000_000)
    max_running_by: Reference | None = key(None, "… for each value of this field.")
    tenant_by: Reference | None = key(None, "Field whose values take fair turns.")
    start_within: DurationOrNone = key("none", "Not started by then: failed.")
    reply: Function | None = key(None, "Called after success, retried by itself.")
    on_failed: Function | None = key(None, "Called when a job becomes a dead letter.")
    version: int = key(1, "Version of the payload.", ge=1, le=2_147_483_647)
    aliases: list[Wire] = key([], "Former names: rows waiting under them still run.")
    wire: Wire | None = key(None, "Foreign name in rows and on the wire.")
    max_defers: int = key(100, "Waits without using a try.", ge=0, le=1_000_000)


Number = (
    int | Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, words.DECIMAL]
)


class FieldTable(Shape):
    """A payload field in full."""

    type: Annotated[str, words.FULL_FIELD_TYPE] = needed("Its type, or enum.")
    default: Any = key(None, "Its value when none is given.")
    description: Text | None = key(None, "What it holds.")
    min: Number | None = key(None, "Least value.")
    max: Number | None = key(None, "Greatest value.")
    min_length: int | None = key(None, "Least length.", ge=0, le=1_000_000_000)
    max_length: int | None = key(None, "Greatest length.", ge=1, le=1_000_000_000)
    pattern: Text | None = key(None, "Regular expression that a text must match.")
    values: Annotated[list[str | int], Field(min_length=1, max_length=1000)] | None = (
        key(None, "The values of an enum.")
    )
    sensitive: bool = key(False, "Shown nowhere.")


class Job(Defaults):
    """A job."""

    payload: dict[FieldName, Annotated[str, words.FIELD_TYPE] | FieldTable] = key(
        {}, "Its fields: a type each, or a table."
    )


class Schedule(Shape):
    """A job that starts by the clock."""

    job: Reference = needed("The job.")
    cron: Annotated[str, words.CRON] | None = key(None, "When, as a cron line.")
    every: Duration | None = key(None, "When, as a distance of at least 1s.")
    timezone: Zone = key("UTC", "Time zone of the cron line.")
    missed: Literal["skip", "one", "all"] = key("skip", "What missed times become.")
    max_missed: int = key(10, "Most runs that `all` catches up.", ge=1, le=1000)
    overlap: Literal["skip", "allow"] = key("skip", "While the last run is unfinished.")
    enabled: bool = key(True, "Off keeps it in the file.")
    payload: dict[FieldName, Any] = key({}, "Values of the job's fields.")


class Arq(Shape):
    """The knobs of arq."""

    poll_delay: Duration | None = key(None, "How often an idle worker looks.")


class Rq(Shape):
    """The knobs of rq."""

    fork: bool = key(True, "A process of its own for each job.")


class Celery(Shape):
    """The knobs of celery."""

    pool: Literal["prefork", "threads"] = key("prefork", "What runs the jobs.")


class Targets(Shape):
    """The few knobs of one backend; those of another target are ignored."""

    arq: Arq | None = key(None, "For arq.")
    rq: Rq | None = key(None, "For rq.")
    celery: Celery | None = key(None, "For celery.")


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
