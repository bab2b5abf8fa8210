"""Does history cost anything? Drains beside a million finished rows and beside none.

And what the planner says about the statements that run for every job.
"""

from __future__ import annotations

import json
import re
import sqlite3
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from bench import report, ticks
from bench.stage import Show, open_stage
from bench.systems import System

TITLE = "A long history"
HISTORY = 1_000_000
JOBS = 5_000
REPS = 3
TABLE = "bench_jobs"

# The statements a job meets on its way, by their names in statements.py.
HOT = (
    "ENQUEUE",
    "DISPATCH",
    "CLAIM_READ",
    "CLAIM_WRITE",
    "MINE",
    "COMPLETE",
    "OUTSTANDING",
    "STRANDED",
)
SAMPLE_ID = "01900000-0000-7000-8000-000000000000"
SAMPLE: dict[str, Any] = {
    "ids": json.dumps([SAMPLE_ID]),
    "jobs": '["noop"]',
    "batch": json.dumps([{"id": SAMPLE_ID, "dispatch": 1, "fence": 1, "timeout": 1}]),
    "queue": "default",
    "boot": SAMPLE_ID,
    "most": 50,
    "target": 54,
    "window": True,
}


class Values(dict[str, Any]):
    """A value for every parameter: what is not a sample is a number of milliseconds."""

    def __missing__(self, name: str) -> int:
        return 60_000


def statements(show: Show) -> dict[str, str]:
    """The generated package's SQL, by name, without importing the package."""
    (path,) = show.package.glob("*/statements.py")
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return {name: scope[name] for name in HOT if name in scope}


def fill(show: Show) -> None:
    """Copy one completed row a million times, finished over the last 20 days."""
    show.call("enqueue_many", 1)
    show.start_worker()
    show.wait_for_ticks(1)
    show.wait_until_finished()
    show.stop_worker()
    postgres = show.system.dialect == "postgresql"
    if postgres:
        sql = "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
        columns = [row[0] for row in show.query(sql, TABLE)]
        new = {
            "id": "gen_random_uuid()",
            "finished_at": "finished_at - random() * interval '20 days'",
        }
        numbers = f"generate_series(1, {HISTORY})"
    else:
        columns = [row[1] for row in show.query(f"PRAGMA table_info({TABLE})")]
        parts = [f"lower(hex(randomblob({size})))" for size in (4, 2, 2, 2, 6)]
        new = {
            "id": " || '-' || ".join(parts),
            "finished_at": "finished_at - abs(random() % 1728000000)",
        }
        numbers = (
            "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            f" WHERE i < {HISTORY}) SELECT i FROM n)"
        )
    values = ", ".join(new.get(column, column) for column in columns)
    show.query(
        f"INSERT INTO {TABLE} ({', '.join(columns)}) SELECT {values}"
        f" FROM (SELECT * FROM {TABLE} LIMIT 1) AS one, {numbers} AS many"
    )
    show.query(f"VACUUM ANALYZE {TABLE}" if postgres else "ANALYZE")


def drain(show: Show) -> float:
    """Jobs a second of one worker on a backlog of JOBS."""
    before = ticks.count(show.ticks)
    show.call("enqueue_many", JOBS)
    show.start_worker()
    show.wait_for_ticks(before + JOBS)
    finished = show.wait_until_finished()
    show.stop_worker()
    return JOBS / (finished - ticks.read(show.ticks)[before])


def explain(show: Show) -> Iterator[tuple[str, str]]:
    """Each hot statement with the indexes of its plan, and a scan of all jobs if any."""
    for name, sql in statements(show).items():
        if show.system.dialect == "postgresql":
            import psycopg

            with psycopg.connect(show.url, cursor_factory=psycopg.ClientCursor) as db:
                text = f"EXPLAIN (FORMAT JSON) {sql}".encode()
                (plan,) = db.execute(text, Values(SAMPLE)).fetchone() or ([],)
            found = sorted(set(walk(plan)))
        else:
            path = show.url.removeprefix("sqlite:///")
            with sqlite3.connect(path) as db:
                steps = db.execute(f"EXPLAIN QUERY PLAN {sql}", Values(SAMPLE))
                lines = [row[3] for row in steps]
            tables = {TABLE, *re.findall(rf"\b{TABLE} (?:AS )?([a-z]+)\b", sql)}
            found = sorted({word for line in lines for word in used(line, tables)})
        yield name, ", ".join(found)


def walk(node: Any) -> Iterator[str]:
    """The names of indexes in a plan of PostgreSQL, and a scan of all jobs."""
    if isinstance(node, dict):
        if "Index Name" in node:
            yield node["Index Name"]
        if node.get("Node Type") == "Seq Scan" and node["Relation Name"] == TABLE:
            yield f"ALL OF {TABLE}"
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def used(line: str, tables: set[str]) -> Iterator[str]:
    """The same in one step of SQLite's; `tables` are the names the jobs have in it."""
    if match := re.search(r"USING (?:COVERING )?INDEX (\w+)", line):
        yield re.sub(r"sqlite_autoindex_(\w+)_1", r"\1_pkey", match[1])
    elif line.startswith("SCAN") and line.split()[1] in tables:
        yield f"ALL OF {TABLE}"


def main(systems: Sequence[System]) -> str:
    rows, plans, verdicts = [], [], []
    with open_stage() as stage:
        for system in systems:
            with stage.show(system) as short, stage.show(system) as long:
                print(f"plan: {system.name}: filling", file=sys.stderr, flush=True)
                fill(long)
                rates: tuple[list[float], list[float]] = [], []
                for number in range(REPS):
                    print(f"plan: {system.name}: {number + 1}", file=sys.stderr)
                    for show, mine in zip((short, long), rates, strict=True):
                        stage.redis.flush()
                        mine.append(drain(show))
                none, many = map(statistics.median, rates)
                rows.append(
                    [system.name, *map(report.spread, rates), f"{none / many:.2f}"]
                )
                verdicts.append(report.verdict(system.name, none / many, most=1.5))
                plans += [[system.name, *line] for line in explain(long)]
    bounds = "\n".join(verdicts)
    head = ["system", "drain beside none /s", f"beside {HISTORY:,} /s", "time x"]
    return f"""\
Drains of {JOBS:,} jobs beside no finished rows and beside {HISTORY:,}, in turns, medians
of {REPS} (least-most).

{report.table(head, rows)}

{bounds}

What the planner uses for the statements of every job, beside {HISTORY:,} finished rows
(a scan of the whole table would stand here in capitals):

{report.table(["system", "statement", "indexes"], plans)}

{report.conditions()}
"""
