"""The times outside of the package that follow from those of the spec, and their rules.

The stop period, the health check and what a backend's settings say come from here and
nowhere else; ``broken`` holds them against each other and against the spec.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from qgen.model import Model, Setting, Stall, Times, Worker
from qgen.resolve.units import span

# What the package itself may take; its constants are held against these by a test.
LENIENCY: Final = 5.0  # templates/package/runner.py: a handler that is told to stop
FINAL_WRITES: Final = 10.0  # templates/package/process.py
OVERDUE: Final = 15.0  # past its deadline a job is recovered, whoever still runs it
# What a job without a timeout is reckoned with, where a backend must have a figure.
WITHOUT_TIMEOUT: Final = 30 * 86_400.0
START_LIMIT: Final = 60.0  # templates/package/hooks.py, on_start
STOP_LIMIT: Final = 10.0  # templates/package/hooks.py, on_stop
HEALTH_PATIENCE: Final = 5.0  # templates/package/health.py, of each of its looks

# A command of the package: the start of Python and its imports, on a busy machine.
COMMAND: Final = 10.0
# ``health`` looks at the database, at Redis, and twice at what waits.
LOOKS: Final = 4
RETRIES: Final = 3


def times(
    grace: float,
    stall: Stall,
    workers: tuple[Worker, ...],
    timeouts: Iterable[float | None],
    after_grace: float,
) -> Times:
    """All of them; ``after_grace`` is what the backend needs to end after the grace."""
    longest = max(
        (WITHOUT_TIMEOUT if each is None else each for each in timeouts), default=0.0
    )
    starts = any(worker.on_start for worker in workers)
    stops = any(worker.on_stop for worker in workers)
    recovered = stall.after + stall.sweep
    return Times(
        stop=math.ceil(grace + after_grace + (STOP_LIMIT if stops else 0)),
        recovered=recovered,
        acted=max(recovered, longest + OVERDUE + stall.sweep),
        health_interval=max(30.0, math.ceil(2 * stall.heartbeat)),
        health_timeout=COMMAND + LOOKS * HEALTH_PATIENCE,
        health_retries=RETRIES,
        health_start=math.ceil(recovered) + COMMAND + (START_LIMIT if starts else 0),
    )


def stop_setting(times: Times) -> Setting:
    """The stop period as the plan shows it."""
    return Setting(
        "stop_grace_period",
        span(times.stop),
        "shutdown.grace and all that a worker does after it: a supervisor that kills"
        " earlier turns every stop into a crash",
    )


def broken(model: Model) -> Iterator[str]:
    """Each rule that does not hold; none for a model that ``build`` has made."""
    times, stall = model.times, model.stall
    least = model.grace + LENIENCY + FINAL_WRITES
    if any(worker.on_stop for worker in model.workers):
        least += STOP_LIMIT
    if times.stop <= least:
        yield f"the stop period, {span(times.stop)}, must be above {span(least)}"
    if stall.after < 3 * stall.heartbeat:
        yield "stall.after must be three heartbeats or more"
    if times.health_timeout < LOOKS * HEALTH_PATIENCE:
        yield "health may take longer than it is waited for"
    if times.health_interval < stall.heartbeat:
        yield "health is asked more often than workers say that they live"
    if times.health_start < times.recovered:
        yield "a start is counted as unhealthy before recovery has ended"
    for setting in model.target.settings:
        if setting.redelivers is not None and setting.redelivers < times.acted:
            yield (
                f"{setting.name}, {span(setting.redelivers)}, would give a job to another"
                f" worker before recovery has acted, {span(times.acted)}"
            )
