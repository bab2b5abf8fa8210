"""The watchdog for a worker that does not hear: it lives, beats, and takes nothing.

A connection may be lost without anybody noticing.  So whoever has a free slot looks
whether the next message stays where it is.  A worker is ended only if it has had a free
slot all the time, Redis answers, and the message's row waits for just this message:
never a busy one, never one whose Redis is away, never for what is not ours.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from . import statements
from .broker import Broker
from .database import DataError
from .errors import QueueError
from .registry import PROJECT
from .service import database

log = logging.getLogger(__name__)

LOOK: Final = 1.0  # seconds between two looks
PATIENCE: Final = PROJECT.stall_after  # seconds a message may stay beside a free slot


class Ears:
    """Calls ``deaf()`` once when the worker hears nothing.

    ``free()`` tells whether the process could take a message of ``queues`` now.
    """

    def __init__(
        self,
        queues: tuple[str, ...],
        *,
        free: Callable[[], bool],
        deaf: Callable[[], None],
    ) -> None:
        self._queues = queues
        self._free = free
        self._deaf = deaf
        self._broker = Broker()
        self._database = database()
        self._first: str | None = None
        self._since = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ears", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, soon."""
        self._stop.set()

    def look(self, now: float) -> bool:
        """One look; True when the worker is deaf."""
        first = self._broker.first(self._queues) if self._free() else None
        if first is None or first != self._first:
            self._first, self._since = first, now
            return False
        return now - self._since >= PATIENCE and self._is_wanted(first)

    def _is_wanted(self, transport_id: str) -> bool:
        """Whether the message's row is queued and waits for this very message."""
        id_, _, dispatch = transport_id.partition("_")
        with self._database.reading() as tx:
            row = tx.one(statements.ROW, id=id_)
        return (
            row is not None
            and row["state"] == "queued"
            and row["dispatched_at"] is not None
            and str(row["dispatch"]) == (dispatch or "1")
        )

    def _run(self) -> None:
        while not self._stop.wait(LOOK):
            try:
                if self.look(time.monotonic()):
                    log.error(
                        "this worker is deaf: a slot was free for %.0f s, and message %s "
                        "was not taken",
                        PATIENCE,
                        self._first,
                    )
                    self._deaf()
                    break
            except (QueueError, *DataError) as error:
                self._first = None
                log.info("ears: %s", error)
            except Exception:
                self._first = None
                log.exception("ears: failed")
        self._database.close()
        self._broker.close()
