"""Caps as an operator sees them, and the emergency brake.

A brake lowers a cap in the database, for every worker from its next claim on; it
survives deploys and never raises anything: the lower of it and the spec applies.
"""

from __future__ import annotations

import uuid
from typing import Any

from . import money_statements, spending, statements
from .amounts import decimal, millionths
from .codec import text_form
from .database import Transaction
from .definitions import Agent, Period
from .errors import NotFound, Refused
from .operations import transaction
from .registry import AGENTS


def agents() -> dict[str, Any]:
    """Every agent's windows of now: cap, spent, reserved, unknown, until when."""
    with transaction() as tx:
        return spending.agents(tx)


def lower(agent: str, period: Period, amount: str, by: str) -> dict[str, Any]:
    """Puts the brake on a cap of the spec; Refused where that would raise it."""
    known = _capped(agent, period)
    try:
        wanted = millionths(amount)
    except ValueError as error:
        raise Refused(str(error)) from None
    cap = known.caps[period]
    if wanted >= cap:
        raise Refused(
            f"the {period}'s cap of {agent} is {decimal(cap)}: a brake is lower; raise "
            "the cap in the spec and let its owner approve it"
        )
    with transaction() as tx:
        tx.run(
            money_statements.BRAKE_SET,
            agent=agent,
            period=period,
            amount=wanted,
            by=text_form(by),
        )
        _decide(tx, "caps lower", f"{agent} {period}", by, decimal(wanted))
        return spending.agents(tx)


def restore(agent: str, period: Period, by: str) -> dict[str, Any]:
    """Takes the brake off; NotFound where there is none."""
    with transaction() as tx:
        if not tx.all(money_statements.BRAKE_DROP, agent=agent, period=period):
            raise NotFound(f"the {period}'s cap of {agent} is not lowered: see caps")
        _decide(tx, "caps restore", f"{agent} {period}", by, "")
        return spending.agents(tx)


def _capped(name: str, period: Period) -> Agent:
    agent = AGENTS.get(name)
    if agent is None:
        known = ", ".join(sorted(AGENTS)) or "none"
        raise NotFound(f"there is no agent {name!r}; the agents are: {known}")
    if period not in agent.caps:
        known = ", ".join(agent.caps) or "no window"
        raise Refused(f"{name} has no cap of a {period}; it is capped by: {known}")
    return agent


def _decide(tx: Transaction, kind: str, subject: str, by: str, note: str) -> None:
    tx.run(
        statements.DECISION_INSERT,
        id=str(uuid.uuid4()),
        kind=kind,
        subject=subject,
        by=text_form(by),
        note=note,
        most=None,
    )
