"""Runs a package's worker that dies, or freezes, at points of its engine by chance.

    REAPER=SEED python reaper.py -m PACKAGE worker

At each visit of a named point the process kills itself with SIGKILL, or stops itself
with SIGSTOP (the test wakes it later), with a small probability.  The engine itself has
no hooks; here five functions are wrapped.
"""

from __future__ import annotations

import functools
import importlib
import os
import random
import runpy
import signal
import sys
from collections.abc import Callable
from typing import Any

CHANCE = float(os.environ.get("REAPER_CHANCE", "0.006"))
DICE = random.Random(f"{os.environ.get('REAPER', '0')}:{os.getpid()}")


def visit(point: str) -> None:
    if DICE.random() < CHANCE:
        number = signal.SIGSTOP if DICE.random() < 0.25 else signal.SIGKILL
        print(f"reaper: {point}: {number.name}", file=sys.stderr, flush=True)
        os.kill(os.getpid(), number)


def wrap(
    owner: Any, name: str, before: str = "", after: Callable[[Any], str] | None = None
) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before:
            visit(before)
        result = original(*args, **kwargs)
        if after is not None and (point := after(args)):
            visit(point)
        return result

    setattr(owner, name, wrapped)


def committed(args: Any) -> str:
    _till, orders, settlings = args
    return "after-open" if orders else "after-settle" if settlings else ""


def main() -> None:
    package = sys.argv[2]

    def part(name: str) -> Any:
        return importlib.import_module(f"{package}.{name}")

    wrap(part("runner").Runner, "register", after=lambda _: "after-claim")
    wrap(part("till").Till, "_commit", after=committed)
    wrap(part("bills"), "answered", before="after-answer")
    wrap(part("record"), "finish", after=lambda _: "inside-finish")
    sys.argv = [package, *sys.argv[3:]]
    runpy.run_module(package, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    main()
