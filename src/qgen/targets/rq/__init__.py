"""rq: a process for each job, on Redis."""

from __future__ import annotations

from typing import Final

from qgen.model import Setting, Times, Worker
from qgen.targets.backend import EVERYWHERE, Ability, Backend

# After the grace: what the supervisor gives a process to stop its job and to write, and
# then 10 s for itself (templates/rq/supervisor.py: FINAL_WRITES and MARGIN).
FINAL_WRITES: Final = 30.0
MARGIN: Final = 10.0


def settings(_times: Times, workers: tuple[Worker, ...]) -> tuple[Setting, ...]:
    """What follows from the spec."""
    slots = sum(worker.concurrency for worker in workers)
    return (
        Setting(
            "rq workers",
            str(slots),
            "the concurrency of each worker: so many rq workers under one parent, each"
            " with one job at a time",
        ),
        Setting(
            "result_ttl, failure_ttl, retry",
            "0, 3600, none",
            "retries and results are the record's; rq's own are off",
        ),
    )


BACKEND: Final = Backend(
    name="rq",
    summary="a process for each job, or one job after the other in the worker itself",
    requirements=("rq>=2.11,<3.1", "redis>=5.0.1,<9"),
    abilities=(
        Ability("async handlers", "emulated", "each runs on a loop of its own"),
        Ability("plain handlers", "native"),
        Ability("several queues in one worker", "native"),
        Ability("priorities", "emulated", "by the record, and by a place in rq's list"),
        *EVERYWHERE,
    ),
    settings=settings,
    after_grace=FINAL_WRITES + MARGIN,
    shares=("forking",),
)
