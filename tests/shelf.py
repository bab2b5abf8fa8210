"""What many tests build alike is built once for all processes of a run of pytest.

A shelf is a folder of built trees, each under the digest of what it was built from.  It
belongs to one run: an engine that was changed in between never meets an old tree.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

SHELF: Final = "QGEN_TEST_SHELF"


def digest(*words: str) -> str:
    """Eight hex digits that stand for these texts; may be part of a module's name."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]


def copy(key: str, make: Callable[[Path], object], folder: Path) -> None:
    """Copy what `make` makes in an empty folder to `folder`, which must not exist.

    Made at the first call in any process, others wait.  Its modules are compiled, and
    the copies' times are those of the originals: no process compiles them again.
    """
    kept = Path(os.environ[SHELF]) / key
    whole = kept.with_suffix(".whole")
    with open(kept.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            shutil.rmtree(kept, ignore_errors=True)  # of one that failed half-way
            kept.mkdir()
            make(kept)
            compileall.compile_dir(kept, quiet=1)
            whole.touch()
    shutil.copytree(kept, folder)
