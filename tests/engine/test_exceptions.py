"""The exceptions that a spec names are looked up when a worker starts, not at a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cells
import pytest
from engine import faults
from engine.units import Engine

Named = Callable[..., None]
pytestmark = faults.on("sqlite")  # no statement differs


@pytest.fixture
def check(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Named:
    """Checks the names of the policy `once`, which one job of `default` has."""
    policies = engine.part("registry").RETRIES

    def named(*names: str, queue: str = "default", key: str = "never") -> None:
        policy = replace(policies["once"], **{key: names})
        monkeypatch.setitem(policies, "once", policy)
        engine.part("exceptions").check((queue,))

    return named


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:Bad", "cannot be imported: ModuleNotFoundError: No module"),
        ("json:NoSuch", "but there is no class NoSuch in json"),
        ("json:dumps", "but there is no class dumps in json"),
        ("json:JSONDecoder.NoSuch", "but there is no class JSONDecoder.NoSuch in json"),
        # Its class says another name of itself, so no failure would ever be it.
        (
            "json:JSONDecodeError",
            "whose own name is json.decoder:JSONDecodeError: write that",
        ),
        ("asyncio:TimeoutError", "whose own name is TimeoutError: write that"),
    ],
)
@pytest.mark.parametrize("key", ["never", "only"])
def test_a_name_that_nothing_has(
    engine: Engine, check: Named, name: str, said: str, key: str
) -> None:
    """One sentence, with the key of the spec."""
    with pytest.raises(engine.part("errors").SetupError) as raised:
        check("ValueError", name, key=key)
    sentence = str(raised.value)
    assert (
        sentence.startswith(f"retries.once.{key} names {name}, ") and said in sentence
    )
    assert "\n" not in sentence


def test_what_is_there_passes(check: Named) -> None:
    check("ValueError", "json.decoder:JSONDecodeError", "decimal:Inexact")


def test_other_queues_jobs_may_need_what_is_not_here(check: Named) -> None:
    check("no_such_module:Bad", queue="other")


def test_what_is_not_billed_is_named_too(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, exceptions = engine.part("registry"), engine.part("exceptions")
    agent = engine.part("definitions").Agent(
        "writer", "ann", not_billed=("json:NoSuch",)
    )
    monkeypatch.setitem(registry.AGENTS, "writer", agent)
    paid = replace(engine.job["work"], agent="writer")
    monkeypatch.setattr(exceptions.catalog, "ALL", (paid,))
    with pytest.raises(
        engine.part("errors").SetupError, match=r"^agents\.writer\.not_"
    ):
        exceptions.check(("default",))


@pytest.mark.parametrize("target", ["arq", "rq"])
def test_a_worker_does_not_start_with_such_a_name(
    database_url: str,
    own_redis: Any,
    tmp_path: Path,
    target: str,
    clean_environment: None,
) -> None:
    """Exit code 2 and the sentence; alone, and as the parent of others."""
    spec = faults.QUICK.replace('wait = "200ms"', 'wait = "200ms"\nnever = ["m:Bad"]')
    kind = cells.Kind(target, target, "")
    tree = faults.build("sqlite", spec + faults.JOBS, kind=kind)
    package = tree.at(database_url, own_redis.url, tmp_path / "run").migrate()
    with package.worker("--burst") as worker:
        assert worker.exit_code() == 2, worker.log()
        last = worker.log().splitlines()[-1]
    assert last.startswith(f"{package.name}: retries.default.never names m:Bad, which")
    assert package.boots() == [] or target == "rq"
