"""The worker that qgen makes of bench/specs/queue.toml.

`build` writes the package once per kind and dialect; the children find it on PYTHONPATH. Only
its public face is used: enqueue, enqueue_many, and `python -m bench_queue`.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.systems import SLOTS, Client, Payload

SPEC = Path(__file__).parent / "specs" / "queue.toml"
PACKAGE = "bench_queue"


def build(dialect: str, folder: Path, spec: str, target: str) -> Path:
    """Build into an empty folder; returns what has to be on PYTHONPATH."""
    spec = re.sub(r'(?m)^dialect = "\w+"', f'dialect = "{dialect}"', spec)
    (folder / "queue.toml").write_text(spec)
    command = [sys.executable, "-m", "qgen", "build", "queue.toml", "--target", target]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return next(folder.rglob(f"{PACKAGE}/__init__.py")).parents[1]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", PACKAGE, *words]


class GeneratedClient:
    """``kinds`` are names of payload classes, taken in turns."""

    def __init__(self, kinds: Sequence[str] = ("Noop",)) -> None:
        self.package: Any = None
        self._kinds = kinds

    async def open(self) -> None:
        self.package = importlib.import_module(PACKAGE)

    async def enqueue(self, payload: Payload) -> None:
        self.package.enqueue(self._job(payload))

    async def enqueue_many(self, payloads: Sequence[Payload]) -> None:
        self.package.enqueue_many([self._job(each) for each in payloads])

    def _job(self, payload: Payload) -> Any:
        kind = self._kinds[int(payload["n"]) % len(self._kinds)]
        return getattr(self.package, kind)(**payload)

    async def close(self) -> None:
        pass


class Generated:
    def __init__(self, kinds: Sequence[str] = ("Noop",)) -> None:
        self._kinds = kinds

    def setup(self) -> None:
        subprocess.run(command("migrate"), check=True, stdout=subprocess.DEVNULL)

    def client(self) -> Client:
        return GeneratedClient(self._kinds)

    def worker(self) -> None:
        words = command("worker")
        os.execv(words[0], words)


def spec(kind: str) -> str:
    slots = f"concurrency = {SLOTS[kind]}"
    return re.sub(r"(?m)^concurrency = \d+", slots, SPEC.read_text())


def adapter(option: str) -> Generated:
    return Generated()
