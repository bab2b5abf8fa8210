"""What a finished run leaves for the fast path: all that its answer rests on."""

from __future__ import annotations

from .. import approvals, lock, noop
from .say import Said
from .tools import tools
from .work import Work


def keep(work: Work, said: Said) -> None:
    """Remember a run after which the disk is what the spec makes.

    Call it only then: the answer is given again for the same bytes.
    """
    if not work.private.path.is_dir():
        return  # a check of a project that was never built here writes nothing
    files = work.compilation.files
    paths = {work.spec.name, lock.NAME}
    paths |= {file.path for file in files if file.kind in ("managed", "append")}
    absent: set[str] = set()
    if work.tree.at(approvals.NAME).exists():
        paths.add(approvals.NAME)
    else:
        absent.add(approvals.NAME)
    places = {stub.paths for stub in work.compilation.stubs}
    places |= {(f.path, *f.unless) for f in files if f.kind == "once"}
    for candidates in places:
        for path in candidates:
            if work.tree.at(path).exists():
                paths.add(path)
                break
            absent.add(path)
    noop.remember(str(work.root), work.spec.name, paths, absent, tools(), said)
    work.memory.keep(files)
