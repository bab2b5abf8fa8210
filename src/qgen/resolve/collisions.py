"""Names that would meet: classes, wire names, former names, variables, list entries."""

from __future__ import annotations

from collections.abc import Iterator

from qgen.diagnostics.catalogue import names as codes
from qgen.diagnostics.catalogue import values
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.names import class_name, whose_variable
from qgen.spec.spans import Path


def check(draft: Draft) -> Iterator[Finding]:
    """Both places of each meeting, at the second one in the order of the file."""
    yield from classes(draft)
    yield from wires(draft)
    yield from queues(draft)
    yield from variables(draft)
    yield from repeated(draft)


def classes(draft: Draft) -> Iterator[Finding]:
    """Two jobs whose payload classes would have one name."""
    seen: dict[str, str] = {}
    for job in draft.spec.jobs:
        name = class_name(job)
        first = seen.setdefault(name, job)
        if first != job:
            message = f"the jobs `{job}` and `{first}` both become the class `{name}`."
            yield Finding(
                codes.MEET,
                ("jobs", job),
                message,
                "rename one of them",
                at="key",
                also=((("jobs", first), f"`{first}`"),),
            )


def wires(draft: Draft) -> Iterator[Finding]:
    """A wire name or former name that two jobs would answer to."""
    owners: dict[str, tuple[str, Path]] = {
        name: (name, ("jobs", name)) for name in draft.spec.jobs
    }
    for name, job in draft.jobs.items():
        claims = [(alias, index) for index, alias in enumerate(job.aliases)]
        at = draft.at(name, "aliases")
        named = [(alias, (*at, index)) for alias, index in claims]
        if job.wire is not None and job.wire != name:
            named.insert(0, (job.wire, draft.at(name, "wire")))
        for key in ("reply", "on_failed"):
            if getattr(job, key) is not None:
                # An internal job of its own, also for rows under former names.
                names = (job.wire or name, *job.aliases)
                named += [(f"{each}.{key}", draft.at(name, key)) for each in names]
        for text, path in named:
            owner, first = owners.setdefault(text, (name, path))
            if first == path and owner == name:
                continue
            whose = "this job" if owner == name else f"the job `{owner}`"
            yield Finding(
                codes.ALIAS_TAKEN,
                path,
                f"{shown(text)} already belongs to {whose}.",
                "leave it to one job",
                also=((first, "already here"),),
            )


def queues(draft: Draft) -> Iterator[Finding]:
    """A former name of a queue that is another's name or former name."""
    owners: dict[str, tuple[str, Path]] = {
        name: (name, ("queues", name)) for name in draft.queues
    }
    for name, queue in draft.spec.queues.items():
        for index, alias in enumerate(queue.aliases):
            path: Path = ("queues", name, "aliases", index)
            owner, first = owners.setdefault(alias, (name, path))
            if first != path:
                yield Finding(
                    codes.ALIAS_TAKEN,
                    path,
                    f"{shown(alias)} already belongs to the queue `{owner}`.",
                    "leave it to one queue",
                    also=((first, "already here"),),
                )


def variables(draft: Draft) -> Iterator[Finding]:
    """One environment variable with two meanings."""
    spec = draft.spec
    named: list[tuple[str | None, Path]] = [
        (spec.record.url_env, ("record", "url_env")),
        (spec.redis.url_env, ("redis", "url_env")),
        (spec.redis.ca_file_env, ("redis", "ca_file_env")),
        *((name, ("env", name)) for name in spec.env),
    ]
    seen: dict[str, Path] = {}
    for variable, path in named:
        if variable is None:
            continue
        whose = whose_variable(variable, spec.project.name)
        if whose and path[0] == "env" and variable not in seen:
            key = spec.env[variable].rpartition(".")[2]
            own = f"{spec.project.name}_{key}".upper()
            message = f"the variable `{variable}` is {whose}."
            write = f"write a name of this project's own, such as {own}"
            yield Finding(codes.TAKEN_VARIABLE, path, message, write, at="key")
        first = seen.setdefault(variable, path)
        if first != path:
            yield Finding(
                codes.SAME_VARIABLE,
                path,
                f"the variable `{variable}` is also `{'.'.join(map(str, first))}`.",
                "name another variable",
                at="key" if path[0] == "env" else "value",
                also=((first, "already here"),),
            )


def repeated(draft: Draft) -> Iterator[Finding]:
    """Lists in which an entry can stand only once.  (Names of queues and jobs that
    repeat are collisions, above.)"""
    lists: list[tuple[Path, list[str] | None]] = []
    for name, worker in draft.spec.workers.items():
        lists.append((("workers", name, "queues"), worker.queues))
    for name, policy in draft.spec.retries.items():
        lists.append((("retries", name, "never"), policy.never))
        lists.append((("retries", name, "only"), policy.only))
    for name, agent in draft.spec.agents.items():
        lists.append((("agents", name, "not_billed"), agent.not_billed))
    for name, job in draft.jobs.items():
        lists.append((draft.at(name, "unique_by"), job.unique_by))
    for path, entries in lists:
        for index, entry in enumerate(entries or ()):
            if entry in (entries or ())[:index]:
                message = f"{shown(entry)} stands twice in `{path[-1]}`."
                write = "delete one of the two"
                yield Finding(values.REPEATED, (*path, index), message, write)
