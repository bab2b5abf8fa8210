"""One mistake gives one error, at its place: whatever key it is in."""

import importlib.util
import tomllib
from pathlib import Path

import pytest

from qgen.front import analyse
from qgen.spec.examples import WHOLE
from qgen.spec.validate import validator

HERE = Path(__file__).parent
_found = importlib.util.spec_from_file_location("specs", HERE / "specs.py")
assert _found and _found.loader
specs = importlib.util.module_from_spec(_found)
_found.loader.exec_module(specs)

# The other way to say what can be said in two ways.
OTHER = """
schema_version = 1

[project]
name = "support"

[redis]
tls = true
verify = true
ca_file_env = "REDIS_CA"

[agents.writer]
owner = "ann"
cap = { hour = "5", week = "50" }
cap_each = { by = "tenant", hour = "1" }
on_unknown = "retry"
provider_keys = true
provider_key_ttl = "24h"

[retries.default]
ladder = ["10s", "1m"]
max_elapsed = "30s"
max_replays = 1
only = ["OSError"]

[defaults]
agent = "writer"
max_cost = "0.20"
queue = "slow"
timeout = "20s"
longest = "19s"
soft_timeout = "19s"
max_running = 2
max_running_by = "tenant"
max_defers = 4

[queues.slow]

[workers.quick]
queues = ["default"]

[workers.patient]
queues = ["slow"]

[jobs.digest]
wire = "mail.digest"
[jobs.digest.payload]
tenant = { type = "enum", values = ["a", "b"] }
count = { type = "int", min = 1, max = 9, default = 3 }
text = { type = "str", min_length = 1, pattern = "^x", default = "x" }
api_key = { type = "str?", sensitive = true }

[jobs.plain]
queue = "default"
[jobs.plain.payload]
tenant = "str"

[schedules.often]
job = "digest"
every = "1d"
missed = "all"
max_missed = 3
payload = { tenant = "a" }

[schedules.seldom]
job = "plain"
cron = "0 7 * * *"
enabled = false
payload = { tenant = "a" }

[env]
SLOTS = "workers.quick.concurrency"
OFTEN = "schedules.often.every"
"""
SPECS = {"whole": WHOLE, "other": OTHER}
WRONG = (2, True, "\x01 ", [[]], {"x": {}})


def paths(node, at=()):
    """Every key and entry of a spec."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(pairs):
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*at, key))


def parent_of(data, path):
    for key in path[:-1]:
        data = data[key]
    return data


def found(data):
    """The errors, and what is warned of."""
    _, said = analyse(specs.document(data).encode(), "queue.toml")
    return [each for each in said if each.is_error], {
        (each.code, each.message) for each in said if not each.is_error
    }


def mistakes(text):
    """(what was done, the spec with it) for each mistake that the schema refuses."""
    for path in paths(tomllib.loads(text)):
        for value in WRONG:
            data = tomllib.loads(text)
            parent_of(data, path)[path[-1]] = value
            if not validator().is_valid(data):
                yield (path, value), data
                break
        if isinstance(path[-1], str):
            data = tomllib.loads(text)
            table = parent_of(data, path)
            table[f"{path[-1]}z"] = table.pop(path[-1])
            if not validator().is_valid(data):
                yield (path, "misspelt"), data


@pytest.mark.parametrize("text", SPECS.values(), ids=SPECS)
def test_a_wrong_value_or_a_misspelt_key_is_one_error(text):
    errors, warned = found(tomllib.loads(text))
    assert errors == []
    for what, data in mistakes(text):
        errors, warnings = found(data)
        assert len(errors) == 1, (what, [each.message for each in errors])
        assert warnings <= warned, (what, warnings - warned)


def test_what_does_not_follow_from_a_mistake_is_said_with_it():
    """Beside a wrong value, the other mistakes of its table and of others."""
    text = OTHER.replace('every = "1d"', "every = 2").replace(
        'by = "tenant", ', 'by = "tenent", '
    )
    data = tomllib.loads(text)
    data["workers"]["quick"]["queues"] = ["defualt"]
    codes = sorted(each.code for each in found(data)[0])
    assert codes == ["QG201", "QG414", "QG417", "QG419", "QG419"]
