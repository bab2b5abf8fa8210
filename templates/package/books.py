"""The money of some jobs, under the locks of their rows, written back in one flush.

Every change of a paid call and of a reservation is a method here, and each keeps what
``doctor`` checks:

    window.reserved = reserved of its active rows + max_cost of its open calls
    window.unknown  = max_cost of its unknown calls
    window.spent    = cost of its calls        row.cost = cost of the row's calls

Opening moves money from its row to the call, so it touches no window.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable
from typing import Any, Final

from . import money_statements
from .admission import gate_key
from .amounts import decimal
from .calls import Opened, Opening, Report, Shut
from .database import Row, Transaction
from .definitions import BONUS, Agent
from .follow import follow
from .registry import AGENTS
from .retries import cause_of, fault_named

log = logging.getLogger(__name__)

# Who decided what no person did, in `decided_by`.
RESENT: Final = "(sent again with its key)"
PAID_AGAIN: Final = "(on_unknown = retry)"
CANCELLED: Final = "(cancel)"

_PENDING: Final = ("open", "unknown")


class Books:
    """Rows by id and their calls, locked; changed in memory until ``flush``."""

    def __init__(self, tx: Transaction, ids: Iterable[str]) -> None:
        self._tx = tx
        wanted = json.dumps(sorted(set(ids)))
        self.rows = {
            row["id"]: row for row in tx.all(money_statements.LOCK, ids=wanted)
        }
        self.calls: dict[str, list[Row]] = {id_: [] for id_ in self.rows}
        self._by_id: dict[str, Row] = {}
        for call in tx.all(money_statements.CALLS_OF, ids=wanted):
            call["windows"] = json.loads(call["windows"])
            self.calls[call["job_id"]].append(call)
            self._by_id[call["id"]] = call
        self._windows: dict[str, list[int]] = {}
        self._rows: dict[str, list[int]] = {}
        self._changed: dict[str, Row] = {}
        self._new: list[Row] = []
        self._corrections: list[dict[str, Any]] = []
        self._gates: dict[str, int] = {}
        self._ended: list[tuple[Row, bool]] = []

    def pending(self, id_: str) -> list[Row]:
        """The calls of a row that are open or unknown."""
        return [c for c in self.calls.get(id_, ()) if c["state"] in _PENDING]

    # A step's call

    def open(self, asked: Opening) -> Opened | Shut:
        """Opens a step's call, or tells what its answer was, or why it stays shut."""
        row = self.rows.get(asked.job_id)
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
        known = [c for c in self.calls[row["id"]] if c["step"] == asked.step]
        for call in known:
            if call["has_kept"] and not call["again"]:
                if _differs(call, asked):
                    return _other_request(asked)
                kept = self._tx.one(money_statements.KEPT, id=call["id"])
                return Shut("kept", "", kept["kept"] if kept else None)
        for call in known:
            if call["state"] in _PENDING:
                if _differs(call, asked):
                    return _other_request(asked)
                if not self.may_resend(call, agent):
                    text = f"the step {asked.step} may have been billed before"
                    return Shut("unknown", text)
                return self._resend(row, call, asked)
        if any(c["state"] == "settled" and not c["again"] for c in known):
            text = f"the step {asked.step} was billed, and no answer of it was kept"
            return Shut("no_answer", text)
        return self._first(row, agent, known, asked)

    def _first(
        self, row: Row, agent: Agent, known: list[Row], asked: Opening
    ) -> Opened | Shut:
        left = int(row["reserved"])
        cost = left if asked.max_cost is None else asked.max_cost
        if cost > left or (cost == 0 and asked.max_cost is None):
            return Shut(
                "room",
                f"the step {asked.step} may cost {decimal(cost)}, and {decimal(left)} is "
                "left of what the attempt has reserved: raise the job's max_cost",
            )
        held = sum(int(c["max_cost"]) for c in self.pending(row["id"]))
        if agent.job_cap is not None and row["cost"] + held + cost > agent.job_cap:
            return Shut(
                "room",
                f"the step {asked.step} would take the job above its cap of "
                f"{decimal(agent.job_cap)}",
            )
        self._add_row(row, reserved=-cost)
        return self._insert(row, asked, cost, _purchase(known), _windows_of(row))

    def _resend(self, row: Row, call: Row, asked: Opening) -> Opened:
        """Another opening of the same key: it takes over what the unknown one holds."""
        amount = int(call["max_cost"])
        if call["state"] == "unknown":
            self._move(call["windows"], unknown=-amount, reserved=amount)
        self._set(call, "superseded", by=RESENT)
        return self._insert(row, asked, amount, int(call["purchase"]), call["windows"])

    def _insert(
        self, row: Row, asked: Opening, cost: int, purchase: int, windows: list[str]
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
        self._new.append(call)
        self.calls[row["id"]].append(call)
        return Opened(call["id"], call["provider_key"], cost)

    def may_resend(self, call: Row, agent: Agent | None) -> bool:
        """Whether the provider still knows the call's key, so that it bills once."""
        if agent is None or not agent.provider_keys or agent.provider_key_ttl is None:
            return False
        oldest = max(int(c["age"]) for c in self._sharing(call))
        return oldest < agent.provider_key_ttl * 1000

    # What a call turned out to be

    def settle(self, report: Report) -> str:
        """Books what a worker reports, whenever it comes; the call's state after it."""
        call = self._by_id.get(report.call)
        if report.gate is not None:
            key = gate_key(report.agent)
            self._gates[key] = max(self._gates.get(key, 0), round(report.gate * 1000))
        if call is None:
            return "missing"
        row = self.rows[call["job_id"]]
        if call["state"] in _PENDING:
            if report.state == "settled":
                self._book(call, report.cost, report)
            elif self._older_is_unknown(call):
                # This sending was not billed; an earlier one of its key may have been.
                self._to_unknown(call, report.error)
            else:
                self._release(row, call)
                self._set(call, "released", reported=0, error=report.error)
            self._end_hold(row)
        elif call["reported"] is not None:
            pass  # reported before: only the reply was lost
        elif call["decided_by"] == RESENT:
            self._resent_truth(row, call, report)
        else:
            self._late_truth(row, call, report)
        return str(call["state"])

    def _book(self, call: Row, cost: int, report: Report) -> None:
        """From reserved or unknown to spent, in the windows that it was reserved in."""
        others = [c for c in self._sharing(call) if c is not call]
        cost = max([cost, *(int(c["reported"] or 0) for c in others)])
        amount = int(call["max_cost"])
        if cost > amount:
            log.error(
                "job %s: the step %s was to cost %s at most, and cost %s: booked in full",
                call["job_id"],
                call["step"],
                decimal(amount),
                decimal(cost),
            )
        self._spend(call, cost)
        self._set(
            call,
            "settled",
            cost=cost,
            reported=report.cost,
            estimated=report.estimated,
            kept=report.kept,
            error=report.error,
        )

    def _late_truth(self, row: Row, call: Row, report: Report) -> None:
        """Somebody has decided already: the difference is a correction, no job moves."""
        cost = report.cost if report.state == "settled" else 0
        note = f"the worker reported {decimal(cost)} later"
        self.correct(call, cost, by=None, note=note)
        self._changed[call["id"]] |= {"reported": cost, "kept": report.kept}
        call["has_kept"] = call["has_kept"] or report.kept is not None

    def _resent_truth(self, row: Row, call: Row, report: Report) -> None:
        """An earlier opening of a key: all its openings share one charge, the largest."""
        cost = report.cost if report.state == "settled" else 0
        self._set(call, "superseded", by=RESENT, reported=cost)
        newest = [c for c in self._sharing(call) if c["decided_by"] != RESENT][-1]
        if newest["state"] == "unknown" and report.state == "settled":
            self._book(newest, cost, report)
            self._end_hold(row)
        elif newest["state"] not in _PENDING and cost > int(newest["cost"]):
            note = "an earlier sending of the same key was billed more"
            self.correct(newest, cost, by=None, note=note)

    def correct(self, call: Row, cost: int, *, by: str | None, note: str) -> None:
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
            self._move(call["windows"], spent=difference)
            self._add_row(self.rows[call["job_id"]], cost=difference)
            entry = {
                "id": str(uuid.uuid4()),
                "call_id": call["id"],
                "job_id": call["job_id"],
                "agent": call["agent"],
                "amount": difference,
                "decided_by": by,
                "note": note,
            }
            self._corrections.append(entry)
        state = "settled" if call["state"] == "released" and cost else call["state"]
        decided = by if by is not None else call["decided_by"]
        self._set(call, state, cost=cost, by=decided, reported=call["reported"])

    # What people and the engine decide

    def decide(self, call: Row, cost: int | None, by: str, note: str) -> None:
        """A person says what an unknown call has cost; None = nothing was spent."""
        row = self.rows[call["job_id"]]
        if cost is None:
            self._release(row, call)
            self._set(call, "released", by=by, note=note)
        else:
            self._spend(call, cost)
            self._set(call, "settled", cost=cost, by=by, note=note)
        self._end_hold(row)

    def give_up(self, call: Row, state: str, by: str, error: str | None = None) -> None:
        """Books an open or unknown call at its most: nobody waits for the truth."""
        cost = int(call["max_cost"])
        self._spend(call, cost)
        self._set(call, state, cost=cost, by=by, estimated=True, error=error)

    def to_unknown(self, call: Row, error: str | None) -> None:
        """Its attempt ended while it was open."""
        self._to_unknown(call, error)

    def give_back(self, row: Row) -> None:
        """The row has left active, with nothing reserved: its windows get it back."""
        if row["reserved"]:
            self._move(_windows_of(row), reserved=-int(row["reserved"]))
            row["reserved"] = 0

    def buy_again(self, id_: str) -> None:
        """A replay with --pay-again: steps without an answer may be bought once more."""
        for call in self.calls[id_]:
            if call["state"] == "settled" and not call["has_kept"]:
                call["again"] = True
                self._keep(call)

    def _end_hold(self, row: Row) -> None:
        """A held row without a call that is unknown goes on, or fails by a decision."""
        if row["state"] != "held" or self.pending(row["id"]):
            return
        last = [c for c in self.calls[row["id"]] if c["attempt"] == row["attempt"]]
        people = [c for c in last if c["decided_by"] and c["decided_by"][0] != "("]
        row["state"] = "failed" if people else "queued"
        self._ended.append((row, bool(people)))

    # Bookkeeping

    def _spend(self, call: Row, cost: int) -> None:
        amount = int(call["max_cost"])
        if call["state"] == "open":
            self._move(call["windows"], reserved=-amount, spent=cost)
        else:
            self._move(call["windows"], unknown=-amount, spent=cost)
        self._add_row(self.rows[call["job_id"]], cost=cost)

    def _release(self, row: Row, call: Row) -> None:
        amount = int(call["max_cost"])
        if call["state"] == "unknown":
            self._move(call["windows"], unknown=-amount)
        elif (
            row["state"] == "active"
            and row["fence"] == call["fence"]
            and _windows_of(row) == call["windows"]
        ):
            self._add_row(row, reserved=amount)
        else:
            self._move(call["windows"], reserved=-amount)

    def _to_unknown(self, call: Row, error: str | None) -> None:
        if call["state"] == "open":
            amount = int(call["max_cost"])
            self._move(call["windows"], reserved=-amount, unknown=amount)
        self._set(call, "unknown", error=error)

    def _sharing(self, call: Row) -> list[Row]:
        """Every opening of the call's key, oldest first."""
        key = call["provider_key"]
        return [c for c in self.calls[call["job_id"]] if c["provider_key"] == key]

    def _older_is_unknown(self, call: Row) -> bool:
        return any(
            c["decided_by"] == RESENT and c["reported"] is None
            for c in self._sharing(call)
        )

    def _set(
        self,
        call: Row,
        state: str,
        *,
        cost: int = 0,
        reported: int | None = None,
        estimated: bool = False,
        kept: str | None = None,
        error: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> None:
        call |= {
            "state": state,
            "cost": cost,
            "reported": reported,
            "estimated": estimated,
            "has_kept": call["has_kept"] or kept is not None,
            "decided_by": by,
        }
        self._keep(call)
        self._changed[call["id"]] |= {"kept": kept, "error": error, "note": note}

    def _keep(self, call: Row) -> None:
        names = ("id", "state", "cost", "reported", "estimated", "again", "decided_by")
        change = {name: call[name] for name in names}
        before = self._changed.get(
            call["id"], {"kept": None, "error": None, "note": None}
        )
        self._changed[call["id"]] = before | change

    def _move(
        self, keys: Iterable[str], spent: int = 0, reserved: int = 0, unknown: int = 0
    ) -> None:
        for key in keys:
            window = self._windows.setdefault(key, [0, 0, 0])
            window[0] += spent
            window[1] += reserved
            window[2] += unknown

    def _add_row(self, row: Row, cost: int = 0, reserved: int = 0) -> None:
        row["cost"] += cost
        row["reserved"] += reserved
        change = self._rows.setdefault(row["id"], [0, 0])
        change[0] += cost
        change[1] += reserved

    def flush(self) -> None:
        """Writes every change: rows, calls, gates by key, windows by key."""
        tx = self._tx
        rows = [
            {"id": id_, "cost": cost, "reserved": reserved}
            for id_, (cost, reserved) in sorted(self._rows.items())
            if cost or reserved
        ]
        _run(tx, money_statements.ROWS_ADD, rows)
        changed = [{"estimated": False, **c} for c in self._changed.values()]
        _run(tx, money_statements.CALLS_UPDATE, changed)
        new = [c | {"windows": json.dumps(c["windows"])} for c in self._new]
        _run(tx, money_statements.CALLS_INSERT, new)
        _run(tx, money_statements.CORRECTIONS_INSERT, self._corrections)
        for row, by_person in self._ended:
            self._end(row, by_person)
        gates = [{"key": key, "delay": ms} for key, ms in sorted(self._gates.items())]
        _run(tx, money_statements.GATES_CLOSE, gates)
        windows = [
            {"key": key, "spent": spent, "reserved": reserved, "unknown": unknown}
            for key, (spent, reserved, unknown) in sorted(self._windows.items())
            if spent or reserved or unknown
        ]
        if windows:
            keys = json.dumps([window["key"] for window in windows])
            tx.run(money_statements.WINDOWS_LOCK, keys=keys)
            _run(tx, money_statements.WINDOWS_ADD, windows)

    def _end(self, row: Row, by_person: bool) -> None:
        if not by_person:
            bonus = round(BONUS[row["priority"]] * 1000)
            self._tx.run(
                money_statements.RESUME, id=row["id"], fence=row["fence"], bonus=bonus
            )
            return
        unanswered = any(
            c["state"] == "settled" and not c["has_kept"] and not c["again"]
            for c in self.calls[row["id"]]
        )
        reason = "no_answer" if unanswered else "worker_lost"
        self._tx.run(
            money_statements.FAIL_HELD,
            id=row["id"],
            fence=row["fence"],
            reason=reason,
            cause=cause_of(row["job"], reason, "resolved"),
            error=fault_named(reason, "a person resolved its unknown calls").error,
        )
        follow(self._tx, [(row["id"], row["job"], "failed", row["replays"])])


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


def _windows_of(row: Row) -> list[str]:
    found = row["windows"]
    return list(json.loads(found)) if isinstance(found, str) else list(found or ())


def _run(tx: Transaction, sql: str, batch: list[Any]) -> None:
    if batch:
        tx.run(sql, batch=json.dumps(batch))
