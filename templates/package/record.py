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

from . import admission, catalog, statements
from .admission import Admissions, Candidate
from .books import Books
from .codec import describe_invalid
from .database import Row, Transaction
from .definitions import BONUS
from .endings import Ending, used
from .follow import follow
from .holding import cancel_calls, leave, settle_left
from .retries import cause_of, fault_named, spread

TERMINAL: Final = ("completed", "failed", "cancelled")

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
    throttles: int = 0
    agent: str | None = None


@dataclass(slots=True)
class Claims:
    """What became of the messages of one claim."""

    admitted: dict[str, Claim] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


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
    paid: list[Candidate] = []
    for row in rows:
        id_ = row["id"]
        if row["dispatch"] != wanted[id_]:
            continue
        adopted = row["state"] == "active" and row["worker"] == boot and not mine(id_)
        if row["state"] != "queued" and not adopted:
            continue
        if row["cancel_requested"] and not adopted:
            cancel(tx, id_, row["cancelled_by"] or "")
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
        job = catalog.BY_NAME[row["job"]]
        if adopted:
            claims.admitted[id_] = _claimed(row, row, payloads[id_])
            continue
        if job.agent is not None:
            dumped = payloads[id_].model_dump(mode="json")
            paid.append(Candidate(row, job, dumped))
        admit.append(
            {
                "id": id_,
                "dispatch": row["dispatch"],
                "timeout": None if job.timeout is None else _ms(job.timeout),
            }
        )
    money = Admissions()
    if paid:
        money = admission.admit(tx, paid)
        admit = _admitted(tx, money, admit, {row["id"]: row for row in rows}, refuse)
    if refuse:
        tx.run(statements.REFUSE, batch=json.dumps(refuse))
        claims.refused = [str(r["id"]) for r in refuse]
    if admit:
        by_id = {row["id"]: row for row in rows}
        for new in tx.all(statements.CLAIM_WRITE, boot=boot, batch=json.dumps(admit)):
            id_ = new["id"]
            claims.admitted[id_] = _claimed(by_id[id_], new, payloads[id_])
        if money.reserved:
            taken = claims.admitted.keys() & money.reserved.keys()
            admission.reserve(tx, [money.reserved[id_] for id_ in taken])
    taken = claims.admitted.keys() | set(claims.refused)
    claims.dropped = [id_ for id_ in wanted if id_ not in taken]
    return claims


def _admitted(
    tx: Transaction,
    money: Admissions,
    admit: list[dict[str, object]],
    rows: dict[str, Row],
    refuse: list[dict[str, object]],
) -> list[dict[str, object]]:
    """What may start with its reservation; the other paid jobs wait or have failed."""
    for id_, denial in money.denials.items():
        fail_queued(tx, rows[id_], denial.reason, denial.message)
    for id_, wait in money.waits.items():
        delay = _ms(spread(wait.at_least, 0.5))
        refuse.append(
            {
                "id": id_,
                "dispatch": rows[id_]["dispatch"],
                "reason": wait.reason,
                "delay": delay,
            }
        )
    left: list[dict[str, object]] = []
    for chosen in admit:
        id_ = str(chosen["id"])
        reservation = money.reserved.get(id_)
        if reservation is not None:
            chosen |= {
                "agent": reservation.agent,
                "reserved": reservation.amount,
                "cap_key": reservation.cap_key,
                "windows": json.dumps(reservation.windows),
            }
        elif id_ in money.denials or id_ in money.waits:
            continue
        left.append(chosen)
    return left


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
        throttles=row["throttles"],
        agent=catalog.BY_NAME[row["job"]].agent,
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
    ended: list[tuple[str, str, str, int]] = []
    books = None
    if any(e.paid for e in endings):
        books = Books(tx, [e.id for e in endings if e.paid])
        endings = [leave(books, e) if e.paid else e for e in endings]
    done = [e for e in endings if e.state == "completed"]
    other = [e for e in endings if e.state != "completed"]
    if done:
        batch = [{"id": e.id, "fence": e.fence, "result": e.result} for e in done]
        for row in tx.all(statements.COMPLETE, batch=json.dumps(batch)):
            states[row["id"]] = "completed"
            ended.append((row["id"], row["job"], "completed", row["replays"]))
    if other:
        batch = [_ending(e) for e in other]
        for row in tx.all(statements.END, batch=json.dumps(batch)):
            states[row["id"]] = row["state"]
            ended.append((row["id"], row["job"], row["state"], row["replays"]))
        log = [_attempt(e) for e in other if e.id in states]
        if log:
            tx.run(statements.ATTEMPT_INSERT, batch=json.dumps(log))
    if books is not None:
        settle_left(books, [e for e in endings if e.paid], states)
        books.flush()
    follow(tx, ended)
    return states


def ended_already(tx: Transaction, ending: Ending) -> bool:
    """Whether exactly this ending is in the row: an earlier commit's reply was lost."""
    row = tx.one(statements.ROW, id=ending.id)
    return row is not None and (
        row["fence"] == ending.fence + 1
        and row["attempt"] == ending.attempt
        and row["state"] in (ending.state, "held")
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
        "throttles": e.throttles,
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
    """Fails a waiting row that can never run; False if it moved meanwhile.

    With a call of an earlier attempt still unknown it is held instead.
    """
    fault = fault_named(reason, message)
    held = bool(row["agent"]) and bool(Books(tx, [row["id"]]).pending(row["id"]))
    ended = tx.all(
        statements.FAIL_QUEUED,
        id=row["id"],
        fence=row["fence"],
        state="held" if held else "failed",
        reason=reason,
        error=fault.error,
        cause=cause_of(row["job"], reason),
    )
    follow(tx, [(r["id"], r["job"], r["state"], r["replays"]) for r in ended])
    return bool(ended)


def cancel(tx: Transaction, id_: str, by: str) -> str:
    """Cancels one row: ``cancelled``, ``cancelling``, ``already_finished``, ``not_found``."""
    while True:
        stopped = tx.all(statements.CANCEL_WAITING, id=id_, by=by)
        if stopped:
            if stopped[0]["agent"]:
                cancel_calls(tx, id_)
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
