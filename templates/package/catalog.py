"""Lookups over the registry: jobs by name, alias and payload; queues by alias."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import BaseModel

from .definitions import Job, Queue, Retry, Worker
from .errors import Refused, SetupError
from .follow import FOLLOWERS
from .jobs import JOBS
from .registry import QUEUES, RETRIES, WORKERS

# Every job that may run here, and those that only follow the end of another.
ALL: tuple[Job, ...] = (*JOBS, *dict.fromkeys(FOLLOWERS.values()))
BY_NAME: dict[str, Job] = {
    name: job for job in ALL for name in (job.name, *job.aliases)
}
BY_PAYLOAD: dict[type[BaseModel], Job] = {job.payload: job for job in JOBS}
QUEUE_NAMES: dict[str, Queue] = {
    name: queue for queue in QUEUES for name in (queue.name, *queue.aliases)
}


def job_named(name: str) -> Job:
    """The job of this name or former name, or Refused naming those that exist."""
    if name not in BY_NAME:
        known = ", ".join(sorted(job.name for job in JOBS))
        raise Refused(f"there is no job {name!r}; the jobs are: {known}")
    return BY_NAME[name]


def job_of(payload: BaseModel) -> Job:
    """The job whose payload this is, or TypeError."""
    job = BY_PAYLOAD.get(type(payload))
    if job is None:
        known = ", ".join(sorted(kind.__name__ for kind in BY_PAYLOAD))
        raise TypeError(
            f"{type(payload).__name__} is no job's payload; the payloads are: {known}"
        )
    return job


def policy_of(job: Job) -> Retry:
    """The retry policy of a job."""
    return RETRIES[job.retry]


def queue_named(name: str) -> str:
    """The queue's name, or Refused naming those that exist."""
    if name not in QUEUE_NAMES:
        known = ", ".join(queue.name for queue in QUEUES)
        raise Refused(f"there is no queue {name!r}; the queues are: {known}")
    return QUEUE_NAMES[name].name


def worker_named(name: str | None) -> Worker:
    """The worker of this name; without a name, the only one or the one called main."""
    by_name = {worker.name: worker for worker in WORKERS}
    if name is None:
        name = WORKERS[0].name if len(WORKERS) == 1 else "main"
    if name not in by_name:
        raise SetupError(
            f"there is no worker {name!r}; the workers are: {', '.join(by_name)}"
        )
    return by_name[name]


def served(worker: Worker) -> tuple[str, ...]:
    """The queues a worker serves with their former names, in order of preference."""
    by_name = {queue.name: queue for queue in QUEUES}
    return tuple(
        name for queue in worker.queues for name in (queue, *by_name[queue].aliases)
    )


def versions() -> str:
    """JSON object: every job name that this code runs, and up to which version."""
    return json.dumps({name: job.version for name, job in sorted(BY_NAME.items())})


def runs(job: str, version: int) -> bool:
    """Whether this code runs rows of the job with this payload version."""
    return job in BY_NAME and version <= BY_NAME[job].version


def known_to(boots: Iterable[dict[str, int]]) -> str:
    """JSON object: the jobs that at least one of these boots runs, up to which version."""
    known: dict[str, int] = {}
    for jobs in boots:
        for name, version in jobs.items():
            known[name] = max(version, known.get(name, 0))
    return json.dumps(known, sort_keys=True)
