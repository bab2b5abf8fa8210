"""A long backlog: what Redis holds of it, and how long a FLUSHALL is felt.

The worker runs jobs of SLEEP seconds for a while beside 100,000 queued rows. Redis is
looked at all the time; then it is wiped, and the rows that were published at that
moment are followed until each of them has been claimed or published anew.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import psutil

from bench import report
from bench.stage import Show, Stage, Stuck, open_stage
from bench.systems import System

TITLE = "A long backlog"
ROWS = 100_000
SLEEP = 0.05  # seconds a job takes: all slots are busy and the backlog lasts
CONCURRENCY = 50  # of bench/specs/queue.toml
SPARE = 4  # published beyond the slots of the living workers
SWEEP = 10.0  # seconds between two sweeps, the default
WATCH = 10.0  # seconds

PUBLISHED = (
    "SELECT id, dispatch FROM bench_jobs"
    " WHERE state = 'queued' AND dispatched_at IS NOT NULL"
)
# How many keys, and how many members all sorted sets have together: arq's queues.
SCRIPT = """
local keys, members = redis.call('KEYS', '*'), 0
for _, key in ipairs(keys) do
    if redis.call('TYPE', key)['ok'] == 'zset' then
        members = members + redis.call('ZCARD', key)
    end
end
return #keys .. ' ' .. members
"""


def redis_size(stage: Stage) -> tuple[int, int, int]:
    """Keys, members of queues, bytes."""
    keys, members = map(int, str(stage.redis.command("EVAL", SCRIPT, 0)).split())
    info = str(stage.redis.command("INFO", "memory")).splitlines()
    used = next(line for line in info if line.startswith("used_memory:"))
    return keys, members, int(used.partition(":")[2])


def heal(stage: Stage, show: Show) -> tuple[int, float]:
    """Wipe Redis. How many published rows that took, and until when one was missed.

    The worker is frozen for the moment between reading and wiping, so that no row is
    claimed or published in between.
    """
    worker = psutil.Process(show.worker_pid)
    processes = [worker, *worker.children(recursive=True)]
    for process in processes:
        process.suspend()
    missing = {tuple(map(str, row)) for row in show.query(PUBLISHED)}
    stage.redis.flush()
    for process in processes:
        process.resume()
    taken, began = len(missing), time.monotonic()
    while missing:
        if time.monotonic() > began + 10 * SWEEP:
            raise Stuck(f"{show.system.name}: {len(missing)} rows were not found again")
        missing &= {tuple(map(str, row)) for row in show.query(PUBLISHED)}
        time.sleep(0.02)
    return taken, time.monotonic() - began


def main(systems: Sequence[System]) -> str:
    rows = []
    window = CONCURRENCY + SPARE
    with open_stage() as stage:
        for system in systems:
            print(f"backlog: {system.name}", file=sys.stderr, flush=True)
            with stage.show(system, BENCH_SLEEP=str(SLEEP)) as show:
                _, _, empty = redis_size(stage)
                show.call("enqueue_many", ROWS)
                show.start_worker()
                show.wait_for_ticks(1)
                sizes = []
                end = time.monotonic() + WATCH
                while time.monotonic() < end:
                    sizes.append(redis_size(stage))
                    time.sleep(0.02)
                keys, members, used = (
                    max(column) for column in zip(*sizes, strict=True)
                )
                taken, healed = heal(stage, show)
                waiting = show.unfinished()
            rows.append(
                [
                    system.name,
                    f"{waiting:,}",
                    f"{members} of {window}",
                    str(keys),
                    f"{(used - empty) / 1024:.0f}",
                    str(taken),
                    f"{healed:.1f} of {2 * SWEEP:.0f}",
                ]
            )
    head = ["system", "rows left", "most messages", "most keys", "most KB over empty"]
    head += ["published at FLUSHALL", "healed after s"]
    return f"""\
{ROWS:,} queued rows, jobs of {1000 * SLEEP:.0f} ms, one worker with {CONCURRENCY}
slots, Redis looked at every 20 ms for {WATCH:g} s; the bound is the window, {CONCURRENCY}
slots and {SPARE}. Healed: each row that was published at the FLUSHALL has been claimed or
published anew; the bound is two sweeps.

{report.table(head, rows)}

{report.conditions()}
"""
