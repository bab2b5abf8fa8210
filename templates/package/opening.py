"""Opening a step's call: whether it is made, made again, or was answered before.

The one place that decides whether money may be spent: the attempt must still be its
row's, and no earlier call of the step may have been billed, as far as anybody knows.
"""

from __future__ import annotations

import uuid

from . import money_statements
from .amounts import decimal
from .books import PENDING, RESENT, Books, windows_of
from .calls import Opened, Opening, Shut
from .database import Row
from .definitions import Agent
from .registry import AGENTS


def open_call(books: Books, asked: Opening) -> Opened | Shut:
    """Opens a step's call, or tells what its answer was, or why it stays shut."""
    row = books.rows.get(asked.job_id)
    if row is None or row["state"] != "active" or row["fence"] != asked.fence:
        return Shut("over", "the attempt is over")
    if not row["boot_alive"]:
        return Shut("over", "this worker was declared dead")
    if row["late"]:
        return Shut("over", "the attempt is past its deadline")
    if row["cancel_requested"]:
        return Shut("over", "the job is being cancelled")
    agent = AGENTS.get(row["agent"] or "")
    if agent is None:
        return Shut("over", f"this package has no agent {row['agent']}")
    known = [c for c in books.calls[row["id"]] if c["step"] == asked.step]
    for call in known:
        if call["has_kept"] and not call["again"]:
            if _differs(call, asked):
                return _other_request(asked)
            kept = books.tx.one(money_statements.KEPT, id=call["id"])
            return Shut("kept", "", kept["kept"] if kept else None)
    for call in known:
        if call["state"] == "open" and call["fence"] == row["fence"]:
            # Opened by this very order; only the reply was lost.
            return Opened(call["id"], call["provider_key"], int(call["max_cost"]))
        if call["state"] in PENDING:
            if _differs(call, asked):
                return _other_request(asked)
            if not books.may_resend(call, agent):
                text = f"the step {asked.step} may have been billed before"
                return Shut("unknown", text)
            return _resend(books, row, call, asked)
    if any(c["state"] == "settled" and not c["again"] for c in known):
        text = f"the step {asked.step} was billed, and no answer of it was kept"
        return Shut("no_answer", text)
    return _first(books, row, agent, known, asked)


def _first(
    books: Books, row: Row, agent: Agent, known: list[Row], asked: Opening
) -> Opened | Shut:
    left = int(row["reserved"])
    cost = left if asked.max_cost is None else asked.max_cost
    if cost > left or (cost == 0 and asked.max_cost is None):
        return Shut(
            "room",
            f"the step {asked.step} may cost {decimal(cost)}, and {decimal(left)} is "
            "left of what the attempt has reserved: raise the job's max_cost",
        )
    held = sum(int(c["max_cost"]) for c in books.pending(row["id"]))
    if agent.job_cap is not None and row["cost"] + held + cost > agent.job_cap:
        return Shut(
            "room",
            f"the step {asked.step} would take the job above its cap of "
            f"{decimal(agent.job_cap)}",
        )
    books.add_to_row(row, reserved=-cost)
    return _insert(books, row, asked, cost, _purchase(known), windows_of(row))


def _resend(books: Books, row: Row, call: Row, asked: Opening) -> Opened:
    """Another opening of the same key: it takes over what the unknown one holds."""
    amount = int(call["max_cost"])
    if call["state"] == "unknown":
        books.move(call["windows"], unknown=-amount, reserved=amount)
    books.mark(call, "superseded", by=RESENT)
    return _insert(books, row, asked, amount, int(call["purchase"]), call["windows"])


def _insert(
    books: Books, row: Row, asked: Opening, cost: int, purchase: int, windows: list[str]
) -> Opened:
    call: Row = {
        "id": str(uuid.uuid4()),
        "job_id": row["id"],
        "step": asked.step,
        "purchase": purchase,
        "attempt": row["attempt"],
        "fence": row["fence"],
        "worker": row["worker"],
        "agent": row["agent"],
        "provider_key": f"{row['id']}:{asked.step}:{purchase}",
        "request_hash": asked.request_hash,
        "state": "open",
        "max_cost": cost,
        "cost": 0,
        "reported": None,
        "has_kept": False,
        "windows": windows,
        "again": False,
        "decided_by": None,
        "age": 0,
    }
    books.new.append(call)
    books.calls[row["id"]].append(call)
    return Opened(call["id"], call["provider_key"], cost)


def _purchase(known: list[Row]) -> int:
    """The number of a step's next purchase: it rises only where it is paid again."""
    if not known:
        return 1
    newest = max(int(c["purchase"]) for c in known)
    paid_again = any(
        c["again"] or (c["state"] == "superseded" and c["decided_by"] != RESENT)
        for c in known
        if c["purchase"] == newest
    )
    return newest + 1 if paid_again else newest


def _differs(call: Row, asked: Opening) -> bool:
    before = call["request_hash"]
    return before is not None and before != asked.request_hash


def _other_request(asked: Opening) -> Shut:
    return Shut(
        "request",
        f"the step {asked.step} has another request than last time: a step's request "
        "must be made of the payload alone",
    )
