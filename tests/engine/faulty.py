"""Runs a generated package that waits at one point of its engine.

    python faulty.py POINT FOLDER -m PACKAGE COMMAND...

At its first visit to the point the process writes the file `FOLDER/reached` and goes on
when `FOLDER/go` is there.  That is all: it is killed or frozen from outside, by the
test.  The engine itself has no hooks; here one function is wrapped.
"""

from __future__ import annotations

import functools
import importlib
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# POINT: (module, class or "", function, "before" or "after").
POINTS: dict[str, tuple[str, str, str, str]] = {
    # a message is off Redis and nothing is written yet
    "after-dequeue": ("runner", "Runner", "run", "before"),
    # inside the claim's transaction: written, not committed
    "inside-claim": ("door", "", "claim", "after"),
    # the claim is committed, the handler has not begun
    "after-claim": ("runner", "Runner", "register", "before"),
    # the handler is done, no transaction is open
    "before-finish": ("finisher", "Finisher", "write", "before"),
    # inside the finish's transaction: written, not committed
    "inside-finish": ("record", "", "finish", "after"),
    # the finish is committed and nobody in the process knows
    "after-finish": ("finisher", "Finisher", "_write", "after"),
    # rows are marked as published and committed, Redis has nothing
    "mid-dispatch": ("broker", "Broker", "publish", "before"),
    # Redis has the messages, the process does not know
    "after-dispatch": ("broker", "Broker", "publish", "after"),
    # the tables are made, not committed
    "mid-migrate": ("migrate", "", "_differences", "before"),
    # a sweep knows whom to judge, and has not looked yet
    "mid-judgement": ("beat", "Beat", "judge", "after"),
    # a beat is committed, and the process does not know
    "after-beat": ("beat", "Beat", "_look_at_mine", "before"),
}


class Gate:
    """The first visitor says that it is there and waits; later ones pass."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._skip = int(os.environ.get("FAULTY_SKIP", "0"))

    def visit(self) -> None:
        with self._lock:
            if self._skip < 0:
                return
            self._skip -= 1
            if self._skip >= 0:
                return
        (self._folder / "reached").write_text(str(os.getpid()))
        while not (self._folder / "go").exists():
            time.sleep(0.005)


def wrap(package: str, point: str, gate: Gate) -> None:
    module_name, class_name, name, when = POINTS[point]
    module = importlib.import_module(f"{package}.{module_name}")
    holder: Any = getattr(module, class_name) if class_name else module
    function: Callable[..., Any] = getattr(holder, name)

    @functools.wraps(function)
    def waiting(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            gate.visit()
            return function(*args, **kwargs)
        answer = function(*args, **kwargs)
        gate.visit()
        return answer

    setattr(holder, name, waiting)


def main() -> None:
    point, folder, flag, package, *command = sys.argv[1:]
    assert flag == "-m"
    sys.path.insert(0, os.getcwd())
    wrap(package, point, Gate(Path(folder)))
    sys.argv = [package, *command]
    runpy.run_module(package, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
