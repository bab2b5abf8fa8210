"""The commands of money: caps and their brake, resolving a call, the doctor."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from . import caps, repair, resolving
from .commands import Answer
from .spending import CAP_COLUMNS, by_window
from .views import table


def show_caps(_options: Namespace) -> Answer:
    """``caps``"""
    return _caps(caps.agents())


def lower_cap(options: Namespace) -> Answer:
    """``caps lower``"""
    return _caps(caps.lower(options.agent, options.window, options.amount, options.by))


def restore_cap(options: Namespace) -> Answer:
    """``caps restore``"""
    return _caps(caps.restore(options.agent, options.window, options.by))


def _caps(agents: dict[str, Any]) -> Answer:
    return Answer({"agents": agents}, table(CAP_COLUMNS, by_window(agents)))


def resolve_call(options: Namespace) -> Answer:
    """``dead-letters resolve``"""
    done = resolving.resolve(
        options.id,
        step=options.step,
        spent=options.spent,
        by=options.by,
        note=options.note,
    )
    return Answer(done, f"{done['id']} {done['state']}, {done['cost']} spent")


def doctor(options: Namespace) -> Answer:
    """``doctor``: 1 if a finding is left."""
    findings = repair.windows(options.repair, options.by)
    left = any(finding["fix"] != "repaired" for finding in findings)
    columns = ("symptom", "likely_cause", "evidence", "fix")
    text = table(columns, findings) if findings else "nothing found"
    return Answer({"findings": findings}, text, 1 if left else 0)
