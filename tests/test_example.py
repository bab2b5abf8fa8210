"""examples/support: checked in as built, its own suite passes, the demo keeps its word."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trees
from engine import faults

from examples import demo

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "support"

# examples/specs: the backend that the project is on, or the nearest, and another one.
REAL = {
    "argilla": ("rq", "celery"),
    "ato": ("arq", "rq"),
    "langfuse": ("celery", "arq"),
    "morphik": ("arq", "celery"),
    "netbox": ("rq", "arq"),
}


def run(*command, cwd, **env) -> str:
    """Run Python to its end; what it printed, and a failure if it failed."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_suite(folder: Path, suite: str = "tests/support_queue") -> str:
    options = ["-q", "-rs", "-p", "no:cacheprovider"]
    plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return run("-m", "pytest", *options, suite, cwd=folder, **plain)


def test_the_example_is_as_qgen_builds_it():
    assert run("-m", "qgen", "check", cwd=EXAMPLE) == ""


@pytest.mark.long
def test_its_suite_passes_where_it_stands():
    """Under the project's own pytest settings, as in a repository with other tests."""
    assert "passed" in run_suite(EXAMPLE)


@pytest.mark.long
def test_its_suite_passes_on_postgresql(tmp_path):
    shutil.copytree(EXAMPLE / "src" / "support", tmp_path / "src" / "support")
    trees.build("arq-postgresql", tmp_path)
    assert "passed" in run_suite(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not faults.LONG, reason="ten whole suites: QGEN_LONG=1 runs them")
@pytest.mark.parametrize(
    ("name", "target"), [(name, one) for name, both in REAL.items() for one in both]
)
def test_the_suite_of_a_real_project_passes(name, target, tmp_path):
    """With all of its queues, workers, schedules, retries and limits.

    What its suite leaves out is what the spec does not use, said of each test.
    """
    text = (ROOT / "examples" / "specs" / f"{name}.toml").read_text("utf-8")
    trees.build(f"{target}-postgresql", tmp_path, text)
    printed = run_suite(tmp_path, f"tests/{name}_queue")
    print(printed)
    assert "passed" in printed
    skipped = re.findall(r"^SKIPPED .*?: (.+)$", printed, re.MULTILINE)
    assert all(
        re.search(r"\b(no|one|never|ever)\b", reason) for reason in skipped
    ), skipped


def test_the_demo_loses_nothing():
    printed = run("examples/demo.py", cwd=ROOT).splitlines()
    figures = {line[:18].strip(): line[18:25].strip() for line in printed}
    assert (figures["accepted"], figures["completed"]) == ("60", "60")
    assert (figures["lost"], figures["run twice"]) == ("0", "0")


GOOD = {
    "accepted": 60,
    "completed": 60,
    "lost": 0,
    "cut by the kill": 3,
    "run twice": 0,
    "seconds": 9.0,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accepted", 59),
        ("completed", 59),
        ("lost", 1),
        ("run twice", 1),
        ("cut by the kill", 0),
    ],
)
def test_the_demo_fails_on_a_figure_that_is_not_promised(name, value):
    assert demo.broken(GOOD) == []
    assert len(demo.broken(GOOD | {name: value})) == 1


class Recorded:
    """A stage whose record and starts are given."""

    def __init__(self, starts, attempts, cut):
        self._starts, self._attempts, self._cut = starts, attempts, cut

    def starts(self):
        return [demo.Start(*start) for start in self._starts]

    def rows(self, query):
        return self._cut if "_attempts" in query else self._attempts


@pytest.mark.parametrize(
    ("starts", "attempts", "cut", "found"),
    [
        ([("a", 1, 7)], [("a", 1)], [], 0),
        ([("a", 1, 7), ("a", 2, 8)], [("a", 2)], [("a", 1)], 0),
        ([("a", 1, 7), ("a", 2, 8)], [("a", 2)], [], 1),
        ([("a", 1, 7), ("a", 1, 8)], [("a", 1)], [], 1),
        ([("a", 1, 7), ("a", 2, 8)], [("a", 1)], [], 1),
    ],
    ids=["one", "explained", "unexplained", "twice in one attempt", "never claimed"],
)
def test_the_demo_counts_starts_that_no_attempt_explains(starts, attempts, cut, found):
    assert demo.unexplained(Recorded(starts, attempts, cut)) == found
