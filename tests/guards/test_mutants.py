"""The mutants of the engine fit it: `python dev.py mutants` runs them."""

import ast
import shutil
from pathlib import Path

import pytest
from mutants import run

ROOT = Path(__file__).parents[2]
MUTANTS = run.mutants()


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine") / "project"
    shutil.copytree(ROOT / "templates", folder / "templates")
    return folder


def test_there_are_enough():
    assert len(MUTANTS) >= 24


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_patch_applies(mutant, engine):
    assert run.apply(mutant.path, engine, "--check") == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_header_is_whole(mutant):
    assert 0 < len(mutant.guarantee) <= 100
    assert set(mutant.dialects) <= {"sqlite", "postgresql"}
    for test in mutant.tests:
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        known = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name.partition("[")[0] in known, test
