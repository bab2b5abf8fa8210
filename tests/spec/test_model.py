"""What an accepted spec means."""

import math
import random
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from qgen.front import analyse
from qgen.model import (
    Constraints,
    Default,
    DictOf,
    Enum,
    ListOf,
    Model,
    Optional,
    Scalar,
    Table,
)
from qgen.resolve.units import seconds, span

SMALLEST = """schema_version = 1

[project]
name = "support"

[jobs.draft_reply.payload]
ticket_id = "uuid"
text = "str"
"""
BUILT = """schema_version = 1

[project]
name = "support"
package = "support_q"
output = "./lib/"
handlers = "support.handlers"

[record]
dialect = "postgresql"
url_env = "PG"
table = "jobs_of_support"

[redis]
url_env = "RD"
tls = true
ca_file_env = "RD_CA"

[stall]
heartbeat = "5s"
after = "20s"

[shutdown]
grace = "1h30m"

[retention]
failed = "none"

[retries.patient]
tries = 4
ladder = ["10s", "1m", "10m"]
never = ["ValueError", "support.errors:BadInput"]
max_elapsed = "6h"

[defaults]
queue = "replies"
retry = "patient"

[queues.replies]
aliases = ["answers"]

[queues.background]

[workers.main]
queues = ["replies", "background"]
concurrency = 8

[workers.slow]

[jobs.draft_reply]
description = "Draft an \\"answer\\"."
tries = 1
timeout = "none"
priority = "high"
unique_by = ["ticket_id", "day"]
version = 2
wire = "reply.draft"
aliases = ["old", "older"]
max_defers = 0

[jobs.draft_reply.payload]
ticket_id = "uuid"
day = { type = "date", default = 2026-01-02 }
tone = { type = "enum", values = ["plain", "warm"], default = "plain" }
cost = { type = "decimal?", min = "0.01", default = "1.50" }
tags = { type = "list[str]", max_length = 3, default = ["a"] }
extra = { type = "json", default = { b = 1, a = [true, "x"] } }
due = "datetime?"
counts = "dict[str, list[int]?]"
secret_note = { type = "str", sensitive = true, description = "hidden", pattern = "^x" }

[jobs.digest]
queue = "background"
retry = "default"
handler = "support.digest:run"
"""


def model_of(text, target=None):
    model, found = analyse(text.encode(), "queue.toml", target)
    assert model is not None, found
    return model


def test_the_smallest_spec():
    model = model_of(SMALLEST)
    assert model.project.package == "support_queue"
    assert model.project.tests == "tests/support_queue"
    assert model.record.table == "support_jobs"
    (job,) = model.jobs
    assert (job.class_name, job.handler) == (
        "DraftReply",
        "support_handlers:draft_reply",
    )
    assert (job.handler_module, job.handler_function) == (
        "support_handlers",
        "draft_reply",
    )
    assert (job.timeout, job.longest) == (600.0, 600.0)
    assert [each.name for each in job.payload] == ["text", "ticket_id"]
    assert model.policy(job).tries == 3
    assert [worker.name for worker in model.workers] == ["main"]
    assert model.workers[0].queues == ("default",)


def test_every_built_key():
    model = model_of(BUILT)
    assert model.project.output == "lib"
    assert model.record.dialect == "postgresql"
    assert "psycopg[binary]>=3.2,<4" in model.target.requirements
    assert (model.redis.tls, model.redis.ca_file_env) == (True, "RD_CA")
    assert (model.stall.heartbeat, model.stall.after) == (5.0, 20.0)
    assert model.grace == 5400.0
    assert model.retention.failed is None and model.retention.completed == 30 * 86400
    assert [queue.name for queue in model.queues] == ["background", "replies"]
    assert model.queues[1].aliases == ("answers",)
    main, slow = model.workers
    assert main.queues == ("replies", "background") and main.concurrency == 8
    assert slow.queues == ("background", "replies") and slow.concurrency == 4
    digest, draft = model.jobs
    assert (digest.retry, digest.handler) == ("default", "support.digest:run")
    assert (draft.queue, draft.retry) == ("replies", "patient.draft_reply")
    assert [retry.name for retry in model.retries] == ["default", "patient.draft_reply"]
    own = model.policy(draft)
    assert own.tries == 1 and own.ladder == (10.0, 60.0, 600.0)
    assert own.never == ("ValueError", "support.errors:BadInput")
    assert own.max_elapsed == 21600.0
    assert draft.timeout is None and draft.longest is None
    assert (draft.wire, draft.aliases) == ("reply.draft", ("old", "older"))
    assert draft.unique_by == ("day", "ticket_id") and draft.max_defers == 0
    assert draft.sensitive == ("secret_note",)


def test_fields():
    found = {field.name: field for field in model_of(BUILT).jobs[1].payload}
    assert found["ticket_id"].type == Scalar("uuid")
    assert found["ticket_id"].default is None
    assert found["day"].default == Default(date(2026, 1, 2))
    assert found["tone"].type == Enum(("plain", "warm"))
    assert found["cost"].type == Optional(Scalar("decimal"))
    assert found["cost"].default == Default(Decimal("1.50"))
    assert found["cost"].constraints == Constraints(min=Decimal("0.01"))
    assert found["tags"].default == Default(("a",))
    table = Table((("a", (True, "x")), ("b", 1)))
    assert found["extra"].default == Default(table)
    assert found["due"].default == Default(None)
    assert found["counts"].type == DictOf(Optional(ListOf(Scalar("int"))))
    assert found["secret_note"].constraints.pattern == "^x"
    assert found["secret_note"].description == "hidden"


def blocks(text):
    """The tables of a spec, the first lines apart."""
    head, *tables = text.split("\n[")
    return head, [f"[{each}\n" for each in tables]


def test_order_line_ends_and_marks_change_nothing():
    model = model_of(BUILT)
    rng = random.Random(3)
    head, tables = blocks(BUILT)
    for _ in range(20):
        rng.shuffle(tables)
        shuffled = []
        for each in tables:
            title, *lines = [line for line in each.splitlines() if line]
            rng.shuffle(lines)
            shuffled.append("\n".join([title, *lines]))
        assert model_of(f"{head}\n" + "\n".join(shuffled) + "\n") == model
    assert model_of(BUILT.replace("\n", "\r\n")) == model
    assert model_of("\ufeff" + BUILT) == model


def test_facts_say_where_values_come_from():
    facts = {fact.key: fact for fact in model_of(SMALLEST).facts}
    assert facts["project.name"].origin == "GIVEN"
    assert facts["stall.after"].origin == "ASSUMED"
    assert facts["stall.after"].value == '"60s"'
    assert facts["redis.tls"].origin == "MISSING"
    assert "tls = true" in facts["redis.tls"].note
    assert facts["record.dialect"].origin == "PROPOSED"
    assert facts["workers.main.concurrency"].origin == "ASSUMED"
    assert facts["jobs.draft_reply.timeout"].origin == "ASSUMED"
    given = {fact.key: fact for fact in model_of(BUILT).facts}
    assert given["record.dialect"].origin == "GIVEN"
    assert given["redis.tls"] == replace(
        given["redis.tls"], origin="GIVEN", value="true"
    )
    assert given["jobs.draft_reply.timeout"].value == '"none"'


def test_a_model_is_frozen_and_hashable():
    assert hash(model_of(BUILT)) == hash(model_of(BUILT))


def numbers(node):
    """Every float below a node."""
    if is_dataclass(node):
        for each in fields(node):
            yield from numbers(getattr(node, each.name))
    elif isinstance(node, tuple):
        for each in node:
            yield from numbers(each)
    elif isinstance(node, float):
        yield node


@pytest.mark.parametrize("text", [SMALLEST, BUILT])
def test_limits_are_finite_and_not_negative(text):
    model: Model = model_of(text)
    assert all(math.isfinite(number) and number >= 0 for number in numbers(model))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1h30m", 5400.0), ("500ms", 0.5), ("1d", 86400.0), ("1m1ms", 60.001)],
)
def test_durations(text, value):
    assert seconds(text) == value and seconds(span(value)) == value


def test_defaults_of_every_kind():
    lines = [
        'a = { type = "datetime", default = 2026-01-02T03:04:05Z }',
        'b = { type = "datetime", default = "2026-01-02T03:04:05+00:00" }',
        'c = { type = "uuid", default = "123e4567-e89b-12d3-a456-426614174000" }',
        'd = { type = "float", default = 3 }',
        'e = { type = "decimal", default = 3 }',
    ]
    made = model_of(SMALLEST + "\n".join(lines) + "\n").jobs[0].payload
    values = {field.name: field.default.value for field in made if field.default}
    assert values["a"] == values["b"] == datetime.fromisoformat("2026-01-02T03:04:05Z")
    assert values["c"] == UUID("123e4567-e89b-12d3-a456-426614174000")
    assert values["d"] == 3.0 and isinstance(values["d"], float)
    assert values["e"] == Decimal(3)
