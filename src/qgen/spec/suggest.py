"""What somebody who wrote an unknown key meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from qgen.diagnostics.catalogue import keys
from qgen.spec.finding import Finding
from qgen.spec.schema import schema
from qgen.spec.spans import Path

# What other libraries call it: unknown key -> our key.
FOREIGN: Final = {
    **dict.fromkeys(("max_tries", "max_retries", "max_attempts", "retries"), "tries"),
    **dict.fromkeys(("attempts", "retry_count"), "tries"),
    **dict.fromkeys(("backoff", "backoff_factor", "multiplier"), "factor"),
    **dict.fromkeys(("delay", "interval", "retry_delay", "min_backoff"), "wait"),
    **dict.fromkeys(("max_backoff", "max_delay", "retry_backoff_max"), "max_wait"),
    **dict.fromkeys(("time_limit", "job_timeout", "timeout_s"), "timeout"),
    **dict.fromkeys(("soft_time_limit",), "soft_timeout"),
    **dict.fromkeys(("max_jobs", "threads", "processes"), "concurrency"),
    **dict.fromkeys(("args", "kwargs", "arguments", "params", "fields"), "payload"),
    **dict.fromkeys(("task", "function", "func", "callable"), "handler"),
    **dict.fromkeys(("ttl", "expires", "job_expires"), "start_within"),
    **dict.fromkeys(("unique", "unique_key", "dedupe"), "unique_by"),
    **dict.fromkeys(("tz",), "timezone"),
    **dict.fromkeys(("module",), "handlers"),
    **dict.fromkeys(("backend", "driver"), "target"),
    **dict.fromkeys(("database", "db"), "record"),
    **dict.fromkeys(("crontab",), "cron"),
    **dict.fromkeys(("url", "dsn", "uri"), "url_env"),
    **dict.fromkeys(("grace_period", "stop_timeout"), "grace"),
    **dict.fromkeys(("choices", "enum", "options"), "values"),
    **dict.fromkeys(("minimum", "ge"), "min"),
    **dict.fromkeys(("maximum", "le"), "max"),
    **dict.fromkeys(("regex",), "pattern"),
    **dict.fromkeys(("secret", "masked"), "sensitive"),
}
ADDRESS: Final = "put the whole address into the variable that `url_env` names"
REDIS: Final = {
    **dict.fromkeys(("host", "port", "db", "username", "user", "password"), ADDRESS),
    **dict.fromkeys(("hostname", "path", "database"), ADDRESS),
    **dict.fromkeys(
        ("sentinel", "sentinels", "master", "master_name", "service_name"),
        "Sentinel is not supported: name the address of one server with `url_env`",
    ),
    **dict.fromkeys(
        ("cluster", "nodes", "startup_nodes"),
        "Cluster is not supported: name the address of one server with `url_env`",
    ),
}


def nearest(text: str, choices: Iterable[str], cutoff: float = 0.75) -> str | None:
    """The choice that the text most resembles, or None."""
    found = difflib.get_close_matches(text.lower(), list(choices), 1, cutoff)
    return found[0] if found else None


def unknown_key(path: Path, key: str, known: list[str]) -> Finding:
    """An unknown key: misspelt, of another table, of another library, or unknown."""
    here, table = (*path, key), table_of(path)
    message = f"`{key}` is not a key of {table}."
    if path == ("redis",) and key in REDIS:
        return Finding(keys.REDIS_SHAPE, here, message, REDIS[key], at="key")
    if near := nearest(key, known):
        write, meant = f"did you mean `{near}`?", (*path, near)
        return Finding(keys.UNKNOWN_KEY, here, message, write, at="key", meant=meant)
    if (ours := FOREIGN.get(key, "")) in known:
        write, meant = f"here it is called `{ours}`", (*path, ours)
        return Finding(keys.UNKNOWN_KEY, here, message, write, at="key", meant=meant)
    for name in (key, FOREIGN.get(key, "")):
        if homes := places().get(name):
            write = f"`{name}` belongs in {' or '.join(homes)}"
            return Finding(keys.WRONG_TABLE, here, message, write, at="key")
    write = f"its keys are {', '.join(known)}"
    return Finding(keys.UNKNOWN_KEY, here, message, write, at="key")


def table_of(path: Path) -> str:
    """A table as a header names it."""
    return f"[{'.'.join(map(str, path))}]" if path else "the top level"


@cache
def places() -> dict[str, list[str]]:
    """Every key of a table -> the tables that have it."""
    found: dict[str, list[str]] = {}
    for header, key in tables(schema(), ()):
        if key and header != "[defaults]":
            found.setdefault(key, []).append(header)
    return found


def tables(node: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(header, key) of every table below a schema's node."""
    if "$ref" in node:
        node = schema()["$defs"][node["$ref"].rpartition("/")[2]]
    header = f"[{'.'.join(path)}]" if path else "the top level"
    for key, child in node.get("properties", {}).items():
        yield header, key
        if path != ("jobs", "<job>", "payload", "<field>"):
            yield from tables(child, (*path, key))
    entries = node.get("additionalProperties")
    if isinstance(entries, dict) and entries:
        yield from tables(
            entries, (*path, ENTRY.get(path[-1] if path else "", "<name>"))
        )


ENTRY: Final = {"jobs": "<job>", "payload": "<field>"}
