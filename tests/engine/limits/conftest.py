"""`desk`: the package with every limit, its functions called in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engine import units
from engine.limits.desk import SPEC, Desk

import servers


@pytest.fixture
def desk(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> Iterator[Desk]:
    """No worker runs: a test claims, ends and dispatches itself."""
    run = tmp_path / "run"
    with units.engine(dialect, database_url, redis_server, run, SPEC) as made:
        yield Desk(made)
