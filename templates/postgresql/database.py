"""The record's database: PostgreSQL through psycopg 3.

One ``Database`` is one connection, used by one thread at a time, opened at first use
and reopened after it broke.  A transaction is pipelined: statements whose answer is not
needed travel with the next one.  Only transaction-level state is set, so a pooler in
transaction mode may stand between.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import errors as pg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format
from psycopg.rows import dict_row

from .errors import SetupError, Unavailable

SCHEMES: Final = ("postgresql", "postgres")
DIALECT: Final = "postgresql"

Row = dict[str, Any]

# What a statement raises that would be raised again: a constraint or a bad value.
DataError: Final = (psycopg.IntegrityError, psycopg.DataError)

# Neither a user's open transaction, nor a migration, nor a frozen process may make
# others stall: each of our transactions gives up by itself.
_LIMITS: Final = """
SELECT set_config('lock_timeout', %(ms)s, true),
    set_config('statement_timeout', %(ms)s, true),
    set_config('idle_in_transaction_session_timeout', %(ms)s, true)
"""

_EPOCH_2000_MS: Final = 946_684_800_000


class _Millis(Loader):
    """timestamptz as integer milliseconds since the epoch."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int.from_bytes(data, "big", signed=True) // 1000 + _EPOCH_2000_MS


class _IdText(Loader):
    """uuid as its text."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return str(uuid.UUID(bytes=bytes(data)))


class _JsonText(Loader):
    """jsonb as its text: the codec decodes it."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return bytes(data)[1:].decode()


def _register(adapters: AdaptersMap) -> None:
    adapters.register_loader("timestamptz", _Millis)
    adapters.register_loader("uuid", _IdText)
    adapters.register_loader("jsonb", _JsonText)


class Transaction:
    """Runs statements; made by ``Database.transaction`` or over a caller's connection."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        pipeline: psycopg.Pipeline | None = None,
    ) -> None:
        self._connection = connection
        self._pipeline = pipeline

    def all(self, sql: str, **params: object) -> list[Row]:
        """Every row of the answer."""
        with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
            _register(cursor.adapters)
            cursor.execute(_text(sql), params)
            if self._pipeline is not None:
                # Without a Sync the server does not count us as idle, and a process
                # frozen here would keep its locks for ever.
                self._pipeline.sync()
            return cursor.fetchall()

    def one(self, sql: str, **params: object) -> Row | None:
        """The first row of the answer, or None."""
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def run(self, sql: str, **params: object) -> None:
        """Runs a statement whose answer is not needed: it travels with the next one."""
        self._connection.execute(_text(sql), params)


class Database:
    """One connection to the record.

    ``patience`` is how many seconds a transaction may wait for a lock or for the
    server; then, and whenever the server does not answer, ``Unavailable`` is raised and
    the next transaction tries a new connection.
    """

    def __init__(self, url: str, patience: float) -> None:
        self._url = conninfo(url)
        self._patience = patience
        self._connection: psycopg.Connection[Any] | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction of its own: committed at the end, rolled back by an exception."""
        with self._explained():
            connection = self._connection or self._open()
            with connection.pipeline() as pipeline, connection.transaction():
                connection.execute(_LIMITS, {"ms": str(int(self._patience * 1000))})
                yield Transaction(connection, pipeline)

    @contextmanager
    def migration(self) -> Iterator[Transaction]:
        """A transaction that no other migration runs beside; it may take its time."""
        with self._explained():
            connection = self._connection or self._open()
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '60s'")
                connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtext('qgen migrate'))"
                )
                yield Transaction(connection)

    def close(self) -> None:
        """Closes the connection; the next transaction opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (pg.UndefinedTable, pg.UndefinedColumn) as error:
            raise SetupError(
                f"{_first_line(error)}: run the migrate command first"
            ) from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            self.close()
            raise Unavailable(
                f"PostgreSQL does not answer: {_first_line(error)}"
            ) from error

    def _open(self) -> psycopg.Connection[Any]:
        # No server-side prepared statements: they do not survive every pooler.
        self._connection = psycopg.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=max(1, int(self._patience)),
        )
        return self._connection


def callers(connection: object) -> Transaction:
    """A transaction over the caller's own connection: the caller commits.

    Takes a psycopg connection, or a SQLAlchemy connection or session on psycopg.
    """
    found: object = connection
    for _ in range(4):
        if isinstance(found, psycopg.Connection):
            return Transaction(found)
        inner = getattr(found, "driver_connection", None)
        if inner is None:
            inner = getattr(found, "connection", None)
            inner = inner() if callable(inner) else inner
        if inner is None:
            break
        found = inner
    raise TypeError(
        f"connection= takes a psycopg or SQLAlchemy connection or session, not "
        f"{type(connection).__name__}"
    )


class AsyncTransaction:
    """The same over a connection of async code: psycopg's or SQLAlchemy's."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def all(self, sql: str, **params: object) -> list[Row]:
        """Every row of the answer."""
        if isinstance(self._connection, psycopg.AsyncConnection):
            async with self._connection.cursor(
                row_factory=dict_row, binary=True
            ) as cursor:
                _register(cursor.adapters)
                await cursor.execute(_text(sql), params)
                return await cursor.fetchall()
        if hasattr(self._connection, "run_sync"):
            rows: list[Row] = await self._connection.run_sync(
                lambda synchronous: callers(synchronous).all(sql, **params)
            )
            return rows
        return callers(self._connection).all(sql, **params)


def conninfo(url: str) -> str:
    """The address as libpq takes it: ``postgresql+driver://`` loses its driver.

    SetupError, which repeats nothing of the address, if libpq would misread it.
    """
    address = f"postgresql://{url.partition('://')[2]}"
    try:
        read = conninfo_to_dict(address)
        ports = str(read.get("port", "")).replace(",", "")
        misread = "@" in str(read.get("host", "")) or bool(ports.strip("0123456789"))
    except psycopg.ProgrammingError:
        misread = True
    if misread:
        raise SetupError(
            "the address of the database cannot be read: write "
            "postgresql://user:password@host:5432/name, and in a password %40 for @, "
            "%2F for /, %25 for %"
        )
    return address


def _text(sql: str) -> Any:
    # psycopg wants a literal; every text here comes from statements.py.
    return sql


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
