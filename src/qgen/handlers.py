"""Handler stubs: a function per job, in the module the worker will import it from.

The file is written once and is the user's then.  For a job added later the file is read
with ``ast``, never imported, and the missing stub is shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from . import view
from .files import File
from .model import Job, Model
from .render import plain


@dataclass(frozen=True, slots=True)
class Stub:
    """A handler that must exist, and where it may stand."""

    job: Job
    package: str
    paths: tuple[str, ...]

    @property
    def function(self) -> str:
        """The function's name."""
        return self.job.handler_function

    @property
    def text(self) -> str:
        """A first version, with what its module needs to import."""
        payload = view.import_of_payloads(self.package, [self.job])
        context = f"from {self.package}.runner import JobContext"
        return f"{payload}\n{context}\n\n\n{plain('handler.py.j2', jobs=(self.job,))}"


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
    """One per job, in the order of the jobs."""
    package = model.project.package
    return tuple(
        Stub(job, package, places(model, job.handler_module)) for job in model.jobs
    )


def handlers_files(model: Model) -> Iterator[File]:
    """The project's handlers module with a stub of each job it handles, if any."""
    first, *others = places(model, model.project.handlers)
    jobs = [job for job in model.jobs if job.handler_module == model.project.handlers]
    if jobs:
        text = plain("handlers.py.j2", package=model.project.package, jobs=_once(jobs))
        yield File(first, text, "once", tuple(others))


def _once(jobs: list[Job]) -> list[Job]:
    """One job per function: two jobs may share a handler."""
    by_function = sorted(jobs, key=lambda job: (job.handler_function, job.name))
    groups = groupby(by_function, key=lambda job: job.handler_function)
    return [next(group) for _, group in groups]


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
