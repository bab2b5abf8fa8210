"""A spec in, files and diagnostics out: the whole compiler up to the formatters.

``compile`` is pure: no clock, no network, no process, no disk but qgen's own
templates.  The same spec, target and lock give the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from . import approvals, deploy, lock, outline, overlays, view, waiting
from .diagnostics.value import Diagnostic, has_errors, ordered
from .files import File, Kind
from .front import analyse
from .handlers import Stub, handlers_files, stubs
from .model import Model
from .overlays import Source
from .render import is_sql, render, render_sql
from .spec.load import read
from .spec.source import Source as Spec

PLAN: Final = "package/QUEUE.md.j2"
NOTHING: Final = approvals.Book({})


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a spec makes.  ``model`` is None, and there are no files, on an error.

    An unapproved raise, or a payload that waiting rows do not fit, is an error that
    leaves both: what it would make can be shown, but must not be written.  ``book`` is
    what is approved.
    """

    diagnostics: tuple[Diagnostic, ...]
    model: Model | None = None
    files: tuple[File, ...] = ()
    stubs: tuple[Stub, ...] = ()
    book: approvals.Book = NOTHING

    @property
    def may_be_written(self) -> bool:
        """False when nothing was made, or not with somebody's approval."""
        return self.model is not None and not has_errors(self.diagnostics)


def compile(
    data: bytes,
    spec: str,
    target: str | None = None,
    committed: str = "",
    approved: bytes = b"",
) -> Compilation:
    """Compile a spec.  ``committed`` is the text of the lock beside it, ``approved`` of
    its approvals.

    ``spec`` is its path as diagnostics show it; files name only its last part, so the
    folder changes nothing in them.
    """
    listed = lock.parse(committed)
    model, found = analyse(data, spec, target, listed.target)
    if model is None:
        return Compilation(found)
    name = PurePath(spec).name
    book = approvals.read(approved, spec[: -len(name)] + approvals.NAME)
    if isinstance(book, tuple):
        return Compilation(ordered([*found, *book]))
    raises = list(approvals.raises(model, book))
    demands = list(waiting.demands(model, listed.payloads))
    if raises or demands:
        source = read(data, spec)
        assert isinstance(source, Spec)
        asked = approvals.diagnostics(raises, source, book)
        found = ordered([*found, *asked, *waiting.diagnostics(demands, source)])
    files = files_of(model, name, listed.ejected)
    return Compilation(found, model, files, stubs(model), book)


def files_of(
    model: Model, spec: str, ejected: frozenset[str] = frozenset()
) -> tuple[File, ...]:
    """Every file of the project, the ones that are the user's included."""
    files = tuple(
        replace(file, kind="ejected") if file.path in ejected else file
        for file in _files(model, spec)
    )
    path = f"{view.package_path(model)}/QUEUE.md"
    plan = {
        "model": model,
        "source": spec,
        "rows": outline.rows(files, path, model),
        "cases": outline.cases(files),
    }
    kind: Kind = "ejected" if path in ejected else "managed"
    return (*files, File(path, render(PLAN, path, spec, **plan), kind))


def _files(model: Model, spec: str) -> Iterator[File]:
    """All but the plan, which names them."""
    package = view.package_path(model)
    for source in overlays.package(model.record.dialect, model.target.name):
        if source.template != PLAN:
            yield _file(source, f"{package}/{source.path}", spec, model)
    for job in model.jobs:
        path = f"{package}/jobs/{job.name}.py"
        yield File(
            path, render("package/jobs/job.py.j2", path, spec, model=model, job=job)
        )
    for source in overlays.suite(model.target.name):
        yield _file(source, f"{model.project.tests}/{source.path}", spec, model)
    yield from handlers_files(model)
    yield from deploy.files(model)


def _file(source: Source, path: str, spec: str, model: Model) -> File:
    kind: Kind = "append" if source.path.startswith("migrations/") else "managed"
    if not source.is_rendered:
        return File(path, overlays.engine(source.template), kind, is_rendered=False)
    if is_sql(source.template):
        return File(path, render_sql(source.template, path, spec, model), kind)
    return File(path, render(source.template, path, spec, model=model), kind)
