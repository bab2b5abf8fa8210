"""Payload fields: types, limits, defaults, enums."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

from pydantic import Field as Limit
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaError

from qgen.diagnostics.catalogue import values as codes
from qgen.model import (
    Constraints,
    Default,
    DictOf,
    Field,
    FieldType,
    ListOf,
    Optional,
    Scalar,
    Table,
    Value,
)
from qgen.resolve.draft import Draft
from qgen.resolve.types import TAKES, Unfit, fit, inner, parse
from qgen.spec.finding import Finding
from qgen.spec.secrets import is_secret_name
from qgen.spec.shape import FieldTable
from qgen.spec.spans import Path

LENGTHS = ("min_length", "max_length")


def check(draft: Draft) -> Iterator[Finding]:
    """Every field of every job."""
    for job, given in draft.spec.jobs.items():
        for name, field in given.payload.items():
            at: Path = ("jobs", job, "payload", name)
            if isinstance(field, FieldTable):
                yield from of_table(at, field)
            if is_secret_name(name) and not full(field).sensitive:
                yield Finding(
                    codes.LOOKS_SECRET,
                    at,
                    f"the field `{name}` is called like a secret; its values are kept in"
                    " the database.",
                    "let the handler read the secret, or write"
                    ' { type = "str", sensitive = true }',
                    at="key",
                    unless=(at,),
                )


def of_table(at: Path, field: FieldTable) -> Iterator[Finding]:
    """A field in full: its limits fit its type, its default fits both."""
    problems = [*enum_values(at, field), *limits(at, field)]
    yield from problems
    if problems or "default" not in field.model_fields_set:
        return
    try:
        value = fit(field.default, kind_of(field))
        refuse(value, kind_of(field), constraints(field))
    except Unfit as unfit:
        yield Finding(
            codes.DEFAULT_UNFIT,
            (*at, "default"),
            f"the default of `{at[-1]}` does not fit its type {field.type}.",
            f"write {unfit}",
            also=(((*at, "type"), "its type"),),
            unless=(at,),
        )


def kind_of(field: FieldTable) -> FieldType:
    """The type of a field's table."""
    return parse(field.type, tuple(field.values or ()))


def enum_values(at: Path, field: FieldTable) -> Iterator[Finding]:
    """An enum has values, all of one kind, each once; nothing else has any."""
    is_enum = "enum" in field.type
    if is_enum and not field.values:
        message = f"the enum `{at[-1]}` has no `values`."
        write = 'add values = ["…", "…"]'
        unless = ((*at, "values"),)
        yield Finding(codes.ENUM_VALUES, (*at, "type"), message, write, unless=unless)
    if not field.values:
        return
    where: Path = (*at, "values")
    if not is_enum:
        message = f"`values` has no effect on the type {field.type}."
        write = 'write type = "enum", or leave the values out'
        yield Finding(codes.LIMIT_UNFIT, where, message, write, at="key")
    elif len({type(value) for value in field.values}) > 1:
        message = f"the values of `{at[-1]}` are partly texts and partly numbers."
        yield Finding(codes.ENUM_VALUES, where, message, "write all of them alike")
    elif any(isinstance(value, str) and "\x00" in value for value in field.values):
        message = f"a value of `{at[-1]}` holds a NUL character."
        yield Finding(codes.ENUM_VALUES, where, message, "write it without NUL")
    for index, value in enumerate(field.values):
        if value in field.values[:index]:
            message = f"an entry of `values` of `{at[-1]}` stands twice."
            write = "delete one of the two"
            yield Finding(codes.REPEATED, (*where, index), message, write)


def limits(at: Path, field: FieldTable) -> Iterator[Finding]:
    """Each limit goes with the type, and no least is above its greatest."""
    kind = inner(kind_of(field))
    scalar = kind.kind if isinstance(kind, Scalar) else ""
    long = scalar == "str" or isinstance(kind, ListOf | DictOf)
    for key in ("min", "max"):
        value = getattr(field, key)
        if value is None:
            continue
        if scalar not in ("int", "float", "decimal"):
            yield unfit(at, key, field, "it goes with int, float and decimal")
        elif as_limit(value, scalar) is None:
            yield unfit(at, key, field, f"write {TAKES[scalar]}")
    for key in LENGTHS:
        if getattr(field, key) is not None and not long:
            yield unfit(at, key, field, "it goes with str, list and dict")
    if field.pattern is not None:
        if scalar != "str":
            yield unfit(at, "pattern", field, "it goes with str")
        elif matcher(field.pattern) is None:
            yield Finding(
                codes.BAD_PATTERN,
                (*at, "pattern"),
                f"the `pattern` of `{at[-1]}` is not a regular expression here.",
                "mend it; look-around and back-references cannot be used",
            )
    found = constraints(field)
    for low, high in (("min", "max"), LENGTHS):
        least, most = getattr(found, low), getattr(found, high)
        if least is not None and most is not None and least > most:
            yield Finding(
                codes.LIMIT_UNFIT,
                (*at, low),
                f"`{low}` of `{at[-1]}` is above its `{high}`.",
                "write the smaller one first",
                also=(((*at, high), f"`{high}`"),),
            )


def unfit(at: Path, key: str, field: FieldTable, help: str) -> Finding:
    """A limit that the type does not take."""
    message = f"`{key}` does not fit the type {field.type} of `{at[-1]}`."
    also = (((*at, "type"), "its type"),)
    return Finding(codes.LIMIT_UNFIT, (*at, key), message, help, also=also)


def as_limit(value: int | float | str | None, scalar: str) -> Any:
    """A limit as a number of the field's type, or None."""
    if scalar == "decimal":
        return None if value is None else Decimal(str(value))
    if isinstance(value, str) or (scalar == "int" and isinstance(value, float)):
        return None
    return value


def constraints(field: FieldTable) -> Constraints:
    """The limits of a field, as far as they fit its type."""
    kind = inner(kind_of(field))
    scalar = kind.kind if isinstance(kind, Scalar) else ""
    return Constraints(
        min=as_limit(field.min, scalar),
        max=as_limit(field.max, scalar),
        min_length=field.min_length,
        max_length=field.max_length,
        pattern=field.pattern,
    )


@cache
def matcher(pattern: str) -> TypeAdapter[str] | None:
    """What pydantic makes of a pattern; None when it or Python refuses it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
            return TypeAdapter(Annotated[str, Limit(pattern=pattern)])
    except (re.error, OverflowError, RecursionError, SchemaError):
        return None


def refuse(value: Value, kind: FieldType, limits: Constraints) -> None:
    """Raise Unfit when a value is outside its limits."""
    kind = inner(kind)
    least: Any = limits.min
    most: Any = limits.max
    if least is not None and value < least:
        raise Unfit(f"{least} or more")
    if most is not None and value > most:
        raise Unfit(f"{most} or less")
    entries = value.items if isinstance(value, Table) else value
    size = len(entries) if isinstance(entries, str | tuple) else 0
    if limits.min_length is not None and size < limits.min_length:
        raise Unfit(f"a length of {limits.min_length} or more")
    if limits.max_length is not None and size > limits.max_length:
        raise Unfit(f"a length of {limits.max_length} or less")
    if limits.pattern is not None and (adapter := matcher(limits.pattern)):
        try:
            adapter.validate_python(value)
        except ValidationError:
            raise Unfit("a text that matches its `pattern`") from None


def full(given: str | FieldTable) -> FieldTable:
    """A field as a table, however short it was written."""
    return of_type(given) if isinstance(given, str) else given


@cache  # a spec has few types and many fields
def of_type(text: str) -> FieldTable:
    """The table of a field that has only a type."""
    return FieldTable(type=text)


def field_of(name: str, given: str | FieldTable) -> Field:
    """The model's field; only after ``check`` found no error."""
    field = full(given)
    kind = kind_of(field)
    default = Default(None) if isinstance(kind, Optional) else None
    if "default" in field.model_fields_set:
        default = Default(fit(field.default, kind))
    return Field(
        name,
        kind,
        default,
        constraints(field),
        field.description or "",
        field.sensitive,
    )
