"""Fixtures of the whole suite: real servers, started at their first use.

A session's servers are one per pytest process, so under xdist each worker has its own.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
import shelf

import servers


def pytest_configure(config: pytest.Config) -> None:
    """A shelf for this run; the workers of xdist are given the one of their parent."""
    if not hasattr(config, "workerinput"):
        os.environ[shelf.SHELF] = tempfile.mkdtemp(prefix="qgen-shelf-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(shelf.SHELF), ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: at the end the others would wait for one of them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[servers.Redis | servers.External]:
    """A Redis for the whole session. Tests that stop or fill it use `own_redis`."""
    with servers.redis() as server:
        yield server


@pytest.fixture(scope="session")
def pg_server() -> Iterator[servers.Postgres | servers.External]:
    """A PostgreSQL for the whole session, without flushing to disk."""
    with servers.postgres() as server:
        yield server


@pytest.fixture
def pg_database(pg_server: servers.Postgres | servers.External) -> Iterator[str]:
    """The address of a new, empty database."""
    with servers.database(pg_server) as url:
        yield url


@pytest.fixture
def own_redis() -> Iterator[servers.Redis]:
    """A Redis of this test's own, to kill, freeze, fill and flush."""
    with servers.redis() as server:
        if not isinstance(server, servers.Redis):
            pytest.skip(f"{servers.REDIS_URL} is set: this test needs its own server")
        yield server


@pytest.fixture
def own_pg() -> Iterator[servers.Postgres]:
    """A PostgreSQL of this test's own, to kill, freeze and restart."""
    with servers.postgres() as server:
        if not isinstance(server, servers.Postgres):
            pytest.skip(f"{servers.PG_URL} is set: this test needs its own server")
        yield server


@pytest.fixture(autouse=True)
def no_stray_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test never meets a server that the user's environment happens to name."""
    for name in ("DATABASE_URL", "REDIS_URL"):
        if name in os.environ:
            monkeypatch.delenv(name)
