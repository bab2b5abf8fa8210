"""The tables of a project, its record, Redis, and times they share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from qgen.spec import words
from qgen.spec.shape.base import Shape, key, needed
from qgen.spec.words import Duration, DurationOrNone, Folder, Name, Variable


class Project(Shape):
    """Names and places of what is generated."""

    name: Name = needed("Prefix of Redis keys and, by default, of package and table.")
    package: Annotated[str, words.PACKAGE] | None = key(
        None, "Import name of the generated package; `<name>_queue` by default."
    )
    output: Folder = key("src", "The package goes to `<output>/<package>`.")
    tests: Folder | None = key(
        None, "Folder of the generated pytest suite; `tests/<package>` by default."
    )
    handlers: Annotated[str, words.MODULE] | None = key(
        None, "Module with one function per job; `<name>_handlers` by default."
    )
    target: Literal["arq", "rq", "celery"] = key(
        "arq", "The backend when the command line names none."
    )


Column = Literal[
    "id", "job", "queue", "priority", "state", "reason", "payload", "result", "error",
    "attempt", "tries", "run_at", "created_at", "started_at", "finished_at", "tenant",
    "cost", "progress",
]  # fmt: skip
State = Literal["queued", "active", "held", "completed", "failed", "cancelled"]


class Record(Shape):
    """The database row is the record."""

    dialect: Literal["postgresql", "sqlite"] = key("sqlite", "The database.")
    url_env: Variable = key("DATABASE_URL", "Variable that holds its address.")
    table: Annotated[str, words.TABLE] | None = key(
        None, "The table of the jobs; `<name>_jobs` by default."
    )
    migrations: Literal["sql", "alembic"] = key("sql", "Who applies the migrations.")
    versions: Folder | None = key(None, "Folder of alembic's revision files.")
    existing: bool = key(False, "Adopt a table that is already there.")
    id_type: Literal["uuid", "bigint", "text"] = key("uuid", "Type of its key.")
    columns: dict[
        Column,
        Annotated[str, words.COLUMN],
    ] = key({}, "Our name of a column = their name.")
    states: dict[
        State,
        Annotated[str, words.STATE]
        | Annotated[list[Annotated[str, words.STATE]], Field(min_length=1)],
    ] = key({}, "Our state = their word; of a list the first is written, all are read.")


class Redis(Shape):
    """Redis only runs the work."""

    url_env: Variable = key("REDIS_URL", "Variable that holds its address.")
    tls: bool | None = key(
        None, "Demand or refuse TLS; by default as the address says."
    )
    verify: bool = key(True, "Check the server's certificate.")
    ca_file_env: Variable | None = key(
        None, "Variable that holds the path of a CA file; the system's CAs by default."
    )


class Stall(Shape):
    """How a dead worker process is told from a living one."""

    heartbeat: Duration = key(
        "15s", "How often a process says that it lives, 100ms to 1h."
    )
    after: Duration = key(
        "60s", "Silent this long is dead, 300ms to 1d; its jobs are recovered."
    )
    sweep: Duration = key("10s", "How often recovery looks, 100ms to 1h.")


class Shutdown(Shape):
    """What happens at SIGTERM."""

    grace: Duration = key("30s", "Running jobs may finish this long, 100ms to 1d.")


class Retention(Shape):
    """How long finished rows are kept."""

    completed: DurationOrNone = key("30d", "Rows of completed jobs.")
    failed: DurationOrNone = key("180d", "Rows of failed jobs, the dead letters.")
    cancelled: DurationOrNone = key("30d", "Rows of cancelled jobs.")
