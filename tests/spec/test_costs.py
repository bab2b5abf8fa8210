"""What the plan says of money: upper bounds, and caps that do nothing."""

import pytest

from qgen import costs
from qgen.front import analyse

SPEC = """schema_version = 1

[project]
name = "support"

[agents.writer]
owner = "ann"
{agent}

[retries.once]
tries = {tries}
max_replays = {replays}

[jobs.draft]
agent = "writer"
max_cost = "0.20"
retry = "once"
payload.tenant = "str"
"""


def model_of(agent, tries=4, replays=3):
    text = SPEC.format(agent=agent, tries=tries, replays=replays)
    model, found = analyse(text.encode(), "queue.toml")
    assert model is not None, found
    return model


@pytest.mark.parametrize(
    ("caps", "day", "jobs"),
    [
        ('day = "25.00"', "25.00", 125),
        ('day = "25.00", month = "300"', "25.00", 125),
        ('month = "300"', "300.00", 1500),
        ('hour = "1"', "25.00", 125),
        ('hour = "1", day = "20"', "20.00", 100),
        ('day = "0"', "0.00", 0),
        ('day = "5", job = "0"', "0.00", 0),
        ('job = "0.80"', "no limit: only each job is capped", None),
    ],
)
def test_what_a_day_can_cost(caps, day, jobs):
    (row,) = costs.agents(model_of(f"cap = {{ {caps} }}"))
    assert (row.day, row.jobs) == (day, jobs)


def test_an_agent_without_a_cap_costs_nothing():
    model = model_of("")
    (row,), (job,) = costs.agents(model), costs.jobs(model)
    assert (row.day, job.cost, job.replayed, job.fits) == ("0.00", "0.00", "0.00", 0)


@pytest.mark.parametrize(
    ("caps", "tries", "replays", "expected"),
    [
        ('day = "25"', 4, 3, (4, "0.80", 16, "3.20", 125)),
        ('day = "25"', 1, 0, (1, "0.20", 1, "0.20", 125)),
        ('day = "0.50", job = "1"', 4, 3, (4, "0.80", 16, "1.00", 2)),
        ('job = "0.30"', 4, 3, (4, "0.30", 16, "0.30", None)),
    ],
)
def test_what_a_job_can_cost(caps, tries, replays, expected):
    (row,) = costs.jobs(model_of(f"cap = {{ {caps} }}", tries, replays))
    found = (row.calls, row.cost, row.replayed_calls, row.replayed, row.fits)
    assert found == expected


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ('cap = { day = "25" }', ()),
        ('cap = { hour = "25", day = "25" }', ("an hour (25.00) is never",)),
        ('cap = { hour = "1", day = "25" }', ("a day (25.00) is never",)),
        ('cap = { hour = "1", day = "24.99" }', ()),
        ('cap = { day = "10", month = "310" }', ("a month (310.00) is never",)),
        ('cap = { day = "10", month = "309" }', ()),
        ('cap = { day = "9", job = "0.79" }', ("may end draft before its 4",)),
        ('cap = { day = "9", job = "3.20" }', ("a job (3.20) is never",)),
        ('cap = { day = "9", job = "3.19" }', ()),
        (
            'cap = { day = "9" }\ncap_each = { by = "tenant", day = "9" }',
            ("a day for each tenant (9.00) is never",),
        ),
        (
            'cap = { day = "9" }\nprovider_keys = true\nprovider_key_ttl = "10m"',
            ("has forgotten its keys (10m)",),
        ),
        ('cap = { day = "9" }\nprovider_keys = true\nprovider_key_ttl = "1d"', ()),
    ],
)
def test_caps_that_do_nothing_or_cut_short(agent, said):
    found = list(costs.notes(model_of(agent)))
    assert len(found) == len(said), found
    for note, part in zip(found, said, strict=True):
        assert part in note


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "held for a person"),
        ('on_unknown = "retry"', "paid again, both are booked"),
        (
            'provider_keys = true\nprovider_key_ttl = "1d"',
            "sent again with its key for 1d, then held for a person",
        ),
        (
            'on_unknown = "retry"\nprovider_keys = true\nprovider_key_ttl = "1d"',
            "sent again with its key for 1d, then paid again",
        ),
    ],
)
def test_what_becomes_of_a_call_that_may_have_been_billed(more, said):
    (row,) = costs.agents(model_of(f'cap = {{ day = "9" }}\n{more}'))
    assert row.on_unknown == said


KEYED = 'cap = {{ day = "9" }}\nprovider_keys = true\nprovider_key_ttl = "1d"'


@pytest.mark.parametrize(
    ("more", "said", "warnings"),
    [
        ("", "sent again with its key for 1d, then held for a person", 0),
        ('billing = "attempt"\n', "held for a person", 1),
        (
            'billing = "attempt"\n[jobs.other]\nagent = "writer"\nmax_cost = "0.20"\n',
            "sent again with its key for 1d, then held for a person;"
            " draft: held for a person",
            1,
        ),
    ],
)
def test_a_handler_that_is_the_call_is_given_no_key(more, said, warnings):
    """So nothing is sent again with it: in the plan, and in the warning of a stop."""
    text = SPEC.format(agent=KEYED.format(), tries=4, replays=3) + more
    model, found = analyse(text.encode(), "queue.toml")
    assert model is not None, found
    (row,) = costs.agents(model)
    assert row.on_unknown == said
    held = [each for each in found if each.code == "QG441"]
    assert len(held) == warnings
    assert all("provider_keys" not in each.help for each in held)


def test_keys_that_are_not_given_are_not_forgotten():
    """A provider that knows keys for a minute: only the job that is given one is named."""
    keyed = KEYED.format().replace("1d", "1m")
    other = '[jobs.other]\nagent = "writer"\nmax_cost = "0.20"\nretry = "once"\n'
    text = SPEC.format(agent=keyed, tries=4, replays=3)
    text += f'billing = "attempt"\n{other}'
    model, found = analyse(text.encode(), "queue.toml")
    assert model is not None, found
    (note,) = costs.notes(model)
    assert "the last attempt of other may start" in note
    assert "has forgotten its keys (1m)" in note


def test_a_spec_without_money_says_nothing_of_it():
    text = SPEC.partition("[agents")[0] + "[jobs.draft]\n"
    model, _ = analyse(text.encode(), "queue.toml")
    assert model is not None
    assert (costs.jobs(model), costs.agents(model)) == ([], [])
    assert not [fact for fact in model.facts if "agents" in fact.key]


def test_a_missing_cap_is_a_fact_and_what_it_stops():
    (fact,) = (f for f in model_of("").facts if f.key == "agents.writer.cap")
    assert (fact.origin, fact.note) == (
        "MISSING",
        "all its paid jobs are denied: draft",
    )
