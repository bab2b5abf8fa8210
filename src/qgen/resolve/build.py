"""From a draft without errors to the model."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from qgen import model
from qgen.resolve.draft import Draft
from qgen.resolve.facts import facts
from qgen.resolve.paths import clean
from qgen.resolve.payload import field_of, full, kind_of
from qgen.resolve.times import stop_setting
from qgen.resolve.times import times as derived
from qgen.resolve.types import fit
from qgen.resolve.units import limit, millionths, per, seconds
from qgen.spec import shape
from qgen.spec.names import class_name
from qgen.targets import TARGETS
from qgen.targets.backend import Backend

PYDANTIC = "pydantic>=2.9,<3"
TZDATA = "tzdata>=2025.1"  # an image without the system's zones knows none but these
PERIODS: tuple[model.Period, ...] = ("hour", "day", "week", "month")
DRIVERS = {"postgresql": ("psycopg[binary]>=3.2,<4",), "sqlite": ()}


def build(draft: Draft) -> model.Model:
    """The model.  The draft has passed every pass."""
    spec = draft.spec
    workers = tuple(
        model.Worker(
            name,
            tuple(draft.served(worker)),
            worker.concurrency,
            worker.recycle_after_jobs,
            worker.on_start,
            worker.on_stop,
        )
        for name, worker in sorted(draft.workers.items())
    )
    grace = seconds(spec.shutdown.grace)
    stall = model.Stall(
        seconds(spec.stall.heartbeat),
        seconds(spec.stall.after),
        seconds(spec.stall.sweep),
    )
    backend = TARGETS[draft.target]
    timeouts = (limit(each.timeout) for each in draft.jobs.values())
    times = derived(grace, stall, workers, timeouts, backend.after_grace)
    made = model.Model(
        project=project(spec.project),
        record=model.Record(
            spec.record.dialect,
            spec.record.url_env,
            spec.record.table or f"{spec.project.name}_jobs",
        ),
        redis=model.Redis(
            spec.redis.url_env,
            spec.redis.tls,
            spec.redis.verify,
            spec.redis.ca_file_env,
        ),
        stall=stall,
        grace=grace,
        retention=model.Retention(
            limit(spec.retention.completed),
            limit(spec.retention.failed),
            limit(spec.retention.cancelled),
        ),
        target=target(backend, draft, times, workers, knobs(draft)),
        times=times,
        retries=retries(draft),
        queues=tuple(
            model.Queue(name, tuple(queue.aliases), queue.max_running, rate(queue.rate))
            for name, queue in sorted(draft.queues.items())
        ),
        workers=workers,
        jobs=tuple(job(draft, name) for name in sorted(draft.jobs)),
        spend=model.Spend(spec.spend.unit, spec.spend.timezone),
        agents=tuple(agent(name, each) for name, each in sorted(spec.agents.items())),
        schedules=tuple(schedule(draft, name) for name in sorted(spec.schedules)),
        overrides=tuple(model.Override(*each) for each in sorted(spec.env.items())),
    )
    return replace(made, facts=facts(draft, made))


def project(given: shape.Project) -> model.Project:
    """Names and places, with what follows from the name."""
    package = given.package or f"{given.name}_queue"
    return model.Project(
        given.name,
        package,
        clean(given.output),
        clean(given.tests or f"tests/{package}"),
        handlers(given),
    )


def handlers(given: shape.Project) -> str:
    """The module of the handlers that name none."""
    return given.handlers or f"{given.name}_handlers"


def target(
    backend: Backend,
    draft: Draft,
    times: model.Times,
    workers: tuple[model.Worker, ...],
    knobs: tuple[tuple[str, str], ...],
) -> model.Target:
    """The backend with what follows from the spec."""
    spec = draft.spec
    needs = (*backend.requirements, *DRIVERS[spec.record.dialect], PYDANTIC)
    named = {spec.spend.timezone, *(each.timezone for each in spec.schedules.values())}
    if named != {"UTC"}:
        needs = (*needs, TZDATA)
    settings = (stop_setting(times), *backend.settings(times, workers))
    return model.Target(backend.name, tuple(sorted(needs)), settings, knobs)


def knobs(draft: Draft) -> tuple[tuple[str, str], ...]:
    """The chosen target's table, with its defaults."""
    if draft.target not in shape.KNOBS:
        return ()
    given = getattr(draft.spec.targets, draft.target) or shape.KNOBS[draft.target]()
    return tuple(sorted(given.model_dump(exclude_none=True).items()))


def retries(draft: Draft) -> tuple[model.Retry, ...]:
    """The policies that jobs use, and one for each job with tries of its own.

    What follows the end of a job has the policy ``default``.
    """
    made = {}
    if any(job.reply or job.on_failed for job in draft.jobs.values()):
        made["default"] = retry(
            "default", draft.policies["default"], draft.policies["default"].tries
        )
    for name, job in draft.jobs.items():
        policy = draft.policies[job.retry]
        own = policy_name(draft, name)
        if own not in made:  # what many jobs have alike is made once
            made[own] = retry(own, policy, draft.tries(job))
    return tuple(made[name] for name in sorted(made))


def policy_name(draft: Draft, name: str) -> str:
    """The policy of a job: the one it names, or one made from it."""
    job = draft.jobs[name]
    same = draft.tries(job) == draft.policies[job.retry].tries
    return job.retry if same else f"{job.retry}.{name}"


def retry(name: str, given: shape.Retry, tries: int) -> model.Retry:
    """One policy."""
    return model.Retry(
        name=name,
        tries=tries,
        wait=seconds(given.wait),
        factor=float(given.factor),
        max_wait=seconds(given.max_wait),
        jitter=float(given.jitter),
        ladder=tuple(seconds(step) for step in given.ladder or ()),
        max_elapsed=limit(given.max_elapsed),
        max_replays=given.max_replays,
        never=tuple(given.never),
        only=tuple(given.only),
    )


def agent(name: str, given: shape.Agent) -> model.Agent:
    """One agent."""
    cap, each, ttl = given.cap, given.cap_each, given.provider_key_ttl
    return model.Agent(
        name=name,
        owner=given.owner,
        caps=caps(cap),
        job_cap=millionths(cap.job) if cap and cap.job is not None else None,
        each_by=each.by if each else None,
        each_caps=caps(each),
        when_capped=given.when_capped,
        on_unknown=given.on_unknown,
        provider_keys=given.provider_keys,
        provider_key_ttl=seconds(ttl) if ttl else None,
        not_billed=tuple(given.not_billed),
        rate=rate(given.rate),
    )


def rate(text: str) -> model.Rate | None:
    """``60/1m``; None where there is none."""
    return None if text == "none" else model.Rate(*per(text))


def caps(given: shape.Windows | None) -> tuple[tuple[model.Period, int], ...]:
    """The windows that have a cap."""
    found = ((period, getattr(given, period, None)) for period in PERIODS)
    return tuple((period, millionths(text)) for period, text in found if text)


def job(draft: Draft, name: str) -> model.Job:
    """One job."""
    given = draft.jobs[name]
    timeout = limit(given.timeout)
    module = handlers(draft.spec.project)
    fields = sorted(given.payload.items())
    return model.Job(
        name=name,
        class_name=class_name(name),
        wire=given.wire or name,
        description=given.description or "",
        handler=given.handler or f"{module}:{name}",
        queue=given.queue,
        retry=policy_name(draft, name),
        timeout=timeout,
        longest=seconds(given.longest) if given.longest else timeout,
        priority=given.priority,
        unique_by=tuple(sorted(given.unique_by or ())),
        version=given.version,
        aliases=tuple(sorted(given.aliases)),
        max_defers=given.max_defers,
        payload=tuple(field_of(field, kind) for field, kind in fields),
        agent=given.agent,
        max_cost=millionths(given.max_cost) if given.agent and given.max_cost else 0,
        billing=given.billing if given.agent else "calls",
        reply=given.reply,
        on_failed=given.on_failed,
        soft_timeout=seconds(given.soft_timeout) if given.soft_timeout else None,
        max_running=given.max_running,
        max_running_by=given.max_running_by,
        tenant_by=given.tenant_by,
        start_within=limit(given.start_within),
    )


def schedule(draft: Draft, name: str) -> model.Schedule:
    """One schedule."""
    given = draft.spec.schedules[name]
    job = draft.jobs[given.job]
    fields = {key: kind_of(full(job.payload[key])) for key in given.payload}
    values = {
        key: in_json(fit(value, fields[key])) for key, value in given.payload.items()
    }
    return model.Schedule(
        name=name,
        job=job.wire or given.job,
        cron=" ".join(given.cron.split()) if given.cron else None,
        every=seconds(given.every) if given.every else None,
        timezone=given.timezone,
        missed=given.missed,
        max_missed=given.max_missed,
        overlap=given.overlap,
        enabled=given.enabled,
        payload=model.Table(tuple(sorted(values.items()))),
    )


def in_json(value: model.Value) -> model.Value:
    """A value as JSON has it."""
    match value:
        case tuple():
            return tuple(in_json(each) for each in value)
        case model.Table():
            return model.Table(tuple((key, in_json(of)) for key, of in value.items))
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
    return value
