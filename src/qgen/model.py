"""What a spec means, fully resolved: frozen values, no dicts, no spans, no ``None`` to guess.

``qgen.front.analyse`` builds it; renderers and commands read nothing else.  Guarantees:

* Durations are seconds as ``float``; ``None`` means "no limit" and only where a field
  says so.
* Amounts of money are integers of a millionth of the unit.
* Everything that has a name is sorted by it, payload fields too, so the order of tables
  and keys in the file changes nothing.  Lists whose order has a meaning (a worker's
  queues, a ladder, the values of an enum) keep it.
* Names are safe: a job's ``name`` is a module and function name, its ``class_name`` a
  class name that meets no other job's and none of the generated code's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

Dialect = Literal["postgresql", "sqlite"]
Priority = Literal["high", "normal", "low"]
Period = Literal["hour", "day", "week", "month"]
Billing = Literal["calls", "attempt"]

# --- payload fields ---------------------------------------------------------------

ScalarKind = Literal[
    "str", "int", "float", "bool", "decimal", "uuid", "datetime", "date", "json"
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value; ``json`` is anything that JSON can hold."""

    kind: ScalarKind


@dataclass(frozen=True, slots=True)
class Enum:
    """One of these values, in the order of the spec; all texts or all whole numbers."""

    values: tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """``list[T]``."""

    of: FieldType


@dataclass(frozen=True, slots=True)
class DictOf:
    """``dict[str, T]``."""

    of: FieldType


@dataclass(frozen=True, slots=True)
class Optional:
    """``T?``: T or null.  Never holds another Optional."""

    of: FieldType


FieldType = Scalar | Enum | ListOf | DictOf | Optional


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a value, its keys sorted."""

    items: tuple[tuple[str, Value], ...]


# A default as a value of the field's own type: Decimal for a decimal, tuple for a list.
Value = (
    None
    | bool
    | int
    | float
    | str
    | Decimal
    | UUID
    | datetime
    | date
    | tuple["Value", ...]
    | Table
)


@dataclass(frozen=True, slots=True)
class Default:
    """A default that was given (or the null that ``T?`` implies); ``value`` may be None."""

    value: Value


@dataclass(frozen=True, slots=True)
class Constraints:
    """Limits of a field; they bind the value itself, inside an Optional too.

    ``min``/``max`` are inclusive and hold numbers (Decimal for a decimal field, else int
    or float); the lengths count characters of a text or entries of a list or dict;
    ``pattern`` is a regular expression that Rust's and Python's engines both know.
    """

    min: int | float | Decimal | None = None
    max: int | float | Decimal | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a payload; required when ``default`` is None.

    ``name`` is no Python keyword, nothing pydantic's BaseModel owns, and none of the
    names in ``qgen.spec.names.PAYLOAD_MODULE_NAMES``: what a rendered payload
    module may use beside its fields (``str``, ``Decimal``, ``UUID``, ``dt``, …).
    """

    name: str
    type: FieldType
    default: Default | None = None
    constraints: Constraints = Constraints()
    description: str = ""
    sensitive: bool = False


# --- the spec's tables ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Project:
    """Names and places.  Paths are relative to the spec's folder, with ``/``, no ``..``."""

    name: str
    package: str
    output: str
    tests: str
    handlers: str


@dataclass(frozen=True, slots=True)
class Record:
    """Where the rows are."""

    dialect: Dialect
    url_env: str
    table: str


@dataclass(frozen=True, slots=True)
class Redis:
    """How Redis is reached; ``tls`` None = as the address says."""

    url_env: str
    tls: bool | None
    verify: bool
    ca_file_env: str | None


@dataclass(frozen=True, slots=True)
class Stall:
    """How a dead process is told from a living one."""

    heartbeat: float
    after: float
    sweep: float


@dataclass(frozen=True, slots=True)
class Retention:
    """How long finished rows are kept; None = for ever."""

    completed: float | None
    failed: float | None
    cancelled: float | None


@dataclass(frozen=True, slots=True)
class Retry:
    """A policy; ``ladder`` empty = ``wait * factor ** n`` up to ``max_wait``.

    A job whose ``tries`` differ from its policy's has one of its own, made from it and
    called ``<policy>.<job>`` (no policy of a spec holds a dot, so names cannot meet).
    """

    name: str
    tries: int
    wait: float
    factor: float
    max_wait: float
    jitter: float
    ladder: tuple[float, ...]
    max_elapsed: float | None
    max_replays: int
    never: tuple[str, ...]
    only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``starts`` in any time of so many ``seconds``."""

    starts: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue that jobs use or the spec names, with its former names.

    ``max_running`` and ``rate`` bind all workers together; None = no limit.
    """

    name: str
    aliases: tuple[str, ...]
    max_running: int | None = None
    rate: Rate | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker process; ``queues`` in order of preference, never empty."""

    name: str
    queues: tuple[str, ...]
    concurrency: int
    recycle_after_jobs: int | None = None
    on_start: str | None = None
    on_stop: str | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """A variable with which a deployment overrides a value; ``key`` is its path."""

    variable: str
    key: str


@dataclass(frozen=True, slots=True)
class Spend:
    """How money is counted: the unit's name, and the zone in which windows begin."""

    unit: str
    timezone: str


@dataclass(frozen=True, slots=True)
class Agent:
    """Somebody who spends money.

    ``caps`` and ``each_caps`` hold the windows that have a cap, the shortest first;
    ``each_caps`` bind every value of the payload field ``each_by``.
    """

    name: str
    owner: str
    caps: tuple[tuple[Period, int], ...] = ()
    job_cap: int | None = None
    each_by: str | None = None
    each_caps: tuple[tuple[Period, int], ...] = ()
    when_capped: Literal["wait", "deny"] = "wait"
    on_unknown: Literal["hold", "retry"] = "hold"
    provider_keys: bool = False
    provider_key_ttl: float | None = None
    not_billed: tuple[str, ...] = ()
    rate: Rate | None = None

    @property
    def is_capped(self) -> bool:
        """False when all its paid jobs are denied: no cap means nothing."""
        return bool(self.caps) or self.job_cap is not None


@dataclass(frozen=True, slots=True)
class Job:
    """A job.  ``wire`` is its name in rows and on the wire (``name`` unless given).

    ``agent`` names who pays, None = not paid and ``max_cost`` is 0; ``reply`` and
    ``on_failed`` are ``module:function``.  ``max_running`` binds the whole fleet, for each
    value of ``max_running_by`` where that names a field; ``start_within`` is seconds from
    the due time, ``soft_timeout`` seconds from the start; None = no limit.
    """

    name: str
    class_name: str
    wire: str
    description: str
    handler: str
    queue: str
    retry: str
    timeout: float | None
    longest: float | None
    priority: Priority
    unique_by: tuple[str, ...]
    version: int
    aliases: tuple[str, ...]
    max_defers: int
    payload: tuple[Field, ...]
    agent: str | None = None
    max_cost: int = 0
    billing: Billing = "calls"
    reply: str | None = None
    on_failed: str | None = None
    soft_timeout: float | None = None
    max_running: int | None = None
    max_running_by: str | None = None
    tenant_by: str | None = None
    start_within: float | None = None

    @property
    def handler_module(self) -> str:
        """The module part of ``handler``."""
        return self.handler.partition(":")[0]

    @property
    def handler_function(self) -> str:
        """The function part of ``handler``."""
        return self.handler.partition(":")[2]

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The fields that are shown nowhere."""
        return tuple(each.name for each in self.payload if each.sensitive)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job that starts by the clock; ``job`` is its wire name.

    Exactly one of ``cron`` and ``every`` is set.  ``payload`` is in the form that JSON
    has: what is no text, number, boolean, list or table stands there as a text.
    """

    name: str
    job: str
    cron: str | None
    every: float | None
    timezone: str
    missed: Literal["skip", "one", "all"]
    max_missed: int
    overlap: Literal["skip", "allow"]
    enabled: bool
    payload: Table


# --- the target -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the backend that follows from the spec, and why it has its value.

    ``redelivers``: of a timer after which the backend gives to another worker what one
    has taken and not acknowledged, its seconds.
    """

    name: str
    value: str
    why: str
    redelivers: float | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The backend this model is for, and what an installation of the package needs."""

    name: str
    requirements: tuple[str, ...]
    settings: tuple[Setting, ...]
    knobs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Times:
    """What a deployment must agree with; ``resolve.times`` derives and checks them.

    ``stop`` is how long a supervisor waits between SIGTERM and SIGKILL, ``recovered``
    when a dead worker's jobs run again at the latest, ``acted`` when recovery has acted on
    any job that does not end, hung ones too; of one without a timeout it is a month.
    ``health_*``: how often ``health`` is asked, how long it may take, how often it must fail, and how long a start may take.
    """

    stop: float
    recovered: float
    acted: float
    health_interval: float
    health_timeout: float
    health_retries: int
    health_start: float


# --- where values come from -------------------------------------------------------

Origin = Literal["GIVEN", "ASSUMED", "MISSING", "PROPOSED"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One value and where it comes from, for the plan's BASIS.

    ``key`` is its path in the spec (``stall.after``), ``value`` is written as a spec
    would write it, ``note`` says what it stops or means; it may be empty.
    """

    key: str
    origin: Origin
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A whole spec, for one target."""

    project: Project
    record: Record
    redis: Redis
    stall: Stall
    grace: float
    retention: Retention
    target: Target
    times: Times
    retries: tuple[Retry, ...]
    queues: tuple[Queue, ...]
    workers: tuple[Worker, ...]
    jobs: tuple[Job, ...]
    spend: Spend = Spend("USD", "UTC")
    agents: tuple[Agent, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    overrides: tuple[Override, ...] = ()
    facts: tuple[Fact, ...] = field(default=())

    def policy(self, job: Job) -> Retry:
        """The retry policy of a job."""
        return next(each for each in self.retries if each.name == job.retry)

    def variable(self, key: str) -> str | None:
        """The variable that overrides the value at a path of the spec, if one does."""
        found = (each.variable for each in self.overrides if each.key == key)
        return next(found, None)

    def payer(self, job: Job) -> Agent | None:
        """Who pays for a job; None for one that is not paid."""
        return next((each for each in self.agents if each.name == job.agent), None)

    def paid_by(self, agent: Agent) -> tuple[Job, ...]:
        """The jobs that an agent pays for."""
        return tuple(job for job in self.jobs if job.agent == agent.name)

    def of_origin(self, origin: Origin) -> Iterator[Fact]:
        """The facts of one origin, in order."""
        return (fact for fact in self.facts if fact.origin == origin)
