"""The tables of jobs, their payload fields, and schedules."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from qgen.spec import words
from qgen.spec.shape.base import Shape, key, needed
from qgen.spec.words import (
    Duration,
    DurationOrNone,
    FieldName,
    Function,
    Money,
    Reference,
    Text,
    Wire,
    Zone,
)


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
