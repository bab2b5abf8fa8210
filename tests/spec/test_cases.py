"""Every folder of tests/cases: a spec, the arguments, what is printed about it.

A new case is a new folder: queue.toml, args.json (the command line) and
expected.stderr, written by hand from what the language says.
"""

import json
import shutil
from pathlib import Path

import pytest

from qgen.cli import main
from qgen.diagnostics import printers
from qgen.front import analyse

CASES = Path(__file__).parents[1] / "cases"


def cases() -> list[Path]:
    """The folders that say what is printed; others say what is built."""
    return sorted(path.parent for path in CASES.glob("*/expected.stderr"))


def expected(case: Path) -> str:
    """What the case says, to the byte."""
    return (case / "expected.stderr").read_bytes().decode()


def broken() -> list[Path]:
    """The cases that stop a build; the others only warn."""
    return [case for case in cases() if ": error[QG" in expected(case)]


def arguments(case: Path) -> list[str]:
    """The command line."""
    return json.loads((case / "args.json").read_text("utf-8"))


def test_there_are_sixty_broken_specs():
    assert len(broken()) >= 60


@pytest.mark.parametrize("case", cases(), ids=lambda path: path.name)
def test_the_front_says_it(case):
    args = arguments(case)
    target = args[args.index("--target") + 1] if "--target" in args else None
    data = (case / "queue.toml").read_bytes()
    model, found = analyse(data, "queue.toml", target)
    assert printers.text(found) == expected(case)
    assert (model is None) == (case in broken())


@pytest.mark.parametrize("case", broken(), ids=lambda path: path.name)
def test_the_command_line_says_it(case, tmp_path, monkeypatch, capsys):
    """Nothing but the diagnostics, exit code 1, and nothing written."""
    shutil.copy(case / "queue.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["qgen", *arguments(case)])
    assert main() == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", expected(case))
    assert [path.name for path in tmp_path.iterdir()] == ["queue.toml"]
