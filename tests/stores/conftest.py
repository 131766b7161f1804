"""A place for each store there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.served import Served, served_postgres, served_redis
from tests.stores.stores import Place, params, placed


@pytest.fixture(params=params())
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place of each store in turn."""
    with placed(request.param, tmp_path) as made:
        yield made


@pytest.fixture(params=params("memory", "sqlite", "postgres", "redis"))
def plain_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place of each store in turn that is not encrypted."""
    with placed(request.param, tmp_path) as made:
        yield made


@pytest.fixture(
    params=params("sqlite", "postgres", "redis", "sqlite-encrypted", "postgres-encrypted", "redis-encrypted")
)
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place that other processes can open by its URL, of each store that has one."""
    with placed(request.param, tmp_path) as made:
        yield made


@pytest.fixture(
    params=[
        pytest.param(served_postgres, id="postgres", marks=pytest.mark.server),
        pytest.param(served_redis, id="redis", marks=pytest.mark.server),
    ]
)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """Give a database of each server in turn, for tests that break something."""
    with request.param() as made:
        yield made


@pytest.fixture
def on_postgres() -> Iterator[Served]:
    """Give a database of PostgreSQL; a test that takes it is marked `server`."""
    with served_postgres() as made:
        yield made


@pytest.fixture
def on_redis() -> Iterator[Served]:
    """Give an empty Redis; a test that takes it is marked `server`."""
    with served_redis() as made:
        yield made


_NEED_A_SERVER = {"on_postgres", "on_redis", "own_redis", "cluster"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that takes a server; of those that take all stores in turn, the parameter is marked."""
    for item in items:
        if _NEED_A_SERVER & set(getattr(item, "fixturenames", ())):
            item.add_marker("server")
