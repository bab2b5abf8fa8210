"""The memory of what was rendered: it saves work, and can never change a byte."""

import ast
import json
import random
from pathlib import Path

import jinja2
import pytest
from emit.projects import JOB, PACKAGE, SPEC, Project

from qgen import compile as compiler
from qgen import lock, outline, overlays
from qgen.commands import work
from qgen.emit import findings
from qgen.front import analyse
from qgen.made import Shared
from qgen.render import is_sql, render
from qgen.targets import TARGETS

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
def templates(monkeypatch):
    """The templates that are rendered from now on, whatever asks for them."""
    names = []
    once = jinja2.Template.render

    def noting(self, *args, **values):
        names.append(self.name)
        return once(self, *args, **values)

    monkeypatch.setattr(jinja2.Template, "render", noting)
    return names


@pytest.fixture
def proved(monkeypatch):
    """The paths of what is proved from now on."""
    paths = []
    finish = work.finish

    def noting(texts, *args):
        paths.extend(texts)
        return finish(texts, *args)

    monkeypatch.setattr(work, "finish", noting)
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


OF_A_JOB = ["package/QUEUE.md.j2", "package/jobs/job.py.j2"]
SHARED = ["package/__init__.py.j2", "package/jobs/__init__.py.j2"]
REGISTRY = "package/registry.py.j2"
OF_OWNER = ["deploy/Dockerfile.j2", "deploy/compose.yaml.j2", "handlers.py.j2"]


def test_an_edit_of_one_job_renders_its_file_and_the_plan(
    project, tmp_path, templates, proved
):
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 0
    assert (sorted(templates), proved) == (OF_A_JOB, [JOB])
    assert made(project) == cold(project, tmp_path)


@pytest.mark.parametrize(
    "more",
    [
        'tries = 7\n\n[jobs.digest.payload]\nkind = "str"',  # a policy of its own
        '[jobs.digest.payload]\nkind = "str"\n\n[jobs.more]\n',
        '[jobs.digest.payload]\nkind = "str"\n\n[workers.main]\nconcurrency = 9\n',
        '[jobs.digest.payload]\nkind = "str"\n\n[record]\nurl_env = "ROWS"\n',
    ],
    ids=["policy", "job", "worker", "variable"],
)
def test_what_all_jobs_share_is_rendered_when_it_changes(
    project, tmp_path, templates, more
):
    own = more.startswith("tries")
    head = "[jobs.digest]\n" if own else ""
    project.change("queue.toml", '[jobs.digest.payload]\nkind = "str"\n', head + more)
    assert project.build() == 0
    assert {*SHARED, REGISTRY} <= set(templates)
    assert not set(templates) & set(OF_OWNER)
    assert made(project) == cold(project, tmp_path)


def example(target):
    """The model of the example, which uses most of the language."""
    spec = Path(__file__).parents[2] / "examples" / "support" / "queue.toml"
    model, _ = analyse(spec.read_bytes(), "queue.toml", target)
    assert model is not None
    return model


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_all_jobs_share_needs_no_more_than_it_is_given(target):
    """Given the whole model, the templates print the same."""
    model = example(target)
    sources = overlays.package(model.record.dialect, target) + overlays.suite(target)
    names = {each.template for each in sources if each.is_rendered}
    names = {each for each in names if not is_sql(each)} - {compiler.PLAN}
    assert {*SHARED, REGISTRY} <= names
    for name in names:
        texts = [
            render(name, "x.py", "q", model=m) for m in (model, Shared(model).model)
        ]
        assert texts[0] == texts[1]


def test_a_template_that_all_jobs_share_cannot_read_more_of_a_job():
    given = Shared(example("arq")).model
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    for asked in ("model.jobs[0].queue", "model.times.stop", "model.facts[0].key"):
        with pytest.raises((jinja2.UndefinedError, TypeError)):
            environment.from_string("{{ " + asked + " }}").render(model=given)


def test_a_first_build_renders_each_template_once(tmp_path, templates):
    assert Project.at(tmp_path).build() == 0
    twice = {name for name in templates if templates.count(name) > 1}
    assert twice == {OF_A_JOB[1]} and {*OF_OWNER} <= set(templates)


def test_what_is_its_owners_is_neither_rendered_nor_proved(
    project, tmp_path, templates, proved
):
    handlers = project.read("src/support_handlers.py")
    project.write("src/support_handlers.py", f"{handlers}\n\nmine = 1\n")
    project.path("deploy/Dockerfile").unlink()
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 0
    assert sorted(templates) == [OF_OWNER[0], *OF_A_JOB]  # what was deleted comes back
    assert proved == [JOB]
    assert "mine" in project.read("src/support_handlers.py")


@pytest.fixture
def parsed(monkeypatch):
    """How often a handlers module is parsed from now on."""
    texts = []
    defined = findings.defined

    def noting(text):
        texts.append(text)
        return defined(text)

    monkeypatch.setattr(findings, "defined", noting)
    return texts


def test_handlers_that_lack_nothing_are_parsed_once(project, parsed, capsys):
    timeouts = iter(range(1, 9))

    def build():
        spec = SPEC.replace(
            "[jobs.digest.payload]", "[jobs.digest]\n{}\n" + "[jobs.digest.payload]"
        )
        project.write("queue.toml", spec.format(f'timeout = "{next(timeouts)}m"'))
        parsed.clear()
        assert project.build() == 0
        return len(parsed), "no function digest" in capsys.readouterr().err

    assert [build(), build()] == [(1, False), (0, False)]
    handlers = project.read("src/support_handlers.py")
    project.write(
        "src/support_handlers.py", handlers.replace("def digest", "def other")
    )
    assert [build(), build()] == [(1, True), (1, True)]  # it still lacks one
    project.write("src/support_handlers.py", handlers)
    assert [build(), build()] == [(1, False), (0, False)]
    project.path(MEMORY).write_text("{}")
    assert build() == (1, False)


def test_a_function_that_is_new_to_the_spec_is_looked_for(project, parsed, capsys):
    assert project.build() == 0
    project.write("queue.toml", f"{SPEC}\n[jobs.more]\n")
    assert project.build() == 0
    assert "no function more" in capsys.readouterr().err


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_the_plan_reads_the_tests_as_python_does(target):
    """The suite is read by its look, which is black's."""
    files = compiler.files_of(example(target), "queue.toml")
    suite = [file for file in files if Path(file.path).name.startswith("test_")]
    wanted = [
        (node.name, (ast.get_docstring(node) or "").split())
        for file in suite
        for node in ast.parse(file.text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]
    found = [
        (case.name, f"{case.set_up} {case.expected}".split())
        for case in outline.cases(files)
    ]
    assert len(found) > 20 and found == wanted


def test_another_target_is_something_else(project, tmp_path, rendered):
    assert project.build(target="rq") == 0
    assert sorted(rendered) == [OTHER, JOB]


def damages(good):
    """The memory, spoilt in one way after the other."""
    known = json.loads(good)
    yield from (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, good[:-9])
    for part in ("tools", "files", "whole"):
        for value in (None, 1, [], [[]], {}, {JOB: 1}, {JOB: [1]}, {JOB: [[], []]}):
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
