"""Where each value comes from, for the plan: given, assumed, missing, proposed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qgen.model import Fact, Model, Origin
from qgen.resolve.draft import Draft
from qgen.resolve.units import span
from qgen.spec.messages import shown

# Tables whose keys are facts; their own order is the plan's.
TABLES: Final = ("project", "record", "redis", "stall", "shutdown", "retention")
HIDDEN: Final = frozenset(
    {
        ("record", "migrations"),
        ("record", "versions"),
        ("record", "existing"),
        ("record", "id_type"),
        ("record", "columns"),
        ("record", "states"),
        ("project", "target"),
    }
)
TLS: Final = (
    "follows the address: redis:// is open, rediss:// is TLS; write tls = true or"
    " tls = false to hold it to one"
)


def facts(draft: Draft, model: Model) -> tuple[Fact, ...]:
    """Every fact, in the order of the plan."""
    return (*settings(draft, model), *workers(draft, model), *jobs(draft, model))


def settings(draft: Draft, model: Model) -> Iterator[Fact]:
    """The tables that every spec has, given or not."""
    proposed = "record" not in draft.spec.model_fields_set
    for table in TABLES:
        shape = getattr(draft.spec, table)
        for key in type(shape).model_fields:
            if (table, key) in HIDDEN:
                continue
            given = key in shape.model_fields_set
            value = getattr(shape, key)
            if value is None:
                value = getattr(getattr(model, table), key, None)
            name = f"{table}.{key}"
            if name == "redis.tls" and value is None:
                yield Fact(name, "MISSING", "not set", TLS)
            elif value is not None:
                absent: Origin = "ASSUMED"
                if table == "record" and proposed:
                    absent = "PROPOSED"
                yield Fact(name, "GIVEN" if given else absent, written(value))


def workers(draft: Draft, model: Model) -> Iterator[Fact]:
    """Who runs what, and how many at a time."""
    for worker in model.workers:
        given = draft.spec.workers.get(worker.name)
        keys = given.model_fields_set if given else set()
        for key, value in (
            ("queues", list(worker.queues)),
            ("concurrency", worker.concurrency),
        ):
            origin: Origin = "GIVEN" if key in keys else "ASSUMED"
            yield Fact(f"workers.{worker.name}.{key}", origin, written(value))


def jobs(draft: Draft, model: Model) -> Iterator[Fact]:
    """The times of each job: the figures that a load decides about."""
    for job in model.jobs:
        laid = draft.jobs[job.name].model_fields_set
        for key, value, note in (
            ("timeout", job.timeout, "a run is stopped after it"),
            (
                "longest",
                job.longest,
                "the longest run seen; the timeout until measured",
            ),
        ):
            origin: Origin = "GIVEN" if key in laid else "ASSUMED"
            text = "none" if value is None else span(value)
            yield Fact(f"jobs.{job.name}.{key}", origin, written(text), note)


def written(value: Any) -> str:
    """A value as a spec would write it."""
    if isinstance(value, list):
        return f"[{', '.join(written(each) for each in value)}]"
    return shown(value)
