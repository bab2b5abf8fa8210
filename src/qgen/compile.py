"""A spec in, files and diagnostics out: the whole compiler up to the formatters.

``compile`` is pure: no clock, no network, no process, no disk but qgen's own
templates.  The same spec, target and lock give the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Final

from . import approvals, deploy, lock, outline, overlays, view, waiting
from .diagnostics.value import Diagnostic, has_errors, ordered
from .files import File, Kind
from .front import judge
from .handlers import Stub, handlers_files, stubs
from .made import Made, Recall, Shared, nothing
from .model import Model
from .overlays import Source
from .render import is_sql, render, render_sql
from .spec.load import read

PLAN: Final = "package/QUEUE.md.j2"
JOB: Final = "package/jobs/job.py.j2"
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
    recall: Recall = nothing,
) -> Compilation:
    """Compile a spec.  ``committed`` is the text of the lock beside it, ``approved`` of
    its approvals.

    ``spec`` is its path as diagnostics show it; files name only its last part, so the
    folder changes nothing in them.  ``recall`` saves work and changes nothing: what it
    gives is what would be rendered.
    """
    source = read(data, spec)
    if isinstance(source, tuple):
        return Compilation(source)
    listed = lock.parse(committed)
    model, found = judge(source, target, listed.target)
    if model is None:
        return Compilation(found)
    name = PurePath(spec).name
    book = approvals.read(approved, spec[: -len(name)] + approvals.NAME)
    if isinstance(book, tuple):
        return Compilation(ordered([*found, *book]))
    raises = list(approvals.raises(model, book))
    demands = list(waiting.demands(model, listed.payloads))
    if raises or demands:
        asked = approvals.diagnostics(raises, source, book)
        found = ordered([*found, *asked, *waiting.diagnostics(demands, source)])
    files = files_of(model, name, listed.ejected, Made(source.data, name, recall))
    return Compilation(found, model, files, stubs(model), book)


def files_of(
    model: Model,
    spec: str,
    ejected: frozenset[str] = frozenset(),
    made: Made | None = None,
) -> tuple[File, ...]:
    """Every file of the project, the ones that are the user's included."""
    files = tuple(
        replace(file, kind="ejected") if file.path in ejected else file
        for file in _files(model, spec, made)
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


def _files(model: Model, spec: str, made: Made | None) -> Iterator[File]:
    """All but the plan, which names them."""
    package, shared = view.package_path(model), Shared(model)

    def of(source: Source, path: str) -> File:
        kind: Kind = "append" if source.path.startswith("migrations/") else "managed"
        template = source.template
        if not source.is_rendered:
            return File(path, overlays.engine(template), kind, is_rendered=False)
        if is_sql(template):
            text = partial(render_sql, template, path, spec, model)
            made_of = made.of_sql(template, model, path) if made else ""
        else:
            text = partial(render, template, path, spec, model=shared.model)
            made_of = made.of_shared(template, shared, path) if made else ""
        return _remembered(path, kind, made_of, text, made)

    for source in overlays.package(model.record.dialect, model.target.name):
        if source.template != PLAN:
            yield of(source, f"{package}/{source.path}")
    for job in model.jobs:
        path = f"{package}/jobs/{job.name}.py"
        text = partial(render, JOB, path, spec, model=model, job=job)
        made_of = made.of_job(job, model, path) if made else ""
        yield _remembered(path, "managed", made_of, text, made)
    for source in overlays.suite(model.target.name):
        yield of(source, f"{model.project.tests}/{source.path}")
    yield from handlers_files(model)
    yield from deploy.files(model)


def _remembered(
    path: str, kind: Kind, made_of: str, text: Callable[[], str], made: Made | None
) -> File:
    """The file with its text as it was made before, else rendered."""
    known = made.recall(path, made_of) if made else None
    return File(path, text() if known is None else known, kind, made_of=made_of)
