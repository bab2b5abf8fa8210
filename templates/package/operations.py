"""What an operator asks and does: status, health, lists, cancel, recover."""

from __future__ import annotations

import json

from . import catalog, statements
from .database import Database
from .settings import database_url

_PATIENCE = 10.0


def due(queues: tuple[str, ...]) -> int:
    """How many rows of these queues are due and may run here."""
    database = Database(database_url(), _PATIENCE)
    try:
        with database.transaction() as tx:
            row = tx.one(
                statements.DUE,
                queues=json.dumps(queues),
                jobs=catalog.versions(),
            )
    finally:
        database.close()
    return int(row["count"]) if row else 0
