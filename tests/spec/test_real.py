"""Specs of real projects: they build, and what they cannot say yet is refused by code."""

import re
from pathlib import Path

import pytest

from qgen.front import analyse

SPECS = sorted((Path(__file__).parents[2] / "examples" / "specs").glob("*.toml"))
LATER = re.compile(r"^# (.+) # (QG8\d\d)$")
COMMENTED = re.compile(r"^# (\[\w+(?:\.\w+)*\]|\w+ = .+)$")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_it_builds(path):
    model, found = analyse(path.read_bytes(), path.name)
    assert model is not None, found
    assert {each.code for each in found} <= {"QG404", "QG426", "QG441"}


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_what_stands_in_comments_is_refused_by_its_code(path):
    """Every comment that is a key or table, made one, draws what it says and no more."""
    lines, codes = [], []
    for line in path.read_text("utf-8").splitlines():
        if match := LATER.match(line):
            line = match[1]
            codes.append((len(lines) + 1, match[2]))
        elif match := COMMENTED.match(line):
            line = match[1]
        lines.append(line)
    model, found = analyse(("\n".join(lines) + "\n").encode(), path.name)
    errors = [(each.place.line, each.code) for each in found if each.is_error]
    assert (model is None) == bool(codes)
    assert errors == codes


def test_there_are_five():
    assert len(SPECS) == 5
