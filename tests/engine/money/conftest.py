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
