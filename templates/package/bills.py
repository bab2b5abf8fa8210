"""What a call has cost and what its failure proves, as reports for the record."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from .amounts import millionths
from .calls import Opened, Report, outcome_of
from .codec import encode
from .definitions import Agent
from .retries import fault_of, retry_after, spread

log = logging.getLogger(__name__)

# Seconds an agent's gate closes when a 429 names none.
PAUSE: Final = 5.0


def answered(
    job_id: str,
    agent: Agent,
    opened: Opened,
    response: object,
    cost: Callable[[Any], object] | None,
    keep: Callable[[Any], object] | None,
) -> Report:
    """What an answered call has cost, and what is kept of it.  Cannot fail.

    A cost that cannot be read is booked at the call's most, as an estimate.
    """
    amount, estimated, error = opened.max_cost, True, None
    kept = None
    try:
        found = None if cost is None else cost(response)
        if found is not None:
            amount, estimated = millionths(found), False
    except Exception as failure:
        log.error("job %s: its cost cannot be read: %r", job_id, failure)
        error = fault_of(failure).error
    try:
        kept = encode(response if keep is None else keep(response))
    except Exception as failure:
        log.error("job %s: nothing can be kept: %r", job_id, failure)
        error = fault_of(failure).error
    return Report(
        call=opened.call,
        job_id=job_id,
        agent=agent.name,
        state="settled",
        cost=amount,
        estimated=estimated,
        kept=kept,
        error=error,
    )


def failed(
    job_id: str, agent: Agent, opened: Opened, error: Exception
) -> Report | None:
    """What an exception out of a call proves; None = nobody knows whether it was billed."""
    outcome = outcome_of(error, agent)
    if outcome == "unknown":
        return None
    if outcome == "unreadable":
        return Report(
            call=opened.call,
            job_id=job_id,
            agent=agent.name,
            state="settled",
            cost=opened.max_cost,
            estimated=True,
            error=fault_of(error).error,
        )
    gate = None
    if outcome == "throttled":
        gate = spread(retry_after(error) or PAUSE)
    return released(job_id, agent, opened, error, gate, outcome == "refused")


def released(
    job_id: str,
    agent: Agent,
    opened: Opened,
    error: BaseException | None = None,
    gate: float | None = None,
    refused: bool = False,
) -> Report:
    """A call that was not billed."""
    return Report(
        call=opened.call,
        job_id=job_id,
        agent=agent.name,
        state="released",
        error=None if error is None else fault_of(error).error,
        gate=gate,
        refused=refused,
    )
