"""Every folder of tests/cases: a spec, the arguments, what is printed about it."""

import json
from pathlib import Path

import pytest

from qgen.diagnostics import printers
from qgen.front import analyse

CASES = Path(__file__).parents[1] / "cases"


def cases() -> list[Path]:
    """The folders that say what is printed; others say what is built."""
    return sorted(path.parent for path in CASES.glob("*/expected.stderr"))


def test_there_are_sixty_broken_specs():
    assert len(cases()) >= 60


@pytest.mark.parametrize("case", cases(), ids=lambda path: path.name)
def test_case(case):
    args = json.loads((case / "args.json").read_text())
    target = args[args.index("--target") + 1] if "--target" in args else None
    data = (case / "queue.toml").read_bytes()
    model, found = analyse(data, "queue.toml", target)
    expected = (case / "expected.stderr").read_text(encoding="utf-8")
    assert printers.text(found) == expected
    assert (model is None) == any(each.is_error for each in found)
