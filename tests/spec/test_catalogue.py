"""The catalogue: every code once, in its range, with an example that fires it."""

import pytest

from qgen.diagnostics.catalogue import (
    ALL,
    KINDS,
    approved,
    codes_of,
    files,
    later,
    waiting,
)
from qgen.diagnostics.page import explanation
from qgen.front import analyse

RANGES = {"text": 0, "keys": 1, "values": 2, "names": 3, "relations": 4, "later": 8}
ON_DISK = [*codes_of(files), *codes_of(approved), *codes_of(waiting)]
EXAMPLES = [code for code in ALL.values() if code not in ON_DISK]
# Beside what it shows, an example may draw warnings and "not built yet".
BESIDE = {code.code for code in ALL.values() if code.severity == "warning"}
BESIDE |= {code.code for code in codes_of(later)}


def test_each_code_is_there_once_and_in_its_range():
    codes = [code.code for _, module in KINDS for code in codes_of(module)]
    assert len(codes) == len(set(codes)) == len(ALL)
    for _, module in KINDS:
        for code in codes_of(module):
            kind = module.__name__.rpartition(".")[2]
            assert code.code[2] == str(RANGES.get(kind, 9)), code
            assert code.title and code.why.endswith(".")


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.code)
def test_its_example_fires_it_and_nothing_else(code):
    model, found = analyse(code.spec(), "queue.toml", code.target)
    drawn = {each.code for each in found}
    assert code.code in drawn
    assert drawn - {code.code} <= BESIDE
    assert (model is None) == any(each.is_error for each in found)


@pytest.mark.parametrize("code", ALL.values(), ids=lambda code: code.code)
def test_it_can_be_explained(code):
    text = explanation(code)
    assert text.startswith(code.code) and text.endswith("\n")
    assert text.isprintable() or max(map(len, text.splitlines())) <= 100
