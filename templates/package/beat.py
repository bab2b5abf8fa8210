"""The boot's row and its heartbeat: how a process says that it lives.

One thread with a connection of its own, apart from the ledger's: it goes on while the
event loop is blocked and while a claim waits for a lock.  It starts after any fork and
ends last, after the final write of a drain.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable

from . import catalog, statements
from .database import Database, Row
from .definitions import Worker
from .errors import QueueError
from .registry import PROJECT

log = logging.getLogger(__name__)


class Beat:
    """Keeps one boot alive in the record.

    Calls ``on_dead()`` once when the row says that this boot was declared dead,
    ``on_cancel(id, fence)`` for rows whose cancel was asked for, and
    ``on_stray(row)`` for rows that are active for this boot at two beats in a row
    while ``mine(id)`` says that the process does not run them.
    """

    def __init__(
        self,
        database: Database,
        *,
        mine: Callable[[str], bool],
        on_dead: Callable[[], None],
        on_cancel: Callable[[str, int], None],
        on_stray: Callable[[Row], None],
    ) -> None:
        self.boot = str(uuid.uuid4())
        self._database = database
        self._mine = mine
        self._on_dead = on_dead
        self._on_cancel = on_cancel
        self._on_stray = on_stray
        self._stop = threading.Event()
        self._last_ok = time.monotonic()
        self._last_now = 0
        self._steady_since = 0
        self._stray: set[tuple[str, int]] = set()
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)

    def start(self, worker: Worker, target: str) -> None:
        """Inserts the boot's row and starts to beat."""
        with self._database.transaction() as tx:
            tx.run(
                statements.BOOT_INSERT,
                boot=self.boot,
                name=worker.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                target=target,
                queues=json.dumps(catalog.served(worker)),
                slots=worker.concurrency,
                jobs=catalog.versions(),
            )
        self.beat()
        self._thread.start()

    def fit(self) -> bool:
        """Whether the last beats arrived: only then may the process claim."""
        return time.monotonic() - self._last_ok <= 2 * PROJECT.heartbeat

    def steady_since(self) -> int:
        """Since when (the database's milliseconds) no beat was missed.

        A process that missed one itself judges nobody: after a database outage, a lock
        or a sleeping laptop everyone looks dead to the first who wakes.
        """
        return self._steady_since

    def beat(self) -> None:
        """One beat."""
        with self._database.transaction() as tx:
            row = tx.one(statements.BOOT_BEAT, boot=self.boot)
        if row is None:
            self._on_dead()
            return
        now = int(row["now"])
        if now - self._last_now > 2 * PROJECT.heartbeat * 1000 or now < self._last_now:
            self._steady_since = now
        self._last_now = now
        self._last_ok = time.monotonic()
        self._look_at_mine()

    def _look_at_mine(self) -> None:
        # A transaction of its own: a lock on the jobs' table must not stop the beat.
        with self._database.transaction() as tx:
            rows = tx.all(statements.MINE, boot=self.boot)
        stray: set[tuple[str, int]] = set()
        for active in rows:
            key = (active["id"], active["fence"])
            if not self._mine(active["id"]):
                stray.add(key)
                if key in self._stray:
                    self._on_stray(active)
            elif active["cancel_requested"]:
                self._on_cancel(*key)
        self._stray = stray

    def end(self) -> None:
        """The last word: the boot is over, by itself.  Never raises."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(PROJECT.heartbeat)
        try:
            with self._database.transaction() as tx:
                tx.run(statements.BOOT_END, boot=self.boot)
        except QueueError as error:
            log.warning("beat: the boot's end was not written: %s", error)
        self._database.close()

    def _run(self) -> None:
        pause = PROJECT.heartbeat
        while not self._stop.wait(pause):
            try:
                self.beat()
                pause = PROJECT.heartbeat
            except QueueError as error:
                log.warning("beat: %s", error)
                pause = PROJECT.heartbeat / 3
            except Exception:
                log.exception("beat: failed")
                pause = PROJECT.heartbeat / 3
