"""``qgen build``: everything or nothing, and only what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..emit import findings, plan, write
from ..emit.private import Unwritable
from . import memory, say, work
from .stop import Stop


def run(spec: str, target: str | None, force: bool, **options: Any) -> int:
    """Build a spec.  Writes nothing unless all of it rendered, formatted and linted."""
    output = say.Output(**options)
    with output.stage("compiling"):
        job = work.compiled(spec, target, force)
    if not job.compilation.may_be_written:
        return _refused(job, output)
    try:
        with job.private.alone(lambda: output.note("waiting for another qgen build")):
            if not job.is_current():
                job = work.compiled(spec, target, force)
            if not job.compilation.may_be_written:
                return _refused(job, output)
            with job.private.stage() as stage:
                with output.stage("proving"):
                    job = work.proved(job, stage)
                return _emit(job, force, output, stage)
    except Unwritable as error:
        raise Stop(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Stop(
            f"cannot write {error.filename or job.root}: {error.strerror}; the next"
            " build completes what this one began"
        ) from None


def _refused(job: work.Work, output: say.Output) -> int:
    """Nothing is written: the spec is wrong, or asks for more than is approved."""
    raised = work.raised_step(job)
    if raised is not None:
        output.diff(raised)
    return output.end(job.compilation.diagnostics).code


def _emit(job: work.Work, force: bool, output: say.Output, stage: Path) -> int:
    was, now = job.targets
    if was not in (None, now):
        output.note(f"the target is {now} now, it was {was}")
    if job.private.unfinished():
        output.note("the last build was interrupted; this one completes it")
    steps = work.steps(job)
    stopping = [
        step
        for step in plan.stopping(steps)
        if not force or step.state is plan.State.REFUSED
    ]
    found = list(job.compilation.diagnostics)
    if stopping:
        for step in stopping:
            output.diff(step)
        return output.end([*found, *findings.findings(stopping, job.folder)]).code
    with output.stage("writing"):
        staging = write.Staging(stage, job.staged)
        kept = write.apply(job.tree, job.private, steps, job.lock, staging)
    if kept is not None:
        output.note(f"copies of what was overwritten are in {kept}")
    if gone := work.removed_jobs(job, steps):
        output.note(
            f"the spec has no job {', '.join(gone)} any more: what you wrote for it stays,"
            " and a handlers module that imports its payload will not load; rows that"
            " still wait (python -m … status) run if a job names it in aliases, else they"
            " fail as unknown_job"
        )
    written = {step.path for step in steps if step.state is plan.State.MISSING}
    found += [*work.stub_findings(job, written), *work.stop_findings(job)]
    left = [step for step in steps if step.state is plan.State.KEPT]
    said = output.end(
        [*found, *findings.findings(left, job.folder)], output.summary(steps)
    )
    if not left:
        summary = output.summary([step.done() for step in steps if not step.removes])
        memory.keep(job, said._replace(out=summary) if summary else said)
    return said.code
