"""Names that lead somewhere: queues, policies, agents, and who uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qgen.diagnostics.catalogue import relations as codes
from qgen.diagnostics.catalogue.code import Code
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest


def check(draft: Draft) -> Iterator[Finding]:
    """What the jobs and workers name exists, and what exists is used."""
    for name, job in draft.jobs.items():
        for key, code, known in (
            ("queue", codes.UNKNOWN_QUEUE, draft.queues),
            ("retry", codes.UNKNOWN_POLICY, draft.policies),
            ("agent", codes.UNKNOWN_AGENT, draft.spec.agents),
        ):
            value = getattr(job, key)
            if value is not None and value not in known:
                yield unknown(code, draft.at(name, key), value, known)
    for name, worker in draft.spec.workers.items():
        for index, queue in enumerate(worker.queues or ()):
            if queue not in draft.queues:
                at: Path = ("workers", name, "queues", index)
                yield unknown(codes.UNKNOWN_QUEUE, at, queue, draft.queues)
    yield from unserved(draft)
    yield from unused(draft)


TABLES = {
    codes.UNKNOWN_QUEUE: ("queue", "queues"),
    codes.UNKNOWN_POLICY: ("retry policy", "retries"),
    codes.UNKNOWN_AGENT: ("agent", "agents"),
}


def unknown(code: Code, at: Path, name: str, known: Iterable[str]) -> Finding:
    """A name without a table."""
    what, table = TABLES[code]
    near = nearest(name, known)
    write = f"did you mean `{near}`?" if near else f"add [{table}.{name}]"
    message = f"there is no {what} {shown(name)}."
    return Finding(code, at, message, write, unless=((table, name),))


def unserved(draft: Draft) -> Iterator[Finding]:
    """Queues whose jobs would wait for ever."""
    served = {
        queue for worker in draft.workers.values() for queue in draft.served(worker)
    }
    used = {job.queue for job in draft.jobs.values()}
    for queue in sorted(draft.queues):
        if queue in served or queue not in used:
            continue
        job = min(name for name, each in draft.jobs.items() if each.queue == queue)
        own = queue in draft.spec.queues
        yield Finding(
            codes.UNSERVED,
            ("queues", queue) if own else draft.at(job, "queue"),
            f"no worker serves the queue `{queue}`.",
            f'add "{queue}" to the `queues` of a worker',
            at="key",
            unless=(("workers",),),
        )


def unused(draft: Draft) -> Iterator[Finding]:
    """Tables that no job names."""
    jobs = draft.jobs.values()
    policies = {job.retry for job in jobs}
    if any(job.reply or job.on_failed for job in jobs):
        policies.add("default")
    for table, used in (
        ("queues", {job.queue for job in jobs}),
        ("retries", policies),
        ("agents", {job.agent for job in jobs}),
    ):
        for name in getattr(draft.spec, table):
            if name not in used and (table, name) != ("queues", "default"):
                yield Finding(
                    codes.UNUSED,
                    (table, name),
                    f"no job uses [{table}.{name}].",
                    "name it in a job, or delete it",
                    at="key",
                    unless=(("jobs",), ("defaults",)),
                )
