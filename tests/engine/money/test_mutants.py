"""Every line of the money code that is broken on purpose is missed by its test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine.money.mutants import MUTANTS, VARIABLE

BOOKS = Path(__file__).with_name("test_books.py")
ROOT = Path(__file__).parents[3]


def run(killer: str, **env: str) -> subprocess.CompletedProcess[str]:
    name = killer if "[" in killer else f"{killer}[sqlite]"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", f"{BOOKS}::{name}"],
        cwd=ROOT,
        env=os.environ | env,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_a_mutant_is_killed(number: int) -> None:
    killed = run(MUTANTS[number].killer, **{VARIABLE: str(number)})
    assert killed.returncode == 1, f"{MUTANTS[number]}\n{killed.stdout}"
    # ... by the test, not by a mutant that could not be made or imported
    assert "AssertionError: (Mutant" not in killed.stdout
    assert "ERROR at setup" not in killed.stdout, killed.stdout
