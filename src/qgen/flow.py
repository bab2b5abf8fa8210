"""The way of a job through its states, as far as a spec uses it: for the plan's diagram.

Every text here is qgen's own: nothing of a spec stands in the diagram.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .literal import Code
from .model import Model

OUTSIDE = "[*]"


@dataclass(frozen=True, slots=True)
class Move:
    """From one state to another; ``why`` are the reasons, in the words of the record."""

    before: str
    after: str
    why: tuple[str, ...]


def moves(model: Model) -> Iterator[Move]:
    """Every move that a job of this spec can make, in the order of a life."""
    pays = any(job.agent is not None for job in model.jobs)
    retries = any(model.policy(job).tries > 1 for job in model.jobs)
    ways_in = ("enqueue", *(("schedule",) if model.schedules else ()))
    yield Move(OUTSIDE, "queued", ways_in)
    yield Move("queued", "active", ("claim",))
    again = ["deferred", "released", "recovered"]
    again += ["throttled"] if pays else []
    yield Move("active", "queued", (*(("retry",) if retries else ()), *again))
    yield Move("active", "completed", ("done",))
    ends = ["exhausted", "never_retry", "timed_out", "worker_lost", "waited_out"]
    ends += ["no_answer"] if pays else []
    yield Move("active", "failed", tuple(ends))
    refused = ["bad_payload", "unknown_job"]
    refused += ["denied_no_cap", "denied_cap"] if pays else []
    late = any(job.start_within is not None for job in model.jobs)
    refused += ["expired"] if late else []
    yield Move("queued", "failed", tuple(refused))
    if pays:
        yield Move("active", "held", ("a call may have been billed",))
        yield Move("held", "queued", ("its answer came late",))
        yield Move("held", "failed", ("resolve",))
        yield Move("held", "cancelled", ("cancel",))
    yield Move("queued", "cancelled", ("cancel",))
    yield Move("active", "cancelled", ("cancel",))
    yield Move("failed", "queued", ("approved replay",))
    yield Move("completed", OUTSIDE, ("retention",))
    yield Move("failed", OUTSIDE, ("retention",))
    yield Move("cancelled", OUTSIDE, ("retention",))


def diagram(model: Model) -> list[Code]:
    """The lines of a Mermaid state diagram."""
    kept = model.retention
    for_ever = {
        state
        for state in ("completed", "failed", "cancelled")
        if getattr(kept, state) is None and model.variable(f"retention.{state}") is None
    }
    return [
        Code(f"{move.before} --> {move.after} : {', '.join(move.why)}")
        for move in moves(model)
        if not (move.after == OUTSIDE and move.before in for_ever)
    ]
