"""The table: which behaviour runs on which cell.

By default every behaviour runs on the default mode of each backend that forks, once, in
turn on either database: ``tests/engine`` shows arq and more.  QGEN_PARITY=all runs every
cell; QGEN_PARITY=rq-simple-sqlite,… those named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from cells import DIALECTS, KINDS, Kind
from parity.behaviours import BEHAVIOURS, NEEDS

DEFAULTS: Final = ("rq-fork", "celery-prefork")
WANTED: Final = os.environ.get("QGEN_PARITY", "")


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
