"""The JSON Schema of the language, printed from its shape.

It uses no ``oneOf`` and no ``anyOf``: where a key takes two kinds of value, their
keywords stand side by side, since each keyword of JSON Schema looks at one type only.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from qgen.spec.shape import Spec
from qgen.spec.words import WORDS

ADDRESS: Final = (
    "https://raw.githubusercontent.com/qgen/qgen/main/schema/v1/queue.schema.json"
)
TITLES: Final = {word.pattern: word.title for word in WORDS.values()}
Schema = dict[str, Any]


@cache
def schema() -> Schema:
    """The schema as data; do not change it."""
    printed = Spec.model_json_schema()
    definitions: Schema = printed.pop("$defs")
    tidied = {name: tidy(each, definitions) for name, each in definitions.items()}
    tidied.pop("FieldTable")  # stands where it is used, beside the short form
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ADDRESS,
        **tidy(printed, definitions),
        "$defs": dict(sorted(tidied.items())),
    }


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def tidy(node: Any, definitions: Schema) -> Any:
    """A schema in the form that this module promises."""
    if not isinstance(node, dict):  # additionalProperties = false
        return node
    node = dict(node)
    for keyword in ("items", "additionalProperties", "propertyNames"):
        if keyword in node:
            node[keyword] = tidy(node[keyword], definitions)
    if "properties" in node:
        keys = node["properties"].items()
        node["properties"] = {name: tidy(each, definitions) for name, each in keys}
    for pattern, value in node.pop("patternProperties", {}).items():
        node["propertyNames"] = {"pattern": pattern, "title": TITLES[pattern]}
        node["additionalProperties"] = tidy(value, definitions)
    node.pop("title", None)  # pydantic's: the key's name again
    if "pattern" in node:
        node["title"] = TITLES[node["pattern"]]
    if isinstance(node.get("default"), dict) or node.get("default", 0) in (None, []):
        node.pop("default")
    for bound in ("minimum", "maximum"):  # 100 or 100.0: versions of pydantic differ
        if bound in node:
            node[bound] = int(node[bound])
    for branch in node.pop("anyOf", []):
        join(node, tidy(branch, definitions), definitions)
    return node


def join(node: Schema, branch: Schema, definitions: Schema) -> None:
    """Lay one branch of a union into the node."""
    if branch == {"type": "null"}:  # TOML has no null: an absent key
        return
    if branch.get("$ref") == "#/$defs/FieldTable":
        branch = tidy(definitions["FieldTable"], definitions)
        branch.pop("description", None)
    kinds = as_list(node.get("type", [])) + as_list(branch.get("type", []))
    if "number" in kinds:
        kinds = [kind for kind in kinds if kind != "integer"]
    node.update(branch)
    if kinds:
        node["type"] = kinds[0] if len(kinds) == 1 else kinds


def as_list(kinds: Any) -> list[str]:
    """``type`` as a list."""
    return list(kinds) if isinstance(kinds, list) else [kinds]
