"""Tables that are not what the package needs, and a file that is not the record any more."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine import faults
from engine.conftest import Make
from engine.faults import Package
from engine.units import Engine


def path_of(package: Package) -> Path:
    return Path(package.database_url.removeprefix("sqlite:///"))


def remove(package: Package) -> None:
    """The file and what stands beside it."""
    for end in ("", "-wal", "-shm"):
        Path(f"{path_of(package)}{end}").unlink(missing_ok=True)


def test_a_worker_does_not_start_on_drifted_tables(package: Package) -> None:
    """It would end in the middle of its work, at the statement that meets the column."""
    package.sql("ALTER TABLE jobs RENAME COLUMN trace_parent TO trace")
    done = package.run("worker", "--burst")
    assert done.returncode == 2
    said = "jobs.trace_parent: expected text, found no such column"
    assert said in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert package.boots() == []


@faults.on("sqlite")
def test_nothing_is_accepted_into_a_removed_file(engine: Engine) -> None:
    """The connection is open still, and would write where nobody reads."""
    api, errors = engine.api, engine.part("errors")
    api.enqueue(api.Work(n=1))
    remove(engine.package)
    with pytest.raises(errors.TablesMissing, match="does not exist"):
        api.enqueue(api.Work(n=2))
    assert not path_of(engine.package).exists()


@faults.on("sqlite")
def test_a_replaced_file_is_opened(engine: Engine) -> None:
    api = engine.api
    api.enqueue(api.Work(n=1))
    path = path_of(engine.package)
    aside = path.with_name("aside.db")
    remove(engine.package)
    engine.part("migrate").upgrade()
    path.rename(aside)
    aside.rename(path)
    made = api.enqueue(api.Work(n=2))
    assert [row["id"] for row in engine.package.rows()] == [made.id]


@faults.on("sqlite")
def test_a_worker_on_a_file_that_was_replaced(make: Make) -> None:
    """The new file does not know it: it ends, and the next one serves the new file."""
    package = make()
    api = package.api
    with package.worker() as worker:
        package.in_state(api.enqueue(api.Work(n=1)).id, "completed")
        remove(package)
        package.migrate()
        assert worker.exit_code() == 1
        assert "declared dead" in worker.log()
    made = api.enqueue(api.Work(n=2))
    with package.worker():
        package.in_state(made.id, "completed")
