"""Redis is down, full, old, a replica, empty or full of nonsense: no job cares."""

from __future__ import annotations

import random
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as client
from engine import faults
from engine.conftest import Make
from engine.faults import Package, until
from engine.proxy import Proxy

import servers

SPEC = faults.QUICK + "[workers.main]\nconcurrency = 4\n" + faults.JOBS


@pytest.fixture
def package(make: Make) -> Package:
    return make(SPEC)


@pytest.fixture
def by_hand(own_redis: servers.Redis) -> Iterator[client.Redis]:
    """A client to push things by hand."""
    connection = client.Redis.from_url(own_redis.url)
    yield connection
    connection.close()


def all_once(package: Package, many: int) -> None:
    """Every row completed by its first attempt, every handler ran once."""
    assert package.settled() == {"completed": many}
    assert {row["attempt"] for row in package.rows()} == {1}
    starts = package.ledger.starts()
    assert len(starts) == len({run.id for run in starts}) == many


def jobs(package: Package, first: int, many: int, seconds: float = 0.0) -> list[Any]:
    api = package.api
    made: list[Any] = api.enqueue_many(
        [api.Work(n=n, seconds=seconds) for n in range(first, first + many)]
    )
    return made


def test_everything_is_forgotten(package: Package, own_redis: servers.Redis) -> None:
    """50 queued and 5 running, FLUSHALL, nobody does anything: each runs once.  C004."""
    jobs(package, 0, 4, seconds=3)
    with package.worker():
        until(lambda: len(package.ledger.starts()) == 4, "the running ones")
        jobs(package, 10, 50)
        own_redis.flush()
        all_once(package, 54)


@faults.on("postgresql")
def test_forgotten_again_and_again(package: Package, own_redis: servers.Redis) -> None:
    """FLUSHALL at random times under two workers: each job runs once."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    jobs(package, 0, 200, seconds=0.02)
    with package.worker(), package.worker():
        for _ in range(10):
            time.sleep(dice.uniform(0, 0.5))
            own_redis.flush()
        all_once(package, 200)


def test_away_at_enqueue_and_in_the_middle(
    package: Package, own_redis: servers.Redis
) -> None:
    """Redis is killed: enqueue goes on, finishes go on, and the rest runs later.  C003."""
    with package.worker() as worker:
        jobs(package, 0, 4, seconds=2)
        until(lambda: len(package.ledger.starts()) == 4, "the running ones")
        own_redis.kill()
        made = jobs(package, 10, 20)
        assert all(one.created for one in made)
        api = package.api
        assert api.enqueue(api.Work(n=30), key="k").created
        assert not api.enqueue(api.Work(n=30), key="k").created
        until(
            lambda: package.states()["completed"] == 4,
            lambda: f"ends while Redis is away {package.states()}",
        )
        assert worker.running
        own_redis.start()
        all_once(package, 25)
        assert worker.running


@faults.on("sqlite")
def test_away_when_a_worker_starts(package: Package, own_redis: servers.Redis) -> None:
    """One sentence, exit 2, no password; later it starts."""
    own_redis.kill()
    secret = package.redis_url.replace("redis://", "redis://:hunter2@")
    with package.worker(env={faults.REDIS: secret}) as worker:
        assert worker.exit_code() == 2
        last = worker.log().strip().splitlines()[-1]
        assert "Redis" in last and "hunter2" not in worker.log()
        assert "Traceback" not in worker.log()
    own_redis.start()
    jobs(package, 0, 3)
    with package.worker():
        all_once(package, 3)


@faults.on("sqlite")
def test_full(package: Package, own_redis: servers.Redis) -> None:
    """Redis refuses every write: enqueue goes on, the row waits; room again: it runs."""
    own_redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    with package.worker() as worker:
        jobs(package, 0, 4, seconds=1)
        until(lambda: len(package.ledger.starts()) == 4, "the running ones")
        own_redis.command("CONFIG", "SET", "maxmemory", 1)
        made = jobs(package, 10, 10)
        assert all(one.created for one in made)
        until(
            lambda: package.states()["completed"] == 4,
            lambda: f"ends while Redis is full {package.states()}",
        )
        time.sleep(3)
        assert worker.running
        assert package.states()["queued"] == 10
        own_redis.command("CONFIG", "SET", "maxmemory", 0)
        all_once(package, 14)
        assert worker.running


@faults.on("postgresql")
def test_a_password_appears(package: Package, own_redis: servers.Redis) -> None:
    """Redis refuses us: an accepted job is no error; when it lets us in, all run."""
    api = package.api
    api.enqueue(api.Work(n=0))
    with package.worker() as worker:
        package.ready(worker)
        own_redis.command("CONFIG", "SET", "requirepass", "other")
        connection = client.Redis.from_url(own_redis.url, password="other")
        connection.client_kill_filter(_type="normal", skipme=True)
        made = jobs(package, 1, 10)
        assert len(made) == 10
        time.sleep(2)
        connection.config_set("requirepass", "")
        connection.close()
        all_once(package, 11)
        assert worker.running


@faults.on("sqlite")
def test_restored_from_an_old_dump(
    package: Package, own_redis: servers.Redis, by_hand: client.Redis
) -> None:
    """The dump's messages are of jobs that have ended: dropped without a run.  C003.

    What the dump does not know is published again.
    """
    jobs(package, 0, 4)  # published, no worker yet
    by_hand.save()
    shutil.copy(own_redis.folder / "dump.rdb", own_redis.folder / "old.rdb")
    with package.worker() as worker:
        assert package.settled() == {"completed": 4}
        jobs(package, 10, 4, seconds=2)
        until(lambda: len(package.ledger.starts()) == 8, "the running ones")
        jobs(package, 20, 4)
        own_redis.kill()
        shutil.copy(own_redis.folder / "old.rdb", own_redis.folder / "dump.rdb")
        own_redis.start()
        all_once(package, 12)
        assert worker.running


@faults.on("postgresql")
def test_made_a_replica(package: Package, own_redis: servers.Redis) -> None:
    """It becomes the replica of an empty server, then itself again: each job runs once.

    As a replica it refuses writes, and its data is replaced.
    """
    with servers.Redis() as master, package.worker() as worker:
        jobs(package, 0, 4, seconds=2)
        until(lambda: len(package.ledger.starts()) == 4, "the running ones")
        own_redis.command("REPLICAOF", servers.HOST, master.port)
        made = jobs(package, 10, 20)
        assert len(made) == 20
        until(
            lambda: package.states()["completed"] == 4,
            lambda: f"ends meanwhile {package.states()}",
        )
        time.sleep(2)
        assert worker.running
        own_redis.command("REPLICAOF", "NO", "ONE")
        all_once(package, 24)


@faults.on("sqlite")
def test_frozen(package: Package, own_redis: servers.Redis) -> None:
    """Redis does not answer for a while: enqueue takes its time-out once, then goes on."""
    with package.worker() as worker:
        jobs(package, 0, 4, seconds=1)
        until(lambda: len(package.ledger.starts()) == 4, "the running ones")
        own_redis.freeze()
        for first in range(10, 20):
            jobs(package, first, 1)
        until(
            lambda: package.states()["completed"] == 4,
            lambda: f"ends while Redis is frozen {package.states()}",
        )
        time.sleep(6)
        own_redis.thaw()
        all_once(package, 14)
        assert worker.running


@faults.on("postgresql")
def test_connections_that_lead_nowhere(
    make: Make, own_redis: servers.Redis, tmp_path: Path
) -> None:
    """Old connections are never answered again, new ones are: the worker is not deaf."""
    tree = make(SPEC).tree
    made = make(SPEC)
    with Proxy(own_redis.port) as proxy:
        url = own_redis.url.replace(str(own_redis.port), str(proxy.port))
        package = tree.at(made.database_url, url, tmp_path / "proxied")
        with package.worker() as worker:
            jobs(package, 0, 4)
            assert package.settled() == {"completed": 4}
            proxy.swallow()
            jobs(package, 10, 10)
            all_once(package, 14)
            assert worker.running


@faults.on("sqlite")
def test_clients_are_dropped(package: Package, by_hand: client.Redis) -> None:
    """Every connection is cut again and again: nothing is lost, nothing runs twice."""
    with package.worker(), package.worker():
        jobs(package, 0, 100, seconds=0.05)
        for _ in range(20):
            by_hand.client_kill_filter(_type="normal", skipme=True)
            time.sleep(0.1)
        all_once(package, 100)


# --- nonsense by hand -----------------------------------------------------------


def push(by_hand: client.Redis, queue: str, id_: bytes | str, body: bytes) -> None:
    by_hand.set(b"arq:job:" + (id_.encode() if isinstance(id_, str) else id_), body)
    by_hand.zadd(queue, {id_: 1.0})


@faults.on("sqlite")
def test_nonsense_in_the_queue(package: Package, by_hand: client.Redis) -> None:
    """Random bytes, wrong shapes, unknown ids and unknown jobs: dropped, worker alive.

    Real jobs behind them run, once.  C057.
    """
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    queue = f"{package.name}:default"
    absent = "01890000-0000-7000-8000-000000000000"
    bodies = [
        b"",
        b"\x80\x04\x95pickle",
        b"null",
        b"5",
        b"[]",
        b"{}",
        b'{"a": []}',
        b'{"a": [1, 2]}',
        b'{"a": "ab", "f": 1}',
        b'{"f": "work", "a": ["no id", 1]}',
        b'{"f": "work", "a": [null, 1]}',
        b'{"f": "work", "a": [["x"], 1]}',
        b'{"f": "work", "a": ["%s", 1]}' % absent.encode(),
        b'{"f": "work", "a": ["%s", -1]}' % absent.encode(),
        b'{"f": "work", "a": ["%s", true]}' % absent.encode(),
        b'{"f": "work", "a": ["%s", 1e400]}' % absent.encode(),
        b'{"f": "work", "a": ["%s", %s]}' % (absent.encode(), b"9" * 200),
        b'{"f": "work", "a": ["%s", %s]}' % (absent.encode(), b"9" * 5000),
        b'{"f": "nobody", "a": ["%s", 1]}' % absent.encode(),
        b'{"f": "\\ud800", "a": ["%s", 1]}' % absent.encode(),
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ]
    bodies += [dice.randbytes(dice.randrange(1, 300)) for _ in range(100)]
    for body in bodies:
        push(by_hand, queue, dice.randbytes(12), body)
    by_hand.zadd(queue, {b"no body at all": 0.5})
    by_hand.rpush("arq:job:wrong", "a list")
    by_hand.zadd(queue, {"wrong": 0.1})
    jobs(package, 0, 10)
    with package.worker() as worker:
        all_once(package, 10)
        until(lambda: by_hand.zcard(queue) == 0, "an empty queue")
        assert worker.running
        assert "Traceback" not in worker.log(), worker.log()


@faults.on("postgresql")
def test_messages_that_lie(package: Package, by_hand: client.Redis) -> None:
    """True ids with another dispatch, another name, or said twice: nothing runs twice."""
    queue = f"{package.name}:default"
    made = jobs(package, 0, 5)
    scheduled = package.api.enqueue(package.api.Work(n=9), delay=3600)
    for turn in range(3):
        for one in [*made, scheduled]:
            for dispatch in (0, 1, 2, 7):
                body = b'{"f": "plain", "a": ["%s", %d]}' % (
                    one.id.encode(),
                    dispatch,
                )
                push(by_hand, queue, f"lie{turn}{dispatch}{one.id}", body)
    with package.worker() as worker:
        for one in made:
            package.in_state(one.id, "completed")
        until(lambda: by_hand.zcard(queue) == 0, "an empty queue")
        time.sleep(2.5)
        assert worker.running
    row = package.row(scheduled.id)
    assert (row["state"], row["attempt"]) == ("queued", 0), "it ran before its time"
    starts = package.ledger.starts()
    assert len(starts) == len({run.id for run in starts}) == 5
    assert {package.row(one.id)["attempt"] for one in made} == {1}


@pytest.mark.parametrize("kind", ["string", "list", "hash", "stream", "set"])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_queue_of_the_wrong_type(
    package: Package, by_hand: client.Redis, kind: str
) -> None:
    """Somebody wrote something else under the queue's key: the jobs run all the same."""
    queue = f"{package.name}:default"
    make_wrong = {
        "string": lambda: by_hand.set(queue, "x"),
        "list": lambda: by_hand.rpush(queue, "x"),
        "hash": lambda: by_hand.hset(queue, "a", "x"),
        "stream": lambda: by_hand.xadd(queue, {"a": "x"}),
        "set": lambda: by_hand.sadd(queue, "x"),
    }
    make_wrong[kind]()
    jobs(package, 0, 5)
    with package.worker() as worker:
        all_once(package, 5)
        by_hand.delete(queue)
        make_wrong[kind]()
        jobs(package, 10, 5)
        all_once(package, 10)
        assert worker.running


def test_redis_holds_only_the_window(package: Package, by_hand: client.Redis) -> None:
    """Two thousand rows wait in the database, a handful of messages in Redis."""
    queue = f"{package.name}:default"
    jobs(package, 0, 2000)
    assert by_hand.zcard(queue) <= 4
    most = 0
    with package.worker(), package.worker():
        while package.states()["queued"]:
            most = max(most, by_hand.zcard(queue))
        all_once(package, 2000)
    # The slots of two workers and four; two finishes at once may each fill the window.
    assert most <= 2 * (2 * 4 + 4), most
