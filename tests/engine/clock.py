"""A record whose clock can be moved: the one `now` of its statements reads a shift.

The templates name the database's instant once in each file of statements (`now`). A
package built here has that text replaced; no other package, and no template, knows of it.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from engine import faults

TEMPLATES: Final = Path(__file__).parents[2] / "templates"
TABLE: Final = "moved_clock"
MOVED: Final = {
    "sqlite": f"({{now}} + (SELECT ms FROM {TABLE}))",
    "postgresql": f"({{now}} + (SELECT ms FROM {TABLE}) * interval '1 millisecond')",
}


@functools.cache
def build(dialect: str, spec: str, handlers: str = faults.HANDLERS) -> faults.Tree:
    """A package that reads the moved clock."""
    tree = faults.build(dialect, f"{spec}\n# with a clock to move\n", handlers)
    for file in (tree.folder / tree.name).glob("*statements.py"):
        template = TEMPLATES / dialect / f"{file.name}.j2"
        found = re.search(r'set now = "(.+)"', template.read_text("utf-8"))
        assert found, f"{template} does not name its now"
        moved = MOVED[dialect].format(now=found[1])
        text = file.read_text("utf-8")
        assert found[1] in text
        file.write_text(text.replace(found[1], moved), "utf-8")
    return tree


class Clock:
    """The clock of one record; it goes on from where it was set."""

    def __init__(self, package: faults.Package) -> None:
        self._package = package
        package.sql(f"CREATE TABLE {TABLE} (ms bigint NOT NULL)")
        package.sql(f"INSERT INTO {TABLE} VALUES (0)")

    def at(self, instant: str | float) -> None:
        """An instant of UTC as text, or as seconds since the epoch."""
        seconds = instant if isinstance(instant, float) else stamp(instant)
        shift = round((seconds - datetime.now(UTC).timestamp()) * 1000)
        self._package.sql(f"UPDATE {TABLE} SET ms = ?", shift)


def stamp(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
