"""Keys without effect, and variables that are somebody's: what is said, and what is not."""

import pytest

from qgen.front import analyse

HEAD = 'schema_version = 1\n\n[project]\nname = "support"\n'
JOB = '\n[jobs.draft]\npayload.tenant = "str"\n'
PAID = f'{JOB}agent = "writer"\nmax_cost = "0.20"\nlongest = "1s"\n'
AGENT = '\n[agents.writer]\nowner = "ann"\n'
CAP = 'cap = { day = "5" }\n'


def said(text, target=None, code="QG443"):
    """(line, message) of each diagnostic of the code; there is no other error."""
    _, found = analyse((HEAD + text).encode(), "queue.toml", target)
    assert not [each for each in found if each.is_error and each.code != code], found
    lines = (HEAD + text).splitlines()
    return [
        (lines[each.place.line - 1], each.message)
        for each in found
        if each.code == code
    ]


# (the spec, the target, its key without effect); None: each of its keys has one.
TABLE = {
    "lifetime of no keys": (
        f'{AGENT}{CAP}provider_key_ttl = "24h"\n{PAID}',
        None,
        "provider_key_ttl",
    ),
    "lifetime of keys": (
        f'{AGENT}{CAP}provider_keys = true\nprovider_key_ttl = "24h"\n{PAID}',
        None,
        None,
    ),
    "keys that no handler is given": (
        f'{AGENT}{CAP}provider_keys = true\nprovider_key_ttl = "24h"\n'
        f'{PAID}billing = "attempt"\n',
        None,
        "provider_keys",
    ),
    "caps of nothing": (
        f'{AGENT}{CAP}cap_each = {{ by = "tenant" }}\n{PAID}',
        None,
        "cap_each",
    ),
    "a choice of a window": (
        f'{AGENT}cap = {{ job = "1" }}\nwhen_capped = "deny"\n{PAID}',
        None,
        "when_capped",
    ),
    "a choice at a window": (
        f'{AGENT}cap = {{ job = "1", day = "9" }}\nwhen_capped = "deny"\n{PAID}',
        None,
        None,
    ),
    "a choice at each value's window": (
        f'{AGENT}cap = {{ job = "1" }}\ncap_each = {{ by = "tenant", day = "9" }}\n'
        f'when_capped = "deny"\n{PAID}',
        None,
        None,
    ),
    "a unit of nothing": (f'[spend]\nunit = "tokens"\n{JOB}', None, "unit"),
    "a unit": (f'[spend]\nunit = "tokens"\n{AGENT}{CAP}{PAID}', None, None),
    "a CA for nothing": (
        f'[redis]\nverify = false\nca_file_env = "REDIS_CA"\n{JOB}',
        None,
        "ca_file_env",
    ),
    "a CA": (f'[redis]\nca_file_env = "REDIS_CA"\n{JOB}', None, None),
    "an end of no growth": (
        f'[retries.default]\nfactor = 1\nmax_wait = "1h"\n{JOB}',
        None,
        "max_wait",
    ),
    "an end of growth": (f'[retries.default]\nmax_wait = "1h"\n{JOB}', None, None),
    "fresh anyway": (
        f"[workers.main]\nrecycle_after_jobs = 9\n{JOB}",
        "rq",
        "recycle_after_jobs",
    ),
    "fresh by and by": (
        f"[workers.main]\nrecycle_after_jobs = 9\n{JOB}"
        '[targets.rq]\nworker = "simple"\n',
        "rq",
        None,
    ),
    "fresh elsewhere": (f"[workers.main]\nrecycle_after_jobs = 9\n{JOB}", None, None),
    "a default for nobody": (
        f'[defaults]\ntimeout = "5m"\n{JOB}timeout = "6m"\n',
        None,
        "timeout",
    ),
    "a default for one": (
        f'[defaults]\ntimeout = "5m"\n{JOB}timeout = "6m"\n\n[jobs.other]\n',
        None,
        None,
    ),
    "costs of nobody": (f'[defaults]\nmax_cost = "1"\n{JOB}', None, "max_cost"),
    "costs of one": (
        f'[defaults]\nmax_cost = "1"\n{AGENT}{CAP}{JOB}agent = "writer"\n',
        None,
        None,
    ),
    "a module of nothing": (
        f'handlers = "support.tasks"\n{JOB}handler = "mail:draft"\n',
        None,
        "handlers",
    ),
    "a module of a hook": (
        f'handlers = "support.tasks"\n{JOB}handler = "mail:draft"\n'
        '[workers.main]\non_start = "support.tasks:open"\n',
        None,
        None,
    ),
}


@pytest.mark.parametrize(("text", "target", "key"), TABLE.values(), ids=TABLE)
def test_a_key_without_effect(text, target, key):
    found = said(text, target)
    if key is None:
        assert found == []
        return
    ((line, message),) = found
    assert line.startswith(f"{key} = ")
    assert message.startswith(f"`{key}` has no effect ") and message.endswith(".")


def test_a_default_policy_that_nobody_has_is_unused():
    own = '[retries.own]\n\n[retries.default]\ntries = 9\n\n[jobs.x]\nretry = "own"\n'
    assert said(own, code="QG418") == [
        ("[retries.default]", "no job uses [retries.default].")
    ]
    assert said(f'{own}reply = "mail:answer"\n', code="QG418") == []


@pytest.mark.parametrize(
    ("variable", "whose"),
    [
        ("PATH", "the system's"),
        ("LD_PRELOAD", "the system's"),
        ("LC_ALL", "the system's"),
        ("PYTHONPATH", "Python's"),
        ("PYTHONHASHSEED", "Python's"),
        ("SSL_CERT_FILE", "OpenSSL's"),
        ("PGPASSWORD", "libpq's"),
        ("CELERY_BROKER_URL", "celery's"),
        ("DATABASE_URL", "an address"),
        ("REDIS_URL", "an address"),
        ("SUPPORT_SPOOL", "the worker's: the folder of its spool"),
        ("QGEN_TEST_PG_URL", "qgen's"),
    ],
)
def test_a_variable_that_is_somebodys(variable, whose):
    """Also where the addresses of this spec have other names."""
    text = '[record]\nurl_env = "DB"\n\n[redis]\nurl_env = "BROKER"\n' + JOB
    text += f'\n[env]\n{variable} = "workers.main.concurrency"\n'
    ((line, message),) = said(text, code="QG310")
    assert line.startswith(variable)
    assert message == f"the variable `{variable}` is {whose}."


@pytest.mark.parametrize(
    "variable",
    ["SLOTS", "SUPPORT_PATH", "PGBOUNCER_SLOTS", "CELERY_CONCURRENCY", "OTHER_SPOOL"],
)
def test_a_variable_of_ones_own(variable):
    text = f'{JOB}\n[env]\n{variable} = "workers.main.concurrency"\n'
    assert said(text, code="QG310") == []
