"""docs/spec.md, printed from the shape: every key, its default, its range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qgen.spec.examples import PAID, SMALLEST, WHOLE
from qgen.spec.features import KNOBS, UNBUILT
from qgen.spec.schema import schema

INTRODUCTION: Final = """\
# The spec: queue.toml, version 1

Every key of the language, printed from the shape that checks it. Keys without a default
must be given. A key marked *later* is checked, and then refused with a code of its own:
this version does not build it yet.

## Ground rules

- A spec holds no secrets: addresses and passwords come from environment variables that it
  names. What looks like a secret is refused and never repeated.
- Unknown keys are errors.
- Booleans are no numbers. `nan`, `inf`, negatives and zero never mean "no limit"; where a
  key allows none, it is written `"none"`.
- A duration is a text of whole numbers and units, the largest first: `"90s"`, `"15m"`,
  `"2h"`, `"1d"`, `"1h30m"`, `"500ms"`. It is never zero.
- Money is a decimal in quotes with at most six places: `"0.40"`.
- A file is UTF-8, with or without a byte order mark, with LF or CRLF.
- The order of tables and keys changes nothing in what is built. Lists keep their order.
- Names of jobs, queues, policies, agents and workers are `snake_case` of at most 40
  characters. `wire` keeps a foreign name of a job.
- A payload field is a type, or a table with `type` and limits. A `T?` may be left out and
  is null then. `min` and `max` are inclusive.
- A payload is a pydantic model in its usual mode: the text `"1"` is taken for an `int`
  and stored as 1, a float with a fraction is refused.
- `[defaults]` takes any key of a job but its payload, for the jobs that do not give it.
"""
NAMES: Final = {"jobs": "<job>", "payload": "<field>"}


EXAMPLES: Final = (
    ("The smallest spec", SMALLEST),
    ("A job that costs money adds", PAID),
    ("Every key", WHOLE),
)


def page() -> str:
    """The whole page."""
    sections = [INTRODUCTION]
    for title, text in EXAMPLES:
        sections.append(f"## {title}\n\n```toml\n{text}```\n")
    for header, description, node in tables(schema(), ()):
        if not node.get("properties") or header == "defaults":
            continue
        title = f"## `[{header}]`" if header else "## The top level"
        rows = [row(header, name, each, node) for name, each in keys(node)]
        if rows:
            lines = ["| key | takes | default | meaning |", "|---|---|---|---|", *rows]
            sections.append(f"{title}\n\n{description}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(sections)


def keys(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The keys of a table that are values, not tables that have their own section."""
    for name, each in node["properties"].items():
        entries = each.get("additionalProperties", {})
        if "$ref" not in each and "$ref" not in entries and "properties" not in entries:
            yield name, each


def row(header: str, name: str, node: dict[str, Any], table: dict[str, Any]) -> str:
    """One key."""
    default = f"`{written(node['default'])}`" if "default" in node else "–"
    if name in table.get("required", ()):
        default = "needed"
    meaning = node.get("description", "")
    meaning += later(f"{header}.{name}" if header else name)
    cells = (f"`{name}`", takes(node), default, meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def later(key: str) -> str:
    """A mark for a key, a table of it, or one of its values, that is refused for now."""
    parts = key.replace("<job>", "*").replace("<name>", "*").split(".")
    names = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    if parts[0] == "targets" and parts[-1] in KNOBS:
        return " *(later)*"
    for line, _ in UNBUILT:
        pattern, _, value = line.partition("=")
        if pattern in names:
            return f" *(`{value}`: later)*" if value else " *(later)*"
    return ""


def takes(node: dict[str, Any]) -> str:
    """The kind and the range of a value."""
    if "enum" in node:
        return " or ".join(f"`{written(each)}`" for each in node["enum"])
    kinds = node.get("type", "any value")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    texts = {"string": "a text", "array": "a list", "object": "a table",
             "integer": "a whole number", "number": "a number",
             "boolean": "`true` or `false`"}  # fmt: skip
    parts = [texts.get(kind, kind) for kind in kinds]
    if title := node.get("title"):
        parts[kinds.index("string")] = title
    text = " or ".join(parts)
    if "minimum" in node or "maximum" in node:
        text += f", {node['minimum']:,} to {node['maximum']:,}"
    if "propertyNames" in node:
        named = takes({"type": "string", **node["propertyNames"]})
        entry = takes(node["additionalProperties"] or {"type": "any value"})
        return f"a table: {named} = {entry}"
    if "items" in node and kinds == ["array"]:
        text += f" of: {takes(node['items'])}"
    return text


def written(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def tables(
    node: dict[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(header, description, schema) of every table, in the order of the shape."""
    description = node.get("description", "")
    if "$ref" in node:
        definition = schema()["$defs"][node["$ref"].rpartition("/")[2]]
        description = definition.get("description", description)
        node = definition
    yield ".".join(path), description, node
    if path[-1:] == ("<field>",):
        return
    for name, each in node.get("properties", {}).items():
        yield from tables(each, (*path, name))
    entries = node.get("additionalProperties")
    if isinstance(entries, dict) and entries:
        name = NAMES.get(path[-1] if path else "", "<name>")
        yield from tables(entries, (*path, name))
