"""A spec in, files and diagnostics out: the whole compiler up to the formatters.

``compile`` is pure: no clock, no network, no process, no disk but qgen's own
templates.  The same spec, target and lock give the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from . import lock, overlays
from .diagnostics.value import Diagnostic
from .files import File, Kind
from .front import analyse
from .handlers import Stub, handlers_files, stubs
from .model import Model
from .overlays import Source
from .render import is_sql, render, render_sql


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a spec makes.  ``model`` is None, and there are no files, on an error."""

    diagnostics: tuple[Diagnostic, ...]
    model: Model | None = None
    files: tuple[File, ...] = ()
    stubs: tuple[Stub, ...] = ()


def compile(
    data: bytes, spec: str, target: str | None = None, committed: str = ""
) -> Compilation:
    """Compile a spec named ``spec``; ``committed`` is the text of the lock beside it."""
    model, found = analyse(data, spec, target)
    if model is None:
        return Compilation(found)
    ejected = lock.parse(committed).ejected
    files = tuple(
        replace(file, kind="ejected") if file.path in ejected else file
        for file in files_of(model, spec)
    )
    return Compilation(found, model, files, stubs(model))


def files_of(model: Model, spec: str) -> Iterator[File]:
    """Every file of the project, the ones that are the user's included."""
    package = _below(model.project.output, model.project.package)
    for source in overlays.package(model.record.dialect, model.target.name):
        path = f"{package}/{source.path}"
        yield _file(source, path, spec, model)
    for job in model.jobs:
        path = f"{package}/jobs/{job.name}.py"
        yield File(path, render("package/jobs/job.py.j2", path, spec, job=job))
    for source in overlays.suite():
        path = f"{model.project.tests}/{source.path}"
        yield _file(source, path, spec, model)
    yield from handlers_files(model)


def _file(source: Source, path: str, spec: str, model: Model) -> File:
    kind: Kind = "append" if source.path.startswith("migrations/") else "managed"
    if not source.is_rendered:
        return File(path, overlays.engine(source.template), kind, is_rendered=False)
    if is_sql(source.template):
        return File(path, render_sql(source.template, path, spec, model), kind)
    return File(path, render(source.template, path, spec, model=model), kind)


def _below(folder: str, path: str) -> str:
    return path if folder == "." else f"{folder}/{path}"
