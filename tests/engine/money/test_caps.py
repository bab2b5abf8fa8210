"""Caps: who may start, who waits, who is denied; races by barrier."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from engine import faults
from engine.faults import until
from engine.money import shop
from engine.money.conftest import Shop
from engine.money.shop import Provider, agent, job

SPEC = (
    agent("one", 'day = "0.40"', 'when_capped = "deny"')
    + job("first", "0.40", "one", does="work")
    + agent("two", 'day = "0.80", month = "9"', 'when_capped = "deny"')
    + job("pair", "0.40", "two", does="work")
    + agent("big", 'day = "25.00"')
    + job("dear", "5.00", "big", does="work")
    + agent("none", "")
    + job("denied", "0.01", "none", does="work")
    + agent("perjob", 'day = "9", job = "0.50"')
    + job("capped", "0.20", "perjob", does="work")
    + agent(
        "each",
        'day = "9"',
        'cap_each = { by = "who", day = "0.40" }\nwhen_capped = "deny"',
    )
    + job("tenant", "0.40", "each", does="work")
    + agent("zero", 'day = "0"')
    + job("nothing", "0.01", "zero", does="work")
)

CLAIMERS = """
import sys
from {name} import catalog, record
from {name}.beat import Beat
from {name}.database import Database
from {name}.settings import database_url
import {name} as api
"""


def engine(package: faults.Package, count: int) -> list[Any]:
    """So many boots in this process, each with a connection of its own."""
    assert package.api
    beat, database = package.part("beat"), package.part("database")
    url = package.part("settings").database_url()
    (worker,) = package.part("registry").WORKERS
    boots = []
    for _ in range(count):
        found = beat.Beat(
            database.Database(url, 30.0),
            mine=lambda _id: True,
            on_dead=lambda: None,
            on_cancel=lambda *_: None,
            on_stray=lambda _row: None,
        )
        found.start(worker, "arq")
        found._stop.set()
        boots.append((found.boot, database.Database(url, 30.0)))
    return boots


def rows_marked(package: faults.Package, kind: str, count: int) -> list[Any]:
    """So many waiting rows, each published, as messages."""
    message = package.part("messages").Message
    payload = getattr(package.api, kind)
    found = package.api.enqueue_many([payload(n=n) for n in range(count)])
    package.sql("UPDATE jobs SET dispatch = 1, dispatched_at = run_at")
    return [message(each.id, 1) for each in found]


@pytest.mark.parametrize("again", range(10))
def test_64_simultaneous_first_jobs_against_a_cap_for_one(
    open_shop: Shop, bill: Provider, again: int
) -> None:
    package = open_shop(SPEC, bill)
    messages = rows_marked(package, "First", 64)
    door = package.part("door")
    many = 16
    boots = engine(package, many)
    barrier = threading.Barrier(many)

    def claim(turn: int) -> int:
        boot, database = boots[turn]
        barrier.wait()
        admitted = 0
        for message in messages[turn::many]:
            with database.transaction() as tx:
                claims = door.claim(tx, [message], boot, lambda _id: False)
            admitted += len(claims.admitted)
        database.close()
        return admitted

    with ThreadPoolExecutor(many) as threads:
        assert sum(threads.map(claim, range(many))) == 1
    shop.audit(package)
    (window,) = shop.windows(package).values()
    assert window == {"spent": 0, "reserved": 400_000, "unknown": 0}
    states = package.states()
    assert (states["active"], states["queued"]) == (1, 63)


@pytest.mark.parametrize("again", range(10))
def test_ten_jobs_in_one_claim_against_a_cap_for_two(
    open_shop: Shop, bill: Provider, again: int
) -> None:
    package = open_shop(SPEC, bill)
    messages = rows_marked(package, "Pair", 10)
    ((boot, database),) = engine(package, 1)
    with database.transaction() as tx:
        claims = package.part("door").claim(tx, messages, boot, lambda _id: False)
    assert len(claims.admitted) == 2
    assert len(claims.refused) == 8
    shop.audit(package)
    assert {w["reserved"] for w in shop.windows(package).values()} == {800_000}
    waiting = package.rows("state = 'queued'")
    assert {row["reason"] for row in waiting} == {"budget"}
    assert {row["attempt"] for row in waiting} == {0}


def test_reservations_far_above_the_true_cost(open_shop: Shop, bill: Provider) -> None:
    package = open_shop(SPEC, bill)
    ids = package.api.enqueue_many([package.api.Dear(n=n) for n in range(10)])
    with package.worker():
        assert package.settled() == {"completed": 10}
    assert {row["attempt"] for row in package.rows()} == {1}
    assert len(bill.charges()) == len(ids)
    shop.audit(package)
    (window,) = shop.windows(package).values()
    assert window == {"spent": 200_000, "reserved": 0, "unknown": 0}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("Denied", "denied_no_cap"),
        ("Nothing", "denied_cap"),
    ],
)
def test_no_cap_and_a_cap_too_low_are_denied(
    open_shop: Shop, bill: Provider, kind: str, reason: str
) -> None:
    package = open_shop(SPEC, bill)
    id_ = package.api.enqueue(getattr(package.api, kind)()).id
    with package.worker():
        row = package.in_state(id_, "failed")
    assert (row["reason"], row["attempt"]) == (reason, 0)
    assert not bill.charges()


def test_the_cap_of_a_job_covers_its_attempts(open_shop: Shop, bill: Provider) -> None:
    # 0.20 an attempt under a cap of 0.50: the third would take it to 0.60
    package = open_shop(SPEC, bill)
    id_ = package.api.enqueue(
        package.api.Capped(cost="0.20", steps=1, then="raise", most="0.20")
    ).id
    with package.worker():
        row = package.in_state(id_, "failed")
    assert row["cost"] == 200_000  # the step is bought once, and replayed
    assert row["reason"] == "exhausted"


def test_every_value_of_a_field_has_its_own_cap(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    kind = package.api.Tenant
    orders = [kind(n=n, who=who, cost="0.40") for who in "ab" for n in range(3)]
    package.api.enqueue_many(orders)
    with package.worker():
        states = package.settled()
    assert states == {"completed": 2, "failed": 4}
    assert {row["reason"] for row in package.rows("state = 'failed'")} == {"denied_cap"}
    spent = {key: w["spent"] for key, w in shop.windows(package).items()}
    assert sorted(spent.values()) == [400_000, 400_000, 800_000]
    shop.audit(package)
    listed = package.json("caps")["agents"]["each"]["windows"]
    assert [(w["of"], w["spent"]) for w in listed] == [
        (None, "0.80"),
        ('"a"', "0.40"),
        ('"b"', "0.40"),
    ]


def test_the_emergency_brake(open_shop: Shop, bill: Provider) -> None:
    package = open_shop(SPEC, bill)
    lowered = package.json("caps", "lower", "big", "day", "0", "--by", "ann")
    (window,) = lowered["agents"]["big"]["windows"]
    assert window["cap"] == "0.00"
    id_ = package.api.enqueue(package.api.Dear()).id
    with package.worker():
        until(lambda: package.row(id_)["reason"] == "budget", "a job that waits")
        assert not bill.charges()
        restored = package.json("caps", "restore", "big", "day", "--by", "ann")
        assert restored["agents"]["big"]["windows"][0]["cap"] == "25.00"
        package.sql("UPDATE jobs SET run_at = created_at")
        package.in_state(id_, "completed")
    higher = package.run("caps", "lower", "big", "day", "26", "--by", "ann")
    assert higher.returncode == 1
    status = package.json("status")["agents"]["big"]["windows"]
    assert [(w["window"], w["spent"], w["reserved"]) for w in status] == [
        ("day", "0.02", "0.00")
    ]


def test_the_doctor_finds_and_repairs_a_counter(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC, bill)
    package.api.enqueue(package.api.Dear())
    with package.worker():
        package.settled()
    assert package.run("doctor").returncode == 0
    package.sql("UPDATE jobs_spend SET spent = 7, reserved = 9")
    assert package.run("doctor").returncode == 1
    (finding,) = package.json("doctor", "--repair")["findings"]
    assert finding["fix"] == "repaired"
    shop.audit(package)
    assert package.run("doctor").returncode == 0


def test_the_doctor_finds_a_paid_job_without_calls(
    open_shop: Shop, bill: Provider
) -> None:
    package = open_shop(SPEC + job("lazy", "0.10", "big", does="free"), bill)
    package.api.enqueue_many([package.api.Lazy(n=n) for n in range(2)])
    package.api.enqueue(package.api.Dear())
    with package.worker():
        package.settled()
    done = package.run("doctor", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert done.returncode == 1
    assert "paid job lazy" in finding["symptom"]
    assert "2 ended without a call" in finding["evidence"]
    shop.audit(package)


def test_a_job_does_not_wait_for_room_that_it_holds_itself(
    open_shop: Shop, keyed_bill: Provider
) -> None:
    keys = 'provider_keys = true\nprovider_key_ttl = "24h"'
    spec = agent("keyed", 'day = "0.40"', keys) + job(
        "sure", "0.40", "keyed", does="work"
    )
    package = open_shop(spec, keyed_bill)
    id_ = package.api.enqueue(package.api.Sure(do="reset ok")).id
    with package.worker():
        row = package.in_state(id_, "completed")
    assert (row["attempt"], row["cost"]) == (2, 20_000)
    assert len(keyed_bill.charges()) == 1
    shop.audit(package)
