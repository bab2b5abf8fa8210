"""What qgen wrote runs without qgen: only the two generated requirements are installed."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

# A fresh environment names no other code and no server.
HIDDEN = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "DATABASE_URL", "REDIS_URL")
FRESH = {k: v for k, v in os.environ.items() if not k.startswith(HIDDEN)}


def run(*command, cwd, env=FRESH, fails=False) -> str:
    """Run a command; what it printed, and a failure unless it ends as expected."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (done.returncode != 0) == fails, done.stdout
    return done.stdout


def qgen(project: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "qgen", *arguments]
    run(*command, cwd=project, env=os.environ)


def first_project(place: Path, dialect: str) -> Path:
    """What a new user has after a minute; the database is all that differs."""
    project = place / dialect
    project.mkdir()
    qgen(project, "init", "--name", "hello")
    if dialect != "sqlite":
        with open(project / "queue.toml", "a", encoding="utf-8") as spec:
            spec.write(f'\n[record]\ndialect = "{dialect}"\n')
    qgen(project, "build", "--target", "arq")
    qgen(project, "check")
    return project


@pytest.mark.long
def test_a_first_project_passes_its_own_tests_untouched(tmp_path):
    projects = [first_project(tmp_path, each) for each in ("sqlite", "postgresql")]
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    needed = [path for each in projects for path in each.rglob("requirements.txt")]
    assert len(needed) == 4
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    run(*pip, *(word for path in needed for word in ("-r", path)), cwd=tmp_path)
    run(python, "-c", "import qgen", cwd=tmp_path, fails=True)
    for project in projects:
        printed = run(python, "-m", "pytest", project / "tests", cwd=project)
        assert "passed" in printed and "warning" not in printed
