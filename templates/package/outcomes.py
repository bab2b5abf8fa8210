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
from .endings import FREE_RELEASES, Ending, used
from .errors import AttemptEnds, AttemptOver, Defer, NoAnswer, Throttled
from .record import Claim
from .retries import Fault, fault_named, fault_of, may_retry, retry_after, wait

# 429s use no attempt: this many, and this long since the first start, seconds.
MOST_THROTTLES: Final = 100
LONGEST_THROTTLED: Final = 86_400.0

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
    throttles: int = 0
    paid: bool = False

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
            claim.throttles,
            claim.agent is not None,
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
            row["throttles"],
            row["agent"] is not None,
        )


def completed(held: Held, result: object) -> Ending:
    """The handler returned: its result is stored whatever it is."""
    return Ending(
        id=held.id,
        fence=held.fence,
        attempt=held.attempt,
        state="completed",
        outcome="completed",
        worker=held.worker,
        started_at=held.started_at,
        priority=held.priority,
        result=encode(result),
        paid=held.paid,
    )


def raised(held: Held, job: Job, error: BaseException, refused: bool = False) -> Ending:
    """The handler raised: retried while the policy and the tries allow it.

    ``refused``: a provider's definite refusal, which no other attempt would change.
    """
    if isinstance(error, Defer):
        if held.defers < job.max_defers:
            return _queued(held, "deferred", "deferred", delay=error.delay, defers=1)
        message = f"deferred {held.defers} times, the limit is {job.max_defers}"
        return _failed(held, "deferred", "waited_out", fault_named("Defer", message))
    fault = fault_of(error)
    policy = catalog.policy_of(job)
    if refused or not may_retry(policy, error):
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


def ended_by_call(held: Held, job: Job, ends: AttemptEnds) -> Ending:
    """A paid call has ended the attempt, whatever the handler made of it."""
    policy = catalog.policy_of(job)
    fault = fault_of(ends.__cause__ or ends)
    if isinstance(ends, NoAnswer):
        return _failed(held, "no_answer", "no_answer", fault)
    if isinstance(ends, AttemptOver):
        return released(held)
    if isinstance(ends, Throttled):
        if held.throttles >= MOST_THROTTLES:
            return _failed(held, "throttled", "waited_out", fault)
        return _queued(
            held,
            "throttled",
            "throttled",
            delay=ends.delay,
            fault=fault,
            throttles=1,
            max_elapsed=min(LONGEST_THROTTLED, policy.max_elapsed or LONGEST_THROTTLED),
        )
    # With the call unknown, the record holds the job unless the call may be repeated.
    if held.used >= held.tries:
        return _failed(held, "unknown", "exhausted", fault)
    delay = wait(policy, held.used)
    return _queued(held, "unknown", "retry", delay=delay, fault=fault)


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
        paid=held.paid,
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
    throttles: int = 0,
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
        throttles=throttles,
        max_elapsed=max_elapsed,
        stranded=stranded,
        paid=held.paid,
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
        paid=held.paid,
    )
