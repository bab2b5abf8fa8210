"""What an operator asks: status, health, cancel, recover."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from engine.conftest import MakePackage
from engine.packages import Package

import servers

SPEC = """
schema_version = 1

[project]
name = "ops"

[stall]
heartbeat = "500ms"
after = "2s"
sweep = "1s"

[queues.default]
aliases = ["former"]

[queues.other]

[jobs.note.payload]
n = "int"

[jobs.aside]
queue = "other"

[jobs.aside.payload]
n = "int"
"""
HANDLERS = """
import asyncio

async def note(job, payload):
    await asyncio.sleep(payload.n)

aside = note
"""
UNKNOWN = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def package(make_package: MakePackage) -> Package:
    return make_package(SPEC, handlers={"ops_handlers": HANDLERS})


def reasons(package: Package, code: int = 1, **env: str) -> list[str]:
    found = package.json("health", code=code, **env)
    assert found["healthy"] is (not found["reasons"])
    return list(found["reasons"])


def set_all(package: Package, column: str, value: object) -> None:
    package.query(f"UPDATE {package.table} SET {column} = ?", value)


def test_status(package: Package) -> None:
    package.python("""
enqueue_many([Note(n=0), Note(n=1), Aside(n=2)])
answer = cancel(enqueue(Note(n=3)).id)
enqueue(Note(n=4), delay=60)
""")
    package.query(
        f"UPDATE {package.table} SET queue = 'former' WHERE reason = 'scheduled'"
    )
    boot = package.fake_boot(["default", "former"], ["note"])
    now = package.json("status")
    assert now["states"] == {
        "queued": 4,
        "active": 0,
        "held": 0,
        "completed": 0,
        "failed": 0,
        "cancelled": 1,
    }
    default, other = now["queues"]["default"], now["queues"]["other"]
    assert set(now["queues"]) == {"default", "other"}
    assert (default["queued"], default["active"], default["workers"]) == (3, 0, 1)
    assert 0 < default["oldest_due_s"] < 60
    assert (other["queued"], other["workers"]) == (1, 0)
    (worker,) = now["workers"]
    assert worker["id"] == boot and worker["queues"] == ["default", "former"]
    assert (worker["active"], worker["slots"]) == (0, 4)
    assert (now["dead_letters"], now["held"], now["agents"]) == (0, 0, {})
    assert now["removed_jobs"] == {}
    set_all(package, "job", "gone")
    assert package.json("status")["removed_jobs"] == {"gone": 4}


def test_health_of_queues(package: Package) -> None:
    assert reasons(package, 0) == []
    package.python("enqueue(Note(n=0)); enqueue(Aside(n=0))")
    package.fake_boot(["default"], ["note", "aside"])
    (reason,) = reasons(package)  # the other queue's row is young, and a worker lives
    assert reason.startswith("queue other: 1 due, 0 live workers")
    set_all(package, "run_at", package.instant(-60))
    package.fake_boot(["other"], ["note", "aside"], slots=0)
    other, reason = reasons(package)  # a boot without slots is a helper, no worker
    assert other.startswith("queue other: 1 due, 0 live workers")
    assert reason.startswith("queue default: 1 due and unclaimed, the oldest for 6")
    set_all(package, "job", "gone")
    assert "job gone: 2 rows wait and no live worker runs it" in reasons(package)


def test_health_where_all_waits_for_its_time(package: Package) -> None:
    """Nothing is due yet, and nobody is there for when it is."""
    package.python("enqueue(Note(n=0), delay=3600)")
    assert reasons(package) == ["queue default: 1 wait for their time, 0 live workers"]
    package.fake_boot(["default"], ["note"])
    assert reasons(package, 0) == []


def test_health_of_tables(package: Package) -> None:
    package.query(f"ALTER TABLE {package.table} RENAME COLUMN cause TO causes")
    (reason,) = reasons(package)
    assert "drifted" in reason and f"{package.table}.cause" in reason
    package.query(f"DROP TABLE {package.table}_migrations")
    (reason,) = reasons(package)
    assert "migrate" in reason


def test_health_of_services(
    make_package: MakePackage, own_redis: servers.Redis, dialect: str
) -> None:
    package = make_package(
        SPEC, handlers={"ops_handlers": HANDLERS}, redis_url=own_redis.url
    )
    own_redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    (reason,) = reasons(package)
    assert "maxmemory-policy allkeys-lru" in reason
    own_redis.stop()
    away = "postgresql://u:hush@127.0.0.1:1/x"
    if dialect == "sqlite":
        away = "sqlite:////no/such/folder/record.db"
    database, redis = reasons(package, DATABASE_URL=away)
    assert "not" in database and "migrate" not in database
    assert "hush" not in database
    assert "Redis at 127.0.0.1" in redis


def test_cancel(package: Package) -> None:
    worker = package.worker()
    ids = package.python("""
running = enqueue(Note(n=60)).id
done = enqueue(Note(n=0)).id
answer = [running, done, enqueue(Note(n=0), delay=60).id]
wait(done, 30)
""")
    running, done, waiting = ids
    package.wait_until(lambda: package.json("status")["states"]["active"] == 1)
    answers = package.json("cancel", *ids, "x", UNKNOWN, waiting, code=1)
    assert answers == {
        "cancelled": [waiting],
        "cancelling": [running],
        "already_finished": [done],
        "not_found": ["x", UNKNOWN],
    }
    package.wait_until(lambda: package.json("status")["states"]["cancelled"] == 2)
    row = package.json("show", running)
    assert row["state"] == "cancelled" and row["cancelled_by"]
    assert [attempt["outcome"] for attempt in row["attempts"]] == ["cancelled"]
    again = package.json("cancel", *ids)
    assert again["already_finished"] == ids
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def stranded(package: Package, dead: bool) -> Any:
    """A row that is active for a boot that is declared dead, or seems to live."""
    (id_,) = package.python("answer = [enqueue(Note(n=0)).id]")
    boot = package.fake_boot(["default"], ["note"], dead=dead)
    package.query(
        f"UPDATE {package.table} SET state = 'active', worker = ?, attempt = 1,"
        " fence = fence + 1, dispatched_at = NULL, started_at = ? WHERE id = ?",
        boot,
        package.instant(-60),
        id_,
    )
    return id_


def test_recover_takes_rows_of_dead_boots_only(package: Package) -> None:
    lost, alive = stranded(package, dead=True), stranded(package, dead=False)
    counts = package.json("recover")
    assert set(counts) == {
        "published",
        "recovered",
        "held",
        "failed",
        "slots",
        "errors",
    }
    assert (counts["recovered"], counts["errors"]) == (1, 0)
    assert package.json("show", lost)["reason"] == "recovered"
    assert package.json("show", alive)["state"] == "active"


def test_recover_declares_nobody_dead(package: Package) -> None:
    id_ = stranded(package, dead=False)
    silent = package.instant(-3600)
    package.query(f"UPDATE {package.table}_boots SET last_seen = ?", silent)
    assert package.json("recover")["recovered"] == 0
    assert package.json("show", id_)["state"] == "active"


def test_recover_publishes_what_redis_lost(
    make_package: MakePackage, own_redis: servers.Redis
) -> None:
    package = make_package(
        SPEC, handlers={"ops_handlers": HANDLERS}, redis_url=own_redis.url
    )
    package.fake_boot(["default"], ["note"])
    id_ = package.python("answer = enqueue(Note(n=0)).id")
    assert package.json("recover")["published"] == 0
    own_redis.command("DEL", "ops:default")  # only the queue: the server is the same
    assert package.json("recover")["published"] == 1
    assert own_redis.command("ZCARD", "ops:default") == 1
    assert package.json("show", id_)["dispatch"] == 2
