"""Texts with a unit as numbers: durations, money, rates."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

MILLISECONDS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
PART: Final = re.compile(r"([0-9]+)(ms|[dhms])")


@lru_cache(1024)  # specs say the same few times again and again
def seconds(text: str) -> float:
    """``1h30m`` -> 5400.0; exact to the millisecond."""
    parts = PART.findall(text)
    return sum(int(number) * MILLISECONDS[unit] for number, unit in parts) / 1000


def limit(text: str) -> float | None:
    """The same, where ``none`` means no limit."""
    return None if text == "none" else seconds(text)


def per(text: str) -> tuple[int, float]:
    """How many, in how many seconds: ``60/1m`` -> (60, 60.0)."""
    count, _, time = text.partition("/")
    return int(count), seconds(time)


def money(text: str) -> Decimal:
    """An amount, exact."""
    return Decimal(text)


def millionths(text: str) -> int:
    """An amount as an integer of a millionth of the unit, exact."""
    return int(Decimal(text) * 1_000_000)


def decimal(amount: int) -> str:
    """The inverse, with two places or as many as are needed: 200000 -> ``0.20``."""
    whole, rest = divmod(amount, 1_000_000)
    return f"{whole}.{f'{rest:06d}'.rstrip('0'):0<2}"


def span(value: float) -> str:
    """The inverse of ``seconds``: 5400.0 -> ``1h30m``."""
    left = round(value * 1000)
    text = ""
    for unit, size in MILLISECONDS.items():
        number, left = divmod(left, size)
        text += f"{number}{unit}" if number else ""
    return text or "0s"
