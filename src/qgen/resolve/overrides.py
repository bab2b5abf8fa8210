"""``[env]``: each variable leads to a key that is there and may be overridden."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.shape import Shape
from qgen.spec.suggest import nearest


@dataclass(frozen=True, slots=True)
class Kind:
    """How the package reads a variable: a function of its ``overrides``, what that takes
    beside the variable and the spec's value, and what a person may write."""

    reader: str
    takes: tuple[int, ...]
    write: str


MOST_SLOTS: Final = 10_000
MOST_RUNNING: Final = 1_000_000
RUNNING: Final = Kind(
    "count", (MOST_RUNNING,), f"a whole number from 1 to {MOST_RUNNING}"
)
RATE: Final = Kind("rate", (), 'a rate such as "60/1m", or "none"')
RETENTION: Final = Kind("retention", (), 'a duration such as "30d", or "none"')

# (table, key) that a deployment may change.
ALLOWED: Final[Mapping[tuple[str, str], Kind]] = {
    ("workers", "concurrency"): Kind(
        "count", (MOST_SLOTS,), f"a whole number from 1 to {MOST_SLOTS}"
    ),
    ("queues", "rate"): RATE,
    ("queues", "max_running"): RUNNING,
    ("agents", "rate"): RATE,
    ("jobs", "max_running"): RUNNING,
    ("schedules", "cron"): Kind("cron", (), 'a cron line such as "30 7 * * 1-5"'),
    ("schedules", "every"): Kind("every", (), 'a duration of at least "1s"'),
    ("schedules", "enabled"): Kind("flag", (), '"true" or "false"'),
    ("retention", "completed"): RETENTION,
    ("retention", "failed"): RETENTION,
    ("retention", "cancelled"): RETENTION,
}


def kind_of(key: str) -> Kind:
    """How the value at a path of the spec is read."""
    parts = key.split(".")
    return ALLOWED[parts[0], parts[-1]]


def check(draft: Draft) -> Iterator[Finding]:
    """Each variable."""
    allowed = sorted(overridable(draft))
    first: dict[str, str] = {}
    for variable, key in draft.spec.env.items():
        at = ("env", variable)
        if key in allowed:
            earlier = first.setdefault(key, variable)
            if earlier != variable:
                message = f"`{key}` is overridden by `{earlier}` already."
                write = "leave it to one variable"
                also = ((("env", earlier), "already here"),)
                yield Finding(codes.ENV_PATH, at, message, write, also=also)
            continue
        if (other := instead(draft, key)) is not None:
            message = (
                f"this schedule starts by `{other}`, which `{key}` cannot replace."
            )
            write = f"override its {other}"
            yield Finding(codes.ENV_PATH, at, message, write)
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
        lost = tuple(key.split(".")[:2])  # an entry may go with a key that it needs
        yield Finding(codes.ENV_PATH, at, message, write, unless=(lost,))


def overridable(draft: Draft) -> Iterator[str]:
    """Every key of this spec that a deployment may override."""
    for table, key in ALLOWED:
        if table == "retention":
            yield f"{table}.{key}"
            continue
        names = draft.workers if table == "workers" else getattr(draft.spec, table)
        if table == "queues":
            names = draft.queues
        for name in names:
            if instead(draft, f"{table}.{name}.{key}") is None:
                yield f"{table}.{name}.{key}"


def instead(draft: Draft, key: str) -> str | None:
    """The key that a schedule starts by, where an override names the other one."""
    parts = key.split(".")
    if (
        len(parts) != 3
        or parts[0] != "schedules"
        or parts[1] not in draft.spec.schedules
    ):
        return None
    other = {"cron": "every", "every": "cron"}.get(parts[2])
    schedule = draft.spec.schedules[parts[1]]
    return other if other and getattr(schedule, other) is not None else None


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
