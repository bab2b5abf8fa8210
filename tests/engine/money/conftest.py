"""A package that spends, and its provider, on both dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cells import CHOSEN, Kind
from engine import faults
from engine.money import shop
from engine.money.shop import Provider

import servers

Shop = Callable[..., faults.Package]


@pytest.fixture
def bill(tmp_path: Path) -> Iterator[Provider]:
    """A provider that takes no keys."""
    with shop.provider(tmp_path / "provider") as found:
        yield found


@pytest.fixture
def keyed_bill(tmp_path: Path) -> Iterator[Provider]:
    """A provider that bills a key once."""
    with shop.provider(tmp_path / "keyed", keyed=True) as found:
        yield found


@pytest.fixture
def open_shop(
    dialect: str,
    database_url: str,
    own_redis: servers.Redis,
    tmp_path: Path,
    clean_environment: None,
) -> Shop:
    """``open_shop(spec, provider)``: a package to break, its tables made."""

    def opened(
        spec: str, provider: Provider, folder: str = "run", kind: Kind = CHOSEN
    ) -> faults.Package:
        text = faults.QUICK + spec
        tree = faults.build(dialect, text, shop.HANDLERS, kind=kind)
        package = tree.at(database_url, own_redis.url, tmp_path / folder)
        package.env["QGEN_TEST_PROVIDER"] = provider.port
        package.env[f"{tree.name.upper()}_SPOOL"] = str(tmp_path / folder / "spool")
        return package.migrate()

    return opened


@pytest.fixture
def killable(
    dialect: str, request: pytest.FixtureRequest
) -> Iterator[servers.Postgres | None]:
    """The PostgreSQL of this test alone; None on SQLite."""
    found = request.getfixturevalue("own_pg") if dialect == "postgresql" else None
    yield found


@pytest.fixture
def own_database_url(
    dialect: str, killable: servers.Postgres | None, tmp_path: Path
) -> Iterator[str]:
    """A database that a test may take away: of `killable`, or a file."""
    if killable is None:
        yield f"sqlite:///{tmp_path / 'record.db'}"
        return
    with servers.database(killable) as url:
        yield url
