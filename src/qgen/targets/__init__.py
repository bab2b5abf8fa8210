"""What each backend can do, and what follows from a spec on it.

A backend is a folder here, whose ``BACKEND`` describes it, and a folder of the same name
in ``templates/``.  Nothing else lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from qgen.targets.backend import Backend


def _built() -> Mapping[str, Backend]:
    """The backends by name, in order of their names."""
    folders = sorted(each.name for each in iter_modules(__path__) if each.ispkg)
    modules = (import_module(f"{__name__}.{folder}") for folder in folders)
    backends: list[Backend] = [module.BACKEND for module in modules]
    return {backend.name: backend for backend in backends}


TARGETS: Final = _built()
