"""The mutants of the engine fit it: `python dev.py mutants` runs them."""

import shutil
import subprocess
import sys
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


def test_what_they_name_is_collected():
    """With their parameters: a test that is not found kills nothing."""
    named = sorted({test for mutant in MUTANTS for test in mutant.tests})
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *named]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
