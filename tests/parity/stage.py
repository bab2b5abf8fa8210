"""What a behaviour works with: a package of one cell on servers of its own."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import redis as client
from cells import Kind
from engine import faults
from engine.faults import Package, Worker, until

import servers

# A job that buys two answers; what was bought is a line in a file.
BUYER: Final = """

def bought(job, step):
    file = os.open(LEDGER + ".bill", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, f"{job.id} {step}\\n".encode())
    finally:
        os.close(file)
    return step


async def buy(job, payload):
    note("start", job, payload.n)
    for step in ("first", "second"):
        job.paid_call(step, lambda key: bought(job, step), max_cost="0.05")
        note(step, job, payload.n)
        await act(job, payload) if step == "first" and job.attempt == 1 else None
    note("end", job, payload.n)
""".replace("        job.paid_call", "        await job.paid_call")

JOBS: Final = """
[workers.main]
concurrency = 2

[jobs.brief]
timeout = "1s"
tries = 1
handler = "tested_handlers:work"
[jobs.brief.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }

# A queue of which two run at once, and one of which three start in two seconds.
[queues.narrow]
max_running = 2

[queues.rated]
rate = "3/2s"

[jobs.narrow]
queue = "narrow"
handler = "tested_handlers:work"
[jobs.narrow.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }

[jobs.rated]
queue = "rated"
handler = "tested_handlers:work"
[jobs.rated.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }

[agents.writer]
owner = "me"
cap = { day = "10" }

[jobs.buy]
agent = "writer"
max_cost = "0.10"
[jobs.buy.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""

SPEC: Final = faults.QUICK + faults.JOBS + JOBS

# Nobody is declared dead while a test runs, and nobody's grace ends: what is recovered
# or released was so at once.
PATIENT: Final = SPEC.replace('after = "4s"', 'after = "2m"').replace(
    'grace = "2s"', 'grace = "30s"'
)
HANDLERS: Final = faults.HANDLERS + BUYER


@dataclass
class Stage:
    """A package of this cell, its Redis, and who does what in its processes."""

    kind: Kind
    dialect: str
    database_url: str
    redis: servers.Redis
    folder: Path

    @cached_property
    def package(self) -> Package:
        """The usual one, whose workers find a death within seconds."""
        return self.open(SPEC)

    @cached_property
    def patient(self) -> Package:
        """Another on the same rows: see `PATIENT`."""
        return self.open(PATIENT)

    def open(self, spec: str, handlers: str = HANDLERS) -> Package:
        """A package of this cell on the stage's servers, its tables made."""
        tree = faults.build(self.dialect, spec, handlers, kind=self.kind)
        made = tree.at(self.database_url, self.redis.url, self.folder / "run")
        made.env[f"{made.name.upper()}_SPOOL"] = str(self.folder / "spool")
        return made.migrate()

    def worker(self, patient: bool = False) -> Worker:
        """A worker that is there; ``patient``: one that declares nobody dead."""
        return (self.patient if patient else self.package).worker()

    def add(self, first: int, many: int = 1, **how: Any) -> list[str]:
        """Jobs with the numbers from ``first`` on; their ids."""
        api = self.package.api
        payloads = [api.Work(n=n, **how) for n in range(first, first + many)]
        return [one.id for one in api.enqueue_many(payloads)]

    def started(self, n: int, times: int = 1) -> faults.Run:
        """Waits for a job's start; the last one."""
        starts = self.package.ledger.starts
        until(lambda: len(starts(n)) >= times, lambda: f"start {times} of {n}: {self}")
        return starts(n)[times - 1]

    def gate(self, name: str = "gate") -> Path:
        """A file that a job waits for with ``mode=f"gate:{path}"``."""
        return self.folder / name

    def by_hand(self) -> client.Redis:
        """A client to do things by hand."""
        return client.Redis.from_url(self.redis.url)

    def bill(self) -> list[str]:
        """What was bought, in order."""
        path = Path(f"{self.package.ledger.path}.bill")
        return path.read_text().splitlines() if path.exists() else []

    def completed(self, many: int, attempt: int = 1) -> None:
        """All rows completed at this attempt, and no attempt ran twice."""
        assert self.package.settled() == {"completed": many}
        rows = self.package.rows()
        assert {row["attempt"] for row in rows} <= set(range(1, attempt + 1))
        self.explained()

    def explained(self) -> None:
        """Every start of a handler is an attempt of its row, and none is there twice."""
        starts = [(run.id, run.attempt) for run in self.package.ledger.starts()]
        assert len(starts) == len(set(starts)), starts
        attempts = {row["id"]: row["attempt"] for row in self.package.rows()}
        assert all(attempts[id_] >= attempt for id_, attempt in starts), starts


def kill(pid: int) -> None:
    """SIGKILL to one process."""
    os.kill(pid, signal.SIGKILL)


def parent_of(pid: int) -> int:
    """Who has started it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("PPid:"):
            return int(line.split()[1])
    raise AssertionError(pid)


def alive(pids: list[int]) -> list[int]:
    """Those that still run; one that nobody has waited for does not."""

    def runs(pid: int) -> bool:
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] not in "ZX"

    return [pid for pid in pids if runs(pid)]
