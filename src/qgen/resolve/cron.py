"""Cron lines, read by the engine's own module: the build and the workers agree on each.

``templates/package/cron.py`` imports the standard library only, so it is loaded from
where it stands.
"""

from __future__ import annotations

import importlib.util
import sys
from datetime import datetime
from functools import cache
from types import ModuleType
from typing import Final

from qgen.data import folder

NAME: Final = "qgen_engine_cron"


@cache
def engine() -> ModuleType:
    """The module."""
    place = folder("templates") / "package" / "cron.py"
    spec = importlib.util.spec_from_file_location(NAME, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def wrong_part(line: str) -> str | None:
    """What is wrong with a line, or None."""
    try:
        engine().read(line)
    except ValueError as error:
        return str(error)
    return None


def runs_a_day(line: str) -> float:
    """Runs on a day on which the line runs; 0 for a wrong line."""
    return 0.0 if wrong_part(line) else float(len(engine().read(line).times))


def slots(
    line: str | None, every: float | None, zone: str, after: datetime, most: int
) -> list[datetime]:
    """The first slots of a schedule after an instant, on the clock of its zone."""
    at = round(after.timestamp() * 1000)
    found: list[datetime] = []
    place = engine().zone_of(zone)
    cron = None if line is None else engine().Cron(engine().read(line), place)
    period = 0 if every is None else round(every * 1000)
    while len(found) < most:
        at = cron.after(at) if cron else (at // period + 1) * period
        found.append(datetime.fromtimestamp(at / 1000, place))
    return found
