"""What handlers may be and do: yields, wrappers, groups, odd exceptions, secrets.

An attempt runs in this process, on an event loop of the test's own; its ending is what
the record would be told.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from engine import faults, units
from engine.conftest import Make
from engine.faults import until
from engine.units import Engine

import servers

pytestmark = faults.on("sqlite")

SENSITIVE = """
[jobs.secret.payload]
n = "int"
token = { type = "str", default = "", sensitive = true }
"""


class Bad(Exception):
    pass


class Alien(Exception):
    pass


def name_of(kind: type[Exception]) -> str:
    """As a policy's `never` and `only` name it."""
    return f"{kind.__module__}:{kind.__qualname__}"


def attempted(
    engine: Engine, handler: Callable[..., Any], timeout: float | None = None
) -> Any:
    """The ending of one attempt of this handler."""
    module, boot = engine.part("runner"), engine.boot()
    runner = module.Runner(boot, 1)
    runner.open(object(), ())  # imports nothing
    attempt = module.Attempt(engine.claimed(boot), boot, object())
    attempt.job = replace(attempt.job, timeout=timeout)
    runner._handlers[attempt.job.name] = handler
    return asyncio.run(runner._attempt(attempt))


def message_of(ending: Any) -> str:
    text: str = json.loads(ending.error)["message"]
    return text


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as most people write it: a plain function, whatever it wraps."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*args)

    return call


# --- handlers that yield --------------------------------------------------------


def generates(job: object, payload: object) -> Iterator[int]:
    yield 1


async def agenerates(job: object, payload: object) -> Any:
    yield 1


def returns_one(job: object, payload: object) -> Any:
    return generates(job, payload)


async def areturns_one(job: object, payload: object) -> Any:
    return agenerates(job, payload)


@pytest.fixture
def opened(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Opens a runner whose only job has this handler, on these queues."""
    module = engine.part("runner")

    def go(handler: Any, *queues: str) -> Any:
        place = ModuleType("tested_place")
        vars(place)["handle"] = handler
        monkeypatch.setitem(sys.modules, "tested_place", place)
        job = replace(engine.job["work"], handler="tested_place:handle")
        monkeypatch.setattr(engine.part("catalog"), "ALL", (job,))
        runner = module.Runner("boot", 1)
        runner.open(object(), queues)
        return runner

    return go


@pytest.mark.parametrize("handler", [generates, agenerates])
def test_a_handler_that_yields_is_refused(
    engine: Engine, opened: Callable[..., Any], handler: Any
) -> None:
    setup_error = engine.part("errors").SetupError
    with pytest.raises(setup_error, match="tested_place:handle, yields: it must"):
        opened(handler, "default")
    assert opened(returns_one, "default")


def test_a_worker_does_not_start_with_a_handler_that_yields(make: Make) -> None:
    text = faults.HANDLERS + "\n\ndef plain(job, payload):\n    yield payload.n\n"
    done = make(handlers=text).run("worker", "--burst")
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(
        "the handler of plain, tested_handlers:plain, yields: it must return its result"
    )
    assert "Traceback" not in done.stderr


def test_what_consumes_a_generator_is_a_handler(
    engine: Engine, opened: Callable[..., Any]
) -> None:
    """A decorator may hand the values on in its own way."""

    @functools.wraps(generates)
    def consumes(*args: Any) -> int:
        return sum(generates(*args))

    assert opened(consumes, "default")
    ending = attempted(engine, consumes)
    assert (ending.state, ending.result) == ("completed", "1")


@pytest.mark.parametrize(
    "handler", [returns_one, areturns_one, wrapped(generates), wrapped(agenerates)]
)
def test_a_generator_is_no_result(engine: Engine, handler: Any) -> None:
    """Nothing of it has run: the attempt has failed, and is tried again."""
    ending = attempted(engine, handler)
    assert (ending.state, ending.outcome) == ("queued", "raised")
    assert message_of(ending) == "the handler yields: it must return its result"


# --- wrapped async handlers -----------------------------------------------------


async def sleeps(job: object, payload: object) -> None:
    await asyncio.sleep(30)


async def works(job: object, payload: object) -> str:
    await asyncio.sleep(0)
    return "done"


def test_a_wrapped_async_handler_is_stopped(engine: Engine) -> None:
    """At its deadline, like one that is not wrapped, not when it ends by itself."""
    began = time.monotonic()
    ending = attempted(engine, wrapped(sleeps), timeout=0.1)
    assert ending.outcome == "timed_out"
    assert time.monotonic() - began < 10
    assert attempted(engine, wrapped(works)).result == '"done"'


def test_a_deadline_while_the_wrapper_works(engine: Engine) -> None:
    """It passes before there is anything to cancel: the rest is not begun."""
    begun = []

    async def rest() -> None:
        begun.append(1)

    def slow(job: object, payload: object) -> Any:
        time.sleep(0.3)
        return rest()

    ending = attempted(engine, slow, timeout=0.05)
    assert (ending.outcome, begun) == ("timed_out", [])


def test_a_wrapper_with_a_loop_of_its_own(engine: Engine) -> None:
    """What makes a plain handler of an async one may do so: it is not on our loop."""

    @functools.wraps(works)
    def plain(job: object, payload: object) -> str:
        return asyncio.run(works(job, payload))

    assert attempted(engine, plain).result == '"done"'


# --- groups ---------------------------------------------------------------------


def group_of(*errors: Exception) -> ExceptionGroup[Any]:
    """What a TaskGroup raises whose tasks raise these."""

    async def fail(error: Exception) -> None:
        raise error

    async def go() -> None:
        async with asyncio.TaskGroup() as tasks:
            for error in errors:
                tasks.create_task(fail(error))

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(go())
    assert len(caught.value.exceptions) == len(errors)
    return caught.value


def policy(engine: Engine, **more: Any) -> Any:
    kind = engine.part("definitions").Retry
    return kind("p", tries=3, wait=1.0, factor=2.0, max_wait=9.0, jitter=0.0, **more)


def raised(engine: Engine, error: BaseException) -> Any:
    """The ending of an attempt that raised this."""
    boot = engine.boot()
    held = engine.held(engine.claimed(boot), boot)
    return engine.outcomes.raised(held, engine.job["work"], error)


def test_never_and_only_look_into_groups(engine: Engine) -> None:
    may_retry = engine.part("retries").may_retry
    never = policy(engine, never=(name_of(Bad),))
    only = policy(engine, only=(name_of(Bad),))
    inner = ExceptionGroup("inner", [group_of(Bad("1"))])
    for error in (group_of(Bad("1")), group_of(Alien("1"), Bad("2")), inner):
        assert not may_retry(never, error)
        assert may_retry(only, error)
    assert may_retry(never, group_of(Alien("1")))
    assert not may_retry(only, group_of(Alien("1")))
    assert not may_retry(policy(engine, never=("ValueError",)), group_of(ValueError()))


def test_a_group_of_defers_is_a_defer(engine: Engine) -> None:
    """The longest counts; beside another error it is that error that counts."""
    defer = engine.api.Defer
    ending = raised(engine, group_of(defer(5), defer(60)))
    assert (ending.outcome, ending.reason, ending.delay) == ("deferred",) * 2 + (60,)
    assert raised(engine, group_of(defer(5), Bad("no"))).outcome == "raised"


def test_retry_after_in_a_group(engine: Engine) -> None:
    error = Bad("429")
    error.retry_after = 600  # type: ignore[attr-defined]
    assert raised(engine, group_of(error)).delay >= 600
    assert raised(engine, group_of(Alien("1"), error)).delay >= 600


def test_a_group_is_described_by_its_first_error(engine: Engine) -> None:
    """Different faults of one TaskGroup are different causes, one fault is one."""
    ending = raised(engine, group_of(ValueError("no such user 17")))
    error = json.loads(ending.error)
    assert (error["type"], error["message"]) == ("ValueError", "no such user 17")
    assert error["at"].endswith(":fail")
    assert "ExceptionGroup" in ending.traceback
    same = raised(engine, group_of(ValueError("no such user 99")))
    other = raised(engine, group_of(ValueError("no such room 17")))
    kind = raised(engine, group_of(OSError("no such user 17")))
    assert same.cause == ending.cause
    assert len({ending.cause, other.cause, kind.cause}) == 3


def test_a_group_of_several_errors(engine: Engine) -> None:
    ending = raised(engine, group_of(ValueError("first"), OSError("second"), Bad("x")))
    assert message_of(ending) == "first (and 2 more)"
    assert json.loads(ending.error)["type"] == "ValueError"
    assert "second" in ending.traceback


# --- odd exceptions -------------------------------------------------------------


class Computed(Exception):
    @property
    def retry_after(self) -> float:
        raise RuntimeError("not known")


class Asked(Exception):
    def __init__(self, retry_after: object) -> None:
        super().__init__("429")
        self.retry_after = retry_after


@pytest.mark.parametrize(
    "error",
    [
        Computed("429"),
        Asked(10**400),
        Asked("1" * 400),
        Asked(float("nan")),
        Asked(float("inf")),
    ],
    ids=["raises", "huge", "huge-text", "nan", "inf"],
)
def test_an_odd_retry_after(engine: Engine, error: Exception) -> None:
    """An ordinary failed attempt, after the plain wait; its own error is kept."""
    ending = raised(engine, error)
    assert (ending.outcome, ending.reason) == ("raised", "retry")
    assert 0 < ending.delay <= 10
    assert message_of(ending) == "429"


def caused(link: str) -> Exception:
    """Alien, raised from Bad, or while Bad was being handled."""
    try:
        try:
            raise Bad("inner")
        except Bad as bad:
            if link == "cause":
                raise Alien("outer") from bad
            raise Alien("outer")  # noqa: B904
    except Alien as error:
        return error


def test_never_follows_causes_alone(engine: Engine) -> None:
    """What was being handled when it was raised did not cause it."""
    may_retry = engine.part("retries").may_retry
    never, only = ({key: (name_of(Bad),)} for key in ("never", "only"))
    assert not may_retry(policy(engine, **never), caused("cause"))
    assert may_retry(policy(engine, **never), caused("context"))
    assert may_retry(policy(engine, **only), caused("cause"))
    assert not may_retry(policy(engine, **only), caused("context"))


def test_causes_inside_groups(engine: Engine) -> None:
    never = policy(engine, never=(name_of(Bad),))
    may_retry = engine.part("retries").may_retry
    assert not may_retry(never, group_of(caused("cause")))
    outer = RuntimeError("outer")
    outer.__cause__ = group_of(Bad("inner"))
    assert not may_retry(never, outer)


# --- handlers of other queues ---------------------------------------------------


def test_only_handlers_that_are_served_are_imported(
    engine: Engine, opened: Callable[..., Any]
) -> None:
    with pytest.raises(engine.part("errors").SetupError, match="is missing"):
        opened(None, "default")
    assert opened(None, "other")._handlers == {}


def test_a_job_sent_to_another_queue_runs(make: Make) -> None:
    """A worker imports its handler when it comes, not before."""
    spec = faults.QUICK + faults.JOBS + """
[queues.default]
[queues.other]
[workers.main]
queues = ["default"]
[workers.second]
queues = ["other"]

[jobs.away]
queue = "other"
handler = "tested_away:away"
[jobs.away.payload]
n = "int"
"""
    package = make(spec)
    imported = Path(f"{package.ledger.path}.imported")
    (package.tree.folder / "tested_away.py").write_text(
        "import os, pathlib\n"
        f"pathlib.Path(os.environ[{faults.LEDGER!r}] + '.imported').touch()\n"
        "def away(job, payload):\n"
        "    return payload.n\n"
    )
    api = package.api
    first = api.enqueue(api.Work(n=1))
    with package.worker("main"):
        package.in_state(first.id, "completed")
        assert not imported.exists()
        sent = api.enqueue(api.Away(n=7), queue="default")
        assert package.in_state(sent.id, "completed")["result"] == 7
        until(imported.exists, "the import")


# --- secrets in results ---------------------------------------------------------


@pytest.fixture
def secretive(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> Iterator[Engine]:
    spec = faults.QUICK + SENSITIVE
    with units.engine(dialect, database_url, redis_server, tmp_path, spec) as made:
        yield made


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"n": 1, "token": "hush"}, {"n": 1, "token": "***"}),
        ([{"deep": {"token": ["hush"]}}], [{"deep": {"token": "***"}}]),
        (7, 7),
    ],
)
def test_sensitive_fields_in_results(
    secretive: Engine, result: object, shown: object
) -> None:
    """`show` and `list` mask them by name; the row has them in clear."""
    boot = secretive.boot()
    claim = secretive.claimed(boot, secretive.api.Secret(n=1))
    secretive.finish(secretive.outcomes.completed(secretive.held(claim, boot), result))
    operations = secretive.part("operations")
    assert operations.show(claim.id)["result"] == shown
    assert [row["result"] for row in operations.listed()] == [shown]
    assert secretive.row(claim.id)["result"] == result


@pytest.mark.parametrize(
    ("result", "shown"),
    [({"n": 1, "token": "hush"}, {"n": "***", "token": "***"}), ([1], "***")],
)
def test_a_result_of_a_job_that_is_gone(
    secretive: Engine, result: object, shown: object
) -> None:
    """Nobody knows which of its fields were sensitive."""
    boot = secretive.boot()
    claim = secretive.claimed(boot, secretive.api.Secret(n=1))
    secretive.finish(secretive.outcomes.completed(secretive.held(claim, boot), result))
    secretive.package.sql("UPDATE jobs SET job = 'gone'")
    assert secretive.part("operations").show(claim.id)["result"] == shown


def test_the_beginning_of_a_result_is_masked(secretive: Engine) -> None:
    """Of one that was too large to keep: its text may begin with the secret."""
    boot = secretive.boot()
    claim = secretive.claimed(boot, secretive.api.Secret(n=1))
    large = {"token": "hush", "text": "x" * 4_000_000}
    secretive.finish(secretive.outcomes.completed(secretive.held(claim, boot), large))
    assert secretive.row(claim.id)["result"]["$begins"].startswith('{"token": "hush"')
    result = secretive.part("operations").show(claim.id)["result"]
    assert set(result) == {"$refused", "$begins"}
    assert result["$begins"] == "***"
