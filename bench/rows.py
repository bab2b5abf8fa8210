"""The record that one writes by hand: a row per job, three commits (insert, claim, finish).

It is the reference, so it is written as a good engineer would in an afternoon and no
slower than need be: primary-key updates, connections that stay open. It has no fence,
no batches and (here) no sweep, so it guarantees less than the generated worker does.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from bench import ticks
from bench.systems import Payload, database_url

Row = Sequence[Any]

TABLE = """
CREATE TABLE jobs (
    id {uuid} PRIMARY KEY,
    kind text NOT NULL,
    payload {json} NOT NULL,
    state text NOT NULL DEFAULT 'queued',
    attempts int NOT NULL DEFAULT 0,
    created_at {time} NOT NULL DEFAULT {now},
    queued_at {time} NOT NULL DEFAULT {now},
    started_at {time},
    finished_at {time},
    result {json},
    error text
)"""
INDEX = (
    "CREATE INDEX jobs_open ON jobs (state, queued_at)"
    " WHERE state IN ('queued', 'running')"
)
INSERT = "INSERT INTO jobs (id, kind, payload) VALUES (?, ?, ?)"
CLAIM = (
    "UPDATE jobs SET state = 'running', attempts = attempts + 1, started_at = {now}"
    " WHERE id = ? AND state = 'queued' RETURNING kind, payload, attempts"
)
FINISH = (
    "UPDATE jobs SET state = 'done', finished_at = {now}, result = ?"
    " WHERE id = ? AND state = 'running'"
)
FAIL = (
    "UPDATE jobs SET state = 'failed', finished_at = {now}, error = ?"
    " WHERE id = ? AND state = 'running'"
)
POSTGRESQL = {
    "uuid": "uuid",
    "json": "jsonb",
    "time": "timestamptz",
    "now": "now()",
}
SQLITE = {"uuid": "text", "json": "text", "time": "real", "now": "(julianday())"}
DONE = json.dumps({"ok": True})


@dataclass(frozen=True)
class Statements:
    """What depends on the dialect; placeholders are question marks."""

    table: str
    claim: str
    finish: str
    fail: str


def statements(driver: str) -> Statements:
    words = SQLITE if driver == "sqlite3" else POSTGRESQL
    return Statements(*(sql.format(**words) for sql in (TABLE, CLAIM, FINISH, FAIL)))


def new_rows(payloads: Iterable[Payload]) -> list[tuple[uuid.UUID, str, str]]:
    """What INSERT takes."""
    return [(uuid.uuid4(), "job", json.dumps(payload)) for payload in payloads]


def open_sqlite() -> sqlite3.Connection:
    path = database_url().removeprefix("sqlite:///")
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in ("busy_timeout=10000", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def open_psycopg() -> Any:
    import psycopg

    return psycopg.connect(database_url(), autocommit=True)


class Rows:
    """The record without asyncio; one statement is one transaction.

    PostgreSQL: a connection for each thread. SQLite: one for all and a lock, because
    threads that write to it side by side spend their time asleep. Connections are opened
    at their first use, so a parent that forks has none to leave to its children.
    """

    def __init__(self, driver: str) -> None:
        self._sqlite = driver == "sqlite3"
        self._sql = statements(driver)
        self._open = SimpleNamespace() if self._sqlite else threading.local()
        self._turn = threading.Lock() if self._sqlite else contextlib.nullcontext()

    def setup(self) -> None:
        self._run(self._sql.table)
        self._run(INDEX)

    def insert(self, payloads: Sequence[Payload]) -> list[str]:
        """The ids of the new rows, which one commit brings."""
        rows = new_rows(payloads)
        if len(rows) == 1:
            self._run(INSERT, *rows[0])
        elif self._sqlite:  # by the client, which has no threads
            self._run("BEGIN IMMEDIATE")
            self._connection().executemany(INSERT, [(str(r[0]), *r[1:]) for r in rows])
            self._run("COMMIT")
        else:
            connection = self._connection()
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(INSERT.replace("?", "%s"), rows)
        return [str(row[0]) for row in rows]

    def work(self, text_id: str) -> None:
        """The whole job: claim the row, do it, write how it ended."""
        job_id = uuid.UUID(text_id)
        if not self._run(self._sql.claim, job_id):
            return
        try:
            ticks.work()
        except Exception as error:
            self._run(self._sql.fail, repr(error), job_id)
            return
        self._run(self._sql.finish, DONE, job_id)

    def _connection(self) -> Any:
        if not hasattr(self._open, "connection"):
            self._open.connection = open_sqlite() if self._sqlite else open_psycopg()
        return self._open.connection

    def _run(self, sql: str, *values: Any) -> list[Row]:
        if self._sqlite:
            values = tuple(str(v) if isinstance(v, uuid.UUID) else v for v in values)
        else:
            sql = sql.replace("?", "%s")
        with self._turn:
            done = self._connection().execute(sql, values)
            return list(done.fetchall()) if done.description else []
