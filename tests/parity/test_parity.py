"""One suite, every backend: the same behaviours on each cell of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from cells import Kind
from engine import faults
from parity import behaviours, flow, money, record
from parity.stage import Stage
from parity.table import BEHAVIOURS, cells

import servers

# Each module adds its own when it is imported.
assert behaviours and flow and money and record
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
    BEHAVIOURS[name](Stage(kind, dialect, url, own_redis, tmp_path))
