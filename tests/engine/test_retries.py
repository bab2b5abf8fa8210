"""What an exception means, what waits, what never runs: decided by the row."""

from __future__ import annotations

import itertools
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package, until

HANDLERS = faults.HANDLERS + r'''

import datetime
import decimal
import email.utils
import uuid

from pydantic import BaseModel
from tested_errors import Alien, Bad, Limited, VeryBad


class Answer:
    def __init__(self, headers):
        self.headers = headers


def waits(payload):
    """The forms in which a provider asks to wait."""
    error = Limited("429")
    kind, _, value = payload.mode.partition("=")
    if kind == "attribute":
        error.retry_after = float(value)
    elif kind == "delta":
        error.retry_after = datetime.timedelta(seconds=float(value))
    elif kind == "header":
        error.response = Answer({"Retry-After": value})
    elif kind == "lower":
        error.response = Answer({"retry-after": value})
    elif kind == "date":
        when = datetime.datetime.now(datetime.UTC)
        when += datetime.timedelta(seconds=float(value))
        text = email.utils.format_datetime(when, usegmt=True)
        error.response = Answer({"Retry-After": text})
    return error


async def limited(job, payload):
    note("start", job, payload.n)
    raise waits(payload)


async def ladder(job, payload):
    note("start", job, payload.n)
    raise OSError(f"attempt {job.attempt} of {job.id}")


async def picky(job, payload):
    note("start", job, payload.n)
    if payload.mode == "bad":
        raise Bad("never")
    if payload.mode == "sub":
        raise VeryBad("a subclass")
    if payload.mode == "cause":
        try:
            raise Bad("inner")
        except Bad as error:
            raise RuntimeError("outer") from error
    if payload.mode == "value":
        raise UnicodeDecodeError("utf-8", b"x", 0, 1, "a ValueError")
    raise Alien("another")


only = picky


async def defers(job, payload):
    from importlib import import_module
    import sys

    note("start", job, payload.n)
    package = sys.modules["__main__"].__package__
    raise import_module(package).Defer(payload.seconds)


elapsed = ladder


class Model(BaseModel):
    when: datetime.datetime
    amount: decimal.Decimal


async def results(job, payload):
    note("start", job, payload.n)
    nested = "end"
    for _ in range(500):
        nested = [nested]
    loop = []
    loop.append(loop)
    made = {
        "nul": "a\x00b",
        "surrogate": "a\ud83db",
        "emoji": "\U0001f600 \u202eabc\u202c \U00020000",
        "nan": {"a": 1.0, "b": float("nan"), "c": float("inf"), "d": -float("inf")},
        "bytes": b"\x00\xff",
        "set": {3, 1, 2},
        "decimal": decimal.Decimal("0.10"),
        "uuid": uuid.UUID(int=5),
        "when": datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC),
        "model": Model(
            when=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
            amount=decimal.Decimal("1.5"),
        ),
        "object": object(),
        "keys": {1: "a", (1, 2): "b", "c\x00": "c", "\udc00": "d"},
        "huge": 10 ** 5000,
        "deep": nested,
        "loop": loop,
        "backslash": "\\u0000 \\ud800",
        "big": "x" * 3_000_000,
        "none": None,
    }[payload.mode]
    if job.attempt == 1 and payload.seconds:
        raise RuntimeError(made)
    return made


def stops(job, payload):
    """A very common slip: next() of nothing, in a plain function."""
    note("start", job, payload.n)
    if payload.mode == "exit":
        raise SystemExit(3)
    if payload.mode == "interrupt":
        raise KeyboardInterrupt
    return next(iter(()))


async def astops(job, payload):
    stops(job, payload)
'''
ERRORS = """
class Limited(Exception):
    pass


class Bad(Exception):
    pass


class VeryBad(Bad):
    pass


class Alien(Exception):
    pass
"""

PAYLOAD = """
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""
NAMES = "limited ladder picky only defers elapsed results stops astops".split()
POLICIES = """
[retries.limited]
tries = 2
wait = "1s"
jitter = 0.0

[retries.ladder]
tries = 5
ladder = ["100ms", "300ms", "600ms"]
jitter = 0.0

[retries.picky]
tries = 2
wait = "100ms"
never = ["tested_errors:Bad", "ValueError"]

[retries.only]
tries = 2
wait = "100ms"
only = ["tested_errors:Alien"]

[retries.elapsed]
tries = 1000
wait = "500ms"
factor = 1
max_elapsed = "3s"
"""
SPEC = (
    faults.QUICK
    + POLICIES
    + faults.JOBS
    + "".join(f"\n[jobs.{name}.payload]{PAYLOAD}" for name in NAMES)
    + """
[jobs.limited]
retry = "limited"
[jobs.ladder]
retry = "ladder"
[jobs.picky]
retry = "picky"
[jobs.only]
retry = "only"
[jobs.elapsed]
retry = "elapsed"
[jobs.defers]
max_defers = 3
[jobs.shapes.payload]
name = "str"
number = "float?"
anything = "json?"
tags = "list[str]?"
"""
)


@pytest.fixture
def package(make: Make) -> Package:
    handlers = HANDLERS + "\n\nshapes = results\n"
    made = make(SPEC, handlers)
    (made.tree.folder / "tested_errors.py").write_text(ERRORS)
    return made


def wait_of(row: dict[str, Any]) -> float:
    """Seconds between the end of the last attempt and the next one's due time."""
    return seconds(row["run_at"])


def seconds(instant: Any) -> float:
    return instant / 1000 if isinstance(instant, int) else float(instant.timestamp())


def queued_again(package: Package, id_: str) -> dict[str, Any]:
    """The row when it waits for its second attempt."""
    until(
        lambda: package.row(id_)["reason"] == "retry",
        lambda: f"a retry of {package.row(id_)}",
    )
    return package.row(id_)


def test_raising_means_retry(package: Package) -> None:
    """Two failures and a success are three attempts; a third failure is one dead letter.

    Every exception counts, not only the library's own.  C052.
    """
    api = package.api
    good = api.enqueue(api.Work(n=1, mode="once:ValueError")).id
    bad = api.enqueue(api.Work(n=2, mode="raise:ValueError")).id
    with package.worker():
        package.settled()
    assert package.row(good)["state"] == "completed"
    assert package.row(good)["attempt"] == 2
    row = package.row(bad)
    assert (row["state"], row["reason"], row["attempt"]) == ("failed", "exhausted", 3)
    assert row["error"]["type"] == "ValueError"
    assert row["error"]["message"] == "job 2"
    assert len(package.ledger.starts(2)) == 3
    outcomes = [attempt["outcome"] for attempt in package.attempts(bad)]
    assert outcomes == ["raised", "raised", "raised"]


@pytest.mark.parametrize("mode", ["ok", "exit", "interrupt"])
@faults.on("sqlite")
def test_exceptions_that_are_none(package: Package, mode: str) -> None:
    """StopIteration, SystemExit and KeyboardInterrupt of a handler fail its job only.

    The process lives and runs the next job; the attempt does not hang.
    """
    api = package.api
    ids = [
        api.enqueue(api.Stops(n=1, mode=mode)).id,
        api.enqueue(api.Astops(n=2, mode=mode)).id,
    ]
    with package.worker() as worker:
        for id_ in ids:
            row = package.in_state(id_, "failed", patience=25)
            assert row["reason"] == "exhausted", row
        last = api.enqueue(api.Work(n=3)).id
        package.in_state(last, "completed")
        assert worker.running


@faults.on("sqlite")
def test_ladder(package: Package) -> None:
    """Each wait is a step of the ladder, the last one repeats; from the row.  C055."""
    api = package.api
    id_ = api.enqueue(api.Ladder(n=1)).id
    with package.worker():
        row = package.in_state(id_, "failed")
    starts = [run.at for run in package.ledger.starts(1)]
    gaps = [b - a for a, b in itertools.pairwise(starts)]
    assert len(starts) == row["attempt"] == 5
    for gap, step in zip(gaps, [0.1, 0.3, 0.6, 0.6], strict=True):
        assert gap >= step - 0.005, gaps


@faults.on("postgresql")
def test_counters_are_in_the_row(package: Package, own_redis: Any) -> None:
    """Redis forgets everything between two tries: attempts go on counting.  C055."""
    api = package.api
    id_ = api.enqueue(api.Ladder(n=1)).id
    with package.worker():
        while package.row(id_)["state"] in ("queued", "active"):
            own_redis.flush()
            time.sleep(0.05)
    assert package.row(id_)["attempt"] == 5
    assert len(package.ledger.starts(1)) == 5


@pytest.mark.parametrize(
    ("job", "mode", "attempts", "reason"),
    [
        ("Picky", "bad", 1, "never_retry"),
        ("Picky", "sub", 1, "never_retry"),
        ("Picky", "cause", 1, "never_retry"),
        ("Picky", "value", 1, "never_retry"),
        ("Picky", "other", 2, "exhausted"),
        ("Only", "bad", 1, "never_retry"),
        ("Only", "other", 2, "exhausted"),
    ],
)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_never_and_only(
    package: Package, job: str, mode: str, attempts: int, reason: str
) -> None:
    """`never` and `only` look at subclasses and through the cause chain."""
    api = package.api
    id_ = api.enqueue(getattr(api, job)(n=1, mode=mode)).id
    with package.worker():
        row = package.in_state(id_, "failed")
    assert (row["attempt"], row["reason"]) == (attempts, reason)
    assert len(package.ledger.starts(1)) == attempts


def test_retry_after(package: Package) -> None:
    """Every form of Retry-After is a lower bound; nonsense falls back to the plain wait.

    Twenty jobs told the same 600 s come back spread above it.  C050.
    """
    api = package.api
    asked = {
        "attribute=600": 600,
        "delta=600": 600,
        "header=600": 600,
        "lower=600": 600,
        "date=600": 598,
    }
    plain = ["header=-1", "header=abc", "date=-100", "header=", "attribute=nan"]
    ids = {mode: api.enqueue(api.Limited(n=1, mode=mode)).id for mode in asked}
    odd = {mode: api.enqueue(api.Limited(n=2, mode=mode)).id for mode in plain}
    crowd = api.enqueue_many([api.Limited(n=3, mode="header=600") for _ in range(20)])
    huge = api.enqueue(api.Limited(n=4, mode="header=99999999")).id
    with package.worker():
        for mode, id_ in odd.items():
            row = package.in_state(id_, "failed", patience=30)
            assert row["attempt"] == 2, (mode, row)
        for mode, id_ in ids.items():
            row = queued_again(package, id_)
            ended = seconds(package.attempts(id_)[0]["ended_at"])
            wait = seconds(row["run_at"]) - ended
            assert asked[mode] <= wait <= 600 * 1.5, (mode, wait)
        rows = [queued_again(package, one.id) for one in crowd]
        row = queued_again(package, huge)
        wait = seconds(row["run_at"]) - seconds(package.attempts(huge)[0]["ended_at"])
        assert 0 < wait <= 86_400 * 1.5
    waits = [
        seconds(row["run_at"]) - seconds(package.attempts(row["id"])[0]["ended_at"])
        for row in rows
    ]
    assert min(waits) >= 600
    assert max(waits) - min(waits) > 10, "all come back at the same instant"


@faults.on("postgresql")
def test_defer(package: Package) -> None:
    """`Defer` uses no attempt, waits as asked, and is bounded by `max_defers`."""
    api = package.api
    id_ = api.enqueue(api.Defers(n=1, seconds=0.2)).id
    with package.worker():
        row = package.in_state(id_, "failed")
    assert (row["reason"], row["defers"], row["attempt"]) == ("waited_out", 3, 4)
    starts = [run.at for run in package.ledger.starts(1)]
    assert len(starts) == 4
    gaps = [b - a for a, b in itertools.pairwise(starts)]
    assert min(gaps) >= 0.195, gaps


def test_max_elapsed(package: Package) -> None:
    """No attempt is due later than `max_elapsed` after the first began."""
    api = package.api
    id_ = api.enqueue(api.Elapsed(n=1)).id
    with package.worker():
        row = package.in_state(id_, "failed")
    assert row["reason"] == "waited_out"
    starts = [run.at for run in package.ledger.starts(1)]
    assert 2 <= len(starts) <= 8
    assert starts[-1] - starts[0] <= 3.0 + 2  # a dispatch round after it was due


def test_delay_and_run_at(package: Package) -> None:
    """Delayed jobs live in the record: they survive the worker and Redis.  C068.

    None starts early, by the database's clock.
    """
    api = package.api
    now = datetime.now(UTC)
    ids = [
        api.enqueue(api.Work(n=1), delay=3).id,
        api.enqueue(api.Work(n=2), delay=timedelta(seconds=3)).id,
        api.enqueue(api.Work(n=3), run_at=now + timedelta(seconds=3)).id,
        api.enqueue(api.Work(n=4), run_at=now - timedelta(days=1)).id,
    ]
    assert package.row(ids[0])["reason"] == "scheduled"
    with package.worker() as first:
        package.in_state(ids[3], "completed")
        first.terminate()
        assert first.exit_code() == 0
    assert package.states()["queued"] == 3
    with package.worker():
        package.settled()
    for n in (1, 2, 3):
        (run,) = package.ledger.starts(n)
        assert run.at >= now.timestamp() + 2.99


@faults.on("postgresql")
def test_priorities(make: Make) -> None:
    """High before normal before low; a high one passes all but what Redis already has.

    Redis holds at most the worker's slots and four: so many may be in front of it.
    """
    spec = faults.QUICK + "[workers.main]\nconcurrency = 1\n" + faults.JOBS
    package = make(spec)
    api = package.api
    for n, priority in enumerate(["low", "normal", "high"]):
        api.enqueue(api.Work(n=n), priority=priority)
    with package.worker():
        package.settled()
        assert [run.n for run in package.ledger.starts()] == [2, 1, 0]
        api.enqueue_many([api.Work(n=3, seconds=0.3) for _ in range(20)])
        api.enqueue(api.Work(n=4), priority="high")
        package.settled()
    order = [run.n for run in package.ledger.starts()][3:]
    assert order.index(4) <= 6, order


@faults.on("postgresql")
def test_no_worker_discards_an_unknown_job(make: Make, tmp_path: Path) -> None:
    """In a rolling deploy a row of a new job waits for the new worker.  C084.

    The old worker may see it; it leaves the row and no attempt is used.
    """
    old = make(faults.QUICK + faults.JOBS, name="rolling")
    new_spec = faults.QUICK + faults.JOBS + "\n[jobs.novel.payload]\nn = 'int'\n"
    novel = faults.HANDLERS + "\n\nasync def novel(job, payload):\n"
    novel += "    note('start', job, payload.n)\n"
    new = make(new_spec, novel, name="rolling", folder="new")
    with old.worker() as old_worker:
        old.ready(old_worker)
        said = new.run("enqueue", "novel", '{"n": 7}', "--json")
        assert said.returncode == 0, said.stderr
        id_ = json.loads(said.stdout)["id"]
        time.sleep(4)  # several sweeps and rounds of the old one
        row = old.row(id_)
        assert (row["state"], row["attempt"]) == ("queued", 0), row
        with new.worker():
            row = old.in_state(id_, "completed", patience=40)
        assert row["attempt"] == 1
        assert old_worker.running
    assert len(new.ledger.starts(7)) == 1


@faults.on("sqlite")
def test_former_names_still_run(make: Make) -> None:
    """Rows that wait under a former name of a job or queue run in the new package."""
    before = """
[queues.slow]
[jobs.draft]
queue = "slow"
handler = "tested_handlers:work"
[jobs.draft.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""
    after = """
[queues.background]
aliases = ["slow"]
[jobs.compose]
aliases = ["draft"]
queue = "background"
handler = "tested_handlers:work"
[jobs.compose.payload]
n = "int"
mode = { type = "str", default = "ok" }
seconds = { type = "float", default = 0.0 }
"""
    old = make(faults.QUICK + before, name="renamed")
    said = old.run("enqueue", "draft", '{"n": 1}', "--json")
    assert said.returncode == 0, said.stderr
    new = make(faults.QUICK + after, name="renamed", folder="new")
    with new.worker():
        assert new.settled() == {"completed": 1}
    assert len(new.ledger.starts(1)) == 1


@faults.on("sqlite")
def test_payload_versions_side_by_side(make: Make) -> None:
    """A row of a newer payload waits for the worker that reads it.  C103.

    A mismatch uses no attempt of the wrong worker; an older row runs in the new one.
    """
    form = """
[jobs.letter]
version = {version}
handler = "tested_handlers:work"
[jobs.letter.payload]
n = "int"
mode = {{ type = "str", default = "ok" }}
seconds = {{ type = "float", default = 0.0 }}
{more}
"""
    old = make(faults.QUICK + form.format(version=1, more=""), name="versions")
    more = 'lang = { type = "str", default = "en" }'
    new = make(
        faults.QUICK + form.format(version=2, more=more), name="versions", folder="new"
    )
    with old.worker() as old_worker:
        old.ready(old_worker)
        said = new.run("enqueue", "letter", '{"n": 2, "lang": "de"}', "--json")
        assert said.returncode == 0, said.stderr
        newer = json.loads(said.stdout)["id"]
        time.sleep(3)
        assert old.row(newer)["attempt"] == 0
        assert old.row(newer)["state"] == "queued"
    said = old.run("enqueue", "letter", '{"n": 1}', "--json")
    assert said.returncode == 0, said.stderr
    with new.worker():
        assert new.settled() == {"completed": 2}
    assert {row["attempt"] for row in new.rows()} == {1}


RESULTS: dict[str, Any] = {
    "nul": r"a\u0000b",
    "surrogate": r"a\ud83db",
    "emoji": "\U0001f600 \u202eabc\u202c \U00020000",
    "nan": {"a": 1.0, "b": "NaN", "c": "Infinity", "d": "-Infinity"},
    "bytes": {"$base64": "AP8="},
    "set": [1, 2, 3],
    "decimal": "0.10",
    "uuid": "00000000-0000-0000-0000-000000000005",
    "when": "2026-01-02T03:04:00+00:00",
    "model": {"when": "2026-01-02T00:00:00+00:00", "amount": "1.5"},
    "backslash": r"\u0000 \ud800",
    "none": None,
}
ODD = [*RESULTS, "object", "keys", "huge", "deep", "loop", "big"]


def test_results_of_any_kind(package: Package) -> None:
    """What a handler made is recorded whatever it is, alike on both databases.

    NUL, lone surrogates, NaN, bytes, sets, Decimal … have a declared form; each job
    runs once, as a result and as the text of an error.  C099, C100.
    """
    api = package.api
    ids = {mode: api.enqueue(api.Results(n=1, mode=mode)).id for mode in ODD}
    told = {
        mode: api.enqueue(api.Results(n=2, mode=mode, seconds=1)).id for mode in ODD
    }
    with package.worker():
        package.settled()
    for mode, id_ in ids.items():
        row = package.row(id_)
        assert (row["state"], row["attempt"]) == ("completed", 1), (mode, row)
        if mode in RESULTS:
            assert row["result"] == RESULTS[mode], mode
    for mode, id_ in told.items():
        row = package.row(id_)
        assert (row["state"], row["attempt"]) == ("completed", 2), (mode, row)
        (attempt,) = package.attempts(id_)
        assert attempt["error"]["type"] == "RuntimeError", mode
    assert len(package.ledger.starts(1)) == len(ODD)


def test_payloads_that_are_refused(package: Package) -> None:
    """Malformed payloads are refused at enqueue, with the path of the field.

    NUL, half characters and numbers that are none, alike on both databases.
    """
    api = package.api
    errors = package.part("errors")
    bad: list[tuple[dict[str, Any], str]] = [
        ({"name": "a\x00"}, "name"),
        ({"name": "\ud83d"}, "name"),
        ({"name": "a", "number": float("nan")}, "number"),
        ({"name": "a", "number": float("inf")}, "number"),
        ({"name": "a", "tags": ["ok", "b\x00"]}, "tags[1]"),
        (
            {"name": "a", "anything": {"deep": [1, {"x": "\udc00"}]}},
            "anything.deep[1].x",
        ),
        ({"name": "a", "anything": {"k\x00": 1}}, "anything"),
        ({"name": "a", "anything": [float("nan")]}, "anything[0]"),
        ({"name": "x" * 1_100_000}, "bytes"),
    ]
    for fields, path in bad:
        with pytest.raises(errors.PayloadRefused) as told:
            api.enqueue(api.Shapes.model_construct(**fields))
        assert path in str(told.value), (path, str(told.value)[:300])
    nested: Any = 1
    for _ in range(200):
        nested = [nested]
    with pytest.raises(errors.PayloadRefused):
        api.enqueue(api.Shapes.model_construct(name="a", anything=nested))
    with pytest.raises(errors.PayloadRefused) as told:
        api.enqueue(api.Shapes.model_construct(name=5))
    assert "name" in str(told.value)
    assert package.rows() == []
    fine = "\U0001f600 \u202eabc \u0378 \\u0000"
    id_ = api.enqueue(api.Shapes(name=fine, anything={"\U0001f600": [fine]})).id
    assert package.row(id_)["payload"]["name"] == fine


def test_keys_that_are_refused(package: Package) -> None:
    """A key that no database stores is refused in words, not by a driver's error."""
    api = package.api
    errors = package.part("errors")
    for key in ("", "a\x00", "a\ud800", "x" * 1000):
        with pytest.raises(errors.QueueError):
            api.enqueue(api.Work(n=1), key=key)
    assert package.rows() == []


def test_a_row_whose_payload_is_unreadable(package: Package) -> None:
    """It is failed `bad_payload` at its claim, and does not run; others do.  C057."""
    api = package.api
    bad = api.enqueue(api.Work(n=1)).id
    good = api.enqueue(api.Work(n=2)).id
    package.sql('UPDATE jobs SET payload = \'{"n": "words"}\' WHERE id = ?', bad)
    with package.worker():
        row = package.in_state(bad, "failed")
        package.in_state(good, "completed")
    assert row["reason"] == "bad_payload"
    assert package.ledger.starts(1) == []
