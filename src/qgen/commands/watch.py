"""``qgen watch``: build again whenever the spec changes, until interrupted."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from typing import Any

from . import build
from .stop import Stop


def run(spec: str, interval: float, **options: Any) -> int:
    """Look at the spec every ``interval`` seconds; a finding does not end the watch."""
    gc.enable()
    seen: object = None
    while True:
        now = _state(Path(spec))
        if now != seen:
            seen = now
            try:
                build.run(spec, force=False, **options)
            except Stop as error:
                print(f"qgen: {error}", file=sys.stderr)
            sys.stdout.flush()
        time.sleep(interval)


def _state(spec: Path) -> object:
    """What changes with the file; None while it is away."""
    try:
        found = spec.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
