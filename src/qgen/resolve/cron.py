"""Cron lines: whether each field is in its range, and how often a line runs in a day."""

from __future__ import annotations

import re
from typing import Final

MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS: Final = "sun mon tue wed thu fri sat".split()
FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("second", 0, 59, {}),
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(MONTHS, 1)}),
    ("day of week", 0, 7, {name: number for number, name in enumerate(DAYS)}),
)
PART: Final = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]{1,4}))?")


def wrong_field(line: str) -> str | None:
    """The name of the first field that is not in its range, or None."""
    texts = line.split()
    for text, (name, low, high, words) in zip(
        texts, FIELDS[-len(texts) :], strict=True
    ):
        if expand(text, low, high, words) is None:
            return name
    return None


def expand(text: str, low: int, high: int, words: dict[str, int]) -> set[int] | None:
    """The numbers that a field stands for, or None when it is wrong."""
    found: set[int] = set()
    for part in text.split(","):
        match = PART.fullmatch(part)
        if match is None:
            return None
        star, first, last, step = match.groups()
        start = low if star else number(first, words)
        end = high if star or (step and not last) else start
        if last:
            end = number(last, words)
        stride = int(step or 1)
        if start is None or end is None or stride < 1:
            return None
        if not low <= start <= end <= high:
            return None
        found.update(range(start, end + 1, stride))
    return found


def number(text: str, words: dict[str, int]) -> int | None:
    """``7`` or ``jul``; None for neither."""
    if text.isascii() and text.isdigit():
        return int(text)
    return words.get(text.lower())


def runs_a_day(line: str) -> float:
    """Runs on a day on which the line runs; 0 for a wrong line."""
    texts = line.split()
    runs = 1
    for text, (name, low, high, words) in zip(
        texts, FIELDS[-len(texts) :], strict=True
    ):
        if name in ("second", "minute", "hour"):
            runs *= len(expand(text, low, high, words) or ())
    return float(runs)
