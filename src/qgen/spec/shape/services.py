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
    target: Literal["arq", "rq", "celery"] | None = key(
        None,
        "The backend when the command line names none; that of the last build by"
        " default, at first arq.",
    )


Column = Annotated[str, words.COLUMN] | None
StateWord = Annotated[str, words.STATE]
State = StateWord | Annotated[list[StateWord], Field(min_length=1)] | None


class Columns(Shape):
    """Of an adopted table: our name of a column = their name."""

    id: Column = key(None, "Their name of `id`.")
    job: Column = key(None, "Their name of `job`.")
    queue: Column = key(None, "Their name of `queue`.")
    priority: Column = key(None, "Their name of `priority`.")
    state: Column = key(None, "Their name of `state`.")
    reason: Column = key(None, "Their name of `reason`.")
    payload: Column = key(None, "Their name of `payload`.")
    result: Column = key(None, "Their name of `result`.")
    error: Column = key(None, "Their name of `error`.")
    attempt: Column = key(None, "Their name of `attempt`.")
    tries: Column = key(None, "Their name of `tries`.")
    run_at: Column = key(None, "Their name of `run_at`.")
    created_at: Column = key(None, "Their name of `created_at`.")
    started_at: Column = key(None, "Their name of `started_at`.")
    finished_at: Column = key(None, "Their name of `finished_at`.")
    tenant: Column = key(None, "Their name of `tenant`.")
    cost: Column = key(None, "Their name of `cost`.")
    progress: Column = key(None, "Their name of `progress`.")


class States(Shape):
    """Of an adopted table: our state = their word; of a list the first is written."""

    queued: State = key(None, "Their word, or words, for `queued`.")
    active: State = key(None, "Their word, or words, for `active`.")
    held: State = key(None, "Their word, or words, for `held`.")
    completed: State = key(None, "Their word, or words, for `completed`.")
    failed: State = key(None, "Their word, or words, for `failed`.")
    cancelled: State = key(None, "Their word, or words, for `cancelled`.")


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
    columns: Columns = key(Columns(), "Our name of a column = their name.")
    states: States = key(States(), "Our state = their word.")


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
