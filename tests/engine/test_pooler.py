"""Behind a pooler in transaction mode: nothing rests on one server process."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from engine.faults import Package
from engine.pooler import Pooler

ONLY_PG = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)


@pytest.fixture
def pooled(package: Package) -> Iterator[tuple[Package, Pooler]]:
    """The package's record, reached through a pooler."""
    port = urlsplit(package.database_url).port
    assert port is not None
    with Pooler(port) as pooler:
        url = package.database_url.replace(f":{port}/", f":{pooler.port}/")
        yield package.tree.at(url, package.redis_url, package.folder), pooler


@ONLY_PG
def test_a_worker_and_its_clients(pooled: tuple[Package, Pooler]) -> None:
    package, pooler = pooled
    api = package.api
    with package.worker() as worker:
        for n in range(30):  # psycopg prepares at the fifth, if it may
            assert api.enqueue(api.Work(n=n), key=f"k{n}").created
        assert package.settled() == {"completed": 30}
        assert worker.running
        assert "does not answer" not in worker.log(), worker.log()
    assert pooler.turns > 30


@ONLY_PG
def test_prepared_only_where_it_stays_prepared(
    pooled: tuple[Package, Pooler], package: Package
) -> None:
    """What each enqueue asks is planned once on the server itself, else each time."""
    through, _ = pooled
    for each, prepared in ((package, 2), (through, 0)):
        api = each.api
        database = each.part("database").Database(each.database_url, 5.0)
        statements = each.part("statements")
        asked = {"batch": "[]", "window": True, "stall_after": 1}
        for _ in range(3):
            with database.transaction() as tx:
                assert tx.all(statements.ENQUEUE, **asked) == []
                assert tx.all(statements.BOOTS_LIVE, stall_after=1) == []
                found = tx.all("SELECT count(*) AS n FROM pg_prepared_statements")
        assert api and found[0]["n"] == prepared
        database.close()


@ONLY_PG
def test_a_statement_that_failed_is_prepared_again(package: Package) -> None:
    """In a pipeline it may never have reached the server."""
    api = package.api
    package.sql("ALTER TABLE jobs RENAME TO away")
    for _ in range(3):
        with pytest.raises(package.part("errors").TablesMissing):
            api.enqueue(api.Work(n=1))
    package.sql("ALTER TABLE away RENAME TO jobs")
    package.sql("ALTER TABLE jobs ADD CONSTRAINT no CHECK (job <> 'work')")
    with pytest.raises(Exception, match="no"):
        api.enqueue(api.Work(n=1))
    package.sql("ALTER TABLE jobs DROP CONSTRAINT no")
    package.sql("ALTER TABLE jobs ADD COLUMN more integer, ALTER tries TYPE bigint")
    for n in range(10):
        assert api.enqueue(api.Work(n=n)).created


PLANNED = {
    "batch": "[]",
    "orders": "[]",
    "ids": "[]",
    "keys": "[]",
    "jobs": "{}",
    "queue": "default",
    "boot": "00000000-0000-7000-8000-000000000000",
    "most": 1,
    "target": 1,
    "window": True,
    "stall_after": 1,
}


@ONLY_PG
def test_a_plan_that_is_kept_reads_no_whole_table(package: Package) -> None:
    """The tables are empty when it is made, and they grow."""
    module = package.part("database")
    database = module.Database(package.database_url, 5.0)
    for _ in range(7):  # PostgreSQL keeps the sixth
        with database.transaction() as tx:
            for sql in module._PREPARED:
                tx.run(sql, **PLANNED)
    with database.transaction() as tx:
        kept = tx.all(
            "SELECT name, cardinality(parameter_types) AS many"
            " FROM pg_prepared_statements WHERE generic_plans > 0"
        )
        assert len(kept) > len(module._PREPARED) / 2
        for each in kept:
            nulls = ", ".join(["NULL"] * each["many"])
            asked = f"EXECUTE {each['name']}" + (f" ({nulls})" if nulls else "")
            plan = "\n".join(
                str(row["QUERY PLAN"]) for row in tx.all(f"EXPLAIN {asked}")
            )
            for table in ("jobs", "jobs_calls", "jobs_spend"):
                assert f"Seq Scan on {table} " not in plan, plan
    database.close()
