"""The memory of what was rendered: it saves work, and can never change a byte."""

import json
import random

import pytest
from emit.projects import JOB, PACKAGE, SPEC, Project

from qgen import compile as compiler
from qgen import lock

MEMORY = ".qgen/rendered.json"
OTHER = f"{PACKAGE}/jobs/digest.py"


@pytest.fixture
def rendered(monkeypatch):
    """The paths of jobs that are rendered from now on."""
    paths = []
    render = compiler.render

    def noting(template, path, *args, **values):
        if "/jobs/" in path and not path.endswith("__init__.py"):
            paths.append(path)
        return render(template, path, *args, **values)

    monkeypatch.setattr(compiler, "render", noting)
    return paths


@pytest.fixture
def sql(monkeypatch):
    """The same of the files of SQL."""
    paths = []
    render = compiler.render_sql

    def noting(template, path, *args):
        paths.append(path)
        return render(template, path, *args)

    monkeypatch.setattr(compiler, "render_sql", noting)
    return paths


@pytest.fixture
def project(tmp_path, rendered):
    """A built project."""
    project = Project.at(tmp_path / "built")
    assert project.build() == 0
    assert sorted(rendered) == [OTHER, JOB]
    rendered.clear()
    return project


def cold(project, tmp_path):
    """What a first build makes of the same spec."""
    other = Project.at(tmp_path / "cold", project.read("queue.toml"))
    assert other.build() == 0
    return made(other)


def made(project):
    """What is qgen's to write again."""
    kinds = lock.parse(project.read("qgen.lock")).kinds
    return {p: data for p, data in project.tree().items() if kinds.get(p) != "once"}


# What is changed in the spec, and the jobs that must be rendered again.
EDITS = {
    "nothing": ("", "", []),
    "a job": ('text = "str"', 'text = "int"', [JOB]),
    "a key of the other": (
        "[jobs.digest.payload]",
        '[jobs.digest]\ntimeout = "1m"\n\n[jobs.digest.payload]',
        [OTHER],
    ),
    "a default": (
        "[jobs.draft",
        '[defaults]\ntimeout = "1m"\n\n[jobs.draft',
        [OTHER, JOB],
    ),
    "a variable": (
        "[jobs.draft",
        '[env]\nMANY = "jobs.digest.max_running"\n\n[jobs.draft',
        [OTHER, JOB],
    ),
    "a number that equals another": (
        'text = "str"',
        'text = { type = "json", default = 1 }',
        [JOB],
    ),
}


@pytest.mark.parametrize(("old", "new", "again"), EDITS.values(), ids=EDITS)
def test_only_what_is_made_of_something_else(
    project, tmp_path, rendered, old, new, again
):
    if old:
        project.change("queue.toml", old, new)
    assert project.build() == 0
    assert sorted(rendered) == again
    assert project.check() == 0
    assert made(project) == cold(project, tmp_path)


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("1", "true"), ("1", '"1"')])
def test_what_equals_another_value_is_another(project, tmp_path, rendered, one, other):
    field = 'text = {{ type = "json", default = {} }}'
    project.change("queue.toml", 'text = "str"', field.format(one))
    assert project.build() == 0
    project.change("queue.toml", field.format(one), field.format(other))
    rendered.clear()
    assert project.build() == 0
    assert rendered == [JOB]
    assert made(project) == cold(project, tmp_path)


def test_a_file_that_is_not_what_was_kept_is_rendered(project, rendered):
    project.change(JOB, "600.0", "601.0")
    assert project.check() == 1
    assert project.build() == 1  # edited: a person decides
    assert set(rendered) == {JOB}
    assert project.build(force=True) == 0
    assert "600.0" in project.read(JOB)


def test_sql_is_made_of_names(project, tmp_path, sql):
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 0
    assert sql == []
    project.change("queue.toml", "[jobs.draft", '[record]\ntable = "t"\n\n[jobs.draft')
    assert project.build(force=True) == 0  # its migrations are frozen
    assert f"{PACKAGE}/statements.py" in sql
    assert f"{PACKAGE}/migrations/0001_record.sql" in sql
    assert made(project) == cold(project, tmp_path)


def test_another_target_is_something_else(project, tmp_path, rendered):
    assert project.build(target="rq") == 0
    assert sorted(rendered) == [OTHER, JOB]


def damages(good):
    """The memory, spoilt in one way after the other."""
    known = json.loads(good)
    yield from (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, good[:-9])
    for part in ("tools", "files"):
        for value in (None, 1, [], {}, {JOB: 1}, {JOB: [1]}, {JOB: [[], []]}):
            yield json.dumps({**known, part: value}).encode()
    # Each other's digests: of what they were made of, of their texts, and both.
    files = known["files"]
    for first in (0, 1), (1, 0), (1, 1):
        mixed = {
            path: [files[other if way else path][i] for i, way in enumerate(first)]
            for path, other in ((JOB, OTHER), (OTHER, JOB))
        }
        yield json.dumps({**known, "files": mixed}).encode()
    chance = random.Random(7)
    for _ in range(6):
        spoilt = bytearray(good)
        spoilt[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
        yield bytes(spoilt)


def test_a_damaged_memory_changes_nothing(project, tmp_path):
    """Every build over a spoilt one is a cold build."""
    good = project.path(MEMORY).read_bytes()
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    wanted = cold(project, tmp_path)
    for damage in damages(good):
        project.write("queue.toml", SPEC)
        assert project.build() == 0
        project.change("queue.toml", 'text = "str"', 'text = "int"')
        project.path(MEMORY).write_bytes(damage)
        assert project.build() == 0
        assert made(project) == wanted


def test_another_qgen_renders_everything(project, rendered):
    known = json.loads(project.read(MEMORY))
    tool = next(iter(known["tools"]))
    known["tools"][tool] = [0, 0]
    project.write(MEMORY, json.dumps(known))
    assert project.build() == 0
    assert sorted(rendered) == [OTHER, JOB]
