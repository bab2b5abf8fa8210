"""``qgen plan``: what a build would do, and the plan of the queue.  Writes nothing."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from .. import timetable
from ..emit import findings
from ..emit.plan import State
from . import say, work


def run(spec: str, target: str | None, diff: bool, **options: Any) -> int:
    """Counts first, then paths, the bodies with ``diff``, then QUEUE.md.

    Exit code 1 only for what would stop the build.
    """
    output = say.Output(**options)
    with output.stage("compiling"):
        job = work.work(spec, target)
    model = job.compilation.model
    if model is None:
        return output.end(job.compilation.diagnostics).code
    steps = work.steps(job)
    if output.format == "text":
        counts = Counter(say.PLANNED[step.state] for step in steps)
        print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
        for step in steps:
            if step.state not in (State.SAME, State.OWNED):
                print(f"  {say.PLANNED[step.state]:18} {step.path}")
        for row in timetable.rows(model, datetime.now(UTC)):
            print(f"  next slots of {row.name}: {row.slots}")
        if diff:
            for step in steps:
                print("\n".join(step.diff()), end="\n" if step.before else "")
        print(f"\n{work.queue_page(job)}", end="")
    raised = work.raised_step(job)
    if raised is not None:
        output.diff(raised)
    stopping = [step for step in steps if step.stops]
    found = [*job.compilation.diagnostics, *findings.findings(stopping, job.folder)]
    return output.end(found).code
