"""Handler stubs: a function per job, per reply and on_failed of one, and per on_start and
on_stop of a worker, in the module the worker will import it from.

The file is written once and is the user's then.  For a job added later the file is read
with ``ast``, never imported, and the missing stub is shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from . import view
from .files import File
from .model import Job, Model
from .render import plain


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a worker calls: its reference, its last argument and that one's type.

    All but those that are given ``worker`` are given ``job`` before it.  ``paid`` is the
    job that it handles where that has an agent: its stub shows how to pay.
    """

    reference: str
    use: str
    argument: str
    kind: str
    paid: Job | None = None

    @property
    def of_worker(self) -> bool:
        """True for on_start and on_stop."""
        return self.argument == "worker"

    @property
    def module(self) -> str:
        """Where it is imported from."""
        return self.reference.partition(":")[0]

    @property
    def name(self) -> str:
        """What it is called there."""
        return self.reference.partition(":")[2]


@dataclass(frozen=True, slots=True)
class Stub:
    """A handler that must exist, and where it may stand."""

    of: Function
    package: str
    paths: tuple[str, ...]

    @property
    def use(self) -> str:
        """What it is for, in words."""
        return self.of.use

    @property
    def function(self) -> str:
        """The function's name."""
        return self.of.name

    @property
    def text(self) -> str:
        """A first version, with what its module needs to import."""
        stub = plain("handler.py.j2", functions=(self.of,))
        if self.of.of_worker:
            return f"from {self.package}.hooks import WorkerContext\n\n\n{stub}"
        is_handler = self.of.argument == "payload"
        needs = "from typing import Any\n"
        if is_handler:
            needs = view.import_of_payloads(self.package, [self.of.kind])
        context = f"from {self.package}.runner import JobContext"
        return f"{needs}\n{context}\n\n\n{stub}"


def functions(model: Model) -> tuple[Function, ...]:
    """Every function that the workers call, each once, handlers of jobs first.

    Two jobs may share one; then the first job's is shown.
    """
    jobs = [
        Function(
            job.handler,
            f"job {job.name}",
            "payload",
            job.class_name,
            job if job.agent is not None else None,
        )
        for job in model.jobs
    ]
    replies = [
        Function(job.reply, f"the reply of job {job.name}", "result", "Any")
        for job in model.jobs
        if job.reply is not None
    ]
    alarms = [
        Function(job.on_failed, f"on_failed of job {job.name}", "error", "Any")
        for job in model.jobs
        if job.on_failed is not None
    ]
    hooks = [
        Function(name, f"{key} of worker {worker.name}", "worker", "WorkerContext")
        for worker in model.workers
        for key, name in (("on_start", worker.on_start), ("on_stop", worker.on_stop))
        if name is not None
    ]
    found: dict[str, Function] = {}
    for each in (*jobs, *replies, *alarms, *hooks):
        found.setdefault(each.reference, each)
    return tuple(found.values())


def places(model: Model, module: str) -> tuple[str, ...]:
    """The files an import of ``module`` may find, the one qgen would write first.

    A module is looked for beside the package and beside the spec, as a module and as a
    package.
    """
    path = module.replace(".", "/")
    roots = dict.fromkeys((model.project.output, "."))
    bases = [path if root == "." else f"{root}/{path}" for root in roots]
    return tuple(base + ending for base in bases for ending in (".py", "/__init__.py"))


def stubs(model: Model) -> tuple[Stub, ...]:
    """One per function, in the order of the jobs."""
    package = model.project.package
    return tuple(
        Stub(each, package, places(model, each.module)) for each in functions(model)
    )


def handlers_files(model: Model) -> Iterator[File]:
    """The project's handlers module with a stub of each function in it, if any."""
    first, *others = places(model, model.project.handlers)
    own = [each for each in functions(model) if each.module == model.project.handlers]
    package = model.project.package
    why = f"What the jobs of {package} do: yours to write, qgen never changes it."
    if own:
        text = partial(
            plain,
            "handlers.py.j2",
            package=package,
            functions=sorted(own, key=lambda each: each.name),
            payloads=[each.kind for each in own if each.argument == "payload"],
        )
        yield File(first, cache(text), "once", tuple(others), why=why)


def defined(source: str) -> frozenset[str] | None:
    """What a module binds at its top level; None if that cannot be told."""
    try:
        names = frozenset(_names(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    return None if "*" in names else names


def _names(node: ast.AST) -> Iterator[str]:
    """What a module's statements bind, inside ``if`` and ``try`` too, not in functions."""
    for each in ast.iter_child_nodes(node):
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield each.name
            case ast.alias():
                yield (each.asname or each.name).partition(".")[0]
            case ast.Name(ctx=ast.Store()):
                yield each.id
            case ast.expr():
                pass
            case _:
                yield from _names(each)
