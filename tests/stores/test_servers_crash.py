"""kill -9 of a writer at random points: what a server acknowledged is there, and the next append is taken.

The server's own death is in `test_servers.py`.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.stores.crash import STEPS, kill_writers
from tests.stores.stores import Maker, pgbouncer, placed, postgres, redis

pytestmark = pytest.mark.server

LANES = 4
"""Databases that are written to at the same time, as a kill waits for a process to start."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("maker", "kills"),
    [
        pytest.param(postgres, 52, id="postgres"),
        pytest.param(redis, 24, id="redis"),
        pytest.param(pgbouncer, 24, id="pgbouncer"),
        # with the 400 of SQLite a thousand
        pytest.param(postgres, 240, id="postgres at size", marks=pytest.mark.long),
        pytest.param(redis, 200, id="redis at size", marks=pytest.mark.long),
        pytest.param(pgbouncer, 160, id="pgbouncer at size", marks=pytest.mark.long),
    ],
)
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, maker: Maker, kills: int) -> None:
    """At the start, in appends of every size, while indexing, erasing, closing and opening."""

    def lane(number: int) -> Counter[str]:
        with placed(maker, tmp_path) as place:
            return kill_writers(place, kills=kills // LANES, seed=number)

    with ThreadPoolExecutor(LANES) as pool:
        died = sum(pool.map(lane, range(LANES)), Counter[str]())
    assert died.total() == kills
    assert len(died) >= len(STEPS) - 2, "nearly every step was met"
