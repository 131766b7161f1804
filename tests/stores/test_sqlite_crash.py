"""kill -9 of a writer, 400 times: what SQLite acknowledged is there, it opens, the next append works."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.stores.crash import STEPS, kill_writers
from tests.stores.stores import MAKERS, Maker, placed, sqlite_file

KILLS = 400
LANES = 4
"""Files that are written to at the same time, as a kill waits for a process to start."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("maker", "kills"),
    [
        pytest.param(sqlite_file, KILLS, id="plain"),
        pytest.param(MAKERS["sqlite-encrypted"], KILLS // 4, id="encrypted"),
    ],
)
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, maker: Maker, kills: int) -> None:
    """At the start, in appends of every size, while indexing, erasing, closing and opening."""

    def lane(number: int) -> Counter[str]:
        folder = tmp_path / str(number)
        folder.mkdir()
        with placed(maker, folder) as place:
            return kill_writers(place, kills=kills // LANES, seed=number)

    with ThreadPoolExecutor(LANES) as pool:
        died = sum(pool.map(lane, range(LANES)), Counter[str]())
    assert died.total() == kills
    assert set(died) == set(STEPS), "every step was met"
