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


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_a_first_project_passes_its_own_tests_untouched(dialect, tmp_path):
    project = tmp_path / "hello"
    project.mkdir()
    qgen(project, "init")
    if dialect != "sqlite":
        with open(project / "queue.toml", "a", encoding="utf-8") as spec:
            spec.write(f'\n[record]\ndialect = "{dialect}"\n')
    qgen(project, "build", "--target", "arq")
    qgen(project, "check")

    place = tmp_path / "environment"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    (package,) = project.glob("src/*/requirements.txt")
    (suite,) = project.glob("tests/*/requirements.txt")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "-r", package, "-r", suite, cwd=project)
    run(python, "-c", "import qgen", cwd=project, fails=True)
    printed = run(python, "-m", "pytest", suite.parent, cwd=project)
    assert "passed" in printed and "warning" not in printed
