"""What build, check and plan share: read the spec, compile, compare with the disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import TypeVar

from .. import __version__, approvals, lock, waiting
from ..compile import Compilation, compile
from ..diagnostics.value import Diagnostic
from ..emit import findings, plan
from ..emit.private import Private
from ..emit.tree import Tree
from ..format import black_or_none, finish, versions
from ..signature import without_header
from .rendered import Rendered
from .stop import Stop
from .tools import tools

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """A compiled spec and where it belongs; ``folder`` leads there from here.

    ``memory`` is what earlier runs left; ``staged`` are the paths whose texts lie ready
    where they were proved, and ``seen`` is the disk as it was then.
    """

    spec: Path
    data: bytes
    compilation: Compilation
    committed: str
    approved: str
    folder: str
    memory: Rendered
    staged: frozenset[str] = frozenset()
    seen: Tree | None = None

    @property
    def root(self) -> Path:
        """The folder that nothing may be written outside of."""
        return self.spec.parent

    @property
    def tree(self) -> Tree:
        """The disk below it."""
        return Tree(self.root)

    @property
    def private(self) -> Private:
        """Its ignored folder."""
        return Private(self.root)

    @property
    def ok(self) -> bool:
        """True when there is something to build, approved or not."""
        return self.compilation.model is not None

    def is_current(self) -> bool:
        """False when another build, or an approval, has run since this was compiled."""
        texts = (
            self.tree.look(name).text or "" for name in (lock.NAME, approvals.NAME)
        )
        return tuple(texts) == (self.committed, self.approved)

    @property
    def targets(self) -> tuple[str | None, str]:
        """That of the last build, None if there is none, and that of this one."""
        assert self.compilation.model is not None
        return lock.parse(self.committed).target, self.compilation.model.target.name

    @property
    def lock(self) -> str:
        """The lock's text after a build."""
        made = self.compilation
        assert made.model is not None
        payloads, target = waiting.payloads(made.model), made.model.target.name
        tools = (f"qgen {__version__}", *versions())
        return lock.text_of(made.files, payloads, target, tools)


def read(spec: str) -> tuple[Path, bytes]:
    """The spec's absolute path and its bytes.  Raises Stop."""
    path = Path(spec).absolute()
    try:
        return path, path.read_bytes()
    except IsADirectoryError:
        raise Stop(f"{spec} is a folder; name the spec in it") from None
    except FileNotFoundError:
        raise Stop(f"{spec} does not exist; qgen init writes one") from None
    except (OSError, ValueError) as error:
        raise Stop(f"{spec} cannot be read: {_reason(error)}") from None


def work(spec: str, target: str | None) -> Work:
    """Compile a spec and prove its Python files.  Raises Stop, and BadOutput on a bug."""
    job = compiled(spec, target)
    with tempfile.TemporaryDirectory(prefix="qgen-") as place:
        return proved(job, Path(place))


def compiled(spec: str, target: str | None, force: bool = False) -> Work:
    """Compile a spec; with ``force`` no row waits that it would have to fit.

    Raises Stop.
    """
    path, data = read(spec)
    tree = Tree(path.parent)
    committed = _read(lambda: tree.look(lock.NAME).text or "")
    approved = _read(lambda: tree.look(approvals.NAME).text or "")
    book = approved.encode("utf-8", "surrogateescape")
    known = lock.without_payloads(committed) if force else committed
    memory = Rendered(path.parent, tools())
    compilation = compile(data, spec, target, known, book, memory.recall)
    folder = spec[: -len(path.name)]
    return Work(path, data, compilation, committed, approved, folder, memory)


def proved(work: Work, place: Path) -> Work:
    """The same, each rendered Python text as black prints it, in an empty folder.

    A text that is on disk already was proved when it was written; what is its owner's
    is not written.
    """
    files, tree = work.compilation.files, Tree(work.root, once=True)
    work = replace(work, seen=tree)
    new = _read(
        lambda: {
            file.path: file.text
            for file in files
            if file.needs_proof
            and not plan.is_owned(tree, file)
            and tree.look(file.path).text != file.text
        }
    )
    if not new:
        return work
    # Where an import comes from is read off the files beside it.  Jobs have none such,
    # and need none: they import relatively, or what every project has installed.
    python = (
        f.path for f in files if f.path.endswith(".py") and "/jobs/" not in f.path
    )
    only_jobs = all("/jobs/" in path for path in new)
    changed = finish(new, place, () if only_jobs else python)
    final = tuple(
        file.with_text(changed[file.path]) if file.path in changed else file
        for file in files
    )
    compilation = replace(work.compilation, files=final)
    staged = frozenset(new.keys() - changed.keys())
    return replace(work, compilation=compilation, staged=staged)


def steps(work: Work) -> tuple[plan.Step, ...]:
    """What a build would do.  Raises Stop where the disk cannot be read."""
    listed = lock.parse(work.committed)
    unfinished = [path for path in work.private.unfinished() if path != approvals.NAME]
    files = work.compilation.files
    tree = work.seen or work.tree
    made = _read(lambda: plan.make(tree, files, listed, unfinished, black_or_none))
    entering = _read(lambda: approvals_step(work))
    return made if entering is None else (*made, entering)


def approvals_step(work: Work) -> plan.Step | None:
    """What a build does to the approvals: it enters the agents that are new.

    None when there are none.  A file in the way (a link, a folder) is refused.
    """
    model, book = work.compilation.model, work.compilation.book
    found = work.tree.look(approvals.NAME)
    if model is None or not approvals.unlisted(model, book):
        return None
    if found.refused:
        return plan.Step(approvals.NAME, plan.State.REFUSED, why=found.refused)
    after = approvals.text_of(approvals.entered(model, book, today()))
    state = plan.State.MISSING if found.text is None else plan.State.CHANGED
    return plan.Step(approvals.NAME, state, found.text, after)


def raised_step(work: Work) -> plan.Step | None:
    """What approving every raise would do to the approvals, to show it; None if there
    is none."""
    model, book = work.compilation.model, work.compilation.book
    raises = list(approvals.raises(model, book)) if model is not None else []
    if model is None or not raises:
        return None
    entries = dict(book.entries)
    for each in raises:
        old = entries[each.agent.name]
        limits = approvals.limits(model, each.agent)
        entries[each.agent.name] = replace(old, limits=limits)
    before = approvals.text_of(book.entries)
    return plan.Step(
        approvals.NAME, plan.State.EDITED, before, approvals.text_of(entries)
    )


def today() -> date:
    """The date of an approval, in UTC."""
    return datetime.now(UTC).date()


def queue_page(work: Work) -> str:
    """The text of QUEUE.md, without its header."""
    pages = (f.text for f in work.compilation.files if f.path.endswith("/QUEUE.md"))
    return without_header(next(pages))


def removed_jobs(work: Work, steps: Iterable[plan.Step]) -> list[str]:
    """The jobs whose modules this build takes away, in the order of their names."""
    made = {_job_of(file.path) for file in work.compilation.files}
    gone = {_job_of(step.path) for step in steps if step.removes} - made
    return sorted(name for name in gone if name)


def _job_of(path: str) -> str:
    """The job whose module a path of the package is, or nothing."""
    module = PurePosixPath(path)
    is_job = module.parent.name == "jobs" and module.suffix == ".py"
    return module.stem if is_job and module.stem != "__init__" else ""


def stub_findings(work: Work, written: Container[str] = ()) -> list[Diagnostic]:
    """The handlers that are still to be written; a module just written has its own."""
    stubs = [stub for stub in work.compilation.stubs if stub.paths[0] not in written]
    memory = work.memory
    found = findings.missing_stubs(work.tree, stubs, memory.whole, memory.met)
    return [findings.stub_finding(stub, work.folder + path) for stub, path in found]


def stop_findings(work: Work) -> list[Diagnostic]:
    """Stop periods of the user's compose file that the spec has outgrown."""
    model = work.compilation.model
    if model is None:
        return []
    return list(findings.stop_findings(work.tree, model.times.stop, work.folder))


def _read(look: Callable[[], T]) -> T:
    """The result, or Stop where the disk cannot be read."""
    try:
        return look()
    except OSError as error:
        raise Stop(f"{error.filename} cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
