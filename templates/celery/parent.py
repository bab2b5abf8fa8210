"""The prefork pool: celery's main process takes messages, its children run them.

The main process forks whenever it needs a child, so it has no thread and no connection
of its own beside celery's; dispatch, sweep and recovery are in a helper that was
spawned.  Each child is a worker in the record, with a boot and a beat.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import threading
import time
from typing import Final

from .burial import bury
from .definitions import Worker
from .ears import Ears
from .errors import QueueError, Unavailable
from .family import Family
from .helper import Helper
from .member import Member
from .record import Message
from .registry import PROJECT
from .runner import load
from .service import Service

log = logging.getLogger(__name__)

PAUSE: Final = 1.0  # seconds until a child tries again to register
ALONE: Final = 2.0  # seconds a child that was told to stop waits for its parent to stop


class Parent:
    """The main process of a prefork pool; its children see the same object."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.family = Family()
        self.helper = Helper()
        self.child: Child | None = None
        self._draining = False
        self._fault = mmap.mmap(-1, 1)  # shared: any child may say that one occurred

    # In the main process

    def start(self) -> None:
        """Checks and recovers, before the first fork; then the helper goes on."""
        load(self.worker)
        service = Service()
        try:
            service.check()
            service.recover()
        finally:
            service.close()
        self.helper.start()

    def tick(self) -> None:
        """Every moment while messages are taken: who has died?"""
        for boot in self.family.gone():
            bury(boot)
        self.helper.keep()

    def stop(self) -> None:
        """The first time children drain, then they release; in a signal handler too."""
        self.family.tell("releasing" if self._draining else "draining")
        self._draining = True

    def close(self) -> int:
        """After the last child: ends the helper; returns the exit code."""
        self.helper.close(PROJECT.heartbeat)
        return int(self._fault[0])

    # In a child

    def born(self) -> None:
        """In a fresh child, before its first message."""
        self.child = Child(self)

    def run(self, message: Message) -> None:
        """In a child: one message."""
        if self.child is not None:
            self.child.member.run(message)

    def died(self) -> None:
        """In a child that ends in peace."""
        if self.child is not None:
            self.child.close()

    def fault(self) -> None:
        """In a child: the worker's exit code will be 1."""
        self._fault[0] = 1


class Child:
    """A member of the family in a process of celery's pool."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._family = parent.family
        self.member = Member(parent.worker, parent.family)
        self._started()
        # Told alone, by celery's own tools: the job is ended, then the process.
        signal.signal(signal.SIGTERM, lambda *_: self.member.process.drain("SIGTERM"))
        self._ears = Ears(self.member.process.queues, free=self._free, deaf=self._deaf)
        self._ears.start()
        threading.Thread(target=self._leave, name="leave", daemon=True).start()

    def close(self) -> None:
        """The last endings and the last beat."""
        self._ears.close()
        if self.member.close():
            self._parent.fault()

    def _started(self) -> None:
        """A database that is away ends no child: it takes no job before it has beaten."""
        while self._family.told() == "running":
            try:
                self.member.start()
                return
            except Unavailable as error:
                log.warning("%s", error)
                time.sleep(PAUSE)
            except QueueError as error:
                log.error("%s", error)
                self._parent.fault()
                time.sleep(PAUSE)
                os._exit(1)

    def _free(self) -> bool:
        process = self.member.process
        idle = not process.runner.attempts and process.phase == "running"
        return idle and process.beat.fit()

    def _deaf(self) -> None:
        self._parent.fault()
        os.kill(self._family.parent, signal.SIGTERM)

    def _leave(self) -> None:
        """Ends a process that drains though its parent does not, when its job is done."""
        process = self.member.process
        since = 0.0
        while True:
            time.sleep(PAUSE / 4)
            if process.phase == "running" or self._family.told() != "running":
                since = 0.0
            elif not process.runner.attempts:
                since = since or time.monotonic()
                if time.monotonic() > since + ALONE:
                    code = self.member.close()
                    logging.shutdown()
                    os._exit(code)
