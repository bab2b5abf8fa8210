"""Generated specs, sound and broken, as data; and TOML text of them."""

import copy
import datetime as dt
import json
import random
from typing import Any

from qgen.spec.features import unbuilt
from qgen.spec.schema import schema

SOUND = {
    "a duration": ["1s", "15s", "1h30m", "500ms", "9999d"],
    'a duration or "none"': ["none", "10m", "2d"],
    "an amount of money": ["0", "25.00", "0.000001"],
    "a name in snake_case": ["a", "draft_reply", "x_2", "type", "a" * 40],
    "a package name in snake_case": ["support_queue", "q"],
    "the name of a database table": ["jobs_of_support", "t1"],
    "the name of a column": ["status", "Id"],
    "the word of a state": ["done", "Fertig!"],
    "the name of a payload field": ["ticket_id", "userId", "x"],
    "a wire name": ["email.send", "app:run", "old_name"],
    "the name of something else in the spec": ["default", "draft_reply", "nothing"],
    "the name of an environment variable": ["REDIS_URL", "x"],
    "the name of a module": ["support.handlers", "handlers"],
    "a function as module:function": ["support.handlers:run", "m:f"],
    "an exception as module:Name": ["ValueError", "httpx:TransportError"],
    "a folder inside the spec's own": ["src", ".", "a/b.c"],
    "a rate": ["60/1m", "none", "1/1s"],
    "a cron line": ["30 7 * * 1-5", "*/5 * * * * *"],
    "a time zone": ["UTC", "Australia/Sydney"],
    "a field type": ["str", "list[str]", "dict[str, int?]?", "json"],
    "a field type of a table": ["enum", "str", "int", "decimal?", "list[enum]"],
    "a decimal number": ["1", "-0.5"],
    "a text": ["Draft an answer.", "日本語", "x"],
}
BROKEN: list[Any] = [
    *("", " ", "none", "0s", "nan", "1.5h", "1m\n", "Ünï", "a" * 400, "../x", "x\x00y"),
    *(0, -1, 1, 3, 10**30, True, False, 0.5, float("nan"), float("inf"), -float("inf")),
    *([], [1], ["x"], {}, {"x": 1}, [[]], dt.date(2026, 1, 1)),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
]


def value(rng: random.Random, node: dict[str, Any], depth: int = 0) -> Any:
    """A value that the schema's node lets pass."""
    if "$ref" in node:
        node = schema()["$defs"][node["$ref"].rpartition("/")[2]]
    if "enum" in node:
        return rng.choice(node["enum"])
    kinds = node.get("type", ["string", "integer", "boolean"])
    kind = kinds if isinstance(kinds, str) else rng.choice(kinds)
    if kind == "string":
        return rng.choice(SOUND.get(node.get("title", ""), ["x"]))
    if kind == "integer":
        return rng.randint(node.get("minimum", 0), min(node.get("maximum", 9), 9))
    if kind == "number":
        low, high = node.get("minimum", 0), node.get("maximum", 9)
        return rng.choice([low, high, rng.uniform(low, high)])
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        size = rng.randint(node.get("minItems", 0), 3)
        return [value(rng, node["items"], depth + 1) for _ in range(size)]
    return table(rng, node, depth)


def table(rng: random.Random, node: dict[str, Any], depth: int) -> dict[str, Any]:
    """A table with its needed keys and some others."""
    made = {}
    needed = node.get("required", [])
    for key, each in node.get("properties", {}).items():
        if key in needed or rng.random() < (0.5 if depth == 0 else 0.25):
            made[key] = value(rng, each, depth + 1)
    names = node.get("propertyNames")
    if names:
        for _ in range(rng.randint(node.get("minProperties", 0), 2)):
            name = value(rng, {"type": "string", **names})
            entries = node.get("additionalProperties")
            made[name] = value(rng, entries if isinstance(entries, dict) else {}, depth)
    return made


def sound(rng: random.Random) -> dict[str, Any]:
    """A spec that the schema lets pass (its relations may still be wrong)."""
    return table(rng, schema(), 0)


def break_one(rng: random.Random, spec: dict[str, Any]) -> None:
    """Spoil one value, drop one key, or add one."""
    node: Any = spec
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        child = node[key]
        if isinstance(child, dict | list) and child and rng.random() < 0.7:
            node = child
            continue
        action = rng.random()
        if action < 0.7 or not isinstance(node, dict):
            node[key] = copy.deepcopy(rng.choice(BROKEN))
        elif action < 0.85:
            del node[key]
        else:
            node[rng.choice(["tires", "x", "Bad-Name", "timeout", "ü"])] = (
                copy.deepcopy(child)
            )
        return


def generate(seed: int) -> dict[str, Any]:
    """The spec of a seed; two in three are broken somewhere."""
    rng = random.Random(seed)
    spec = sound(rng)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        break_one(rng, spec)
    return spec


def built_only(seed: int) -> dict[str, Any]:
    """A sound spec of the keys that this version builds; one in ten has no error in
    its relations."""
    spec = sound(random.Random(seed))
    for name in ("schedules", "env", "targets"):
        spec.pop(name, None)
    for finding in list(unbuilt(spec, "arq")):
        node: Any = spec
        for part in finding.path[:-1]:
            node = node.get(part, {})
        node.pop(finding.path[-1], None)
    pay(spec, random.Random(seed))
    return spec


def pay(spec: dict[str, Any], rng: random.Random) -> None:
    """Let what is paid name an agent of the spec and a cost; else it is not paid."""
    agents = sorted(spec.get("agents", {}))
    for agent in spec.get("agents", {}).values():
        if rng.random() < 0.9:
            agent.pop("cap_each", None)
    for job in (spec.get("defaults", {}), *spec["jobs"].values()):
        if agents and "agent" in job:
            job |= {"agent": rng.choice(agents), "max_cost": "0.000001"}
        else:
            for key in ("agent", "max_cost", "billing"):
                job.pop(key, None)


def toml(value: Any) -> str:
    """A value, or a whole document, as TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name(k)} = {toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(toml(each) for each in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def name(key: str) -> str:
    """A key as TOML."""
    return key if key.isascii() and key.replace("_", "").isalnum() else toml(key)


def document(spec: dict[str, Any]) -> str:
    """A spec as the text of a file."""
    return "".join(f"{name(key)} = {toml(each)}\n" for key, each in spec.items())
