"""A place for each store there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.stores import Place, params, placed


@pytest.fixture(params=params())
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place of each store in turn."""
    with placed(request.param, tmp_path) as made:
        yield made


@pytest.fixture(params=params("sqlite", "postgres", "redis"))
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place that other processes can open by its URL, of each store that has one."""
    with placed(request.param, tmp_path) as made:
        yield made
