"""What was spent, as an operator reads it: windows of agents, calls of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from . import money_statements, views, windows
from .amounts import decimal
from .database import Row, Transaction
from .definitions import Agent
from .registry import AGENTS, PROJECT

CALL_COLUMNS: Final = tuple(
    "step purchase state max_cost cost opened_at settled_at decided_by note".split()
)
CAP_COLUMNS: Final = tuple(
    "agent window of cap spent reserved unknown resets_at".split()
)


def agents(tx: Transaction) -> dict[str, Any]:
    """Every agent's windows of now: cap, spent, reserved, unknown, until when."""
    if not AGENTS:
        return {}
    found = tx.one(money_statements.AGENTS_NOW)
    assert found is not None
    rows = {row["key"]: row for row in tx.all(money_statements.SPEND_NOW)}
    brakes = {
        (brake["agent"], brake["period"]): int(brake["amount"])
        for brake in json.loads(found["brakes"])
    }
    zone = ZoneInfo(PROJECT.spend.timezone)
    now = int(found["now"])
    return {
        name: {"windows": _windows(agent, rows, brakes, now, zone)}
        for name, agent in AGENTS.items()
    }


def calls_of(tx: Transaction, id_: str) -> list[Row]:
    """Every paid call of a job, each with its corrections, oldest first."""
    calls = tx.all(money_statements.CALLS, id=id_)
    corrections = tx.all(money_statements.CORRECTIONS, id=id_)
    for call in calls:
        call["corrections"] = [
            entry for entry in corrections if entry["call_id"] == call["id"]
        ]
    return calls


def _windows(
    agent: Agent,
    rows: dict[str, Row],
    brakes: dict[tuple[str, str], int],
    now: int,
    zone: ZoneInfo,
) -> list[dict[str, Any]]:
    limits = windows.limits(agent, None, now, zone, brakes)
    # Of the values of its field only those that have spent anything are known.
    values = {row["cap_key"] for row in rows.values() if row["agent"] == agent.name}
    for value in sorted(value for value in values if value is not None):
        each = windows.limits(agent, value, now, zone, brakes)
        limits += [limit for limit in each if limit.of is not None]
    return [
        {
            "window": limit.period,
            "of": limit.of,
            "cap": decimal(limit.cap),
            "spent": decimal(rows[limit.key]["spent"] if limit.key in rows else 0),
            "reserved": decimal(
                rows[limit.key]["reserved"] if limit.key in rows else 0
            ),
            "unknown": decimal(rows[limit.key]["unknown"] if limit.key in rows else 0),
            "resets_at": views.instant(limit.ends),
        }
        for limit in limits
    ]


def by_window(agents: Mapping[str, Any]) -> list[Row]:
    """Agents as lines for people: one a window."""
    return [
        {"agent": name, **window}
        for name, agent in agents.items()
        for window in agent["windows"]
    ]
