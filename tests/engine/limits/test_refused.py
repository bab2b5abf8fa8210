"""What money refuses takes no place from what could start, and alarms nobody.

With lanes and without, in the functions of one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine import units
from engine.limits.desk import SLOTS, Desk
from engine.units import instant

import servers

MANY = 60
WINDOW = SLOTS + 4
SPEC = """
[stall]
heartbeat = "60s"
after = "1h"

[agents.writer]
owner = "me"
cap = { day = "1000" }

[agents.each]
owner = "me"
cap = { day = "1000" }
cap_each = { by = "who", day = "0.01" }
""" + "".join(
    f"""
[jobs.{name}]
handler = "tested_handlers:work"
{more}
[jobs.{name}.payload]
n = {{ type = "int", default = 1 }}
who = {{ type = "str", default = "" }}
mode = {{ type = "str", default = "" }}
seconds = {{ type = "float", default = 0.0 }}
"""
    for name, more in {
        "paid": 'agent = "writer"\nmax_cost = "0.01"',
        "each": 'agent = "each"\nmax_cost = "0.01"',
        "free": "",
    }.items()
)
LANES = """
[jobs.keyed]
handler = "tested_handlers:work"
max_running = 1
max_running_by = "who"
[jobs.keyed.payload]
n = { type = "int", default = 1 }
who = { type = "str", default = "" }
mode = { type = "str", default = "" }
seconds = { type = "float", default = 0.0 }
"""


@pytest.fixture(params=["", LANES], ids=["plain", "laned"])
def flow(
    request: pytest.FixtureRequest,
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> Iterator[Desk]:
    spec = SPEC + request.param
    with units.engine(dialect, database_url, redis_server, tmp_path, spec) as made:
        yield Desk(made)


def begun(flow: Desk, job: str) -> None:
    """Rows in front whose earlier attempt ended: they may hold all they need."""
    flow.put(job, MANY)
    flow.engine.package.sql("UPDATE jobs SET attempt = 1")


def full(flow: Desk) -> None:
    """A person leaves the agent nothing to spend."""
    flow.part("caps").lower("writer", "day", "0", by="Ada")


def refused(flow: Desk, job: str, **values: Any) -> list[str]:
    """Rows in front that a budget has refused, and that are due again."""
    ids = flow.put(job, MANY, **values)
    flow.engine.package.sql("UPDATE jobs SET reason = 'budget' WHERE job = ?", job)
    return ids


def aged(flow: Desk) -> None:
    """Everything has waited for two hours."""
    at = instant(flow.engine.package.dialect, -7200)
    flow.engine.package.sql(f"UPDATE jobs SET run_at = {at}, sort_at = {at}")


def test_nothing_of_a_closed_gate_is_published(flow: Desk) -> None:
    """Not even what began before: the gate asks for nobody's need."""
    begun(flow, "paid")
    free = flow.put("free", WINDOW)
    flow.part("pauses").pause("writer", "Ada")
    assert {message.id for message in flow.fill()} == set(free)


def test_what_a_budget_refused_gets_half_of_the_places(flow: Desk) -> None:
    """The older half of it; the other half goes to rows behind all of it."""
    ids = refused(flow, "each", who="a")
    free = flow.put("free", MANY)
    (other,) = flow.put("each", who="b")
    flow.engine.package.sql("UPDATE jobs SET priority = 'high' WHERE id = ?", other)
    chosen = [message.id for message in flow.fill()]
    assert len(chosen) == WINDOW
    assert len(set(chosen) & set(ids)) == WINDOW // 2
    assert len(set(chosen) & {*free, other}) == WINDOW // 2


def test_another_value_is_not_starved_in_its_own_lane(flow: Desk) -> None:
    """The same job for somebody with room waits behind those who have none."""
    refused(flow, "each", who="a")
    (other,) = flow.put("each", who="b")
    assert other in {message.id for message in flow.fill()}


def test_what_a_budget_refused_gets_what_nobody_else_takes(flow: Desk) -> None:
    """After midnight a backlog of it uses every place."""
    ids = refused(flow, "each", who="a")
    free = flow.put("free", 2)
    chosen = {message.id for message in flow.fill()}
    assert len(chosen) == WINDOW
    assert set(free) < chosen < {*free, *ids}


@pytest.mark.parametrize("how", ["paused", "full"])
def test_a_burst_does_not_wait_for_money(flow: Desk, how: str) -> None:
    """It ends with what may run now."""
    flow.put("paid", 3)
    operations = flow.part("operations")
    assert operations.due(("default",)) == 3
    if how == "paused":
        flow.part("pauses").pause("writer", "Ada")
    else:
        full(flow)
    assert operations.due(("default",)) == 0
    flow.put("free")
    refused(flow, "each")
    assert operations.due(("default",)) == 1


@pytest.mark.parametrize("how", ["paused", "full", "refused"])
def test_health_is_not_alarmed_by_money(flow: Desk, how: str) -> None:
    """It is by a row that could start beside a free slot, and does not."""
    if how == "refused":
        refused(flow, "each")
    else:
        flow.put("paid", 3)
    aged(flow)
    health = flow.part("health")
    if how == "paused":
        assert len(health._waiting()) == 1
        flow.part("pauses").pause("writer", "Ada")
    elif how == "full":
        full(flow)
    assert health._waiting() == []
    flow.put("free")
    aged(flow)
    assert len(health._waiting()) == 1


@pytest.mark.parametrize("flow", [LANES], indirect=True, ids=["laned"])
def test_rows_of_before_a_limit_get_their_lane(flow: Desk) -> None:
    """By the sweep: until then they hold up what is behind them."""
    held = flow.put("keyed", MANY, who="a")
    flow.put("keyed", who="b")
    free = flow.put("free")
    before = {row["id"]: row for row in flow.engine.package.rows()}
    flow.engine.package.sql("UPDATE jobs SET lane = NULL, running_key = NULL")
    flow.engine.package.sql("UPDATE jobs SET payload = '[]' WHERE id = ?", free[0])
    recovery = flow.part("recovery")
    recovery.LANE_BATCH = 25
    sweeper = recovery.Sweeper(flow.engine.database(), None)
    sweeper._give_lanes(recovery.Counts())
    names = ("lane", "running_key", "tenant")
    for row in flow.engine.package.rows():
        assert [row[n] for n in names] == [before[row["id"]][n] for n in names]
    chosen = [message.id for message in flow.fill()]
    assert len(chosen) == 3
    assert len(set(chosen) & set(held)) == 1
