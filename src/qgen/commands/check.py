"""``qgen check``: are the files on disk what the spec makes?  Writes nothing."""

from __future__ import annotations

from typing import Any

from .. import lock
from ..emit import findings
from . import say, work


def run(spec: str, target: str | None, **options: Any) -> int:
    """Compare in both directions: missing, changed, edited, reformatted, orphaned."""
    output = say.Output(**options)
    job = work.work(spec, target)
    if not job.ok:
        return output.end(job.compilation.diagnostics)
    found = [*job.compilation.diagnostics, *findings.findings(work.steps(job))]
    if lock.paths_of(job.committed) != lock.paths_of(job.lock):
        found.append(findings.lock_finding(lock.NAME))
    return output.end([*found, *work.stub_findings(job)])
