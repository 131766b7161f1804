"""An append and a load of one size cost the same however long the session is.

Operations are lines run inside trimtab plus instructions run by SQLite's machine. Bytes are those given to
write calls by this process (Linux counts them) with the log emptied before and after: log and file, both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.complexity.counting_machine import operations_of
from trimtab.stores import AppendRequest, Event, LoadRequest, MemoryStore, SearchRequest, SQLiteStore, Store

SIZES = (1_000, 20_000)
SEARCHED_SIZES = (1_000, 100_000)
MOST_GROWTH = 1.2
"""Most times the costs at the smaller size that those at the larger may be (issue 4)."""

_BATCH = 500
_APPENDS = 300
_PAGE = 50
_IO = Path("/proc/self/io")


def _event(at: int) -> Event:
    """Make an event whose id grows with time, as those of sessions do: its index is written at its end."""
    text = f"message {at:07} " + "word " * 40
    return Event(id=f"e{at:012}", kind="message", time=float(at), data={"message": {"content": text}})


def _request(at: int, count: int) -> AppendRequest:
    events = [_event(at + more) for more in range(count)]
    return AppendRequest(session="s", expected_version=at, events=events)


def _fill(store: Store, size: int) -> None:
    for at in range(0, size, _BATCH):
        store.append(_request(at, _BATCH))


class Costs(NamedTuple):
    """What one append, and one load of a page, cost at a size."""

    append: int
    load: int
    load_ids: int
    written_bytes: int


class _Steps:
    """Counts the instructions of SQLite's machine."""

    def __init__(self, store: Store) -> None:
        self.count = 0
        if isinstance(store, SQLiteStore):
            assert store._connection is not None
            store._connection.set_progress_handler(self._step, 1)

    def _step(self) -> int:
        self.count += 1
        return 0

    def operations(self, call: Callable[[], object]) -> int:
        before = self.count
        lines = operations_of(lambda _counter: call()).lines
        return lines + self.count - before


def _costs(store: Store, size: int) -> Costs:
    _fill(store, size)
    steps = _Steps(store)
    written = _written(store, size) if isinstance(store, SQLiteStore) else 0
    version = store.load(LoadRequest(session="s", newest_first=True, limit=1))[0].version
    ids = tuple(f"e{at:012}" for at in range(size - _PAGE, size))
    return Costs(
        append=steps.operations(lambda: store.append(_request(version, 1))),
        load=steps.operations(lambda: store.load(LoadRequest(session="s", newest_first=True, limit=_PAGE))),
        load_ids=steps.operations(lambda: store.load(LoadRequest(session="s", ids=ids))),
        written_bytes=written,
    )


def _written(store: SQLiteStore, size: int) -> int:
    """Return the bytes written for one append, on the mean of many."""
    connection = store._connection
    assert connection is not None
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = _bytes_written()
    for at in range(size, size + _APPENDS):
        store.append(_request(at, 1))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (_bytes_written() - before) // _APPENDS


def _bytes_written() -> int:
    fields = dict(line.split(": ") for line in _IO.read_text(encoding="ascii").splitlines())
    return int(fields["wchar"])


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_the_length_of_a_session_costs_nothing(name: str, tmp_path: Path) -> None:
    """Neither an append, nor a page, nor events by their ids."""
    if name == "sqlite" and not _IO.exists():
        pytest.skip("this system does not count the bytes a process writes")
    costs: list[Costs] = []
    for size in SIZES:
        store = MemoryStore() if name == "memory" else SQLiteStore(tmp_path / f"{size}.db")
        costs.append(_costs(store, size))
        store.close()
    few, many = costs
    print(f"{name}: {few} -> {many}")
    for field, less, more in zip(Costs._fields, few, many, strict=True):
        assert more <= MOST_GROWTH * less, f"{field}: {less} at {SIZES[0]}, {more} at {SIZES[1]}"
    assert few.append > 0
    assert (few.written_bytes > 0) is (name == "sqlite")


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param("memory", marks=pytest.mark.long), "sqlite"])
def test_the_first_search_costs_what_it_finds(name: str, tmp_path: Path) -> None:
    """One event of a thousand or of a hundred thousand, and a word that all of them have (issue 13)."""
    counted: list[list[int]] = []
    for size in SEARCHED_SIZES:
        store = MemoryStore() if name == "memory" else SQLiteStore(tmp_path / f"{size}.db")
        _fill(store, size)
        costs = []
        for terms, versions in ((("0000007",), [8, 9, 7]), (("word",), [size, size - 1, size - 2])):
            found: list[Event] = []
            request = SearchRequest(session="s", terms=terms, limit=3)
            costs.append(_Steps(store).operations(partial(_search, store, request, found)))
            assert [event.version for event in found] == versions
        counted.append(costs)
        store.close()
    print(f"{name}: {counted}")
    for less, more in zip(*counted, strict=True):
        assert more <= 1.3 * less, counted


def _search(store: Store, request: SearchRequest, found: list[Event]) -> None:
    found += store.search(request)


def test_a_search_does_not_make_appends_dearer(tmp_path: Path) -> None:
    """The index is filled as the session grows, whether or not somebody has searched it."""
    counted: list[int] = []
    for searched in (False, True):
        with SQLiteStore(tmp_path / f"{searched}.db") as store:
            _fill(store, 1_000)
            if searched:
                assert len(store.search(SearchRequest(session="s", terms=("word",), limit=3))) == 3
            counted.append(_Steps(store).operations(partial(store.append, _request(1_000, 1))))
    assert counted[0] == counted[1]
