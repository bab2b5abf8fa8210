"""The deploy files: written once, then the user's; whether those on disk still suffice.

Every time in them comes from ``model.times``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from . import containers
from .files import File
from .model import Model
from .render import plain
from .resolve.units import span

COMPOSE: Final = "deploy/compose.yaml"
_TEMPLATES: Final = {
    COMPOSE: "deploy/compose.yaml.j2",
    "deploy/Dockerfile": "deploy/Dockerfile.j2",
}
_PERIOD: Final = re.compile(
    r"^[ \t]*stop_grace_period:[ \t]*[\"']?((?:[0-9.]+(?:us|ms|[hms]))+)[\"']?[ \t]*(?:#.*)?$",
    re.MULTILINE,
)
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms|[hms])")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


def files(model: Model) -> Iterator[File]:
    """Both, each written only where none is."""
    for path, template in _TEMPLATES.items():
        text = partial(plain, template, model=model, deploy=containers)
        yield File(path, cache(text), "once")


@dataclass(frozen=True, slots=True)
class Short:
    """A stop period in a compose file that is below what the spec needs."""

    line: int
    column: int
    written: str
    needed: str


def short_stops(text: str, needed: float) -> Iterator[Short]:
    """Each of them, in the order of the file."""
    for found in _PERIOD.finditer(text):
        parts = _PART.findall(found[1])
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
        if seconds < needed:
            before = text[: found.start(1)]
            line = before.count("\n") + 1
            column = found.start(1) - (before.rfind("\n") + 1) + 1
            yield Short(line, column, found[1], span(needed))
