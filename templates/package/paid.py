"""``job.paid_call`` and ``job.charge``: open, call, settle.

The call is written down before it is made, and what it has cost before its answer is
used.  Nothing of the record is open while it runs.  Whatever does not prove otherwise
leaves its bill unknown, and that ends the attempt.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NoReturn, Protocol

from .amounts import MILLION, millionths
from .calls import Opened, Opening, Report, Shut, outcome_of
from .codec import decode, encode
from .definitions import Agent, Job
from .errors import (
    AttemptEnds,
    AttemptOver,
    BillUnknown,
    CallRefused,
    Defer,
    NoAnswer,
    Throttled,
)
from .registry import AGENTS
from .retries import fault_of, retry_after, spread

log = logging.getLogger(__name__)

# The step of a job that is billed as a whole.
WHOLE: Final = "attempt"

# Seconds an agent's gate closes when a 429 names none.
PAUSE: Final = 5.0

_LONGEST_STEP: Final = 200

Call = Callable[[str], Any]


@dataclass(slots=True, eq=False)
class Order:
    """A call to open, and who waits for it; ``abandoned``: nobody does any more."""

    opening: Opening
    answer: Future[Opened | Shut] = field(default_factory=Future)
    abandoned: bool = False


class Desk(Protocol):
    """Where orders and reports are written: the ledger."""

    def open(self, order: Order) -> None:
        """Opens a call; the order's ``answer`` is set when it is committed."""

    def settle(self, report: Report) -> Future[str]:
        """Books a report; the call's state when it is committed."""


class Purse:
    """The paid calls of one attempt."""

    def __init__(self, job: Job, id_: str, fence: int, desk: Desk) -> None:
        self.ends: AttemptEnds | None = None
        self.refusals: list[BaseException] = []
        self.in_flight = 0
        self._job = job
        self._id = id_
        self._fence = fence
        self._desk = desk
        self._steps: set[str] = set()
        self._charged: int | None = None

    @property
    def agent(self) -> Agent:
        """Who pays, or CallRefused: a job without an agent may not spend."""
        agent = AGENTS.get(self._job.agent or "")
        if agent is None:
            raise CallRefused(
                f"{self._job.name} is not a paid job: give it an agent and a max_cost"
            )
        return agent

    def refused(self, error: BaseException) -> bool:
        """Whether a provider's definite refusal is this exception or caused it."""
        link: BaseException | None = error
        while link is not None:
            if any(link is refusal for refusal in self.refusals):
                return True
            link = link.__cause__
        return False

    def charge(self, amount: object) -> None:
        """Adds to what the attempt has cost, for a job with ``billing = "attempt"``."""
        if self._job.agent is None or self._job.billing != "attempt":
            raise CallRefused(
                f'{self._job.name} has not billing = "attempt": use job.paid_call'
            )
        try:
            self._charged = (self._charged or 0) + millionths(amount)
        except ValueError as error:
            raise CallRefused(f"job.charge: {error}") from None

    async def call(
        self,
        step: str,
        call: Call,
        max_cost: object,
        cost: Callable[[Any], object] | None,
        keep: Callable[[Any], object] | None,
        request: object,
    ) -> Any:
        """One paid call of an async handler: what ``keep`` made of its answer."""
        order = Order(self._opening(step, max_cost, request))
        opened = await self._opened(order)
        if isinstance(opened, Shut):
            return self._shut(opened)
        self.in_flight += 1
        try:
            try:
                response = call(opened.key)
                if inspect.isawaitable(response):
                    response = await response
            except BaseException as error:
                report = self._proof(opened, error)
                state = None
                if report is not None:
                    state = await asyncio.wrap_future(self._desk.settle(report))
                self._raise(step, error, report, state)
            report = self._bill(opened, response, cost, keep)
            await asyncio.wrap_future(self._desk.settle(report))
            return self._kept(step, report)
        finally:
            self.in_flight -= 1

    def call_plain(
        self,
        step: str,
        call: Call,
        max_cost: object,
        cost: Callable[[Any], object] | None,
        keep: Callable[[Any], object] | None,
        request: object,
    ) -> Any:
        """The same for a plain handler, in its thread."""
        order = Order(self._opening(step, max_cost, request))
        self._desk.open(order)
        opened = order.answer.result()
        if isinstance(opened, Shut):
            return self._shut(opened)
        self.in_flight += 1
        try:
            try:
                response = call(opened.key)
                if inspect.isawaitable(response):
                    close = getattr(response, "close", None)
                    if callable(close):
                        close()
                    raise _NotSent(
                        f"the call of {step} is async: make the handler async too"
                    )
            except BaseException as error:
                report = self._proof(opened, error)
                state = None
                if report is not None:
                    state = self._desk.settle(report).result()
                self._raise(step, error, report, state)
            report = self._bill(opened, response, cost, keep)
            self._desk.settle(report).result()
            return self._kept(step, report)
        finally:
            self.in_flight -= 1

    async def whole(self, run: Callable[[], Awaitable[Any]]) -> Any:
        """Runs a handler whose attempt is one paid call, settled at what it charged."""

        def cost(_result: object) -> Decimal | None:
            return None if self._charged is None else Decimal(self._charged) / MILLION

        return await self.call(WHOLE, lambda _key: run(), None, cost, None, None)

    # Opening

    def _opening(self, step: str, max_cost: object, request: object) -> Opening:
        _ = self.agent
        if self.ends is not None:
            raise self.ends
        whole = self._job.billing == "attempt"
        if whole and (step != WHOLE or self._steps):
            raise CallRefused(
                f'{self._job.name} has billing = "attempt": use job.charge, or billing '
                '= "calls"'
            )
        if not isinstance(step, str) or not 0 < len(step) <= _LONGEST_STEP:
            raise CallRefused(f"a step's name has 1 to {_LONGEST_STEP} characters")
        if not step.isprintable():
            raise CallRefused("a step's name has only characters that can be printed")
        if step in self._steps:
            raise CallRefused(
                f"the step {step} was used before in this attempt: name each call of a "
                f"loop, like {step}#2"
            )
        most = None
        if max_cost is not None:
            try:
                most = millionths(max_cost)
            except ValueError as error:
                raise CallRefused(f"max_cost of the step {step}: {error}") from None
        self._steps.add(step)
        digest = None
        if request is not None:
            digest = hashlib.sha256(encode(request).encode()).hexdigest()
        return Opening(self._id, self._fence, step, most, digest)

    async def _opened(self, order: Order) -> Opened | Shut:
        self._desk.open(order)
        answer = asyncio.wrap_future(order.answer)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            # Stopped before the call was made: whatever was opened was never sent.
            order.abandoned = True
            opened = await answer
            if isinstance(opened, Opened):
                self._desk.settle(self._released(opened, None))
            raise

    def _shut(self, shut: Shut) -> Any:
        if shut.why == "kept":
            return decode(shut.kept)
        if shut.why in ("room", "request"):
            raise CallRefused(shut.message)
        kinds = {"over": AttemptOver, "unknown": BillUnknown, "no_answer": NoAnswer}
        self._end(kinds[shut.why](shut.message))

    # Settling

    def _bill(
        self,
        opened: Opened,
        response: object,
        cost: Callable[[Any], object] | None,
        keep: Callable[[Any], object] | None,
    ) -> Report:
        """What an answered call has cost, and what is kept of it.  Cannot fail."""
        amount, estimated, error = opened.max_cost, True, None
        kept = None
        try:
            found = None if cost is None else cost(response)
            if found is not None:
                amount, estimated = millionths(found), False
        except Exception as failure:
            log.error("job %s: its cost cannot be read: %r", self._id, failure)
            error = fault_of(failure).error
        try:
            kept = encode(response if keep is None else keep(response))
        except Exception as failure:
            log.error("job %s: nothing can be kept: %r", self._id, failure)
            error = fault_of(failure).error
        return Report(
            call=opened.call,
            job_id=self._id,
            agent=self.agent.name,
            state="settled",
            cost=amount,
            estimated=estimated,
            kept=kept,
            error=error,
        )

    def _proof(self, opened: Opened, error: BaseException) -> Report | None:
        """What an exception proves; None = it proves nothing."""
        if isinstance(error, _NotSent):
            return self._released(opened, error)
        if isinstance(error, Defer) and self._charged is None:
            return self._released(opened, error)
        if not isinstance(error, Exception):
            return None  # stopped in the middle of the call
        outcome = outcome_of(error, self.agent)
        if outcome == "unknown":
            return None
        if outcome == "unreadable":
            return Report(
                call=opened.call,
                job_id=self._id,
                agent=self.agent.name,
                state="settled",
                cost=opened.max_cost,
                estimated=True,
                error=fault_of(error).error,
            )
        if outcome == "refused":
            self.refusals.append(error)
        gate = None
        if outcome == "throttled":
            gate = spread(retry_after(error) or PAUSE)
        return self._released(opened, error, gate)

    def _released(
        self, opened: Opened, error: BaseException | None, gate: float | None = None
    ) -> Report:
        return Report(
            call=opened.call,
            job_id=self._id,
            agent=self.agent.name,
            state="released",
            error=None if error is None else fault_of(error).error,
            gate=gate,
        )

    def _raise(
        self, step: str, error: BaseException, report: Report | None, state: str | None
    ) -> NoReturn:
        """The call's own exception where it was not billed; else the attempt ends."""
        if report is None or state == "unknown":
            if not isinstance(error, Exception):
                self.ends = self.ends or BillUnknown(_billed(step))
                raise error
            self._end(BillUnknown(_billed(step)), error)
        if report.state == "settled":
            text = f"the step {step} was billed, and its answer cannot be read"
            self._end(NoAnswer(text), error)
        if report.gate is not None:
            self._end(Throttled(f"the step {step}: 429", report.gate), error)
        raise error

    def _kept(self, step: str, report: Report) -> Any:
        if report.kept is None:
            self._end(
                NoAnswer(f"the step {step} was billed, and nothing of it was kept")
            )
        return decode(report.kept)

    def _end(self, ends: AttemptEnds, cause: BaseException | None = None) -> NoReturn:
        # The first reason counts: what a handler does after it must not hide it.
        self.ends = self.ends or ends
        raise ends from cause


class _NotSent(CallRefused):
    """The call was never made."""


def _billed(step: str) -> str:
    return f"the step {step} may have been billed: nothing proves that it was not"
