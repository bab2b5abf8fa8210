"""How an attempt ends: from what happened to the ``Ending`` that the record writes.

Pure functions; the same for a handler's own end, for the watchdog and for recovery.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from . import catalog
from .codec import encode
from .database import Row
from .definitions import Job
from .errors import Defer
from .record import FREE_RELEASES, Claim, Ending, used
from .retries import Fault, fault_named, fault_of, may_retry, retry_after, wait

TIMED_OUT: Final = "timed_out"
WORKER_LOST: Final = "worker_lost"


@dataclass(frozen=True, slots=True)
class Held:
    """The facts of an attempt that any ending needs."""

    id: str
    job: str
    priority: str
    fence: int
    attempt: int
    tries: int
    used: int
    defers: int
    releases: int
    worker: str
    started_at: int

    @classmethod
    def by(cls, boot: str, claim: Claim) -> Held:
        """An attempt of this process."""
        return cls(
            claim.id,
            claim.job,
            claim.priority,
            claim.fence,
            claim.attempt,
            claim.tries,
            claim.used,
            claim.defers,
            claim.releases,
            boot,
            claim.started_at,
        )

    @classmethod
    def of(cls, row: Row) -> Held:
        """An attempt as recovery finds it in its row."""
        return cls(
            row["id"],
            row["job"],
            row["priority"],
            row["fence"],
            row["attempt"],
            row["tries"],
            used(row),
            row["defers"],
            row["releases"],
            row["worker"],
            row["started_at"],
        )


def completed(held: Held, result: object) -> Ending:
    """The handler returned: its result is stored whatever it is."""
    return Ending(
        id=held.id,
        fence=held.fence,
        attempt=held.attempt,
        state="completed",
        outcome="completed",
        result=encode(result),
    )


def raised(held: Held, job: Job, error: BaseException) -> Ending:
    """The handler raised: retried while the policy and the tries allow it."""
    if isinstance(error, Defer):
        if held.defers < job.max_defers:
            return _queued(held, "deferred", "deferred", delay=error.delay, defers=1)
        message = f"deferred {held.defers} times, the limit is {job.max_defers}"
        return _failed(held, "deferred", "waited_out", fault_named("Defer", message))
    fault = fault_of(error)
    policy = catalog.policy_of(job)
    if not may_retry(policy, error):
        return _failed(held, "raised", "never_retry", fault)
    if held.used >= held.tries:
        return _failed(held, "raised", "exhausted", fault)
    delay = wait(policy, held.used, retry_after(error))
    return _queued(
        held,
        "raised",
        "retry",
        delay=delay,
        fault=fault,
        max_elapsed=policy.max_elapsed,
    )


def timed_out(held: Held, job: Job, stranded: bool = False) -> Ending:
    """The attempt passed its deadline; uses an attempt."""
    fault = fault_named(TIMED_OUT, f"the attempt took longer than {job.timeout} s")
    if held.used >= held.tries:
        return _failed(held, TIMED_OUT, TIMED_OUT, fault, stranded)
    policy = catalog.policy_of(job)
    return _queued(
        held,
        TIMED_OUT,
        "retry",
        delay=wait(policy, held.used),
        fault=fault,
        max_elapsed=policy.max_elapsed,
        stranded=stranded,
    )


def lost(held: Held) -> Ending:
    """The process died with the attempt; uses an attempt."""
    fault = fault_named(WORKER_LOST, "the worker process died or went silent")
    if held.used >= held.tries:
        return _failed(held, WORKER_LOST, WORKER_LOST, fault, stranded=True)
    return _queued(
        held,
        WORKER_LOST,
        "recovered",
        delay=_apart(held),
        fault=fault,
        stranded=True,
    )


def _apart(held: Held) -> float:
    # At once the first time.  Then spread: the job that kills its worker must not take
    # the same neighbours along each time.
    job = catalog.BY_NAME.get(held.job)
    if job is None or held.used < 2:
        return 0.0
    return random.uniform(0, wait(catalog.policy_of(job), held.used))


def released(held: Held) -> Ending:
    """The process stops before the handler ended; uses no attempt, 20 times."""
    if held.releases >= FREE_RELEASES and held.used >= held.tries:
        fault = fault_named(
            "released", f"released {held.releases + 1} times unfinished"
        )
        return _failed(held, "released", "exhausted", fault)
    return _queued(held, "released", "released", releases=1)


def cancelled(held: Held) -> Ending:
    """A person asked for it and the handler has stopped, or is given up."""
    return Ending(
        id=held.id,
        fence=held.fence,
        attempt=held.attempt,
        state="cancelled",
        outcome="cancelled",
        worker=held.worker,
        started_at=held.started_at,
    )


def unreadable(held: Held, error: BaseException) -> Ending:
    """Recovery met a row that it cannot handle: failed, so that the sweep goes on."""
    fault = fault_of(error)
    return _failed(held, WORKER_LOST, "bad_payload", fault, stranded=True)


def _queued(
    held: Held,
    outcome: str,
    reason: str,
    *,
    delay: float = 0.0,
    fault: Fault | None = None,
    defers: int = 0,
    releases: int = 0,
    max_elapsed: float | None = None,
    stranded: bool = False,
) -> Ending:
    return Ending(
        id=held.id,
        fence=held.fence,
        attempt=held.attempt,
        state="queued",
        outcome=outcome,
        worker=held.worker,
        started_at=held.started_at,
        reason=reason,
        error=fault.error if fault else None,
        cause=fault.cause(held.job, "waited_out") if fault else None,
        traceback=fault.traceback if fault else None,
        delay=delay,
        priority=held.priority,
        defers=defers,
        releases=releases,
        max_elapsed=max_elapsed,
        stranded=stranded,
    )


def _failed(
    held: Held, outcome: str, reason: str, fault: Fault, stranded: bool = False
) -> Ending:
    return Ending(
        id=held.id,
        fence=held.fence,
        attempt=held.attempt,
        state="failed",
        outcome=outcome,
        worker=held.worker,
        started_at=held.started_at,
        reason=reason,
        error=fault.error,
        cause=fault.cause(held.job, reason),
        traceback=fault.traceback,
        stranded=stranded,
    )
