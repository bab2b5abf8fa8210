"""Claim, handler, finish: one attempt after the other, on an event loop.

Nothing of the record is open while the handler runs.  An attempt may be stopped for
three different reasons (its deadline, a cancel, the process stopping), and ends
differently for each: a cancellation alone says nothing.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Literal

from . import catalog, outcomes
from .codec import encode
from .definitions import Job
from .errors import SetupError
from .jobs import JOBS
from .ledger import Ledger
from .outcomes import Held
from .record import Claim, Ending, Message

log = logging.getLogger(__name__)

Stop = Literal["deadline", "cancel", "release"]
Handler = Callable[["JobContext", Any], Any]

# After its deadline a handler gets this long to stop, then the watchdog ends it.
LENIENCY: Final = 5.0


class JobContext:
    """What a handler is given as ``job``."""

    def __init__(self, attempt: Attempt, ledger: Ledger, state: object) -> None:
        claim = attempt.claim
        self._attempt = attempt
        self._ledger = ledger
        self.id = claim.id
        self.attempt = claim.attempt
        self.tries = claim.tries
        self.key = claim.key
        self.state = state
        self.deadline: datetime | None = None
        if attempt.job.timeout is not None:
            started = datetime.fromtimestamp(claim.started_at / 1000, UTC)
            self.deadline = started + timedelta(seconds=attempt.job.timeout)
        self.log = logging.LoggerAdapter(
            logging.getLogger(f"{__package__}.jobs.{attempt.job.name}"),
            {"job_id": claim.id, "attempt": claim.attempt},
        )

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: its deadline, a cancel or a shutdown."""
        return self._attempt.stopping is not None

    def progress(self, value: float, note: str = "") -> None:
        """Records how far the job is; shown by ``show``."""
        self._ledger.progress(
            self.id, self._attempt.claim.fence, encode({"value": value, "note": note})
        )


class Attempt:
    """An attempt that runs in this process."""

    def __init__(self, claim: Claim, boot: str) -> None:
        self.claim = claim
        self.job: Job = catalog.BY_NAME[claim.job]
        self.held = Held.by(boot, claim)
        self.stopping: Stop | None = None
        self.stopped_at = 0.0
        self.over = False
        self.task: asyncio.Task[None] | None = None
        timeout = self.job.timeout
        self.deadline = None if timeout is None else time.monotonic() + timeout

    def stop(self, why: Stop) -> None:
        """Asks the handler to stop; on the event loop.  The first reason counts."""
        if self.stopping is not None or self.over:
            return
        self.stopping = why
        self.stopped_at = time.monotonic()
        if self.task is not None:
            self.task.cancel()

    def stopped(self) -> Ending:
        """How it ends when it did not end by itself."""
        if self.stopping == "cancel":
            return outcomes.cancelled(self.held)
        if self.stopping == "release":
            return outcomes.released(self.held)
        return outcomes.timed_out(self.held, self.job)


class Runner:
    """Runs messages; ``attempts`` are those of this process, by row id."""

    def __init__(self, boot: str, concurrency: int) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.state: object = None
        self._boot = boot
        self._handlers: dict[str, Handler] = {}
        # One thread more per slot: a handler that was given up keeps its thread.
        self._threads = ThreadPoolExecutor(2 * concurrency, "handler")
        self._ledger: Ledger | None = None

    def open(self, ledger: Ledger) -> None:
        """Imports every handler, or SetupError with what to write."""
        self._ledger = ledger
        for job in JOBS:
            self._handlers[job.name] = _handler_of(job)

    def register(self, claim: Claim) -> None:
        """Makes the claim an attempt of this process; on the ledger's thread."""
        self.attempts[claim.id] = Attempt(claim, self._boot)

    def mine(self, id_: str) -> bool:
        """Whether this process runs the row, or is claiming or finishing it."""
        ledger = self._ledger
        return id_ in self.attempts or (ledger is not None and ledger.pending(id_))

    async def run(self, message: Message) -> None:
        """One message from claim to finish; returns when the end is committed."""
        ledger = self._ledger
        assert ledger is not None
        loop = asyncio.get_running_loop()
        claimed: asyncio.Future[Claim | None] = loop.create_future()
        ledger.claim(message, lambda claim: _set(claimed, claim))
        claim = await claimed
        attempt = None if claim is None else self.attempts.get(claim.id)
        if claim is None or attempt is None or attempt.over:
            return
        try:
            ending = await self._attempt(attempt)
            if not attempt.over:
                attempt.over = True
                done: asyncio.Future[str | None] = loop.create_future()
                ledger.finish(ending, lambda state: _set(done, state))
                await done
        finally:
            if self.attempts.get(claim.id) is attempt:
                del self.attempts[claim.id]

    async def _attempt(self, attempt: Attempt) -> Ending:
        assert self._ledger is not None
        context = JobContext(attempt, self._ledger, self.state)
        handler = self._handlers[attempt.job.name]
        timer: asyncio.TimerHandle | None = None
        if attempt.job.timeout is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(attempt.job.timeout, attempt.stop, "deadline")
        try:
            if inspect.iscoroutinefunction(handler):
                result = await self._async(attempt, handler, context)
            else:
                result = await self._plain(handler, context, attempt.claim.payload)
            if inspect.isawaitable(result):
                result = await result
            return outcomes.completed(attempt.held, result)
        except asyncio.CancelledError as error:
            if attempt.stopping is None:
                return outcomes.raised(attempt.held, attempt.job, error)
            return attempt.stopped()
        except BaseException as error:
            if attempt.stopping is not None:
                return attempt.stopped()
            context.log.info("attempt %d raised %r", attempt.claim.attempt, error)
            return outcomes.raised(attempt.held, attempt.job, error)
        finally:
            if timer is not None:
                timer.cancel()

    async def _async(
        self, attempt: Attempt, handler: Handler, context: JobContext
    ) -> Any:
        attempt.task = task = asyncio.current_task()
        assert task is not None
        if attempt.stopping is not None:
            raise asyncio.CancelledError
        try:
            return await handler(context, attempt.claim.payload)
        finally:
            attempt.task = None
            # Our own cancel is used up here; what follows must not be cancelled by it.
            while task.cancelling():
                task.uncancel()

    async def _plain(
        self, handler: Handler, context: JobContext, payload: object
    ) -> Any:
        # A thread cannot be cancelled: `job.cancelled` tells it, the watchdog waits.
        loop = asyncio.get_running_loop()
        call = partial(_called, handler, context, payload)
        return await loop.run_in_executor(self._threads, call)


def _called(handler: Handler, context: JobContext, payload: object) -> Any:
    try:
        return handler(context, payload)
    except StopIteration as error:
        # A future cannot carry it: whoever awaits would wait for ever.
        raise RuntimeError("the handler raised StopIteration") from error


def _handler_of(job: Job) -> Handler:
    module_name, _, function_name = job.handler.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise SetupError(
            f"the handler of {job.name}, {job.handler}, cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    handler = getattr(module, function_name, None)
    if not callable(handler):
        raise SetupError(
            f"the handler of {job.name} is missing: write def {function_name}(job, payload) "
            f"in {module_name}"
        )
    found: Handler = handler
    return found


def _set(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)
