"""What a command costs, by mechanism: imports, processes, files touched."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from emit.projects import JOB, SPEC, Project

HEAVY = {"jinja2", "jsonschema", "pydantic", "black", "rich", "ruff"}
# Runs qgen and prints, on the last line, what it imported and which processes it began.
WATCH = """
import json, sys
started = []
sys.addaudithook(
    lambda event, args: started.append(str(args[1])) if event == "subprocess.Popen" else None
)
sys.argv = ["qgen", *json.loads(sys.argv[1])]
from qgen.__main__ import main
code = main()
print(file=sys.stderr)
names = sorted(name for name in sys.modules if "." not in name or "qgen." in name)
print(json.dumps([code, names, started]), file=sys.stderr)
"""


def cost(project: Project, *arguments: str, **env: str):
    """The exit code, the modules and the processes of a command."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, json.dumps(arguments)],
        cwd=project.root,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | env,
    )
    code, modules, started = json.loads(done.stderr.rstrip().rpartition("\n")[2])
    return code, set(modules), started, done.stdout


@pytest.fixture
def project(tmp_path):
    return Project.at(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], ["completion", "zsh"], ["build", "--help"]],
)
def test_what_needs_no_compiler_imports_none(project, arguments):
    code, modules, started, out = cost(project, *arguments)
    assert (code, started) == (0, []) and out
    assert not modules & HEAVY


def test_completion_of_a_word_imports_no_compiler(project):
    words = {"COMP_WORDS": "qgen bui", "COMP_CWORD": "1"}
    done = project.qgen(_QGEN_COMPLETE="bash_complete", **words)
    assert "build" in done.stdout
    words |= {"_QGEN_COMPLETE": "bash_complete", "PYTHONPROFILEIMPORTTIME": "1"}
    done = project.qgen(**words)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "click" in imported and not imported & HEAVY


def test_the_version_imports_not_even_click(project):
    assert "click" not in cost(project, "--version")[1]


@pytest.mark.parametrize("command", ["build", "check"])
def test_nothing_to_do_imports_no_compiler(project, command):
    assert cost(project, "build")[0] == 0
    assert cost(project, command)[0] == 0
    before = project.stamps()
    code, modules, started, _ = cost(project, command)
    assert (code, started) == (0, [])
    assert not modules & (HEAVY | {"click", "qgen.compile"})
    assert project.stamps() == before


def test_a_build_that_wrote_is_remembered_too(project):
    assert cost(project, "build")[0] == 0
    code, modules, _, out = cost(project, "build")
    assert code == 0 and "qgen.compile" not in modules
    assert out.startswith("0 changed, ")


@pytest.mark.parametrize(
    "name", ["queue.toml", "qgen.lock", JOB, "src/support_handlers.py"]
)
def test_any_change_ends_the_memory(project, name):
    assert cost(project, "check")[0] == 1
    assert cost(project, "build")[0] == 0
    assert cost(project, "check")[0] == 0
    project.write(name, project.read(name) + "# more\n")
    assert "qgen.compile" in cost(project, "check")[1]
    project.path(name).unlink()
    if name != "queue.toml":
        assert "qgen.compile" in cost(project, "check")[1]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"null", b'{"tools": 1}', b"\xff"]
)
def test_a_damaged_memory_is_a_miss(project, damage):
    cost(project, "build")
    for memory in project.path(".qgen/seen").iterdir():
        memory.write_bytes(damage)
    code, modules, _, out = cost(project, "build")
    assert code == 0 and "qgen.compile" in modules
    assert out.startswith("0 changed, ")


def test_a_memory_is_not_another_projects_answer(project, tmp_path):
    """A folder copied with its memory answers for the files that are there."""
    cost(project, "build")
    project.change(JOB, "600.0", "601.0")
    assert cost(project, "check")[0] == 1


@pytest.mark.parametrize("jobs", [1, 60])
def test_a_build_starts_two_processes_however_many_jobs(tmp_path, jobs):
    more = "".join(f'\n[jobs.job_{n}.payload]\nx = "str"\n' for n in range(jobs))
    code, modules, started, _ = cost(Project.at(tmp_path, SPEC + more), "build")
    assert code == 0 and len(started) == 2
    assert "black" not in modules and "rich" not in modules
