"""Amounts of money: integers of a millionth of the unit, from whatever code reports."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Final

MILLION: Final = 1_000_000

# Far above any cap, and far below what the record's columns hold.
LARGEST: Final = 10**15


def millionths(value: object) -> int:
    """A number as an amount, rounded up to a millionth.

    Takes int, float, Decimal or a decimal string; ValueError for a boolean, a negative
    or non-finite number, more than a thousand million units, and anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError(f"an amount is a number, not {type(value).__name__}")
    try:
        # str(float) is the shortest decimal that means it: 0.1 is 0.1, not 0.1000...05
        number = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{str(value)[:40]!r} is not an amount") from None
    if not number.is_finite() or number < 0:
        raise ValueError(f"an amount is finite and not negative, not {number}")
    if number > LARGEST // MILLION:
        raise ValueError(f"{number:.3g} is more than any amount may be")
    return int((number * MILLION).to_integral_value(ROUND_CEILING))


def decimal(amount: int) -> str:
    """A decimal string, at least two places and as many as are needed."""
    sign = "-" if amount < 0 else ""
    whole, rest = divmod(abs(amount), MILLION)
    return f"{sign}{whole}.{f'{rest:06d}'.rstrip('0'):0<2}"
