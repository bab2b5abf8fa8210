"""The orders that isort demands of imports and of ``__all__``, as ruff checks them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cmp_to_key
from itertools import zip_longest
from typing import Final

_PARTS: Final = re.compile(r"[0-9]+|[^0-9]")


def natural(names: Iterable[str]) -> list[str]:
    """Sorted so that ``a2`` comes before ``a10``."""
    return sorted(names, key=cmp_to_key(_compare))


def public(names: Iterable[str]) -> list[str]:
    """The order of ``__all__``: CONSTANTS, Classes, everything else."""
    return sorted(natural(names), key=_kind)


def _kind(name: str) -> int:
    if name.isupper() and len(name) > 1:
        return 0
    return 1 if name[0].isupper() else 2


def _compare(a: str, b: str) -> int:
    """Character by character; runs of digits by value, or, with leading zeros, as
    fractions."""
    for x, y in zip_longest(_PARTS.findall(a), _PARTS.findall(b), fillvalue=""):
        if x == y:
            continue
        numbers = x[:1].isdigit() and y[:1].isdigit() and "0" not in (x[0], y[0])
        smaller = (len(x), x) < (len(y), y) if numbers else x < y
        return -1 if smaller else 1
    return 0
