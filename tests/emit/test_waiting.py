"""A payload that changes must read the rows that wait, or have a new version.  C103."""

import pytest
from emit.projects import SPEC, Project

from qgen import lock, waiting
from qgen.diagnostics.catalogue import codes_of
from qgen.diagnostics.catalogue import waiting as codes
from qgen.front import analyse

TEXT = 'text = "str"\n'
DRAFT = "[jobs.draft_reply]\nversion = 2\n\n[jobs.draft_reply.payload]\n"

# (what the payload of draft_reply becomes, the fields that are asked about)
TABLE = [
    ("the same", TEXT, []),
    ("one less", "", []),
    ("with a default", TEXT + 'lang = { type = "str", default = "en" }\n', []),
    ("may be null", TEXT + 'lang = "str?"\n', []),
    ("another type", 'text = "int"\n', []),
    ("one more", TEXT + 'lang = "str"\n', ["lang"]),
    ("two more", TEXT + 'lang = "str"\nzone = "str"\n', ["lang", "zone"]),
    ("another name", 'body = "str"\n', ["body"]),
]


def spec(payload: str, head: str = "[jobs.draft_reply.payload]\n") -> str:
    return SPEC.replace(f"[jobs.draft_reply.payload]\n{TEXT}", head + payload)


def demanded(before: str, after: str) -> list[str]:
    """The fields that a build of the second after the first asks about."""
    old, _ = analyse(before.encode(), "queue.toml")
    new, _ = analyse(after.encode(), "queue.toml")
    assert old is not None and new is not None
    text = lock.text_of((), waiting.payloads(old), "arq", ())
    return [d.field.name for d in waiting.demands(new, lock.parse(text).payloads)]


@pytest.mark.parametrize(("name", "payload", "asked"), TABLE, ids=lambda x: str(x))
def test_what_is_asked_about(name, payload, asked):
    assert demanded(SPEC, spec(payload)) == asked
    # ... never where the rows that wait have another version, or there can be none.
    assert demanded(SPEC, spec(payload, DRAFT)) == []
    assert (
        demanded(SPEC.partition("[jobs.draft")[0] + "[jobs.d]\n", spec(payload)) == []
    )


def test_a_field_that_loses_its_default():
    optional = spec('text = "str?"\n')
    assert demanded(optional, SPEC) == ["text"]
    assert demanded(optional, spec(TEXT, DRAFT)) == []


def test_a_job_under_a_new_name_still_reads_its_rows():
    renamed = SPEC.replace(
        "[jobs.draft_reply.payload]\n",
        '[jobs.answer]\naliases = ["draft_reply"]\n\n[jobs.answer.payload]\nlang = "str"\n',
    )
    assert demanded(SPEC, renamed) == ["lang"]
    wired = SPEC.replace(
        "[jobs.draft_reply.payload]\n",
        '[jobs.answer]\nwire = "draft_reply"\n\n[jobs.answer.payload]\nlang = "str"\n',
    )
    assert demanded(SPEC, wired) == ["lang"]


def test_the_lock_says_what_it_was_told():
    model, _ = analyse(spec(TEXT + 'lang = "str?"\n', DRAFT).encode(), "queue.toml")
    assert model is not None
    kept = waiting.payloads(model)
    text = lock.text_of((), kept, "arq", ())
    assert "payload draft_reply 2 lang? text\n" in text
    assert lock.parse(text).payloads == kept
    assert lock.parse(lock.without_payloads(text)).payloads == {}


def test_it_stops_the_build_until_somebody_has_decided(tmp_path, capsys):
    project = Project.at(tmp_path)
    assert project.build() == 0
    before = project.tree()
    project.write("queue.toml", spec(TEXT + 'lang = "str"\n'))
    for command in (project.build, project.check):
        capsys.readouterr()
        assert command() == 1
        assert "queue.toml:8:1: error[QG916]: `lang` is new" in capsys.readouterr().err
    assert project.tree() == before | {
        "queue.toml": project.read("queue.toml").encode()
    }
    assert {each.code for each in codes_of(codes)} == {"QG916"}

    project.write("queue.toml", spec(TEXT + 'lang = "str"\n', DRAFT))
    assert project.build() == project.check() == 0

    project.write("queue.toml", spec(TEXT + 'lang = "str"\nzone = "str"\n', DRAFT))
    assert project.build() == 1
    assert project.build(force=True) == project.check() == 0  # nothing waits


def test_a_change_of_a_payload_alone_is_a_change_of_the_lock(tmp_path):
    project = Project.at(tmp_path)
    assert project.build() == 0
    text = project.read("qgen.lock")
    project.write("qgen.lock", lock.without_payloads(text))
    assert project.check() == 1
    assert project.build() == 0
    assert project.read("qgen.lock") == text
