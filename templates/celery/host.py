"""The pools without processes: threads, and solo for tests.

The working half and the serving half stand in one process, as on backends that do not
fork.  Handlers run on one event loop, plain ones in threads; celery's threads only wait
for them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from celery.worker import state

from .broker import TARGET
from .definitions import Worker
from .ears import Ears
from .process import Process
from .record import Message
from .runner import load
from .service import Service

log = logging.getLogger(__name__)


class Host:
    """A process whose pool runs jobs in itself."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="loop", daemon=True
        )
        self._busy = 0
        self._lock = threading.Lock()
        self._service = Service(judge=lambda: self.process.beat.judge())
        self.process = Process(worker, TARGET, self._deliver, self._service.dispatcher)
        self._ears = Ears(self.process.queues, free=self._free, deaf=self._deaf)

    def start(self) -> None:
        """Checks, recovers, then starts every thread."""
        load(self.worker)
        self._service.check()
        self._service.recover()
        self._thread.start()
        self.process.start(wake=stop_taking, on_loop=self._threadsafe)
        self._service.start(self.process.queues)
        self._ears.start()

    def tick(self) -> None:
        """Nothing: there are no children."""

    def stop(self) -> None:
        """The first time it drains, then it releases; in a signal handler too."""
        self.process.told_to_stop()

    def close(self) -> int:
        """After the last message: writes what is pending; returns the exit code."""
        self._ears.close()
        self._service.stop_sweeping()
        self.process.close()
        return self.process.exit_code

    def born(self) -> None:
        """Never: there are no children."""

    def died(self) -> None:
        """Never: there are no children."""

    def run(self, message: Message) -> None:
        """One message from claim to finish; in a thread of celery's pool."""
        with self._lock:
            self._busy += 1
        try:
            work = self.process.runner.run(message)
            asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except Exception:
            log.exception("job %s: the engine failed", message.id)
        finally:
            with self._lock:
                self._busy -= 1

    def _free(self) -> bool:
        room = self._busy < self.worker.concurrency
        return room and self.process.phase == "running" and self.process.beat.fit()

    def _deaf(self) -> None:
        self.process.drain("deaf", code=1)

    def _deliver(self, calls: list[Callable[[], None]]) -> None:
        self._threadsafe(lambda: [call() for call in calls])

    def _threadsafe(self, call: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # the loop is closed: nobody waits for the answer any more


def stop_taking() -> None:
    """Ends celery's own loop: warm, with exit code 0.  Also in a signal handler."""
    if state.should_stop is None:
        state.should_stop = 0
