"""Keys that name a payload field: it is there, and its values can be compared."""

from __future__ import annotations

from collections.abc import Iterator

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.draft import Draft
from qgen.resolve.payload import full
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.shape import Job
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest


def check(draft: Draft) -> Iterator[Finding]:
    """``unique_by``, ``max_running_by``, ``tenant_by``, ``cap_each.by``."""
    for name, job in draft.jobs.items():
        named: list[tuple[Path, str | None]] = [
            (draft.at(name, "max_running_by"), job.max_running_by),
            (draft.at(name, "tenant_by"), job.tenant_by),
        ]
        unique = draft.at(name, "unique_by")
        named += [((*unique, i), field) for i, field in enumerate(job.unique_by or ())]
        agent = draft.spec.agents.get(job.agent or "")
        if agent and agent.cap_each:
            at: Path = ("agents", job.agent or "", "cap_each", "by")
            named.append((at, agent.cap_each.by))
        for path, field in named:
            if field is not None:
                yield from of_field(name, job, path, field)
        if job.max_running_by is not None and job.max_running is None:
            yield Finding(
                codes.BY_WITHOUT_LIMIT,
                draft.at(name, "max_running_by"),
                "`max_running_by` has no `max_running` to count against.",
                "add max_running = 1, or another number",
                at="key",
                also=((draft.at(name, "max_running"), "the limit"),),
            )


def of_field(name: str, job: Job, path: Path, field: str) -> Iterator[Finding]:
    """One field that one job should have."""
    if field not in job.payload:
        near = nearest(field, job.payload)
        write = f"did you mean `{near}`?" if near else "name one of its fields"
        if not job.payload:
            write = f"add {field} to [jobs.{name}.payload]"
        yield Finding(
            codes.UNKNOWN_FIELD,
            path,
            f"the payload of `{name}` has no field {shown(field)}.",
            write,
            also=((("jobs", name, "payload"), "its payload"),),
            unless=(("jobs", name, "payload", field),),
        )
        return
    kind = full(job.payload[field]).type.rstrip("?")
    if kind.startswith(("list", "dict")) or kind == "json":
        yield Finding(
            codes.UNIQUE_UNFIT,
            path,
            f"the field `{field}` is {kind}, which has no single value to compare.",
            "name a field of a single value",
            also=((("jobs", name, "payload", field), "the field"),),
            unless=(("jobs", name, "payload", field),),
        )
