"""Reports that the record did not take in time: files, until a sweep books them.

A file is written before the process may end and removed after its report is committed;
reading one twice does nothing, so every worker on the machine may read them all.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from .calls import Report
from .registry import PROJECT

log = logging.getLogger(__name__)

ENV: Final = f"{PROJECT.name.upper()}_SPOOL"


def folder() -> Path:
    """Where the files are: the variable's folder, or one in the working folder."""
    return Path(os.environ.get(ENV) or f".{PROJECT.name}-spool")


def keep(report: Report) -> bool:
    """Writes a report to disk, for its owner's eyes; False if that fails too."""
    place = folder()
    name = place / f"{report.call}.json"
    part = place / f".{report.call}.{os.getpid()}"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(file, "w", encoding="utf-8") as text:
            json.dump(asdict(report), text)
            text.flush()
            os.fsync(text.fileno())
        os.replace(part, name)
        directory = os.open(place, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        log.error(
            "job %s: its report is neither in the record nor in %s: %s",
            report.job_id,
            place,
            error,
        )
        return False
    log.warning("job %s: its report waits in %s", report.job_id, name)
    return True


def drop(call: str) -> None:
    """Forgets a report that is in the record."""
    (folder() / f"{call}.json").unlink(missing_ok=True)


def set_aside(call: str) -> None:
    """Keeps a report that this record does not know out of the sweep's way."""
    name = folder() / f"{call}.json"
    try:
        os.replace(name, name.with_suffix(".strange"))
    except FileNotFoundError:
        pass  # another process was first


def reports() -> Iterator[Report]:
    """Every report in the folder; what cannot be read is set aside."""
    for name in sorted(folder().glob("*.json")):
        try:
            yield Report(**json.loads(name.read_text("utf-8")))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError) as error:
            log.error("spool: %s cannot be read: %s", name, error)
            set_aside(name.stem)
