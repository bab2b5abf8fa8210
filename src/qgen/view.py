"""What the templates ask of the model beyond its fields."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import Final

from . import literal, markdown, sorting
from .fit import LINE
from .literal import Code
from .model import Job, Model, Queue, Rate, Spend, Worker
from .resolve import overrides, units

API: Final = (
    "Defer",
    "Enqueued",
    "aenqueue",
    "aenqueue_many",
    "await_result",
    "cancel",
    "enqueue",
    "enqueue_many",
    "publish",
    "wait",
)


def jobs_by_import(model: Model) -> list[Job]:
    """The jobs in the order of their imports."""
    jobs = {job.name: job for job in model.jobs}
    return [jobs[name] for name in sorting.natural(jobs)]


def public_names(model: Model) -> list[str]:
    """The package's ``__all__``."""
    return sorting.public([*API, *(job.class_name for job in model.jobs)])


def database_default(model: Model) -> str | None:
    """The database when its variable is not set: a file, or none."""
    if model.record.dialect == "sqlite":
        return f"sqlite:///{model.project.name}.db"
    return None


def registry_types(model: Model) -> Code:
    """What the registry needs of the definitions."""
    rate = "Rate, " if has_rate(model) else ""
    spend = "Spend, " if shows_spend(model) else ""
    return Code(f"Agent, Project, Queue, {rate}Retry, Schedule, {spend}Worker")


def shows_spend(model: Model) -> bool:
    """True when the unit and the zone of money mean something here."""
    return bool(model.agents) or model.spend != Spend("USD", "UTC")


def value(model: Model, key: str, given: object) -> Code:
    """A value of the registry as code; where a variable may override it, its reading."""
    code = given if isinstance(given, Code) else literal.literal(given)
    variable = model.variable(key)
    if variable is None:
        return code
    kind = overrides.kind_of(key)
    takes = "".join(f", {number:_}" for number in kind.takes)
    return Code(f"overrides.{kind.reader}({literal.literal(variable)}, {code}{takes})")


def is_overridden(model: Model) -> bool:
    """True when a variable may override a value of the registry, not only of a job."""
    return any(not each.key.startswith("jobs.") for each in model.overrides)


def overrides_of(model: Model) -> Code:
    """Every variable that overrides something, and the path of that."""
    items = (
        f"{literal.literal(each.variable)}: {literal.literal(each.key)}"
        for each in model.overrides
    )
    return Code(f"{{{', '.join(items)}}}")


def what_overrides(model: Model) -> list[Overridden]:
    """Every variable that overrides something, by its name."""
    return [
        Overridden(each.variable, each.key, overrides.kind_of(each.key).write)
        for each in model.overrides
    ]


@dataclass(frozen=True, slots=True)
class Overridden:
    """A variable, the key it overrides, and what may be written into it."""

    variable: str
    key: str
    write: str


def amount(millionths: int) -> Code:
    """An amount as code: millionths in groups of three digits."""
    return Code(f"{millionths:_}")


def decimal(millionths: int) -> Code:
    """An amount as a person writes it."""
    return Code(units.decimal(millionths))


def queue(model: Model, queue: Queue) -> Code:
    """The registry's entry of a queue."""
    at = f"queues.{queue.name}"
    parts = [f"name={literal.literal(queue.name)}"]
    if queue.aliases:
        parts.append(f"aliases={literal.literal(queue.aliases)}")
    if is_set(model, f"{at}.max_running", queue.max_running):
        most = value(model, f"{at}.max_running", queue.max_running)
        parts.append(f"max_running={most}")
    if is_set(model, f"{at}.rate", queue.rate):
        parts.append(f"rate={rate(model, f'{at}.rate', queue.rate)}")
    return Code(f"Queue({', '.join(parts)})")


@dataclass(frozen=True, slots=True)
class Limit:
    """What holds jobs back: a kind of limit, whose it is, and the limit in words."""

    what: str
    of: str
    limit: str


def limits(model: Model) -> list[Limit]:
    """Every limit of the spec, in the order of its queues, agents and jobs."""
    found: list[Limit] = []
    for queue in model.queues:
        if queue.max_running is not None:
            text = f"{queue.max_running} run at a time"
            found.append(Limit("queue", queue.name, text))
        if queue.rate is not None:
            found.append(Limit("queue", queue.name, in_words(queue.rate)))
    for agent in model.agents:
        if agent.rate is not None:
            found.append(Limit("agent", agent.name, in_words(agent.rate)))
    for job in model.jobs:
        if job.max_running is not None:
            by = f", for each {job.max_running_by}" if job.max_running_by else ""
            text = f"{job.max_running} run at a time{by}"
            found.append(Limit("job", job.wire, text))
        if job.tenant_by is not None:
            text = f"each {job.tenant_by} takes its turn within a queue"
            found.append(Limit("job", job.wire, text))
        if job.start_within is not None:
            text = f"starts within {duration(job.start_within)}, or fails as expired"
            found.append(Limit("job", job.wire, text))
        if job.soft_timeout is not None:
            text = f"is told to stop after {duration(job.soft_timeout)}"
            found.append(Limit("job", job.wire, text))
    return found


def in_words(rate: Rate) -> str:
    """A rate in words."""
    return f"{rate.starts} start in any {duration(rate.seconds)}"


def has_rate(model: Model) -> bool:
    """True when some queue or agent has a rate."""
    queues = any(queue.rate for queue in model.queues)
    return queues or any(agent.rate for agent in model.agents)


def is_limited(model: Model) -> bool:
    """True when rows may wait for one another, or for a rate."""
    queues = any(queue.max_running for queue in model.queues)
    return queues or has_rate(model) or any(job.max_running for job in model.jobs)


def expires(model: Model) -> bool:
    """True when some job must start in time."""
    return any(job.start_within is not None for job in model.jobs)


def is_set(model: Model, key: str, value: object) -> bool:
    """Whether a limit stands in the spec, or a deployment may set it."""
    return value is not None or model.variable(key) is not None


def rate(model: Model, key: str, rate: Rate | None) -> Code:
    """A rate as code; where a variable may override it, its reading."""
    code = "None"
    if rate is not None:
        starts, seconds = literal.literal(rate.starts), literal.literal(rate.seconds)
        code = f"Rate(starts={starts}, seconds={seconds})"
    return value(model, key, Code(code))


def requirement(line: str) -> Code:
    """A line of requirements.txt; they are qgen's own texts, checked all the same."""
    if not line.isprintable() or not line.isascii():
        raise ValueError(f"not a requirement: {line!r}")
    return Code(line)


def knob(model: Model, name: str) -> str:
    """A knob of the backend, as the spec or its default says."""
    return dict(model.target.knobs)[name]


def import_of_payloads(package: str, classes: list[str]) -> Code:
    """The import of these payload classes, as isort and black write it."""
    names = sorting.public({literal.name(each) for each in classes})
    line = f"from {literal.name(package)} import {', '.join(names)}"
    if len(line) <= LINE:
        return Code(line)
    lines = "".join(f"    {name},\n" for name in names)
    return Code(f"from {package} import (\n{lines})")


def worker_word(model: Model) -> Code:
    """What follows ``worker`` on the command line: a name where it cannot be left out."""
    names = [worker.name for worker in model.workers]
    if len(names) == 1 or "main" in names:
        return Code("")
    return Code(f" {literal.name(names[0])}")


def hooks(worker: Worker) -> Code:
    """What runs at its start and at its end."""
    names = [name for name in (worker.on_start, worker.on_stop) if name is not None]
    return listed(names) if names else Code("none")


def recycles(model: Model) -> bool:
    """True when some worker makes room for a fresh process."""
    return any(worker.recycle_after_jobs for worker in model.workers)


def plural(of: Sized) -> Code:
    """``s`` unless there is one."""
    return Code("" if len(of) == 1 else "s")


def listed(texts: Iterable[str]) -> Code:
    """Texts as code spans, in their order."""
    return Code(", ".join(markdown.code(text) for text in texts))


def duration(seconds: float | None) -> Code:
    """As a spec writes it: ``1h30m``; no limit in words."""
    if seconds is None:
        return Code("no limit")
    rest, parts = round(seconds * 1000), ""
    for unit, size in (
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ):
        count, rest = divmod(rest, size)
        parts += f"{count}{unit}" if count else ""
    return Code(parts or "0s")


def last_start(model: Model, job: Job) -> float | None:
    """Seconds from the first start to the last one, at most: attempts and waits."""
    policy = model.policy(job)
    if job.timeout is None:
        return None
    waits = (
        (
            policy.ladder[min(n, len(policy.ladder) - 1)]
            if policy.ladder
            else min(policy.max_wait, policy.wait * policy.factor**n)
        )
        for n in range(min(policy.tries - 1, 10_000))
    )
    total = sum(job.timeout + wait * (1 + policy.jitter) for wait in waits)
    return total if policy.max_elapsed is None else min(total, policy.max_elapsed)


def has_handlers(model: Model) -> bool:
    """True when some job is handled by the project's own module."""
    return any(job.handler_module == model.project.handlers for job in model.jobs)


@dataclass(frozen=True, slots=True)
class Follower:
    """A job that follows the end of another, by its name."""

    job: str


def followers(model: Model) -> list[Follower]:
    """Every reply and on_failed."""
    return [
        Follower(f"{job.wire}.{suffix}")
        for job in model.jobs
        for suffix in ("reply", "on_failed")
        if getattr(job, suffix) is not None
    ]


def has_reply(model: Model) -> bool:
    """True when some job answers after its end."""
    return any(job.reply for job in model.jobs)


def spool(model: Model) -> Code:
    """The folder for what the database could not take in time."""
    return markdown.code(f".{model.project.name}-spool")


def spool_variable(model: Model) -> Code:
    """The variable that names another."""
    return markdown.code(f"{model.project.name.upper()}_SPOOL")


def package_path(model: Model) -> str:
    """The package's folder, relative to the spec's."""
    output, package = model.project.output, model.project.package
    return package if output == "." else f"{output}/{package}"


def depth(folder: str) -> int:
    """How many folders a file in ``folder`` is below the spec's, counted from 0."""
    return 0 if folder == "." else folder.count("/") + 1


def pytest(model: Model) -> Code:
    """The command that runs the generated suite."""
    return markdown.code(f"pytest {model.project.tests}")
