"""A spec in, files and diagnostics out: the whole compiler up to the formatters.

``compile`` is pure: no clock, no network, no process, no disk but qgen's own
templates.  The same spec, target and lock give the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Final

from . import approvals, deploy, lock, outline, overlays, view, waiting
from .diagnostics.value import Diagnostic, has_errors, ordered
from .files import File, Kind
from .front import judge
from .handlers import Stub, handlers_files, stubs
from .model import Job, Model
from .overlays import Source
from .render import is_sql, render, render_sql
from .spec.load import read

# The text of a path, made before of what this digest is of; None where it is not known.
Recall = Callable[[str, str], str | None]

PLAN: Final = "package/QUEUE.md.j2"
NOTHING: Final = approvals.Book({})


def nothing(_path: str, _made_of: str) -> None:
    """A recall that knows nothing: everything is rendered."""


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


class Made:
    """What the text of a file is made of, and what was made of it before.

    Known of a job's file (the job's own tables, and those that are no job's) and of SQL
    (names).  What TOML holds has a ``repr`` that tells every two values apart.
    """

    def __init__(self, data: dict[str, Any], spec: str, recall: Recall) -> None:
        self._jobs: dict[str, object] = data["jobs"]
        others = {key: table for key, table in data.items() if key != "jobs"}
        self._spec = sha256(f"{spec}\n".encode())
        self._tables = sha256(f"{spec}\n{others!r}\n".encode())
        self.recall = recall

    def of_job(self, job: Job, model: Model, path: str) -> str:
        """A digest of all that a job's file is made of."""
        own = f"{path}\n{model.target.name}\n{job.name}\n{self._jobs[job.name]!r}"
        digest = self._tables.copy()
        digest.update(own.encode())
        return digest.hexdigest()

    def of_sql(self, template: str, model: Model, path: str) -> str:
        """A digest of all that a file of SQL is made of."""
        digest = self._spec.copy()
        digest.update(f"{path}\n{template}\n{model.record.table}".encode())
        return digest.hexdigest()


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
    package = view.package_path(model)
    for source in overlays.package(model.record.dialect, model.target.name):
        if source.template != PLAN:
            yield _file(source, f"{package}/{source.path}", spec, model, made)
    for job in model.jobs:
        path = f"{package}/jobs/{job.name}.py"
        made_of = made.of_job(job, model, path) if made else ""
        text = made.recall(path, made_of) if made else None
        if text is None:
            text = render("package/jobs/job.py.j2", path, spec, model=model, job=job)
        yield File(path, text, made_of=made_of)
    for source in overlays.suite(model.target.name):
        yield _file(source, f"{model.project.tests}/{source.path}", spec, model)
    yield from handlers_files(model)
    yield from deploy.files(model)


def _file(
    source: Source, path: str, spec: str, model: Model, made: Made | None = None
) -> File:
    kind: Kind = "append" if source.path.startswith("migrations/") else "managed"
    if not source.is_rendered:
        return File(path, overlays.engine(source.template), kind, is_rendered=False)
    if is_sql(source.template):
        made_of = made.of_sql(source.template, model, path) if made else ""
        text = made.recall(path, made_of) if made else None
        if text is None:
            text = render_sql(source.template, path, spec, model)
        return File(path, text, kind, made_of=made_of)
    return File(path, render(source.template, path, spec, model=model), kind)
