"""The servers, and the processes of the system under measurement."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from bench import generated, ticks
from bench.systems import GENERATED, System

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "templates" / "tests"), str(ROOT / "tests")]

from cells import KINDS  # noqa: E402

import servers  # noqa: E402

PATIENCE = 180.0  # seconds any one step may take


class Stuck(RuntimeError):
    """A step did not end, or a process did; the text holds its last words."""


class Stage:
    """Redis without persistence, PostgreSQL and SQLite that flush every commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.redis = servers.Redis()
        self.postgres = servers.Postgres(
            durable=True, options=["-c", "shared_buffers=128MB"]
        )
        self._packages: dict[str, Path] = {}

    def close(self) -> None:
        self.redis.close()
        self.postgres.close()

    @contextlib.contextmanager
    def show(self, system: System, **environment: str) -> Iterator[Show]:
        """A system on empty servers, its tables made."""
        self.redis.flush()
        with contextlib.ExitStack() as stack:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder))
            )
            url = f"sqlite:///{folder / 'record.db'}"
            if system.dialect == "postgresql":
                url = stack.enter_context(servers.database(self.postgres))
            show = Show(system, folder, url)
            path = [str(ROOT)]
            if system.module in GENERATED:
                show.package = self.package(system)
                path.append(str(show.package))
            show.environment = os.environ | {
                "BENCH_FOLDER": str(folder),
                "DATABASE_URL": url,
                "REDIS_URL": self.redis.url,
                "PYTHONPATH": os.pathsep.join(path),
                **environment,
            }
            stack.callback(show.close)
            if system.dialect:
                show.call("setup")
            yield show

    def package(self, system: System) -> Path:
        """The generated package, built at its first use."""
        name = f"{system.module}-{system.kind}-{system.dialect}"
        if name not in self._packages:
            folder = self.folder / name
            folder.mkdir()
            kind = KINDS[system.kind]
            spec = kind.spec(importlib.import_module(system.module).spec(system.kind))
            self._packages[name] = generated.build(
                system.dialect or "", folder, spec, kind.target
            )
        return self._packages[name]


class Show:
    """One system's processes and tables."""

    def __init__(self, system: System, folder: Path, url: str) -> None:
        self.system = system
        self.folder = folder
        self.url = url
        self.environment: dict[str, str] = {}
        self.package = folder  # where the generated package lies, if it is one
        self.ticks = folder / "ticks"
        self._worker: subprocess.Popen[bytes] | None = None
        self._database: Any = None

    def close(self) -> None:
        self.stop_worker()
        if self._database is not None:
            self._database.close()

    def _command(self, *words: object) -> list[str]:
        child = [sys.executable, "-m", "bench.child", self.system.name]
        return [*child, *map(str, words)]

    def call(self, *words: object) -> dict[str, Any]:
        """Run one step to its end; what it measured."""
        done = subprocess.run(
            self._command(*words),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if done.returncode:
            step = " ".join(map(str, words))
            raise Stuck(f"{self.system.name}: {step} failed\n{done.stderr[-2000:]}")
        measured: dict[str, Any] = json.loads(done.stdout or "{}")
        return measured

    def start_worker(self) -> psutil.Process:
        with open(self.folder / "worker.log", "ab") as log:
            self._worker = subprocess.Popen(
                self._command("worker"),
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return psutil.Process(self._worker.pid)

    @property
    def worker_pid(self) -> int:
        if self._worker is None:
            raise Stuck(f"{self.system.name}: the worker does not run")
        return self._worker.pid

    def stop_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(5)

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """One statement on the system's own database, committed."""
        if self._database is None:
            if self.system.dialect == "sqlite":
                path = self.url.removeprefix("sqlite:///")
                self._database = sqlite3.connect(path, isolation_level=None, timeout=30)
            else:
                import psycopg

                self._database = psycopg.connect(self.url, autocommit=True)
        cursor = self._database.execute(sql, values or None or ())
        return list(cursor.fetchall()) if cursor.description else []

    def unfinished(self) -> int:
        if self.system.unfinished is None:
            return 0
        return int(self.query(self.system.unfinished)[0][0])

    def wait_for_ticks(self, number: int) -> None:
        """Until so many handlers have begun."""
        deadline = time.monotonic() + PATIENCE
        while ticks.count(self.ticks) < number:
            ended = self._worker is not None and self._worker.poll() is not None
            if ended or time.monotonic() > deadline:
                log = self.folder / "worker.log"
                words = log.read_text(errors="replace")[-2000:] if log.exists() else ""
                begun = ticks.count(self.ticks)
                raise Stuck(f"{self.system.name}: {begun} of {number} ran\n{words}")
            time.sleep(0.005)

    def wait_until_finished(self) -> float:
        """Until the system's own record has nothing left to do; when that was."""
        deadline = time.monotonic() + PATIENCE
        while left := self.unfinished():
            if time.monotonic() > deadline:
                raise Stuck(f"{self.system.name}: {left} rows are not finished")
            time.sleep(0.005)
        return time.time()


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def cpu_seconds(*roots: psutil.Process) -> float:
    """User and system time of these processes and all below them."""
    total = 0.0
    for process in [each for root in roots for each in family(root)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def memory(root: psutil.Process) -> int:
    """Bytes of resident memory of the process and all below it."""
    return sum(int(process.memory_info().rss) for process in family(root))


@contextlib.contextmanager
def open_stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="qb-") as folder:
        stage = Stage(Path(folder))
        try:
            yield stage
        finally:
            stage.close()
