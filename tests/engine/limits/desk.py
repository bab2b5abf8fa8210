"""A package with every limit, and the steps that its tests take in their own process."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

from engine import faults
from engine.faults import Row
from engine.units import Engine, nobody

SLOTS: Final = 4
JOBS: Final = {
    "alone": "max_running = 1",
    "keyed": 'max_running = 2\nmax_running_by = "who"',
    "fair": 'tenant_by = "who"',
    "both": 'tenant_by = "who"\nmax_running = 1\nmax_running_by = "n"',
    "brisk": 'start_within = "1h"\non_failed = "tested_handlers:work"',
    "free": "",
    "paid": 'agent = "writer"\nmax_cost = "0.01"',
}
SPEC: Final = """
[stall]
heartbeat = "60s"
after = "1h"

[queues.narrow]
max_running = 2
aliases = ["slim"]

[queues.rated]
rate = "3/2s"

[queues.wide]

[agents.writer]
owner = "me"
cap = { day = "1000" }
rate = "2/10m"
""" + "".join(
    f"""
[jobs.{name}]
handler = "tested_handlers:work"
{more}
[jobs.{name}.payload]
n = {{ type = "int", default = 1 }}
who = {{ type = "str", default = "" }}
mode = {{ type = "str", default = "" }}
seconds = {{ type = "float", default = 0.0 }}
""" for name, more in JOBS.items()
)


class Desk:
    """The engine with what these tests ask of it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.turns = self.part("turns").Turns()
        self.boot = self.start()

    def part(self, module: str) -> Any:
        return self.engine.part(module)

    def start(self) -> str:
        """The row of a process that serves every queue."""
        id_ = str(uuid4())
        catalog = self.part("catalog")
        with self.engine.transaction() as tx:
            tx.run(
                self.engine.statements.BOOT_INSERT,
                boot=id_,
                name="main",
                host="here",
                pid=1,
                target="arq",
                queues=json.dumps(list(catalog.QUEUE_NAMES)),
                slots=SLOTS,
                jobs=catalog.versions(),
            )
        return id_

    def put(self, job: str, count: int = 1, **values: Any) -> list[str]:
        """Rows that nobody has published yet."""
        names = ("queue", "priority", "delay")
        how = {name: values.pop(name) for name in names if name in values}
        payload = getattr(self.engine.api, job.capitalize())
        with self.engine.transaction() as tx:
            return [
                self.engine.api.enqueue(
                    payload(**{"n": n} | values), connection=tx._connection, **how
                ).id
                for n in range(count)
            ]

    def fill(self) -> list[Any]:
        """One round over every window: what would be published, in order."""
        dispatch = self.part("dispatch")
        with self.engine.transaction() as tx:
            return list(dispatch.chosen(tx, dispatch.Fleet.read(tx), self.turns))

    def claim(self, messages: Iterable[Any], boot: str = "") -> Any:
        with self.engine.transaction() as tx:
            return self.engine.door.claim(tx, list(messages), boot or self.boot, nobody)

    def marked(self, ids: Sequence[str]) -> list[Any]:
        """Messages of these rows, whatever a dispatch would say: as after a race."""
        messages = []
        for id_ in ids:
            self.engine.package.sql(
                "UPDATE jobs SET dispatch = dispatch + 1,"
                " dispatched_at = created_at WHERE id = ?",
                id_,
            )
            row = self.row(id_)
            made = self.engine.messages.Message
            messages.append(made(id_, row["dispatch"], row["job"], row["queue"]))
        return messages

    def finish(self, claims: Iterable[Any]) -> None:
        endings = [
            self.engine.outcomes.completed(self.engine.held(claim, self.boot), None)
            for claim in claims
        ]
        self.engine.finish(*endings)

    def row(self, id_: str) -> Row:
        return self.engine.row(id_)

    def reasons(self, ids: Iterable[str]) -> Counter[tuple[str, str | None]]:
        """How many of these rows are in which state, and why."""
        rows = [self.row(id_) for id_ in ids]
        return Counter((row["state"], row["reason"]) for row in rows)

    def worked_off(self, queue: str = "default") -> Iterator[str]:
        """Runs one row after the other, refilling as a finish does; ids as they start."""
        waiting = self.fill()
        jobs = self.part("catalog").versions()
        while waiting:
            claims = list(self.claim([waiting.pop(0)]).admitted.values())
            yield from (claim.id for claim in claims)
            self.finish(claims)
            with self.engine.transaction() as tx:
                waiting += self.turns.dispatch(tx, queue, SLOTS + 4, jobs, 1)

    def raced(self, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        """Two claims: the second begins when the first has written, and not committed."""
        done: list[Any] = []
        # The gates are there already, as on every day but the first: making one waits too.
        self.engine.package.sql(
            "INSERT INTO jobs_gates (key) VALUES ('queue:narrow'), ('queue:rated')"
        )
        with self.engine.transaction() as tx:
            one = self.engine.door.claim(tx, first, self.boot, nobody)
            other = threading.Thread(target=lambda: done.append(self.claim(second)))
            other.start()
            other.join(0.3)
        other.join(faults.PATIENCE)
        return [one, *done]
