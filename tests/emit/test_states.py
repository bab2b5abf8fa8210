"""What happens to a file that is not as qgen left it: one test per state."""

import os

import pytest
from emit.projects import ENGINE, JOB, PACKAGE, SPEC, Project

from qgen.signature import is_intact


@pytest.fixture
def project(tmp_path):
    project = Project.at(tmp_path / "project")
    assert project.build() == 0
    return project


def test_a_second_build_writes_nothing(project, capsys):
    before = project.stamps()
    assert project.build() == 0
    assert project.stamps() == before
    assert "0 changed" in capsys.readouterr().out
    assert project.check() == 0


def test_unchanged_files_keep_their_time_stamps(project):
    before = project.stamps()
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 0
    changed = {name for name, at in project.stamps().items() if at != before.get(name)}
    assert changed == {"queue.toml", JOB}


@pytest.mark.parametrize("name", [JOB, ENGINE, f"{PACKAGE}/requirements.txt"])
def test_an_edited_file_stops_the_build_and_shows_the_edit(project, capsys, name):
    project.write(name, project.read(name) + "# mine\n")
    before = project.tree()
    assert project.check() == 1
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 1
    said = capsys.readouterr().err
    assert "QG901" in said and "-# mine" in said
    assert {**before, "queue.toml": b""} == {**project.tree(), "queue.toml": b""}


def test_force_overwrites_an_edit_and_keeps_a_copy(project):
    project.write(JOB, project.read(JOB) + "# mine\n")
    assert project.build(force=True) == 0
    assert "# mine" not in project.read(JOB)
    assert project.read(f".qgen/backup/1/{JOB}").endswith("# mine\n")
    project.write(JOB, project.read(JOB) + "# again\n")
    assert project.build(force=True) == 0
    assert project.read(f".qgen/backup/2/{JOB}").endswith("# again\n")
    assert project.check() == 0


def test_a_removed_header_is_an_edit(project, capsys):
    project.write(JOB, "\n".join(project.read(JOB).split("\n")[2:]))
    assert project.build() == 1
    assert "QG901" in capsys.readouterr().err


@pytest.mark.parametrize(
    "reformat",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("    ", "  "),
        lambda text: text.replace('"', "'"),
        lambda text: text.replace("(\n    ", "( ").replace(",\n)", " )"),
    ],
    ids=["crlf", "indent", "quotes", "joined"],
)
def test_a_reformatted_file_is_overwritten_with_a_note(project, capsys, reformat):
    fresh = project.read(JOB)
    project.write(JOB, reformat(fresh))
    assert project.check() == 1
    said = capsys.readouterr().err
    assert "QG907" in said and "exclude" in said
    assert project.build() == 0
    assert project.read(JOB) == fresh


def test_a_reformatted_file_is_known_when_the_spec_changed_too(project):
    project.write(JOB, project.read(JOB).replace('"', "'"))
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 0
    assert "text: int" in project.read(JOB)


def test_a_deleted_file_comes_back(project, capsys):
    fresh = project.read(JOB)
    project.path(JOB).unlink()
    assert project.check() == 1
    assert "QG905" in capsys.readouterr().err
    assert project.build() == 0
    assert project.read(JOB) == fresh


@pytest.mark.parametrize("name", [JOB, f"{PACKAGE}/QUEUE.md"])
def test_a_conflicted_file_is_rebuilt(project, capsys, name):
    fresh = project.read(name)
    head, _, rest = fresh.partition("\n")
    project.write(name, f"{head}\n<<<<<<< ours\n{rest}=======\nx\n>>>>>>> theirs\n")
    assert project.check() == 1
    assert "QG908" in capsys.readouterr().err
    assert project.build() == 0
    assert project.read(name) == fresh


def test_a_foreign_file_stops_the_build(tmp_path, capsys):
    project = Project.at(tmp_path)
    project.write(JOB, "# by hand\n")
    assert project.build() == 1
    assert "QG902" in capsys.readouterr().err
    assert set(project.tree()) == {"queue.toml", JOB}
    assert project.build(force=True) == 0
    assert project.read(f".qgen/backup/1/{JOB}") == "# by hand\n"


def test_a_file_beside_ours_is_never_touched(project):
    project.write(f"{PACKAGE}/jobs/mine.py", "# by hand\n")
    project.write(f"{PACKAGE}/notes.txt", "by hand\n")
    project.write("queue.toml", SPEC.replace('"support"', '"other"'))
    assert project.build() == 0
    assert project.read(f"{PACKAGE}/jobs/mine.py") == "# by hand\n"
    assert project.read(f"{PACKAGE}/notes.txt") == "by hand\n"


def test_a_removed_job_takes_its_file_along(project):
    project.write("queue.toml", SPEC.partition("\n[jobs.digest")[0])
    cached = project.path(f"{PACKAGE}/jobs/__pycache__/digest.cpython-311.pyc")
    cached.parent.mkdir()
    cached.write_bytes(b"")
    assert project.build() == 0
    assert not project.path(f"{PACKAGE}/jobs/digest.py").exists()
    assert not cached.exists()
    assert "digest" not in project.read(f"{PACKAGE}/jobs/__init__.py")
    assert "digest" in project.read("src/support_handlers.py")  # the user's
    assert project.check() == 0


def test_an_edited_file_of_a_removed_job_is_kept_with_the_reason(project, capsys):
    name = f"{PACKAGE}/jobs/digest.py"
    project.write(name, project.read(name) + "# mine\n")
    project.write("queue.toml", SPEC.partition("\n[jobs.digest")[0])
    assert project.build() == 0
    said = capsys.readouterr().err
    assert "QG910" in said and "was edited" in said
    assert project.read(name).endswith("# mine\n")
    assert project.check() == 0


def test_a_removed_job_is_told_and_its_handler_left(project, capsys):
    """With the way out for rows that still wait.  C145."""
    project.change("queue.toml", "jobs.digest", "jobs.report")
    assert project.build() == 0
    said = capsys.readouterr().err
    assert "no job digest any more" in said and "aliases" in said
    assert "def digest(" in project.read("src/support_handlers.py")
    project.change("queue.toml", 'name = "support"', 'name = "helpdesk"')
    assert project.build() == 0  # every file moves, and no job is gone
    assert "any more" not in capsys.readouterr().err


def test_a_renamed_job_moves_and_leaves_no_other_file_behind(project, capsys):
    project.change("queue.toml", "jobs.digest", "jobs.report")
    assert project.build() == 0
    assert project.path(f"{PACKAGE}/jobs/report.py").exists()
    assert not project.path(f"{PACKAGE}/jobs/digest.py").exists()
    said = capsys.readouterr().err
    assert "QG912" in said and "async def report(" in said  # the stub to be added
    assert "from support_queue import Report\n" in said


def test_a_changed_package_name_moves_everything(project):
    project.change("queue.toml", '"support"', '"support"\npackage = "other_queue"')
    assert project.build() == 0
    assert not project.path(PACKAGE).exists()
    assert project.path("src/other_queue/jobs/digest.py").exists()
    assert project.check() == 0


def test_the_handlers_are_the_users(project):
    project.write("src/support_handlers.py", "digest = draft_reply = None\n")
    assert project.build() == 0
    assert project.read("src/support_handlers.py") == "digest = draft_reply = None\n"
    assert project.check() == 0


def test_handlers_are_found_where_an_import_would_find_them(tmp_path):
    project = Project.at(tmp_path)
    project.write("support_handlers/__init__.py", "from somewhere import *\n")
    assert project.build() == 0
    assert not project.path("src/support_handlers.py").exists()
    assert project.check() == 0


def test_a_migration_is_never_changed(project, capsys):
    project.change("queue.toml", '"support"\n', '"support"\n\n[record]\ntable = "t"\n')
    assert project.build() == 1
    assert "QG903" in capsys.readouterr().err
    (migration,) = project.path(f"{PACKAGE}/migrations").glob("0001*")
    assert "support_jobs" in migration.read_text()


def test_a_lost_lock_is_written_again(project):
    lock = project.read("qgen.lock")
    project.path("qgen.lock").unlink()
    assert project.check() == 1
    assert project.build() == 0
    assert project.read("qgen.lock") == lock


def test_a_lock_with_conflict_markers_is_read_and_rebuilt(project):
    lock = project.read("qgen.lock")
    name = f"{PACKAGE}/jobs/old.py"
    project.write(name, project.read(JOB))
    project.write("qgen.lock", f"<<<<<<< a\n{lock}=======\nmanaged {name}\n>>>>>>> b\n")
    assert project.build() == 0
    assert project.read("qgen.lock") == lock
    assert not project.path(name).exists()


def test_eject_hands_a_file_over_for_good(project):
    assert project.qgen("eject", JOB).returncode == 0
    mine = project.read(JOB)
    assert "qgen" not in mine
    project.write(JOB, mine + "# mine\n")
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 0
    assert project.check() == 0
    assert project.read(JOB) == mine + "# mine\n"
    assert f"ejected {JOB}\n" in project.read("qgen.lock")
    assert project.qgen("eject", JOB).returncode == 2
    assert project.qgen("eject", "qgen.lock").returncode == 2


# --- containment ------------------------------------------------------------------


def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "keep.txt").write_text("keep")
    return folder


@pytest.mark.parametrize("link", ["src", PACKAGE, f"{PACKAGE}/jobs", "tests"])
def test_nothing_is_written_through_a_link_that_leaves(tmp_path, capsys, link):
    project, away = Project.at(tmp_path / "project"), outside(tmp_path)
    project.path(link).parent.mkdir(parents=True, exist_ok=True)
    project.path(link).symlink_to(away, target_is_directory=True)
    for force in (False, True):
        assert project.build(force) == 1
        assert "QG904" in capsys.readouterr().err
    assert [path.name for path in away.iterdir()] == ["keep.txt"]


def test_a_link_in_place_of_a_file_is_refused(project, tmp_path):
    away = outside(tmp_path) / "keep.txt"
    project.path(JOB).unlink()
    project.path(JOB).symlink_to(away)
    assert project.build(force=True) == 1
    assert away.read_text() == "keep"


def test_a_link_that_stays_inside_is_followed(tmp_path):
    project = Project.at(tmp_path)
    project.path("code").mkdir()
    project.path("src").symlink_to("code")
    assert project.build() == 0
    assert project.path("code/support_queue/registry.py").exists()


def test_a_private_folder_that_is_a_link_is_refused(tmp_path):
    project, away = Project.at(tmp_path / "project"), outside(tmp_path)
    project.path(".qgen").symlink_to(away)
    done = project.qgen("build")
    assert done.returncode == 2 and ".qgen is a link" in done.stderr
    assert [path.name for path in away.iterdir()] == ["keep.txt"]


@pytest.mark.parametrize(
    "path", ["../outside/keep.txt", "/tmp/keep.txt", "src/../../x"]
)
def test_a_lock_cannot_name_a_path_outside(project, tmp_path, path):
    away = outside(tmp_path)
    (away / "keep.txt").write_text(project.read(JOB))  # signed, so it looks like ours
    project.write("qgen.lock", project.read("qgen.lock") + f"managed {path}\n")
    assert project.build() == 0
    assert (away / "keep.txt").exists()


def test_an_orphan_behind_a_link_is_kept(project, tmp_path):
    away = outside(tmp_path)
    (away / "old.py").write_text(project.read(JOB))
    project.path("linked").symlink_to(away)
    project.write("qgen.lock", project.read("qgen.lock") + "managed linked/old.py\n")
    assert project.build() == 0
    assert (away / "old.py").exists()


# --- the disk says no -------------------------------------------------------------


def test_a_read_only_file_is_replaced_and_stays_read_only(project):
    os.chmod(project.path(JOB), 0o444)
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    assert project.build() == 0
    assert "text: int" in project.read(JOB)
    assert project.path(JOB).stat().st_mode & 0o777 == 0o444


def test_every_file_with_a_header_is_intact(project):
    for name, data in project.tree().items():
        once = ("queue.toml", "qgen.lock", "src/support_handlers.py")
        if name not in once and not name.startswith("deploy/"):
            assert is_intact(data.decode()), name
