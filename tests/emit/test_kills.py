"""A build that is killed, starved of disk or doubled leaves what the next one mends.

The kills are real: SIGKILL at a random moment.  QGEN_TEST_KILLS=1000 does many; the
seed is printed, and QGEN_TEST_SEED repeats a run.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from emit.projects import PACKAGE, SPEC, Project

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("QGEN_TEST_KILLS", "40"))
SEED = int(os.environ.get("QGEN_TEST_SEED", random.randrange(2**32)))
JOBS = 40
# The child imports everything first and says so: the kill falls into the build.
CHILD = """
import sys
from qgen.commands import build
from qgen import compile, format, render
sys.argv = ["qgen", "build"]
print("ready", flush=True)
sys.stdin.readline()
sys.exit(build.run("queue.toml", None, False))
"""

# Imports everything once, and runs each command that it is told in a fork of itself: a
# thousand builds need no thousand interpreters.  Prints its number, then its exit code.
SERVER = """
import os, sys
from qgen import compile, format, render
from qgen.__main__ import main
from qgen.commands import build, check
for command in iter(sys.stdin.readline, ""):
    pid = os.fork()
    if pid == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for each in range(3):
            os.dup2(nowhere, each)
        sys.argv = ["qgen", command.strip()]
        code = 3
        try:
            code = main()
        finally:
            os._exit(code)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Server:
    """qgen in a folder, each command a process of its own."""

    def __init__(self, folder, frozen):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": frozen},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def start(self, command):
        """Begin a command; the number of its process."""
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        """The exit code of the command that was begun."""
        return int(self.process.stdout.readline())

    def run(self, command):
        self.start(command)
        return self.end()


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """A copy of qgen, so that an edit of a template cannot meet a running test."""
    place = tmp_path_factory.mktemp("frozen")
    for name in ("src/qgen", "templates", "schema"):
        skip = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(ROOT / name, place / name, ignore=skip)
    return os.pathsep.join([str(place / "src"), *sys.path])


def spec(version: int) -> str:
    """One of two projects that share some jobs and differ in the rest."""
    jobs = "".join(
        f'\n[jobs.job_{n}.payload]\nf{version if n % 2 else 0} = "str?"\n'
        for n in range(version * 10, JOBS + version * 10)
    )
    return SPEC + jobs


def start(project, frozen):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        cwd=project.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": frozen},
    )
    assert child.stdout.readline() == b"ready\n"
    return child


def go(child):
    child.stdin.write(b"\n")
    child.stdin.flush()


def wanted(tmp_path, frozen, version):
    """The right tree of a version, built from nothing and undisturbed."""
    project = Project.at(tmp_path / f"right{version}", spec(version))
    with Server(project.root, frozen) as qgen:
        assert qgen.run("build") == 0
    return project.tree()


def ours(tree):
    """Without the handlers: they are written once, for whichever version came first."""
    return {name: data for name, data in tree.items() if "handlers" not in name}


def test_a_killed_build_is_completed_by_the_next(tmp_path, frozen):
    print("seed", SEED)
    chance = random.Random(SEED)
    right = {version: wanted(tmp_path, frozen, version) for version in (0, 1)}
    project = Project.at(tmp_path / "project", spec(0))
    with Server(project.root, frozen) as qgen:
        killed = kill_many(project, qgen, chance, right)
    print(killed, "of", KILLS, "builds were killed before their end")
    assert killed > KILLS / 3


def kill_many(project, qgen, chance, right):
    """Builds of one version after the other, each killed, completed and checked."""
    killed, longest = 0, 0.0
    for turn in range(KILLS):
        version = turn % 2
        project.write("queue.toml", spec(version))
        if longest == 0.0:
            began = time.perf_counter()
            assert qgen.run("build") == 0
            longest = time.perf_counter() - began
            continue
        pid = qgen.start("build")
        time.sleep(chance.uniform(0, longest * 1.2))
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it was faster
        killed += qgen.end() == -signal.SIGKILL
        for name, data in project.tree().items():
            # Each file is whole: the old one or the new one.
            old_or_new = [right[v].get(name) for v in (0, 1)]
            assert data in old_or_new or "handlers" in name or name == "queue.toml"
        if chance.random() < 0.3:  # now and then another build comes in between
            version = chance.randrange(2)
            project.write("queue.toml", spec(version))
        began = time.perf_counter()
        assert qgen.run("build") == 0
        longest = longest * 0.9 + (time.perf_counter() - began) * 0.1
        assert ours(project.tree()) == ours(right[version]), f"turn {turn}"
        assert qgen.run("check") == 0
        assert not (project.root / ".qgen" / "unfinished").exists()
    return killed


@pytest.mark.parametrize("moment", range(6))
def test_a_kill_between_two_files_is_told_and_mended(tmp_path, capsys, moment):
    """Die after the n-th rename: the tree is mixed, the journal says so."""
    project = Project.at(tmp_path / "project")
    done = project.qgen("--version")  # warm
    code = (
        "import os, signal, sys\n"
        "from qgen.commands import build\n"
        "from qgen.emit import write\n"
        "real, left = write._replace, [int(sys.argv[1])]\n"
        "def replace(source, target):\n"
        "    left[0] -= 1\n"
        "    left[0] < 0 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "    real(source, target)\n"
        "write._replace = replace\n"
        "build.run('queue.toml', None, False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(moment * 7)],
        cwd=project.root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL
    assert (project.root / ".qgen" / "unfinished").exists()
    # The job is removed before anybody built again: its file is not in any lock.
    project.write("queue.toml", SPEC.partition("\n[jobs.digest")[0])
    assert project.build() == 0
    assert "was interrupted" in capsys.readouterr().err
    assert not project.path(f"{PACKAGE}/jobs/digest.py").exists()
    assert project.check() == 0


@pytest.mark.parametrize(
    ("holder", "name"),
    [("format", "_write"), ("emit.write.Staging", "put")],
    ids=["proving", "staging"],
)
def test_a_full_disk_changes_nothing(tmp_path, holder, name):
    """A limit on the size of files stands in for the disk: the second write fails."""
    project = Project.at(tmp_path)
    assert project.build() == 0
    before = project.tree()
    project.write("queue.toml", spec(1))
    code = (
        "import resource, signal, sys\n"
        "from operator import attrgetter\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "import qgen.commands.build\n"
        "holder = attrgetter(sys.argv[1])(qgen)\n"
        "real, calls = getattr(holder, sys.argv[2]), []\n"
        "def limited(*arguments):\n"
        "    calls.append(arguments)\n"
        "    if len(calls) == 2:\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "    return real(*arguments)\n"
        "setattr(holder, sys.argv[2], limited)\n"
        "sys.argv = ['qgen', 'build']\n"
        "from qgen.cli import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, holder, name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2 and "cannot write" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    after = project.tree()
    assert {**after, "queue.toml": before["queue.toml"]} == before
    assert project.build() == 0 and project.check() == 0


def test_two_builds_at_once_wait_for_each_other(tmp_path, frozen):
    project = Project.at(tmp_path / "project", spec(1))
    right = wanted(tmp_path, frozen, 1)
    children = [start(project, frozen) for _ in range(3)]
    for child in children:
        go(child)
    for child in children:
        child.communicate()
        assert child.returncode == 0
    assert ours(project.tree()) == ours(right)
    assert project.qgen("check", PYTHONPATH=frozen).returncode == 0


def test_an_unwritable_folder_is_one_sentence(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    project = Project.at(tmp_path)
    os.chmod(tmp_path, 0o555)
    done = project.qgen("build")
    os.chmod(tmp_path, 0o755)
    assert done.returncode == 2 and done.stderr.startswith("qgen: cannot write")
