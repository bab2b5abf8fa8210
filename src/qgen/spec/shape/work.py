"""The tables of who works and pays: agents, retries, queues, workers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from qgen.spec.shape.base import Shape, key, needed
from qgen.spec.words import (
    Duration,
    DurationOrNone,
    Exceptional,
    Function,
    Money,
    Rate,
    Reference,
    Text,
    Wire,
    Zone,
)


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
    max_elapsed: DurationOrNone = key(
        "none", "No attempt is due later than this after the first start."
    )
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
