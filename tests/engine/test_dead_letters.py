"""Dead letters: causes, approval, and replays that stay within it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from engine.conftest import MakePackage
from engine.packages import Package

SPEC = """
schema_version = 1

[project]
name = "dead"

[stall]
heartbeat = "500ms"
after = "2s"
sweep = "1s"

[retries.default]
tries = 2
wait = "100ms"
factor = 1
jitter = 0
max_replays = 2

[jobs.note]
timeout = "2s"

[jobs.note.payload]
n = "int"

[jobs.alone]
unique_by = ["n"]

[jobs.alone.payload]
n = "int"
"""
HANDLERS = """
from pathlib import Path

def note(job, payload):
    if not Path("fixed").exists():
        raise RuntimeError(f"ticket {payload.n} is broken")

alone = note
"""


@pytest.fixture
def package(make_package: MakePackage) -> Package:
    return make_package(SPEC, handlers={"dead_handlers": HANDLERS})


def fail(package: Package, code: str) -> list[str]:
    """Enqueues and lets every try fail; the ids, the oldest failure first."""
    package.python(code)
    assert package.worker("--burst").wait(60) == 0, package.log()
    rows = package.query(
        f"SELECT id FROM {package.table} WHERE state = 'failed' ORDER BY finished_at, id"
    )
    return [str(id_) for (id_,) in rows]


def cause_of(package: Package) -> Any:
    (cause,) = package.json("dead-letters")["causes"]
    return cause


def approve(package: Package, cause: str, limit: int) -> None:
    answer = package.json(
        *("dead-letters", "approve", cause, "--by", "Ann", "--note", "fixed"),
        *("--limit", limit),
    )
    assert answer == {"cause": cause, "limit": limit}


def replay(package: Package, cause: str, *words: object, code: int = 0) -> Any:
    return package.json("dead-letters", "replay", cause, *words, code=code)


def test_from_failure_to_replay(package: Package) -> None:
    ids = fail(package, "enqueue_many([Note(n=n) for n in range(4)])")
    assert len(ids) == 4
    group = cause_of(package)
    assert set(group) == {
        *("cause", "job", "state", "reason", "error"),
        *("count", "oldest", "newest", "cost", "approved"),
    }
    assert (group["job"], group["state"], group["count"]) == ("note", "failed", 4)
    assert group["reason"] == "exhausted" and group["approved"] is None
    assert group["error"]["type"] == "RuntimeError" and group["cost"] == "0.00"
    cause = group["cause"]

    bare = replay(package, cause, code=1)
    assert bare["replayed"] == []
    assert [row["id"] for row in bare["refused"]] == ids
    assert all("not approved" in row["why"] for row in bare["refused"])

    approve(package, cause, 3)
    approved = cause_of(package)["approved"]
    assert (approved["by"], approved["note"]) == ("Ann", "fixed")
    assert (approved["limit"], approved["left"]) == (3, 3)
    assert replay(package, cause, "--limit", 1) == {"replayed": ids[:1], "refused": []}
    rest = replay(package, cause, code=1)
    assert rest["replayed"] == ids[1:3]
    assert [row["id"] for row in rest["refused"]] == ids[3:]
    assert "limit of 3" in rest["refused"][0]["why"]

    row = package.json("show", ids[0])
    assert (row["state"], row["reason"], row["replays"]) == ("queued", "replay", 1)
    assert (row["attempt"], row["tries"]) == (2, 4)
    assert len(row["attempts"]) == 2
    second, third = (package.json("show", id_)["run_at"] for id_ in ids[1:3])
    assert second < third  # spread over time

    (package.path / "fixed").touch()
    assert package.worker("--burst").wait(60) == 0
    assert package.json("status")["states"]["completed"] == 3
    assert cause_of(package)["count"] == 1


def test_one_row_however_often_it_fails(package: Package) -> None:
    (id_,) = fail(package, "enqueue(Note(n=1))")
    cause = cause_of(package)["cause"]
    for n in (1, 2):
        approve(package, cause, 10)
        assert replay(package, cause)["replayed"] == [id_]
        fail(package, "")
        row = package.json("show", id_)
        assert (row["state"], row["replays"]) == ("failed", n)
        assert (row["attempt"], row["tries"]) == (2 + 2 * n, 2 + 2 * n)
        assert (cause_of(package)["cause"], cause_of(package)["count"]) == (cause, 1)
    approve(package, cause, 10)
    (refused,) = replay(package, cause, code=1)["refused"]
    assert refused["id"] == id_ and "max_replays is 2" in refused["why"]


def test_only_what_failed_before_the_approval(package: Package) -> None:
    (first,) = fail(package, "enqueue(Note(n=1))")
    cause = cause_of(package)["cause"]
    approve(package, cause, 10)
    _, later = fail(package, "enqueue(Note(n=2))")
    answer = replay(package, cause, code=1)
    assert answer["replayed"] == [first]
    (refused,) = answer["refused"]
    assert refused["id"] == later and "after the approval" in refused["why"]


def test_a_live_twin(package: Package) -> None:
    ids = fail(package, "enqueue(Alone(n=1)); enqueue(Alone(n=2))")
    cause = cause_of(package)["cause"]
    twin = package.python("answer = enqueue(Alone(n=1))")
    assert twin[1] is True
    approve(package, cause, 10)
    answer = replay(package, cause, code=1)
    (refused,) = answer["refused"]
    assert "unique key" in refused["why"]
    assert sorted([refused["id"], *answer["replayed"]]) == sorted(ids)
    payload = package.json("show", answer["replayed"][0])["payload"]
    assert payload == {"n": 2}


def test_two_failed_twins(package: Package) -> None:
    fail(package, "enqueue(Alone(n=1))")
    ids = fail(package, "enqueue(Alone(n=1))")
    assert len(ids) == 2
    cause = cause_of(package)["cause"]
    approve(package, cause, 10)
    answer = replay(package, cause, code=1)
    assert answer["replayed"] == ids[:1]
    assert [row["id"] for row in answer["refused"]] == ids[1:]


def test_two_people_at_once(package: Package) -> None:
    ids = fail(package, "enqueue_many([Note(n=n) for n in range(20)])")
    cause = cause_of(package)["cause"]
    approve(package, cause, 15)
    command = [sys.executable, "-m", package.name, "dead-letters", "replay", cause]
    pressed = [
        subprocess.Popen(
            [*command, "--json"], env=package.env, cwd=package.path, stdout=-1
        )
        for _ in range(3)
    ]
    answers = [json.loads(each.communicate(timeout=60)[0]) for each in pressed]
    replayed = [id_ for answer in answers for id_ in answer["replayed"]]
    assert sorted(replayed) == sorted(ids[:15])
    states = package.json("status")["states"]
    assert (states["queued"], states["failed"]) == (15, 5)
    assert cause_of(package)["approved"]["left"] == 0


def test_a_handler_that_may_still_run(package: Package) -> None:
    (id_,) = fail(package, "enqueue(Note(n=1))")
    cause = cause_of(package)["cause"]
    boot = package.fake_boot(["default"], ["note"])
    ended = (
        f"UPDATE {package.table}_attempts SET outcome = 'timed_out', worker = ?,"
        " started_at = ?, ended_at = ?"
    )
    package.query(ended, boot, package.instant(-60), package.instant(-50))
    approve(package, cause, 1)
    (refused,) = replay(package, cause, code=1)["refused"]
    assert refused["id"] == id_ and "may still run" in refused["why"]
    # By itself within the leniency: then it does not run any more.
    package.query(ended, boot, package.instant(-60), package.instant(-57))
    assert replay(package, cause)["replayed"] == [id_]


def test_what_is_refused(package: Package) -> None:
    def error(*words: object) -> str:
        return str(package.json("dead-letters", *words, code=1)["error"]["code"])

    assert package.json("dead-letters") == {"causes": []}
    decided = ("--by", "Ann", "--note", "fixed", "--limit", 1)
    assert error("approve", "nope", *decided) == "not_found"
    assert error("replay", "nope") == "not_found"
    assert error("replay", "nope\x01") == "not_found"
    fail(package, "enqueue(Note(n=1))")
    cause = cause_of(package)["cause"]
    blank = ("--by", " ", "--note", "fixed", "--limit", 1)
    assert error("approve", cause, *blank) == "refused"
    none = package.json("dead-letters", "approve", cause, code=2)
    assert none["error"]["code"] == "usage"
    package.query(f"UPDATE {package.table} SET job = 'gone'")
    approve(package, cause, 1)
    (refused,) = replay(package, cause, code=1)["refused"]
    assert "no job 'gone'" in refused["why"]
