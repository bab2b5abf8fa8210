"""Dead letters: grouped by cause, approved by a person, replayed.

Rows that failed stay where they are: a replay moves the row itself back to the queue,
under the same id and with its history.  It needs an approval, which covers the rows
that had failed by then, and at most the stated number of them in all.
"""

from __future__ import annotations

import json
import uuid
from typing import Any, Final

from . import catalog, statements, views
from .codec import text_form
from .database import DataError, Row, Transaction
from .definitions import BONUS
from .endings import used
from .errors import NotFound, Refused
from .operations import transaction
from .outcomes import TIMED_OUT, WORKER_LOST
from .runner import LENIENCY

# Replayed rows start this many seconds apart: what broke them may not stand a crowd.
SPREAD: Final = 0.1

# At most this many refusals are listed.
LISTED: Final = 1000

_MAX_TEXT: Final = 2000


def causes() -> list[Row]:
    """Failed and held rows by cause, the most frequent first.

    ``error`` is the newest one's; ``approved`` is None or the newest approval: who,
    when, why, its ``limit`` and how many of it are ``left``.
    """
    with transaction() as tx:
        rows = tx.all(statements.CAUSES)
        approvals = {row["subject"]: row for row in tx.all(statements.APPROVALS)}
    return [
        views.shown(row) | {"approved": _approval(approvals.get(row["cause"]))}
        for row in rows
    ]


def _approval(row: Row | None) -> Row | None:
    if row is None:
        return None
    return {
        "by": row["by"],
        "note": row["note"],
        "limit": row["most"],
        "left": row["most"] - row["used"],
        "decided_at": views.instant(row["decided_at"]),
    }


def approve(cause: str, *, by: str, note: str, limit: int) -> Row:
    """Allows ``limit`` replays of the rows that failed with this cause until now.

    The newest approval of a cause counts.  Raises NotFound without such a row.
    """
    for name, text in (("by", by), ("note", note)):
        if not text.strip() or len(text) > _MAX_TEXT:
            raise Refused(f"--{name} needs 1 to {_MAX_TEXT} characters")
    if not 1 <= limit <= 1_000_000:
        raise Refused(f"--limit is 1 to 1000000, not {limit}")
    with transaction() as tx:
        known = tx.one(statements.CAUSE_KNOWN, cause=text_form(cause))
        if not known or not known["count"]:
            raise _not_found(cause)
        _decide(tx, "approve", cause, by, note, limit)
    return {"cause": cause, "limit": limit}


def replay(cause: str, *, by: str, limit: int | None = None) -> dict[str, list[Any]]:
    """Puts approved rows back to the queue, the oldest first: ``replayed``, ``refused``.

    The approval's row is locked meanwhile, so two who press at once replay once.
    ``limit`` asks for fewer than the approval has left.  Raises NotFound.
    """
    if limit is not None and limit < 1:
        raise Refused(f"--limit is 1 or more, not {limit}")
    for _ in range(3):
        try:
            with transaction() as tx:
                return _replay(tx, text_form(cause), by, limit)
        except DataError:
            continue  # a twin was enqueued between the look and the write: look again
    raise Refused("jobs with the same unique key keep arriving: try again")


def _replay(
    tx: Transaction, cause: str, by: str, limit: int | None
) -> dict[str, list[Any]]:
    approval = tx.one(statements.APPROVAL, cause=cause)
    left = approval["most"] - approval["used"] if approval else 0
    room = left if limit is None else min(left, limit)
    rows = tx.all(
        statements.REPLAYABLE,
        cause=cause,
        approval=approval and approval["id"],
        most=room + LISTED,
    )
    if not rows:
        raise _not_found(cause)
    chosen: list[Row] = []
    refused: list[dict[str, str]] = []
    keys: set[str] = set()
    for row in rows:
        if limit is not None and len(chosen) == limit:
            break
        why = _refusal(row, approval)
        if why is None and row["unique_key"] in keys:
            why = "an older row with the same unique key was chosen"
        if why is None and approval is not None and len(chosen) >= left:
            why = (
                f"over the approved limit of {approval['most']}: approve again for more"
            )
        if why is not None:
            refused.append({"id": row["id"], "why": why})
            continue
        chosen.append(row)
        if row["unique_key"] is not None:
            keys.add(row["unique_key"])
    replayed = _requeue(tx, chosen)
    for row in chosen:
        if row["id"] not in replayed:
            refused.append({"id": row["id"], "why": "it changed meanwhile: try again"})
    if approval is not None and replayed:
        count = len(replayed)
        tx.run(statements.APPROVAL_USE, id=approval["id"], count=count)
        _decide(tx, "replay", cause, by, f"approval {approval['id']}", count)
    return {"replayed": replayed, "refused": refused}


def _refusal(row: Row, approval: Row | None) -> str | None:
    """Why a row may not be replayed now; None = it may."""
    if approval is None:
        return "not approved: use dead-letters approve"
    if row["failed_since"]:
        return "it failed after the approval: approve again"
    job = catalog.BY_NAME.get(row["job"])
    if job is None:
        return f"this package has no job {row['job']!r}"
    if not catalog.runs(row["job"], row["payload_version"]):
        return f"this package does not run version {row['payload_version']} of it"
    most = catalog.policy_of(job).max_replays
    if row["replays"] >= most:
        return f"replayed {row['replays']} times already, max_replays is {most}"
    if row["has_twin"]:
        return "an unfinished job has the same unique key"
    if row["boot_alive"] and _was_ended_by_others(row, job.timeout):
        return "its handler may still run: its worker lives; restart that worker first"
    return None


def _was_ended_by_others(row: Row, timeout: float | None) -> bool:
    """Whether not the handler ended the last attempt, but recovery or the watchdog."""
    if row["outcome"] == TIMED_OUT and timeout is not None:
        return bool(row["took"] >= (timeout + LENIENCY) * 1000)
    return row["outcome"] in (TIMED_OUT, WORKER_LOST)


def _requeue(tx: Transaction, rows: list[Row]) -> list[str]:
    """Writes the replays; the ids that were replayed, the first to start first."""
    batch = [
        {
            "id": row["id"],
            "fence": row["fence"],
            "tries": used(row) + catalog.policy_of(catalog.BY_NAME[row["job"]]).tries,
            "delay": round(n * SPREAD * 1000),
            "bonus": round(BONUS[row["priority"]] * 1000),
        }
        for n, row in enumerate(rows)
    ]
    written = tx.all(statements.REPLAY, batch=json.dumps(batch)) if batch else []
    ids = {row["id"] for row in written}
    return [row["id"] for row in rows if row["id"] in ids]


def _decide(
    tx: Transaction, kind: str, cause: str, by: str, note: str, most: int
) -> None:
    tx.run(
        statements.DECISION_INSERT,
        id=str(uuid.uuid4()),
        kind=kind,
        subject=cause,
        by=text_form(by),
        note=text_form(note),
        most=most,
    )


def _not_found(cause: str) -> NotFound:
    return NotFound(f"no failed job has the cause {cause:.80}: see dead-letters")
