"""What an operator asks and does: status, lists, one row, cancel, recover.

Every function opens a connection of its own, needs no worker, and answers in JSON forms
(``views``).  Raises SetupError, Unavailable, NotFound.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from . import catalog, migrate, record, statements, views
from .broker import Broker
from .database import Database, Row, Transaction
from .errors import NotFound
from .recovery import Counts, Sweeper
from .registry import PROJECT, QUEUES
from .settings import database_url

# Seconds between the two looks at Redis of `recover`: what was taken in between is
# claimed by then, what both miss is lost.
BETWEEN_LOOKS: Final = 1.0

_PATIENCE: Final = 10.0


@contextmanager
def transaction(patience: float = _PATIENCE) -> Iterator[Transaction]:
    """One transaction on a connection that is closed afterwards."""
    database = Database(database_url(), patience)
    try:
        with database.transaction() as tx:
            yield tx
    finally:
        database.close()


def due(queues: tuple[str, ...]) -> int:
    """How many rows of these queues are due and may run here."""
    with transaction() as tx:
        row = tx.one(
            statements.DUE,
            queues=json.dumps(queues),
            jobs=json.dumps(sorted(catalog.BY_NAME)),
        )
    return int(row["count"]) if row else 0


def status() -> Row:
    """Counts by state, the queues, the living workers, and what waits for a person.

    Rows under a queue's former name count as the queue's; ``removed_jobs`` counts the
    waiting rows of jobs that this package does not have.
    """
    with transaction() as tx:
        states = {row["state"]: row["count"] for row in tx.all(statements.STATES)}
        queues = tx.all(statements.QUEUES)
        boots = live_boots(tx)
        removed = tx.all(
            statements.UNKNOWN_JOBS, jobs=json.dumps(sorted(catalog.BY_NAME))
        )
    return {
        "states": states,
        "queues": _queues(queues, boots),
        "agents": {},
        "workers": [_worker(boot) for boot in boots],
        "dead_letters": states["failed"],
        "held": states["held"],
        "removed_jobs": {row["job"]: row["count"] for row in removed},
    }


def live_boots(tx: Transaction) -> list[Row]:
    """The boots that beat, each with its number of ``active`` rows."""
    taken = {row["worker"]: row["count"] for row in tx.all(statements.SLOTS_TAKEN)}
    boots = tx.all(statements.BOOTS_LIVE, stall_after=round(PROJECT.stall_after * 1000))
    return [boot | {"active": taken.get(boot["id"], 0)} for boot in boots]


def serving(boots: Iterable[Row], queue: str) -> list[Row]:
    """Those of these boots that take rows of the queue."""
    return [boot for boot in boots if queue in json.loads(boot["queues"])]


def _queues(rows: Iterable[Row], boots: list[Row]) -> dict[str, Row]:
    names = [queue.name for queue in QUEUES]
    found: dict[str, Row] = {name: _queue(name, boots) for name in names}
    for row in rows:
        known = catalog.QUEUE_NAMES.get(row["queue"])
        name = row["queue"] if known is None else known.name
        queue = found.setdefault(name, _queue(name, boots))
        queue["queued"] += row["queued"]
        queue["active"] += row["active"]
        ages = (queue["oldest_due_s"], row["oldest_due_s"])
        queue["oldest_due_s"] = max((a for a in ages if a is not None), default=None)
    return found


def _queue(name: str, boots: list[Row]) -> Row:
    workers = len(serving(boots, name))
    return {"queued": 0, "active": 0, "oldest_due_s": None, "workers": workers}


def _worker(boot: Row) -> Row:
    return views.shown({k: v for k, v in boot.items() if k != "jobs"})


def listed(
    *,
    state: str | None = None,
    job: str | None = None,
    queue: str | None = None,
    limit: int = 50,
) -> list[Row]:
    """Rows, the newest first.

    A current name finds the rows under its former names too; a name that this package
    does not have finds the rows that still carry it.
    """
    jobs = queues = None
    if job is not None:
        found = catalog.BY_NAME.get(job)
        jobs = json.dumps([job] if found is None else [found.name, *found.aliases])
    if queue is not None:
        known = catalog.QUEUE_NAMES.get(queue)
        queues = json.dumps([queue] if known is None else [known.name, *known.aliases])
    text = statements.ROWS if state is None else statements.ROWS_IN[state]
    with transaction() as tx:
        rows = tx.all(text, jobs=jobs, queues=queues, most=limit)
    return [views.shown(row) for row in rows]


def show(id_: str) -> Row:
    """One row with its ``attempts`` (those that did not complete) and ``paid_calls``."""
    with transaction() as tx:
        row = tx.one(statements.ROW, id=_uuid(id_))
        if row is None:
            raise NotFound(f"no job has the id {id_}")
        attempts = tx.all(statements.ATTEMPTS, id=row["id"])
    shown = views.shown(row)
    shown["attempts"] = [views.shown(attempt) for attempt in attempts]
    shown["paid_calls"] = []
    return shown


def cancel(ids: Iterable[str], by: str) -> dict[str, list[str]]:
    """Cancels each row by itself; every id is in exactly one of the lists.

    ``cancelling`` runs now: its worker stops it at the next beat.
    """
    answers: dict[str, list[str]] = {
        name: []
        for name in ("cancelled", "cancelling", "already_finished", "not_found")
    }
    for text in dict.fromkeys(ids):
        try:
            id_ = _uuid(text)
        except NotFound:
            answers["not_found"].append(text)
            continue
        with transaction() as tx:
            answers[record.cancel(tx, id_, by)].append(id_)
    return answers


def recover() -> dict[str, int]:
    """One sweep from here, as counts.

    This process has no boot, so it declares nobody dead; it takes care of the rows of
    boots that were declared dead before, and asks Redis twice for what is outstanding.
    """
    migrate.check()
    broker = Broker()
    database = Database(database_url(), _PATIENCE)
    try:
        broker.check()
        sweeper = Sweeper(database, broker)
        first = sweeper.sweep().as_dict()
        time.sleep(BETWEEN_LOOKS)
        second = sweeper.sweep().as_dict()
    finally:
        database.close()
        broker.close()
    counts = {name: first[name] + second[name] for name in Counts().as_dict()}
    # What failed at the first look was tried again at the second.
    return counts | {"errors": second["errors"]}


def _uuid(text: Any) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise NotFound(f"no job has the id {text!s:.80}: an id is a UUID") from None
