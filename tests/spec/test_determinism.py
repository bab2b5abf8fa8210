"""The same spec gives the same answer wherever and whenever it is read."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
PROGRAM = """
import hashlib, sys
from qgen.diagnostics import printers
from qgen.diagnostics.catalogue import ALL
from qgen.front import analyse
from qgen.spec.examples import SMALLEST, WHOLE
digest = hashlib.sha256()
for data in [SMALLEST.encode(), WHOLE.encode(), *(c.spec() for c in ALL.values())]:
    model, found = analyse(data, "queue.toml")
    digest.update(repr(model).encode())
    for printer in printers.PRINTERS.values():
        digest.update(printer(found).encode())
print(digest.hexdigest())
"""


def answer(folder, **env):
    """The digest of every answer, in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SRC)} | env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_seeds_zones_locales_and_folders_change_nothing(tmp_path):
    first = answer(tmp_path, PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C")
    assert len(first.strip()) == len(hashlib.sha256().hexdigest())
    for seed, zone, locale in (
        ("2", "Australia/Lord_Howe", "C.UTF-8"),
        ("77", "America/St_Johns", "de_DE.UTF-8"),
    ):
        assert answer("/", PYTHONHASHSEED=seed, TZ=zone, LC_ALL=locale) == first
