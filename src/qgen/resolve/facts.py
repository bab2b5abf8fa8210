"""Where each value comes from, for the plan: given, assumed, missing, proposed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qgen.model import Fact, Model, Origin
from qgen.resolve.draft import Draft
from qgen.resolve.units import decimal, span
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
    return (
        *settings(draft, model),
        *workers(draft, model),
        *jobs(draft, model),
        *money(draft, model),
        *schedules(draft, model),
    )


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
            ("recycle_after_jobs", worker.recycle_after_jobs),
            ("on_start", worker.on_start),
            ("on_stop", worker.on_stop),
        ):
            if value is not None:
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


def money(draft: Draft, model: Model) -> Iterator[Fact]:
    """Who pays, up to what; without a cap, what that stops."""
    if not model.agents:
        return
    for key, value in (("unit", model.spend.unit), ("timezone", model.spend.timezone)):
        given = key in draft.spec.spend.model_fields_set
        yield Fact(f"spend.{key}", "GIVEN" if given else "ASSUMED", written(value))
    for agent in model.agents:
        at = f"agents.{agent.name}"
        given_keys = draft.spec.agents[agent.name].model_fields_set
        if not agent.is_capped:
            paid = ", ".join(job.wire for job in model.paid_by(agent)) or "none yet"
            note = f"all its paid jobs are denied: {paid}"
            yield Fact(f"{at}.cap", "MISSING", "not set", note)
        amounts = [(f"cap.{period}", amount) for period, amount in agent.caps]
        if agent.job_cap is not None:
            amounts.append(("cap.job", agent.job_cap))
        amounts += [
            (f"cap_each.{period}", amount) for period, amount in agent.each_caps
        ]
        for key, amount in amounts:
            by = f"of every value of {agent.each_by}" if "each" in key else ""
            yield Fact(f"{at}.{key}", "GIVEN", written(decimal(amount)), by)
        for key in ("when_capped", "on_unknown", "provider_keys"):
            origin: Origin = "GIVEN" if key in given_keys else "ASSUMED"
            yield Fact(f"{at}.{key}", origin, written(getattr(agent, key)))
    for job in model.jobs:
        if job.agent is not None:
            cost = written(decimal(job.max_cost))
            note = "the most one attempt may cost"
            yield Fact(f"jobs.{job.name}.max_cost", "GIVEN", cost, note)


def schedules(draft: Draft, model: Model) -> Iterator[Fact]:
    """What was not said of a schedule and decides when it runs."""
    for schedule in model.schedules:
        given = draft.spec.schedules[schedule.name].model_fields_set
        for key in ("timezone", "missed", "overlap"):
            if key == "timezone" and schedule.cron is None:
                continue
            origin: Origin = "GIVEN" if key in given else "ASSUMED"
            value = written(getattr(schedule, key))
            yield Fact(f"schedules.{schedule.name}.{key}", origin, value)


def written(value: Any) -> str:
    """A value as a spec would write it."""
    if isinstance(value, list):
        return f"[{', '.join(written(each) for each in value)}]"
    return shown(value)
