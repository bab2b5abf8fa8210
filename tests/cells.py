"""The cells of the table that every behaviour is shown on: target, worker mode, dialect.

    QGEN_TEST_CELL=rq-fork pytest tests/engine      the engine's tests on another backend

A mode is a knob of ``[targets.<target>]``; it is part of the spec that is built.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import pytest

DIALECTS: Final = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Kind:
    """A backend in one of its modes, and what a test must know of its processes.

    ``knob`` is the line of its table.  ``supervised``: a parent starts its processes
    again.  ``forks``: a job has a process of its own, whose death costs no worker.
    """

    name: str
    target: str
    knob: str = ""
    supervised: bool = False
    forks: bool = False

    def spec(self, text: str) -> str:
        """The spec with this mode."""
        if not self.knob:
            return text
        return f"{text}\n[targets.{self.target}]\n{self.knob}\n"


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("arq", "arq"),
        Kind("rq-fork", "rq", 'worker = "fork"', supervised=True, forks=True),
        Kind("celery-prefork", "celery", 'pool = "prefork"', supervised=True),
        Kind("celery-threads", "celery", 'pool = "threads"'),
        Kind("rq-simple", "rq", 'worker = "simple"', supervised=True),
    )
}

# What the tests of the engine build, unless they say otherwise.
CHOSEN: Final = KINDS[os.environ.get("QGEN_TEST_CELL", "arq")]


def of(*names: str) -> pytest.MarkDecorator:
    """Of these targets or cells alone: others have nothing of the kind, or it has a test
    of its own there.
    """
    other = not {CHOSEN.name, CHOSEN.target} & set(names)
    return pytest.mark.skipif(other, reason=f"of {', '.join(names)} alone")
