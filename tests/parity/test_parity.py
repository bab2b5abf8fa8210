"""One suite, every backend: the same behaviours on each cell of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from cells import Kind
from engine import faults
from parity.behaviours import BEHAVIOURS
from parity.stage import HANDLERS, PATIENT, SPEC, Stage
from parity.table import cells

import servers

CELLS = list(cells())


@pytest.mark.parametrize(
    ("name", "kind", "dialect"),
    CELLS,
    ids=[f"{name}-{kind.name}-{dialect}" for name, kind, dialect in CELLS],
)
def test_parity(
    name: str,
    kind: Kind,
    dialect: str,
    request: pytest.FixtureRequest,
    own_redis: servers.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """See the behaviour's own docstring."""
    for variable in (faults.DATABASE, faults.REDIS):
        monkeypatch.setenv(variable, "")  # what `Package.api` sets ends with the test
    url = f"sqlite:///{tmp_path / 'record.db'}"
    if dialect == "postgresql":
        url = str(request.getfixturevalue("pg_database"))
    package, patient = (
        faults.build(dialect, spec, HANDLERS, kind=kind).at(
            url, own_redis.url, tmp_path / "run"
        )
        for spec in (SPEC, PATIENT)
    )
    package.env[f"{package.name.upper()}_SPOOL"] = str(tmp_path / "spool")
    stage = Stage(kind, package.migrate(), patient, own_redis, tmp_path)
    BEHAVIOURS[name](stage)
