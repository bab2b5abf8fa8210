"""On a large table every hot statement is served by the index made for its question."""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
from engine import packages

import servers

FINISHED = 200_000
SPEC = 'schema_version = 1\n[project]\nname = "plans"\n[jobs.noop.payload]\nn = "int"\n'

IDS = [str(uuid.UUID(int=n)) for n in range(50)]
BATCH = json.dumps(
    [
        {
            "id": id_,
            "dispatch": 1,
            "fence": 1,
            "timeout": 1000,
            "state": "queued",
            "delay": 0,
            "bonus": 0,
            "defers": 0,
            "releases": 0,
            "stranded": False,
            "result": "null",
            "reason": "rate",
        }
        for id_ in IDS
    ]
)

# statement: the index that must serve it ("key" = the primary key)
HOT = {
    "DISPATCH": "ready",
    "DISPATCH_IDS": "key",
    "OUTSTANDING": "outstanding",
    "UNDISPATCH": "key",
    "CLAIM_READ": "key",
    "CLAIM_WRITE": "key",
    "REFUSE": "key",
    "COMPLETE": "key",
    "END": "key",
    "MINE": "running",
    "STRANDED": "running",
    "TWIN_READ": "twin",
    "ROW": "key",
    "CANCEL_WAITING": "key",
    "CANCEL_ACTIVE": "key",
    "PRUNE": "completed",
    "LANES": "lanes",
    "HEADS": "lanes",
    "MARK": "key",
    "RUNNING": "running",
    "TAKEN": "outstanding",
    "EXPIRED": "expiring",
}

VALUES: dict[str, object] = {
    "queue": "default",
    "most": 50,
    "target": 54,
    "jobs": '{"noop": 1}',
    "ids": json.dumps(IDS),
    "batch": BATCH,
    "boot": IDS[0],
    "id": IDS[0],
    "by": "x",
    "unique_key": "x",
    "stale": 1000,
    "stall_after": 1000,
    "completed": 1000,
    "failed": 1000,
    "cancelled": 1000,
    "first": "default\x1f",
    "last": "default ",
    "after": "",
    "look": 64,
    "skip": "",
    "lanes": json.dumps([f"default\x1f{n}\x1fnoop\x1f" for n in range(20)]),
}


def statements_of(dialect: str) -> tuple[ModuleType, str]:
    """The built statements alone, of both modules, and the folder of the package."""
    package = packages.build(SPEC, dialect)
    module = ModuleType("st")
    for name in ("statements.py", "limit_statements.py"):
        exec((package / name).read_text("utf-8"), vars(module))
    return module, str(package)


def migrations(package: str) -> str:
    """The SQL that makes the tables."""
    files = sorted((Path(package) / "migrations").glob("*.sql"))
    return "".join(file.read_text("utf-8") for file in files)


def named(sql: str, style: str) -> dict[str, object]:
    return {n: v for n, v in VALUES.items() if style.format(n) in sql}


@pytest.fixture(scope="module")
def postgres(
    pg_server: servers.Postgres | servers.External,
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    _, package = statements_of("postgresql")
    with servers.database(pg_server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(migrations(package))
            connection.execute(
                f"""INSERT INTO plans_jobs (id, job, queue, priority, sort_at, state,
                    payload, payload_version, tries, attempt, run_at, created_at,
                    started_at, finished_at, fence)
                SELECT gen_random_uuid(), 'noop', 'default', 'normal', now(), 'completed',
                    '{{"n": 1}}', 1, 3, 1, now(), now(), now(), now(), 2
                FROM generate_series(1, {FINISHED})"""
            )
            connection.execute("VACUUM ANALYZE plans_jobs")
            # A few open rows that the statistics do not know: stale, as in life.
            connection.execute(
                """INSERT INTO plans_jobs (id, job, queue, priority, sort_at, state,
                    payload, payload_version, tries, run_at, created_at, lane,
                    expires_at)
                SELECT gen_random_uuid(), 'noop', 'default', 'normal', now(), 'queued',
                    '{"n": 1}', 1, 3, now(), now(),
                    concat_ws(chr(31), 'default', n % 20, 'noop', ''), now()
                FROM generate_series(1, 200) AS n"""
            )
            yield connection


@pytest.mark.parametrize("name", HOT)
def test_postgresql_uses_the_index(
    postgres: psycopg.Connection[tuple[object, ...]], name: str
) -> None:
    module, _ = statements_of("postgresql")
    sql = getattr(module, name)
    rows = postgres.execute(f"EXPLAIN {sql}", named(sql, "%({})s")).fetchall()
    plan = "\n".join(str(row[0]) for row in rows)
    wanted = "plans_jobs_pkey" if HOT[name] == "key" else f"plans_jobs_{HOT[name]}"
    assert wanted in plan, plan
    assert "Seq Scan on plans_jobs " not in plan, plan
    if HOT[name] == "key":
        # a literal state would have lured the planner to a partial index
        assert "plans_jobs_running" not in plan, plan
        if name != "DISPATCH_IDS":  # which counts what is outstanding
            assert "plans_jobs_outstanding" not in plan, plan


@pytest.mark.parametrize("name", HOT)
def test_sqlite_uses_the_index(name: str) -> None:
    module, package = statements_of("sqlite")
    connection = sqlite3.connect(":memory:")
    connection.executescript(migrations(package))
    sql = getattr(module, name)
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", named(sql, ":{}")).fetchall()
    plan = "\n".join(str(row[3]) for row in rows)
    wanted = (
        "sqlite_autoindex_plans_jobs_1"
        if HOT[name] == "key"
        else f"plans_jobs_{HOT[name]}"
    )
    assert wanted in plan, plan
    for line in plan.splitlines():
        assert not re.match(r"SCAN (t|plans_jobs|r)\b(?!.*USING)", line), plan
