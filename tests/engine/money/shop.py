"""Packages that spend: their specs, their provider, and the judges of their money."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine import faults
from engine.faults import until

HANDLERS: Final = Path(__file__).with_name("buyers.py").read_text("utf-8")
PROVIDER: Final = Path(__file__).with_name("provider.py")

PAYLOAD: Final = """
n = { type = "int", default = 0 }
do = { type = "str", default = "ok" }
cost = { type = "str", default = "0.02" }
most = "str?"
steps = { type = "int", default = 1 }
then = { type = "str", default = "" }
who = { type = "str", default = "somebody" }
"""


def agent(name: str = "writer", cap: str = 'day = "1000"', more: str = "") -> str:
    """An agent's table."""
    return f'\n[agents.{name}]\nowner = "me"\ncap = {{ {cap} }}\n{more}\n'


def job(
    name: str,
    max_cost: str = "0.20",
    who: str = "writer",
    more: str = "",
    does: str = "",
) -> str:
    """A paid job's table; ``does`` names its handler where that is not its own name."""
    handler = f'handler = "tested_handlers:{does or name}"\n'
    return (
        f'\n[jobs.{name}]\n{handler}agent = "{who}"\nmax_cost = "{max_cost}"\n{more}\n'
        f"[jobs.{name}.payload]\n{PAYLOAD}"
    )


@dataclass(frozen=True)
class Charge:
    """A line of the provider's bill."""

    job: str
    step: str
    key: str
    cost: str
    pid: int  # whose process has asked


class Provider:
    """The provider's process and its bill."""

    def __init__(self, folder: Path, keyed: bool) -> None:
        self.bill = folder / "bill"
        self._port = folder / "port"
        command = [sys.executable, str(PROVIDER), str(self._port), str(self.bill)]
        self._process = subprocess.Popen([*command, *(["keyed"] if keyed else [])])
        until(self._port.exists, "the provider's port")
        self.port = self._port.read_text()

    def charges(self) -> list[Charge]:
        if not self.bill.exists():
            return []
        lines = self.bill.read_text().splitlines()
        words = [line.split() for line in lines]
        return [Charge(*most, int(pid)) for *most, pid in words]

    def billed(self) -> Counter[tuple[str, str]]:
        """How often each step was charged."""
        return Counter((c.job, c.step) for c in self.charges())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def provider(folder: Path, keyed: bool = False) -> Iterator[Provider]:
    """A provider that runs."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Provider(folder, keyed)
    try:
        yield found
    finally:
        found.close()


# --- the judges -------------------------------------------------------------------


def calls(package: faults.Package, where: str = "1 = 1") -> list[dict[str, Any]]:
    """Paid calls, in the order in which they were opened."""
    return package.sql(f"SELECT * FROM jobs_calls WHERE {where} ORDER BY opened_at, id")


def windows(package: faults.Package) -> dict[str, dict[str, int]]:
    """The windows by key: what is spent, reserved, unknown."""
    rows = package.sql("SELECT key, spent, reserved, unknown FROM jobs_spend")
    return {row.pop("key"): row for row in rows}


def listed(value: Any) -> list[str]:
    """A JSON list, as either database gives it."""
    return list(json.loads(value) if isinstance(value, str) else value)


def audit(package: faults.Package) -> None:
    """The books balance: every window is the sum of its rows and calls."""
    truth: dict[str, list[int]] = {key: [0, 0, 0] for key in windows(package)}
    costs: Counter[str] = Counter()
    for call in calls(package):
        costs[str(call["job_id"])] += call["cost"]
        for key in listed(call["windows"]):
            truth[key][0] += call["cost"]
            truth[key][1] += call["max_cost"] if call["state"] == "open" else 0
            truth[key][2] += call["max_cost"] if call["state"] == "unknown" else 0
    for row in package.rows():
        assert row["cost"] == costs[row["id"]], row
        if row["reserved"]:
            assert row["state"] == "active", row
            for key in row["windows"]:
                truth[key][1] += row["reserved"]
        if row["state"] in ("completed", "failed", "cancelled"):
            open_ = calls(package, f"job_id = '{row['id']}'")
            assert not [c for c in open_ if c["state"] in ("open", "unknown")], row
    found = {
        key: [row["spent"], row["reserved"], row["unknown"]]
        for key, row in windows(package).items()
    }
    assert found == truth


def watch_the_cap(package: faults.Package, cap: int) -> None:
    """A trigger writes down every commit that leaves a window above the cap."""
    package.sql("CREATE TABLE above (key text, amount bigint)")
    over = f"NEW.spent + NEW.reserved + NEW.unknown > {cap}"
    note = "INSERT INTO above VALUES (NEW.key, NEW.spent + NEW.reserved + NEW.unknown)"
    if package.dialect == "sqlite":
        package.sql(
            f"CREATE TRIGGER watch AFTER UPDATE ON jobs_spend WHEN {over} "
            f"BEGIN {note}; END"
        )
        return
    package.sql(
        f"CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {over}"
        f" THEN {note}; END IF; RETURN NULL; END $$"
    )
    package.sql(
        "CREATE CONSTRAINT TRIGGER watch AFTER INSERT OR UPDATE ON jobs_spend DEFERRABLE"
        " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION watch()"
    )


def on_the_ledger(package: faults.Package, bill: Provider) -> None:
    """Every charge of the provider belongs to a call in the record."""
    known = Counter((str(c["job_id"]), c["step"]) for c in calls(package))
    for step, times in bill.billed().items():
        assert known[step] >= times, (step, times, known[step])
