"""Does the worker grow? Its resident memory after 2,000 and after 20,000 jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from bench import report
from bench.stage import memory, open_stage
from bench.systems import SYSTEMS, System

TITLE = "Memory"
FEW, MANY = 2_000, 20_000
SETTLE = 2.0  # seconds of rest before memory is read


def main(systems: Sequence[System]) -> str:
    rows, verdicts = [], []
    with open_stage() as stage:
        for system in [SYSTEMS[0], *systems]:
            print(f"memory: {system.name}", file=sys.stderr, flush=True)
            with stage.show(system) as show:
                worker = show.start_worker()
                sizes, done = [], 0
                for target in (FEW, MANY):
                    while done < target:
                        show.call("enqueue_many", 1000)
                        done += 1000
                    show.wait_for_ticks(target)
                    show.wait_until_finished()
                    time.sleep(SETTLE)
                    sizes.append(memory(worker))
                few, many = sizes
                megabytes = [f"{size / 2**20:.1f}" for size in sizes]
                if system.dialect:
                    verdicts.append(report.verdict(system.name, many / few, most=1.1))
                rows.append([system.name, *megabytes, f"{many / few:.3f}"])
    bounds = "\n".join(verdicts)
    head = ["system", f"MB after {FEW:,}", f"MB after {MANY:,}", "x"]
    return f"""\
Resident memory of one worker process and all below it, idle again for {SETTLE:g} s.

{report.table(head, rows)}

{bounds}

{report.conditions()}
"""
