"""Enqueue inside the caller's own transaction; keys and unique jobs under races."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from engine import faults
from engine.conftest import Make
from engine.faults import Package, until
from sqlalchemy.orm import Session

import servers

SPEC = faults.QUICK + faults.JOBS + """
[jobs.unique]
unique_by = ["n"]
handler = "tested_handlers:work"
[jobs.unique.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""


@pytest.fixture
def package(make: Make) -> Package:
    return make(SPEC)


# --- every kind of connection ---------------------------------------------------

# A kind gives a context: (connection to pass, commit, rollback).
Opened = tuple[Any, Callable[[], None], Callable[[], None]]


@contextlib.contextmanager
def sqlite_default(url: str) -> Iterator[Opened]:
    """sqlite3 as everybody opens it: transactions begin by themselves."""
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as c:
        yield c, c.commit, c.rollback


@contextlib.contextmanager
def sqlite_explicit(url: str) -> Iterator[Opened]:
    path = url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as c:
        c.execute("BEGIN")
        yield c, lambda: run(c, "COMMIT"), lambda: run(c, "ROLLBACK")


def run(connection: sqlite3.Connection, sql: str) -> None:
    connection.execute(sql)


@contextlib.contextmanager
def psycopg_plain(url: str) -> Iterator[Opened]:
    with psycopg.connect(url) as connection:
        yield connection, connection.commit, connection.rollback


@contextlib.contextmanager
def psycopg_tuned(url: str) -> Iterator[Opened]:
    """The caller's own row factory and cursors do not disturb the engine's."""
    from psycopg.rows import namedtuple_row

    with psycopg.connect(url, row_factory=namedtuple_row) as connection:
        connection.cursor_factory = psycopg.ClientCursor
        yield connection, connection.commit, connection.rollback


def engine_of(url: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(
        url.replace("postgresql://", "postgresql+psycopg://")
    )


@contextlib.contextmanager
def alchemy_connection(url: str) -> Iterator[Opened]:
    engine = engine_of(url)
    try:
        with engine.connect() as connection:
            yield connection, connection.commit, connection.rollback
    finally:
        engine.dispose()


@contextlib.contextmanager
def alchemy_session(url: str) -> Iterator[Opened]:
    engine = engine_of(url)
    try:
        with Session(engine) as session:
            yield session, session.commit, session.rollback
    finally:
        engine.dispose()


KINDS: dict[str, list[Callable[[str], Any]]] = {
    "sqlite": [sqlite_default, sqlite_explicit, alchemy_connection, alchemy_session],
    "postgresql": [psycopg_plain, psycopg_tuned, alchemy_connection, alchemy_session],
}
EACH = [(dialect, kind) for dialect, kinds in KINDS.items() for kind in kinds]


@pytest.mark.parametrize(
    ("dialect", "kind"),
    EACH,
    indirect=["dialect"],
    ids=[f"{dialect}-{kind.__name__}" for dialect, kind in EACH],
)
def test_the_callers_transaction(
    package: Package, own_redis: servers.Redis, kind: Callable[[str], Any]
) -> None:
    """Rolled back: no row, no message.  Committed: one run, after the commit.  C092.

    Nothing is published before the commit, however long it takes.
    """
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        with kind(package.database_url) as (connection, commit, rollback):
            api.enqueue(api.Work(n=1), connection=connection)
            api.enqueue_many([api.Work(n=1), api.Work(n=1)], connection=connection)
            rollback()
        assert package.rows() == []
        with kind(package.database_url) as (connection, commit, rollback):
            first = api.enqueue(api.Work(n=2), connection=connection)
            more = api.enqueue_many(
                [api.Work(n=3), api.Work(n=3)], connection=connection
            )
            assert first.created and all(one.created for one in more)
            if package.dialect == "postgresql":
                time.sleep(2.5)  # rounds and sweeps see nothing
            assert package.rows() == []
            assert package.ledger.starts() == []
            commit()
        api.publish([first.id])
        assert package.settled() == {"completed": 3}
    assert [row["attempt"] for row in package.rows()] == [1, 1, 1]
    assert len(package.ledger.starts()) == 3
    assert package.ledger.starts(1) == []


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_the_callers_async_transaction(package: Package) -> None:
    """The same through psycopg's AsyncConnection and `aenqueue`."""
    api = package.api

    async def go() -> list[Any]:
        url = package.database_url
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await api.aenqueue(api.Work(n=1), connection=connection)
            await connection.rollback()
        async with await psycopg.AsyncConnection.connect(url) as connection:
            one = await api.aenqueue(api.Work(n=2), connection=connection)
            two = await api.aenqueue_many([api.Work(n=3)], connection=connection)
            await connection.commit()
        return [one, *two]

    made = asyncio.run(go())
    api.publish([one.id for one in made])
    with package.worker():
        assert package.settled() == {"completed": 2}
    assert package.ledger.starts(1) == []


@pytest.mark.parametrize("what", ["connection", "session"])
@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_sqlalchemys_async_transaction(package: Package, what: str) -> None:
    """The same through SQLAlchemy's AsyncConnection and AsyncSession on psycopg."""
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    api = package.api
    url = package.database_url.replace("postgresql://", "postgresql+psycopg://")

    async def go() -> str:
        engine = create_async_engine(url)
        try:
            for n in (1, 2):
                opened = AsyncSession(engine)
                if what == "connection":
                    opened = engine.connect()  # type: ignore[assignment]
                async with opened as connection:
                    made = await api.aenqueue(api.Work(n=n), connection=connection)
                    await (connection.rollback() if n == 1 else connection.commit())
        finally:
            await engine.dispose()
        id_: str = made.id
        return id_

    id_ = asyncio.run(go())
    assert [row["id"] for row in package.rows()] == [id_]
    with package.worker():
        assert package.settled() == {"completed": 1}


def test_a_connection_that_is_none(package: Package) -> None:
    """Anything else is refused with what is accepted."""
    api = package.api
    for odd in (object(), "a url", 5):
        with pytest.raises(TypeError, match="connection"):
            api.enqueue(api.Work(n=1), connection=odd)


def test_publish_is_only_a_fast_path(package: Package) -> None:
    """Without `publish` a dispatch round takes the rows; twice changes nothing."""
    api = package.api
    made = api.enqueue(api.Work(n=1))
    assert api.publish([made.id]) in (0, 1)
    api.publish([made.id, made.id])
    api.publish([])
    with package.worker():
        assert package.settled() == {"completed": 1}
        api.publish([made.id])
        time.sleep(1.5)
    assert len(package.ledger.starts()) == 1


# --- keys -----------------------------------------------------------------------


def at_once(many: int, call: Callable[[int], Any]) -> list[Any]:
    """The answers of so many threads that start together; exceptions are answers."""
    barrier = threading.Barrier(many)
    answers: list[Any] = [None] * many

    def one(number: int) -> None:
        barrier.wait()
        try:
            answers[number] = call(number)
        except Exception as error:
            answers[number] = error

    threads = [threading.Thread(target=one, args=(n,)) for n in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_a_key_is_one_job(package: Package) -> None:
    """The same key and payload: the same id; another payload raises; kept with the row."""
    api = package.api
    errors = package.part("errors")
    first = api.enqueue(api.Work(n=1), key="order-7")
    again = api.enqueue(api.Work(n=1), key="order-7")
    assert (first.created, again.created) == (True, False)
    assert again.id == first.id
    with pytest.raises(errors.KeyConflict):
        api.enqueue(api.Work(n=2), key="order-7")
    with pytest.raises(errors.KeyConflict):
        api.enqueue(api.Unique(n=1), key="order-7")
    with package.worker():
        package.in_state(first.id, "completed")
    after = api.enqueue(api.Work(n=1), key="order-7")
    assert (after.id, after.created, after.state) == (first.id, False, "completed")
    assert len(package.rows()) == 1


def test_one_key_at_once(package: Package) -> None:
    """Sixteen threads enqueue the same key together, thirty times: one row each."""
    api = package.api
    for n in range(30):
        answers = at_once(16, lambda _, n=n: api.enqueue(api.Work(n=n), key=f"k{n}"))
        assert {type(answer).__name__ for answer in answers} == {"Enqueued"}, answers
        assert len({answer.id for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1
    assert len(package.rows()) == 30


def test_a_key_of_a_transaction_that_is_rolled_back(package: Package) -> None:
    """Whoever waits for it gets the key after the rollback, and a job of his own."""
    if package.dialect == "sqlite":
        with sqlite_default(package.database_url) as (connection, _, rollback):
            package.api.enqueue(package.api.Work(n=1), key="x", connection=connection)
            rollback()
            made = package.api.enqueue(package.api.Work(n=1), key="x")
        assert made.created
        return
    api = package.api
    with psycopg.connect(package.database_url) as connection:
        lost = api.enqueue(api.Work(n=1), key="x", connection=connection)
        barrier = threading.Event()
        answers: list[Any] = []

        def second() -> None:
            barrier.set()
            answers.append(api.enqueue(api.Work(n=1), key="x"))

        thread = threading.Thread(target=second)
        thread.start()
        barrier.wait()
        until(lambda: blocked(package), "the second one's wait for the first")
        connection.rollback()
        thread.join()
    assert answers[0].created
    assert answers[0].id != lost.id
    assert [row["id"] for row in package.rows()] == [answers[0].id]


def blocked(package: Package) -> bool:
    rows = package.sql("SELECT 1 FROM pg_locks WHERE NOT granted")
    return bool(rows)


# --- unique jobs ----------------------------------------------------------------


def test_a_twin_of_a_running_job(package: Package, tmp_path: Path) -> None:
    """While a unique job runs, five more of its key are folded into it.  C029.

    Each caller learns which job it got; with another value there is no twin.
    """
    api = package.api
    gate = tmp_path / "gate"
    with package.worker():
        first = api.enqueue(api.Unique(n=1, mode=f"gate:{gate}"))
        until(lambda: package.ledger.starts(1), "its start")
        more = [api.enqueue(api.Unique(n=1, seconds=n)) for n in range(5)]
        assert {(one.id, one.created, one.state) for one in more} == {
            (first.id, False, "active")
        }
        other = api.enqueue(api.Unique(n=2))
        assert other.created
        folded = api.enqueue(api.Unique(n=1), key="k")
        assert (folded.id, folded.created) == (first.id, False)
        gate.touch()
        package.settled()
        again = api.enqueue(api.Unique(n=1))
        assert again.created and again.id != first.id
        # The key still stands for the job that it was folded into.
        assert api.enqueue(api.Unique(n=1), key="k").id == first.id
        package.settled()
    assert len(package.ledger.starts(1)) == 2


@faults.on("sqlite")
def test_five_times_in_a_row(package: Package) -> None:
    """The same subject again right after its end: nothing carries over.  C028."""
    api = package.api
    with package.worker():
        ids = []
        for _ in range(5):
            made = api.enqueue(api.Unique(n=1))
            assert made.created
            row = package.in_state(made.id, "completed")
            assert (row["attempt"], row["dispatch"]) == (1, 1)
            ids.append(made.id)
    assert len(set(ids)) == 5
    assert [run.attempt for run in package.ledger.starts()] == [1] * 5


@faults.on("postgresql")
def test_a_cancelled_job_frees_its_subject(package: Package) -> None:
    """Uniqueness is judged from living rows only: worker killed, row cancelled.  C023."""
    api = package.api
    with package.worker() as worker:
        first = api.enqueue(api.Unique(n=1, seconds=3600))
        until(lambda: package.ledger.starts(1), "its start")
        worker.kill()
    assert api.cancel(first.id) == "cancelling"
    with package.worker():
        package.in_state(first.id, "cancelled")
        second = api.enqueue(api.Unique(n=1))
        assert second.created
        package.in_state(second.id, "completed")


def test_twins_at_once(package: Package) -> None:
    """Sixteen threads enqueue the same subject together, thirty times: one row each."""
    api = package.api
    for n in range(30):
        answers = at_once(16, lambda _, n=n: api.enqueue(api.Unique(n=n)))
        assert {type(answer).__name__ for answer in answers} == {"Enqueued"}, answers
        assert len({answer.id for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1
    assert len(package.rows()) == 30


def test_many_twins_in_opposite_orders(package: Package) -> None:
    """Bulk enqueues that overlap in opposite orders wait for each other; none fails."""
    api = package.api
    for turn in range(10):
        numbers = range(turn * 100, turn * 100 + 100)

        def bulk(number: int, numbers: range = numbers) -> Any:
            order = list(numbers) if number % 2 else list(reversed(numbers))
            return api.enqueue_many([api.Unique(n=n) for n in order])

        answers = at_once(6, bulk)
        assert all(isinstance(answer, list) for answer in answers), answers
        created = [one for answer in answers for one in answer if one.created]
        assert len(created) == 100
    assert len(package.rows()) == 1000


def test_a_batch_with_its_own_twins(package: Package) -> None:
    """The same subject twice in one call: the second answer names the first's row."""
    api = package.api
    one, two, three = api.enqueue_many(
        [api.Unique(n=1), api.Unique(n=2), api.Unique(n=1)]
    )
    assert (one.created, two.created, three.created) == (True, True, False)
    assert three.id == one.id


def test_twins_that_end_meanwhile(package: Package) -> None:
    """Enqueues race with the ends of their twins: each is a run or was folded into one.

    After the last answer the subject has run at least once more.
    """
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        answers = [api.enqueue(api.Unique(n=1)) for _ in range(150)]
        package.settled()
    created = {answer.id for answer in answers if answer.created}
    assert {answer.id for answer in answers} == created
    assert {row["id"] for row in package.rows()} == created
    assert len(package.ledger.starts()) == len(created)
    assert package.states() == {"completed": len(created)}
