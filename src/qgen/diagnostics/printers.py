"""Diagnostics as text, JSON, GitHub annotations and SARIF.

Each printer takes what ``ordered`` gave and returns a whole output that ends with a
newline, or nothing when it has nothing to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from qgen.diagnostics.catalogue import ALL
from qgen.diagnostics.value import Diagnostic, Place

Printer = Callable[[Sequence[Diagnostic]], str]
PAGE: Final = "https://github.com/qgen/qgen/blob/main/docs/diagnostics.md"
COLOURS: Final = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}
PLAIN: Final = "\x1b[0m"


def text(found: Sequence[Diagnostic], colour: bool = False) -> str:
    """For people: the place, what is wrong, what to write, the second place."""
    lines = []
    for each in found:
        kind = f"{each.severity}[{each.code}]"
        if colour:
            kind = f"{COLOURS[each.severity]}{kind}{PLAIN}"
        lines.append(f"{each.place}: {kind}: {each.message}")
        lines.append(f"  help: {each.help}")
        lines += [f"  also: {other.place}: {other.label}" for other in each.related]
    return "".join(f"{line}\n" for line in lines)


def as_json(found: Sequence[Diagnostic]) -> str:
    """For programs, as schema/v1/diagnostics.schema.json describes it."""
    document = {"version": 1, "diagnostics": [record(each) for each in found]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def record(each: Diagnostic) -> dict[str, Any]:
    """One diagnostic as JSON."""
    return {
        "code": each.code,
        "severity": each.severity,
        "message": each.message,
        "help": each.help,
        **span(each.place),
        "related": [
            {"label": other.label, **span(other.place)} for other in each.related
        ],
    }


def span(place: Place) -> dict[str, Any]:
    """A place as JSON; a file as a whole has line 0."""
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }


def github(found: Sequence[Diagnostic]) -> str:
    """Annotations of a GitHub workflow."""
    lines = []
    for each in found:
        where = {"file": each.place.file}
        if each.place.line:
            where |= {
                "line": str(each.place.line),
                "col": str(each.place.column),
                "endLine": str(each.place.end_line),
                "endColumn": str(each.place.end_column),
            }
        where["title"] = f"{each.code} {ALL[each.code].title}"
        properties = ",".join(f"{key}={escaped(value)}" for key, value in where.items())
        body = escaped(f"{each.message}\n{each.help}", ":,")
        lines.append(f"::{each.severity} {properties}::{body}\n")
    return "".join(lines)


def escaped(text: str, but: str = "") -> str:
    """A text as a workflow command takes it; ``but`` may stand as they are."""
    for character in "%\r\n:,":
        if character not in but:
            text = text.replace(character, f"%{ord(character):02X}")
    return text


def sarif(found: Sequence[Diagnostic]) -> str:
    """SARIF 2.1.0, for code scanning."""
    codes = sorted({each.code for each in found})
    rules = [
        {
            "id": code,
            "name": code,
            "shortDescription": {"text": ALL[code].title},
            "fullDescription": {"text": ALL[code].why},
            "helpUri": f"{PAGE}#{code.lower()}",
            "defaultConfiguration": {"level": ALL[code].severity},
        }
        for code in codes
    ]
    run = {
        "tool": {
            "driver": {
                "name": "qgen",
                "informationUri": "https://github.com/qgen/qgen",
                "rules": rules,
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [result(each, codes.index(each.code)) for each in found],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def result(each: Diagnostic, rule: int) -> dict[str, Any]:
    """One SARIF result."""
    related = [
        {"id": number, **location(other.place), "message": {"text": other.label}}
        for number, other in enumerate(each.related, 1)
    ]
    return {
        "ruleId": each.code,
        "ruleIndex": rule,
        "level": each.severity,
        "message": {"text": f"{each.message} {each.help}"},
        "locations": [location(each.place)],
        **({"relatedLocations": related} if related else {}),
    }


def location(place: Place) -> dict[str, Any]:
    """A SARIF location."""
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(place.file)}}
    if place.line:
        physical["region"] = {
            "startLine": place.line,
            "startColumn": place.column,
            "endLine": place.end_line,
            "endColumn": place.end_column,
        }
    return {"physicalLocation": physical}


PRINTERS: Final[Mapping[str, Printer]] = {
    "text": text,
    "json": as_json,
    "github": github,
    "sarif": sarif,
}
