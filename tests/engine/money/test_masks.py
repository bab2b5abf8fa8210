"""What is sensitive shows nowhere, also where it counts for a tenant, a limit, a cap."""

from __future__ import annotations

import json

import pytest
from engine import faults
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent
from engine.money.test_caps import engine

SECRET = 'eve "the | pipe" adams'
EACH = 'cap_each = { by = "who", day = "0.40" }\nwhen_capped = "deny"'
SPEC = agent("each", 'day = "9"', EACH) + "".join(f"""
[jobs.{name}]
handler = "tested_handlers:work"
agent = "each"
max_cost = "0.40"
tenant_by = "who"
max_running = 5
max_running_by = "who"
[jobs.{name}.payload]
n = {{ type = "int", default = 0 }}
who = {{ type = "str"{more} }}
""" for name, more in (("hidden", ", sensitive = true"), ("open", "")))
PLAIN_SPEC = SPEC.replace(", sensitive = true", "")


def claimed(package: faults.Package) -> list[str]:
    """One job that runs, and one that its value's cap denies; their ids."""
    door, api = package.part("door"), package.api
    message = package.part("messages").Message
    ids = [each.id for each in api.enqueue_many([api.Hidden(who=SECRET)] * 2)]
    package.sql("UPDATE jobs SET dispatch = 1, dispatched_at = run_at")
    ((boot, database),) = engine(package, 1)
    for id_ in ids:
        with database.transaction() as tx:
            door.claim(tx, [message(id_, 1)], boot, lambda _id: False)
        package.sql("UPDATE jobs_spend SET spent = 400000")
    database.close()
    assert [package.row(id_)["state"] for id_ in ids] == ["active", "failed"]
    return ids


def said(
    package: faults.Package, ids: list[str], capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """What every command that shows something prints, for people and in JSON."""
    capsys.readouterr()
    asked = [["show", id_] for id_ in ids]
    asked += [[name] for name in "list caps status health dead-letters doctor".split()]
    found = {}
    for words in asked:
        for more in ([], ["--json"]):
            package.part("__main__").main([*words, *more])
            found[" ".join(words + more)] = "".join(capsys.readouterr())
    return found


def test_a_sensitive_value_is_shown_by_no_command(
    open_shop: Shop, bill: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    package = open_shop(SPEC, bill)
    ids = claimed(package)
    printed = said(package, ids, capsys)
    assert not {words for words, text in printed.items() if "adams" in text}
    row = json.loads(printed[f"show {ids[0]} --json"])
    assert (row["tenant"], row["running_key"], row["cap_key"]) == (
        *("***", "hidden:***", "***"),
    )
    keys = sorted(key.split("|")[:3] for key in row["windows"])
    assert keys == [["each", "", "day"], ["each", "***", "day"]]
    assert "for ***" in printed[f"show {ids[1]}"]
    windows = json.loads(printed["caps --json"])["agents"]["each"]["windows"]
    assert [each["of"] for each in windows] == [None, "***"]
    assert "the window each|***|day|" in printed["doctor --json"]
    # Of a job that this package does not have nobody knows what is sensitive.
    package.sql("UPDATE jobs SET job = 'gone', agent = 'gone'")
    row = json.loads(said(package, ids, capsys)[f"show {ids[0]} --json"])
    assert (row["tenant"], row["running_key"], row["cap_key"]) == ("***",) * 3


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_what_is_not_sensitive_is_shown(
    open_shop: Shop, bill: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    package = open_shop(PLAIN_SPEC, bill)
    ids = claimed(package)
    printed = said(package, ids, capsys)
    shown = {words for words, text in printed.items() if "adams" in text}
    assert shown >= {f"show {ids[0]}", "list --json", "caps", "status", "doctor --json"}
    assert {f"show {ids[1]}", "dead-letters --json"} <= shown
