"""Field types from their text, and values that fit them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any
from uuid import UUID

from qgen.model import (
    DictOf,
    Enum,
    FieldType,
    ListOf,
    Optional,
    Scalar,
    Table,
    Value,
)
from qgen.spec.words import DECIMAL

Values = tuple[str, ...] | tuple[int, ...]


class Unfit(Exception):
    """A value that its type refuses; the text says what the type takes."""


@cache
def parse(text: str, values: Values = ()) -> FieldType:
    """The type that a text of the right grammar stands for."""
    if text.endswith("?"):
        return Optional(parse(text[:-1], values))
    if text.startswith("list["):
        return ListOf(parse(text[5:-1], values))
    if text.startswith("dict["):
        return DictOf(parse(text[5:-1].partition(",")[2].lstrip(), values))
    if text == "enum":
        return Enum(values)
    return Scalar(text)  # type: ignore[arg-type]  # the grammar has no other words


def inner(kind: FieldType) -> FieldType:
    """The type without its question mark."""
    return kind.of if isinstance(kind, Optional) else kind


def fit(value: Any, kind: FieldType) -> Value:
    """A value of TOML as a value of the type.  Raises Unfit; never coerces loosely."""
    match kind:
        case Optional():
            return fit(value, kind.of)
        case Enum():
            if type(value) in (str, int) and value in kind.values:
                return value  # type: ignore[no-any-return]
            raise Unfit("one of its `values`")
        case ListOf():
            if isinstance(value, list):
                return tuple(fit(each, kind.of) for each in value)
            raise Unfit("a list")
        case DictOf():
            if isinstance(value, dict):
                return table({key: fit(each, kind.of) for key, each in value.items()})
            raise Unfit("a table")
        case Scalar():
            return fit_scalar(value, kind.kind)


def table(items: Mapping[str, Value]) -> Table:
    """A table with its keys sorted."""
    for key in items:
        if "\x00" in key:
            raise Unfit("keys without NUL")
    return Table(tuple(sorted(items.items())))


def fit_scalar(value: Any, kind: str) -> Value:
    """One value."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "str" if isinstance(value, str):
            if "\x00" in value:
                raise Unfit("a text without NUL")
            return value
        case "bool" if isinstance(value, bool):
            return value
        case "int" if number and isinstance(value, int):
            return int(value)
        case "float" if number and abs(value) < 1e308:
            return float(value)
        case "json":
            return json_value(value)
        case "decimal" | "uuid" | "datetime" | "date":
            found = fit_text(value, kind)
            if found is not None:
                return found
    raise Unfit(TAKES[kind])


TAKES = {
    "str": "a text in quotes",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a finite number",
    "decimal": 'a decimal in quotes, such as "0.01"',
    "uuid": "a UUID in quotes",
    "datetime": "a date and time",
    "date": "a date",
    "json": "texts, finite numbers, booleans, lists and tables",
}


def fit_text(value: Any, kind: str) -> Value:
    """A value that TOML has no kind for, or that may be written as a text."""
    try:
        match kind, value:
            case "decimal", int() if not isinstance(value, bool):
                return Decimal(value)
            case "decimal", str() if DECIMAL.regex.search(value):
                return Decimal(value)
            case "uuid", str():
                return UUID(value)
            case "datetime", datetime():
                return value
            case "datetime", str():
                return datetime.fromisoformat(value)
            case "date", date() if not isinstance(value, datetime):
                return value
            case "date", str():
                return date.fromisoformat(value)
    except (ValueError, InvalidOperation):
        pass
    return None


def json_value(value: Any) -> Value:
    """Anything that JSON holds."""
    if isinstance(value, list):
        return tuple(json_value(each) for each in value)
    if isinstance(value, dict):
        return table({key: json_value(each) for key, each in value.items()})
    if isinstance(value, date | time):
        raise Unfit(TAKES["json"])
    if isinstance(value, str):
        return fit_scalar(value, "str")
    if isinstance(value, float) and not math.isfinite(value):
        raise Unfit(TAKES["json"])
    return value  # type: ignore[no-any-return]  # bool, int or float
