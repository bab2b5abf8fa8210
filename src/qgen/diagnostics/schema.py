"""The JSON Schema of what ``--format json`` prints."""

from __future__ import annotations

import json
from typing import Any, Final

ADDRESS: Final = (
    "https://raw.githubusercontent.com/qgen/qgen/main/schema/v1/diagnostics.schema.json"
)
COUNT: Final = {"type": "integer", "minimum": 0}
SPAN: Final[dict[str, Any]] = {
    "file": {"type": "string"},
    "line": {**COUNT, "description": "From 1; 0 means the file as a whole."},
    "column": {**COUNT, "description": "In characters, from 1."},
    "end_line": COUNT,
    "end_column": {**COUNT, "description": "One past the last character."},
}


def table(properties: dict[str, Any], description: str) -> dict[str, Any]:
    """A table that has exactly these keys."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def schema() -> dict[str, Any]:
    """The schema as data."""
    label = {"type": "string", "description": "What is there."}
    related = table({"label": label, **SPAN}, "A second place of the problem.")
    diagnostic = table(
        {
            "code": {"type": "string", "pattern": "^QG[0-9]{3}$"},
            "severity": {"enum": ["error", "warning"]},
            "message": {"type": "string", "description": "What is wrong."},
            "help": {"type": "string", "description": "What to write."},
            **SPAN,
            "related": {"type": "array", "items": related},
        },
        "One problem.",
    )
    found = {"type": "array", "items": diagnostic}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ADDRESS,
        **table(
            {"version": {"const": 1}, "diagnostics": found},
            "Sorted by place, each problem once.",
        ),
    }


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
