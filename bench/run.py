"""Enqueue, drain, latency and idle cost of every system, in turns."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psutil

from bench import report, ticks
from bench.child import CHUNK
from bench.stage import Stage, cpu_seconds, open_stage
from bench.systems import System

TITLE = "Throughput and latency"
# With JOBS and the defaults of Size, all cells take about twelve minutes.
REPS = {"arq": 5} | dict.fromkeys(
    ("rq-fork", "rq-simple", "celery-prefork", "celery-threads"), 2
)
JOBS = {
    "arq": 5000,
    "rq-fork": 300,
    "rq-simple": 1000,
    "celery-prefork": 1000,
    "celery-threads": 1000,
}
IDLE = 3.0  # seconds over which the idle cost is taken
SETTLE = 2.0  # seconds a worker is given to start


@dataclass
class Figures:
    """One list entry per round."""

    enqueue: list[float] = field(default_factory=list)
    enqueue_many: list[float] = field(default_factory=list)
    drain: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p90: list[float] = field(default_factory=list)
    idle_worker: list[float] = field(default_factory=list)
    idle_servers: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Size:
    reps: int
    jobs: int  # drained, and enqueued in bulk
    singles: int = 500  # enqueued one by one
    waits: int = 20  # latencies in a round


def drain(stage: Stage, system: System, size: Size, figures: Figures) -> None:
    """Enqueue in bulk, then let one worker loose on the backlog.

    From the first handler's first line to the moment the system's own record has
    nothing left to do, so a finish that is still to be written is paid for.
    """
    with stage.show(system) as show:
        enqueued = show.call("enqueue_many", size.jobs)
        figures.enqueue_many.append(enqueued["per_second"])
        show.start_worker()
        show.wait_for_ticks(size.jobs)
        finished = show.wait_until_finished()
        moments = ticks.read(show.ticks)
        end = finished if system.unfinished else moments[-1]
        figures.drain.append(size.jobs / (end - moments[0]))


def idle(stage: Stage, system: System, size: Size, figures: Figures) -> None:
    """One job at a time on a worker that has nothing to do; then nothing at all."""
    with stage.show(system) as show:
        worker = show.start_worker()
        time.sleep(SETTLE)
        waits = show.call("latency", size.waits)["seconds"]
        figures.p50.append(1000 * statistics.median(waits))
        figures.p90.append(1000 * report.percentile(waits, 0.9))
        backing = [psutil.Process(stage.redis.pid)]
        if system.dialect == "postgresql":
            backing.append(psutil.Process(stage.postgres.pid))
        before = cpu_seconds(worker), cpu_seconds(*backing)
        time.sleep(IDLE)
        after = cpu_seconds(worker), cpu_seconds(*backing)
        figures.idle_worker.append(100 * (after[0] - before[0]) / IDLE)
        figures.idle_servers.append(100 * (after[1] - before[1]) / IDLE)


def measure(systems: Sequence[System], size: Size) -> dict[str, Figures]:
    figures = {system.name: Figures() for system in systems}
    with open_stage() as stage:
        for number in range(size.reps):
            for system in systems:
                now = f"round {number + 1} of {size.reps}: {system.name}"
                print(now, file=sys.stderr, flush=True)
                mine = figures[system.name]
                with stage.show(system) as show:
                    done = show.call("enqueue", size.singles)
                    mine.enqueue.append(done["per_second"])
                drain(stage, system, size, mine)
                if number % 2 == 0:
                    idle(stage, system, size, mine)
    return figures


def quotient(mine: Figures, other: Figures, name: str) -> float:
    top, bottom = (statistics.median(getattr(each, name)) for each in (mine, other))
    return float(top / bottom)


def ratio(mine: Figures, other: Figures | None, name: str) -> str:
    return "" if other is None else f"{quotient(mine, other, name):.2f}"


def verdicts(systems: Sequence[System], figures: dict[str, Figures]) -> Iterator[str]:
    """What the generated worker has to keep, for the pairs that were measured."""
    for system in systems:
        mine, other = figures[system.name], figures.get(system.against or "")
        if not system.against:
            continue
        if other:
            drain, p50 = (quotient(mine, other, name) for name in ("drain", "p50"))
            name = f"{system.name} against {system.against}"
            yield report.verdict(f"{name}, drain", drain, least=system.least)
            yield report.verdict(f"{name}, idle p50", p50, most=1.2)
        if bare := figures.get(system.bare):
            drain = quotient(mine, bare, "drain")
            yield report.verdict(
                f"{system.name} against {system.bare}, drain", drain, least=0.8
            )


def render(systems: Sequence[System], size: Size, figures: dict[str, Figures]) -> str:
    throughput, latency = [], []
    for system in systems:
        mine = figures[system.name]
        other = figures.get(system.against or "")
        throughput.append(
            [
                system.name,
                report.spread(mine.enqueue),
                report.spread(mine.enqueue_many),
                report.spread(mine.drain),
                ratio(mine, other, "drain"),
                ratio(mine, figures.get(system.bare), "drain"),
            ]
        )
        latency.append(
            [
                system.name,
                report.spread(mine.p50, 1),
                report.spread(mine.p90, 1),
                ratio(mine, other, "p50"),
                report.spread(mine.idle_worker, 1),
                report.spread(mine.idle_servers, 1),
            ]
        )
    bounds = "\n".join(verdicts(systems, figures))
    settings = "\n".join(f"- {system.name}: {system.settings}" for system in systems)
    return f"""\
Medians of {size.reps} rounds (least-most). A no-op handler, a payload of about 250
bytes, one client process, one worker. One by one: {size.singles:,} calls, each
awaited. In bulk: {size.jobs:,} jobs, {CHUNK:,} in a call. Drain: a backlog of
{size.jobs:,}, until the system's own record has nothing left to do.

{report.table(
    ["system", "one by one /s", "in bulk /s", "drain jobs/s",
     "x hand-written", "x bare"], throughput)}

Latency from just before the enqueue call to the handler's first line, on an idle
worker, {size.waits} jobs in every other round; then CPU over {IDLE:g} s without any job.

{report.table(
    ["system", "p50 ms", "p90 ms", "p50 x hand-written", "idle worker CPU %",
     "idle servers CPU %"], latency)}

{bounds or "No pair with a bound in this run."}

{settings}
{report.conditions()}
"""


def title(kind: str) -> str:
    return TITLE if kind == "arq" else f"{TITLE}: {kind.replace('-', ', ')}"


def main(systems: Sequence[System], size: Size) -> str:
    return render(systems, size, measure(systems, size))
