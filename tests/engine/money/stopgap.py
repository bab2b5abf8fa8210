"""Until the compiler knows agents: a package built without them, and then told of them."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from typing import Any

from engine import faults

MONEY = ("agent", "max_cost", "billing", "reply", "on_failed")


def build(dialect: str, spec: str, handlers: str, name: str | None) -> faults.Tree:
    data = tomllib.loads(spec)
    bare = re.sub(r"(?ms)^\[(agents\.\w+|spend)\]\n.*?(?=^\[|\Z)", "", spec)
    bare = re.sub(rf"(?m)^({'|'.join(MONEY)}) = .*\n", "", bare)
    tree = faults.build(dialect, bare + f"\n# {hash(spec)}\n", handlers, name)
    package = tree.folder / tree.name
    registry = package / "registry.py"
    text = registry.read_text()
    agents = ", ".join(
        f"{n!r}: {_agent(n, a)}" for n, a in data.get("agents", {}).items()
    )
    text = re.sub(r"AGENTS: .*", f"AGENTS: dict[str, Agent] = {{{agents}}}", text)
    if "spend" in data:
        zone = data["spend"].get("timezone", "UTC")
        spend = f"    spend=Spend(timezone={zone!r}),\n)\n"
        text = re.sub(
            r"(?m)(^    keep_cancelled=.*\n)\)\n", rf"\1{spend}", text, count=1
        )
        text = text.replace("import Agent,", "import Agent, Spend,")
    registry.write_text(text)
    for job, table in data["jobs"].items():
        extra = [
            f"    {key}={_money(table[key]) if key == 'max_cost' else repr(table[key])},\n"
            for key in MONEY
            if key in table
        ]
        file = package / "jobs" / f"{job}.py"
        text = file.read_text()
        if extra and "agent=" not in text and "reply=" not in text:
            head, _, _ = text.rpartition(")")
            file.write_text(head + "".join(extra) + ")\n")
    return tree


def _agent(name: str, table: dict[str, Any]) -> str:
    caps = {k: _money(v) for k, v in table.get("cap", {}).items() if k != "job"}
    each = dict(table.get("cap_each", {}))
    by = each.pop("by", None)
    job_cap = table.get("cap", {}).get("job")
    values = {
        "name": name,
        "owner": table["owner"],
        "caps": caps,
        "job_cap": None if job_cap is None else _money(job_cap),
        "each_by": by,
        "each_caps": {k: _money(v) for k, v in each.items()},
        "when_capped": table.get("when_capped", "wait"),
        "on_unknown": table.get("on_unknown", "hold"),
        "provider_keys": table.get("provider_keys", False),
        "provider_key_ttl": 86400.0 if table.get("provider_keys") else None,
        "not_billed": tuple(table.get("not_billed", ())),
    }
    return f"Agent({', '.join(f'{k}={v!r}' for k, v in values.items())})"


def _money(text: str) -> int:
    return int(Decimal(text) * 1_000_000)
