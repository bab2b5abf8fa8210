"""Secrets are found and never repeated; harmless values are left alone.

The credentials below are made up, and joined from parts so that no scanner takes this
file for a leak.
"""

import pytest

from qgen.diagnostics import printers
from qgen.front import analyse
from qgen.spec.secrets import looks_secret

DENSE = "Zq3vT9xLk2Rw8NbY5mHc7JdPf4GsA6Qe"
FAKE = [
    "redis://:" + "hunter2@cache:6379/0",
    "postgresql://app:" + "pa55word@db/app",
    "amqps://user:" + "x@host",
    "sk-" + "proj-abcdefghijklmnop",
    "sk-" + "ant-api03-abcdefghijk",
    "sk_" + "live_" + "4eC39HqLyjWDarjtT1",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstu",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae17",
    "github_" + "pat_11ABCDEFG0abcdefghijkl_mnop",
    "glpat-" + "abcdefghij0123456789",
    "xoxb-" + "1234567890-abcdefghijk",
    "SG." + "abcdefghijklmnopqrst.uvwxyz",
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE",
    "https://hooks." + "slack.com/services/T000/B000/XXXX",
    "Bearer " + "abcdefghijklmnop1234",
    DENSE,
]
HARMLESS = [
    "REDIS_URL",
    "redis://localhost:6379/0",
    "https://example.com/a:b/c@d",
    "support.handlers:deliver",
    "list[dict[str, int?]]",
    "30 7 * * 1-5",
    "Draft an answer to a ticket.",
    "123e4567-e89b-12d3-a456-426614174000",
    "d41d8cd98f00b204e9800998ecf8427e" * 2,
    "vault:secret/data/app",
    "^[A-Za-z0-9_-]{20,}$",
    "a_rather_long_name_of_a_job_in_snake_case",
    "Australia/Sydney",
    "src/support_queue/tests/fixtures/records",
    "日本語のとても長い説明文ですが秘密ではありません",
    "sk-",
    "skeleton",
    "task-scheduler-for-the-daily-digest-mails",
]


@pytest.mark.parametrize("text", FAKE)
def test_a_secret_is_refused_and_not_repeated(text):
    assert looks_secret(text)
    value = text.replace("\n", "\\n")
    spec = (
        'schema_version = 1\n[project]\nname = "support"\n'
        f'[redis]\nurl_env = "{value}"\n'
        f'[jobs.a]\ndescription = "{value}"\npriority = "{value}"\nunknown = "{value}"\n'
        f'payload.x = {{ type = "str", default = "{value}" }}\n'
        f'[queues."{value}"]\n'
    )
    model, found = analyse(spec.encode(), "queue.toml")
    assert model is None
    secrets = [each for each in found if each.code == "QG217"]
    assert [each.place.line for each in secrets] == [5, 7, 8, 9, 10, 11]
    for printer in printers.PRINTERS.values():
        output = printer(found)
        for part in (text, value, text[:12]):
            assert part not in output


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_is_left_alone(text):
    assert not looks_secret(text)


@pytest.mark.parametrize(
    ("line", "is_secret"),
    [
        ('payload.api_key = { type = "str", sensitive = true, default = "abc" }', True),
        ('payload.api_key = { type = "str", sensitive = true }', False),
        ('payload.password = "str?"', False),
        ('payload.max_tokens = { type = "int", default = 5 }', False),
        ('payload.token = { type = "str", default = "${TOKEN}" }', False),
        ('payload.token = { type = "str", default = "vault:app/token" }', False),
    ],
)
def test_the_name_of_a_key_decides_too(line, is_secret):
    spec = f'schema_version = 1\n[project]\nname = "support"\n[jobs.a]\n{line}\n'
    _, found = analyse(spec.encode(), "queue.toml")
    assert ("QG217" in {each.code for each in found}) == is_secret


def test_this_corpus_is_no_secret_of_its_own_spec():
    """A broken line with a secret: the parser's message must not repeat it."""
    spec = "[redis]\npassword = hunter2hunter2\nx = 'y\n"
    _, found = analyse(spec.encode(), "queue.toml")
    assert found and "hunter2" not in printers.text(found)
