"""Packages for the engine's tests, on both dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import servers
from engine import packages
from engine.packages import Package

MakePackage = Callable[..., Package]


@pytest.fixture(params=["sqlite", "postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    """Each test runs on both."""
    return str(request.param)


@pytest.fixture
def database_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty record."""
    if dialect == "sqlite":
        return f"sqlite:///{tmp_path / 'record.db'}"
    return str(request.getfixturevalue("pg_database"))


@pytest.fixture
def make_package(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
) -> Iterator[MakePackage]:
    """``make_package(spec, handlers={module: text})``: built, its tables made."""
    made: list[Package] = []

    def make(
        spec: str, *, handlers: dict[str, str], redis_url: str = redis_server.url
    ) -> Package:
        built = packages.build(spec, dialect)
        package = Package(
            built,
            tmp_path,
            database_url=database_url,
            redis_url=redis_url,
            handlers=handlers,
        )
        made.append(package)
        package.json("migrate")
        return package

    yield make
    for package in made:
        package.close()
