"""What calls turned out to be: reported, late, decided by a person, given up.

Money truth is booked whenever it comes and whoever brings it.  A decision that was made
before it stands, and the difference is a correction.
"""

from __future__ import annotations

import logging
import uuid

from .admission import gate_key
from .amounts import decimal
from .books import PENDING, RESENT, Books, windows_of
from .calls import Report
from .database import Row

log = logging.getLogger(__name__)


def settle(books: Books, report: Report) -> str:
    """Books what a worker reports, whenever it comes; the call's state after it."""
    call = books.by_id.get(report.call)
    if report.gate is not None:
        key = gate_key(report.agent)
        books.gates[key] = max(books.gates.get(key, 0), round(report.gate * 1000))
    if call is None:
        return "missing"
    row = books.rows[call["job_id"]]
    if call["state"] in PENDING:
        if report.state == "settled":
            _book(books, call, report.cost, report)
        elif _older_is_unknown(books, call):
            # This sending was not billed; an earlier one of its key may have been.
            to_unknown(books, call, report.error)
        else:
            _release(books, row, call)
            books.mark(call, "released", reported=0, error=report.error)
        _end_hold(books, row)
    elif call["reported"] is not None:
        pass  # reported before: only the reply was lost
    elif call["decided_by"] == RESENT:
        _resent_truth(books, row, call, report)
    else:
        _late_truth(books, call, report)
    return str(call["state"])


def _book(books: Books, call: Row, cost: int, report: Report) -> None:
    """From reserved or unknown to spent, in the windows that it was reserved in."""
    resent = [c for c in books.sharing(call) if c["decided_by"] == RESENT]
    cost = max([cost, *(int(c["reported"] or 0) for c in resent)])
    amount = int(call["max_cost"])
    if cost > amount:
        log.error(
            "job %s: the step %s was to cost %s at most, and cost %s: booked in full",
            call["job_id"],
            call["step"],
            decimal(amount),
            decimal(cost),
        )
    _spend(books, call, cost)
    books.mark(
        call,
        "settled",
        cost=cost,
        reported=report.cost,
        estimated=report.estimated,
        kept=report.kept,
        error=report.error,
    )


def _late_truth(books: Books, call: Row, report: Report) -> None:
    """Somebody has decided already: the difference is a correction, no job moves."""
    cost = report.cost if report.state == "settled" else 0
    note = f"the worker reported {decimal(cost)} later"
    correct(books, call, cost, by=None, note=note)
    call["reported"] = cost
    books.changed[call["id"]] |= {"reported": cost, "kept": report.kept}
    call["has_kept"] = call["has_kept"] or report.kept is not None


def _resent_truth(books: Books, row: Row, call: Row, report: Report) -> None:
    """An earlier opening of a key: all its openings share one charge, the largest."""
    cost = report.cost if report.state == "settled" else 0
    books.mark(call, "superseded", by=RESENT, reported=cost)
    newest = [c for c in books.sharing(call) if c["decided_by"] != RESENT][-1]
    if newest["state"] == "unknown" and report.state == "settled":
        _book(books, newest, cost, report)
        _end_hold(books, row)
    elif newest["state"] not in PENDING and cost > int(newest["cost"]):
        note = "an earlier sending of the same key was billed more"
        correct(books, newest, cost, by=None, note=note)


def correct(books: Books, call: Row, cost: int, *, by: str | None, note: str) -> None:
    """Books the difference to what a call cost, as an entry that stays."""
    difference = cost - int(call["cost"])
    if difference:
        log.error(
            "job %s: correction of the step %s by %s: %s",
            call["job_id"],
            call["step"],
            decimal(difference),
            note,
        )
        books.move(call["windows"], spent=difference)
        books.add_to_row(books.rows[call["job_id"]], cost=difference)
        entry = {
            "id": str(uuid.uuid4()),
            "call_id": call["id"],
            "job_id": call["job_id"],
            "agent": call["agent"],
            "amount": difference,
            "decided_by": by,
            "note": note,
        }
        books.corrections.append(entry)
    state = "settled" if call["state"] == "released" and cost else call["state"]
    decided = by if by is not None else call["decided_by"]
    books.mark(call, state, cost=cost, by=decided, reported=call["reported"])


def decide(books: Books, call: Row, cost: int | None, by: str, note: str) -> None:
    """A person says what an unknown call has cost; None = nothing was spent."""
    row = books.rows[call["job_id"]]
    if cost is None:
        _release(books, row, call)
        books.mark(call, "released", by=by, note=note)
    else:
        _spend(books, call, cost)
        books.mark(call, "settled", cost=cost, by=by, note=note)
    _end_hold(books, row)


def give_up(
    books: Books, call: Row, state: str, by: str, error: str | None = None
) -> None:
    """Books an open or unknown call at its most: nobody waits for the truth."""
    cost = int(call["max_cost"])
    _spend(books, call, cost)
    books.mark(call, state, cost=cost, by=by, estimated=True, error=error)


def give_back(books: Books, row: Row) -> None:
    """The row has left active, with nothing reserved: its windows get it back."""
    if row["reserved"]:
        books.move(windows_of(row), reserved=-int(row["reserved"]))
        row["reserved"] = 0


def buy_again(books: Books, id_: str) -> None:
    """A replay with --pay-again: steps without an answer may be bought once more."""
    for call in books.calls[id_]:
        if call["state"] == "settled" and not call["has_kept"]:
            call["again"] = True
            books.touch(call)


def _end_hold(books: Books, row: Row) -> None:
    """A held row without a call that is unknown goes on, or fails by a decision."""
    if row["state"] != "held" or books.pending(row["id"]):
        return
    last = [c for c in books.calls[row["id"]] if c["attempt"] == row["attempt"]]
    people = [c for c in last if c["decided_by"] and c["decided_by"][0] != "("]
    row["state"] = "failed" if people else "queued"
    books.ended.append((row, bool(people)))


def _older_is_unknown(books: Books, call: Row) -> bool:
    return any(
        c["decided_by"] == RESENT and c["reported"] is None for c in books.sharing(call)
    )


def _spend(books: Books, call: Row, cost: int) -> None:
    amount = int(call["max_cost"])
    if call["state"] == "open":
        books.move(call["windows"], reserved=-amount, spent=cost)
    else:
        books.move(call["windows"], unknown=-amount, spent=cost)
    books.add_to_row(books.rows[call["job_id"]], cost=cost)


def _release(books: Books, row: Row, call: Row) -> None:
    amount = int(call["max_cost"])
    if call["state"] == "unknown":
        books.move(call["windows"], unknown=-amount)
    elif (
        row["state"] == "active"
        and row["fence"] == call["fence"]
        and windows_of(row) == call["windows"]
    ):
        books.add_to_row(row, reserved=amount)
    else:
        books.move(call["windows"], reserved=-amount)


def to_unknown(books: Books, call: Row, error: str | None) -> None:
    """Nobody knows whether the call was billed: its money stays in its windows."""
    if call["state"] == "open":
        amount = int(call["max_cost"])
        books.move(call["windows"], reserved=-amount, unknown=amount)
    books.mark(call, "unknown", error=error)
