"""Values and types in the user's words."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any, Final

KINDS: Final = {
    "string": "a text in quotes",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table",
}
LONGEST: Final = 60
LONGEST_SENTENCE: Final = 600


def shown(value: Any) -> str:
    """A value as a spec would write it, on one line and short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        text = str(value)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    text = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    safe = (c if c.isprintable() and c not in '"\\' else escape(c) for c in text)
    return f'"{"".join(safe)}"'


def one_line(text: str) -> str:
    """A sentence that no name in it can break into lines, reorder or drown."""
    short = text if len(text) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]}…"
    return "".join(c if c.isprintable() else escape(c) for c in short)


def escape(character: str) -> str:
    """A character as TOML escapes it."""
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    code = ord(character)
    return known.get(character) or (
        f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}"
    )


def kind_of(value: Any) -> str:
    """What a value is."""
    match value:
        case bool():
            return f"the boolean {shown(value)}"
        case float() if value != value or value in (float("inf"), float("-inf")):
            return f"{value}, which is no number with a value"
        case int() | float():
            return f"the number {shown(value)}"
        case str():
            return "a text"
        case dict():
            return "a table"
        case list():
            return "a list"
        case datetime() | date() | time():
            return "a date or time"
    return "that"


def kinds(schema: dict[str, Any]) -> str:
    """What a key takes."""
    if title := schema.get("title"):
        text = f"{title} in quotes"
        given = schema["type"]
        others = [] if isinstance(given, str) else [k for k in given if k != "string"]
        return " or ".join([*(KINDS[each] for each in others), text][::-1])
    wanted = schema.get("type", "object")
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(KINDS[each] for each in names)
