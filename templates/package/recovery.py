"""The sweep: finds what died, what Redis lost and what can never run.

Everything here reads a list and then changes one row at a time, in a transaction of its
own that tests the row again.  It is safe in every worker at once and needs no leader.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Final

from . import catalog, outcomes, record, spool, statements
from .books import Books
from .broker import Broker
from .database import Database, DataError, Row
from .dispatch import Fleet, Publisher
from .errors import QueueError
from .outcomes import Held
from .record import Message
from .registry import PROJECT

log = logging.getLogger(__name__)

# A job that no living worker knows is failed after this long, seconds.
UNKNOWN_PATIENCE: Final = 3600.0

# Behind every look at Redis stands this timer, seconds.
OUTSTANDING_LIMIT: Final = 900.0


@dataclass(slots=True)
class Counts:
    """What one sweep did; ``errors`` are rows or steps that failed, and were passed over."""

    published: int = 0
    recovered: int = 0
    held: int = 0
    failed: int = 0
    slots: int = 0
    errors: int = 0

    def as_dict(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


@dataclass(slots=True)
class Sweeper:
    """Sweeps; remembers between two sweeps what Redis did not know.

    ``judge`` gives the boot and since when it has beaten without a miss: only such a
    process declares others dead.  None = declare nobody.
    """

    database: Database
    broker: Broker
    judge: Callable[[], tuple[str, int] | None] = lambda: None
    _missing: set[tuple[str, int]] = field(default_factory=set)

    def sweep(self) -> Counts:
        """One sweep.  A step that fails is counted and does not stop the others."""
        counts = Counts()
        for step in (
            self._declare_dead,
            self._spooled,
            self._recover,
            self._find_lost,
            self._unknown_jobs,
            self._prune,
        ):
            try:
                step(counts)
            except (QueueError, *DataError) as error:
                counts.errors += 1
                log.warning("sweep: %s: %s", step.__name__.strip("_"), error)
        return counts

    def _declare_dead(self, counts: Counts) -> None:
        judge = self.judge()
        if judge is None:
            return
        boot, steady_since = judge
        with self.database.transaction() as tx:
            dead = tx.all(
                statements.BOOTS_DECLARE_DEAD,
                boot=boot,
                steady_since=steady_since,
                stall_after=round(PROJECT.stall_after * 1000),
                heartbeat=round(PROJECT.heartbeat * 1000),
            )
        for row in dead:
            log.warning("sweep: worker %s on %s is dead", row["pid"], row["host"])

    def _spooled(self, counts: Counts) -> None:
        """Late truth: reports that a process could not write before it ended."""
        for report in spool.reports():
            with self.database.transaction() as tx:
                books = Books(tx, [report.job_id])
                state = books.settle(report)
                books.flush()
            if state == "missing":
                counts.errors += 1
                log.error("spool: no call %s is in the record", report.call)
                spool.set_aside(report.call)
            else:
                log.warning("spool: call %s: %s", report.call, state)
                spool.drop(report.call)

    def _recover(self, counts: Counts) -> None:
        with self.database.transaction() as tx:
            rows = tx.all(statements.STRANDED)
        for row in rows:
            try:
                self._recover_row(row, counts)
            except (QueueError, *DataError) as error:
                counts.errors += 1
                log.warning("sweep: job %s: %s", row["id"], error)

    def _recover_row(self, row: Row, counts: Counts) -> None:
        held = Held.of(row)
        try:
            job = catalog.BY_NAME.get(row["job"])
            if row["late"] and job is not None:
                ending = outcomes.timed_out(held, job, stranded=True)
            else:
                ending = outcomes.lost(held)
        except Exception as error:
            ending = outcomes.unreadable(held, error)
        with self.database.transaction() as tx:
            state = record.finish(tx, [ending]).get(row["id"])
        if state == "queued":
            counts.recovered += 1
        elif state == "held":
            counts.held += 1
        elif state == "failed":
            counts.failed += 1
        if state is not None:
            log.warning("sweep: job %s was stranded: %s", row["id"], state)

    def _find_lost(self, counts: Counts) -> None:
        """Asks Redis for what is outstanding; unknown twice = dispatched again."""
        wiped = self.broker.changed()
        with self.database.transaction() as tx:
            rows = tx.all(statements.OUTSTANDING, stale=round(OUTSTANDING_LIMIT * 1000))
        outstanding = record.messages_of(rows)
        known = self.broker.known(outstanding)
        old = {row["id"] for row in rows if row["stale"]}
        missing = {(m.id, m.dispatch) for m in outstanding if m.id not in known}
        again: list[Message] = [
            message
            for message in outstanding
            if (
                (message.id, message.dispatch) in missing
                and (wiped or (message.id, message.dispatch) in self._missing)
            )
            or message.id in old
        ]
        self._missing = missing
        if again:
            with self.database.transaction() as tx:
                record.undispatch(tx, again)
            log.warning("sweep: Redis lost %d messages", len(again))
        counts.published += self._publish()

    def _publish(self) -> int:
        publisher = Publisher(self.broker)
        with self.database.transaction() as tx:
            fleet = Fleet.read(tx)
            turn = tx.one(statements.DISPATCH_TURN)
            messages: list[Message] = []
            if turn and turn["mine"]:
                for queue, window in fleet.windows.items():
                    messages += record.dispatch(tx, queue, window, fleet.jobs)
        return publisher.push(self.database, messages)

    def _unknown_jobs(self, counts: Counts) -> None:
        """Rows whose job or version nobody runs wait an hour, then fail."""
        with self.database.transaction() as tx:
            fleet = Fleet.read(tx)
            if fleet.boots == 0:
                return
            tx.run(statements.UNSUPPORTED_MARK, jobs=fleet.jobs)
            rows = tx.all(
                statements.UNSUPPORTED_OLD,
                jobs=fleet.jobs,
                patience=round(UNKNOWN_PATIENCE * 1000),
            )
        for row in rows:
            message = f"no living worker has run the job {row['job']!r} for an hour"
            with self.database.transaction() as tx:
                if record.fail_queued(tx, row, "unknown_job", message):
                    counts.failed += 1

    def _prune(self, counts: Counts) -> None:
        with self.database.transaction() as tx:
            tx.run(
                statements.PRUNE,
                completed=_ms(PROJECT.keep_completed),
                failed=_ms(PROJECT.keep_failed),
                cancelled=_ms(PROJECT.keep_cancelled),
            )
            tx.run(statements.BOOTS_PRUNE)


class SweepThread:
    """Sweeps every ``sweep`` seconds for the life of a worker."""

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper = sweeper
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread after the sweep it is at."""
        self._stop.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.wait(PROJECT.sweep):
            try:
                self._sweeper.sweep()
            except Exception:
                log.exception("sweep: failed")
        self._sweeper.database.close()


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
