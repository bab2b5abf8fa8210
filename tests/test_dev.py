"""dev.py: usage, exit codes, and an environment that heals itself.

The environments here are stand-ins: making a real one takes half a minute.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def dev(tmp_path, monkeypatch):
    """The module, as if the project stood in an empty folder."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "requirements.lock").write_text("some==1")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "qgen-stamp")
    return module


@pytest.fixture
def made(dev, monkeypatch):
    """Every environment that dev.py makes; pip does nothing and succeeds."""
    made = []

    def create(folder, **how):
        made.append(folder)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").write_text("#!/bin/sh\nexit 0\n")
        (folder / "bin" / "python").chmod(0o755)

    monkeypatch.setattr(dev.venv, "create", create)
    return made


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["--help"]])
def test_an_unknown_command_prints_the_usage(arguments):
    command = [sys.executable, ROOT / "dev.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    for name in ("demo", "test", "check", "regen", "bench", "mutants", "matrix"):
        assert f"python3 dev.py {name}" in done.stderr


def test_a_failing_child_passes_its_exit_code_on(dev, monkeypatch):
    monkeypatch.setattr(dev, "ensure_environment", lambda: None)
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setitem(
        dev.COMMANDS, "demo", lambda args: dev.python("-c", "raise SystemExit(7)")
    )
    assert dev.main(["demo"]) == 7


def test_the_environment_is_made_once(dev, made):
    dev.ensure_environment()
    dev.ensure_environment()
    assert len(made) == 1


def test_a_half_made_environment_is_made_again(dev, made):
    """Killed while installing: the stamp, written last of all, is missing."""
    dev.ensure_environment()
    dev.STAMP.unlink()
    dev.ensure_environment()
    assert len(made) == 2


def test_a_broken_environment_is_made_again(dev, made):
    """Its Python was removed, as by an upgrade of the system's."""
    dev.ensure_environment()
    dev.PYTHON.unlink()
    dev.ensure_environment()
    assert len(made) == 2


def test_new_requirements_are_installed_over_the_old_ones(dev, made, monkeypatch):
    """Somebody else may be running tests in it: it is not taken away."""
    dev.ensure_environment()
    (dev.ROOT / "requirements.lock").write_text("other==1")
    commands = []
    monkeypatch.setattr(
        dev, "run", lambda command, **how: commands.append(command) or 0
    )
    dev.ensure_environment()
    dev.ensure_environment()
    assert len(made) == 1
    assert sum("install" in command for command in commands) == 1


def test_settings_of_tools_do_not_touch_the_environment(dev, made, monkeypatch):
    dev.ensure_environment()
    with (dev.ROOT / "pyproject.toml").open("a") as file:
        file.write("[tool.ruff]\nline-length = 88\n")
    commands = []
    monkeypatch.setattr(
        dev, "run", lambda command, **how: commands.append(command) or 0
    )
    dev.ensure_environment()
    assert not any("install" in command for command in commands)


def test_a_failed_installation_stops_with_its_code_and_leaves_no_stamp(
    dev, made, monkeypatch
):
    monkeypatch.setattr(dev, "run", lambda *args, **how: 3)
    with pytest.raises(SystemExit) as stopped:
        dev.ensure_environment()
    assert stopped.value.code == 3
    assert not dev.STAMP.exists()


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0], 0), ([0, 4], 4), ([1], 1)],
    ids=["both pass", "serial fails", "parallel fails"],
)
def test_serial_tests_run_afterwards_and_alone(dev, monkeypatch, codes, expected):
    (dev.ROOT / "tests").mkdir()
    (dev.ROOT / "tests" / "test_x.py").write_text("@pytest.mark.serial")
    calls = []

    def python(*args):
        calls.append(args)
        return codes[len(calls) - 1]

    monkeypatch.setattr(dev, "python", python)
    assert dev.main(["test"]) == expected
    assert len(calls) == len(codes)
    assert calls[0][-2:] == ("-m", "not serial") and "-n" in calls[0]
    assert all(call[-2:] == ("-m", "serial") for call in calls[1:])


def test_arguments_of_test_go_to_pytest_as_they_are(dev, monkeypatch):
    calls = []
    monkeypatch.setattr(dev, "python", lambda *args: calls.append(args) or 0)
    assert dev.main(["test", "tests/test_dev.py", "-x"]) == 0
    assert calls == [("-m", "pytest", "tests/test_dev.py", "-x")]


def test_matrix_runs_each_python_it_finds_in_its_own_environment(dev, monkeypatch):
    monkeypatch.setattr(
        dev, "find_python", {"3.11": "/a/python", "3.13": "/b/python"}.get
    )
    calls = []

    def run(command, *, env=None, quiet=False):
        calls.append((command[0], env["QGEN_VENV"], command[2:]))
        return 5 if command[0] == "/a/python" else 0

    monkeypatch.setattr(dev, "run", run)
    others = []
    monkeypatch.setattr(dev, "python", lambda *args: others.append(args) or 0)
    assert dev.main(["matrix", "-x"]) == 5
    assert others == [("tests/versions.py",)]
    assert calls == [
        ("/a/python", ".venv-3.11", ["test", "-x"]),
        ("/b/python", ".venv-3.13", ["test", "-x"]),
    ]


def test_ci_runs_what_the_readme_says():
    command = "python3 dev.py test"
    assert command in (ROOT / "README.md").read_text()
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith(f"exec {command}")


def test_the_lock_holds_versions_and_no_addresses():
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        assert line.startswith("#") or line.count("==") == 1, line
