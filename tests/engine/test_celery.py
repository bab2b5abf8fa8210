"""What only celery has: its settings, its lists, its deafness, its command, its versions."""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis as client
from cells import KINDS
from engine import faults
from engine.faults import Package, until
from parity.stage import HANDLERS, SPEC

import servers
from qgen.resolve.units import span

JUNK_ROW = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def package(
    own_redis: servers.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Package:
    """The parity suite's package on celery with prefork, on SQLite."""
    return made(own_redis.url, tmp_path, monkeypatch)


def made(
    redis_url: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str = "celery-prefork",
    spec: str = SPEC,
    more: str = "",
) -> Package:
    for variable in (faults.DATABASE, faults.REDIS):
        monkeypatch.setenv(variable, "")
    tree = faults.build("sqlite", spec, HANDLERS + more, kind=KINDS[kind])
    package = tree.at(f"sqlite:///{folder / 'record.db'}", redis_url, folder / "run")
    return package.migrate()


@pytest.fixture
def by_hand(own_redis: servers.Redis) -> Iterator[client.Redis]:
    with client.Redis.from_url(own_redis.url) as hand:
        yield hand


def add(package: Package, first: int, many: int = 1, **how: Any) -> list[str]:
    api = package.api
    payloads = [api.Work(n=n, **how) for n in range(first, first + many)]
    return [one.id for one in api.enqueue_many(payloads)]


def celery(package: Package, *words: str) -> str:
    """A command of celery's, to its end; what it printed."""
    command = [sys.executable, "-m", "celery", "-A", f"{package.name}.worker", *words]
    made = subprocess.run(
        command,
        cwd=package.tree.folder,
        env=package.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def asked(package: Package) -> Any:
    """What the package's app is set to, and which of it celery does not know."""
    made = subprocess.run(
        [sys.executable, "-c", NAMES, package.name],
        cwd=package.tree.folder,
        env=package.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


# --- settings -------------------------------------------------------------------

NAMES = """
import json, sys
from celery.app.defaults import NAMESPACES, flatten
from kombu.transport.redis import Channel
from kombu.transport import virtual
from importlib import import_module
name = sys.argv[1]
app = import_module(f"{name}.app")
catalog = import_module(f"{name}.catalog")
server = import_module(f"{name}.server")
wanted = app.settings(catalog.worker_named(None), server.Address.read())
made = import_module(f"{name}.worker").app
print(json.dumps({
    "unknown": sorted(set(wanted) - set(dict(flatten(NAMESPACES)))),
    "options": sorted(
        set(wanted["broker_transport_options"]) - set(Channel.from_transport_options)
    ),
    "changed": sorted(
        key for key, value in wanted.items()
        if key != "task_queues" and getattr(made.conf, key) != value
    ),
    "tasks": sorted(task for task in made.tasks if not task.startswith("celery.")),
    "visibility": made.connection_for_read().default_channel.visibility_timeout,
    "limits": [made.tasks["work"].max_retries, made.tasks["work"].acks_late],
}))
"""


def test_every_setting_is_one_that_celery_knows(package: Package) -> None:
    """Celery and kombu take an unknown name without a word."""
    found = asked(package)
    assert found["unknown"] == [] and found["options"] == []
    assert found["changed"] == []
    assert {"work", "plain"} <= set(found["tasks"])
    assert found["limits"] == [0, False]


def test_the_visibility_timeout_is_above_the_longest_job(package: Package) -> None:
    """Asked of the transport itself.  The longest timeout of the spec is ten minutes.

    The plan names the same figure: what the compiler reckons with is what is set.
    """
    found = asked(package)["visibility"]
    assert found >= 600 + 600
    plan = (package.path / "QUEUE.md").read_text("utf-8")
    assert f"| `visibility_timeout` | `{span(found)}` |" in plan


def test_what_overrules_the_settings_is_refused(package: Package) -> None:
    """Celery lets a variable of its own name another broker: that worker must not start."""
    other = "redis://localhost:1/0"
    with package.worker(env={"CELERY_BROKER_URL": other}) as worker:
        assert worker.exit_code() == 2
        assert "CELERY_BROKER_URL" in worker.log()


# --- what stands in Redis -------------------------------------------------------


def test_nonsense_in_the_lists(package: Package, by_hand: client.Redis) -> None:
    """Random bytes, wrong shapes, unknown ids and jobs, a key of another type: dropped,
    and the worker goes on.  C057.
    """
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    broker = package.part("broker")
    message = package.part("messages").Message
    good = broker.envelope(message(JUNK_ROW, 1, job="work", queue="default"))
    shapes: list[Any] = [None, 5, [], {}, {"body": 1}, {**good, "body": "!"}]
    shapes += [{**good, "properties": {}}, {**good, "headers": {}}]
    shapes += [{**good, "headers": {**good["headers"], "task": "nobody"}}]
    shapes += [{**good, "headers": {**good["headers"], "eta": "2999-01-01"}}]
    shapes += [good, {"__type__": "datetime", "__value__": 7}]
    bodies = [json.dumps(shape).encode() for shape in shapes]
    bodies += [b"", b"\x80\x04\x95pickle", b"[" * 100_000, b'{"a":' * 100_000]
    bodies += [dice.randbytes(dice.randrange(1, 300)) for _ in range(40)]
    key = broker.queue_key("default")
    by_hand.set(broker.queue_key("default", broker.HIGH), "no list")
    by_hand.rpush(key, *bodies)
    add(package, 0, 10)
    with package.worker() as worker:
        assert package.settled() == {"completed": 10}
        until(lambda: not by_hand.llen(key), "an empty list")
        assert worker.running
        assert "Traceback" not in worker.log(), worker.log()
    assert len(package.ledger.starts()) == 10


def test_a_high_row_waits_for_what_is_older(
    package: Package, by_hand: client.Redis
) -> None:
    """Older by more than its bonus: then it stands behind that, with the others."""
    broker = package.part("broker").Broker()
    kind = package.part("messages").Message

    def put(n: int, priority: str, sort_at: int) -> Any:
        id_ = f"{JUNK_ROW[:-1]}{n}"
        message = kind(id_, 1, "work", "default", priority, sort_at)
        broker.publish([message])
        return message

    plain, first = put(1, "normal", 20), put(2, "high", 10)
    old, second = put(3, "low", 5), put(4, "high", 11)
    high, others = (
        [transport_id(body) for body in by_hand.lrange(key, 0, -1)][::-1]
        for key in package.part("broker").keys_of(["default"])
    )
    assert high == [first.id]
    assert others == [plain.id, old.id, second.id]
    sent = [plain, first, old, second]
    assert broker.known(sent) == {message.id for message in sent}
    broker.close()


def transport_id(body: bytes) -> str:
    return str(json.loads(body)["headers"]["id"])


def test_high_rows_come_first(package: Package) -> None:
    """With one slot, and all of them in Redis before the worker."""
    api = package.api
    for n in range(3):
        api.enqueue(api.Work(n=n))
    api.enqueue(api.Work(n=9), priority="high")
    broker = package.part("broker").Broker()
    first = broker.first(["default"])
    assert first == package.rows("priority = 'high'")[0]["id"]


def test_another_backend_takes_over(
    own_redis: servers.Redis, by_hand: client.Redis, tmp_path: Path
) -> None:
    """Rows that wait when a project moves from arq to celery run there; what arq left in
    Redis stays and harms nobody, and so it is on the way back.
    """
    url = f"sqlite:///{tmp_path / 'record.db'}"
    old, new = (
        faults.build("sqlite", SPEC, HANDLERS, name="moved", kind=KINDS[kind]).at(
            url, own_redis.url, tmp_path / kind
        )
        for kind in ("arq", "celery-threads")
    )
    for package in (old, new):
        package.migrate()
        for n in range(3):
            package.json("enqueue", "work", json.dumps({"n": n}))
    assert by_hand.keys("arq:job:*")
    with new.worker():
        assert new.settled() == {"completed": 6}
    for n in range(3):
        new.json("enqueue", "work", json.dumps({"n": n}))
    with old.worker():
        assert old.settled() == {"completed": 9}
    assert len(new.ledger.starts()) == 6 and len(old.ledger.starts()) == 3


# --- deaf and busy --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["celery-prefork", "celery-threads"])
def test_a_deaf_worker_ends(
    kind: str,
    own_redis: servers.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It lives and beats and takes nothing: it exits with 1, and the next one works."""
    package = made(own_redis.url, tmp_path, monkeypatch, kind)
    cancel = "control", "cancel_consumer", "default"
    with package.worker() as worker:
        add(package, 0)
        until(lambda: package.ledger.ends(0), "the first job")
        celery(package, *cancel)
        add(package, 1)
        until(lambda: not worker.running, worker.log, 30)
        assert worker.exit_code() == 1, worker.log()
        assert "deaf" in worker.log()
    with package.worker():
        assert package.settled() == {"completed": 2}


def test_a_busy_worker_is_not_deaf(package: Package) -> None:
    """Its slots are full for longer than the watchdog's patience, and messages wait."""
    with package.worker() as worker:
        add(package, 0, 4, seconds=9)
        assert package.settled() == {"completed": 4}
        assert worker.running and "deaf" not in worker.log()


def test_idle_beside_a_message_of_nobody(
    package: Package, by_hand: client.Redis
) -> None:
    """A free slot and an empty queue: nobody is deaf."""
    with package.worker() as worker:
        add(package, 0)
        until(lambda: package.ledger.ends(0), "the first job")
        time.sleep(6)
        assert worker.running and "deaf" not in worker.log()


def test_beside_a_replica_nobody_is_deaf(
    package: Package, by_hand: client.Redis
) -> None:
    """It may be read, and no message may be taken: no worker is to blame."""
    (id_,) = add(package, 0)
    ears = package.part("ears").Ears(("default",), free=lambda: True, deaf=int)
    assert not ears.look(0.0)
    by_hand.replicaof("127.0.0.1", "1")
    with pytest.raises(package.part("errors").Unavailable):
        ears.look(100.0)
    by_hand.replicaof("no", "one")
    assert not ears.look(101.0)
    assert not ears.look(102.0)
    assert ears.look(201.0), id_


SLOW_FORKS = """
os.register_at_fork(before=lambda: time.sleep(2.5))
"""


def test_nobody_is_deaf_before_messages_are_taken(package: Package) -> None:
    """Children may take long to fork, and what waits is not taken before they stand."""
    parent = package.part("parent")
    main = parent.Parent(package.part("catalog").worker_named(None))
    beat = SimpleNamespace(fit=lambda: True)
    runner = SimpleNamespace(attempts={})
    process = SimpleNamespace(runner=runner, phase="running", beat=beat)
    child = SimpleNamespace(member=SimpleNamespace(process=process), _parent=main)
    assert not parent.Child._free(child)
    main.tick()
    assert parent.Child._free(child)


@pytest.mark.skipif(not faults.LONG, reason="the short form is above: QGEN_LONG=1")
def test_a_pool_that_forks_slowly(
    own_redis: servers.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than a message may stay beside a free slot: it starts and takes it."""
    spec = SPEC.replace("concurrency = 2", "concurrency = 5")
    package = made(own_redis.url, tmp_path, monkeypatch, spec=spec, more=SLOW_FORKS)
    (id_,) = add(package, 0)
    with package.worker() as worker:
        package.in_state(id_, "completed")
        assert worker.running and "deaf" not in worker.log(), worker.log()


# --- threads --------------------------------------------------------------------


def test_the_end_of_a_job_wakes_the_loop(
    own_redis: servers.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot that a thread has freed is filled at once, not at celery's next timer.

    That comes every quarter of a second: sixty jobs would take seven seconds and more.
    """
    package = made(own_redis.url, tmp_path, monkeypatch, "celery-threads")
    add(package, 0, 60)
    with package.worker():
        assert package.settled() == {"completed": 60}
    moments = [run.at for run in package.ledger.starts()]
    assert max(moments) - min(moments) < 4.0


# --- celery's own command -------------------------------------------------------


def test_celerys_own_command(package: Package) -> None:
    """`celery -A <package>.worker:app worker`: recovery and all, and its tools see it."""
    command = ["-m", "celery", "-A", f"{package.name}.worker:app", "worker", "-c", "1"]
    with package.start(*command) as worker:
        add(package, 0, 3)
        assert package.settled() == {"completed": 3}
        registered = celery(package, "inspect", "registered")
        assert "work" in registered and "plain" in registered
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
    assert {boot["target"] for boot in package.boots()} == {"celery"}


# --- the visibility timeout -----------------------------------------------------


def test_a_job_longer_than_the_visibility_timeout(
    package: Package,
) -> None:
    """Set to two seconds, against all that is said: still each job runs once.  C024."""
    file = package.path / "app.py"
    text = file.read_text("utf-8")
    line = "    return acted + MARGIN\n"
    assert line in text
    file.write_text(text.replace(line, "    return 2.0\n"), "utf-8")
    try:
        with package.worker(), package.worker():
            add(package, 0, 6, seconds=5)
            assert package.settled() == {"completed": 6}
    finally:
        file.write_text(text, "utf-8")
    starts = [(run.id, run.attempt) for run in package.ledger.starts()]
    assert len(starts) == len(set(starts)) == 6


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("worker_prefetch_multiplier", 4),
        ("task_acks_late", True),
        ("task_reject_on_worker_lost", True),
        ("task_ignore_result", False),
        ("result_backend", "redis://"),
    ],
)
def test_a_setting_that_was_overruled(package: Package, name: str, value: Any) -> None:
    """The worker would not start: each safety setting is read back.  C026."""
    app, catalog = package.part("app"), package.part("catalog")
    worker = catalog.worker_named(None)
    made = app.make(worker)
    app.read_back(made, worker)
    made.conf.update({name: value})
    with pytest.raises(package.part("errors").SetupError, match=name):
        app.read_back(made, worker)


def test_a_child_whose_end_fails_is_gone_all_the_same(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that ends an orphan ends it, whatever its last writes raise."""
    parent = package.part("parent")
    codes: list[int] = []
    monkeypatch.setattr(parent, "PAUSE", 0.01)
    monkeypatch.setattr(parent.logging, "shutdown", lambda: None)

    def gone(code: int) -> None:
        codes.append(code)
        raise SystemExit

    def fails() -> int:
        raise RuntimeError("no last word")

    monkeypatch.setattr(parent.os, "_exit", gone)
    child = object.__new__(parent.Child)
    process = SimpleNamespace(phase="draining", runner=SimpleNamespace(attempts={}))
    child.member = SimpleNamespace(process=process, close=fails)
    child._family = SimpleNamespace(is_orphan=lambda: True, told=lambda: "draining")
    with pytest.raises(SystemExit):
        child._leave()
    assert codes == [1]
