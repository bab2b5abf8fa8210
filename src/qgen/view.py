"""What the templates ask of the model beyond its fields."""

from __future__ import annotations

from typing import Final

from . import literal, sorting
from .literal import Code
from .model import Job, Model, Queue

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


def queue(queue: Queue) -> Code:
    """The registry's entry of a queue."""
    name, aliases = literal.literal(queue.name), literal.literal(queue.aliases)
    return Code(f"Queue(name={name}{f', aliases={aliases}' if queue.aliases else ''})")


def requirement(line: str) -> Code:
    """A line of requirements.txt; they are qgen's own texts, checked all the same."""
    if not line.isprintable() or not line.isascii():
        raise ValueError(f"not a requirement: {line!r}")
    return Code(line)


def class_names(jobs: list[Job]) -> Code:
    """The payload classes of these jobs, as an import names them."""
    names = {literal.name(job.class_name) for job in jobs}
    return Code(", ".join(sorting.public(names)))
