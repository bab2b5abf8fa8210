"""The command line: exit codes, what goes where, and the small commands."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from emit.projects import JOB, SPEC, Project

BROKEN = SPEC.replace('name = "support"', 'nme = "support"')
WARNED = SPEC.replace(
    "[jobs.digest.payload]", '[jobs.digest]\ntimeout = "none"\n\n[jobs.digest.payload]'
)


@pytest.fixture
def project(tmp_path):
    return Project.at(tmp_path)


def test_a_clean_build_says_counts_first(project):
    done = project.qgen("build")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{len(project.tree()) - 2} changed, 0 unchanged\n")


def test_quiet_says_nothing_when_all_is_well(project):
    done = project.qgen("build", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_broken_spec_is_1_and_writes_nothing(project):
    project.write("queue.toml", BROKEN)
    done = project.qgen("build")
    assert (done.returncode, done.stdout) == (1, "")
    assert "queue.toml:4:1: error[QG" in done.stderr
    assert set(project.tree()) == {"queue.toml"} and not project.path(".qgen").exists()


def test_warnings_are_0_and_with_strict_1(project):
    project.write("queue.toml", WARNED)
    done = project.qgen("build")
    assert done.returncode == 0 and "warning[" in done.stderr
    for _ in range(2):  # the second answer comes from memory
        assert project.qgen("check").stderr == done.stderr
        assert project.qgen("check", "--strict").returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "nothing.toml"],
        ["build", "."],
        ["build", "--bogus"],
        ["bogus"],
        ["build", "--format", "xml"],
        ["eject", "queue.toml"],
        ["init"],
    ],
)
def test_usage_is_2_and_one_sentence(project, arguments):
    done = project.qgen(*arguments)
    assert done.returncode == 2 and done.stderr and "Traceback" not in done.stderr


def test_a_bug_is_3():
    code = (
        "import sys\n"
        "from qgen import cli\n"
        "from qgen.commands import targets\n"
        "targets.run = lambda format: 1 / 0\n"
        "sys.argv = ['qgen', 'targets']\n"
        "sys.exit(cli.main())\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env
    )
    assert done.returncode == 3 and "a bug in qgen" in done.stderr


@pytest.mark.parametrize("command", ["build", "check", "plan"])
@pytest.mark.parametrize("format", ["json", "sarif", "github"])
def test_other_formats_go_to_stdout_alone(project, command, format):
    project.write("queue.toml", BROKEN)
    done = project.qgen(command, "--format", format)
    assert (done.returncode, done.stderr) == (1, "")
    if format == "github":
        assert done.stdout.startswith("::error file=queue.toml,line=4,")
    else:
        assert json.loads(done.stdout)


def test_what_differs_on_disk_is_a_diagnostic_too(project):
    project.qgen("build")
    project.path(JOB).unlink()
    done = project.qgen("check", "--format", "json")
    (found,) = json.loads(done.stdout)["diagnostics"]
    assert (found["code"], found["file"]) == ("QG905", JOB)


def test_files_are_named_from_where_one_stands(project):
    project.qgen("build")
    project.path(JOB).unlink()
    above = Project(project.root.parent)
    name = f"{project.root.name}/queue.toml"
    assert f"{project.root.name}/{JOB}: error" in above.qgen("check", name).stderr


def test_no_colours_but_on_a_terminal(project):
    project.write("queue.toml", BROKEN)
    assert "\x1b" not in project.qgen("build", FORCE_COLOR="1").stderr


def test_the_plan_names_the_next_slots_and_the_page_fixed_ones(project):
    text = '\n[schedules.daily]\njob = "digest"\ncron = "0 7 * * *"\n'
    text += 'timezone = "Europe/Paris"\npayload = { kind = "x" }\n'
    project.write("queue.toml", project.read("queue.toml") + text)
    printed = project.qgen("plan").stdout
    (line,) = [each for each in printed.splitlines() if "next slots of daily" in each]
    slots = [
        datetime.fromisoformat(each.split(" ", 1)[1])
        for each in line.partition(": ")[2].split(", ")
    ]
    now = datetime.now(UTC)
    assert now < slots[0] < now + timedelta(hours=26)
    days = [slot.date() - slots[0].date() for slot in slots]
    assert days == [timedelta(0), timedelta(1), timedelta(2)]
    assert {(slot.hour, slot.minute) for slot in slots} == {(7, 0)}
    assert "Mon 2024-01-01 07:00+01:00, Tue 2024-01-02 07:00+01:00" in printed


def test_the_plan_writes_nothing_and_shows_bodies_when_asked(project):
    done = project.qgen("plan")
    assert done.returncode == 0 and " to be written" in done.stdout.splitlines()[0]
    assert "## NEXT STEP" in done.stdout
    assert set(project.tree()) == {"queue.toml"}
    project.qgen("build")
    project.change("queue.toml", 'text = "str"', 'text = "int"')
    bodies = project.qgen("plan", "--diff").stdout
    assert "-    text: str\n+    text: int" in bodies
    assert "text: str" in project.read(JOB)


def test_init_then_build_then_check(tmp_path):
    folder = Project(tmp_path / "My Shop 2")
    folder.root.mkdir()
    done = folder.qgen("init")
    assert done.returncode == 0
    assert 'name = "my_shop_2"' in folder.read("queue.toml")
    assert "eol=lf linguist-generated" in folder.read(".gitattributes")
    assert folder.read(".gitignore") == "my_shop_2.db*\n.my_shop_2-spool/\n.qgen/\n"
    assert "entry: qgen check queue.toml" in folder.read(".pre-commit-config.yaml")
    assert folder.qgen("build").returncode == 0
    assert folder.qgen("check").returncode == 0


def test_init_writes_over_nothing(tmp_path):
    folder = Project(tmp_path)
    folder.write(".gitattributes", "* text\n")
    folder.write(".gitignore", "*.log\n")
    done = folder.qgen("init", "--name", "shop")
    assert done.returncode == 0
    assert folder.read(".gitattributes") == "* text\n"
    assert "src/shop_queue/** text eol=lf" in done.stdout  # to be added by hand
    assert folder.read(".gitignore") == "*.log\n"
    assert "shop.db*\n.shop-spool/\n.qgen/\n" in done.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_is_printed(project, shell):
    assert "_QGEN_COMPLETE" in project.qgen("completion", shell).stdout


def test_watch_builds_again_when_the_spec_changes(project):
    watching = subprocess.Popen(
        [sys.executable, "-m", "qgen", "watch", "--interval", "0.05"],
        # whoever started the tests may ignore Ctrl-C, which is inherited
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        until(lambda: project.path("qgen.lock").exists())
        project.write("queue.toml", BROKEN)  # a mistake does not end it
        time.sleep(0.5)
        project.write("queue.toml", SPEC.replace('text = "str"', 'text = "int"'))
        until(lambda: "text: int" in project.read(JOB))
    finally:
        watching.send_signal(signal.SIGINT)
        said = watching.communicate(timeout=20)
    assert watching.returncode == 130 and "Traceback" not in said[1]


def until(true, seconds=30.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
