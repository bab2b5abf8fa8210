"""Values and texts as source code: the only ways in which spec text enters a file.

Each function returns ``Code``, the one type that a template may print.  What it returns
is exactly what black prints for it, and evaluates to the value it was given.
"""

from __future__ import annotations

import datetime as dt
import json
import keyword
import math
import re
import textwrap
import unicodedata
from decimal import Decimal
from typing import Final
from uuid import UUID

from .model import Table

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


class Code(str):
    """Source code, as opposed to a text that came from a spec."""

    __slots__ = ()


def literal(value: object) -> Code:
    """A Python expression of this value, on one line."""
    return Code(_literal(value))


def name(text: str) -> Code:
    """A plain ASCII identifier as it is; anything else is a bug and raises."""
    if not _NAME.fullmatch(text) or keyword.iskeyword(text):
        raise ValueError(f"not an identifier: {text!r}")
    return Code(text)


def comment(text: str) -> Code:
    """Any text as part of one comment line, in Python, SQL, Markdown or TOML."""
    line = " ".join(printable(text).split())
    return Code(line.replace("-->", "-- >").replace("*/", "* /"))


def yaml(text: str) -> Code:
    """Any text as a YAML scalar in double quotes, of which compose expands nothing."""
    return Code(json.dumps(printable(text), ensure_ascii=False).replace("$", "$$"))


def docstring(text: str, indent: int = 4) -> Code:
    """Any text as a docstring: lines wrapped, odd characters escaped.

    ``eval`` gives the text back, but for its white space.
    """
    pad = " " * indent
    lines = [
        wrapped
        for line in text.splitlines()
        for wrapped in _wrapped(_in_docstring(" ".join(line.split())), 88 - indent)
    ]
    body = f"\n{pad}".join(lines).strip().replace(f"\n{pad}\n", "\n\n")
    if body.startswith('"'):
        body = "\\" + body
    if body.endswith('"'):  # black would put a space after it
        body = body[:-1].removesuffix("\\") + "\\x22"
    if "\n" not in body and indent + len(body) + 6 > 88 and " " in body:
        body = f"\n{pad}".join(_wrapped(body, 85 - indent))
    closing = f"\n{pad}" if "\n" in body else ""
    return Code(f'"""{body}{closing}"""')


def width(text: str) -> int:
    """How many columns black counts for a text."""
    return sum(map(_width, text)) if not text.isascii() else len(text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _wrapped(line: str, room: int) -> list[str]:
    return textwrap.wrap(
        line, room, break_long_words=False, break_on_hyphens=False
    ) or [""]


def _in_docstring(line: str) -> str:
    line = printable(line.replace("\\", "\\\\"))
    return re.sub('"{2,}', lambda run: run[0].replace('"', '\\"'), line)


def printable(text: str) -> str:
    """Every character that shows nothing, or turns the line round, as its escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _literal(value: object) -> str:
    match value:
        case None | bool() | int():
            return repr(value)
        case float():
            return (
                repr(value).replace("e+", "e")
                if math.isfinite(value)
                else f'float("{value}")'
            )
        case str():
            return _string(value)
        case Decimal() | UUID():
            return f'{type(value).__name__}("{value}")'
        case dt.datetime() | dt.date():
            return _moment(value)
        case tuple():
            inner = ", ".join(map(_literal, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case Table():
            return _literal(dict(value.items))
        case dict():
            pairs = (f"{_string(key)}: {_literal(of)}" for key, of in value.items())
            return f"{{{', '.join(pairs)}}}"
    raise TypeError(f"no literal for {type(value).__name__}")


def _string(text: str) -> str:
    """Double quotes, unless single ones need fewer escapes: black's own choice."""
    if '"' not in text and "\\" not in text and text.isprintable():
        return f'"{text}"'
    body = "".join(
        _SHORT.get(c) or (c if c.isprintable() else _escape(c)) for c in text
    )
    quote = "'" if '"' in body and body.count("'") < body.count('"') else '"'
    return quote + body.replace(quote, "\\" + quote) + quote


def _moment(value: dt.date) -> str:
    parts = [value.year, value.month, value.day]
    if not isinstance(value, dt.datetime):
        return f"dt.date({', '.join(map(str, parts))})"
    clock = [value.hour, value.minute, value.second, value.microsecond]
    while clock and not clock[-1]:
        clock.pop()
    text = ", ".join(map(str, parts + clock))
    offset = value.utcoffset()
    if offset is None:
        return f"dt.datetime({text})"
    seconds = int(offset.total_seconds())
    zone = f"dt.timezone(dt.timedelta(seconds={seconds}))" if seconds else "dt.UTC"
    return f"dt.datetime({text}, tzinfo={zone})"
