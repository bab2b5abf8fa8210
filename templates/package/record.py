"""Every transition of a row, one function each.

A function takes an open transaction and returns what changed; the caller commits.  Each
UPDATE re-tests its own conditions, so a stale list, a lost reply or a second caller can
make a function do nothing, never do it twice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from . import catalog, statements
from .codec import describe_invalid
from .database import Row, Transaction
from .definitions import BONUS
from .retries import cause_of, fault_named

TERMINAL: Final = ("completed", "failed", "cancelled")

# Releases that use no attempt; from then on each uses one.
FREE_RELEASES: Final = 20

# Seconds after which a worker that cannot run a row puts it before another.
UNSUPPORTED_WAIT: Final = 5.0


@dataclass(frozen=True, slots=True)
class Message:
    """What travels through Redis: a row and the number of its dispatch."""

    id: str
    dispatch: int
    job: str = ""
    queue: str = ""
    priority: str = "normal"
    sort_at: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt that this process owns until its fence is passed."""

    id: str
    job: str
    queue: str
    priority: str
    fence: int
    attempt: int
    tries: int
    used: int
    defers: int
    releases: int
    replays: int
    key: str | None
    started_at: int
    payload: BaseModel


@dataclass(slots=True)
class Claims:
    """What became of the messages of one claim."""

    admitted: dict[str, Claim] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends.  ``delay`` is seconds until it may start again."""

    id: str
    fence: int
    attempt: int
    state: str
    outcome: str
    worker: str = ""
    started_at: int = 0
    reason: str | None = None
    result: str | None = None
    error: str | None = None
    cause: str | None = None
    traceback: str | None = None
    delay: float = 0.0
    priority: str = "normal"
    defers: int = 0
    releases: int = 0
    max_elapsed: float | None = None
    stranded: bool = False


def used(row: Row) -> int:
    """Attempts that count: waits grow with it, and at ``tries`` a job is exhausted."""
    free = min(int(row["releases"]), FREE_RELEASES)
    return int(row["attempt"]) - free - int(row["throttles"]) - int(row["defers"])


def claim(
    tx: Transaction,
    messages: Sequence[Message],
    boot: str,
    mine: Callable[[str], bool],
) -> Claims:
    """The one door in: claims what may start, refuses or drops the rest.

    Locks the rows by id, decides, then writes; the write tests everything again.  A row
    that is active for this boot under the same dispatch, and that the process does not
    run (``mine``), was claimed by a call whose answer was lost: it is adopted.
    """
    wanted = {message.id: message.dispatch for message in messages}
    claims = Claims()
    rows = tx.all(statements.CLAIM_READ, ids=json.dumps(sorted(wanted)))
    admit: list[dict[str, object]] = []
    refuse: list[dict[str, object]] = []
    payloads: dict[str, BaseModel] = {}
    for row in rows:
        id_ = row["id"]
        if row["dispatch"] != wanted[id_]:
            continue
        adopted = row["state"] == "active" and row["worker"] == boot and not mine(id_)
        if row["state"] != "queued" and not adopted:
            continue
        if row["cancel_requested"] and not adopted:
            tx.run(statements.CANCEL_WAITING, id=id_, by=row["cancelled_by"] or "")
            continue
        if not catalog.runs(row["job"], row["payload_version"]):
            refuse.append(_refusal(row, "unsupported", UNSUPPORTED_WAIT))
            continue
        if not row["due"]:
            refuse.append(_refusal(row, row["reason"] or "scheduled", 0.0))
            continue
        try:
            kind = catalog.BY_NAME[row["job"]].payload
            payloads[id_] = kind.model_validate_json(row["payload"])
        except (ValidationError, ValueError) as error:
            if not adopted:
                fail_queued(tx, row, "bad_payload", describe_invalid(error))
            continue
        if adopted:
            claims.admitted[id_] = _claimed(row, row, payloads[id_])
        else:
            timeout = catalog.BY_NAME[row["job"]].timeout
            admit.append(
                {
                    "id": id_,
                    "dispatch": row["dispatch"],
                    "timeout": None if timeout is None else _ms(timeout),
                }
            )
    if refuse:
        tx.run(statements.REFUSE, batch=json.dumps(refuse))
        claims.refused = [str(r["id"]) for r in refuse]
    if admit:
        by_id = {row["id"]: row for row in rows}
        for new in tx.all(statements.CLAIM_WRITE, boot=boot, batch=json.dumps(admit)):
            id_ = new["id"]
            claims.admitted[id_] = _claimed(by_id[id_], new, payloads[id_])
    taken = claims.admitted.keys() | set(claims.refused)
    claims.dropped = [id_ for id_ in wanted if id_ not in taken]
    return claims


def _claimed(row: Row, new: Row, payload: BaseModel) -> Claim:
    return Claim(
        id=row["id"],
        job=row["job"],
        queue=row["queue"],
        priority=row["priority"],
        fence=new["fence"],
        attempt=new["attempt"],
        tries=row["tries"],
        used=used(row | {"attempt": new["attempt"]}),
        defers=row["defers"],
        releases=row["releases"],
        replays=row["replays"],
        key=row["request_key"],
        started_at=new["started_at"],
        payload=payload,
    )


def _refusal(row: Row, reason: str, delay: float) -> dict[str, object]:
    spread = delay * random.uniform(0.5, 1.5)
    return {
        "id": row["id"],
        "dispatch": row["dispatch"],
        "reason": reason,
        "delay": _ms(spread),
    }


def finish(tx: Transaction, endings: Iterable[Ending]) -> dict[str, str]:
    """Ends attempts; returns the new state of each row that this call ended.

    A row that is missing from the answer was not this fence's any more, or the same
    ending was committed before and only its reply was lost: ``ended_already`` tells.
    """
    endings = sorted(endings, key=lambda ending: ending.id)
    states: dict[str, str] = {}
    done = [e for e in endings if e.state == "completed"]
    other = [e for e in endings if e.state != "completed"]
    if done:
        batch = [{"id": e.id, "fence": e.fence, "result": e.result} for e in done]
        for row in tx.all(statements.COMPLETE, batch=json.dumps(batch)):
            states[row["id"]] = "completed"
    if other:
        batch = [_ending(e) for e in other]
        for row in tx.all(statements.END, batch=json.dumps(batch)):
            states[row["id"]] = row["state"]
        log = [_attempt(e) for e in other if e.id in states]
        if log:
            tx.run(statements.ATTEMPT_INSERT, batch=json.dumps(log))
    return states


def ended_already(tx: Transaction, ending: Ending) -> bool:
    """Whether exactly this ending is in the row: an earlier commit's reply was lost."""
    row = tx.one(statements.ROW, id=ending.id)
    return row is not None and (
        row["fence"] == ending.fence + 1
        and row["attempt"] == ending.attempt
        and row["state"] == ending.state
    )


def _ending(e: Ending) -> dict[str, Any]:
    return {
        "id": e.id,
        "fence": e.fence,
        "state": e.state,
        "reason": e.reason,
        "error": e.error,
        "cause": e.cause,
        "delay": _ms(e.delay),
        "bonus": _ms(BONUS[e.priority]),
        "defers": e.defers,
        "releases": e.releases,
        "max_elapsed": None if e.max_elapsed is None else _ms(e.max_elapsed),
        "stranded": e.stranded,
    }


def _attempt(e: Ending) -> dict[str, Any]:
    return {
        "job_id": e.id,
        "attempt": e.attempt,
        "worker": e.worker,
        "outcome": e.outcome,
        "started_at": e.started_at,
        "error": e.error,
        "traceback": e.traceback,
    }


def fail_queued(tx: Transaction, row: Row, reason: str, message: str) -> bool:
    """Fails a waiting row that can never run; False if it moved meanwhile."""
    fault = fault_named(reason, message)
    ended = tx.all(
        statements.FAIL_QUEUED,
        id=row["id"],
        fence=row["fence"],
        reason=reason,
        error=fault.error,
        cause=cause_of(row["job"], reason),
    )
    return bool(ended)


def cancel(tx: Transaction, id_: str, by: str) -> str:
    """Cancels one row: ``cancelled``, ``cancelling``, ``already_finished``, ``not_found``."""
    while True:
        if tx.all(statements.CANCEL_WAITING, id=id_, by=by):
            return "cancelled"
        if tx.all(statements.CANCEL_ACTIVE, id=id_, by=by):
            return "cancelling"
        row = tx.one(statements.STATE, id=id_)
        if row is None:
            return "not_found"
        if row["state"] in TERMINAL:
            return "already_finished"
        # it moved between two of the statements: look again


def undispatch(tx: Transaction, messages: Iterable[Message]) -> int:
    """Takes marks back: of what was not published, or what Redis has lost."""
    batch = [{"id": m.id, "dispatch": m.dispatch} for m in messages]
    return len(tx.all(statements.UNDISPATCH, batch=json.dumps(batch))) if batch else 0


def dispatch(
    tx: Transaction, queue: str, target: int, jobs: str, most: int = 1_000_000
) -> list[Message]:
    """Marks the next rows of a queue, up to its window; publish them after the commit."""
    rows = tx.all(statements.DISPATCH, queue=queue, target=target, most=most, jobs=jobs)
    return messages_of(rows)


def messages_of(rows: Iterable[Row]) -> list[Message]:
    """Messages of dispatched rows, in order."""
    return sorted(
        (
            Message(
                id=row["id"],
                dispatch=row["dispatch"],
                job=row["job"],
                queue=row["queue"],
                priority=row["priority"],
                sort_at=row.get("sort_at") or 0,
            )
            for row in rows
        ),
        key=lambda message: message.sort_at,
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
