"""Data without what was refused, so that the rest can still be checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from qgen.spec.spans import Path

# What the types need in any case: where it was refused or left out, this stands in.
STAND_INS: Final = {("schema_version",): 1, ("project", "name"): "project"}
# An entry that cannot be without a key goes as a whole when the key goes.
NEEDED: Final = {"agents": "owner", "schedules": "job"}


def without(data: dict[str, Any], refused: Iterable[Path]) -> dict[str, Any]:
    """A copy without the refused paths."""
    paths = set(refused)
    if not paths:
        return data
    copied = copy(data, (), paths)
    for path, value in STAND_INS.items():
        node = copied
        for part in path[:-1]:
            node = node.setdefault(str(part), {})
        node.setdefault(str(path[-1]), value)
    for table, key in NEEDED.items():
        entries = copied.get(table, {})
        copied[table] = {name: each for name, each in entries.items() if key in each}
    for job in copied.get("jobs", {}).values():
        for name, field in job.get("payload", {}).items():
            if isinstance(field, dict) and "type" not in field:
                job["payload"][name] = "json"
    return copied


def copy(table: dict[str, Any], path: Path, refused: set[Path]) -> dict[str, Any]:
    """The table without its refused children.  A list with a refused entry goes as a
    whole, since its entries have meaning by their places."""
    kept = {}
    for key, value in table.items():
        here = (*path, key)
        if here in refused or has_refused_entry(value, here, refused):
            continue
        kept[key] = copy(value, here, refused) if isinstance(value, dict) else value
    return kept


def has_refused_entry(node: Any, path: Path, refused: set[Path]) -> bool:
    """True for a list with a refused entry."""
    return isinstance(node, list) and any(
        (*path, i) in refused for i in range(len(node))
    )
