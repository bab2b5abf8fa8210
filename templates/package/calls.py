"""A paid call as values: asked for, opened, shut, reported; and what an error proves.

Pure.  The rule of the table below is that an error proves only what it says: whatever
is not listed leaves it unknown whether the call was billed.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from .definitions import Agent
from .retries import names_of

# What a call that raised has cost: nothing and may be tried again (unsent), nothing and
# never again (refused), nothing now (throttled), something without an answer
# (unreadable), or nobody knows.
Outcome = Literal["unsent", "refused", "throttled", "unreadable", "unknown"]

# Raised before the first byte of a request.  A reset or a timeout is not among them:
# the request may have arrived.
UNSENT: Final = (socket.gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError)

REFUSED: Final = frozenset({400, 401, 403, 404, 413, 422})
THROTTLED: Final = 429


@dataclass(frozen=True, slots=True)
class Opening:
    """A step's call, asked for by the attempt that holds the row's fence."""

    job_id: str
    fence: int
    step: str
    max_cost: int | None = None
    request_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A call to make now: its id, the key for the provider, the most it may cost."""

    call: str
    key: str
    max_cost: int


@dataclass(frozen=True, slots=True)
class Shut:
    """A call not to make.

    ``why``: kept (the answer is in ``kept``), over (the attempt may not go on), unknown
    (it may have been billed before), no_answer (it was billed and nothing was kept),
    room (no room in the reservation or the job's cap), request (not the same as last
    time).
    """

    why: Literal["kept", "over", "unknown", "no_answer", "room", "request"]
    message: str
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a call turned out to be: settled at ``cost``, or released as never billed.

    ``gate``: seconds for which the agent's gate closes (a 429).
    """

    call: str
    job_id: str
    agent: str
    state: Literal["settled", "released"]
    cost: int = 0
    estimated: bool = False
    kept: str | None = None
    error: str | None = None
    gate: float | None = None


def outcome_of(error: BaseException, agent: Agent) -> Outcome:
    """What an exception out of a call proves about its bill.

    Looks at the exception and its explicit causes; what was only being handled when it
    was raised (``__context__``) may belong to another request and proves nothing.
    """
    links = list(_causes(error))
    free = set(agent.not_billed)
    if any(not free.isdisjoint(names_of(link)) for link in links):
        return "unsent"
    for link in links:
        status = _status(link)
        if status is None:
            continue
        if status == THROTTLED:
            return "throttled"
        if status in REFUSED:
            return "refused"
        return "unreadable" if 200 <= status < 300 else "unknown"
    if any(isinstance(link, UNSENT) for link in links):
        return "unsent"
    return "unknown"


def _causes(error: BaseException) -> Iterator[BaseException]:
    link: object = error
    seen: set[int] = set()
    while isinstance(link, BaseException) and id(link) not in seen:
        seen.add(id(link))
        yield link
        # urllib hands its cause on as `reason`.
        link = link.__cause__ or getattr(link, "reason", None)


def _status(error: BaseException) -> int | None:
    """The HTTP status of an SDK's exception, without importing the SDK."""
    response = getattr(error, "response", None)
    found = (
        getattr(error, "status_code", None),
        getattr(error, "status", None),
        getattr(response, "status_code", None),
        getattr(response, "status", None),
    )
    for value in found:
        if type(value) is not bool and isinstance(value, int) and 100 <= value < 600:
            return int(value)
    return None
