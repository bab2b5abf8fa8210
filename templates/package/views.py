"""Rows as people and tools read them: JSON forms and aligned tables.

Instants become RFC 3339 in UTC, money a decimal string, and a payload field marked
``sensitive`` becomes ``***``.  Nothing here fails on a row that cannot be read: it is
shown as the text that it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from . import catalog
from .codec import decode
from .database import Row

MASK: Final = "***"
MILLION: Final = 1_000_000

_JSON: Final = ("result", "error", "progress", "windows", "queues")
_INSTANTS: Final = ("oldest", "newest", "last_seen", "slot")
_MONEY: Final = ("cost", "reserved")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WIDEST: Final = 60


def shown(row: Row) -> Row:
    """The row as JSON has it, under the same names."""
    return {name: _shown(name, value, row) for name, value in row.items()}


def _shown(name: str, value: Any, row: Row) -> Any:
    if value is None:
        return None
    if name == "payload":
        return masked(row["job"], row["payload_version"], value)
    if name in _JSON:
        return decode(value)
    if name in _MONEY:
        return money(value)
    if name.endswith("_at") or name in _INSTANTS:
        return instant(value)
    return value


def masked(job: str, version: int, payload: str) -> Any:
    """A payload without what is sensitive.

    Which fields are is known only of the jobs and versions that this code runs; of any
    other, and where a payload with such fields is no object, all is masked.
    """
    known = catalog.runs(job, version)
    sensitive = catalog.BY_NAME[job].sensitive if known else ()
    value = decode(payload)
    if known and not sensitive:
        return value
    if not isinstance(value, dict):
        return MASK
    return {
        name: MASK if name in sensitive or not known else field
        for name, field in value.items()
    }


def instant(milliseconds: int) -> str:
    """RFC 3339 in UTC; what no calendar holds stays a number of milliseconds."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def money(millionths: int) -> str:
    """A decimal string, at least two places and as many as are needed."""
    sign = "-" if millionths < 0 else ""
    whole, rest = divmod(abs(millionths), MILLION)
    return f"{sign}{whole}.{f'{rest:06d}'.rstrip('0'):0<2}"


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Aligned columns under their names, numbers to the right; one line a row."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [
        max(len(line[n]) for line in [list(columns), *cells])
        for n in range(len(columns))
    ]
    right = [
        bool(rows) and all(isinstance(row.get(c), int | float) for row in rows)
        for c in columns
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [list(columns), *cells]
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    # One line, and nothing that moves a terminal's cursor.
    line = "".join(c if c.isprintable() else " " for c in value)
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
