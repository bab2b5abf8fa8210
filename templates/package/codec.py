"""JSON in and out of the record.

Two rules.  What comes *in* (a payload) is checked and refused with the field's path.
What a job *made* (a result, progress, an error) is never refused: ``encode`` has a
declared form for everything, because recording must not fail, least of all a failure.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import math
import os
import re
import uuid
from collections.abc import Mapping, Set
from typing import Any, Final

from pydantic import BaseModel

from .errors import PayloadRefused

MAX_PAYLOAD_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 100

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def encode(value: object) -> str:
    """JSON text of any value; cannot fail.

    Declared forms: NUL and lone surrogates become the six characters of their escape
    (``\\u0000``), NaN and infinities the strings ``"NaN"``, ``"Infinity"``,
    ``"-Infinity"``, bytes ``{"$base64": ...}``, sets sorted lists, Decimal, UUID and
    dates strings, a timedelta seconds, models and dataclasses objects, anything else
    its ``repr``.  What is nested deeper than 100 levels is cut to its ``repr``.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        if "\\u0000" not in text and _depth_within(text):
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    return json.dumps(_plain(value, 0), ensure_ascii=False, allow_nan=False)


def decode(text: Any) -> Any:
    """The value of a JSON column; what is not JSON stays the text that it is."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return text


def text_form(text: str) -> str:
    """A string that every database stores: NUL and lone surrogates escaped."""
    return _UNSTORABLE.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def check_payload(payload: BaseModel) -> str:
    """JSON text of a valid payload, or PayloadRefused with the path of the field.

    Validates again: a model may have been made by ``model_construct`` or changed since.
    Refuses NUL, non-finite numbers, more than ``MAX_PAYLOAD_BYTES`` or ``MAX_DEPTH``,
    alike on every database.
    """
    kind = type(payload)
    try:
        dumped = payload.model_dump(mode="python")
        again = kind.model_validate(dumped)
        value = again.model_dump(mode="json")
        _refuse_unsafe(again.model_dump(mode="python"), "")
        _refuse_unsafe(value, "")
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except PayloadRefused as refused:
        raise PayloadRefused(f"{kind.__name__}{refused}") from None
    except RecursionError:
        raise PayloadRefused(
            f"{kind.__name__}: nested deeper than {MAX_DEPTH} levels"
        ) from None
    except (ValueError, TypeError) as error:
        raise PayloadRefused(f"{kind.__name__}: {describe_invalid(error)}") from None
    if size > MAX_PAYLOAD_BYTES:
        raise PayloadRefused(
            f"{kind.__name__}: {size:,} bytes of JSON; at most {MAX_PAYLOAD_BYTES:,} are "
            "accepted: store the data elsewhere and pass a reference"
        )
    return text


def describe_invalid(error: Exception) -> str:
    """A validation error in one line: each field's path and what is wrong, no input."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    return "; ".join(
        f"{'.'.join(str(part) for part in e['loc']) or 'payload'}: {e['msg']}"
        for e in errors(include_url=False, include_context=False, include_input=False)
    )


def _refuse_unsafe(value: object, path: str, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise PayloadRefused(f"{path}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        if found := _UNSTORABLE.search(value):
            what = "a NUL character" if found.group() == "\x00" else "half a character"
            raise PayloadRefused(f"{path}: contains {what}, which no database stores")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise PayloadRefused(f"{path}: {value} is not a finite number")
    elif isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise PayloadRefused(f"{path}: {value} is not a finite number")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_unsafe(key, f"{path}.{key!s:.40}", depth + 1)
            _refuse_unsafe(item, f"{path}.{key!s:.40}", depth + 1)
    elif isinstance(value, list | tuple):
        for n, item in enumerate(value):
            _refuse_unsafe(item, f"{path}[{n}]", depth + 1)


def _depth_within(text: str) -> bool:
    # The C encoder nests as deep as the stack; databases do not read that back.
    return text.count("[") + text.count("{") <= MAX_DEPTH or _depth(text) <= MAX_DEPTH


def _depth(text: str) -> int:
    deepest = level = 0
    for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        if bracket in "[{":
            level += 1
            deepest = max(deepest, level)
        elif bracket in "]}":
            level -= 1
    return deepest


def _plain(value: object, depth: int) -> Any:
    try:
        return _form(value, depth)
    except Exception:
        return f"<unprintable {type(value).__name__}>"


def _form(value: object, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, depth)
    if isinstance(value, str):
        return text_form(str(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 4096 else hex(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, decimal.Decimal | uuid.UUID | os.PathLike):
        return text_form(str(value))
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if depth >= MAX_DEPTH:
        return text_form(repr(value)[:1000])
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="python"), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {f.name: _plain(getattr(value, f.name), depth + 1) for f in fields}
    if isinstance(value, Mapping):
        return {
            text_form(k if isinstance(k, str) else str(_plain(k, MAX_DEPTH))): _plain(
                v, depth + 1
            )
            for k, v in value.items()
        }
    if isinstance(value, Set):
        items = [_plain(item, depth + 1) for item in value]
        return sorted(items, key=lambda item: (type(item).__name__, repr(item)))
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return text_form(repr(value)[:10_000])
