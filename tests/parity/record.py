"""What every backend does alike when the record is away, or a process thinks it has it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
from engine.faults import LONG, until
from parity.stage import Stage, alive
from parity.table import behaviour
from psycopg import sql


@contextmanager
def away(stage: Stage) -> Iterator[None]:
    """Nobody gets at PostgreSQL, nobody else may write to SQLite."""
    if stage.dialect == "sqlite":
        path = stage.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as held:
            held.execute("BEGIN EXCLUSIVE")
            yield
            held.execute("ROLLBACK")
        return
    name = psycopg.conninfo.conninfo_to_dict(stage.database_url)["dbname"]
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(stage.database_url, dbname="postgres", autocommit=True) as by:
        by.execute(allow.format(sql.Identifier(str(name)), sql.SQL("false")))
        by.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [name],
        )
        yield
        by.execute(allow.format(sql.Identifier(str(name)), sql.SQL("true")))


@behaviour()
def outlives_the_database(stage: Stage) -> None:
    """Away for longer than the stall time while jobs run, and end: each ends once, in
    its first attempt; 20 s with QGEN_LONG=1.
    """
    gate = stage.gate()
    with stage.worker() as worker:
        stage.add(0, 2, mode=f"gate:{gate}")
        stage.started(0), stage.started(1)
        with away(stage):
            gate.touch()
            until(lambda: len(stage.package.ledger.ends()) == 2, worker.log)
            time.sleep(20 if LONG else 5)
        stage.add(2, 3)
        stage.completed(5)
        assert worker.running, worker.log()


@behaviour()
def a_frozen_worker_changes_nothing(stage: Stage) -> None:
    """Declared dead, its job runs elsewhere; thawed, it writes nothing, and the process of
    the job ends.
    """
    gate = stage.gate()
    with stage.worker() as frozen:
        (id_,) = stage.add(1, mode=f"gate:{gate}")
        first = stage.started(1)
        frozen.freeze()
        with stage.worker():
            stage.started(1, times=2)
            gate.touch()
            row = stage.package.in_state(id_, "completed")
            frozen.thaw()
            until(lambda: not alive([first.pid]), frozen.log)
            assert stage.kind.supervised or frozen.exit_code() == 1, frozen.log()
    assert stage.package.row(id_) == row
    assert row["attempt"] == 2
    (lost,) = stage.package.attempts(id_)
    assert lost["outcome"] == "worker_lost"
    stage.explained()
