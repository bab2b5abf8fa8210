"""Packages for the engine's tests, on both dialects.

`make_package` serves tests that ask and look; `make` and `package` those that break
things: a Redis of their own, short times, handlers that write down what they do.
`engine` serves tests that call the engine's functions one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engine import faults, packages, units
from engine.packages import Package

import servers

MakePackage = Callable[..., Package]
Make = Callable[..., faults.Package]


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


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `faults.Package.api` sets in this process ends with the test."""
    for name in (faults.DATABASE, faults.REDIS):
        monkeypatch.setenv(name, "")


@pytest.fixture
def make(
    dialect: str,
    database_url: str,
    own_redis: servers.Redis,
    tmp_path: Path,
    clean_environment: None,
) -> Make:
    """Builds a package to break, from a spec and handlers, and migrates its database."""

    def made(
        spec: str = faults.QUICK + faults.JOBS,
        handlers: str = faults.HANDLERS,
        name: str | None = None,
        folder: str = "run",
    ) -> faults.Package:
        tree = faults.build(dialect, spec, handlers, name)
        return tree.at(database_url, own_redis.url, tmp_path / folder).migrate()

    return made


@pytest.fixture
def package(make: Make) -> faults.Package:
    """The usual package to break."""
    return make()


@pytest.fixture
def engine(
    dialect: str,
    database_url: str,
    redis_server: servers.Redis | servers.External,
    tmp_path: Path,
    clean_environment: None,
) -> Iterator[units.Engine]:
    """The package's functions, called in this process; no worker runs."""
    with units.engine(dialect, database_url, redis_server, tmp_path / "run") as made:
        yield made
