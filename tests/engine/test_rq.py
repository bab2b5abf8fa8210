"""rq: its format, its own command, its dashboard, the versions it may have."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from uuid import uuid4

import pytest
import redis as client
import rq
from cells import KINDS
from engine import faults
from engine.faults import Package, until
from rq.job import Job
from rq.serializers import JSONSerializer

import servers

FORK, SIMPLE = KINDS["rq-fork"], KINDS["rq-simple"]
SPEC = faults.QUICK + "[workers.main]\nconcurrency = 2\n" + faults.JOBS


@pytest.fixture
def dialect() -> str:
    """Nothing here knows the database."""
    return "sqlite"


@pytest.fixture
def package(
    dialect: str,
    database_url: str,
    own_redis: servers.Redis,
    tmp_path: Path,
    clean_environment: None,
) -> Package:
    tree = faults.build(dialect, SPEC, kind=FORK)
    return tree.at(database_url, own_redis.url, tmp_path / "run").migrate()


@pytest.fixture
def hand(own_redis: servers.Redis) -> Iterator[client.Redis]:
    """A client to look with."""
    made = client.Redis.from_url(own_redis.url)
    yield made
    made.close()


@pytest.fixture
def broker(package: Package) -> Iterator[Any]:
    made = package.part("broker").Broker()
    yield made
    made.close()


def message(package: Package, dispatch: int = 1, **more: Any) -> Any:
    kind = package.part("messages").Message
    fields = {"id": str(uuid4()), "job": "work", "queue": "default"} | more
    return kind(dispatch=dispatch, **fields)


# --- the format -----------------------------------------------------------------


def test_a_message_is_a_job_as_rq_reads_it(
    package: Package, broker: Any, hand: client.Redis
) -> None:
    """Its name, its arguments, no result, no life of its own; rq's tools find it."""
    sent = message(package, 2)
    broker.publish([sent])
    name = f"{package.name}:default"
    (queue,) = rq.Queue.all(connection=hand, serializer=JSONSerializer)
    assert (queue.name, queue.job_ids) == (name, [f"{sent.id}_2"])
    job = Job.fetch(f"{sent.id}_2", connection=hand, serializer=JSONSerializer)
    assert (job.func_name, list(job.args)) == ("work", [sent.id, 2])
    assert job.description == f"work {sent.id}"
    assert (job.origin, job.get_status()) == (name, "queued")
    assert (job.result_ttl, job.failure_ttl, job.ttl) == (0, 3600, None)
    assert job.retries_left is None and job.timeout is not None
    # For one whose taker was killed between the list and the hash: far above any wait.
    assert 29 * 86400 < hand.ttl(job.key) <= 30 * 86400


def test_published_twice_is_one_message(
    package: Package, broker: Any, hand: client.Redis
) -> None:
    sent = message(package)
    broker.publish([sent, sent])
    broker.publish([sent])
    assert hand.llen(f"rq:queue:{package.name}:default") == 1


def test_what_waits_is_in_the_order_of_age(
    package: Package, broker: Any, hand: client.Redis
) -> None:
    """High ones before the others and in their own order; before them what is older."""
    plain = [message(package, sort_at=at) for at in (20, 21)]
    high = [message(package, priority="high", sort_at=at) for at in (10, 11)]
    old = message(package, priority="low", sort_at=5)
    key = f"rq:queue:{package.name}:default"
    hand.rpush(key, "another program's")
    broker.publish([plain[0], high[0]])
    for each in (old, high[1], plain[1]):
        broker.publish([each])
    hand.rpush(key, "another program's")
    ids = [id_.decode() for id_ in hand.lrange(key, 0, -1)]
    assert ids[1:-1] == [m.id for m in (old, *high, *plain)]


def test_what_waits_is_known(package: Package, broker: Any, hand: client.Redis) -> None:
    """In the list and whole; a taken one, an evicted one and an odd key are not."""
    whole, taken, half = (message(package) for _ in range(3))
    broker.publish([whole, taken, half])
    hand.lrem(f"rq:queue:{package.name}:default", 0, taken.id)
    hand.delete(f"rq:job:{half.id}")
    odd = message(package, queue="odd")
    hand.set(f"rq:queue:{package.name}:odd", "no list")
    assert broker.known([whole, taken, half, odd]) == {whole.id}


ODD = [b"", b"x", b"\x78\x9c", b"[]", b'["work", null, ["5", 1], {}]', b"[" * 100_000]


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("packed", [True, False])
def test_odd_data_is_no_message(package: Package, body: bytes, packed: bool) -> None:
    import zlib

    data = zlib.compress(body) if packed else body
    assert package.part("broker").message_in(data) is None


def test_a_bomb_is_not_unpacked(package: Package) -> None:
    import zlib

    data = zlib.compress(b"[" + b" " * 200_000_000 + b"]")
    began = time.monotonic()
    assert package.part("broker").message_in(data) is None
    assert time.monotonic() - began < 1


# --- what is set ----------------------------------------------------------------


def test_every_setting_is_one_that_rq_knows(package: Package) -> None:
    """rq takes unknown names of a worker silently: what is given must be its own."""
    known = set(inspect.signature(rq.worker.BaseWorker.__init__).parameters)
    assert {"name", "connection", "serializer", "worker_ttl"} <= known
    created = set(inspect.signature(Job.create).parameters)
    text = (package.path / "broker.py").read_text("utf-8")
    call = text.partition("Job.create(")[2].partition("\n    )")[0]
    given = {
        line.strip().partition("=")[0]
        for line in call.splitlines()
        if "=" in line and line.startswith("        ") and line[8] != " "
    }
    assert {"result_ttl", "failure_ttl", "timeout"} <= given <= created


def test_another_version_is_refused(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, errors = package.part("worker"), package.part("errors")
    for version in ("2.10.9", "3.1.0", "4.0"):
        monkeypatch.setattr(
            worker.importlib.metadata, "version", lambda _n, v=version: v
        )
        with pytest.raises(errors.SetupError, match=f"rq {version} is not supported"):
            worker.check_version()
    for version in ("2.11.0", "2.12.0", "3.0.7"):
        monkeypatch.setattr(
            worker.importlib.metadata, "version", lambda _n, v=version: v
        )
        worker.check_version()


# --- a process for each job -----------------------------------------------------

SLOW: Final = faults.QUICK + faults.JOBS + """
[workers.main]
concurrency = 1
on_start = "tested_handlers:opened_worker"
on_stop = "tested_handlers:closed_worker"
"""
SLOW_HANDLERS: Final = faults.HANDLERS + """
PLACE = os.path.dirname(LEDGER)


def opened_worker(worker):
    open(f"{PLACE}/starts-{os.getpid()}", "w").close()
    if not os.path.exists(f"{PLACE}/quick"):
        time.sleep(5)
    open(f"{PLACE}/opened-{os.getpid()}", "w").close()


def closed_worker(worker):
    open(f"{PLACE}/closed-{os.getpid()}", "w").close()
"""


def test_on_start_takes_longer_than_the_sweep_and_the_stall(
    dialect: str,
    database_url: str,
    own_redis: servers.Redis,
    tmp_path: Path,
    clean_environment: None,
) -> None:
    """The message is taken after it; a waiting process killed costs nothing; it ends."""
    tree = faults.build(dialect, SLOW, SLOW_HANDLERS, kind=FORK)
    package = tree.at(database_url, own_redis.url, tmp_path / "run").migrate()
    api, place = package.api, package.ledger.path.parent

    def those(what: str) -> list[int]:
        return [int(path.name.rpartition("-")[2]) for path in place.glob(f"{what}-*")]

    with package.worker() as worker:
        id_ = api.enqueue(api.Work(n=1)).id
        until(lambda: those("starts"), worker.log)
        (place / "quick").touch()
        row = package.in_state(id_, "completed", patience=20)
        assert row["attempt"] == 1
        assert "dead" not in worker.log() and "lost" not in worker.log()
        (first,) = {run.pid for run in package.ledger.starts(1)}
        (second,) = until(lambda: set(those("opened")) - {first}, worker.log)
        os.kill(second, signal.SIGKILL)
        (third,) = until(lambda: set(those("opened")) - {first, second}, worker.log)
        id_ = api.enqueue(api.Work(n=2)).id
        package.in_state(id_, "completed", patience=20)
        assert {run.pid for run in package.ledger.starts(2)} == {third}
        until(lambda: len(those("opened")) == 4, worker.log)
        worker.terminate()
        assert worker.exit_code(10) == 0, worker.log()
    assert set(those("closed")) == set(those("opened")) - {second}


CHILD: Final = """
import os, signal
from {name}.catalog import worker_named
from {name}.family import Family
from {name}.supervisor import Host, Supervisor

join = Family.join

def late(self, parent):
    os.kill(os.getpid(), signal.SIGTERM)
    join(self, parent)

Family.join = late
host = Host(worker_named(None))
host.open = host.close = lambda: None
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, host._signalled)
print(Supervisor(host, 1, lambda family, parent: 0, burst=True).run())
print(host.family.told(), host.phase_at)
"""


def script(package: Package, text: str) -> list[str]:
    made = subprocess.run(
        [sys.executable, "-c", text.format(name=package.name)],
        cwd=package.tree.folder,
        env=package.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout.split()


def test_a_signal_to_a_child_before_it_has_joined(package: Package) -> None:
    """It waits: else the child would do what its parent does, and tell the family."""
    assert script(package, CHILD)[:3] == ["0", "running", "0.0"]


HELPER: Final = """
import sys
from {name} import helper

helper.COMMAND[:] = [sys.executable, "-c", '''
import os, runpy, signal
for number in (signal.SIGTERM, signal.SIGINT):
    os.kill(os.getpid(), number)
runpy.run_module("{name}.helper", run_name="__main__")
''']
made = helper.Helper()
made.start()
made.close(50)
print(made._process.returncode)
"""


def test_a_signal_to_the_helper_before_it_has_handlers(package: Package) -> None:
    """It waits while the helper imports: what ends it is its parent's word."""
    assert script(package, HELPER) == ["0"]


def test_the_first_stop_has_a_time_whatever_was_told(package: Package) -> None:
    """No child is overdue at once because the family had been told before."""
    host = package.part("supervisor").Host(package.part("catalog").worker_named(None))
    host.family.tell("draining")
    host.stop()
    assert host.phase_at > 0


# --- its own command ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Worker", "HorseWorker", "SimpleWorker"])
def test_rqs_own_command(package: Package, hand: client.Redis, kind: str) -> None:
    """`rq worker --worker-class …` recovers, dispatches, sweeps, drains, ends with 0."""
    words = ["-m", "rq.cli", "worker", "-u", package.redis_url]
    api = package.api
    left = api.enqueue(api.Work(n=1)).id
    hand.flushall()  # only a dispatcher beside it brings this one back
    with package.start(
        *words, "--worker-class", f"{package.name}.worker.{kind}"
    ) as worker:
        package.in_state(left, "completed")
        (name,) = [each.name for each in rq.Worker.all(connection=hand)]
        assert name.startswith(f"{package.name}.main.")
        long = api.enqueue(api.Work(n=2, seconds=3600)).id
        until(lambda: package.ledger.starts(2), "its start")
        worker.send(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.log()
    assert package.row(long)["reason"] == "released"
    assert not rq.Worker.all(connection=hand)


def test_rq_suspends_and_resumes(package: Package, hand: client.Redis) -> None:
    """`rq suspend` stops the taking, and nobody is declared dead meanwhile."""
    api = package.api
    with package.worker() as worker:
        package.ready(worker)
        hand.set("rq:suspended", 1)
        time.sleep(0.6)
        id_ = api.enqueue(api.Work(n=1)).id
        time.sleep(5)
        assert package.row(id_)["state"] == "queued"
        hand.delete("rq:suspended")
        package.in_state(id_, "completed")
        assert worker.running and "dead" not in worker.log()


def test_nothing_is_left_behind(package: Package, hand: client.Redis) -> None:
    """After jobs, a dead letter, a killed process and a stop: names that expire."""
    api = package.api
    with package.worker() as worker:
        api.enqueue_many([api.Work(n=n) for n in range(5)])
        api.enqueue(api.Work(n=10, mode="raise:ValueError"))
        api.enqueue(api.Work(n=11, mode="die"))
        package.settled()
        worker.terminate()
        assert worker.exit_code() == 0
    lasting = {key.decode() for key in hand.scan_iter() if hand.ttl(key) == -1}
    assert lasting <= {"rq:queues", f"{package.name}:marker"}


def test_a_stock_worker_does_no_harm(package: Package, hand: client.Redis) -> None:
    """Somebody runs a plain `rq worker` on our queue: the row is found lost, and runs."""
    api = package.api
    id_ = api.enqueue(api.Work(n=1)).id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stock = rq.SimpleWorker([f"{package.name}:default"], connection=hand)
        stock.work(burst=True, logging_level="CRITICAL")
    assert package.row(id_)["state"] == "queued"
    with package.worker():
        package.in_state(id_, "completed")
    assert len(package.ledger.starts(1)) == 1


def test_a_switch_of_targets_with_rows_waiting(
    package: Package,
    dialect: str,
    database_url: str,
    own_redis: servers.Redis,
    tmp_path: Path,
) -> None:
    """What the old backend left in Redis is harmless; its rows run on the new one, once."""
    old = faults.build(dialect, SPEC, name=package.name, kind=KINDS["arq"])
    before = old.at(database_url, own_redis.url, tmp_path / "before")
    made = before.json("enqueue", "work", '{"n": 1}')
    assert client.Redis.from_url(own_redis.url).exists(f"arq:job:{made['id']}")
    with package.worker():
        package.in_state(made["id"], "completed")
    with before.worker() as worker:  # and back: the old message is of a row that ended
        before.ready(worker)
        again = before.json("enqueue", "work", '{"n": 2}')
        before.in_state(again["id"], "completed")
    runs = [*package.ledger.starts(), *before.ledger.starts()]
    assert sorted(run.n for run in runs) == [1, 2]


@pytest.mark.parametrize(("ahead", "waited"), [(0, ["a", "b"]), (1, ["a"])])
def test_an_ending_is_waited_for(
    package: Package, ahead: int, waited: list[str]
) -> None:
    """However long the database is away: its own, or where it goes ahead the one before."""
    heard: list[str] = []
    runner = SimpleNamespace(run_here=lambda job, _loop: lambda: heard.append(job))
    process = SimpleNamespace(obey=lambda: None, runner=runner)
    made = SimpleNamespace(
        process=process, _loop=None, _unwritten=deque(), _ahead=ahead
    )
    for job in "ab":
        package.part("member").Member.run(made, job)
    assert heard == waited
