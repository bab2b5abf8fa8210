"""The window: which rows are published, and when.

The backlog stays in the database.  Redis holds, per queue, at most the slots of the
living workers that serve it, plus ``SPARE``; a row is marked in the same transaction
that chooses it and pushed after the commit.  A push that is not acknowledged takes its
mark back.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from . import catalog, record, statements
from .broker import Broker
from .database import Database, Row, Transaction
from .errors import QueueError, Unavailable
from .record import Message
from .registry import PROJECT

log = logging.getLogger(__name__)

SPARE: Final = 4
ROUND: Final = 1.0  # seconds between two rounds
BREAKER: Final = 1.0  # seconds without a push after one that failed


@dataclass(frozen=True, slots=True)
class Fleet:
    """The living workers: window per queue name, and the jobs that somebody runs.

    ``jobs`` is a JSON object of names and the newest payload version that is run.
    """

    windows: dict[str, int]
    jobs: str
    boots: int

    @classmethod
    def read(cls, tx: Transaction) -> Fleet:
        """The fleet as the record has it now."""
        return cls.of(
            tx.all(statements.BOOTS_LIVE, stall_after=round(PROJECT.stall_after * 1000))
        )

    @classmethod
    def of(cls, boots: Sequence[Row]) -> Fleet:
        """The fleet of these boot rows."""
        windows = dict.fromkeys(catalog.QUEUE_NAMES, SPARE)
        jobs: list[dict[str, int]] = []
        for boot in boots:
            jobs.append(json.loads(boot["jobs"]))
            for queue in json.loads(boot["queues"]):
                windows[queue] = windows.get(queue, SPARE) + int(boot["slots"])
        return cls(windows, catalog.known_to(jobs), len(boots))


class Publisher:
    """Pushes messages to Redis; what is not acknowledged is unmarked again.

    One failed push opens a breaker for a second: an unreachable Redis must not make
    every caller wait for its timeout.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._closed_until = 0.0

    def push(self, database: Database, messages: Sequence[Message]) -> int:
        """Pushes in order; returns how many Redis has.  Raises nothing of Redis."""
        if not messages:
            return 0
        if time.monotonic() >= self._closed_until:
            try:
                self._broker.publish(messages)
                return len(messages)
            except Unavailable as error:
                self._closed_until = time.monotonic() + BREAKER
                log.warning("dispatch: %s; %d rows wait", error, len(messages))
        try:
            with database.transaction() as tx:
                record.undispatch(tx, messages)
        except QueueError as error:
            # The marks stay; the sweep asks Redis for them and finds them missing.
            log.warning("dispatch: marks not taken back: %s", error)
        return 0


class Dispatcher:
    """Fills the windows: a round each second, and at once what a finish has freed."""

    def __init__(self, database: Database, broker: Broker) -> None:
        self._database = database
        self._publisher = Publisher(broker)
        self._fleet = Fleet({}, "{}", 0)
        self._queues: tuple[str, ...] = ()
        self._outbox: SimpleQueue[Sequence[Message] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="dispatch", daemon=True)

    def start(self, queues: tuple[str, ...]) -> None:
        """Starts the thread; ``queues`` are those this process serves."""
        self._queues = queues
        self._thread.start()

    def refill(self, tx: Transaction, freed: int) -> list[Message]:
        """Marks as many rows as were freed, inside the transaction that freed them."""
        messages: list[Message] = []
        for queue in self._queues:
            window = self._fleet.windows.get(queue, 0)
            if window and len(messages) < freed:
                most = freed - len(messages)
                messages += record.dispatch(tx, queue, window, self._fleet.jobs, most)
        return messages

    def publish(self, messages: Sequence[Message]) -> None:
        """Hands messages of a committed transaction to the thread."""
        if messages:
            self._outbox.put(messages)

    def round(self) -> int:
        """One round over every queue; returns how many rows were published."""
        with self._database.transaction() as tx:
            self._fleet = Fleet.read(tx)
            turn = tx.one(statements.DISPATCH_TURN)
            messages: list[Message] = []
            if turn and turn["mine"]:
                for queue, window in self._fleet.windows.items():
                    messages += record.dispatch(tx, queue, window, self._fleet.jobs)
        return self._publisher.push(self._database, messages)

    def close(self) -> None:
        """Pushes what was handed over, then ends the thread."""
        self._outbox.put(None)
        self._thread.join(5)

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            try:
                messages = self._outbox.get(timeout=max(0.0, due - time.monotonic()))
                if messages is None:
                    break
                self._publisher.push(self._database, [*messages, *self._more()])
            except Empty:
                due = time.monotonic() + ROUND
                self._guarded_round()
            except Exception:
                log.exception("dispatch: a push failed")
        self._database.close()

    def _more(self) -> Iterable[Message]:
        """What else was handed over meanwhile: one push serves it all."""
        try:
            while (messages := self._outbox.get_nowait()) is not None:
                yield from messages
            self._outbox.put(None)
        except Empty:
            pass

    def _guarded_round(self) -> None:
        try:
            self.round()
        except QueueError as error:
            log.warning("dispatch: %s", error)
        except Exception:
            log.exception("dispatch: a round failed")
