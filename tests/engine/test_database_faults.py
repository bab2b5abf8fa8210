"""The database goes away, is restarted, read-only, locked, or loses its replies."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, Worker, until
from engine.proxy import Proxy

import servers

STALL = 4.0
SPEC = faults.QUICK + "[workers.main]\nconcurrency = 4\n" + faults.JOBS
ONLY_PG = pytest.mark.parametrize("dialect", ["postgresql"])


@pytest.fixture
def package(
    dialect: str,
    own_pg: servers.Postgres,
    own_redis: servers.Redis,
    tmp_path: Path,
    clean_environment: None,
) -> Package:
    """On a PostgreSQL of this test's own."""
    tree = faults.build(dialect, SPEC)
    return tree.at(own_pg.url, own_redis.url, tmp_path / "run").migrate()


def jobs(package: Package, first: int, many: int, seconds: float = 0.0) -> list[Any]:
    api = package.api
    made: list[Any] = api.enqueue_many(
        [api.Work(n=n, seconds=seconds) for n in range(first, first + many)]
    )
    return made


def all_once(package: Package, many: int) -> None:
    assert package.settled() == {"completed": many}
    assert {row["attempt"] for row in package.rows()} == {1}
    starts = package.ledger.starts()
    assert len(starts) == len({run.id for run in starts}) == many
    assert package.sql("SELECT * FROM jobs_attempts") == []


def nobody_died(package: Package, *workers: Worker) -> None:
    """None of them was declared dead, none has ended; nor is one a little later."""
    pids = {worker.pid for worker in workers}
    for _ in range(2):
        for worker in workers:
            assert worker.running, worker.log()
        boots = [boot for boot in package.boots() if boot["pid"] in pids]
        assert [boot["dead_at"] for boot in boots] == [None] * len(workers)
        time.sleep(STALL + 2)  # whoever missed beats has time to be wrong about others


OUTAGES = [20.0, 180.0] if faults.LONG else [3 * STALL]


@ONLY_PG
def test_a_restart_between_two_enqueues(
    package: Package, own_pg: servers.Postgres
) -> None:
    """A connection that the server has closed meanwhile is not used once more."""
    for _ in range(3):
        jobs(package, 0, 1)
        own_pg.restart()
    jobs(package, 0, 1)
    assert len(package.rows()) == 4


@pytest.mark.parametrize("how", ["stopped", "frozen"])
@ONLY_PG
def test_away(package: Package, own_pg: servers.Postgres, how: str) -> None:
    """Away for a multiple of `stall.after` while jobs run: every finish lands once.

    No living worker is declared dead by another, though all were silent.  By default
    three times `stall.after`; QGEN_LONG=1: 20 s and 3 minutes.
    """
    for number, outage in enumerate(OUTAGES):
        before = number * 20
        with package.worker() as one, package.worker() as two:
            package.ready(one, two)
            jobs(package, before, 8, seconds=2)
            started(package, before + 8)
            jobs(package, before + 8, 12)
            if how == "stopped":
                own_pg.stop()
            else:
                own_pg.freeze()
            time.sleep(outage)
            ends = len(package.ledger.ends())
            assert ends >= before + 8, "handlers go on without a database"
            own_pg.start() if how == "stopped" else own_pg.thaw()
            all_once(package, before + 20)
            nobody_died(package, one, two)
            for worker in (one, two):
                worker.terminate()
                assert worker.exit_code() == 0, worker.log()


def started(package: Package, many: int) -> None:
    until(lambda: len(package.ledger.starts()) >= many, f"{many} starts")


@ONLY_PG
def test_connections_are_cut(package: Package) -> None:
    """Every backend is terminated again and again: each job is completed, once."""
    with package.worker() as one, package.worker() as two:
        package.ready(one, two)
        jobs(package, 0, 200, seconds=0.05)
        for _ in range(30):
            package.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
            time.sleep(0.1)
        all_once(package, 200)
        assert one.running and two.running


@ONLY_PG
def test_read_only_for_a_while(package: Package) -> None:
    """As after a failover: reads work, writes are refused.  Every finish lands once."""
    with package.worker() as one, package.worker() as two:
        package.ready(one, two)
        jobs(package, 0, 8, seconds=1)
        started(package, 8)
        jobs(package, 10, 8)
        read_only(package, "on")
        time.sleep(2 * STALL)
        assert len(package.ledger.ends()) == 8
        read_only(package, "off")
        all_once(package, 16)
        nobody_died(package, one, two)


def read_only(package: Package, switch: str) -> None:
    with psycopg.connect(package.database_url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(
            f"ALTER SYSTEM SET default_transaction_read_only = {switch}".encode()
        )
        connection.execute("SELECT pg_reload_conf()")


def kind_of(text: bytes) -> str:
    """What a statement writes, as far as it matters here."""
    if b"state = 'active', reason = NULL" in text:
        return "claim"
    return "finish" if b"state = 'completed', reason = NULL" in text else ""


@ONLY_PG
def test_the_reply_of_a_commit_is_lost(
    package: Package, own_pg: servers.Postgres, tmp_path: Path
) -> None:
    """The server commits, the answer never comes: claims are adopted, endings stand.

    Every commit of a worker is cut once in a while; each job runs once and completes.
    """
    seen = {"claim": 0, "finish": 0}
    lock = threading.Lock()
    last: dict[str, str] = {"what": ""}
    prepared: dict[bytes, str] = {}  # by name: the text is sent once for a connection

    def cut(data: bytes) -> bool:
        with lock:
            for name, text in re.findall(rb"(_pg3_\d+)\x00(\s*[A-Z][^\x00]*)", data):
                prepared[name] = kind_of(text)
            for name in re.findall(rb"\x00(_pg3_\d+)\x00", data):
                last["what"] = prepared.get(name) or last["what"]
            if b"COMMIT" not in data or not last["what"]:
                return False
            what, last["what"] = last["what"], ""
            seen[what] += 1
            return seen[what] % 3 == 1

    with Proxy(own_pg.port, cut) as proxy:
        url = package.database_url.replace(str(own_pg.port), str(proxy.port))
        with package.worker(env={faults.DATABASE: url}) as worker:
            for n in range(12):
                jobs(package, n, 1)
                until(
                    lambda n=n: package.states()["completed"] == n + 1,
                    lambda: f"the end of all {package.rows()[-1]}\n{worker.log()}",
                )
            assert worker.running
        assert proxy.cuts >= 4, "nothing was cut"
    all_once(package, 12)


@ONLY_PG
def test_a_lock_on_one_row(package: Package) -> None:
    """Somebody's open transaction holds a job's row: the other jobs do not wait for it.

    Locked while it runs (its finish waits), and while it is queued (its claim waits).
    """
    with package.worker() as worker:
        package.ready(worker)
        (runs,) = jobs(package, 1, 1, seconds=1)
        until(lambda: package.ledger.starts(1), "its start")
        with psycopg.connect(package.database_url) as somebody:
            somebody.execute("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE", [runs.id])
            jobs(package, 10, 20)
            until(lambda: package.ledger.ends(1), "its end")
            until(
                lambda: package.states()["completed"] == 20,
                lambda: f"the others {package.states()}\n{worker.log()}",
                30,
            )
            assert package.row(runs.id)["state"] == "active"
        package.in_state(runs.id, "completed")
        (waits,) = package.api.enqueue_many([package.api.Work(n=2)])
        package.in_state(waits.id, "completed")

        delayed = package.api.enqueue(package.api.Work(n=3), delay=1)
        with psycopg.connect(package.database_url) as somebody:
            until(lambda: package.row(delayed.id)["dispatched_at"] is None, "waiting")
            time.sleep(0.5)
            somebody.execute(
                "SELECT 1 FROM jobs WHERE id = %s FOR UPDATE", [delayed.id]
            )
            time.sleep(1)
            jobs(package, 40, 20)
            until(
                lambda: package.states()["completed"] == 42,
                lambda: f"the others {package.states()}\n{worker.log()}",
                30,
            )
        package.in_state(delayed.id, "completed")
    all_once(package, 43)


@ONLY_PG
def test_a_lock_on_the_table(package: Package) -> None:
    """An ALTER TABLE or VACUUM FULL holds the table for longer than `stall.after`.

    Beats go on: nobody is declared dead, every finish lands once.
    """
    with package.worker() as one, package.worker() as two:
        package.ready(one, two)
        jobs(package, 0, 8, seconds=1)
        started(package, 8)
        with psycopg.connect(package.database_url) as somebody:
            somebody.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            time.sleep(2 * STALL)
        all_once(package, 8)
        nobody_died(package, one, two)


@ONLY_PG
def test_limits_of_idle_connections(package: Package, own_pg: servers.Postgres) -> None:
    """A server or pooler that closes idle connections early costs nothing.

    A handler runs longer than the limit; its finish goes over a new connection.
    """
    package.sql("ALTER SYSTEM SET idle_session_timeout = '300ms'")
    package.sql("ALTER SYSTEM SET idle_in_transaction_session_timeout = '300ms'")
    package.sql("SELECT pg_reload_conf()")
    with package.worker() as worker:
        jobs(package, 0, 8, seconds=1)
        all_once(package, 8)
        assert worker.running
    time.sleep(0.5)
    assert package.api.enqueue(package.api.Work(n=9)).created


@ONLY_PG
def test_enqueue_while_it_is_away(package: Package, own_pg: servers.Postgres) -> None:
    """An enqueue is an error in words, at once or after its patience; then it works."""
    api = package.api
    errors = package.part("errors")
    api.enqueue(api.Work(n=1))
    own_pg.stop()
    with pytest.raises(errors.Unavailable) as told:
        api.enqueue(api.Work(n=2))
    assert "PostgreSQL" in str(told.value)
    own_pg.start()
    assert api.enqueue(api.Work(n=2)).created
    assert len(package.rows()) == 2


@ONLY_PG
def test_away_when_a_worker_starts(package: Package, own_pg: servers.Postgres) -> None:
    """One sentence, exit 2, no password."""
    own_pg.stop()
    secret = package.database_url.replace("postgres@", "postgres:hunter2@")
    with package.worker(env={faults.DATABASE: secret}) as worker:
        assert worker.exit_code() == 2
        assert "PostgreSQL" in worker.log()
        assert "hunter2" not in worker.log() and "Traceback" not in worker.log()


@ONLY_PG
def test_sigterm_while_it_is_away(package: Package, own_pg: servers.Postgres) -> None:
    """A drain does not wait for ever: the process ends with an error, nothing is lost.

    What it could not write down is recovered and runs again, as a counted attempt.
    """
    with package.worker() as worker:
        jobs(package, 0, 4, seconds=1)
        started(package, 4)
        own_pg.stop()
        until(lambda: len(package.ledger.ends()) == 4, "their ends")
        worker.terminate()
        assert worker.exit_code() == 1, worker.log()
        own_pg.start()
    with package.worker():
        assert package.settled() == {"completed": 4}
    assert {row["attempt"] for row in package.rows()} == {2}
    assert len(package.ledger.starts()) == 8


# --- SQLite ---------------------------------------------------------------------


@pytest.fixture
def on_sqlite(make: Make) -> Package:
    return make(SPEC)


ONLY_SQLITE = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@contextlib.contextmanager
def writing(package: Package) -> Iterator[None]:
    """Somebody holds the file's only write lock."""
    path = package.database_url.removeprefix("sqlite:///")
    with contextlib.closing(
        sqlite3.connect(path, isolation_level=None, timeout=60)
    ) as somebody:
        somebody.execute("BEGIN IMMEDIATE")
        yield
        somebody.execute("ROLLBACK")


@ONLY_SQLITE
def test_somebody_writes_for_long(on_sqlite: Package) -> None:
    """The file is locked for three times `stall.after`: nobody is declared dead.

    Every finish lands once.
    """
    package = on_sqlite
    with package.worker() as one, package.worker() as two:
        package.ready(one, two)
        jobs(package, 0, 8, seconds=1)
        started(package, 8)
        with writing(package):
            time.sleep(3 * STALL)
        all_once(package, 8)
        nobody_died(package, one, two)


@ONLY_SQLITE
def test_a_file_that_is_no_database(make: Make, tmp_path: Path) -> None:
    """One sentence and exit 2, never a traceback."""
    package = make(SPEC)
    text = tmp_path / "text.db"
    text.write_text("this is no database\n" * 1000)
    for path in (str(text), "/nowhere/at/all/record.db", str(tmp_path)):
        url = {faults.DATABASE: f"sqlite:///{path}"}
        for command in (["migrate"], ["worker"]):
            worker = package.start("-m", package.name, *command, env=url)
            with worker:
                assert worker.exit_code() == 2, worker.log()
                assert "Traceback" not in worker.log(), worker.log()
                assert len(worker.log().strip().splitlines()) == 1, worker.log()


# --- both -----------------------------------------------------------------------


@faults.on("sqlite")
def test_who_wakes_first_judges_nobody(make: Make, tmp_path: Path) -> None:
    """All sleep for longer than `stall.after`, as on a laptop; one wakes first.

    Its sweep had begun before the sleep and goes on right after its first beat: it
    declares nobody dead.
    """
    package = make(SPEC)
    point = tmp_path / "point"
    point.mkdir()
    with (
        package.faulty("mid-judgement", point, env={"FAULTY_SKIP": "7"}) as one,
        package.worker() as two,
    ):
        package.ready(one, two)
        until((point / "reached").exists, one.log)
        two.freeze()
        one.freeze()
        time.sleep(STALL + 2)
        (before,) = [b["last_seen"] for b in package.boots() if b["pid"] == one.pid]
        one.thaw()
        until(
            lambda: [
                b
                for b in package.boots()
                if b["pid"] == one.pid and b["last_seen"] > before
            ],
            "its beat",
        )
        (point / "go").touch()
        time.sleep(1.5)
        assert {boot["dead_at"] for boot in package.boots()} == {None}, one.log()
        two.thaw()
        nobody_died(package, one, two)


@pytest.mark.parametrize("dialect", faults.DIALECTS, indirect=True)
def test_stranded_rows_that_are_odd(make: Make) -> None:
    """Ten rows of a dead worker, one of an unknown job, one unreadable.  C008.

    The sweep passes over neither and stops at neither: eight run, the unreadable one
    is failed with a reason, the unknown one waits for a worker that knows it.
    """
    package = make(SPEC)
    made = jobs(package, 0, 10)
    gone = "01890000-0000-7000-8000-00000000dead"
    package.sql(
        "UPDATE jobs SET state = 'active', worker = ?, attempt = 1, fence = 1,"
        " started_at = created_at, dispatched_at = NULL",
        gone,
    )
    package.sql("UPDATE jobs SET job = 'nobody' WHERE id = ?", made[0].id)
    package.sql("UPDATE jobs SET payload = '\"x\"' WHERE id = ?", made[5].id)
    with package.worker() as worker:
        for one in made[1:5] + made[6:]:
            package.in_state(one.id, "completed")
        row = package.in_state(made[5].id, "failed")
        assert row["reason"] == "bad_payload"
        row = package.row(made[0].id)
        assert row["state"] == "queued", row
        assert worker.running
    assert len(package.ledger.starts()) == 8


@faults.on("postgresql")
def test_a_result_of_forty_megabytes(make: Make) -> None:
    """A result that takes longer to write than a statement may: the others do not wait.

    It ends too, whole or cut, and the handler runs once.
    """
    handlers = faults.HANDLERS + """

async def huge(job, payload):
    note("start", job, payload.n)
    return "x" * 40_000_000
"""
    package = make(SPEC + '[jobs.huge.payload]\nn = "int"\n', handlers)
    api = package.api
    with package.worker() as worker:
        huge = api.enqueue(api.Huge(n=1)).id
        until(lambda: package.ledger.starts(1), "its start")
        for one in jobs(package, 10, 10):
            package.in_state(one.id, "completed", patience=30)
        row = package.in_state(huge, "completed", patience=30)
        assert row["attempt"] == 1
        assert worker.running
    assert len(package.ledger.starts(1)) == 1
