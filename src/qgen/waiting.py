"""Rows that wait: a payload that changes must still read them, or have a new version.

The lock keeps the fields of each payload beside its version.  A field that a payload
demands now and did not demand when this version was last built makes dead letters of
the rows that wait, so ``build`` asks first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .diagnostics.catalogue import waiting as codes
from .diagnostics.value import Diagnostic
from .lock import Payload
from .model import Field, Job, Model
from .spec.source import Source


@dataclass(frozen=True, slots=True)
class Demand:
    """A field that rows of this version, which may wait, were never asked for."""

    job: Job
    field: Field
    was_optional: bool


def payloads(model: Model) -> dict[str, Payload]:
    """What the lock keeps of each job, by its name in rows."""
    return {
        job.wire: Payload(
            job.version, {each.name: each.default is None for each in job.payload}
        )
        for job in model.jobs
    }


def demands(model: Model, kept: Mapping[str, Payload]) -> Iterator[Demand]:
    """What waiting rows lack; those of a job under its former names too."""
    for job in model.jobs:
        before = [kept[name] for name in (job.wire, *job.aliases) if name in kept]
        for field in job.payload if before else ():
            old = [
                each.fields.get(field.name)
                for each in before
                if each.version == job.version
            ]
            if field.default is None and not all(old):
                yield Demand(job, field, None not in old)


def diagnostics(found: Iterable[Demand], spec: Source) -> Iterator[Diagnostic]:
    """Each demand at its field."""
    for each in found:
        job, name = each.job, each.field.name
        now = "has no default any more" if each.was_optional else "is new"
        message = (
            f"`{name}` {now}, and rows of version {job.version} of {job.name} that wait"
            " may lack it."
        )
        help_ = (
            f"give it a default, or write version = {job.version + 1}; if no row waits"
            " anywhere: qgen build --force"
        )
        place = spec.locate(("jobs", job.name, "payload", name), "key")
        yield spec.problem(codes.DEMANDED, place, message, help_)
