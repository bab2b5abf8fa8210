"""The kinds of text that a spec may hold.

A kind is written into an annotation (``Annotated[str, DURATION]``).  Its pattern is
printed into the JSON Schema and checked by both sides, so they cannot disagree.
"""

from __future__ import annotations

from typing import Annotated, Final

from qgen.diagnostics.catalogue import values as codes
from qgen.spec.word import Word


def field_type(*scalars: str, levels: int = 4) -> str:
    """The pattern of ``str``, ``list[T]``, ``dict[str, T]`` and ``T?``, nested ``levels``
    deep: a regular expression cannot count, so the depth is part of the language."""
    scalar = "|".join(scalars)
    grammar = rf"(?:{scalar})\??"
    for _ in range(levels):
        grammar = rf"(?:{scalar}|(?:list\[|dict\[str, ?){grammar}\])\??"
    return f"^{grammar}$"


SCALARS: Final = (
    *("str", "int", "float", "bool", "decimal"),
    *("uuid", "datetime", "date", "json"),
)
SPAN: Final = (
    "(?:[0-9]{1,4}d)?(?:[0-9]{1,5}h)?(?:[0-9]{1,6}m)?(?:[0-9]{1,8}s)?(?:[0-9]{1,9}ms)?"
)
IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
DOTTED: Final = rf"{IDENTIFIER}(?:\.{IDENTIFIER})*"
AREAS: Final = (
    *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic"),
    *("Australia", "Etc", "Europe", "Indian", "Pacific"),
)

DURATION = Word(
    "a duration",
    f"^(?=.*[1-9]){SPAN}$",
    'write a whole number and its unit, such as "90s", "15m", "2h", "1d" or "1h30m"',
    codes.NOT_A_DURATION,
)
DURATION_OR_NONE = Word(
    'a duration or "none"',
    f"^(?:none|(?=.*[1-9]){SPAN})$",
    'write a number and its unit, such as "90s" or "1h30m", or "none" for no limit',
    codes.NOT_A_DURATION,
)
MONEY = Word(
    "an amount of money",
    r"^[0-9]{1,9}(?:\.[0-9]{1,6})?$",
    'write a decimal in quotes with at most six places, such as "0.40"',
    codes.NOT_MONEY,
)
NAME = Word(
    "a name in snake_case",
    "^[a-z][a-z0-9_]{0,39}$",
    "write at most 40 of a-z, 0-9 and _, beginning with a letter",
    codes.NOT_A_NAME,
)
PACKAGE = Word(
    "a package name in snake_case",
    "^[a-z][a-z0-9_]{0,59}$",
    "write at most 60 of a-z, 0-9 and _, beginning with a letter",
    codes.NOT_A_NAME,
)
TABLE = Word(
    "the name of a database table",
    "^[a-z][a-z0-9_]{0,44}$",
    "write at most 45 of a-z, 0-9 and _, beginning with a letter",
    codes.NOT_A_NAME,
)
COLUMN = Word(
    "the name of a column",
    "^[A-Za-z_][A-Za-z0-9_]{0,62}$",
    "name one plain column; a value inside JSON or a composite key needs a column of its"
    " own first",
    codes.CANNOT_ADOPT,
)
STATE = Word(
    "the word of a state",
    r"^[^\x00-\x1f\x7f]{1,63}$",
    "write the text that the column holds",
    codes.CANNOT_ADOPT,
)
FIELD = Word(
    "the name of a payload field",
    "^[A-Za-z][A-Za-z0-9_]{0,62}$",
    "write at most 63 of A-Z, a-z, 0-9 and _, beginning with a letter",
    codes.NOT_A_NAME,
)
WIRE = Word(
    "a wire name",
    "^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,199}$",
    "write at most 200 of A-Z, a-z, 0-9 and _ . : / -",
    codes.NOT_A_NAME,
)
REFERENCE = Word(
    "the name of something else in the spec",
    r"^[^\x00-\x1f\x7f]{1,200}$",
    "write a name that the spec defines",
    codes.NOT_A_NAME,
)
VARIABLE = Word(
    "the name of an environment variable",
    "^[A-Za-z_][A-Za-z0-9_]{0,99}$",
    'name the variable that holds the value, such as "REDIS_URL", never the value',
    codes.NOT_A_VARIABLE,
    echo=False,
)
MODULE = Word(
    "the name of a module",
    f"^(?=.{{1,200}}$){DOTTED}$",
    'write its import name, such as "support.handlers"',
    codes.NOT_A_REFERENCE,
)
FUNCTION = Word(
    "a function as module:function",
    f"^(?=.{{1,200}}$){DOTTED}:{IDENTIFIER}$",
    'write the module, a colon and the function, such as "support.handlers:deliver"',
    codes.NOT_A_REFERENCE,
)
EXCEPTION = Word(
    "an exception as module:Name",
    rf"^(?=.{{1,200}}$)(?:{DOTTED}:{DOTTED}|{IDENTIFIER})$",
    'write the module, a colon and the name, such as "httpx:TransportError"; builtins'
    ' bare, such as "ValueError"',
    codes.NOT_A_REFERENCE,
)
FOLDER = Word(
    "a folder inside the spec's own",
    r"^(?=.{1,200}$)(?!.*(?:^|/)\.\.(?:/|$))(?:\.|[A-Za-z0-9_.][A-Za-z0-9_.-]*"
    r"(?:/[A-Za-z0-9_.][A-Za-z0-9_.-]*)*/?)$",
    'write a relative path with / and without .., such as "src"',
    codes.NOT_A_FOLDER,
)
RATE = Word(
    "a rate",
    f"^(?:none|[1-9][0-9]{{0,6}}/(?=.*[1-9]){SPAN})$",
    'write how many and in which time, such as "60/1m", or "none"',
    codes.NOT_A_RATE,
)
CRON = Word(
    "a cron line",
    r"^[0-9A-Za-z*,/-]+(?: +[0-9A-Za-z*,/-]+){4,5}$",
    'write 5 fields (minute hour day month weekday), such as "30 7 * * 1-5", or 6 with'
    " seconds first",
    codes.NOT_CRON,
)
ZONE = Word(
    "a time zone",
    rf"^(?:UTC|(?:{'|'.join(AREAS)})(?:/[A-Za-z0-9_+-]+){{1,2}})$",
    'write "UTC" or an area and a city, such as "Australia/Sydney"',
    codes.NOT_A_ZONE,
)
FIELD_TYPE = Word(
    "a field type",
    field_type(*SCALARS),
    "write one of str, int, float, bool, decimal, uuid, datetime, date, json, or"
    " list[T], dict[str, T], T? (at most four levels)",
    codes.NOT_A_TYPE,
)
FULL_FIELD_TYPE = Word(
    "a field type of a table",
    field_type(*SCALARS, "enum"),
    "write one of str, int, float, bool, decimal, uuid, datetime, date, json, enum, or"
    " list[T], dict[str, T], T? (at most four levels)",
    codes.NOT_A_TYPE,
)
DECIMAL = Word(
    "a decimal number",
    r"^-?[0-9]{1,15}(?:\.[0-9]{1,9})?$",
    'write a number, or a decimal in quotes such as "0.01"',
    codes.NOT_A_NUMBER,
)
TEXT = Word(
    "a text",
    r"^[^\x00]{1,4000}$",
    "write between 1 and 4,000 characters",
    codes.NOT_A_TEXT,
    echo=False,
)

WORDS: Final[dict[str, Word]] = {
    word.title: word for word in list(globals().values()) if isinstance(word, Word)
}

Duration = Annotated[str, DURATION]
DurationOrNone = Annotated[str, DURATION_OR_NONE]
Money = Annotated[str, MONEY]
Name = Annotated[str, NAME]
Reference = Annotated[str, REFERENCE]
FieldName = Annotated[str, FIELD]
Wire = Annotated[str, WIRE]
Variable = Annotated[str, VARIABLE]
Function = Annotated[str, FUNCTION]
Exceptional = Annotated[str, EXCEPTION]
Folder = Annotated[str, FOLDER]
Rate = Annotated[str, RATE]
Zone = Annotated[str, ZONE]
Text = Annotated[str, TEXT]
