"""Keys that are right by themselves and change nothing beside what else is said."""

from __future__ import annotations

from collections.abc import Iterator

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding
from qgen.spec.shape import Shape
from qgen.spec.spans import Path

WINDOWS = frozenset({"hour", "day", "week", "month"})


def check(draft: Draft) -> Iterator[Finding]:
    """Table by table.  Where such a pair contradicts itself it is an error of its own
    code, in the pass of its table."""
    yield from agents(draft)
    yield from spend(draft)
    yield from redis(draft)
    yield from retries(draft)
    yield from workers(draft)
    yield from defaults(draft)
    yield from handlers(draft)


def idle(path: Path, why: str, write: str, *rests_on: Path) -> Finding:
    """A key without effect.  Where what that rests on was refused, nothing is said."""
    message = f"`{path[-1]}` has no effect {why}."
    unless = (path, *rests_on)
    return Finding(codes.IDLE, path, message, write, at="key", unless=unless)


def agents(draft: Draft) -> Iterator[Finding]:
    """Keys without the other half; a choice between answers of which one is given."""
    for name, agent in draft.spec.agents.items():
        at: Path = ("agents", name)
        if agent.provider_key_ttl is not None and not agent.provider_keys:
            yield idle(
                (*at, "provider_key_ttl"),
                "without provider_keys = true",
                "write provider_keys = true if its provider bills one call per key, or"
                " leave it out",
                (*at, "provider_keys"),
            )
        billings = {job.billing for job in draft.jobs.values() if job.agent == name}
        if agent.provider_keys and billings == {"attempt"}:
            yield idle(
                (*at, "provider_keys"),
                'on jobs with billing = "attempt": their handlers are given no key',
                'write billing = "calls" and job.paid_call, or leave it out',
                ("jobs",),
                ("defaults",),
            )
        each = agent.cap_each.model_fields_set & WINDOWS if agent.cap_each else set()
        if agent.cap_each is not None and not each:
            yield idle(
                (*at, "cap_each"),
                "without an hour, day, week or month",
                'write cap_each = { by = "…", day = "…" }, or leave it out',
            )
        caps = agent.cap.model_fields_set if agent.cap else set()
        if caps and not each | (caps & WINDOWS) and "when_capped" in given(agent):
            yield idle(
                (*at, "when_capped"),
                "where only a job has a cap: at that one a job is always denied",
                "add the cap of a window, or leave it out",
                (*at, "cap"),
                (*at, "cap_each"),
            )


def spend(draft: Draft) -> Iterator[Finding]:
    """A unit of nothing."""
    if not draft.spec.agents:
        for key in sorted(given(draft.spec.spend)):
            write = "write [agents.<name>] for who spends, or leave it out"
            yield idle(("spend", key), "without an agent", write, ("agents",))


def redis(draft: Draft) -> Iterator[Finding]:
    """A CA for certificates that nobody checks."""
    given_redis = draft.spec.redis
    if (
        given_redis.ca_file_env
        and not given_redis.verify
        and given_redis.tls is not False
    ):
        yield idle(
            ("redis", "ca_file_env"),
            "with verify = false",
            "leave verify out: the CA is what it checks against",
            ("redis", "verify"),
            ("redis", "tls"),
        )


def retries(draft: Draft) -> Iterator[Finding]:
    """An end to a growth that there is not."""
    for name, policy in draft.spec.retries.items():
        fixed = policy.factor == 1 and not policy.ladder
        if fixed and "max_wait" in given(policy):
            at: Path = ("retries", name)
            yield idle(
                (*at, "max_wait"),
                "with factor = 1: every wait is the first one",
                "leave it out, or write a factor above 1",
                (*at, "factor"),
                (*at, "ladder"),
            )


def workers(draft: Draft) -> Iterator[Finding]:
    """Fresh processes where each job has one anyway."""
    knobs = draft.spec.targets.rq
    if draft.target != "rq" or (knobs is not None and knobs.worker != "fork"):
        return
    for name, worker in draft.spec.workers.items():
        if worker.recycle_after_jobs is not None:
            yield idle(
                ("workers", name, "recycle_after_jobs"),
                "on rq, where each job has a process of its own",
                'leave it out, or write worker = "simple" in [targets.rq]',
                ("targets",),
                ("project", "target"),
            )


def defaults(draft: Draft) -> Iterator[Finding]:
    """Keys that no job takes, and costs of jobs that are not paid."""
    jobs = draft.spec.jobs
    for key in sorted(given(draft.spec.defaults)):
        takers = [name for name, job in jobs.items() if key not in given(job)]
        at: Path = ("defaults", key)
        if not takers:
            yield idle(at, "here: every job gives its own", "leave it out", ("jobs",))
        elif key in ("max_cost", "billing") and not any(
            draft.jobs[name].agent for name in takers
        ):
            yield idle(
                at,
                "on jobs without an agent",
                'write agent = "…" beside it, or leave it out',
                ("jobs",),
                ("defaults", "agent"),
            )


def handlers(draft: Draft) -> Iterator[Finding]:
    """A module that nothing is imported from."""
    module = draft.spec.project.handlers
    called = [
        name
        for job in draft.jobs.values()
        for name in (job.handler or f"{module}:", job.reply, job.on_failed)
    ]
    for worker in draft.spec.workers.values():
        called += (worker.on_start, worker.on_stop)
    if module and not any(name and name.startswith(f"{module}:") for name in called):
        yield idle(
            ("project", "handlers"),
            "here: every job names its handler elsewhere",
            "leave it out",
            ("jobs",),
            ("defaults",),
            ("workers",),
        )


def given(table: Shape) -> set[str]:
    """The keys of a table that stand in the file."""
    return table.model_fields_set
