"""One worker process: its threads, its life, its end.

    running --signal, burst done, poison--> draining --grace over--> releasing --> gone

The backend's part (``worker.py``) feeds messages to ``runner`` and calls ``drained``
when it has stopped taking any.  The watchdog is the backstop for whatever does not stop
by itself: a handler past its deadline, a blocked event loop, a drain that hangs.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, Literal

from . import catalog, migrate, outcomes
from .beat import Beat
from .broker import Broker
from .database import Database, Row
from .definitions import Worker
from .dispatch import Dispatcher
from .ledger import Deliver, Ledger
from .outcomes import Held
from .recovery import Sweeper, SweepThread
from .registry import PROJECT
from .runner import LENIENCY, Attempt, Runner, Stop
from .settings import database_url

log = logging.getLogger(__name__)

FINAL_WRITES: Final = 10.0  # seconds a drain may spend on its last endings
TICK: Final = 0.1

Phase = Literal["running", "draining", "releasing"]


class Process:
    """A worker process, from start to exit."""

    def __init__(self, worker: Worker, target: str, deliver: Deliver) -> None:
        self.worker = worker
        self.target = target
        self.queues = catalog.served(worker)
        self.broker = Broker()
        self.exit_code = 0
        self.phase: Phase = "running"
        self._grace_until = 0.0
        self._released_at = 0.0
        self._why = ""
        self._wake: Callable[[], None] = lambda: None
        patience = PROJECT.heartbeat / 3

        def database() -> Database:
            return Database(database_url(), patience)

        self.beat = Beat(
            database(),
            mine=lambda id_: self.runner.mine(id_),
            on_dead=self._declared_dead,
            on_cancel=self._cancel,
            on_stray=self._release_stray,
        )
        self.runner = Runner(self.beat.boot, worker.concurrency)
        self.dispatcher = Dispatcher(database(), self.broker)
        self.ledger = Ledger(
            self.beat.boot,
            database(),
            self.dispatcher,
            mine=lambda id_: id_ in self.runner.attempts,
            fit=self.beat.fit,
            register=self.runner.register,
            deliver=deliver,
        )
        self.sweeper = Sweeper(database(), self.broker, self._judge)
        self._sweeps = SweepThread(self.sweeper)
        self._watchdog = threading.Thread(
            target=self._watch, name="watchdog", daemon=True
        )
        self._closed = threading.Event()
        self._closing = threading.Lock()
        self._on_loop: Callable[[Callable[[], None]], None] = lambda call: call()

    # Start

    def start(
        self,
        *,
        wake: Callable[[], None],
        on_loop: Callable[[Callable[[], None]], None],
    ) -> None:
        """Checks what is needed, recovers, then starts every thread.

        ``wake`` is called when a drain begins; ``on_loop(call)`` runs a call where
        attempts may be stopped.  Raises SetupError or Unavailable with one sentence.
        """
        self._wake = wake
        self._on_loop = on_loop
        self.runner.open(self.ledger)
        migrate.check()
        self.broker.check()
        self._warn()
        log.info("recovery: %s", self.sweeper.sweep().as_dict())
        self.beat.start(self.worker, self.target)
        self.dispatcher.round()
        self.ledger.start()
        self.dispatcher.start(self.queues)
        self._sweeps.start()
        self._watchdog.start()
        log.info(
            "worker %s serves %s with %d slots, boot %s",
            self.worker.name,
            ", ".join(self.queues),
            self.worker.concurrency,
            self.beat.boot,
        )

    def handle_signals(self) -> None:
        """SIGTERM and SIGINT: the first drains, the second releases at once."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _warn(self) -> None:
        policy = self.broker.eviction_policy()
        if policy not in (None, "noeviction"):
            log.warning(
                "Redis evicts keys (maxmemory-policy %s): rows are safe, but jobs start "
                "late; set it to noeviction",
                policy,
            )
        if not PROJECT.redis_verify:
            log.warning("Redis's certificate is not verified (redis.verify = false)")

    # Life

    def _judge(self) -> tuple[str, int] | None:
        since = self.beat.steady_since()
        return (self.beat.boot, since) if since else None

    def _cancel(self, id_: str, fence: int) -> None:
        attempt = self.runner.attempts.get(id_)
        if attempt is not None and attempt.claim.fence == fence:
            # Noted here as well: a blocked loop will not.
            attempt.cancel_seen_at = attempt.cancel_seen_at or time.monotonic()
            self._stop(attempt, "cancel")

    def _stop(self, attempt: Attempt, why: Stop) -> None:
        self._on_loop(lambda: attempt.stop(why))

    def _release_stray(self, row: Row) -> None:
        log.warning("job %s is active here but does not run: released", row["id"])
        self.ledger.finish(outcomes.released(Held.of(row)), lambda _state: None)

    def _declared_dead(self) -> None:
        """The record says that this boot is dead: nothing it does counts any more."""
        log.error("this process was declared dead: it changes nothing more and exits")
        self._exit(1)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        if self.phase == "running":
            self.drain(f"signal {signal.Signals(number).name}")
        else:
            self._grace_until = 0.0

    def drain(self, why: str, code: int = 0) -> None:
        """Stops claiming; running jobs may finish for ``grace`` seconds."""
        if self.phase != "running":
            return
        # Runs in a signal handler: no lock, no logging; the watchdog tells.
        self.exit_code = code
        self._why = why
        self._grace_until = time.monotonic() + PROJECT.grace
        self.phase = "draining"
        self.ledger.stop_claiming()
        self._wake()

    # The watchdog

    def _watch(self) -> None:
        while not self._closed.wait(TICK):
            try:
                self._tick(time.monotonic())
            except Exception:
                log.exception("watchdog: failed")

    def _tick(self, now: float) -> None:
        for attempt in list(self.runner.attempts.values()):
            if attempt.over:
                continue
            if attempt.deadline is not None and now > attempt.deadline + LENIENCY:
                self._give_up(attempt, "deadline")
            elif (
                attempt.cancel_seen_at and now > attempt.cancel_seen_at + PROJECT.grace
            ):
                self._give_up(attempt, "cancel")
        if self.phase == "running":
            return
        if self._why:
            log.info("draining: %s", self._why)
            self._why = ""
        if self.phase == "draining" and now >= self._grace_until:
            self.phase = "releasing"
            self._released_at = now
            for attempt in list(self.runner.attempts.values()):
                self._stop(attempt, "release")
        elif self.phase == "releasing" and now > self._released_at + LENIENCY:
            # Neither a cancel nor the loop answered: end what is left from here.
            self.close()

    def _give_up(self, attempt: Attempt, why: Stop) -> None:
        """Ends an attempt whose handler does not stop; the process must go too."""
        log.error(
            "job %s does not stop: this process ends after its other jobs",
            attempt.claim.id,
        )
        attempt.over = True
        attempt.stopping = attempt.stopping or why
        self.ledger.finish(attempt.stopped(), lambda _state: None)
        self.drain("a handler does not stop", code=1)

    # End

    def close(self) -> None:
        """Releases what still runs, writes what is pending, says goodbye and exits."""
        with self._closing:  # a second caller waits until the first is done
            if not self._closed.is_set():
                self._closed.set()
                self._close()

    def _close(self) -> None:
        stuck = False
        for attempt in list(self.runner.attempts.values()):
            if not attempt.over:
                attempt.over = stuck = True
                attempt.stopping = attempt.stopping or "release"
                self.ledger.finish(attempt.stopped(), lambda _state: None)
        self._sweeps.close()
        written = self.ledger.close(FINAL_WRITES)
        self.dispatcher.close()
        if written:
            self.beat.end()
        elif self.exit_code == 0:
            self.exit_code = 1
        log.info("worker gone, exit code %d", self.exit_code)
        if stuck or self.runner.attempts or not written:
            # A handler's thread or a blocked loop would keep the process for ever.
            self._exit(self.exit_code)

    def _exit(self, code: int) -> None:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
