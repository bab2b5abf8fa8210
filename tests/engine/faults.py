"""Packages to break: built once, run against real servers, killed and frozen.

    tree = build(spec, dialect)             # once per session and text
    package = tree.at(database, redis, folder)
    with package.worker() as worker:        # a real `python -m <package> worker`
        package.api.enqueue(...)

The judge is never the engine: rows are read with plain SQL, and what a handler did is
read from the ledger, a file to which every run appends its start and its end.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final, Self

import cells
import psycopg
import pytest
import shelf
from psycopg.rows import dict_row

import servers

PATIENCE: Final = 60.0  # seconds a test waits for what must come; never a measure
DIALECTS: Final = ("sqlite", "postgresql")
LONG: Final = os.environ.get("QGEN_LONG") == "1"  # the full length, in every variety
LEDGER: Final = "QGEN_TEST_LEDGER"
DATABASE: Final = "QGEN_TEST_ENGINE_DATABASE"
REDIS: Final = "QGEN_TEST_ENGINE_REDIS"
JSON: Final = ("payload", "result", "error", "progress", "windows")
FAULTY: Final = Path(__file__).with_name("faulty.py")

Row = dict[str, Any]


def on(dialect: str) -> pytest.MarkDecorator:
    """On this database; with QGEN_LONG=1 on both.

    For what a process does and the database's kind has little part in.
    """
    dialects = DIALECTS if LONG else (dialect,)
    return pytest.mark.parametrize("dialect", dialects, indirect=True)


# What every package of these tests has in common.  `{name}` is the package's own.
HEAD: Final = """\
schema_version = 1

[project]
name = "{name}"
package = "{name}"
output = "."
handlers = "tested_handlers"

[record]
dialect = "{dialect}"
url_env = "QGEN_TEST_ENGINE_DATABASE"
table = "jobs"

[redis]
url_env = "QGEN_TEST_ENGINE_REDIS"
"""

# One handler for most tests: it does what its payload says, and writes it down.
HANDLERS: Final = '''\
import asyncio
import builtins
import os
import signal
import time

LEDGER = os.environ["QGEN_TEST_LEDGER"]


def note(what, job, n):
    """One whole line, whoever else writes: O_APPEND and a single write."""
    line = f"{what} {n} {job.attempt} {os.getpid()} {time.time()} {job.id}\\n"
    file = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def opened(gate):
    return os.path.exists(gate)


async def work(job, payload):
    note("start", job, payload.n)
    try:
        await act(job, payload)
    except asyncio.CancelledError:
        note("stopped", job, payload.n)
        if payload.mode != "stubborn":
            raise
        await asyncio.sleep(payload.seconds)
    note("end", job, payload.n)
    return {"n": payload.n, "attempt": job.attempt}


async def act(job, payload):
    mode, _, more = payload.mode.partition(":")
    if mode == "block":
        time.sleep(payload.seconds)
    elif mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "gate":
        while not opened(more):
            await asyncio.sleep(0.01)
    elif mode == "raise":
        raise getattr(builtins, more)(f"job {payload.n}")
    elif mode == "once" and job.attempt == 1:
        raise getattr(builtins, more)(f"job {payload.n}")
    else:
        await asyncio.sleep(payload.seconds)


def plain(job, payload):
    note("start", job, payload.n)
    mode, _, more = payload.mode.partition(":")
    if mode == "raise":
        raise getattr(builtins, more)(f"job {payload.n}")
    if mode == "polite":
        until = time.monotonic() + payload.seconds
        while time.monotonic() < until and not job.cancelled:
            time.sleep(0.01)
        if job.cancelled:
            note("stopped", job, payload.n)
            raise RuntimeError("told to stop")
    elif mode == "gate":
        while not opened(more):
            time.sleep(0.01)
    else:
        time.sleep(payload.seconds)
    note("end", job, payload.n)
    return payload.n
'''

# The job of those handlers; a test's spec goes on below.
JOBS: Final = """
[jobs.work.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }

[jobs.plain.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""

# Short times, so that a death is found within seconds.
QUICK: Final = """
[stall]
heartbeat = "1s"
after = "4s"
sweep = "1s"

[shutdown]
grace = "2s"

[retries.default]
tries = 3
wait = "200ms"
max_wait = "10s"
"""


# --- building -------------------------------------------------------------------

_logs = itertools.count(1)
_trees: dict[str, Tree] = {}
_places = tempfile.TemporaryDirectory(prefix="qgen-engine-")


@dataclass(frozen=True)
class Tree:
    """A built package: a folder to import it from, and nothing that runs.

    `alone`: no other tree has its name, so that the test's process may import it.
    """

    name: str
    dialect: str
    folder: Path
    alone: bool

    def at(self, database_url: str, redis_url: str, folder: Path) -> Package:
        """The package on these servers; `folder` is for its ledger and its logs."""
        return Package(self, database_url, redis_url, folder)


def build(
    dialect: str,
    spec: str = QUICK + JOBS,
    handlers: str = HANDLERS,
    name: str | None = None,
    kind: cells.Kind = cells.CHOSEN,
) -> Tree:
    """What qgen makes of HEAD and `spec`; built once for each text in this session.

    `name`: for two versions of one project, which share their names in Redis; such a
    tree cannot be imported into the test beside the other (`Package.api`).
    """
    spec, handlers = kind.spec(spec), textwrap.dedent(handlers)
    key = shelf.digest(kind.target, dialect, spec, handlers, name or "")
    if key not in _trees:
        own = name or f"tested_{key}"

        def make(folder: Path) -> None:
            head = HEAD.format(name=own, dialect=dialect)
            (folder / "queue.toml").write_text(head + spec, "utf-8")
            (folder / "tested_handlers.py").write_text(handlers, "utf-8")
            words = ["-m", "qgen", "build", "queue.toml", "--target", kind.target]
            made = subprocess.run(
                [sys.executable, *words], cwd=folder, capture_output=True, text=True
            )
            assert made.returncode == 0, made.stdout + made.stderr
            assert (folder / own / "__main__.py").exists(), made.stdout + made.stderr

        folder = Path(_places.name) / key
        shelf.copy(key, make, folder)
        _trees[key] = Tree(own, dialect, folder, alone=name is None)
    return _trees[key]


# --- the judge ------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One line of the ledger: a handler has started, ended or was stopped."""

    what: str
    n: int
    attempt: int
    pid: int
    at: float
    id: str


class Ledger:
    """What the handlers did, in the order in which they wrote it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, what: str | None = None, n: int | None = None) -> list[Run]:
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            kind, number, attempt, pid, at, id_ = line.split()
            found.append(Run(kind, int(number), int(attempt), int(pid), float(at), id_))
        return [
            run
            for run in found
            if what in (None, run.what) and (n is None or run.n == n)
        ]

    def starts(self, n: int | None = None) -> list[Run]:
        return self.lines("start", n)

    def ends(self, n: int | None = None) -> list[Run]:
        return self.lines("end", n)


def until(
    question: Callable[[], Any], what: str | Callable[[], str], patience: float = 0
) -> Any:
    """The first true answer; fails after `patience` (generous: nothing is measured).

    It asks often at first and then ever less: what asks must leave the processor to what
    is asked about.
    """
    begun = time.monotonic()
    deadline = begun + (patience or PATIENCE)
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > deadline:
            said = what() if callable(what) else what
            raise AssertionError(f"this did not come: {said}")
        time.sleep(min(0.05, 0.01 + (time.monotonic() - begun) / 20))


def family(pid: int) -> list[int]:
    """A process and its descendants, parents first."""
    found = [pid]
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    for each in found:
        found += [child for child, parent in pairs if parent == each]
    return found


def seconds(instant: Any) -> float:
    """An instant of the record since the epoch, as plain SQL gives it on either database."""
    if hasattr(instant, "timestamp"):
        return float(instant.timestamp())
    return float(instant) / 1000


# --- running --------------------------------------------------------------------


class Worker:
    """A worker process of its own session; killed at the end, whatever its state."""

    def __init__(
        self, command: Sequence[str], cwd: Path, env: dict[str, str], log: Path
    ) -> None:
        self.log_path = log
        with open(log, "ab") as file:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self.process.pid
        servers.keeper().watch(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(f"--- {self.log_path.name}\n{self.log()[-4000:]}")
        self.close()

    def close(self) -> None:
        self.kill()
        servers.keeper().forget(self.pid)

    def send(self, number: signal.Signals) -> None:
        """A signal, unless the process is gone."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def send_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def freeze(self) -> None:
        """All of it, as a container that is paused."""
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def family(self) -> list[int]:
        """Its process and those it has started, parents first."""
        return family(self.pid) if self.running else []

    def kill(self) -> None:
        """All of it at once, as the end of a container."""
        for pid in [self.pid, *self.family()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def exit_code(self, patience: float = PATIENCE) -> int:
        """Waits for its end."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {patience:.0f} s") from None

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")


@dataclass
class Package:
    """A built package on a database and a Redis, with a ledger and logs."""

    tree: Tree
    database_url: str
    redis_url: str
    folder: Path
    env: dict[str, str] = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(self.folder / "ledger")
        self.env = {
            **os.environ,
            DATABASE: self.database_url,
            REDIS: self.redis_url,
            LEDGER: str(self.ledger.path),
            "PYTHONDONTWRITEBYTECODE": "",
        }

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def dialect(self) -> str:
        return self.tree.dialect

    @property
    def path(self) -> Path:
        """The folder of the package itself."""
        return self.tree.folder / self.tree.name

    @property
    def api(self) -> ModuleType:
        """The package, imported into this process and on these servers."""
        if str(self.tree.folder) not in sys.path:
            sys.path.append(str(self.tree.folder))
        os.environ[DATABASE] = self.database_url
        os.environ[REDIS] = self.redis_url
        return importlib.import_module(self.tree.name)

    def part(self, module: str) -> ModuleType:
        """One module of the package, imported like `api`."""
        assert self.api
        return importlib.import_module(f"{self.tree.name}.{module}")

    # Commands

    def run(self, *args: str, patience: float = PATIENCE) -> Any:
        """A command of the package, to its end."""
        return subprocess.run(
            [sys.executable, "-m", self.tree.name, *args],
            cwd=self.tree.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=patience,
        )

    def json(self, *args: str) -> Any:
        """A command that must succeed, with the document that it prints."""
        made = self.run(*args, "--json")
        assert made.returncode == 0, made.stdout + made.stderr
        return json.loads(made.stdout)

    def migrate(self) -> Self:
        if self.tree.alone:  # without the start of a process: hundreds of tests do this
            self.part("migrate").upgrade()
            return self
        made = self.run("migrate")
        assert made.returncode == 0, made.stdout + made.stderr
        return self

    def worker(self, *args: str, env: dict[str, str] | None = None) -> Worker:
        """`python -m <package> worker ARGS`."""
        return self.start("-m", self.tree.name, "worker", *args, env=env)

    def faulty(
        self, point: str, pipe: Path, *args: str, env: dict[str, str] | None = None
    ) -> Worker:
        """The same, but it waits at a point of the engine: see `faulty.py`."""
        command = args or ("worker",)
        words = [str(FAULTY), point, str(pipe), "-m", self.tree.name, *command]
        return self.start(*words, env=env)

    def start(self, *words: str, env: dict[str, str] | None = None) -> Worker:
        """`python WORDS` beside the package; its output goes to a log."""
        log = self.folder / f"worker-{next(_logs)}.log"
        return Worker(
            [sys.executable, *words], self.tree.folder, self.env | (env or {}), log
        )

    def ready(self, *workers: Worker) -> None:
        """Waits until each worker's process is written down as living."""

        def answer() -> bool:
            for worker in workers:
                assert worker.running, f"it ended at its start\n{worker.log()}"
            alive = {boot["pid"] for boot in self.boots() if boot["dead_at"] is None}
            found = (alive & set(family(worker.pid)) for worker in workers)
            return all(found)

        until(answer, lambda: "\n".join(worker.log() for worker in workers))

    # The record, read with plain SQL

    def sql(self, text: str, *values: object) -> list[Row]:
        """A statement's rows; `?` stands for a value on both databases."""
        if self.dialect == "sqlite":
            path = self.database_url.removeprefix("sqlite:///")
            with contextlib.closing(
                sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            ) as file:
                file.row_factory = sqlite3.Row
                return [dict(row) for row in file.execute(text, values).fetchall()]
        with psycopg.connect(
            self.database_url, autocommit=True, row_factory=dict_row
        ) as server:
            cursor = server.execute(text.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else []

    def drop_every_table(self) -> None:
        """The package's database as it was before its first migration."""
        if self.dialect == "sqlite":
            names = "SELECT name FROM sqlite_master WHERE type = 'table'"
            names += " AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
            drop = "DROP TABLE {}"
        else:
            names = "SELECT tablename AS name FROM pg_tables"
            names += " WHERE schemaname = current_schema()"
            drop = "DROP TABLE {} CASCADE"
        for row in self.sql(names):
            self.sql(drop.format(row["name"]))
        assert self.sql(names) == []

    def rows(self, where: str = "1 = 1") -> list[Row]:
        """Jobs, oldest first; JSON columns decoded, ids as text."""
        return [
            self._decoded(row)
            for row in self.sql(f"SELECT * FROM jobs WHERE {where} ORDER BY id")
        ]

    def row(self, id_: str) -> Row:
        (row,) = self.sql("SELECT * FROM jobs WHERE id = ?", id_)
        return self._decoded(row)

    def attempts(self, id_: str) -> list[Row]:
        """The attempts of a job that did not complete it, in order."""
        rows = self.sql(
            "SELECT * FROM jobs_attempts WHERE job_id = ? ORDER BY attempt", id_
        )
        return [self._decoded(row) for row in rows]

    def boots(self) -> list[Row]:
        return self.sql("SELECT * FROM jobs_boots ORDER BY started_at")

    def states(self) -> Counter[str]:
        rows = self.sql("SELECT state, count(*) AS many FROM jobs GROUP BY state")
        return Counter({row["state"]: row["many"] for row in rows})

    def settled(self, patience: float = 0) -> Counter[str]:
        """Waits until no row is queued or active; the states then."""

        def answer() -> bool:
            states = self.states()
            return bool(states) and not states["queued"] and not states["active"]

        def left() -> str:
            rows = self.rows("state IN ('queued', 'active')")
            logs = [
                path.read_text(errors="replace")[-1500:] for path in self._last_logs()
            ]
            return f"an end of {len(rows)} jobs, like {rows[:2]}\n" + "\n".join(logs)

        until(answer, left, patience)
        return self.states()

    def in_state(self, id_: str, *states: str, patience: float = 0) -> Row:
        """Waits until the row is in one of these states."""
        until(
            lambda: self.row(id_)["state"] in states,
            lambda: f"{states} of {self.row(id_)}",
            patience,
        )
        return self.row(id_)

    def _decoded(self, row: Row) -> Row:
        shown = dict(row)
        for name, value in row.items():
            if value is None:
                continue
            if name in JSON and self.dialect == "sqlite":
                shown[name] = json.loads(value)
            elif name in ("id", "job_id", "worker"):
                shown[name] = str(value)
        return shown

    def _last_logs(self) -> list[Path]:
        logs = self.folder.glob("worker-*.log")
        return sorted(logs, key=lambda path: path.stat().st_mtime)[-3:]


# --- a supervisor ---------------------------------------------------------------


class Supervisor:
    """Keeps so many workers running, as systemd or compose would."""

    def __init__(self, package: Package, many: int) -> None:
        self._package = package
        self._many = many
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.workers: list[Worker] = []
        self.started = 0

    def __enter__(self) -> Self:
        for _ in range(self._many):
            self._add()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)
        for worker in self.workers:
            worker.close()

    def kill(self, choose: Callable[[list[Worker]], Worker]) -> None:
        """SIGKILL to one of the workers that run now."""
        with self._lock:
            alive = [worker for worker in self.workers if worker.running]
            if alive:
                choose(alive).send(signal.SIGKILL)

    def stop(self) -> list[int]:
        """Stops restarting, SIGTERM to all; their exit codes."""
        self._stop.set()
        self._thread.join(PATIENCE)
        for worker in self.workers:
            worker.terminate()
        return [worker.exit_code() for worker in self.workers]

    def _add(self) -> None:
        self.workers.append(self._package.worker())
        self.started += 1

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            with self._lock:
                gone = [worker for worker in self.workers if not worker.running]
                for worker in gone:
                    worker.close()
                    self.workers.remove(worker)
                    self._add()


@contextlib.contextmanager
def everything_closed(*workers: Worker) -> Iterator[None]:
    """Closes workers that are made before the `with` statement that needs them."""
    try:
        yield
    finally:
        for worker in workers:
            worker.close()
