"""``qgen check``: are the files on disk what the spec makes?  Writes nothing."""

from __future__ import annotations

from typing import Any

from .. import lock
from ..diagnostics.value import has_errors
from ..emit import findings
from . import memory, say, work


def run(spec: str, target: str | None, **options: Any) -> int:
    """Compare in both directions: missing, changed, edited, reformatted, orphaned."""
    output = say.Output(**options)
    with output.stage("compiling"):
        job = work.work(spec, target)
    if not job.ok:
        return output.end(job.compilation.diagnostics).code
    raised = work.raised_step(job)
    if raised is not None:
        output.diff(raised)
    found = [
        *job.compilation.diagnostics,
        *findings.findings(work.steps(job), job.folder),
    ]
    if lock.parse(job.committed) != lock.parse(job.lock):
        found.append(findings.lock_finding(job.folder + lock.NAME))
    advice = [*work.stub_findings(job), *work.stop_findings(job)]
    said = output.end([*found, *advice])
    if not has_errors(found):
        memory.keep(job, said)
    return said.code
