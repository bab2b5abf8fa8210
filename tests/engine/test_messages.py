"""What is in Redis and what is in JSON: read with suspicion, written so that it holds."""

from __future__ import annotations

import base64
import json
import math
import threading
import zlib
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import cells
import pytest
from engine.units import Engine


@pytest.fixture
def broker(engine: Engine) -> Iterator[Any]:
    made = engine.part("broker").Broker()
    yield made
    made.close()


@pytest.fixture(params=["sqlite"])
def dialect(request: pytest.FixtureRequest) -> str:
    """Nothing here knows the database, but for the migrations."""
    return str(request.param)


def message(engine: Engine, dispatch: int, id_: str | None = None) -> Any:
    return engine.messages.Message(
        id=id_ or str(uuid4()), dispatch=dispatch, job="work", queue="default"
    )


GOOD = "01890a5d-ac96-774b-bcce-b302099a8057"


RAW = [
    b"",
    b"\x80\x04\x95random",
    b"[]",
    b"null",
    b"[" * 100_000,
    b'{"f": "work"}',
    b'{"a": ["01890a5d-ac96-774b-bcce-b302099a8057", 1]}',
]
ODD = [[], 5, ["5", 1], ["not-a-row", 1], [GOOD, "1"], [f"{GOOD}\n", 1]]


def entry(broker: Any, arguments: Any) -> object:
    """What the backend would hand over for a message with these arguments."""
    match cells.CHOSEN.target:
        case "arq":
            return json.dumps({"f": "work", "a": arguments}).encode()
        case "rq":
            return zlib.compress(json.dumps(["work", None, arguments, {}]).encode())
    body = base64.b64encode(json.dumps([arguments, {}, {}]).encode()).decode()
    priority = {"priority": broker.NORMAL}
    return {"body": body, "headers": {"task": "work"}, "properties": priority}


def test_every_odd_entry_is_dropped(engine: Engine) -> None:
    """It is no message, and no error: the worker lives."""
    broker = engine.part("broker")
    more = ["default"] if cells.CHOSEN.target == "celery" else []

    def read(body: object) -> object:
        try:
            return broker.message_in(body, *more)
        except Exception as error:
            return error

    odd = [*RAW, *(entry(broker, arguments) for arguments in ODD)]
    assert [read(body) for body in odd] == [None] * len(odd)
    good = read(entry(broker, [GOOD, 3]))
    assert (good.id, good.dispatch, good.job) == (GOOD, 3, "work")


@cells.of("arq")
def test_a_message_is_read_as_it_was_written(engine: Engine) -> None:
    broker = engine.part("broker")
    sent = message(engine, 3, GOOD)
    read = broker.message_in(broker.body_of(sent))
    assert (read.id, read.dispatch, read.job) == (GOOD, 3, "work")


def test_what_an_old_dispatch_left_swallows_nothing(
    engine: Engine, broker: Any
) -> None:
    """The old message is still there, whole or half: it does not pass for the new one."""
    old = message(engine, 1)
    new = message(engine, 2, old.id)
    broker.publish([old])
    assert broker.known([new]) == set()
    engine.redis.delete(f"{engine.package.name}:default")
    broker.publish([new])
    assert broker.known([new]) == {new.id}


@cells.of("arq", "rq")
def test_a_message_without_its_body_is_not_known(engine: Engine, broker: Any) -> None:
    """Redis has evicted it: the row's number alone starts nothing."""
    whole, half = message(engine, 1), message(engine, 1)
    broker.publish([whole, half])
    assert engine.redis.delete(f"{cells.CHOSEN.target}:job:{half.id}")
    assert broker.known([whole, half]) == {whole.id}


@cells.of("arq")
def test_published_twice_is_one_message(engine: Engine, broker: Any) -> None:
    sent = message(engine, 1)
    broker.publish([sent])
    broker.publish([sent])
    assert engine.waiting() == 1


# --- JSON -----------------------------------------------------------------------


def form(engine: Engine, value: object) -> Any:
    return json.loads(engine.part("codec").encode(value))


def test_declared_forms_of_text(engine: Engine) -> None:
    """NUL and half characters, as values and as keys: no database stores them."""
    assert form(engine, "a\x00b") == "a\\u0000b"
    assert form(engine, ["a\ud800b"]) == ["a\\ud800b"]
    assert form(engine, {"k\x00": 1}) == {"k\\u0000": 1}


def test_declared_forms_of_numbers(engine: Engine) -> None:
    assert form(engine, math.nan) == "NaN"
    assert form(engine, [math.inf, -math.inf]) == ["Infinity", "-Infinity"]
    assert form(engine, 10**5000).startswith("0x")


def test_declared_forms_of_other_types(engine: Engine) -> None:
    assert form(engine, b"\x00\xff") == {"$base64": "AP8="}
    assert form(engine, {3, 1, 2}) == [1, 2, 3]


def test_encoding_cannot_fail(engine: Engine) -> None:
    """A value whose own methods raise has a form too."""

    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    loop: list[object] = []
    loop.append(loop)
    encode = engine.part("codec").encode
    assert json.loads(encode(Hostile())) == "<unprintable Hostile>"
    assert json.loads(encode(loop))


# --- migrations -----------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_one_migration_at_a_time(engine: Engine) -> None:
    """A second migrator is let in when the first has committed, not before."""
    first, second = engine.database(), engine.database()
    inside = threading.Event()

    def migrate() -> None:
        with second.migration():
            inside.set()

    other = threading.Thread(target=migrate)
    with first.migration():
        other.start()
        assert not inside.wait(0.5), "both are inside"
    other.join(30)
    assert inside.is_set()
