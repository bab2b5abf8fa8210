"""Whether a paid job may start now: caps and reservations, under the locks of a claim.

The windows of every job of the batch are locked and read once; then each job is judged
on a running sum, so that ten jobs taken together cannot share the room for two.  What
is missing or unknown counts as spent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zoneinfo import ZoneInfo

from . import money_statements, windows
from .amounts import decimal
from .database import Row, Transaction
from .definitions import Agent, Job
from .registry import AGENTS, PROJECT
from .windows import Limit

# Seconds until a job looks again: room that others have reserved comes back soon, room
# that is spent does not.
BUSY_WAIT: Final = 2.0
FULL_WAIT: Final = 40.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A paid job that would start if its money allows it."""

    row: Row
    job: Job
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now; ``at_least`` seconds, spread over as much again at most by half."""

    reason: str
    at_least: float


@dataclass(frozen=True, slots=True)
class Denial:
    """Never: the reason of failure and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a job takes with it: ``amount`` in each of ``windows``."""

    amount: int
    agent: str
    cap_key: str | None
    windows: tuple[str, ...]


@dataclass(slots=True)
class Admissions:
    """The judgement of a batch, by row id."""

    reserved: dict[str, Reservation] = field(default_factory=dict)
    waits: dict[str, Wait] = field(default_factory=dict)
    denials: dict[str, Denial] = field(default_factory=dict)


@dataclass(slots=True)
class _Sum:
    """One window: what is spent or unknown, and what is reserved, ours included."""

    gone: int
    reserved: int


def admit(tx: Transaction, candidates: Sequence[Candidate]) -> Admissions:
    """Judges a batch; the rows are locked by the caller, in the order of its wishes.

    Locks the windows until the transaction ends.  Nothing is written but window rows
    that did not exist: ``reserve`` books what the claim has really taken.
    """
    now = tx.one(money_statements.AGENTS_NOW)
    assert now is not None
    closed: dict[str, int] = json.loads(now["closed"])
    brakes = {
        (brake["agent"], brake["period"]): int(brake["amount"])
        for brake in json.loads(now["brakes"])
    }
    zone = ZoneInfo(PROJECT.spend.timezone)
    judged = Admissions()
    asked: list[tuple[Candidate, Agent, str | None, list[Limit]]] = []
    for candidate in candidates:
        id_ = candidate.row["id"]
        agent = AGENTS.get(candidate.job.agent or "")
        if agent is None or (not agent.caps and agent.job_cap is None):
            name = candidate.job.agent
            judged.denials[id_] = Denial(
                "denied_no_cap", f"the agent {name} has no cap: none means nothing"
            )
        elif gate_key(agent.name) in closed:
            wait = closed[gate_key(agent.name)] / 1000
            judged.waits[id_] = Wait("throttled", wait)
        else:
            of = value_of(agent, candidate.payload)
            found = windows.limits(agent, of, int(now["now"]), zone, brakes)
            asked.append((candidate, agent, of, found))
    sums = _sums(tx, [limit for *_, found in asked for limit in found])
    calls = _calls(tx, [c.row["id"] for c, *_ in asked if c.row["attempt"]])
    for candidate, agent, of, found in asked:
        id_ = candidate.row["id"]
        held = calls.get(id_, [])
        need = needed(candidate.job, held)
        verdict = judge(candidate, agent, need, held, found, sums, int(now["now"]))
        if isinstance(verdict, Denial):
            judged.denials[id_] = verdict
        elif isinstance(verdict, Wait):
            judged.waits[id_] = verdict
        else:
            keys = tuple(sorted(limit.key for limit in found))
            judged.reserved[id_] = Reservation(need, agent.name, of, keys)
            for key in keys:
                sums[key].reserved += need
    return judged


def judge(
    candidate: Candidate,
    agent: Agent,
    need: int,
    calls: Sequence[Row],
    found: Sequence[Limit],
    sums: dict[str, _Sum],
    now: int,
) -> Wait | Denial | None:
    """One job against every cap that applies; None = it may start."""
    job = candidate.job
    if agent.job_cap is not None:
        unknown = sum(int(c["max_cost"]) for c in calls if c["state"] == "unknown")
        total = int(candidate.row["cost"]) + unknown + need
        if agent.job_cap < job.max_cost or total > agent.job_cap:
            return Denial(
                "denied_cap",
                f"the cap of a job of {agent.name} is {decimal(agent.job_cap)}, and this "
                f"attempt would take it to {decimal(max(total, job.max_cost))}",
            )
    wait: Wait | None = None
    for limit in found:
        if limit.spec < job.max_cost:
            return Denial(
                "denied_cap",
                f"{_named(limit)} is {decimal(limit.spec)}, below the job's max_cost of "
                f"{decimal(job.max_cost)}",
            )
        window = sums[limit.key]
        if need == 0 or window.gone + window.reserved + need <= limit.cap:
            continue
        if window.gone + need <= limit.cap:
            wait = wait or Wait("budget", BUSY_WAIT)
        elif agent.when_capped == "deny":
            return Denial(
                "denied_cap",
                f"{_named(limit)} is {decimal(limit.cap)}; {decimal(window.gone)} is "
                f"spent or unknown, and this attempt needs {decimal(need)}",
            )
        else:
            left = (limit.ends - now) / 1000
            wait = Wait("budget", min(FULL_WAIT, max(left, BUSY_WAIT)))
    return wait


def needed(job: Job, calls: Iterable[Row]) -> int:
    """What an attempt must reserve: its most, without what it has bought already.

    Nor what its unknown calls hold that it will send again under the same key.
    """
    bought = sum(
        int(call["cost"]) if call["state"] == "settled" else int(call["max_cost"])
        for call in calls
        if call["state"] == "unknown"
        or (call["state"] == "settled" and call["has_kept"])
    )
    return max(0, job.max_cost - bought)


def reserve(tx: Transaction, taken: Iterable[Reservation]) -> None:
    """Books reservations into their windows, which ``admit`` has locked."""
    totals: dict[str, int] = {}
    for reservation in taken:
        for key in reservation.windows:
            totals[key] = totals.get(key, 0) + reservation.amount
    batch = [
        {"key": key, "spent": 0, "reserved": amount, "unknown": 0}
        for key, amount in totals.items()
        if amount
    ]
    if batch:
        tx.run(money_statements.WINDOWS_ADD, batch=json.dumps(batch))


def gate_key(agent: str) -> str:
    """The name of an agent's gate."""
    return f"agent:{agent}"


def value_of(agent: Agent, payload: dict[str, Any]) -> str | None:
    """The value whose own caps apply; a field that is missing is the value null."""
    if agent.each_by is None:
        return None
    return windows.cap_key(payload.get(agent.each_by))


def _named(limit: Limit) -> str:
    of = "" if limit.of is None else f" for {limit.of}"
    return f"the {limit.period}'s cap of {limit.agent}{of}"


def _sums(tx: Transaction, found: Sequence[Limit]) -> dict[str, _Sum]:
    if not found:
        return {}
    keys = sorted({limit.key for limit in found})
    read = tx.all(money_statements.WINDOWS_READ, keys=json.dumps(keys))
    if len(read) < len(keys):
        batch = json.dumps(windows.rows(found))
        tx.run(money_statements.WINDOWS_INSERT, batch=batch)
        read = tx.all(money_statements.WINDOWS_READ, keys=json.dumps(keys))
    return {
        row["key"]: _Sum(row["spent"] + row["unknown"], row["reserved"]) for row in read
    }


def _calls(tx: Transaction, ids: Sequence[str]) -> dict[str, list[Row]]:
    calls: dict[str, list[Row]] = {}
    if ids:
        for call in tx.all(money_statements.CALLS_OF, ids=json.dumps(ids)):
            calls.setdefault(call["job_id"], []).append(call)
    return calls
