"""Workers: on_start and on_stop, a fresh process after so many jobs, overrides."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cells
import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, until
from engine.units import Engine

WORKER = """
[workers.main]
concurrency = 2
"""
RECYCLED = faults.QUICK + faults.JOBS + WORKER + "recycle_after_jobs = 5\n"

HOOKED = (
    faults.QUICK
    + faults.JOBS
    + WORKER
    + 'on_start = "tested_handlers:opened_worker"\n'
    + 'on_stop = "tested_handlers:closed_worker"\n'
    + """
[env]
TESTED_SLOTS = "workers.main.concurrency"
TESTED_KEEP = "retention.completed"
"""
)

# What on_start and on_stop do is told by a variable, what they did by a file.
HOOKS = """
import pathlib
import sys

PLACE = pathlib.Path(os.environ.get("QGEN_TEST_HOOKS", "/nonexistent"))
DO = os.environ.get("QGEN_TEST_DO", "")


def wrote(text):
    with open(PLACE, "a") as file:
        file.write(f"{text} {os.getpid()}\\n")


async def opened_worker(worker):
    wrote("start")
    if DO == "raise":
        raise RuntimeError("no\\nclient")
    if DO == "exit":
        sys.exit("no key")
    while DO == "hang":
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)
    worker.state.client = [worker.name]
    worker.log.info("is open")


def closed_worker(worker):
    client = getattr(worker.state, "client", ["nothing"])
    wrote(f"stop {client[0]} {len(client)}")
    if DO == "stop-raises":
        raise RuntimeError("cannot close")


async def work(job, payload):
    note("start", job, payload.n)
    job.state.client.append(payload.n)


def plain(job, payload):
    note("start", job, payload.n)
    job.state.client.append(payload.n)
"""


def hooked(make: Make, tmp_path: Path, do: str = "") -> tuple[Package, dict[str, str]]:
    package = make(HOOKED, faults.HANDLERS + HOOKS)
    return package, {"QGEN_TEST_HOOKS": str(tmp_path / "hooks"), "QGEN_TEST_DO": do}


def wrote(tmp_path: Path) -> list[str]:
    """What the hooks wrote, without process ids."""
    file = tmp_path / "hooks"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.rpartition(" ")[0] for line in lines]


# --- a fresh process after so many jobs -------------------------------------------


@cells.of("arq")
@faults.on("postgresql")
def test_a_worker_makes_room_for_another(make: Make) -> None:
    """Twenty jobs, five a process: each process ends with 0 and no job runs twice.

    The last claims of a process are made together, so with two slots it may be six.
    """
    package = make(RECYCLED)
    api = package.api
    api.enqueue_many([api.Work(n=n) for n in range(20)])
    for _ in range(3):
        with package.worker() as worker:
            assert worker.exit_code() == 0, worker.log()
            assert "recycled after" in worker.log()
    with package.worker() as worker:
        package.settled()
    assert package.states() == {"completed": 20}
    runs = package.ledger.starts()
    assert Counter(run.n for run in runs) == Counter(range(20))
    assert set(list(Counter(run.pid for run in runs).values())[:3]) <= {5, 6}
    assert [boot["dead_at"] is not None for boot in package.boots()][:3] == [True] * 3


@cells.of("arq")
@faults.on("sqlite")
def test_a_long_job_is_not_cut_by_it(make: Make, tmp_path: Path) -> None:
    """What still runs may take its own time, far beyond the grace."""
    package = make(RECYCLED)
    api, gate = package.api, tmp_path / "gate"
    long = api.enqueue(api.Work(n=100, mode=f"gate:{gate}")).id
    with package.worker() as worker:
        until(lambda: package.ledger.starts(100), "its start")
        api.enqueue_many([api.Work(n=n) for n in range(6)])
        until(lambda: "recycled" in worker.log(), worker.log)
        time.sleep(2.5)  # the grace is 2 s
        assert worker.running
        gate.touch()
        assert worker.exit_code() == 0, worker.log()
    assert package.row(long)["state"] == "completed"
    assert package.row(long)["attempt"] == 1
    assert package.states() == {"completed": 5, "queued": 2}


@cells.of("arq")
@faults.on("sqlite")
def test_sigterm_while_it_makes_room(make: Make, tmp_path: Path) -> None:
    """The grace begins with the signal: then what still runs is released."""
    package = make(RECYCLED)
    api = package.api
    long = api.enqueue(api.Work(n=100, mode=f"gate:{tmp_path / 'never'}")).id
    with package.worker() as worker:
        until(lambda: package.ledger.starts(100), "its start")
        api.enqueue_many([api.Work(n=n) for n in range(4)])
        until(lambda: "recycled" in worker.log(), worker.log)
        worker.terminate()
        assert worker.exit_code(20) == 0, worker.log()
    row = package.row(long)
    assert (row["state"], row["reason"], row["releases"]) == ("queued", "released", 1)


@faults.on("sqlite")
def test_a_burst_runs_to_its_end(make: Make) -> None:
    """`--burst` ends when nothing is due, however many jobs that takes."""
    package = make(RECYCLED)
    api = package.api
    api.enqueue_many([api.Work(n=n) for n in range(12)])
    with package.worker("--burst") as worker:
        assert worker.exit_code() == 0, worker.log()
    assert package.states() == {"completed": 12}


# --- on_start and on_stop ---------------------------------------------------------


@cells.of("arq")
@faults.on("sqlite")
def test_once_per_process(make: Make, tmp_path: Path) -> None:
    """On_start before the first claim, on_stop after the last ending; one state."""
    package, env = hooked(make, tmp_path)
    api = package.api
    api.enqueue_many([api.Work(n=1), api.Plain(n=2)])
    with package.worker(env=env) as worker:
        package.settled()
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
        assert "is open" in worker.log()
    assert wrote(tmp_path) == ["start", "stop main 3"]
    assert package.states() == {"completed": 2}


@cells.of("arq")
@faults.on("sqlite")
@pytest.mark.parametrize(
    ("do", "said"),
    [("raise", "RuntimeError: no client"), ("exit", "SystemExit: no key")],
    ids=["raise", "exit"],
)
def test_on_start_that_fails(make: Make, tmp_path: Path, do: str, said: str) -> None:
    """One sentence, exit code 2; the process was never alive and claimed nothing."""
    package, env = hooked(make, tmp_path, do)
    id_ = package.api.enqueue(package.api.Work(n=1)).id
    with package.worker(env=env) as worker:
        assert worker.exit_code(20) == 2, worker.log()
        last = worker.log().splitlines()[-1]
    sentence = f"on_start, tested_handlers:opened_worker, raised {said}"
    assert last == f"{package.name}: {sentence}"
    assert wrote(tmp_path) == ["start"]
    assert package.boots() == []
    assert package.row(id_)["attempt"] == 0


@cells.of("arq")
@faults.on("sqlite")
def test_on_start_that_fails_under_arqs_own_command(make: Make, tmp_path: Path) -> None:
    """The same sentence, the same code."""
    package, env = hooked(make, tmp_path, "raise")
    command = ("-m", "arq", f"{package.name}.worker.Main")
    with package.start(*command, env=env) as worker:
        assert worker.exit_code() == 2, worker.log()
        assert "opened_worker, raised RuntimeError: no client" in worker.log()
    assert package.boots() == []


@cells.of("arq")
@faults.on("sqlite")
def test_sigterm_while_on_start_runs(make: Make, tmp_path: Path) -> None:
    """It is left alone, nothing is claimed, on_stop has nothing to close."""
    package, env = hooked(make, tmp_path, "hang")
    id_ = package.api.enqueue(package.api.Work(n=1)).id
    with package.worker(env=env) as worker:
        until(lambda: wrote(tmp_path), worker.log)
        worker.terminate()
        assert worker.exit_code(10) == 0, worker.log()
    assert wrote(tmp_path) == ["start"]
    assert package.row(id_)["attempt"] == 0


@faults.on("sqlite")
def test_on_stop_that_fails(make: Make, tmp_path: Path) -> None:
    """It is logged, and changes nothing: the endings were written before."""
    package, env = hooked(make, tmp_path, "stop-raises")
    with package.worker(env=env) as worker:
        package.ready(worker)
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
        assert "closed_worker, raised RuntimeError: cannot close" in worker.log()
    (boot,) = package.boots()
    assert boot["dead_at"] is not None


@faults.on("sqlite")
def test_a_hook_that_is_not_there(make: Make) -> None:
    """The worker says what to write."""
    package = make(HOOKED)
    with package.worker() as worker:
        assert worker.exit_code() == 2, worker.log()
        last = worker.log().splitlines()[-1]
    said = "write def opened_worker(worker) in tested_handlers"
    assert last == f"{package.name}: on_start is missing: {said}"


# --- on the backends whose processes are started by a parent ----------------------


def on(
    target: str, knob: str, database_url: str, redis: Any, folder: Path, more: str = ""
) -> Package:
    """The hooked package on another backend, with one of its knobs."""
    spec = HOOKED.replace("concurrency = 2", f"concurrency = 1\n{more}")
    kind = cells.Kind(target, target, knob)
    tree = faults.build("sqlite", spec, faults.HANDLERS + HOOKS, kind=kind)
    return tree.at(database_url, redis.url, folder / "run").migrate()


KNOBS = pytest.mark.parametrize(
    ("target", "knob"),
    [
        ("rq", 'worker = "fork"'),
        ("rq", 'worker = "simple"'),
        ("celery", 'pool = "prefork"'),
        ("celery", 'pool = "threads"'),
    ],
    ids=["rq-fork", "rq-simple", "celery-prefork", "celery-threads"],
)


@faults.on("sqlite")
@KNOBS
def test_fresh_processes(
    database_url: str,
    own_redis: Any,
    tmp_path: Path,
    target: str,
    knob: str,
    clean_environment: None,
) -> None:
    """Five jobs a process; where a parent started it, that starts another, at once.

    On_start runs in each process that runs jobs; on_stop at its end.
    """
    more = "recycle_after_jobs = 5"
    package = on(target, knob, database_url, own_redis, tmp_path, more)
    api = package.api
    api.enqueue_many([api.Work(n=n) for n in range(12)])
    env = {"QGEN_TEST_HOOKS": str(tmp_path / "hooks")}
    for _ in range(2 if "threads" in knob else 0):
        with package.worker(env=env) as worker:
            assert worker.exit_code() == 0, worker.log()
            assert "recycled after 5 jobs" in worker.log()
    with package.worker(env=env) as worker:
        package.settled()
        worker.terminate()
        assert worker.exit_code() == 0, worker.log()
    assert package.states() == {"completed": 12}
    assert Counter(run.n for run in package.ledger.starts()) == Counter(range(12))
    many = [1] * 12 if "fork" in knob and target == "rq" else [5, 5, 2]
    lines = Counter(line for n in many for line in ("start", f"stop main {n + 1}"))
    waiting = Counter({"start": 1, "stop main 1": 1})  # forked ahead, had no job
    assert Counter(wrote(tmp_path)) in (lines, lines + waiting)


@faults.on("sqlite")
@KNOBS
def test_on_start_that_fails_there(
    database_url: str,
    own_redis: Any,
    tmp_path: Path,
    target: str,
    knob: str,
    clean_environment: None,
) -> None:
    """The whole worker ends with 2 and the sentence; no row was claimed."""
    package = on(target, knob, database_url, own_redis, tmp_path)
    id_ = package.api.enqueue(package.api.Work(n=1)).id
    env = {"QGEN_TEST_HOOKS": str(tmp_path / "hooks"), "QGEN_TEST_DO": "raise"}
    with package.worker(env=env) as worker:
        assert worker.exit_code() == 2, worker.log()
        assert "opened_worker, raised RuntimeError: no client" in worker.log()
    assert package.row(id_)["attempt"] == 0


class Hooked:
    """The engine's hooks in this process, with short limits."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = engine.part("hooks")
        self.codes: list[int] = []
        monkeypatch.setattr(self.module, "START_LIMIT", 0.2)
        monkeypatch.setattr(self.module, "STOP_LIMIT", 0.2)
        monkeypatch.setattr(self.module, "LENIENCY", 0.2)
        ended = SimpleNamespace(_exit=self.codes.append, environ={})
        monkeypatch.setattr(self.module, "os", ended)

    def made(self, **hooks: Any) -> Any:
        """Hooks with these functions."""
        names = {key: f"m:{key}" for key in hooks}
        worker = SimpleNamespace(name="main", queues=("default",), concurrency=1)
        both = {"on_start": None, "on_stop": None} | names
        made = self.module.Hooks(SimpleNamespace(**vars(worker), **both))
        made._found.update(hooks)
        return made


@pytest.fixture
def hooks(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooked]:
    """Whatever still rings at the end of the test must not end its process."""
    yield Hooked(engine, monkeypatch)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
            thread.join()


def plain_hang(_worker: Any) -> None:
    time.sleep(0.6)


async def async_hang(_worker: Any) -> None:
    await asyncio.sleep(60)


@faults.on("sqlite")
@pytest.mark.parametrize("hang", [plain_hang, async_hang])
def test_a_hook_that_hangs(hooks: Hooked, hang: Any, caplog: Any) -> None:
    """On_start ends the worker, on_stop is left alone; both within their limits."""
    error = hooks.module.SetupError
    with pytest.raises(error, match=r"on_start, m:on_start, did not return within 0 s"):
        asyncio.run(hooks.made(on_start=hang).start(lambda: False))

    async def stop() -> float:
        made = hooks.made(on_stop=hang)
        assert await made.start(lambda: False)
        began = time.monotonic()
        await made.stop(0)
        return time.monotonic() - began

    assert asyncio.run(stop()) < 0.5
    assert "on_stop, m:on_stop, did not return within" in caplog.text


@faults.on("sqlite")
def test_a_hook_that_is_left_rings_no_alarm(hooks: Hooked) -> None:
    """The worker that was told to stop drains for as long as it may."""
    made = hooks.made(on_start=async_hang)
    assert asyncio.run(made.start(lambda: True)) is False
    left = [t for t in threading.enumerate() if isinstance(t, threading.Timer)]
    for timer in left:
        timer.join(2)
    assert hooks.codes == []


@faults.on("sqlite")
def test_a_hook_that_blocks_the_loop(hooks: Hooked) -> None:
    """Its process ends, with the code of a failed start or the one it had anyway."""

    async def block(_worker: Any) -> None:
        time.sleep(0.8)

    asyncio.run(hooks.made(on_start=block).start(lambda: False))
    assert hooks.codes == [2]

    async def stop() -> None:
        made = hooks.made(on_stop=block)
        await made.start(lambda: False)
        await made.stop(7)

    asyncio.run(stop())
    assert hooks.codes == [2, 7]


# --- overrides --------------------------------------------------------------------


@faults.on("sqlite")
def test_a_deployment_overrides(make: Make, tmp_path: Path) -> None:
    """Slots and retention are the variable's; an empty one overrides nothing."""
    package, env = hooked(make, tmp_path)
    asked = ["-c", "import sys; from importlib import import_module as i;"]
    asked[1] += " print(i(sys.argv[1] + '.registry').PROJECT.keep_completed)"
    for keep, seconds in (("1h30m", "5400.0"), ("", "2592000.0")):
        with package.start(*asked, package.name, env={"TESTED_KEEP": keep}) as process:
            assert process.exit_code() == 0
            assert process.log().strip() == seconds
    with package.worker(env=env | {"TESTED_SLOTS": " 7 "}) as worker:
        until(lambda: sum(boot["slots"] for boot in package.boots()) == 7, worker.log)


@faults.on("sqlite")
def test_an_override_that_does_not_parse(make: Make, tmp_path: Path) -> None:
    """The worker, `health` and `status` name it; importing and enqueuing go on."""
    package, env = hooked(make, tmp_path)
    package.env |= env | {"TESTED_SLOTS": "many", "TESTED_KEEP": "30"}
    said = (
        'TESTED_KEEP is \'30\': write a duration such as "30d" or "1h30m", or '
        "\"none\"; TESTED_SLOTS is 'many': write a whole number from 1 to 10000"
    )
    with package.worker() as worker:
        assert worker.exit_code(20) == 2, worker.log()
        assert worker.log().splitlines()[-1] == f"{package.name}: {said}"
    assert package.run("health").returncode == 2
    ignored = package.json("status")["ignored_overrides"]
    assert [each.partition(" is ")[0] for each in ignored] == [
        "TESTED_KEEP",
        "TESTED_SLOTS",
    ]
    status = package.run("status")
    assert status.returncode == 0
    assert (
        "override ignored: TESTED_SLOTS is 'many': write a whole number from 1 to 10000; "
        "until then the spec's value stands"
    ) in status.stdout.splitlines()
    assert package.run("enqueue", "work", '{"n": 1}').returncode == 0
    assert wrote(tmp_path) == []


@faults.on("sqlite")
def test_what_a_variable_may_hold(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its key takes, and nothing that only looks so."""
    overrides = engine.part("overrides")

    def reads(reader: Any, text: str) -> Any:
        monkeypatch.setenv("TESTED", text)
        value = reader("TESTED")
        try:
            overrides.check()
        except engine.part("errors").SetupError as error:
            assert str(error).startswith(f"TESTED is {text.strip()[:40]!r}: write ")
            return "refused"
        return value

    def count(name: str) -> Any:
        return overrides.count(name, 4, 10)

    def keep(name: str) -> Any:
        return overrides.retention(name, 9.0)

    def flag(name: str) -> Any:
        return overrides.flag(name, True)

    for text in ("0", "11", "-1", "1.0", "1_0", "٣", "1e1", "four", "9" * 5000):
        assert reads(count, text) == "refused", text
    assert [reads(count, text) for text in ("1", " 10\n", "", "  ")] == [1, 10, 4, 4]
    for text in ("30", "0s", "1.5h", "-1d", "h", "1h 30m", "None", "nan", "1h30"):
        assert reads(keep, text) == "refused", text
    durations = {"1d": 86_400.0, "1h30m": 5400.0, "500ms": 0.5, "none": None, "": 9.0}
    assert {text: reads(keep, text) for text in durations} == durations
    for text in ("1", "True", "yes", "falsch"):
        assert reads(flag, text) == "refused", text
    assert [reads(flag, text) for text in ("true", "false", "")] == [True, False, True]

    def cron(name: str) -> Any:
        return overrides.cron(name, "0 7 * * *")

    def every(name: str) -> Any:
        return overrides.every(name, 60.0)

    for text in ("@daily", "0 25 * * *", "0 0 31 2 *", "* * * *", "0 7 * * * UTC"):
        assert reads(cron, text) == "refused", text
    assert reads(cron, " 30  7 * * mon-fri ") == "30 7 * * mon-fri"
    assert reads(cron, "") == "0 7 * * *"
    for text in ("999ms", "1", "none"):
        assert reads(every, text) == "refused", text
    assert [reads(every, text) for text in ("1s", "1h30m", "")] == [1.0, 5400.0, 60.0]
    monkeypatch.delenv("TESTED")
    assert count("TESTED") == 4
    overrides.check()
