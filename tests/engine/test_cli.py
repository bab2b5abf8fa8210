"""The command line: its documents, its exit codes, and what it never prints."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from engine.conftest import MakePackage
from engine.packages import Package

SPEC = """
schema_version = 1

[project]
name = "cli"

[jobs.note.payload]
n = "int"
text = { type = "str", default = "" }
token = { type = "str", default = "", sensitive = true }

[jobs.plain.payload]
n = "int"
"""
HANDLERS = "def note(job, payload): return payload.n\nplain = note\n"
COLUMNS = """
    id job queue agent tenant priority sort_at state reason payload payload_version result
    error cause attempt tries defers releases throttles run_at expires_at dispatch
    dispatched_at fence worker created_at started_at deadline_at finished_at cost reserved
    unique_key running_key cap_key windows request_key schedule slot replays
    cancel_requested_at progress trace_parent
""".split()
UNKNOWN = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def package(make_package: MakePackage) -> Package:
    return make_package(SPEC, handlers={"cli_handlers": HANDLERS})


def failure(done: subprocess.CompletedProcess[str], code: int) -> dict[str, str]:
    """The error of a command that failed, which printed nothing but that."""
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)
    assert list(document) == ["error"]
    assert set(document["error"]) == {"code", "message"}
    return dict(document["error"])


def test_migrate_twice(package: Package) -> None:
    again = package.json("migrate")
    newest = again["to"]
    assert newest > 0 and again == {"from": newest, "to": newest, "applied": []}
    text = package.run("migrate", "--sql").stdout
    assert f"CREATE TABLE {package.table} (" in text


def test_enqueue_and_show(package: Package) -> None:
    made = package.json(
        "enqueue", "note", '{"n": 7, "token": "hush"}', "--priority", "high"
    )
    assert set(made) == {"id", "created", "state"}
    assert made["created"] is True and made["state"] == "queued"
    row = package.json("show", made["id"])
    assert set(COLUMNS) <= set(row)
    assert row["attempts"] == [] and row["paid_calls"] == []
    assert row["payload"] == {"n": 7, "text": "", "token": "***"}
    assert row["priority"] == "high" and row["cost"] == "0.00"
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(moment, row["created_at"])
    shown = [package.run("show", made["id"]), package.run("list", "--json")]
    assert not any("hush" in done.stdout + done.stderr for done in shown)


def test_enqueue_with_a_key_and_a_delay(package: Package) -> None:
    words = ("enqueue", "plain", '{"n": 1}', "--key", "k", "--delay", "60")
    first, second = package.json(*words), package.json(*words)
    assert first["created"] and not second["created"]
    assert first["id"] == second["id"]
    assert package.json("show", first["id"])["reason"] == "scheduled"
    other = package.run("enqueue", "plain", '{"n": 2}', "--key", "k", "--json")
    assert failure(other, 1)["code"] == "key_conflict"


def test_enqueue_from_stdin(package: Package) -> None:
    done = package.run("enqueue", "note", "-", "--json", stdin='{"n": 3, "text": "é"}')
    row = package.json("show", json.loads(done.stdout)["id"])
    assert row["payload"]["text"] == "é"
    shown = package.run("show", row["id"], "--json", PYTHONIOENCODING="ascii")
    assert json.loads(shown.stdout)["payload"]["text"] == "é"


def test_refusals_name_the_field_and_repeat_no_input(package: Package) -> None:
    def refused(payload: str, code: int) -> dict[str, str]:
        done = package.run("enqueue", "note", payload, "--json")
        assert "hush" not in done.stdout + done.stderr
        return failure(done, code)

    error = refused('{"n": "hush"}', 1)
    assert error["code"] == "payload_refused"
    assert error["message"].startswith("Note: n: ")
    assert "hidden" in refused('{"n": 1, "hidden": "hush"}', 1)["message"]
    assert "Note.text" in refused('{"n": 1, "text": "hush\\u0000"}', 1)["message"]
    assert refused('{"n": 1, "text": "hush"', 2)["code"] == "malformed_json"
    assert refused("[" * 5000, 2)["code"] == "malformed_json"
    assert package.json("status")["states"]["queued"] == 0


def test_usage_and_findings(package: Package) -> None:
    unknown = package.run("enqueue", "nope", "{}", "--json")
    assert "note, plain" in failure(unknown, 1)["message"]
    assert failure(package.run("show", UNKNOWN, "--json"), 1)["code"] == "not_found"
    assert failure(package.run("show", "x", "--json"), 1)["code"] == "not_found"
    assert failure(package.run("bogus", "--json"), 2)["code"] == "usage"
    assert failure(package.run("list", "--limit", "0", "--json"), 2)["code"] == "usage"
    bare = package.run()
    assert bare.returncode == 2 and not bare.stdout
    assert package.run("worker", "nobody").returncode == 2


def test_list_filters(package: Package) -> None:
    package.python("enqueue_many([Note(n=n) for n in range(3)] + [Plain(n=9)])")
    rows = package.json("list")["jobs"]
    assert sorted(row["payload"]["n"] for row in rows) == [0, 1, 2, 9]
    plain = package.json("list", "--job", "plain", "--queue", "default")["jobs"]
    assert [row["job"] for row in plain] == ["plain"]
    queued = package.json("list", "--state", "queued", "--limit", 2)["jobs"]
    assert len(queued) == 2
    assert package.json("list", "--state", "failed") == {"jobs": []}
    for option, name, known in (
        ("--queue", "defualt", "default"),
        ("--job", "nots", "note, plain"),
    ):
        said = failure(package.run("list", option, name, "--json"), 2)
        assert said["code"] == "usage"
        assert f"no {option[2:]} {name!r}" in said["message"]
        assert known in said["message"]
    package.query(f"UPDATE {package.table} SET job = 'gone' WHERE job = 'plain'")
    (gone,) = package.json("list", "--job", "gone")["jobs"]
    assert gone["job"] == "gone"  # of a job that was removed: its rows have the name


def test_unreadable_rows_are_shown(package: Package, dialect: str) -> None:
    note, plain = package.python(
        "answer = [enqueue(Note(n=1)).id, enqueue(Plain(n=1)).id]"
    )
    broken = "{'" if dialect == "sqlite" else '"text"'
    package.query(f"UPDATE {package.table} SET payload = ?", broken)
    rows = {row["id"]: row for row in package.json("list")["jobs"]}
    assert rows[note]["payload"] == "***"  # it may hold the token
    assert rows[plain]["payload"] == ("{'" if dialect == "sqlite" else "text")
    assert package.run("show", plain).returncode == 0
    package.query(f"UPDATE {package.table} SET job = 'gone', payload = '{{\"a\": 1}}'")
    assert package.json("show", note)["payload"] == {"a": "***"}


def test_services_away(package: Package, dialect: str) -> None:
    away = (
        "sqlite:////no/such/folder/record.db"
        if dialect == "sqlite"
        else "postgresql://u:hush@127.0.0.1:1/x"
    )
    for words in (["status"], ["list"], ["recover"], ["dead-letters"], ["migrate"]):
        done = package.run(*words, "--json", DATABASE_URL=away)
        error = failure(done, 2)
        assert error["code"] in ("unavailable", "setup")
        assert "hush" not in done.stdout + done.stderr
    redis = "redis://u:hush@127.0.0.1:1/0"
    done = package.run("recover", "--json", REDIS_URL=redis)
    assert failure(done, 2)["code"] == "unavailable"
    assert "hush" not in done.stdout + done.stderr
    accepted = package.json("enqueue", "plain", '{"n": 1}', REDIS_URL=redis)
    assert accepted["created"]


def test_addresses_that_are_not_set_leave_no_row(package: Package) -> None:
    done = package.run("enqueue", "plain", '{"n": 1}', "--json", REDIS_URL="")
    assert "REDIS_URL" in failure(done, 2)["message"]
    assert package.json("status")["states"]["queued"] == 0
    other = package.run("status", "--json", DATABASE_URL="mysql://u:hush@h/d")
    message = failure(other, 2)["message"]
    assert "DATABASE_URL" in message and "hush" not in message


def test_tables_for_people(package: Package) -> None:
    package.python("enqueue(Note(n=1))")
    for words in (["status"], ["list"], ["dead-letters"], ["recover"]):
        done = package.run(*words)
        assert done.returncode == 0 and done.stdout.strip(), done
    assert "default" in package.run("status").stdout
