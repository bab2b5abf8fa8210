"""arq: coroutines in one process, on Redis."""

from __future__ import annotations

from typing import Final

from qgen.model import Setting, Times, Worker
from qgen.targets.backend import EVERYWHERE, Ability, Backend

# After the grace: 5 s in which handlers may stop, 10 s for what is still to be written.
FINAL_WRITES: Final = 15.0
MARGIN: Final = 10.0


def settings(_times: Times, workers: tuple[Worker, ...]) -> tuple[Setting, ...]:
    """What follows from the spec."""
    slots = sum(worker.concurrency for worker in workers)
    return (
        Setting(
            "slots",
            str(slots),
            "the concurrency of one process of each worker; Redis holds a few messages"
            " more than there are slots, the backlog stays in the database",
        ),
        Setting(
            "max_tries, keep_result",
            "1, 0",
            "retries and results are the record's; arq's own are off",
        ),
    )


BACKEND: Final = Backend(
    name="arq",
    summary="coroutines in one process; only maintained, no longer developed",
    # arq needs a redis client below 6; the generated broker speaks to it directly.
    requirements=("arq>=0.26,<0.29", "redis>=5,<6"),
    abilities=(
        Ability("async handlers", "native"),
        Ability("plain handlers", "emulated", "each runs in a thread"),
        Ability("several queues in one worker", "emulated", "one loop takes from all"),
        Ability("priorities", "emulated", "by the record, and by arq's score"),
        *EVERYWHERE,
    ),
    settings=settings,
    after_grace=FINAL_WRITES + MARGIN,
)
