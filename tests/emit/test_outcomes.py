"""Every state of a file, in one table: what check says, what build does, what is there
afterwards.  Each code about files is fired by a row."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from emit.projects import JOB, PACKAGE, SPEC, Project

from qgen.deploy import COMPOSE
from qgen.diagnostics.catalogue import codes_of, files

DIGEST = f"{PACKAGE}/jobs/digest.py"
HANDLERS = "src/support_handlers.py"
WITHOUT_DIGEST = SPEC.partition("\n[jobs.digest")[0]


@dataclass(frozen=True)
class Row:
    """What is done to a built project, and what comes of it.

    ``check`` and ``build`` are the codes they print, an exit code before them; ``left``
    says what the file is afterwards: right (as a fresh build makes it), gone, or kept (as
    it was left).
    """

    name: str
    disturb: Callable[[Project], object]
    path: str
    check: str
    build: str
    left: str


def edit(path: str) -> Callable[[Project], object]:
    return lambda p: p.write(path, p.read(path) + "# mine\n")


def reformat(p: Project) -> None:
    p.write(JOB, p.read(JOB).replace('"', "'"))


def conflict(p: Project) -> None:
    head, _, rest = p.read(JOB).partition("\n")
    p.write(JOB, f"{head}\n<<<<<<< a\n{rest}=======\n{rest}>>>>>>> b\n")


def foreign(p: Project) -> None:
    p.write("qgen.lock", "")
    p.write(JOB, "# by hand\n")


def link(path: str) -> Callable[[Project], object]:
    """The path led out of the project, where nothing may come or go."""

    def away(p: Project) -> None:
        outside = p.root.parent / "outside"
        p.path(path).rename(outside)
        p.path(path).symlink_to(outside)

    return away


def edit_and_remove(p: Project) -> None:
    edit(DIGEST)(p)
    p.write("queue.toml", WITHOUT_DIGEST)


def lose_handler(p: Project) -> None:
    p.write(HANDLERS, "def draft_reply(job, payload): ...\n")


def table(p: Project) -> None:
    p.change("queue.toml", '"support"\n', '"support"\n\n[record]\ntable = "t"\n')


def spec(text: str) -> Callable[[Project], object]:
    return lambda p: p.write("queue.toml", text)


MIGRATION = f"{PACKAGE}/migrations/0001_record.sql"
RENAMED = SPEC.replace("jobs.digest", "jobs.report")
RETYPED = SPEC.replace('text = "str"', 'text = "int"')
LONGER = f'{SPEC}\n[shutdown]\ngrace = "1h"\n'
MOVED = SPEC.replace('"support"', '"support"\npackage = "other"')
ROWS = [
    Row("untouched", lambda p: None, JOB, "0", "0", "right"),
    Row("edited", edit(JOB), JOB, "1 QG901", "1 QG901", "kept"),
    Row(
        "engine edited",
        edit(f"{PACKAGE}/record.py"),
        f"{PACKAGE}/record.py",
        "1 QG901",
        "1 QG901",
        "kept",
    ),
    Row("foreign", foreign, JOB, "1 QG902 QG911", "1 QG902", "kept"),
    Row("migration", table, MIGRATION, "1 QG903 QG906", "1 QG903", "kept"),
    Row("link out", link(JOB), JOB, "1 QG904", "1 QG904", "kept"),
    Row("folder out", link(f"{PACKAGE}/jobs"), JOB, "1 QG904", "1 QG904", "kept"),
    Row("deleted", lambda p: p.path(JOB).unlink(), JOB, "1 QG905", "0", "right"),
    Row("spec changed", spec(RETYPED), JOB, "1 QG906", "0", "right"),
    Row("reformatted", reformat, JOB, "1 QG907", "0", "right"),
    Row(
        "line ends",
        lambda p: p.write(JOB, p.read(JOB).replace("\n", "\r\n")),
        JOB,
        "1 QG907",
        "0",
        "right",
    ),
    Row("conflicted", conflict, JOB, "1 QG908", "0", "right"),
    Row(
        "job removed", spec(WITHOUT_DIGEST), DIGEST, "1 QG906 QG909 QG911", "0", "gone"
    ),
    Row(
        "job renamed",
        spec(RENAMED),
        DIGEST,
        "1 QG905 QG906 QG909 QG911 QG912",
        "0 QG912",
        "gone",
    ),
    Row(
        "removed, edited",
        edit_and_remove,
        DIGEST,
        "1 QG906 QG910 QG911",
        "0 QG910",
        "kept",
    ),
    Row("package renamed", spec(MOVED), JOB, "1 QG905 QG909 QG911", "0", "gone"),
    Row(
        "lock lost",
        lambda p: p.path("qgen.lock").unlink(),
        JOB,
        "1 QG911",
        "0",
        "right",
    ),
    Row("no handler", lose_handler, HANDLERS, "0 QG912", "0 QG912", "kept"),
    Row("grace raised", spec(LONGER), COMPOSE, "1 QG906 QG915", "0 QG915", "kept"),
    Row("handlers edited", edit(HANDLERS), HANDLERS, "0", "0", "kept"),
]


def said(code: int, text: str) -> str:
    """An exit code and the codes of what was printed, each once."""
    return " ".join([str(code), *sorted(set(re.findall(r"\[(QG\d+)\]", text)))])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_outcome_of_each(row, tmp_path, capsys):
    project = Project.at(tmp_path / "project")
    assert project.build() == 0
    row.disturb(project)
    before = project.tree()
    capsys.readouterr()
    assert said(project.check(), capsys.readouterr().err) == row.check
    assert project.tree() == before
    assert said(project.build(), capsys.readouterr().err) == row.build
    if row.build.startswith("1"):
        assert project.tree() == before
    fresh = Project.at(tmp_path / "fresh", project.read("queue.toml"))
    assert fresh.build() == 0
    after = project.tree().get(row.path)
    expected = {"right": fresh.tree().get(row.path), "kept": before.get(row.path)}
    assert after == expected.get(row.left)
    if row.build.startswith("0"):  # once is enough
        stamps = project.stamps()
        assert project.build() == 0 and project.stamps() == stamps


def test_every_code_about_files_is_in_the_table():
    fired = {code for row in ROWS for code in row.check.split()[1:]}
    assert fired == {code.code for code in codes_of(files)}
