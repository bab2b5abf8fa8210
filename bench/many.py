"""A spec of any number of jobs, and the same payloads as a JSON Schema."""

from __future__ import annotations

import json

PACKAGE = "bench_queue"
HEAD = 'schema_version = 1\n\n[project]\nname = "bench"\n'
JOB = """
[jobs.job_{n:04d}]
description = "Does step {n} of the work."
timeout = "5m"

[jobs.job_{n:04d}.payload]
ticket_id = "uuid"
text = {{ type = "str", max_length = 20000 }}
tone = {{ type = "enum", values = ["plain", "warm"], default = "plain" }}
tags = "list[str]"
count = {{ type = "int", default = 3, min = 0 }}
"""
PROPERTIES = {
    "ticket_id": {"type": "string", "format": "uuid"},
    "text": {"type": "string", "maxLength": 20000},
    "tone": {"enum": ["plain", "warm"], "default": "plain"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "count": {"type": "integer", "default": 3, "minimum": 0},
}


def spec(jobs: int) -> str:
    """The spec."""
    return HEAD + "".join(JOB.format(n=n) for n in range(jobs))


def edited(jobs: int) -> str:
    """The same with another timeout of one job: its file changes, and the plan."""
    before, name, after = spec(jobs).partition(f"[jobs.job_{jobs // 2:04d}]")
    return before + name + after.replace('timeout = "5m"', 'timeout = "6m"', 1)


def schema(jobs: int) -> str:
    """The payloads alone."""
    models = {
        f"Job{n:04d}": {
            "type": "object",
            "description": f"Does step {n} of the work.",
            "additionalProperties": False,
            "properties": PROPERTIES,
            "required": ["ticket_id", "text", "tags"],
        }
        for n in range(jobs)
    }
    draft = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps({"$schema": draft, "$defs": models}, indent=2)
