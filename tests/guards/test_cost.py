"""What a command costs, by mechanism: imports, processes, files touched."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from emit.projects import JOB, PACKAGE, SPEC, Project

from qgen.compile import compile

HEAVY = {"jinja2", "jsonschema", "pydantic", "black", "rich", "ruff"}
# Runs qgen and prints, on the last line, what it imported, which processes it began and
# which files it opened to write.
WATCH = """
import json, os, sys
started, written = [], []
def watch(event, args):
    if event == "subprocess.Popen":
        started.append(str(args[1]))
    elif event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR):
        written.append(os.path.relpath(str(args[0])))
sys.addaudithook(watch)
sys.dont_write_bytecode = True
sys.argv = ["qgen", *json.loads(sys.argv[1])]
from qgen.__main__ import main
code = main()
print(file=sys.stderr)
names = sorted(name for name in sys.modules if "." not in name or "qgen." in name)
print(json.dumps([code, names, started, written]), file=sys.stderr)
"""
STAGE = ".qgen/stage/"


def cost(project: Project, *arguments: str, **env: str):
    """The exit code, the modules, the processes and the output of a command."""
    return watched(project, *arguments, **env)[:4]


def watched(project: Project, *arguments: str, **env: str):
    """The same, and the files it opened to write."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, json.dumps(arguments)],
        cwd=project.root,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | env,
    )
    last = done.stderr.rstrip().rpartition("\n")[2]
    code, modules, started, written = json.loads(last)
    return code, set(modules), started, done.stdout, written


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
    code, modules, started, _, written = watched(project, command)
    assert (code, started, written) == (0, [], [])
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


def many(jobs: int) -> str:
    """A spec of that many jobs, and two."""
    return SPEC + "".join(
        f'\n[jobs.job_{n}]\ntimeout = "5m"\npayload.x = "str"\n' for n in range(jobs)
    )


@pytest.mark.parametrize("jobs", [1, 60])
def test_a_build_starts_two_processes_however_many_jobs(tmp_path, jobs):
    project = Project.at(tmp_path, many(jobs))
    code, modules, started, _, written = watched(project, "build")
    assert code == 0 and len(started) == 2
    # Black is for what ruff would change, the schema for what the types refuse.
    assert not modules & {"black", "rich", "jsonschema"}
    # A job's file is written once, where it is proved, and takes its place by a rename.
    of_jobs = [name for name in written if "/jobs/job_" in name]
    assert len(of_jobs) == len(set(of_jobs)) == jobs
    assert all(name.startswith(STAGE) for name in of_jobs)


def test_an_edit_of_one_job_touches_its_file_and_the_plan(tmp_path):
    project = Project.at(tmp_path, many(60))
    assert project.build() == 0
    before = project.stamps()
    text = project.read("queue.toml")
    head, name, tail = text.partition("[jobs.job_30]")
    project.write("queue.toml", head + name + tail.replace("5m", "6m", 1))
    code, _, started, _, written = watched(project, "build")
    assert code == 0 and len(started) == 2
    after = project.stamps()
    touched = {name for name in after if after[name] != before.get(name)}
    mine = f"{PACKAGE}/jobs/job_30.py"
    assert touched == {"queue.toml", mine, f"{PACKAGE}/QUEUE.md"}
    assert [name for name in written if "/jobs/" in name] == [STAGE + mine]


def calls(jobs: int) -> int:
    """How many functions a compilation calls, Python's own included."""
    count = 0

    def counting(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    spec = many(jobs).encode()
    sys.setprofile(counting)
    try:
        done = compile(spec, "queue.toml")
    finally:
        sys.setprofile(None)
    assert done.model is not None
    return count


def test_the_work_grows_with_the_jobs_and_no_faster():
    calls(1)  # templates and types are made once
    few, some, more = calls(20), calls(80), calls(320)
    first, second = (some - few) / 60, (more - some) / 240
    assert second < first * 1.1


def test_importing_the_package_imports_no_handler_and_builds_no_payload(tmp_path):
    project = Project.at(tmp_path, many(30))
    assert project.build() == 0
    code = (
        "import sys, support_queue\n"
        "from support_queue.jobs import JOBS\n"
        "assert len(JOBS) == 32\n"
        "assert 'support_handlers' not in sys.modules\n"
        "ready = [j.name for j in JOBS if j.payload.__pydantic_complete__]\n"
        "assert not ready, ready\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.path("src"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
