"""celery: a pool of processes or threads, on Redis."""

from __future__ import annotations

from typing import Final

from qgen.model import Setting, Times, Worker
from qgen.resolve.units import span
from qgen.targets.backend import EVERYWHERE, Ability, Backend

# After the grace: 5 s in which handlers may stop, 10 s for what is still to be written,
# and then 10 s for celery's own end (templates/celery/life.py: HANGS).
FINAL_WRITES: Final = 15.0
MARGIN: Final = 20.0

# After recovery has acted, until celery might put a message back (templates/celery/app.py).
LATER: Final = 600.0


def settings(times: Times, workers: tuple[Worker, ...]) -> tuple[Setting, ...]:
    """What follows from the spec."""
    slots = sum(worker.concurrency for worker in workers)
    return (
        Setting(
            "worker_concurrency",
            str(slots),
            "the concurrency of each worker: so many processes or threads of its pool,"
            " each with one job at a time",
        ),
        Setting(
            "worker_prefetch_multiplier, worker_disable_prefetch",
            "1, True",
            "a worker takes what it can begin; the backlog stays in the database",
        ),
        Setting(
            "visibility_timeout",
            span(times.acted + LATER),
            "celery keeps nothing of what a worker took; if it did, it would put it"
            " back after recovery has acted; read back from the transport at start",
            redelivers=times.acted + LATER,
        ),
        Setting(
            "task_ignore_result, task_acks_late",
            "True, False",
            "retries and results are the record's; celery's own are off",
        ),
    )


BACKEND: Final = Backend(
    name="celery",
    summary="a pool of processes (prefork) or of threads",
    # kombu's extra names the redis client that fits it.
    requirements=("celery[redis]>=5.5,<5.8",),
    abilities=(
        Ability(
            "async handlers", "emulated", "on an event loop; celery awaits nothing"
        ),
        Ability("plain handlers", "native"),
        Ability("several queues in one worker", "native"),
        Ability("priorities", "emulated", "by the record, and by a list for high ones"),
        Ability("RabbitMQ, SQS and other transports", "refused", "use Redis"),
        Ability("pools gevent and eventlet", "refused", "use prefork or threads"),
        *EVERYWHERE,
    ),
    settings=settings,
    after_grace=FINAL_WRITES + MARGIN,
    shares=("forking",),
)
