"""Tables, the conditions of a run, and docs/benchmarks.md."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
HEAD = """\
# Benchmarks

Printed by `python3 dev.py bench ... --write`; do not edit. Every table is one run on
one machine, the systems taking turns. Compare figures within a table only, as ratios.
"""
LIBRARIES = ("arq", "rq", "celery", "redis", "psycopg", "asyncpg", "pydantic")


LOAD_BEFORE = os.getloadavg()[0]  # what else the machine was doing


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The median, with the least and the most."""
    middle, low, high = (
        f"{value:,.{digits}f}"
        for value in (statistics.median(values), min(values), max(values))
    )
    return middle if len(values) == 1 else f"{middle} ({low}-{high})"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def verdict(what: str, value: float, *, least: float = 0, most: float = 0) -> str:
    """One line: a ratio beside its bound, and whether it keeps it."""
    kept = value >= least and (not most or value <= most)
    bound = f"at most {most:g}" if most else f"at least {least:g}"
    return f"- {what}: {value:.2f}, must be {bound}: {'kept' if kept else 'MISSED'}"


def flush_time() -> float:
    """Milliseconds of one small write and fdatasync, the median of 200."""
    took = []
    sync = getattr(os, "fdatasync", os.fsync)
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(200):
            file.write(b"x" * 512)
            file.flush()
            began = time.perf_counter()
            sync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


def conditions() -> str:
    """The machine and the versions, as a list."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    lines = [
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}; servers,"
        f" client and worker share them; load {LOAD_BEFORE:.1f} before the run,"
        f" {os.getloadavg()[0]:.1f} after it",
        f"Python {platform.python_version()}, {', '.join(versions)},"
        f" SQLite {sqlite3.sqlite_version}",
        "Redis without persistence; PostgreSQL with fsync, full_page_writes and"
        " synchronous_commit on; SQLite in WAL mode with synchronous FULL",
        f"one flush to this disk takes {flush_time():.2f} ms (median of 200)",
    ]
    return "\n".join(f"- {line}" for line in lines)


def write(section: str, title: str, text: str, document: Path = DOCUMENT) -> None:
    """Put one section into the document, in place of the one of that name."""
    document.parent.mkdir(exist_ok=True)
    old = document.read_text("utf-8") if document.exists() else HEAD
    block = f"<!-- {section} -->\n## {title}\n\n{text}\n<!-- /{section} -->\n"
    known = re.compile(rf"<!-- {section} -->\n.*?<!-- /{section} -->\n", re.DOTALL)
    if known.search(old):
        new = known.sub(lambda _: block, old)
    else:
        new = f"{old.rstrip()}\n\n{block}"
    document.write_text(new, "utf-8")
