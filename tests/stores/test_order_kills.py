"""kill -9 during an export, a deletion, an expiry or a rotation: nothing is half, and receipts are true.

TRIMTAB_TEST_KILLS=20 kills 20 times in each case, 540 in all, in place of the seven of `make test-long`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stores.order_kills import CHECKS, fill, keep, kill_orders
from tests.stores.stores import MAKERS, SERVERS, placed

KILLS = int(os.environ.get("TRIMTAB_TEST_KILLS", "7"))
"""In each case; 190 in all, and in a third of them, as CI runs, about 60."""

STORES = ("sqlite", "postgres", "redis", "sqlite-encrypted", "postgres-encrypted", "redis-encrypted")
CASES = [
    (order, store)
    for order in CHECKS
    for store in STORES
    if order != "rotate" or store.endswith("-encrypted")
]


def _cases(*cases: tuple[str, str]) -> list[object]:
    marks = {name: pytest.mark.server for name in SERVERS}
    return [
        pytest.param(order, store, id=f"{order}-{store}".replace(" ", "-"), marks=marks.get(store, ()))
        for order, store in cases
    ]


def _kill(order: str, store: str, folder: Path, kills: int) -> str:
    with placed(MAKERS[store], folder) as place:
        whole = fill(place, 20 if order == "rotate" else 130)
        died = kill_orders(keep(place, folder), whole, order, folder, kills=kills, seed=len(order + store))
    assert died.inside == kills
    return str(died)


@pytest.mark.parametrize(
    ("order", "store"),
    _cases(("delete owner", "sqlite"), ("expire", "redis-encrypted"), ("rotate", "postgres-encrypted")),
)
def test_a_killed_order_leaves_nothing_half(order: str, store: str, tmp_path: Path) -> None:
    """A few of the kills of the test beside this one."""
    _kill(order, store, tmp_path, 2)


@pytest.mark.long
@pytest.mark.parametrize(("order", "store"), _cases(*CASES))
def test_an_order_that_is_killed_anywhere_is_whole_when_it_is_asked_again(
    order: str, store: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each session is as it was or gone, in lists, search and views; the next call does the rest."""
    record_property("kills", f"{order}, {store}: {_kill(order, store, tmp_path, KILLS)}")
