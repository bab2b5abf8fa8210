"""What each backend can do, and what follows from a spec on it.

A backend is a folder here and a folder in ``templates/``.  ``TARGETS`` holds those that
are built; ``COMING`` are part of the language and refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qgen.targets.arq import ARQ
from qgen.targets.backend import Backend
from qgen.targets.rq import RQ

TARGETS: Final[Mapping[str, Backend]] = {backend.name: backend for backend in (ARQ, RQ)}
COMING: Final = ("celery",)
