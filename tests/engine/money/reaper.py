"""Runs a package's worker whose processes die, or freeze, at points of its engine by chance.

    REAPER=SEED REAPER_CHANCE=0.008 python reaper.py -m PACKAGE worker

At each visit of a named point something happens with a small probability: the process
that is there, the one that has started it, or the whole worker is killed with SIGKILL;
or it, or the whole worker, is stopped with SIGSTOP (the test wakes it later).  The engine
itself has no hooks; here five functions are wrapped.  Forked processes inherit that, and
the helper of a parent that forks is started through this file too.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import random
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANCE = float(os.environ.get("REAPER_CHANCE", "0"))
FATES = {"alone": 4, "parent": 2, "whole": 2, "freeze": 2, "pause": 1}
DICE = random.Random()


def shake() -> None:
    """Every process has luck of its own, also one of many that one parent forks."""
    DICE.seed(f"{os.environ.get('REAPER', '0')}:{os.getpid()}")


def visit(point: str) -> None:
    if DICE.random() >= CHANCE:
        return
    fate = DICE.choices(list(FATES), list(FATES.values()))[0]
    # Not by sys.stderr, which celery makes a logger of.
    os.write(2, f"reaper: {point}: {fate}\n".encode())
    number = signal.SIGSTOP if fate in ("freeze", "pause") else signal.SIGKILL
    for pid in struck(fate):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def struck(fate: str) -> list[int]:
    """Whom it strikes; this process last, since nothing goes on after that."""
    me, parent = os.getpid(), os.getppid()
    if fate == "parent" and parent in worker():
        return [parent]
    if fate in ("whole", "pause"):
        return [*(pid for pid in worker() if pid != me), me]
    return [me]


def worker() -> list[int]:
    """The processes of this worker, the eldest first: its session is its own."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        pid = int(path.name)
        try:
            if os.getsid(pid) == os.getsid(0):
                found.append(pid)
        except ProcessLookupError:
            pass
    return sorted(found)


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
    module = sys.argv[2]
    package = module.partition(".")[0]

    def part(name: str) -> Any:
        return importlib.import_module(f"{package}.{name}")

    shake()
    os.register_at_fork(after_in_child=shake)
    wrap(part("runner").Runner, "register", after=lambda _: "after-claim")
    wrap(part("till").Till, "_commit", after=committed)
    wrap(part("bills"), "answered", before="after-answer")
    wrap(part("record"), "finish", after=lambda _: "inside-finish")
    if module == package and importlib.util.find_spec(f"{package}.helper"):
        part("helper").COMMAND[:] = [
            sys.executable,
            __file__,
            "-m",
            f"{package}.helper",
        ]
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    main()
