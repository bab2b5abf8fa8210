"""What becomes of open and unknown calls when their job leaves *active*.

A job completes or fails only when none of its calls is open or unknown.  What would end
it otherwise holds it for a person or for late truth, except where the call may be made
again: its provider knows the same key, or the agent's ``on_unknown`` is ``retry``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from . import catalog
from .books import CANCELLED, PAID_AGAIN, Books
from .database import Row, Transaction
from .endings import Ending, used
from .registry import AGENTS
from .retries import cause_of, fault_named, wait

UNKNOWN = "unknown"


def leave(books: Books, ending: Ending) -> Ending:
    """The ending as its row's calls allow it; the row is locked by the books."""
    row = books.rows.get(ending.id)
    if row is None or row["state"] != "active" or row["fence"] != ending.fence:
        return ending  # refused: the attempt was ended before
    pending = books.pending(ending.id)
    if not pending or ending.state == "cancelled":
        return ending
    if row["cancel_requested"]:
        return replace(ending, state="cancelled", reason=None, result=None)
    may_go_on = ending.state != "failed" and used(row) < row["tries"]
    if may_go_on and all(_again(books, call) for call in pending):
        return replace(_queued(row, ending), max_elapsed=None)
    return _held(row, ending, pending)


def settle_left(
    books: Books, endings: Iterable[Ending], states: Mapping[str, str]
) -> None:
    """Moves the money of the rows that have left active; ``states`` are their new ones."""
    for ending in endings:
        if ending.id not in states:
            continue
        row = books.rows[ending.id]
        row["state"] = states[ending.id]
        books.give_back(row)
        for call in books.pending(ending.id):
            agent = AGENTS.get(call["agent"])
            if row["state"] == "cancelled":
                books.give_up(call, "settled", CANCELLED, ending.error)
            elif row["state"] == "queued" and not books.may_resend(call, agent):
                books.give_up(call, "superseded", PAID_AGAIN, ending.error)
            else:
                books.to_unknown(call, ending.error)


def cancel_calls(tx: Transaction, id_: str) -> None:
    """A waiting or held row was cancelled: its unknown calls are booked at their most."""
    books = Books(tx, [id_])
    for call in books.pending(id_):
        books.give_up(call, "settled", CANCELLED)
    books.flush()


def _again(books: Books, call: Row) -> bool:
    agent = AGENTS.get(call["agent"])
    if agent is None:
        return False
    return books.may_resend(call, agent) or agent.on_unknown == "retry"


def _queued(row: Row, ending: Ending) -> Ending:
    """The same ending as a retry: a handler may have hidden that its call failed."""
    if ending.state == "queued":
        return ending
    job = catalog.BY_NAME.get(row["job"])
    delay = 0.0 if job is None else wait(catalog.policy_of(job), max(1, used(row)))
    return replace(ending, state="queued", reason="retry", result=None, delay=delay)


def _held(row: Row, ending: Ending, pending: list[Row]) -> Ending:
    error = ending.error
    if error is None:
        steps = ", ".join(sorted(call["step"] for call in pending))
        error = fault_named(UNKNOWN, f"may have been billed: {steps}").error
    kind = json.loads(error).get("type", "")
    return replace(
        ending,
        state="held",
        outcome=ending.outcome if ending.outcome != "completed" else UNKNOWN,
        reason=UNKNOWN,
        result=None,
        error=error,
        cause=cause_of(row["job"], UNKNOWN, kind),
        max_elapsed=None,
    )
