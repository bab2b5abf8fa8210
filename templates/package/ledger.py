"""The thread that batches claims, paid calls and finishes: group commit.

Everything that arrives while a transaction runs goes into the next one, so one commit
serves many jobs and an idle process waits for nobody.  A claim or an ending is
acknowledged only when it is committed.  While the database is away, both are repeated:
the dispatch number and the fence make a repetition harmless.  What a paid call has cost
is written before the ends of the same batch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from . import record, statements
from .calls import Report
from .codec import encode
from .database import Database, DataError
from .dispatch import Dispatcher
from .endings import Ending
from .errors import QueueError, Unavailable
from .paid import Order
from .record import Claim, Message
from .till import Item, Settling, Till

log = logging.getLogger(__name__)

LONGEST_BATCH: Final = 500
PARKED: Final = 0.2  # seconds until calls that could not be written are tried again

Reply = Callable[[Claim | None], None]
Done = Callable[[str | None], None]
Deliver = Callable[[list[Callable[[], None]]], None]


@dataclass(frozen=True, slots=True)
class _Claim:
    message: Message
    reply: Reply


@dataclass(frozen=True, slots=True)
class _Finish:
    ending: Ending
    done: Done


@dataclass(frozen=True, slots=True)
class _Progress:
    id: str
    fence: int
    progress: str


_Item = _Claim | _Finish | _Progress | Order | Settling | None


class Ledger:
    """Writes claims, paid calls and endings for one boot.

    ``mine(id)`` tells whether this process runs the row already; ``fit()`` whether it
    may claim now; ``register(claim)`` is called on this thread for every claim before
    anyone can see it as a row that nobody runs; ``deliver`` runs callbacks where the
    caller wants them (an event loop), all of one commit at once.
    """

    def __init__(
        self,
        boot: str,
        database: Database,
        dispatcher: Dispatcher,
        *,
        mine: Callable[[str], bool],
        fit: Callable[[], bool],
        register: Callable[[Claim], None],
        deliver: Deliver,
    ) -> None:
        self._boot = boot
        self._database = database
        self._dispatcher = dispatcher
        self._mine = mine
        self._fit = fit
        self._register = register
        self._deliver = deliver
        self._inbox: SimpleQueue[_Item] = SimpleQueue()
        self._till = Till(database, lambda: self._opening and fit())
        self._parked: list[Item] = []
        self._opening = True
        self._claiming = True
        self._deadline: float | None = None
        self._busy: frozenset[str] = frozenset()
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def claim(self, message: Message, reply: Reply) -> None:
        """Claims the message's row: ``reply`` gets the claim, or None if refused."""
        self._inbox.put(_Claim(message, reply))

    def finish(self, ending: Ending, done: Done) -> None:
        """Writes an ending: ``done`` gets the row's new state, None if it came too late."""
        self._inbox.put(_Finish(ending, done))

    def progress(self, id_: str, fence: int, progress: str) -> None:
        """Writes progress, as soon as there is time for it."""
        self._inbox.put(_Progress(id_, fence, progress))

    def open(self, order: Order) -> None:
        """Opens a paid call; the order's ``answer`` is set when it is committed."""
        self._inbox.put(order)

    def settle(self, report: Report) -> Future[str]:
        """Books what a paid call has cost; its state when that is committed."""
        settling = Settling(report)
        self._inbox.put(settling)
        return settling.state

    def pending(self, id_: str) -> bool:
        """Whether a claim of the row is being written now."""
        return id_ in self._busy

    def stop_claiming(self) -> None:
        """From now on every claim is answered with None."""
        self._claiming = False

    def close(self, within: float) -> bool:
        """Writes what has arrived; False if that took longer than ``within`` seconds."""
        self.stop_claiming()
        self._deadline = time.monotonic() + within
        self._inbox.put(None)
        self._thread.join(within + 1)
        return not self._thread.is_alive()

    def _run(self) -> None:
        closing = False
        while not closing:
            batch = self._arrived()
            closing = None in batch
            finishes = [item for item in batch if isinstance(item, _Finish)]
            claims = [item for item in batch if isinstance(item, _Claim)]
            notes = {i.id: i for i in batch if isinstance(i, _Progress)}
            self._busy = frozenset(item.message.id for item in claims)
            try:
                if notes:
                    self._write_progress(list(notes.values()))
                self._write_calls(batch)
                if finishes:
                    self._write_finishes(finishes)
                if claims:
                    self._write_claims(claims)
            except Exception:
                # A bug must not silence the thread that everything hangs on: the rows
                # stay as they are and recovery finds them.
                log.exception("ledger: a batch failed")
                self._answer([partial(item.reply, None) for item in claims])
            finally:
                self._busy = frozenset()
        self._till.close(self._parked)
        self._database.close()

    def _arrived(self) -> list[_Item]:
        """What has arrived: waits for something, or for parked calls to be due again."""
        batch: list[_Item] = []
        try:
            batch.append(self._inbox.get(timeout=PARKED if self._parked else None))
            while len(batch) < LONGEST_BATCH:
                batch.append(self._inbox.get_nowait())
        except Empty:
            pass
        return batch

    # Paid calls

    def _write_calls(self, batch: Sequence[_Item]) -> None:
        items = [item for item in batch if isinstance(item, Order | Settling)]
        if items or self._parked:
            self._parked = self._till.write([*self._parked, *items])

    # Endings

    def _write_finishes(self, finishes: Sequence[_Finish]) -> None:
        states = self._until_written([item.ending for item in finishes])
        self._answer([partial(i.done, states.get(i.ending.id)) for i in finishes])

    def _until_written(self, endings: Sequence[Ending]) -> dict[str, str]:
        pause = 0.1
        repeated = False
        while True:
            try:
                return self._write(endings, repeated)
            except Unavailable as error:
                log.warning("ledger: %s; repeating %d endings", error, len(endings))
                if self._deadline is not None and time.monotonic() > self._deadline:
                    return {}
                time.sleep(pause)
                pause = min(pause * 2, 2.0)
                repeated = True
            except DataError as error:
                if len(endings) == 1:
                    return self._write_refused(endings[0], error)
                states: dict[str, str] = {}
                for ending in endings:
                    states |= self._until_written([ending])
                return states
            except QueueError as error:
                log.error("ledger: %s", error)
                time.sleep(pause)
                if self._deadline is not None and time.monotonic() > self._deadline:
                    return {}

    def _write(self, endings: Sequence[Ending], repeated: bool) -> dict[str, str]:
        with self._database.transaction() as tx:
            states = record.finish(tx, endings)
            for ending in endings:
                if ending.id in states:
                    continue
                if repeated and record.ended_already(tx, ending):
                    states[ending.id] = ending.state
                else:
                    log.warning(
                        "job %s: the ending of attempt %d came too late and was refused",
                        ending.id,
                        ending.attempt,
                    )
            messages = self._dispatcher.refill(tx, freed=len(endings))
        self._dispatcher.publish(messages)
        return states

    def _write_refused(self, ending: Ending, error: Exception) -> dict[str, str]:
        # The database refuses what the handler made: keep the job's end and the
        # beginning of its result, rather than run the job again.
        log.error("job %s: its result was refused: %s", ending.id, error)
        kept = encode(
            {"$refused": str(error)[:500], "$begins": str(ending.result)[:1000]}
        )
        plain = Ending(
            id=ending.id,
            fence=ending.fence,
            attempt=ending.attempt,
            state=ending.state,
            outcome=ending.outcome,
            worker=ending.worker,
            started_at=ending.started_at,
            reason=ending.reason,
            cause=ending.cause,
            result=kept,
            error=kept if ending.state == "failed" else None,
        )
        try:
            return self._write([plain], False)
        except DataError:
            log.exception("job %s: its ending cannot be written", ending.id)
            return {}

    # Claims

    def _write_claims(self, claims: Sequence[_Claim]) -> None:
        newest: dict[str, Message] = {}
        for item in claims:
            known = newest.get(item.message.id)
            if known is None or known.dispatch < item.message.dispatch:
                newest[item.message.id] = item.message
        admitted = self._until_claimed(list(newest.values()))
        given: set[str] = set()
        replies: list[Callable[[], None]] = []
        for item in claims:
            message = item.message
            claim = None
            if newest[message.id] is message and message.id not in given:
                claim = admitted.get(message.id)
                given.add(message.id)
            replies.append(partial(item.reply, claim))
        self._answer(replies)

    def _until_claimed(self, messages: Sequence[Message]) -> dict[str, Claim]:
        pause = 0.1
        while self._claiming:
            try:
                if not self._fit():
                    raise Unavailable("this process cannot beat, so it does not claim")
                with self._database.transaction() as tx:
                    claims = record.claim(tx, messages, self._boot, self._mine)
                for id_ in claims.dropped:
                    log.info("job %s: a stale message was dropped", id_)
                for claim in claims.admitted.values():
                    self._register(claim)
                return claims.admitted
            except Unavailable as error:
                log.warning("ledger: %s; %d claims wait", error, len(messages))
                # Endings do not wait behind claims.
                self._finish_waiting()
                time.sleep(pause)
                pause = min(pause * 2, 2.0)
            except DataError as error:
                if len(messages) == 1:
                    log.error("job %s: cannot be claimed: %s", messages[0].id, error)
                    return {}
                return {
                    id_: claim
                    for message in messages
                    for id_, claim in self._until_claimed([message]).items()
                }
        self._give_back(messages)
        return {}

    def _give_back(self, messages: Sequence[Message]) -> None:
        """Taken but not to be claimed here: another worker may have them at once."""
        try:
            with self._database.transaction() as tx:
                record.undispatch(tx, messages)
        except QueueError as error:
            log.warning("ledger: %s; the sweep will find %d rows", error, len(messages))

    def _finish_waiting(self) -> None:
        """Writes calls and endings that arrived; puts everything else back in order."""
        waiting: list[_Item] = []
        try:
            while True:
                waiting.append(self._inbox.get_nowait())
        except Empty:
            pass
        finishes = [item for item in waiting if isinstance(item, _Finish)]
        for item in waiting:
            if not isinstance(item, _Finish | Order | Settling):
                self._inbox.put(item)
        self._write_calls(waiting)
        if finishes:
            self._write_finishes(finishes)

    def _write_progress(self, notes: Sequence[_Progress]) -> None:
        try:
            with self._database.transaction() as tx:
                for note in notes:
                    tx.run(
                        statements.PROGRESS,
                        id=note.id,
                        fence=note.fence,
                        progress=note.progress,
                    )
        except (QueueError, *DataError) as error:
            log.warning("ledger: progress not written: %s", error)

    def _answer(self, replies: list[Callable[[], None]]) -> None:
        if replies:
            self._deliver(replies)
