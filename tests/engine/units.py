"""A built package inside the test's own process: its functions on a real database.

For what a process test could only hit by luck: two transactions in a stated order, a
reply that is lost, a boot that dies between a look and a write.  No worker runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from uuid import uuid4

import redis
from engine import faults
from engine.faults import Row

import servers

SPEC: Final = faults.QUICK + """
[retries.once]
tries = 1

[jobs.brief]
timeout = "5s"
[jobs.brief.payload]
n = "int"

[jobs.alone]
unique_by = ["n"]
[jobs.alone.payload]
n = "int"
note = { type = "str", default = "" }

[jobs.single]
retry = "once"
max_defers = 3
[jobs.single.payload]
n = "int"
""" + faults.JOBS


def nobody(_id: str) -> bool:
    """`mine` of a process that runs nothing."""
    return False


class Engine:
    """The package's modules, and the few steps that every test takes."""

    def __init__(self, package: faults.Package) -> None:
        self.package = package
        self.api = package.api
        self.redis = redis.Redis.from_url(package.redis_url)
        self._open: list[Any] = []
        for key in self.redis.scan_iter(f"*{package.name}:*"):
            self.redis.delete(key)  # of the test before
        self.part("migrate").upgrade()
        self.record = self.part("record")
        self.door = self.part("door")
        self.messages = self.part("messages")
        self.outcomes = self.part("outcomes")
        self.statements = self.part("statements")
        self.job = self.part("catalog").BY_NAME

    def close(self) -> None:
        for opened in self._open:
            opened.close()
        self.redis.close()

    def part(self, module: str) -> ModuleType:
        return self.package.part(module)

    def database(self, patience: float = 5.0) -> Any:
        """A connection of its own."""
        made = self.part("database").Database(self.package.database_url, patience)
        self._open.append(made)
        return made

    def waiting(self, queue: str = "default") -> int:
        """How many messages stand in the queue's list, in whatever its backend keeps."""
        broker = self.part("broker")
        if hasattr(broker, "keys_of"):
            keys = broker.keys_of([queue])
        else:
            keys = [broker.queue_key(queue)]
        count = {b"zset": self.redis.zcard, b"list": self.redis.llen}
        found = [(self.redis.type(key), key) for key in keys]
        return sum(int(count[kind](key)) for kind, key in found if kind != b"none")

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        database = self.part("database").Database(self.package.database_url, 5.0)
        try:
            with database.transaction() as tx:
                yield tx
        finally:
            database.close()

    def ask(self, statement: str, **params: object) -> list[Row]:
        """One statement of the engine, committed."""
        with self.transaction() as tx:
            rows: list[Row] = tx.all(getattr(self.statements, statement), **params)
            return rows

    def boot(self, *, dead: bool = False, slots: int = 2) -> str:
        """The row of a process that has just started."""
        id_ = str(uuid4())
        with self.transaction() as tx:
            tx.run(
                self.statements.BOOT_INSERT,
                boot=id_,
                name="main",
                host="here",
                pid=1,
                target="arq",
                queues='["default"]',
                slots=slots,
                jobs=self.part("catalog").versions(),
            )
            if dead:
                tx.run(self.statements.BOOT_END, boot=id_)
        return id_

    def put(self, payload: Any = None, **how: Any) -> str:
        """A row that is not dispatched, as a caller's transaction leaves it."""
        with self.transaction() as tx:
            if payload is None:
                payload = self.api.Work(n=1)
            accepted = self.api.enqueue(payload, connection=tx._connection, **how)
        return str(accepted.id)

    def dispatch(self, target: int = 100, jobs: str | None = None) -> list[Any]:
        """Marks what is due; the messages, which nobody publishes."""
        known = self.part("catalog").versions() if jobs is None else jobs
        with self.transaction() as tx:
            marked = self.record.dispatch(tx, "default", target, known)
        return list(marked)

    def dispatched(self, payload: Any = None, **how: Any) -> Any:
        """A new row's message."""
        id_ = self.put(payload, **how)
        (message,) = [m for m in self.dispatch() if m.id == id_]
        return message

    def claims(
        self, *messages: Any, boot: str, mine: Callable[[str], bool] = nobody
    ) -> Any:
        with self.transaction() as tx:
            return self.door.claim(tx, messages, boot, mine)

    def claimed(self, boot: str, payload: Any = None, **how: Any) -> Any:
        """A new row that runs: its claim."""
        message = self.dispatched(payload, **how)
        return self.claims(message, boot=boot).admitted[message.id]

    def claimed_again(self, boot: str, id_: str) -> Any:
        """The row's next attempt, as soon as it is due."""
        self.make_due(id_)
        (message,) = [m for m in self.dispatch() if m.id == id_]
        return self.claims(message, boot=boot).admitted[id_]

    def make_due(self, id_: str) -> None:
        now = instant(self.package.dialect)
        self.package.sql(
            f"UPDATE jobs SET run_at = {now}, sort_at = {now} WHERE id = ?", id_
        )

    def held(self, claim: Any, boot: str) -> Any:
        return self.outcomes.Held.by(boot, claim)

    def finish(self, *endings: Any) -> dict[str, str]:
        with self.transaction() as tx:
            states: dict[str, str] = self.record.finish(tx, endings)
            return states

    def row(self, id_: str) -> Row:
        return self.package.row(id_)


def instant(dialect: str, seconds: float = -1.0) -> str:
    """SQL for an instant so many seconds from now."""
    if dialect == "sqlite":
        now = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
        return f"({now} + ({round(seconds * 1000)}))"
    return f"(now() + {seconds} * interval '1 second')"


@contextmanager
def engine(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    folder: Path,
    spec: str = SPEC,
) -> Iterator[Engine]:
    tree = faults.build(dialect, spec)
    made = Engine(tree.at(database_url, redis_server.url, folder))
    try:
        yield made
    finally:
        made.close()
