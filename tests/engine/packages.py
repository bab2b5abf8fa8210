"""Generated packages for the engine's tests: built by qgen, run as their users run them.

Nothing of a package is imported here: a test talks to it through its command line, its
API in a child process, and its tables.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import shelf
import trees

PATIENCE = 60.0  # seconds any one command or wait may take


@functools.cache
def build(spec: str, dialect: str, target: str = "arq") -> Path:
    """The folder to import the package from; built once in a run, never changed."""
    name = f"{target}-{dialect}"
    folder = Path(tempfile.mkdtemp(prefix="qgen-engine-")) / name
    atexit.register(shutil.rmtree, folder.parent, ignore_errors=True)
    key = shelf.digest(name, spec)
    shelf.copy(key, lambda place: trees.build(name, place, spec), folder)
    return trees.package(folder)


class Package:
    """A built package with a record and a Redis of its own; ``close`` ends its workers.

    ``path`` is the folder commands run in; the test's handlers stand there and win over
    the stubs that qgen wrote.
    """

    def __init__(
        self,
        built: Path,
        path: Path,
        *,
        database_url: str,
        redis_url: str,
        handlers: dict[str, str],
    ) -> None:
        self.name = built.name
        self.path = path
        self.database_url = database_url
        for module, text in handlers.items():
            file = path / f"{module.replace('.', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        self.env = os.environ | {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "PYTHONPATH": os.pathsep.join((str(path), str(built.parent))),
        }
        self._workers: list[subprocess.Popen[bytes]] = []
        self._connection: Any = None

    def close(self) -> None:
        """Kills what still runs."""
        for worker in self._workers:
            if worker.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        if self._connection is not None:
            self._connection.close()

    # Commands

    def run(
        self, *args: object, stdin: str | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """``python -m <package> ARGS`` to its end."""
        return self._run(["-m", self.name, *map(str, args)], stdin, env)

    def json(self, *args: object, code: int = 0, **env: str) -> Any:
        """The one document that a command prints with ``--json``."""
        done = self.run(*args, "--json", **env)
        assert done.returncode == code, f"{args}: {done}"
        return json.loads(done.stdout)

    def python(self, code: str, **env: str) -> Any:
        """Runs code beside ``from <package> import *``; what it stored in ``answer``."""
        text = f"from {self.name} import *\nanswer = None\n{code}\n"
        text += "import json as _j; print('\\n' + _j.dumps(answer, default=str))"
        done = self._run(["-c", text], None, env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.strip().rpartition("\n")[2])

    def _run(
        self, words: list[str], stdin: str | None, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.path,
            env=self.env | env,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def worker(self, *args: object, **env: str) -> subprocess.Popen[bytes]:
        """A worker in a process group of its own; it writes to ``worker.log``."""
        with open(self.path / "worker.log", "ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", self.name, "worker", *map(str, args)],
                cwd=self.path,
                env=self.env | env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._workers.append(worker)
        return worker

    def log(self) -> str:
        """What the workers wrote."""
        file = self.path / "worker.log"
        return file.read_text("utf-8", "replace") if file.exists() else ""

    # The record

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """One statement on the package's own database, committed; ``?`` marks values."""
        if self._connection is None:
            if self.database_url.startswith("sqlite"):
                path = self.database_url.removeprefix("sqlite:///")
                self._connection = sqlite3.connect(
                    path, isolation_level=None, timeout=30
                )
            else:
                import psycopg

                self._connection = psycopg.connect(self.database_url, autocommit=True)
        if not self.database_url.startswith("sqlite"):
            sql = sql.replace("?", "%s")
        cursor = self._connection.execute(sql, values)
        return list(cursor.fetchall()) if cursor.description else []

    def instant(self, seconds: float) -> object:
        """So many seconds from now, as the record keeps it."""
        now = time.time() + seconds
        if self.database_url.startswith("sqlite"):
            return round(now * 1000)
        return datetime.fromtimestamp(now, UTC)

    def fake_boot(
        self, queues: list[str], jobs: list[str], *, slots: int = 4, dead: bool = False
    ) -> str:
        """The row of a worker process that does nothing and, unless dead, seems alive."""
        boot = str(uuid.uuid4())
        self.query(
            f"INSERT INTO {self.table}_boots (id, name, host, pid, target, queues, slots,"
            " jobs, started_at, last_seen, dead_at) VALUES"
            " (?, 'fake', 'nowhere', 1, 'arq', ?, ?, ?, ?, ?, ?)",
            boot,
            json.dumps(queues),
            slots,
            json.dumps(dict.fromkeys(jobs, 1)),
            self.instant(-60),
            self.instant(3600),
            self.instant(-30) if dead else None,
        )
        return boot

    @property
    def table(self) -> str:
        """The record's table, as the spec's default names it."""
        return f"{self.name.removesuffix('_queue')}_jobs"

    def wait_until(
        self, answer: Callable[[], object], patience: float = PATIENCE
    ) -> Any:
        """The first answer that is true; fails with the workers' log after a while."""
        until = time.monotonic() + patience
        while not (found := answer()):
            assert time.monotonic() < until, self.log()[-5000:]
            time.sleep(0.05)
        return found
