"""A payload's fields as the lines of a pydantic class, and the imports they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .fit import fit
from .literal import Code, literal, name
from .model import DictOf, Enum, Field, FieldType, ListOf, Optional, Scalar, Table

_NAMES: Final = {
    "decimal": "Decimal",
    "uuid": "UUID",
    "datetime": "dt.datetime",
    "date": "dt.date",
    "json": "JsonValue",
}
_IMPORTS: Final = {
    "datetime": "import datetime as dt",
    "date": "import datetime as dt",
    "decimal": "from decimal import Decimal",
    "enum": "from typing import Literal",
    "uuid": "from uuid import UUID",
}
_LIMITS: Final = (
    ("ge", "min"),
    ("le", "max"),
    ("min_length", "min_length"),
    ("max_length", "max_length"),
    ("pattern", "pattern"),
)


def body(payload: tuple[Field, ...]) -> Code:
    """The class body's fields, in their order."""
    return Code("\n".join(fit(_field(each)) for each in payload))


def standard_imports(payload: tuple[Field, ...]) -> list[Code]:
    """What the module needs of the standard library, as isort orders it."""
    used = {_IMPORTS[kind] for kind in _all_kinds(payload) if kind in _IMPORTS}
    return [
        Code(line) for line in sorted(used, key=lambda line: (line[0] != "i", line))
    ]


def pydantic_names(payload: tuple[Field, ...]) -> Code:
    """What the module needs of pydantic."""
    names = ["BaseModel", "ConfigDict"]
    if any(_options(each) for each in payload):
        names.append("Field")
    if "json" in _all_kinds(payload):
        names.append("JsonValue")
    return Code(", ".join(names))


def _all_kinds(payload: tuple[Field, ...]) -> set[str]:
    return {kind for each in payload for kind in _kinds(each.type)}


def _kinds(kind: FieldType) -> Iterator[str]:
    match kind:
        case Scalar():
            yield kind.kind
        case Enum():
            yield "enum"
        case ListOf() | DictOf() | Optional():
            yield from _kinds(kind.of)


def annotation(kind: FieldType) -> str:
    """The type as Python writes it."""
    match kind:
        case Scalar():
            return _NAMES.get(kind.kind, kind.kind)
        case Enum():
            return f"Literal[{', '.join(map(literal, kind.values))}]"
        case ListOf():
            return f"list[{annotation(kind.of)}]"
        case DictOf():
            return f"dict[str, {annotation(kind.of)}]"
        case Optional():
            return f"{annotation(kind.of)} | None"


def _field(field: Field) -> str:
    line = f"    {name(field.name)}: {annotation(field.type)}"
    options = _options(field)
    if field.default is None:
        return f"{line} = Field({', '.join(options)})" if options else line
    default = literal(_as_default(field))
    if not options:
        return f"{line} = {default}"
    return f"{line} = Field({', '.join([f'default={default}', *options])})"


def _as_default(field: Field) -> object:
    assert field.default is not None
    return _mutable(field.default.value)


def _mutable(value: object) -> object:
    """What is frozen in the model as lists and tables; pydantic copies a default."""
    match value:
        case tuple():
            return [_mutable(each) for each in value]
        case Table():
            return {key: _mutable(of) for key, of in value.items}
    return value


def _options(field: Field) -> list[str]:
    """The arguments of ``Field(...)`` beside the default."""
    limits = [
        f"{option}={literal(limit)}"
        for option, key in _LIMITS
        if (limit := getattr(field.constraints, key)) is not None
    ]
    if field.description:
        limits.append(f"description={literal(field.description)}")
    return [*limits, "repr=False"] if field.sensitive else limits
