"""Keys and unique jobs over changes of the spec; what `enqueue` refuses in words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from engine import faults, units
from engine.units import Engine

import servers

OLD = faults.QUICK + """
[jobs.letter.payload]
n = "int"
[jobs.note.payload]
n = "int"
[jobs.alone]
unique_by = ["n"]
[jobs.alone.payload]
n = "int"
"""
NEW = faults.QUICK + """
[jobs.letter.payload]
n = "int"
copies = { type = "int", default = 1 }
tags = { type = "list[str]", default = ["a"] }
note = "str?"
[jobs.missive]
aliases = ["note"]
[jobs.missive.payload]
n = "int"
[jobs.single]
aliases = ["alone"]
unique_by = ["n"]
[jobs.single.payload]
n = "int"
"""


@pytest.fixture
def versions(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> Iterator[tuple[Engine, Engine]]:
    """Two versions of a project on one record."""
    places = (dialect, database_url, redis_server, tmp_path)
    with units.engine(*places, OLD) as old, units.engine(*places, NEW) as new:
        yield old, new


# --- keys over changes of the spec ----------------------------------------------


@faults.on("sqlite")
def test_a_key_outlives_a_new_field(versions: tuple[Engine, Engine]) -> None:
    """With a default, whether it is given or not: the request is the same."""
    old, new = (engine.api for engine in versions)
    conflict = versions[1].part("errors").KeyConflict
    first = old.enqueue(old.Letter(n=1), key="k")
    for payload in (new.Letter(n=1), new.Letter(n=1, copies=1, tags=["a"], note=None)):
        again = new.enqueue(payload, key="k")
        assert (again.id, again.created) == (first.id, False)
    for other in (
        new.Letter(n=2),
        new.Letter(n=1, copies=2),
        new.Letter(n=1, tags=[]),
        new.Letter(n=1, note=""),
        new.Missive(n=1),
    ):
        with pytest.raises(conflict, match="with another job or payload"):
            new.enqueue(other, key="k")


@faults.on("sqlite")
def test_a_key_outlives_a_rename(versions: tuple[Engine, Engine]) -> None:
    old, new = (engine.api for engine in versions)
    conflict = versions[1].part("errors").KeyConflict
    first = old.enqueue(old.Note(n=1), key="k")
    again = new.enqueue(new.Missive(n=1), key="k")
    assert (again.id, again.created) == (first.id, False)
    for other in (new.Missive(n=2), new.Letter(n=1)):
        with pytest.raises(conflict):
            new.enqueue(other, key="k")


@pytest.mark.filterwarnings("error")
@faults.on("sqlite")
def test_a_key_stands_for_the_checked_payload(engine: Engine) -> None:
    """A model that was made without validation is the same request once it is checked."""
    api = engine.api
    first = api.enqueue(api.Work(n=1), key="k")
    again = api.enqueue(api.Work.model_construct(n="1"), key="k")
    assert (again.id, again.created) == (first.id, False)


def test_a_twin_under_a_former_name(versions: tuple[Engine, Engine]) -> None:
    """It waits under the old name still: the new enqueue becomes part of it."""
    old, new = (engine.api for engine in versions)
    first = old.enqueue(old.Alone(n=1))
    for key in (None, "k"):
        again = new.enqueue(new.Single(n=1), key=key)
        assert (again.id, again.created, again.state) == (first.id, False, "queued")
    other, twin = new.enqueue_many([new.Single(n=2), new.Single(n=1)])
    assert (other.created, twin.created, twin.id) == (True, False, first.id)
    old.cancel(first.id)
    after = new.enqueue(new.Single(n=1))
    assert after.created and after.id != first.id
    assert new.enqueue(new.Single(n=1), key="k").id == first.id


# --- times ----------------------------------------------------------------------


def test_run_at_in_the_past_is_now(engine: Engine) -> None:
    """It does not overtake what was enqueued before it."""
    first = engine.row(engine.put())
    for past in (datetime(2001, 1, 1, tzinfo=UTC), datetime(1901, 1, 1, tzinfo=UTC)):
        row = engine.row(engine.put(run_at=past))
        assert row["reason"] is None
        assert row["run_at"] == row["created_at"] >= first["run_at"]
        assert row["sort_at"] >= first["sort_at"]
    assert len(engine.dispatch()) == 3


@faults.on("sqlite")
@pytest.mark.parametrize("years", [11, None])
def test_run_at_beyond_ten_years(engine: Engine, years: int | None) -> None:
    far = datetime.max.replace(tzinfo=UTC)
    if years is not None:
        far = datetime.now(UTC) + timedelta(days=366 * years)
    refused = engine.part("errors").Refused
    with pytest.raises(refused, match="at most ten years from now"):
        engine.put(run_at=far)
    assert engine.put(run_at=datetime.now(UTC) + timedelta(days=3650))


@faults.on("sqlite")
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"key": 5}, "a key is a text, not int"),
        ({"key": b"k"}, "a key is a text, not bytes"),
        ({"delay": "5"}, "delay= is seconds or a timedelta, not str"),
        (
            {"delay": datetime.now(UTC)},
            "delay= is seconds or a timedelta, not datetime",
        ),
        ({"run_at": "2030-01-01"}, "run_at= is a datetime, not str"),
        ({"run_at": date(2030, 1, 1)}, "run_at= is a datetime, not date"),
        ({"run_at": 5.0}, "run_at= is a datetime, not float"),
        ({"queue": ""}, "there is no queue ''"),
    ],
)
def test_wrong_types_are_refused_in_words(
    engine: Engine, how: dict[str, Any], said: str
) -> None:
    with pytest.raises(engine.part("errors").Refused, match=said):
        engine.put(**how)
    assert engine.package.rows() == []


@faults.on("sqlite")
def test_one_payload_is_not_many(engine: Engine) -> None:
    api = engine.api
    with pytest.raises(TypeError, match="a list of payloads: use enqueue for one"):
        api.enqueue_many(api.Work(n=1))
    with pytest.raises(TypeError, match="a list of payloads"):
        asyncio.run(api.aenqueue_many(api.Work(n=1)))
    assert engine.package.rows() == []
