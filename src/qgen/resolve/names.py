"""Names that Python, a disk, SQL or the generated code keep, and folders that meet."""

from __future__ import annotations

from collections.abc import Iterator

from qgen.diagnostics.catalogue import names as codes
from qgen.resolve.draft import Draft
from qgen.resolve.paths import below, clean, meet
from qgen.spec import names
from qgen.spec.finding import Finding
from qgen.spec.spans import Path


def check(draft: Draft) -> Iterator[Finding]:
    """Jobs, fields, modules, the table, the places."""
    for job, given in draft.spec.jobs.items():
        yield from of_job(job)
        for field in given.payload:
            yield from of_field(("jobs", job, "payload", field), field)
    yield from references(draft)
    yield from places(draft)


def of_job(job: str) -> Iterator[Finding]:
    """A job is a module, a function and a class."""
    at: Path = ("jobs", job)
    write = f'choose another name; wire = "{job}" keeps this one in rows'
    if names.is_keyword(job):
        message = f"`{job}` is a word of Python, so no module can be called so."
        yield Finding(codes.KEYWORD, at, message, write, at="key")
    elif job in names.DEVICES:
        message = f"`{job}.py` is a device on Windows, not a file."
        yield Finding(codes.DEVICE, at, message, write, at="key")
    elif names.class_name(job) in names.CLASSES or job in names.JOB_MODULES:
        hidden = job if job in names.JOB_MODULES else names.class_name(job)
        message = f"the job `{job}` would hide the name `{hidden}`."
        yield Finding(codes.RESERVED, at, message, write, at="key")


def of_field(at: Path, field: str) -> Iterator[Finding]:
    """A field is an attribute of a pydantic class."""
    write = f"choose another name, such as `{field}_` or a longer one"
    if names.is_keyword(field):
        message = f"`{field}` is a word of Python, so no field can be called so."
        yield Finding(codes.KEYWORD, at, message, write, at="key")
    elif field in names.BASE_MODEL or field in names.PAYLOAD_MODULE_NAMES:
        message = f"the field `{field}` would hide a name that its class needs."
        yield Finding(codes.RESERVED, at, message, write, at="key")


def references(draft: Draft) -> Iterator[Finding]:
    """``support.class:run`` is no import."""
    given: list[tuple[Path, str | None]] = [
        (("project", "handlers"), draft.spec.project.handlers),
        (("project", "package"), draft.spec.project.package),
    ]
    for name, worker in draft.spec.workers.items():
        given += [
            (("workers", name, "on_start"), worker.on_start),
            (("workers", name, "on_stop"), worker.on_stop),
        ]
    for name, job in draft.jobs.items():
        for key in ("handler", "reply", "on_failed"):
            given.append((draft.at(name, key), getattr(job, key)))
    for path, reference in given:
        for part in (reference or "").replace(":", ".").split("."):
            if names.is_keyword(part):
                message = f"`{part}` is a word of Python, so this cannot be imported."
                write = "name another module or function"
                yield Finding(codes.KEYWORD, path, message, write)


def places(draft: Draft) -> Iterator[Finding]:
    """The package, the handlers, the tests and the table."""
    project, record = draft.spec.project, draft.spec.record
    package = project.package or f"{project.name}_queue"
    handlers = project.handlers or f"{project.name}_handlers"
    where: Path = ("project", "package" if project.package else "name")
    yield from taken(where, package)
    if project.handlers:
        yield from taken(("project", "handlers"), handlers.partition(".")[0])
    if handlers.partition(".")[0] == package:
        yield Finding(
            codes.PACKAGE_TAKEN,
            ("project", "handlers"),
            f"the handlers would be inside the generated package `{package}`.",
            "name a module of your own, outside of it",
            also=((where, "the package"),),
            unless=(("project", "package"),),
        )
    folder = below(project.output, package)
    tests = clean(project.tests or f"tests/{package}")
    if meet(folder, tests):
        yield Finding(
            codes.PATHS_MEET,
            ("project", "tests" if project.tests else "output"),
            f"the tests ({tests}) and the package ({folder}) are in each other's way.",
            "write a folder apart from the package",
            unless=(("project",),),
        )
    for key in ("output", "tests"):
        for part in (getattr(project, key) or "").split("/"):
            if part.partition(".")[0].lower() in names.DEVICES:
                message = f"`{part}` is a device on Windows, not a folder."
                write = "choose another folder"
                yield Finding(codes.DEVICE, ("project", key), message, write)
    table = record.table or f"{project.name}_jobs"
    if table in names.SQL_WORDS:
        message = f"`{table}` is a word of SQL."
        write = f'write another name, such as "{table}_jobs"'
        yield Finding(codes.SQL_WORD, ("record", "table"), message, write)


def taken(at: Path, module: str) -> Iterator[Finding]:
    """A top-level module that already means something."""
    if module in names.STANDARD_LIBRARY or module in names.PACKAGES:
        message = f"a package `{module}` would hide the one that is already called so."
        yield Finding(codes.PACKAGE_TAKEN, at, message, "choose another name")
    elif module in names.DEVICES:
        message = f"`{module}` is a device on Windows, not a folder."
        yield Finding(codes.DEVICE, at, message, "choose another name")
