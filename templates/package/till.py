"""Opens and settles paid calls in group commits, on the ledger's thread.

An open waits while the process cannot beat; a report is never given up: while the
database is away it is repeated, and kept in the spool in case the process ends first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from typing import Any

from . import spool
from .books import Books
from .calls import Opened, Report, Shut
from .codec import encode
from .database import Database, DataError
from .errors import Locked, QueueError
from .paid import Order

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Settling:
    """A report on its way into the record."""

    report: Report
    state: Future[str] = field(default_factory=Future)
    spooled: bool = False


Item = Order | Settling


class Till:
    """Writes orders and reports; ``fit()`` says whether calls may be opened now."""

    def __init__(self, database: Database, fit: Callable[[], bool]) -> None:
        self._database = database
        self._fit = fit

    def write(self, items: Sequence[Item]) -> list[Item]:
        """Writes what can be written now in one transaction; returns what is left."""
        orders = [i for i in items if isinstance(i, Order) and not i.abandoned]
        for item in items:
            if isinstance(item, Order) and item.abandoned:
                answer(item.answer, Shut("over", "nobody waits for it any more"))
        settlings = [i for i in items if isinstance(i, Settling)]
        waiting: list[Item] = []
        if not self._fit():
            waiting, orders = list(orders), []
        if not orders and not settlings:
            return waiting
        try:
            self._commit(orders, settlings)
        except (Locked, *DataError) as error:
            waiting += self._one_by_one([*orders, *settlings], error)
        except QueueError as error:
            log.warning(
                "ledger: %s; %d calls wait", error, len(orders) + len(settlings)
            )
            for settling in settlings:
                settling.spooled = settling.spooled or spool.keep(settling.report)
            waiting += [*settlings, *orders]
        return waiting

    def _commit(self, orders: Sequence[Order], settlings: Sequence[Settling]) -> None:
        ids = {o.opening.job_id for o in orders} | {s.report.job_id for s in settlings}
        with self._database.transaction() as tx:
            books = Books(tx, ids)
            states = [books.settle(settling.report) for settling in settlings]
            opened = [books.open(order.opening) for order in orders]
            books.flush()
        for settling, state in zip(settlings, states, strict=True):
            if state == "missing":
                log.error("call %s is not in the record", settling.report.call)
            if settling.spooled:
                spool.drop(settling.report.call)
            answer(settling.state, state)
        for order, result in zip(orders, opened, strict=True):
            answer(order.answer, result)

    def _one_by_one(self, items: Sequence[Item], error: Exception) -> list[Item]:
        """The database refused something of the batch: find it, keep the money right."""
        if len(items) > 1:
            return [left for item in items for left in self.write([item])]
        (item,) = items
        if isinstance(error, Locked):
            return [item]  # its row's, while the others were written
        if isinstance(item, Order):
            log.error("job %s: no call opened: %s", item.opening.job_id, error)
            answer(item.answer, Shut("room", f"the database refused the call: {error}"))
            return []
        kept = item.report.kept
        if kept is None or kept.startswith('{"$refused"'):
            log.error("job %s: its report was refused: %s", item.report.job_id, error)
            spool.keep(item.report)
            answer(item.state, "missing")
            return []
        # The answer is what it does not take: keep the money and the answer's beginning.
        begins = {"$refused": str(error)[:500], "$begins": kept[:1000]}
        item.report = replace(item.report, kept=encode(begins))
        return self.write([item])

    def close(self, items: Sequence[Item]) -> None:
        """What is not written yet: reports go to the spool, orders are turned down."""
        for item in items:
            if isinstance(item, Order):
                answer(item.answer, Shut("over", "this worker cannot open calls now"))
            elif not item.state.done():
                if not item.spooled:
                    spool.keep(item.report)
                answer(item.state, "missing")


def answer(future: Future[Any], value: Opened | Shut | str) -> None:
    """Sets a result, unless nobody waits for it any more."""
    try:
        if not future.done():
            future.set_result(value)
    except InvalidStateError:
        pass
