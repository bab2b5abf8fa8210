"""The record's database: SQLite.

One ``Database`` is one connection, used by one thread at a time, opened at first use
and reopened after it broke.  Every transaction is ``BEGIN IMMEDIATE``: a deferred one
that reads and then writes fails with SQLITE_BUSY_SNAPSHOT, whatever the timeout.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from .errors import SetupError, Unavailable

SCHEMES: Final = ("sqlite",)
DIALECT: Final = "sqlite"

Row = dict[str, Any]

# What a statement raises that would be raised again: a constraint or a bad value.
DataError: Final = (sqlite3.IntegrityError, sqlite3.DataError)


class Transaction:
    """Runs statements; made by ``Database.transaction`` or over a caller's connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, **params: object) -> list[Row]:
        """Every row of the answer (a partly read RETURNING keeps the write lock)."""
        cursor = self._connection.execute(sql, params)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def one(self, sql: str, **params: object) -> Row | None:
        """The first row of the answer, or None."""
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def run(self, sql: str, **params: object) -> None:
        """Runs a statement whose answer is not needed."""
        self._connection.execute(sql, params).fetchall()


class Database:
    """One connection to the record.

    ``patience`` is how many seconds a transaction may wait for another's lock; then,
    and whenever the file does not answer, ``Unavailable`` is raised and the next
    transaction tries a new connection.
    """

    def __init__(self, url: str, patience: float) -> None:
        self._path = path_of(url)
        self._patience = patience
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction of its own: committed at the end, rolled back by an exception."""
        try:
            connection = self._connection or self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            if isinstance(error, (*DataError, sqlite3.ProgrammingError)):
                raise
            self.close()
            raise _explained(error, self._path) from error

    @contextmanager
    def migration(self) -> Iterator[Transaction]:
        """A transaction that no other migration runs beside."""
        with self.transaction() as tx:
            yield tx

    def close(self) -> None:
        """Closes the connection; the next transaction opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < (3, 35):
            raise SetupError(
                f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed; "
                "use a newer Python, or PostgreSQL"
            )
        if not Path(self._path).absolute().parent.is_dir():
            raise SetupError(
                f"the folder of {self._path} does not exist: make it first"
            )
        connection = sqlite3.connect(
            self._path,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if connection.execute("PRAGMA synchronous").fetchone()[0] != 2:
                raise SetupError(
                    "SQLite refused synchronous = FULL: rows could be lost"
                )
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


def callers(connection: object) -> Transaction:
    """A transaction over the caller's own connection: the caller commits.

    Takes a sqlite3 connection, or a SQLAlchemy connection or session on sqlite3.
    """
    found: object = connection
    for _ in range(4):
        if isinstance(found, sqlite3.Connection):
            _begin(found)
            return Transaction(found)
        inner = getattr(found, "driver_connection", None)
        if inner is None:
            inner = getattr(found, "connection", None)
            inner = inner() if callable(inner) else inner
        if inner is None:
            break
        found = inner
    raise TypeError(
        f"connection= takes a sqlite3 or SQLAlchemy connection or session, not "
        f"{type(connection).__name__}"
    )


def _begin(connection: sqlite3.Connection) -> None:
    """Begins the transaction that sqlite3 begins by itself before an INSERT.

    It does so only before a statement that starts with that word; ours start with WITH.
    A connection in autocommit mode is left alone.
    """
    level = connection.isolation_level
    if getattr(connection, "autocommit", -1) != -1 or level is None:
        return
    if not connection.in_transaction:
        connection.execute(f"BEGIN {level}")


class AsyncTransaction:
    """The same over a connection of async code: SQLAlchemy's, or sqlite3's own."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def all(self, sql: str, **params: object) -> list[Row]:
        """Every row of the answer."""
        if hasattr(self._connection, "run_sync"):
            rows: list[Row] = await self._connection.run_sync(
                lambda synchronous: callers(synchronous).all(sql, **params)
            )
            return rows
        return callers(self._connection).all(sql, **params)


def path_of(url: str) -> str:
    """The file of ``sqlite:///relative`` or ``sqlite:////absolute``."""
    path = url.partition("://")[2].partition("?")[0]
    if not path.startswith("/") or len(path) < 2:
        raise SetupError(
            "the address of a SQLite record is sqlite:///file.db or sqlite:////folder/file.db"
        )
    return path[1:]


def _explained(error: sqlite3.DatabaseError, path: str) -> Exception:
    text = str(error)
    if "no such table" in text or "no such column" in text:
        return SetupError(f"{text} in {path}: run the migrate command first")
    if "not a database" in text or "malformed" in text:
        return SetupError(f"the file {path} is no SQLite database: {text}")
    if "unable to open" in text or "readonly" in text:
        return Unavailable(f"the SQLite file {path} cannot be opened: {text}")
    return Unavailable(f"SQLite does not answer ({path}): {text}")
