"""Kill a worker mid-job, wipe Redis, and see what is lost.

    python3 dev.py demo

It builds examples/support into a folder that is thrown away, with handlers that take a
moment and note every start, and with short stall settings, so that the demonstration
takes seconds instead of minutes. Everything else is as checked in. What it prints it
has counted, and it ends with 1 when a figure is not what qgen promises.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "support"
JOBS = 60
PATIENCE = 60.0
STALL = '\n[stall]\nheartbeat = "1s"\nafter = "3s"\nsweep = "1s"\n'

# What stands for the example's handlers: the same ones, slowed down and counted.
HANDLERS = '''\
"""The example's handlers; each notes its start and takes a moment."""

import asyncio
import json
import os

from support import handlers


def noted(handler):
    async def run(job, payload):
        line = json.dumps([job.id, job.attempt, os.getpid()])
        with open(os.environ["DEMO_STARTS"], "ab", buffering=0) as starts:
            starts.write(f"{line}\\n".encode())
        await asyncio.sleep(0.4)
        result = handler(job, payload)
        return await result if asyncio.iscoroutine(result) else result

    return run


alarm = handlers.alarm
classify = noted(handlers.classify)
digest = noted(handlers.digest)
draft_reply = noted(handlers.draft_reply)
index_attachment = noted(handlers.index_attachment)
'''

sys.path[:0] = [str(ROOT / "templates" / "tests")]
import servers  # noqa: E402


@dataclass(frozen=True)
class Start:
    """A handler was started: of which job, in which attempt and process."""

    id: str
    attempt: int
    pid: int


class Stage:
    """A built copy of the example, its record, its Redis and its workers."""

    def __init__(self, folder: Path, redis: servers.Redis) -> None:
        self.folder = folder
        self.redis = redis
        self.workers: list[subprocess.Popen[bytes]] = []
        self._starts = folder / "starts"
        self._record = folder / "record.db"
        self.env = os.environ | {
            "DATABASE_URL": f"sqlite:///{self._record}",
            "REDIS_URL": redis.url,
            "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(ROOT / "src")]),
            "DEMO_STARTS": str(self._starts),
        }

    def build(self) -> None:
        """Copies the spec and the handlers, and runs ``qgen build``."""
        spec = (EXAMPLE / "queue.toml").read_text("utf-8")
        spec = spec.replace("support.handlers", "demo_handlers") + STALL
        (self.folder / "queue.toml").write_text(spec, "utf-8")
        shutil.copytree(EXAMPLE / "src" / "support", self.folder / "src" / "support")
        (self.folder / "src" / "demo_handlers.py").write_text(HANDLERS, "utf-8")
        self.run("qgen", "build")
        self.run("support_queue", "migrate")

    def run(self, module: str, *arguments: str) -> None:
        """Runs a command to its end; its output is shown only when it fails."""
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{module} failed:\n{done.stdout}{done.stderr}")

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker process, as a supervisor would start it."""
        with open(self.folder / f"worker-{len(self.workers)}.log", "wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "support_queue", "worker"],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        servers.keeper().watch(worker.pid)
        self.workers.append(worker)
        return worker

    def enqueue(self) -> list[str]:
        """Accepts the jobs through the package's own API; returns their ids."""
        os.environ.update(
            {name: self.env[name] for name in ("DATABASE_URL", "REDIS_URL")}
        )
        sys.path.insert(0, str(self.folder / "src"))
        package = importlib.import_module("support_queue")
        return [str(package.enqueue(job(package, n)).id) for n in range(JOBS)]

    def starts(self) -> list[Start]:
        """Every start of a handler so far, as the handlers noted it."""
        try:
            lines = self._starts.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [Start(*json.loads(line)) for line in lines]

    def rows(self, query: str) -> list[Any]:
        """What the record says."""
        with contextlib.closing(sqlite3.connect(self._record, timeout=10)) as record:
            return record.execute(query).fetchall()

    def count(self, state: str) -> int:
        """How many jobs are in this state."""
        query = f"SELECT count(*) FROM support_jobs WHERE state = '{state}'"
        return int(self.rows(query)[0][0])

    def close(self) -> None:
        """Ends the workers."""
        for worker in self.workers:
            worker.kill()
            worker.wait()
            servers.keeper().forget(worker.pid)


def job(package: Any, n: int) -> Any:
    """The payload of the nth job: the four kinds in turn."""
    ticket = uuid.uuid5(uuid.NAMESPACE_URL, f"ticket/{n}")
    text = f"Hello, my parcel {n} is late and the invoice is wrong."
    match n % 4:
        case 0:
            return package.Classify(ticket_id=ticket, subject="Parcel", text=text)
        case 1:
            return package.DraftReply(ticket_id=ticket, text=text, tone="warm")
        case 2:
            name = f"letter-{n}.txt"
            lines = [text] * 3
            return package.IndexAttachment(
                ticket_id=ticket, file_name=name, lines=lines
            )
        case _:
            day = f"2026-{n // 28 + 1:02}-{n % 28 + 1:02}"
            topics = {"billing": n, "delivery": 2}
            return package.Digest(kind="daily", day=day, open_tickets=n, topics=topics)


def unexplained(stage: Stage) -> int:
    """Starts that no attempt in the record stands for.

    A job's row counts its attempts, and each attempt that did not complete the job has
    a row of its own that says why. One start each, and no attempt left out.
    """
    attempts = dict(stage.rows("SELECT id, attempt FROM support_jobs"))
    cut = set(stage.rows("SELECT job_id, attempt FROM support_jobs_attempts"))
    seen = Counter((start.id, start.attempt) for start in stage.starts())
    return sum(
        count - ((id_, attempt) in cut or attempt == attempts[id_])
        for (id_, attempt), count in seen.items()
    )


def until(true: Callable[[], Any]) -> bool:
    """Waits until it is true; False when it never is."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@contextlib.contextmanager
def stage() -> Iterator[Stage]:
    """A stage in a folder of its own; nothing is left of it."""
    with tempfile.TemporaryDirectory(prefix="qgen-demo-") as place:
        with servers.Redis() as redis:
            made = Stage(Path(place).resolve(), redis)
            try:
                yield made
            finally:
                made.close()


def play(stage: Stage, say: Callable[[str], None]) -> dict[str, float]:
    """The whole demonstration; returns the figures of the table."""
    say(
        "Building examples/support: SQLite keeps the jobs, an embedded Redis runs them."
    )
    say(
        "(A silent worker counts as dead after 3 s here, not 60, so that you wait less.)"
    )
    stage.build()
    begun = time.monotonic()
    ids = stage.enqueue()
    say(f"Enqueued {len(ids)} jobs. Each is a committed row before Redis hears of it.")
    victim, other = stage.start_worker(), stage.start_worker()
    say(f"Started two workers: processes {victim.pid} and {other.pid}.")
    until(lambda: at_work(stage, victim.pid))
    victim.kill()
    victim.wait()
    cut, done = running(stage, victim.pid), stage.count("completed")
    say(
        f"Killed {victim.pid} with SIGKILL, in the middle of {cut} jobs; {done} were done."
    )
    keys = stage.redis.command("DBSIZE")
    stage.redis.flush()
    say(f"Wiped Redis with FLUSHALL: {keys} keys, among them every waiting message.")
    say(f"Worker {other.pid} goes on, and takes over what the dead one held ...")
    until(lambda: not stage.count("queued") and not stage.count("active"))
    seconds = time.monotonic() - begun
    completed = stage.count("completed")
    ended = completed + stage.count("failed") + stage.count("cancelled")
    return {
        "accepted": len(ids),
        "completed": completed,
        "lost": len(ids) - ended,
        "cut by the kill": cut,
        "run twice": unexplained(stage),
        "seconds": round(seconds, 1),
    }


def at_work(stage: Stage, pid: int) -> bool:
    """Whether this process has done some jobs and runs others now."""
    begun = sum(start.pid == pid for start in stage.starts())
    return begun >= 8 and running(stage, pid) >= 2


def running(stage: Stage, pid: int) -> int:
    """How many jobs the record says this process runs now."""
    query = (
        "SELECT count(*) FROM support_jobs j JOIN support_jobs_boots b "
        f"ON b.id = j.worker WHERE j.state = 'active' AND b.pid = {pid}"
    )
    return int(stage.rows(query)[0][0])


def table(figures: dict[str, float]) -> str:
    """The figures, one a line, with a word on those that need it."""
    notes = {
        "cut by the kill": "started again, each with an attempt that says why",
        "run twice": "starts that no attempt in the record explains",
    }
    lines = [
        f"  {name:<16} {value:>6}   {notes.get(name, '')}".rstrip()
        for name, value in figures.items()
    ]
    return "\n".join(lines)


def broken(figures: dict[str, float]) -> list[str]:
    """Where the figures are not what qgen promises."""
    wanted = {"accepted": JOBS, "completed": JOBS, "lost": 0, "run twice": 0}
    found = [
        f"{name} should be {value}, not {figures[name]}"
        for name, value in wanted.items()
        if figures[name] != value
    ]
    if not figures["cut by the kill"]:
        found.append("the kill met no running job, so nothing was shown")
    return found


def main() -> int:
    with stage() as made:
        figures = play(made, lambda line: print(line, flush=True))
        print(f"\n{table(figures)}\n")
        for line in broken(figures):
            print(f"demo: {line}", file=sys.stderr)
        return 1 if broken(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
