"""What the passes look at: a spec of the right shape, its defaults laid under its jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from qgen.spec import shape
from qgen.spec.refused import Refused
from qgen.spec.spans import Path

NONE = "none"


@dataclass(frozen=True)
class Draft:
    """A spec whose every value is of its key's kind, for one target.

    What was ``refused`` is left out of it.
    """

    spec: shape.Spec
    target: str
    refused: Refused = field(default_factory=Refused)

    @cached_property
    def jobs(self) -> dict[str, shape.Job]:
        """The jobs, with ``[defaults]`` for the keys they do not give."""
        given = self.spec.defaults.model_fields_set
        jobs = {}
        for name, job in self.spec.jobs.items():
            absent = sorted(given - job.model_fields_set)
            laid: dict[str, Any] = {k: getattr(self.spec.defaults, k) for k in absent}
            jobs[name] = job.model_copy(update=laid) if laid else job
        return jobs

    def at(self, job: str, key: str) -> Path:
        """Where a job has a key from: its own table, or the defaults."""
        own = self.spec.jobs[job].model_fields_set
        if key not in own and key in self.spec.defaults.model_fields_set:
            return ("defaults", key)
        return ("jobs", job, key)

    @cached_property
    def policies(self) -> dict[str, shape.Retry]:
        """The retry policies; ``default`` is always among them."""
        return {"default": shape.Retry(), **self.spec.retries}

    @cached_property
    def queues(self) -> dict[str, shape.Queue]:
        """The queues with a table, and ``default`` when a job or a worker names it."""
        used = {job.queue for job in self.jobs.values()}
        used.update(*(worker.queues or () for worker in self.spec.workers.values()))
        implied = {"default": shape.Queue()} if "default" in used else {}
        return {**implied, **self.spec.queues}

    @cached_property
    def workers(self) -> dict[str, shape.Worker]:
        """The workers; without any, ``main`` serves every queue."""
        return dict(self.spec.workers) or {"main": shape.Worker()}

    def served(self, worker: shape.Worker) -> list[str]:
        """The queues of a worker: its own order, or all by name."""
        return sorted(self.queues) if worker.queues is None else list(worker.queues)

    def tries(self, job: shape.Job) -> int:
        """Attempts in all of a job whose policy there is."""
        return self.policies[job.retry].tries if job.tries is None else job.tries
