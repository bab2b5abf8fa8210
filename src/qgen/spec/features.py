"""Which parts of the language this version checks but does not build.

To lift a refusal, delete its line.  ``*`` stands for any name; a value behind ``=``
narrows the line to that value; an entry of ``jobs.*`` binds ``defaults`` too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qgen.diagnostics.catalogue import later
from qgen.diagnostics.catalogue.code import Code
from qgen.spec.finding import Finding
from qgen.spec.spans import Path

UNBUILT: Final[tuple[tuple[str, Code], ...]] = (
    ("record.existing=true", later.ADOPTION),
    ("record.id_type", later.ADOPTION),
    ("record.columns", later.ADOPTION),
    ("record.states", later.ADOPTION),
    ("record.migrations=alembic", later.ALEMBIC),
    ("record.versions", later.ALEMBIC),
)

# Of the knobs of the chosen target.
KNOBS: Final = ("poll_delay",)


def unbuilt(data: dict[str, Any], target: str) -> Iterator[Finding]:
    """One finding for each key that is not built yet.

    Knobs of another target than the chosen one are ignored, as the language says.
    """
    lines = [*UNBUILT, *((f"targets.{target}.{knob}", later.KNOBS) for knob in KNOBS)]
    for line, code in lines:
        pattern, _, value = line.partition("=")
        for each in dict.fromkeys((pattern, pattern.replace("jobs.*", "defaults"))):
            for path, found in matches(data, tuple(each.split(".")), ()):
                if not value or found == {"true": True}.get(value, value):
                    yield refusal(code, path)


def matches(node: Any, pattern: Path, path: Path) -> Iterator[tuple[Path, Any]]:
    """The paths below a node that a pattern names, with their values."""
    if not pattern:
        yield path, node
    elif isinstance(node, dict):
        head, rest = pattern[0], pattern[1:]
        for key in node if head == "*" else [head] if head in node else []:
            yield from matches(node[key], rest, (*path, key))


def refusal(code: Code, path: Path) -> Finding:
    """The finding of one key."""
    name = ".".join(map(str, path))
    message = f"`{name}` is not built yet in this version of qgen."
    return Finding(code, path, message, "leave it out for now", at="key")
