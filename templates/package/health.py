"""Whether the queue does its work, and if not, why: one sentence per reason.

It looks and changes nothing, and every look has a limit of its own: a check must answer
while what it checks does not.
"""

from __future__ import annotations

import json
import time
from typing import Final

from . import catalog, migrate, statements
from .broker import Broker
from .database import Row
from .dispatch import Fleet
from .errors import SetupError, Unavailable
from .operations import live_boots, serving, transaction
from .registry import PROJECT
from .settings import database_url, redis_url

# Recovery is promised within `stall.after` and two sweeps; what waits longer beside a
# free slot is not being recovered.
UNCLAIMED_LIMIT: Final = PROJECT.stall_after + 2 * PROJECT.sweep

_PATIENCE: Final = 5.0
_BETWEEN_LOOKS: Final = 1.0


def health() -> Row:
    """``healthy`` and its ``reasons``; raises SetupError if an address is not set."""
    database_url()
    redis_url()
    reasons = [*_database(), *_redis()]
    return {"healthy": not reasons, "reasons": reasons}


def _database() -> list[str]:
    try:
        migrate.check()
        reasons = [f"the tables drifted: {found}" for found in migrate.drift()]
        if not reasons:
            reasons = [*_waiting(), *_unsupported()]
    except (SetupError, Unavailable) as error:
        return [str(error)]
    return reasons


def _redis() -> list[str]:
    broker = Broker()
    try:
        broker.check()
        policy = broker.eviction_policy()
    except (SetupError, Unavailable) as error:
        return [str(error)]
    finally:
        broker.close()
    if policy in (None, "noeviction"):
        return []
    return [
        f"Redis evicts keys (maxmemory-policy {policy}): jobs start late; "
        "set it to noeviction"
    ]


def _waiting() -> list[str]:
    """Queues that nobody serves, and queues whose rows wait beside a free slot."""
    reasons: list[str] = []
    late: dict[str, int] = {}
    for queue, boots in _due():
        age = queue["oldest_due_s"]
        if not boots:
            reasons.append(
                f"queue {queue['queue']}: {queue['due']} due, 0 live workers, "
                f"the oldest for {age:.0f} s"
            )
        elif age > UNCLAIMED_LIMIT and _has_room(boots):
            late[queue["queue"]] = queue["oldest_due_at"]
    if not late:
        return reasons
    # Between two jobs a slot is free for a moment: only a row that is still the oldest
    # at a second look is not being taken.
    time.sleep(_BETWEEN_LOOKS)
    for queue, boots in _due():
        if late.get(queue["queue"]) == queue["oldest_due_at"] and _has_room(boots):
            reasons.append(
                f"queue {queue['queue']}: {queue['due']} due and unclaimed, the oldest "
                f"for {queue['oldest_due_s']:.0f} s, with free slots in "
                f"{len(boots)} live workers"
            )
    return reasons


def _due() -> list[tuple[Row, list[Row]]]:
    """The queues with due rows, each with the boots that serve it."""
    with transaction(_PATIENCE) as tx:
        boots = live_boots(tx)
        queues = tx.all(statements.QUEUES)
    return [(row, serving(boots, row["queue"])) for row in queues if row["due"]]


def _has_room(boots: list[Row]) -> bool:
    return any(boot["active"] < boot["slots"] for boot in boots)


def _unsupported() -> list[str]:
    """Jobs with waiting rows that neither a living worker nor this package runs."""
    with transaction(_PATIENCE) as tx:
        fleet = Fleet.read(tx)
        known = json.loads(fleet.jobs) if fleet.boots else sorted(catalog.BY_NAME)
        rows = tx.all(statements.UNKNOWN_JOBS, jobs=json.dumps(known))
    return [
        f"job {row['job']}: {row['count']} rows wait and no live worker runs it"
        for row in rows
    ]
