"""Windows against the rows that they are sums of: what ``doctor`` finds and repairs."""

from __future__ import annotations

import uuid
from typing import Any

from . import money_statements, statements
from .amounts import decimal
from .database import Row, Transaction
from .operations import transaction

_COLUMNS = ("spent", "reserved", "unknown")


def windows(repair: bool, by: str) -> list[dict[str, Any]]:
    """A finding for each window that is not the sum of its rows and calls.

    ``repair`` sets it right while no paid job moves.  Windows that have ended and hold
    nothing are left alone: their rows may be gone.
    """
    with transaction() as tx:
        tx.run(money_statements.LOCK_PAID)
        wrong = [row for row in tx.all(money_statements.WINDOWS_TRUE) if _differs(row)]
        if repair:
            for row in wrong:
                _set_right(tx, row, by)
    return [_finding(row, repair) for row in wrong]


def _differs(row: Row) -> bool:
    return any(row[name] != row[f"true_{name}"] for name in _COLUMNS)


def _set_right(tx: Transaction, row: Row, by: str) -> None:
    true = {name: int(row[f"true_{name}"]) for name in _COLUMNS}
    tx.run(money_statements.WINDOW_SET, key=row["key"], **true)
    tx.run(
        statements.DECISION_INSERT,
        id=str(uuid.uuid4()),
        kind="repair",
        subject=row["key"],
        by=by,
        note=_evidence(row),
        most=None,
    )


def _finding(row: Row, repaired: bool) -> dict[str, Any]:
    return {
        "symptom": f"the window {row['key']} is not the sum of its jobs",
        "likely_cause": "it was changed by hand, or restored from another time",
        "evidence": _evidence(row),
        "fix": "repaired" if repaired else "doctor --repair",
    }


def _evidence(row: Row) -> str:
    return "; ".join(
        f"{name} {decimal(row[name])}, the rows say {decimal(row[f'true_{name}'])}"
        for name in _COLUMNS
        if row[name] != row[f"true_{name}"]
    )
