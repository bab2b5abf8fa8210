"""Cases that people reported and that no other test tries as they were reported.

Each is run as its words say, at a shorter time: see the number in a test's docstring.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis as client
import trustme
from cells import KINDS
from engine import faults
from engine.conftest import Make
from engine.faults import Package, until
from engine.units import Engine

import servers

SPEC = faults.QUICK + faults.JOBS
CA = "QGEN_TEST_ENGINE_CA"
HEAD = faults.HEAD


def workers(concurrency: int) -> str:
    return f"{faults.QUICK}[workers.main]\nconcurrency = {concurrency}\n{faults.JOBS}"


@pytest.fixture
def package(make: Make) -> Package:
    return make(SPEC)


# --- odd rows -------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("column", ["payload", "job"])
def test_a_text_that_is_not_utf_8(make: Make, column: str) -> None:
    """SQLite stores any bytes as text: such a row stops no sweep and no claim.  C008."""
    package = make(SPEC)
    api = package.api
    stranded = api.enqueue_many([api.Work(n=n) for n in range(5)])
    package.sql(
        "UPDATE jobs SET state = 'active', worker = 'gone', attempt = 1, fence = 1,"
        " started_at = created_at, dispatched_at = NULL"
    )
    waiting = api.enqueue_many([api.Work(n=n) for n in range(5, 10)])
    odd = stranded[2].id, waiting[2].id
    for id_ in odd:
        bad = f"UPDATE jobs SET {column} = CAST(x'7b80ff7d' AS TEXT) WHERE id = ?"
        package.sql(bad, id_)
    with package.worker() as worker:
        for one in (*stranded, *waiting):
            if one.id not in odd:
                package.in_state(one.id, "completed")
        if column == "payload":
            for id_ in odd:
                (row,) = package.sql("SELECT reason FROM jobs WHERE id = ?", id_)
                assert row["reason"] == "bad_payload"
        assert worker.running
        assert "does not answer" not in worker.log(), worker.log()
    assert len(package.ledger.starts()) == 8
    assert package.run("list").returncode == 0


# --- sweeps ---------------------------------------------------------------------


def test_a_sweep_every_ten_milliseconds(make: Make) -> None:
    """Between dequeue and claim a job is nowhere, and is no stall either.  C013."""
    package = make(workers(4))
    api = package.api
    broker = package.part("broker").Broker()
    database = package.part("database").Database(package.database_url, 5.0)
    sweeper = package.part("recovery").Sweeper(database, broker)
    counted: list[Any] = []
    done = threading.Event()

    def sweep() -> None:
        while not done.wait(0.01):
            counted.append(sweeper.sweep())

    thread = threading.Thread(target=sweep)
    with package.worker() as worker:
        package.ready(worker)
        thread.start()
        try:
            for _ in range(15):
                api.enqueue_many([api.Work(n=1, seconds=0.005) for _ in range(20)])
                time.sleep(0.02)
            assert package.settled() == {"completed": 300}
        finally:
            done.set()
            thread.join()
            database.close()
            broker.close()
    assert sum(counts.recovered + counts.failed for counts in counted) == 0
    assert {row["attempt"] for row in package.rows()} == {1}
    assert len(package.ledger.starts()) == 300


def test_a_finish_meets_the_sweep(engine: Engine) -> None:
    """A boot is dead and its job ends as the sweep looks: one of the two counts.  C017.

    Completed is completed, with its payload; recovered is the same row, never another.
    """
    broker = engine.part("broker").Broker()
    sweeper = engine.part("recovery").Sweeper(engine.database(), broker)
    for n in range(30):
        boot = engine.boot()
        claim = engine.claimed(boot, engine.api.Work(n=n))
        ending = engine.outcomes.completed(engine.held(claim, boot), n)
        with engine.transaction() as tx:
            tx.run(engine.statements.BOOT_END, boot=boot)
        ended: list[dict[str, str]] = []
        both = threading.Barrier(2)

        def finish(
            ending: Any = ending, both: Any = both, ended: Any = ended, turn: int = n
        ) -> None:
            both.wait()
            time.sleep(turn % 3 * 0.004)
            ended.append(engine.finish(ending))

        thread = threading.Thread(target=finish)
        thread.start()
        both.wait()
        sweeper.sweep()
        thread.join()
        sweeper.sweep()
        (row,) = engine.package.rows()
        assert row["state"] == ("completed" if ended[0] else "queued")
        assert (row["payload"]["n"], row["attempt"]) == (n, 1)
        assert len(engine.package.attempts(claim.id)) == (0 if ended[0] else 1)
        engine.package.sql("DELETE FROM jobs")
    broker.close()


@faults.on("postgresql")
def test_waiting_behind_a_long_job_is_no_stall(make: Make) -> None:
    """One slot; the job behind waits for three times `stall.after`, then runs.  C014."""
    package = make(workers(1))
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        long, behind = api.enqueue_many([api.Work(n=0, seconds=12), api.Work(n=1)])
        assert package.settled() == {"completed": 2}
        assert worker.running
    for one in (long, behind):
        assert package.row(one.id)["attempt"] == 1
    assert [run.n for run in package.ledger.starts()] == [0, 1]


@faults.on("sqlite")
def test_workers_start_beside_a_long_job(package: Package) -> None:
    """Start-up recovery takes nothing of the living, nor what is just enqueued.  C009."""
    api = package.api
    with package.worker() as first:
        package.ready(first)
        long = api.enqueue(api.Work(n=0, seconds=9)).id
        until(lambda: package.ledger.starts(0), "its start")
        made = []
        for _ in range(2):
            with package.worker() as other:
                until_ready = time.monotonic() + 2
                while time.monotonic() < until_ready:
                    made.append(api.enqueue(api.Work(n=1)).id)
                    time.sleep(0.05)
                package.ready(other)
                other.terminate()
                assert other.exit_code() == 0
        assert package.settled() == {"completed": len(made) + 1}
    assert package.row(long)["attempt"] == 1
    starts = package.ledger.starts()
    assert len(starts) == len({run.id for run in starts}) == len(made) + 1


# --- callers and people ---------------------------------------------------------


def test_waiting_for_a_result_that_does_not_come(make: Make) -> None:
    """At its deadline `wait` tells the row's state, whatever the queue's name.  C021."""
    package = make(faults.QUICK + "[queues.odd_one]\n" + faults.JOBS)
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        id_ = api.enqueue(api.Work(n=1, seconds=60), queue="odd_one").id
        until(lambda: package.ledger.starts(1), "its start")
        worker.kill()
    before = time.monotonic()
    assert api.wait(id_, timeout=1)["state"] == "active"
    assert asyncio.run(api.await_result(id_, timeout=1))["state"] == "active"
    assert 2 <= time.monotonic() - before < 20
    quick = api.enqueue(api.Work(n=2), queue="odd_one").id
    with package.worker():
        assert api.wait(quick)["state"] == "completed"
        assert asyncio.run(api.await_result(quick))["result"] == {"n": 2, "attempt": 1}


def test_health_of_a_killed_and_of_a_busy_worker(package: Package) -> None:
    """Busy with a blocked loop: healthy.  Killed: not, though nothing is due.  C087."""
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        busy = api.enqueue(api.Work(n=1, mode="block", seconds=7)).id
        until(lambda: package.ledger.starts(1), "its start")
        time.sleep(4)
        assert package.json("health") == {"healthy": True, "reasons": []}
        package.in_state(busy, "completed")
        pid = worker.pid
        worker.kill()
    time.sleep(5)
    said = package.run("health")
    assert said.returncode == 1
    assert f"process {pid} on " in said.stdout + said.stderr
    with package.worker() as other:
        package.ready(other)
        # another lives, and has declared it dead
        until(lambda: package.run("health").returncode == 0, other.log)
        other.terminate()
        assert other.exit_code() == 0
    assert package.run("health").returncode == 0, "it was stopped, not lost"


@faults.on("postgresql")
def test_five_hundred_cancels(make: Make) -> None:
    """500 that wait and 5 that run, in one command: all are cancelled.  C046."""
    package = make(workers(5))
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        running = api.enqueue_many([api.Work(n=0, seconds=60) for _ in range(5)])
        until(lambda: len(package.ledger.starts()) == 5, "their start")
        waiting = api.enqueue_many([api.Work(n=1) for _ in range(500)])
        said = package.json("cancel", *[one.id for one in (*waiting, *running)])
        assert (len(said["cancelled"]), len(said["cancelling"])) == (500, 5)
        assert package.settled() == {"cancelled": 505}
        again = package.json("cancel", *[one.id for one in (*waiting, *running)])
        assert len(again["already_finished"]) == 505
        assert worker.running
    assert len(package.ledger.starts()) == 5


@faults.on("sqlite")
def test_a_handler_moves_while_jobs_wait(make: Make) -> None:
    """Enqueued at a prompt; the function is elsewhere when a worker comes.  C104."""
    spec = """
[jobs.moved]
handler = "{module}:moved"
[jobs.moved.payload]
n = "int"
"""
    before = make(faults.QUICK + spec.format(module="old_place"), name="moves")
    prompt = "from moves import *\nfor n in range(5): enqueue(Moved(n=n))\n\n"
    subprocess.run(
        [sys.executable, "-i"],
        input=prompt.encode(),
        cwd=before.tree.folder,
        env=before.env,
        capture_output=True,
    )
    assert before.states() == {"queued": 5}
    after = make(
        faults.QUICK + spec.format(module="new.place"), name="moves", folder="new"
    )
    place = after.tree.folder / "new" / "place.py"
    place.parent.mkdir(exist_ok=True)
    place.write_text("def moved(job, payload):\n    return 'moved'\n")
    with after.worker():
        assert after.settled() == {"completed": 5}
    assert {row["result"] for row in after.rows()} == {"moved"}


# --- ends of workers ------------------------------------------------------------


@faults.on("sqlite")
def test_killed_within_the_grace(make: Make) -> None:
    """SIGTERM, and SIGKILL before the grace is over: as if it had crashed.  C067."""
    package = make(SPEC.replace('grace = "2s"', 'grace = "60s"'))
    api = package.api
    with package.worker() as worker:
        id_ = api.enqueue(api.Work(n=1, seconds=5)).id
        until(lambda: package.ledger.starts(1), "its start")
        worker.terminate()
        time.sleep(1.5)
        assert worker.running
        worker.kill()
    with package.worker():
        assert package.in_state(id_, "completed")["attempt"] == 2
    assert [lost["outcome"] for lost in package.attempts(id_)] == ["worker_lost"]


@faults.on("postgresql")
def test_what_a_stopped_worker_had_in_sight(make: Make) -> None:
    """Two slots, twenty jobs: eighteen rows are as they were and run elsewhere.  C069."""
    package = make(workers(2))
    api = package.api
    gate = package.folder / "gate"
    with package.worker() as worker:
        package.ready(worker)
        api.enqueue_many([api.Work(n=n, mode=f"gate:{gate}") for n in range(20)])
        until(lambda: len(package.ledger.starts()) == 2, "two of them")
        worker.terminate()
        assert worker.exit_code() == 0
    assert sorted(row["attempt"] for row in package.rows()) == [0] * 18 + [1] * 2
    gate.touch()
    with package.worker():
        assert package.settled() == {"completed": 20}
    assert {row["attempt"] - row["releases"] for row in package.rows()} == {1}


# --- Redis ----------------------------------------------------------------------


def test_delayed_jobs_and_a_cycled_redis(make: Make, tmp_path: Path) -> None:
    """Twenty are due soon; Redis dies and comes back with its data: on time.  C149."""
    made = make(SPEC)
    with servers.Redis(persist=True) as redis:
        package = made.tree.at(made.database_url, redis.url, tmp_path / "cycled")
        api = package.api
        with package.worker() as worker:
            package.ready(worker)
            now = time.time()
            api.enqueue(api.Work(n=0, seconds=2))
            for n in range(1, 21):
                api.enqueue(api.Work(n=n), delay=now + 7 - time.time())
            until(lambda: package.ledger.starts(0), "one that runs")
            redis.kill()
            redis.start()
            assert package.settled() == {"completed": 21}
            assert worker.running
    starts = sorted(run.at - now for run in package.ledger.starts() if run.n)
    assert len(starts) == 20
    assert starts[0] > 6.9 and starts[-1] < 12, starts


@faults.on("sqlite")
def test_redis_keeps_no_results(make: Make, own_redis: servers.Redis) -> None:
    """A thousand results of 20 kB: Redis's memory is as before.  C078."""
    handlers = "async def big(job, payload):\n    return 'x' * 20_000\n"
    package = make(faults.QUICK + '[jobs.big.payload]\nn = "int"\n', handlers)
    api = package.api
    by_hand = client.Redis.from_url(own_redis.url)
    with package.worker():
        used = []
        for _ in range(3):
            api.enqueue_many([api.Big(n=n) for n in range(500)])
            package.settled()
            memory: Any = by_hand.info("memory")
            used.append(memory["used_memory"])
        assert not list(by_hand.scan_iter("arq:*"))
    by_hand.close()
    assert used[2] - used[0] < 1_000_000, used


@faults.on("postgresql")
def test_far_future_rows_stay_in_the_database(make: Make) -> None:
    """20,000 are due in an hour, a hundred now: these run, at constant memory.  C124."""
    package = make(workers(8))
    api = package.api
    later = api.enqueue(api.Work(n=0), delay=3600).id
    columns = ", ".join(name for name in package.row(later) if name != "id")
    ids = {
        "postgresql": "SELECT ('01990000-0000-7000-8000-' ||"
        " lpad(to_hex(i), 12, '0'))::uuid AS new FROM generate_series(1, 20000) i",
        "sqlite": "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s"
        " WHERE i < 20000)"
        " SELECT printf('01990000-0000-7000-8000-%012x', i) AS new FROM s",
    }[package.dialect].replace("%", "%%" if package.dialect == "postgresql" else "%")
    package.sql(
        f"INSERT INTO jobs (id, {columns})"
        f" SELECT n.new, {columns} FROM jobs t, ({ids}) n WHERE t.id = ?",
        later,
    )
    with package.worker() as worker:
        package.ready(worker)
        before = memory_of(worker.pid)
        api.enqueue_many([api.Work(n=1) for _ in range(100)])
        until(lambda: package.states()["completed"] == 100, "the hundred")
        time.sleep(2.5)  # rounds and sweeps
        assert memory_of(worker.pid) < before + 20_000
    assert package.states() == {"completed": 100, "queued": 20_001}


def memory_of(pid: int) -> int:
    """Kilobytes."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("only Linux tells")
    (line,) = [one for one in status.read_text().splitlines() if "VmRSS" in one]
    return int(line.split()[1])


@faults.on("sqlite")
def test_a_cluster_is_refused(make: Make, tmp_path: Path) -> None:
    """A worker does not start, `health` says why, an accepted job waits.  C079."""
    made = make(SPEC)
    with servers.Redis(options=["--cluster-enabled", "yes"]) as redis:
        package = made.tree.at(made.database_url, redis.url, tmp_path / "cluster")
        with package.worker() as worker:
            assert worker.exit_code() == 2
            assert "is a Redis Cluster" in worker.log()
            assert "single Redis server" in worker.log()
            assert "Traceback" not in worker.log()
        said = package.run("health")
        assert said.returncode == 1 and "Cluster" in said.stdout + said.stderr
        assert package.api.enqueue(package.api.Work(n=1)).state == "queued"
        one_sentence(package, "is a Redis Cluster")
    one_sentence(package, "does not answer")  # it is gone


def one_sentence(package: Package, says: str) -> None:
    """What arq's own command says of a Redis that it cannot use."""
    with package.start("-m", "arq", f"{package.name}.worker.Main") as worker:
        assert worker.exit_code() == 2, worker.log()
        (line,) = worker.log().strip().splitlines()
        assert says in line


def tls(folder: Path, *names: str) -> servers.Tls:
    """A new authority and a certificate for these names."""
    folder.mkdir()
    authority = trustme.CA()
    issued = authority.issue_cert(*names)
    files = servers.Tls(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
    issued.private_key_pem.write_to_path(str(files.key))
    (chain,) = issued.cert_chain_pems
    chain.write_to_path(str(files.cert))
    authority.cert_pem.write_to_path(str(files.ca))
    return files


def self_signed(folder: Path) -> servers.Tls:
    """A certificate that nobody but itself vouches for."""
    folder.mkdir()
    itself = trustme.CA()
    files = servers.Tls(folder / "cert.pem", folder / "key.pem", folder / "cert.pem")
    itself.private_key_pem.write_to_path(str(files.key))
    itself.cert_pem.write_to_path(str(files.cert))
    return files


@contextmanager
def over_tls(
    made: Package,
    monkeypatch: pytest.MonkeyPatch,
    spec: str,
    files: servers.Tls,
    kind: str,
) -> Iterator[Package]:
    """The package with these keys of [redis], on a server with this certificate."""
    monkeypatch.setattr(faults, "HEAD", HEAD + spec)
    tree = faults.build(made.dialect, SPEC + f"# {spec!r}\n", kind=KINDS[kind])
    with servers.Redis(tls=files) as redis:
        package = tree.at(made.database_url, redis.url, made.folder)
        package.env[CA] = str(files.ca)
        monkeypatch.setenv(CA, str(files.ca))
        yield package


VERIFIED = f'tls = true\nca_file_env = "{CA}"\n'
each_backend = pytest.mark.parametrize("kind", ["arq", "rq-fork", "celery-prefork"])


@faults.on("sqlite")
@each_backend
def test_a_certificate_that_is_good(
    package: Package, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    """Callers, worker and health speak TLS; an open address is refused.  C080."""
    files = tls(tmp_path / "tls", "localhost")
    with over_tls(package, monkeypatch, VERIFIED, files, kind) as made:
        with made.worker() as worker:
            made.ready(worker)
            id_ = made.api.enqueue(made.api.Work(n=1)).id
            made.in_state(id_, "completed")
            assert made.run("health").returncode == 0
            assert "not verified" not in worker.log()
        open_ = made.redis_url.replace("rediss://", "redis://")
        with made.worker(env={faults.REDIS: open_}) as worker:
            assert worker.exit_code() == 2
            assert "rediss://" in worker.log()


@faults.on("sqlite")
@each_backend
@pytest.mark.parametrize("wrong", ["authority", "host", "self-signed"])
def test_a_certificate_that_is_not(
    package: Package,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    wrong: str,
    kind: str,
) -> None:
    """One sentence at the start; unverified only where the spec says so.  C080."""
    names = ["elsewhere.example"] if wrong == "host" else ["localhost"]
    files = (
        self_signed(tmp_path / "tls")
        if wrong == "self-signed"
        else tls(tmp_path / "tls", *names)
    )
    other = tls(tmp_path / "other", "localhost")
    env = {CA: str(files.ca if wrong == "host" else other.ca)}
    with over_tls(package, monkeypatch, VERIFIED, files, kind) as made:
        for url in (made.redis_url, f"{made.redis_url}?ssl_cert_reqs=none"):
            with made.worker(env=env | {faults.REDIS: url}) as worker:
                assert worker.exit_code() == 2, worker.log()
                assert "certificate" in worker.log()
                assert "Traceback" not in worker.log()
    unverified = "tls = true\nverify = false\n"
    with over_tls(package, monkeypatch, unverified, files, kind) as made:
        with made.worker(env=env) as worker:
            made.ready(worker)
            assert "not verified" in worker.log()


# --- the database ---------------------------------------------------------------


def test_a_column_of_another_type(package: Package) -> None:
    """Existence is not equality: migrate stops and says what it found.  C108."""
    if package.dialect == "sqlite":
        package.sql("ALTER TABLE jobs_attempts DROP COLUMN traceback")
        package.sql("ALTER TABLE jobs_attempts ADD COLUMN traceback INTEGER")
    else:
        package.sql("ALTER TABLE jobs_attempts ALTER COLUMN traceback TYPE int USING 1")
    said = package.run("migrate")
    assert said.returncode == 2
    lines = said.stderr.lower()
    assert "jobs_attempts.traceback: expected text, found integer" in lines
    package.drop_every_table()
    package.sql("CREATE TABLE jobs (id text, state text)")
    said = package.run("migrate")
    assert said.returncode == 2 and "the table jobs exists already" in said.stderr
    package.sql("DROP TABLE jobs")
    assert package.run("migrate").returncode == 0, "it left half of its tables"


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_nothing_is_open_while_a_handler_runs(package: Package) -> None:
    """No transaction lasts while a job does, so no limit on idle ones is met.  C094."""
    api = package.api
    with psycopg.connect(package.database_url, autocommit=True) as admin:
        name = admin.info.dbname
        limit = "idle_in_transaction_session_timeout = '2s'"
        admin.execute(f'ALTER DATABASE "{name}" SET {limit}'.encode())
        with package.worker() as worker:
            package.ready(worker)
            ids = [
                api.enqueue(api.Work(n=1, seconds=5)).id,
                api.enqueue(api.Plain(n=2, seconds=5)).id,
            ]
            until(lambda: len(package.ledger.starts()) == 2, "their start")
            longest = 0.0
            while package.states()["completed"] < 2:
                (age,) = admin.execute(
                    "SELECT coalesce(max(extract(epoch FROM clock_timestamp()"
                    " - xact_start)), 0)::float FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                ).fetchone() or (0.0,)
                longest = max(longest, age)
            assert longest < 2, longest
            assert worker.running
    assert {package.row(id_)["attempt"] for id_ in ids} == {1}
