"""Disks that are full, files that are damaged or barred: a typed error that says what to do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import trimtab
from trimtab.errors import CorruptSessionError, StoreError, StoreUnavailableError
from trimtab.stores import (
    AppendRequest,
    Event,
    LoadRequest,
    MemoryStore,
    SearchRequest,
    SQLiteStore,
    copy_session,
)


def _event(at: int, chars: int = 100) -> Event:
    return Event(id=f"e{at}", kind="message", time=float(at), data={"message": {"content": "x" * chars}})


def _append(store: SQLiteStore, at: int, chars: int = 100) -> int:
    request = AppendRequest(session="s", expected_version=at, events=[_event(at, chars)])
    return store.append(request).version


def _versions(store: SQLiteStore) -> list[int]:
    return [event.version for event in store.load(LoadRequest(session="s"))]


def _filled(path: Path, count: int = 40) -> None:
    with SQLiteStore(path) as store:
        for at in range(count):
            _append(store, at, 2_000)


# -- a full disk


def test_a_database_that_cannot_grow_loses_nothing_it_has(tmp_path: Path) -> None:
    """SQLite's own limit of pages stands for the disk; with room again the same append is stored."""
    store = SQLiteStore(tmp_path / "a.db")
    _append(store, 0)
    connection = store._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 20")
    with pytest.raises(StoreUnavailableError, match="full") as caught:
        _fill_up(store)
    assert isinstance(caught.value.__cause__, sqlite3.Error)
    version = len(_versions(store))
    assert 1 < version < 100
    assert _versions(store) == list(range(1, version + 1))
    assert _append(store, version, 5_000) == version + 1
    store.close()


def _fill_up(store: SQLiteStore) -> None:
    for at in range(1, 100):
        _append(store, at, 5_000)


_LIMITED = """
import resource, sys
from trimtab.errors import StoreUnavailableError
from trimtab.stores import AppendRequest, Event, LoadRequest, SQLiteStore
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SQLiteStore(sys.argv[1])
store.sessions()
version = 0
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
def append():
    event = Event(id=f"e{version}", kind="note", time=0.0, data={"text": "x" * 9_000})
    return store.append(AppendRequest(session="s", expected_version=version, events=[event])).version
try:
    while True:
        version = append()
except StoreUnavailableError as error:
    print(type(error).__name__, version)
assert len(store.load(LoadRequest(session="s"))) == version
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
version = append()
assert len(store.load(LoadRequest(session="s"))) == version
store.close()
print("stored", version)
"""


def test_a_write_that_the_system_refuses_is_not_stored(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: the log cannot grow, then it can."""
    path = tmp_path / "a.db"
    environment = {**os.environ, "PYTHONPATH": str(Path(trimtab.__file__).parents[1])}
    command = [sys.executable, "-c", _LIMITED, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    kind, refused_at, _, stored = run.stdout.split()
    assert kind == "StoreUnavailableError"
    assert int(stored) == int(refused_at) + 1 > 2
    with SQLiteStore(path) as store:
        assert _versions(store) == list(range(1, int(stored) + 1))


# -- damaged files


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _no_database(path: Path) -> None:
    path.write_text("This is a letter, and no database at all. " * 400, encoding="utf-8")


def _overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4_096:] = b"\xa5" * (len(content) - 4_096)
    path.write_bytes(content)


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize("damage", [_cut, _no_database, _overwritten, _cut_short])
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Reading, writing and searching say so; nothing is written over what may be rescued."""
    path = tmp_path / "a.db"
    _filled(path)
    damage(path)
    before = path.read_bytes()
    store = SQLiteStore(path)
    for call in (
        lambda: _versions(store),
        lambda: store.search(SearchRequest(session="s", terms=("x" * 64,), limit=1)),
        lambda: _append(store, 40),
    ):
        with pytest.raises(CorruptSessionError, match=r"a\.db.*backup"):
            call()
    store.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE trimtab_erasure SET asked = 'x'",
        "UPDATE trimtab_erasure SET done = '{}'",
        "DELETE FROM trimtab_erasure",
        "DROP TABLE trimtab_erasure",
        # SQLite quotes what is damaged, and then its own words are no text
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = CAST(x'8a' AS TEXT), sql = 'x'",
    ],
)
def test_a_damaged_table_of_ours_is_named(tmp_path: Path, damage: str) -> None:
    """Whatever stands where a number should is no error of Python's, in reading and in writing."""
    path = tmp_path / "a.db"
    _filled(path, 5)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(damage)
    for call in (lambda: _versions(store), lambda: _append(store, 5), lambda: store.delete("s")):
        with SQLiteStore(path) as store, pytest.raises(StoreError, match=r"a\.db"):
            call()


def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    """As SQLite sees it: somebody made the file with the right rights beforehand."""
    path = tmp_path / "a.db"
    path.touch()
    with SQLiteStore(path) as store:
        assert _append(store, 0) == 1


# -- rows changed by hand

_EDITS: dict[str, tuple[str, int | None]] = {
    "body": ("UPDATE trimtab_events SET body = replace(body, 'xxx', 'yyy') WHERE version = 3", 3),
    "no JSON": ("UPDATE trimtab_events SET body = 'x' WHERE version = 3", 3),
    "other JSON": ("UPDATE trimtab_events SET body = '[]' WHERE version = 3", 3),
    "id": ("UPDATE trimtab_events SET id = 'other' WHERE version = 3", 3),
    "kind": ("UPDATE trimtab_events SET kind = 'note' WHERE version = 3", 3),
    "time": ("UPDATE trimtab_events SET time = 99.5 WHERE version = 3", 3),
    "seal": ("UPDATE trimtab_events SET seal = '' WHERE version = 3", 3),
    "bytes": ("UPDATE trimtab_events SET body = x'ff' WHERE version = 3", 3),
    "bytes in the id": ("UPDATE trimtab_events SET id = x'ff' WHERE version = 3", 3),
    "nested": (
        "UPDATE trimtab_events SET body = replace(hex(zeroblob(45000)), '0', '[') WHERE version = 3",
        3,
    ),
    "missing": ("DELETE FROM trimtab_events WHERE version = 3", 3),
    "first missing": ("DELETE FROM trimtab_events WHERE version = 1", 1),
    "last missing": ("DELETE FROM trimtab_events WHERE version = 5", 5),
    "version": ("UPDATE trimtab_events SET version = 6 WHERE version = 3", 6),
    "session": ("UPDATE trimtab_events SET session = 't' WHERE version = 3", 3),
    # SQLite gives no row at all then, so that it is not known which one it was.
    "text that is not valid": (
        "UPDATE trimtab_events SET kind = CAST(x'ff' AS TEXT) WHERE version = 3",
        None,
    ),
}
"""What somebody may do with the sqlite3 command, and the event that the error names."""


@pytest.mark.parametrize(("edit", "version"), _EDITS.values(), ids=_EDITS.keys())
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_row_changed_by_hand_is_found(
    tmp_path: Path, edit: str, version: int | None, newest_first: bool
) -> None:
    """Whatever was changed; the error names session and event."""
    path = tmp_path / "a.db"
    _filled(path, 5)
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(edit).rowcount == 1
    with SQLiteStore(path) as store:
        with pytest.raises(CorruptSessionError) as caught:
            store.load(LoadRequest(session="s", newest_first=newest_first))
        assert (caught.value.session, caught.value.version) == ("s" if version else "", version)


@pytest.mark.parametrize("kept", [0, 40, 240])
def test_a_search_of_a_session_without_its_end_ends(tmp_path: Path, kept: int) -> None:
    """Its events are indexed batch by batch, and the next batch never comes."""
    path = tmp_path / "a.db"
    _filled(path, 450)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM trimtab_events WHERE version > ?", (kept,))
        connection.execute("DELETE FROM trimtab_terms")
        connection.execute("DELETE FROM trimtab_indexed")
    with SQLiteStore(path) as store:
        with pytest.raises(CorruptSessionError, match=f"event {kept + 1} is missing") as caught:
            store.search(SearchRequest(session="s", terms=("x",), limit=5))
        assert (caught.value.session, caught.value.version) == ("s", kept + 1)


def test_what_is_before_a_damaged_event_can_be_saved(tmp_path: Path) -> None:
    """As the error says: with copy_session(…, before=…)."""
    path = tmp_path / "a.db"
    _filled(path, 5)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(_EDITS["body"][0])
    with SQLiteStore(path) as store:
        saved = MemoryStore()
        with pytest.raises(CorruptSessionError, match=r"copy_session\(…, before=…\)") as caught:
            copy_session(store, saved, "s")
        assert saved.sessions() == []
        assert copy_session(store, saved, "s", before=caught.value.version) == 2


def test_a_forgotten_head_is_found_by_the_next_append(tmp_path: Path) -> None:
    """The record of where a session ends was removed: nothing is written over its events."""
    path = tmp_path / "a.db"
    _filled(path, 3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM trimtab_sessions")
    with SQLiteStore(path) as store, pytest.raises(CorruptSessionError, match="version 0"):
        store.append(AppendRequest(session="s", expected_version=0, events=[_event(9)]))


# -- places that are barred


@pytest.mark.parametrize(
    "damage", ["UPDATE trimtab_indexed SET version = 'x'", "UPDATE trimtab_terms SET often = 'x'"]
)
def test_a_damaged_index_is_named_and_the_events_can_be_saved(tmp_path: Path, damage: str) -> None:
    """A number that is none is no error of Python's."""
    path = tmp_path / "chats.db"
    events = [
        Event(id=f"e{at}", kind="message", time=0.0, data={"message": {"role": "user", "content": "tea"}})
        for at in range(250)
    ]
    with SQLiteStore(path) as store:
        store.append(AppendRequest(session="s", expected_version=0, events=events))
        ask = SearchRequest(session="s", terms=("tea",), limit=3)
        found = store.search(ask)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with SQLiteStore(path) as store, SQLiteStore(":memory:") as other:
        with pytest.raises(CorruptSessionError, match="the index of its words is damaged"):
            store.search(ask)
        copy_session(store, other, "s")
        assert [event.version for event in other.search(ask)] == [event.version for event in found]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """It is not made: a slip of the pen would begin an empty store elsewhere."""
    store = SQLiteStore(tmp_path / "no" / "a.db")
    with pytest.raises(StoreError, match=f"no folder {tmp_path / 'no'}; make it") as caught:
        store.sessions()
    assert not isinstance(caught.value, StoreUnavailableError)
    (tmp_path / "no").mkdir()
    assert store.sessions() == []
    store.close()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Nothing passes by asking again."""
    with pytest.raises(StoreError, match="it is a folder") as caught:
        SQLiteStore(tmp_path).sessions()
    assert not isinstance(caught.value, StoreUnavailableError)


def test_a_read_only_file_is_named(tmp_path: Path) -> None:
    """With what to give it."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    path = tmp_path / "a.db"
    _filled(path, 2)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(StoreError, match=r"right to write.*folder") as caught:
            _append(SQLiteStore(path), 2)
        assert not isinstance(caught.value, StoreUnavailableError)
    finally:
        tmp_path.chmod(0o755)


def test_a_connection_that_may_only_read_says_so(tmp_path: Path) -> None:
    """The same error where root runs the tests: SQLite itself is told not to write."""
    store = SQLiteStore(tmp_path / "a.db")
    store.sessions()
    assert store._connection is not None
    store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match=r"right to write.*folder") as caught:
        _append(store, 0)
    assert not isinstance(caught.value, StoreUnavailableError)
    store.close()


def test_a_file_removed_while_it_is_open_is_no_silent_loss(tmp_path: Path) -> None:
    """A write to a file that has no name any more would be acknowledged and gone."""
    folder = tmp_path / "here"
    folder.mkdir()
    store = SQLiteStore(folder / "a.db")
    _append(store, 0)
    shutil.rmtree(folder)
    with pytest.raises(StoreError, match="moved, deleted or replaced"):
        _append(store, 1)
    folder.mkdir()
    _filled(folder / "a.db", 3)
    assert _versions(store) == [1, 2, 3]
    os.replace(folder / "a.db", folder / "old.db")
    _filled(folder / "a.db", 2)
    with pytest.raises(StoreError, match="moved, deleted or replaced"):
        _append(store, 3)
    assert _append(store, 2) == 3
    store.close()
