"""``[env]``: each variable leads to a key that is there and may be overridden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.shape import Shape
from qgen.spec.suggest import nearest

# (table, key) that a deployment may change.
ALLOWED: Final = frozenset(
    {
        ("workers", "concurrency"),
        ("queues", "rate"),
        ("queues", "max_running"),
        ("agents", "rate"),
        ("jobs", "max_running"),
        ("schedules", "cron"),
        ("schedules", "every"),
        ("schedules", "enabled"),
    }
)
RETENTION: Final = ("completed", "failed", "cancelled")


def check(draft: Draft) -> Iterator[Finding]:
    """Each variable."""
    allowed = sorted(overridable(draft))
    for variable, key in draft.spec.env.items():
        at = ("env", variable)
        if key in allowed:
            continue
        if exists(draft, key):
            message = (
                f"`{key}` may not be overridden: it protects what the spec promises."
            )
            write = (
                "only concurrency, rate, max_running, cron, every, enabled and retention"
                " may"
            )
            yield Finding(codes.ENV_PROTECTED, at, message, write)
            continue
        near = nearest(key, allowed, 0.6)
        message = f"{shown(key)} is no key of this spec."
        write = f"did you mean `{near}`?" if near else "write table.name.key"
        yield Finding(codes.ENV_PATH, at, message, write)


def overridable(draft: Draft) -> Iterator[str]:
    """Every key of this spec that a deployment may override."""
    yield from (f"retention.{state}" for state in RETENTION)
    for table, key in ALLOWED:
        names = draft.workers if table == "workers" else getattr(draft.spec, table)
        if table == "queues":
            names = draft.queues
        yield from (f"{table}.{name}.{key}" for name in names)


def exists(draft: Draft, key: str) -> bool:
    """True for a key of the language at a table of this spec."""
    table, _, rest = key.partition(".")
    implied: dict[str, object] = {"workers": draft.workers, "queues": draft.queues}
    node = implied.get(table, getattr(draft.spec, table, None))
    for part in rest.split("."):
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, Shape) and part in type(node).model_fields:
            node = getattr(node, part)
        else:
            return False
    return True
