"""The table: every behaviour, and which of them runs on which cell.

By default every behaviour runs on the default mode of each backend that forks, once, in
turn on either database: ``tests/engine`` shows arq and more.  QGEN_PARITY=all runs every
cell; QGEN_PARITY=rq-simple-sqlite,… those named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

from cells import DIALECTS, KINDS, Kind
from parity.stage import Stage

Behaviour = Callable[[Stage], None]
BEHAVIOURS: Final[dict[str, Behaviour]] = {}
NEEDS: Final[dict[str, Callable[[Kind], bool]]] = {}

DEFAULTS: Final = ("rq-fork", "celery-prefork")
WANTED: Final = os.environ.get("QGEN_PARITY", "")


def behaviour(
    needs: Callable[[Kind], bool] = lambda _kind: True,
) -> Callable[[Behaviour], Behaviour]:
    """Adds one to the table.  ``needs``: a process that not every backend has."""

    def added(function: Behaviour) -> Behaviour:
        BEHAVIOURS[function.__name__] = function
        NEEDS[function.__name__] = needs
        return function

    return added


def cells() -> Iterator[tuple[str, Kind, str]]:
    """Behaviour, kind and dialect of every cell that runs now."""
    for turn, name in enumerate(BEHAVIOURS):
        for place, kind in enumerate(KINDS.values()):
            if not NEEDS[name](kind):
                continue
            for dialect in DIALECTS:
                if _is_wanted(kind.name, dialect, turn + place):
                    yield name, kind, dialect


def _is_wanted(kind: str, dialect: str, turn: int) -> bool:
    if not WANTED:
        return kind in DEFAULTS and dialect == DIALECTS[turn % 2]
    return WANTED == "all" or f"{kind}-{dialect}" in WANTED.split(",")
