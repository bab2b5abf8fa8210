"""The types of the registry: all that the engine knows of this project.

The compiler renders ``registry.py`` and ``jobs/*.py`` as values of these types; the
engine reads nothing else.  Durations are seconds, instants are integer milliseconds
since the epoch (the database's clock), amounts of money are integers of a millionth of
the unit, ``None`` means "no limit" where it is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import BaseModel

Priority = Literal["high", "normal", "low"]
Period = Literal["hour", "day", "week", "month"]

# How much earlier than its due time a row may be picked.  A low row is due at its
# ``run_at``; a high one competes as if it had been due 20 minutes before.  All bonuses
# are >= 0, so ``sort_at <= run_at`` always and a scan may stop at ``sort_at <= now``.
BONUS: Final[dict[str, float]] = {"high": 1200.0, "normal": 600.0, "low": 0.0}


@dataclass(frozen=True, slots=True)
class Spend:
    """How money is counted: the unit's name, and the zone in which windows begin."""

    unit: str = "USD"
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Project:
    """What the whole package shares: names, addresses, timings.

    ``heartbeat``, ``stall_after``, ``sweep``, ``grace`` are seconds;
    ``keep_*`` are seconds a finished row is kept, ``None`` = for ever.
    """

    name: str
    database_env: str
    database_default: str | None
    redis_env: str
    redis_tls: bool | None
    redis_verify: bool
    redis_ca_env: str | None
    heartbeat: float
    stall_after: float
    sweep: float
    grace: float
    keep_completed: float | None
    keep_failed: float | None
    keep_cancelled: float | None
    spend: Spend = Spend()


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue; rows that wait under one of ``aliases`` (former names) run too."""

    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy.

    ``tries`` counts attempts in all.  The wait before attempt *n + 1* is
    ``ladder[n - 1]`` (the last step repeats) or ``wait * factor ** (n - 1)``, at most
    ``max_wait``, spread by +- ``jitter`` (a share, 0 to 1).  ``never`` and ``only`` name
    exceptions as ``module:Name``, builtins bare; at most one of the two is set.
    """

    name: str
    tries: int
    wait: float
    factor: float
    max_wait: float
    jitter: float
    ladder: tuple[float, ...] = ()
    max_elapsed: float | None = None
    max_replays: int = 3
    never: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """Somebody who spends money, and the caps on it.

    ``caps`` are the most that may be spent in a window, ``job_cap`` by one job with all
    its attempts and replays, ``each_caps`` in a window for every value of the payload
    field ``each_by``; the lowest that applies wins.  Zero lets nothing be spent.  With
    neither ``caps`` nor ``job_cap`` every paid job of the agent is denied.

    ``provider_keys``: its provider bills one call per key, for ``provider_key_ttl``
    seconds.  ``not_billed`` names exceptions (as in ``Retry``) that prove that a call
    cost nothing.
    """

    name: str
    owner: str
    caps: Mapping[Period, int] = field(default_factory=dict)
    job_cap: int | None = None
    each_by: str | None = None
    each_caps: Mapping[Period, int] = field(default_factory=dict)
    when_capped: Literal["wait", "deny"] = "wait"
    on_unknown: Literal["hold", "retry"] = "hold"
    provider_keys: bool = False
    provider_key_ttl: float | None = None
    not_billed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job: its payload class and how it runs.

    ``handler`` is ``module:function``, imported by workers only.  ``timeout`` is seconds
    an attempt may take, ``None`` = no limit.  ``retry`` names a policy.  ``version`` is
    the payload's; a worker runs rows of any version up to its own.  ``sensitive`` names
    payload fields that are shown nowhere.

    ``agent`` makes the job paid: ``max_cost`` is the most that one attempt may cost, and
    ``billing`` says whether it pays by single calls or as a whole.  ``reply`` and
    ``on_failed`` are ``module:function``, run as jobs of their own after the end.
    """

    name: str
    payload: type[BaseModel]
    handler: str
    queue: str
    retry: str
    timeout: float | None
    priority: Priority = "normal"
    unique_by: tuple[str, ...] = ()
    version: int = 1
    aliases: tuple[str, ...] = ()
    max_defers: int = 100
    sensitive: tuple[str, ...] = ()
    agent: str | None = None
    max_cost: int = 0
    billing: Literal["calls", "attempt"] = "calls"
    reply: str | None = None
    on_failed: str | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker process: the queues it serves, in order of preference, and its slots."""

    name: str
    queues: tuple[str, ...]
    concurrency: int
