"""Jobs that follow the end of another: ``<job>.reply`` and ``<job>.on_failed``.

Ordinary unpaid jobs with the policy ``default``, inserted in the transaction that ends
the row, so they are never forgotten; their id is made of the row's id and its number
of replays, so they are never made twice.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from . import money_statements
from .database import Transaction
from .definitions import BONUS, Job
from .jobs import JOBS
from .registry import RETRIES

REPLY: Final = "reply"
ON_FAILED: Final = "on_failed"


class Ended(BaseModel):
    """The payload of both: the job that ended, and its result or its error."""

    model_config = ConfigDict(frozen=True)

    id: str
    job: str
    result: Any = None
    error: Any = None
    reason: str | None = None


def _followers() -> dict[tuple[str, str], Job]:
    """Who follows which job, by the job's name (or former name) and its new state."""
    found: dict[tuple[str, str], Job] = {}
    for job in JOBS:
        for handler, suffix, state in (
            (job.reply, REPLY, "completed"),
            (job.on_failed, ON_FAILED, "failed"),
        ):
            if handler is None:
                continue
            follower = Job(
                name=f"{job.name}.{suffix}",
                payload=Ended,
                handler=handler,
                queue=job.queue,
                retry="default",
                timeout=job.timeout,
                priority=job.priority,
                aliases=tuple(f"{alias}.{suffix}" for alias in job.aliases),
            )
            for name in (job.name, *job.aliases):
                found[name, state] = follower
    return found


FOLLOWERS: Final = _followers()


def follow(tx: Transaction, ended: Iterable[tuple[str, str, str, int]]) -> None:
    """Inserts what follows rows that have just ended: (id, job, state, replays) each."""
    batch = []
    for id_, job, state, replays in ended:
        follower = FOLLOWERS.get((job, state))
        if follower is not None:
            batch.append(
                {
                    "id": _follower_id(id_, state, replays),
                    "of": id_,
                    "job": follower.name,
                    "bonus": round(BONUS[follower.priority] * 1000),
                    "tries": RETRIES[follower.retry].tries,
                }
            )
    if batch:
        tx.run(money_statements.FOLLOW, batch=json.dumps(batch))


def argument_of(payload: object) -> object:
    """What a follower's handler is given beside its ``job``."""
    if not isinstance(payload, Ended):
        return payload
    return payload.error if payload.error is not None else payload.result


def _follower_id(id_: str, state: str, replays: int) -> str:
    """A UUIDv7 with the row's own time: the same for the same end, whoever writes it."""
    digest = hashlib.sha256(f"{id_}:{state}:{replays}".encode()).digest()
    value = int.from_bytes(digest[:16], "big") & ((1 << 80) - 1)
    value |= uuid.UUID(id_).int >> 80 << 80
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))
