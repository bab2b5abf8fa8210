"""Which backend is built: the command line's, the spec's, the last build's, arq."""

import pytest
from emit.projects import PACKAGE, SPEC, Project

from qgen import lock
from qgen.compile import compile


def spec(target: str | None) -> str:
    """The spec with a target of its own, or without."""
    own = f'\ntarget = "{target}"' if target else ""
    return SPEC.replace('name = "support"', f'name = "support"{own}')


@pytest.mark.parametrize(
    ("given", "own", "built", "wanted"),
    [
        (None, None, "", "arq"),
        (None, None, "target rq\n", "rq"),
        (None, "celery", "target rq\n", "celery"),
        (None, "celery", "", "celery"),
        ("arq", "celery", "target rq\n", "arq"),
        ("rq", None, "target celery\n", "rq"),
        (None, None, "target celery\n<<<<<<< ours\ntarget celery\n", "celery"),
        # What no build has written says nothing.
        (None, None, "target rq\ntarget celery\n", "arq"),
        (None, None, "target dramatiq\n", "arq"),
        (None, None, "target \n", "arq"),
        (None, None, "# target rq\n", "arq"),
    ],
)
def test_the_order(given, own, built, wanted):
    done = compile(spec(own).encode(), "queue.toml", given, built)
    assert done.model is not None and done.model.target.name == wanted


def test_what_one_build_was_given_the_next_commands_know(tmp_path, capsys):
    project = Project.at(tmp_path)
    assert project.build(target="rq") == 0
    assert lock.parse(project.read("qgen.lock")).target == "rq"
    built = project.tree()
    assert project.check() == 0
    assert project.build() == 0
    assert project.tree() == built
    assert "target" not in capsys.readouterr().err
    assert project.check(target="arq") == 1
    assert project.tree() == built
    assert f"{PACKAGE}/worker.py: error[QG906]" in capsys.readouterr().err


def test_the_memory_of_one_target_is_no_answer_for_another(tmp_path):
    """The fast path: each command line has its own memory, and each ends with a build."""
    project = Project.at(tmp_path)
    for command in (["build"], ["check"], ["build", "--target=rq"], ["check"]):
        assert project.qgen(*command).returncode == 0
    assert project.qgen("check", "--target=arq").returncode == 1


def said(capsys):
    """The notes of a build: a line each."""
    lines = capsys.readouterr().err.splitlines()
    return [line for line in lines if line.startswith("qgen: ")]


def test_a_build_says_that_the_target_is_another(tmp_path, capsys):
    project = Project.at(tmp_path)
    assert project.build() == 0
    assert "target" not in capsys.readouterr().err
    assert project.build(target="rq") == 0
    assert said(capsys) == ["qgen: the target is rq now, it was arq"]
    project.write("queue.toml", spec("celery"))
    assert project.build() == 0
    assert said(capsys) == ["qgen: the target is celery now, it was rq"]


def test_a_lock_without_a_target_is_not_what_the_spec_makes(tmp_path, capsys):
    project = Project.at(tmp_path)
    assert project.build() == 0
    project.change("qgen.lock", "target arq\n", "")
    assert project.check() == 1
    assert "qgen.lock: error[QG911]" in capsys.readouterr().err
