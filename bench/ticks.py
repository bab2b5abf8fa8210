"""The no-op handler's one act: say when it began.

Every worker process appends 8 bytes to one file; O_APPEND makes that atomic. The
folder comes from BENCH_FOLDER, so that the generated worker's handler, which knows
nothing of this harness's objects, can do the same.
"""

import asyncio
import os
import struct
import time
from pathlib import Path

SIZE = struct.calcsize("d")
SLEEP = float(os.environ.get("BENCH_SLEEP", "0"))
_file: int | None = None


def tick_file() -> Path:
    return Path(os.environ["BENCH_FOLDER"]) / "ticks"


def tick() -> None:
    global _file
    if _file is None:
        _file = os.open(tick_file(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(_file, struct.pack("d", time.time()))


async def handle() -> None:
    """What every system's handler does; BENCH_SLEEP (seconds) makes it a slow one."""
    tick()
    if SLEEP:
        await asyncio.sleep(SLEEP)


def work() -> None:
    """The same where functions are plain ones."""
    tick()
    if SLEEP:
        time.sleep(SLEEP)


def count(path: Path) -> int:
    """How many handlers have begun."""
    try:
        return path.stat().st_size // SIZE
    except FileNotFoundError:
        return 0


def read(path: Path) -> list[float]:
    """When they began, in order."""
    data = path.read_bytes()
    whole = data[: len(data) // SIZE * SIZE]
    return sorted(moment for (moment,) in struct.iter_unpack("d", whole))
