"""What `SQLiteStore` promises beyond the contract: its file, its schema, what erasing leaves, forks."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stores.stores import holders
from trimtab import ConfigurationError
from trimtab.errors import SessionDeletedError, StoreError, StoreUnavailableError
from trimtab.relevance import text_terms
from trimtab.stores import AppendRequest, Event, LoadRequest, MemoryStore, SearchRequest, SQLiteStore

BATCH_EVENTS = 200
"""What is added is put into the index so many events at a time, as `SQLiteStore.search` says."""

FIRST_SCHEMA = (
    "CREATE TABLE trimtab_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied REAL NOT NULL)",
    "CREATE TABLE trimtab_sessions (session TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE trimtab_events (session TEXT NOT NULL, version INTEGER NOT NULL, id TEXT NOT NULL,"
    " kind TEXT NOT NULL, time REAL NOT NULL, body TEXT NOT NULL, seal TEXT NOT NULL,"
    " PRIMARY KEY (session, version), UNIQUE (session, id)) WITHOUT ROWID",
    "INSERT INTO trimtab_schema VALUES (1, 'events', 0.0)",
)
"""What the first trimtab made a file with."""

MIGRATIONS = ["events", "search and erasure", "incarnations", "relevance", "spellings", "owners"]

WITHOUT_OWNERS = (
    "DROP TRIGGER trimtab_used",
    "DROP TRIGGER trimtab_gone",
    "DROP TABLE trimtab_listed",
    "DROP TABLE trimtab_labels",
    "DELETE FROM trimtab_schema WHERE name = 'owners'",
)
"""Makes a file as it was before the last migration."""
"""The names of the migrations there are, oldest first; a file notes those that were applied."""

SECRET = 'Zanzibar "ключ" 天气预报 naïve\nphrase'
"""What must not be found: words of its own, a quote, two alphabets, a line break."""


def _message(at: int, text: str = "filler") -> Event:
    return Event(id=f"e{at}", kind="message", time=float(at), data={"message": {"content": text}})


def _append(store: SQLiteStore | MemoryStore, session: str, *events: Event, at: int = 0, **more: Any) -> int:
    request = AppendRequest(session=session, expected_version=at, events=events, **more)
    return store.append(request).version


def _search(store: SQLiteStore, session: str, *terms: str) -> list[int]:
    return holders(store.search(SearchRequest(session=session, terms=terms, limit=10)), *terms)


def _traces(folder: Path, text: str = SECRET) -> list[str]:
    """Say which forms of a text, and of each of its words, stand in which file."""
    words = [text, *(word.strip('"') for word in text.split())]
    words += [word.casefold() for word in words] + ["天气", "预报"]
    forms = {
        form
        for word in words
        for form in (
            word.encode(),
            word.encode("utf-16-le"),
            word.encode("utf-16-be"),
            json.dumps(word)[1:-1].encode(),
        )
    }
    return [
        f"{path.name}: {form!r}"
        for path in sorted(folder.iterdir())
        for content in [path.read_bytes()]
        for form in forms
        if form in content
    ]


@contextmanager
def _raw(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


# -- opening


def test_making_a_store_touches_nothing(tmp_path: Path) -> None:
    """Neither a missing folder nor a file: the first use does."""
    SQLiteStore(tmp_path / "no" / "such" / "folder.db")
    store = SQLiteStore(tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []
    assert store.sessions() == []
    assert (tmp_path / "a.db").exists()
    store.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": ""},
        {"path": None},
        {"path": b"a.db"},
        {"path": "a\0b"},
        {"path": "sqlite:///a.db"},
        {"path": "file:a.db?mode=ro"},
        {"path": "a.db", "busy_seconds": -1},
        {"path": "a.db", "busy_seconds": float("nan")},
        {"path": "a.db", "busy_seconds": float("inf")},
        {"path": "a.db", "busy_seconds": True},
        {"path": "a.db", "synchronous": "OFF"},
        {"path": "a.db", "synchronous": "full"},
    ],
    ids=repr,
)
def test_a_wrong_argument_is_refused_at_once(arguments: dict[str, Any]) -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigurationError):
        SQLiteStore(arguments.pop("path"), **arguments)


def test_a_relative_path_stays_where_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that changes its folder later does not change the file."""
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore("a.db")
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    store.sessions()
    store.close()
    assert (tmp_path / "a.db").exists()


@pytest.mark.parametrize(("synchronous", "number"), [("NORMAL", 1), ("FULL", 2), ("EXTRA", 3)])
def test_the_file_is_set_up_as_asked(tmp_path: Path, synchronous: Any, number: int) -> None:
    """A write-ahead log, fsync as asked (FULL by default), deleted content overwritten."""
    store = SQLiteStore(tmp_path / "a.db", synchronous=synchronous, busy_seconds=1.5)
    store.sessions()
    connection = store._connection
    assert connection is not None
    asked = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}
    assert asked == {"journal_mode": "wal", "synchronous": number, "secure_delete": 1, "busy_timeout": 1_500}
    store.close()


_PRAGMAS = ("journal_mode", "synchronous", "secure_delete", "busy_timeout")


def test_full_is_the_default(tmp_path: Path) -> None:
    """What is acknowledged survives a power cut unless somebody chose otherwise."""
    with SQLiteStore(tmp_path / "a.db") as store:
        store.sessions()
        assert store._connection is not None
        assert store._connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_closed_store_opens_again(tmp_path: Path) -> None:
    """With everything in it; closing leaves one file."""
    store = SQLiteStore(tmp_path / "a.db")
    _append(store, "s", _message(1))
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
    assert len(store.load(LoadRequest(session="s"))) == 1
    store.close()


def test_a_closed_store_in_memory_says_that_all_is_gone() -> None:
    """Rather than to begin an empty one."""
    store = SQLiteStore(":memory:")
    store.close()
    _append(store, "s", _message(1))
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.load(LoadRequest(session="s"))


# -- schema


def _first_schema(path: Path) -> list[Event]:
    """Write a file as the first schema was, with rows."""
    events = [_message(at, f"heron {at}") for at in range(1, 4)]
    request = AppendRequest(session="s", expected_version=0, events=events)
    with SQLiteStore(path.with_suffix(".new")) as store:  # rows are written as they were
        store.append(request)
    with _raw(path.with_suffix(".new")) as connection:
        rows = connection.execute("SELECT * FROM trimtab_events ORDER BY version").fetchall()
    with _raw(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in FIRST_SCHEMA:
            connection.execute(statement)
        connection.executemany("INSERT INTO trimtab_events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO trimtab_sessions VALUES ('s', 3)")
    return request.numbered()


def test_a_file_of_the_first_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    """Its rows stay, every migration is noted once, and what came later works."""
    path = tmp_path / "a.db"
    events = _first_schema(path)
    for _ in range(2):
        with SQLiteStore(path) as store:
            assert store.load(LoadRequest(session="s")) == events
            assert _search(store, "s", "heron") == [3, 2, 1]
    with SQLiteStore(path) as store:
        assert _append(store, "s", _message(4), at=3) == 4
        store.delete("s")
    with _raw(path) as connection:
        applied = connection.execute("SELECT version, name FROM trimtab_schema ORDER BY version").fetchall()
    assert applied == [*enumerate(MIGRATIONS, 1)]


def test_an_index_of_words_with_their_accents_is_made_anew(tmp_path: Path) -> None:
    """As the migrations before the last left it: nothing of it stays, and the session is searched as any."""
    path = tmp_path / "a.db"
    with SQLiteStore(path) as store:
        said = [_message(1, "Zoë met a heron"), *(_message(at) for at in range(2, 2 * BATCH_EVENTS + 1))]
        _append(store, "s", *said)
        assert _search(store, "s", "zoe") == [1]
    with _raw(path) as connection:
        connection.execute("UPDATE trimtab_terms SET term = 'zoë' WHERE term = 'zoe'")
        for statement in (*WITHOUT_OWNERS, "DELETE FROM trimtab_schema WHERE name = 'spellings'"):
            connection.execute(statement)
    with SQLiteStore(path) as store:
        assert _search(store, "s", "zoe") == [1]
    with _raw(path) as connection:
        terms = {term for (term,) in connection.execute("SELECT term FROM trimtab_terms WHERE version = 1")}
    assert terms == {"zoe", "met", "a", "heron"}


def test_sessions_of_an_older_file_get_an_incarnation_each(tmp_path: Path) -> None:
    """Who read one before it was deleted is told apart, as in a new file."""
    path = tmp_path / "a.db"
    events = _first_schema(path)
    with SQLiteStore(path) as store:
        (first,) = {event.incarnation for event in store.load(LoadRequest(session="s"))}
        assert first
        store.delete("s")
        again = AppendRequest(session="s", expected_version=0, events=events)
        assert store.append(again).incarnation != first
        late = AppendRequest(session="s", expected_version=3, events=[_message(4)], incarnation=first)
        with pytest.raises(SessionDeletedError, match="'s' was deleted"):
            store.append(late)
        assert store.load(LoadRequest(session="s")) == events


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """All or nothing; a table in the way is the user's to move."""
    path = tmp_path / "a.db"
    _first_schema(path)
    with _raw(path) as connection:
        connection.execute("CREATE TABLE trimtab_erasure (other TEXT)")
    before = _dump(path)
    store = SQLiteStore(path)
    with pytest.raises(StoreError, match="trimtab_erasure"):
        store.sessions()
    store.close()
    assert _dump(path) == before


def test_a_file_of_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    """The error says both numbers and what to do; not a byte is changed."""
    path = tmp_path / "a.db"
    with SQLiteStore(path) as made:
        made.sessions()
    newer = len(MIGRATIONS) + 1
    with _raw(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("INSERT INTO trimtab_schema VALUES (?, 'later', 0.0)", (newer,))
    before = path.read_bytes()
    store = SQLiteStore(path)
    calls = (store.sessions, lambda: _append(store, "s", _message(1)), lambda: store.delete("s"))
    for call in calls:
        with pytest.raises(StoreError, match=rf"schema {newer}, .* {newer - 1}: .*Upgrade"):
            call()
    store.close()
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]


def _dump(path: Path) -> list[str]:
    with _raw(path) as connection:
        return list(connection.iterdump())


def test_the_file_may_hold_tables_of_others(tmp_path: Path) -> None:
    """Every name of ours begins with trimtab_."""
    path = tmp_path / "a.db"
    with _raw(path) as connection:
        connection.execute("CREATE TABLE mine (text TEXT)")
        connection.execute("INSERT INTO mine VALUES ('kept')")
    with SQLiteStore(path) as store:
        _fill(store, "s", BATCH_EVENTS)
        _search(store, "s", "filler")
        store.delete("s")
    with _raw(path) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        assert connection.execute("SELECT * FROM mine").fetchall() == [("kept",)]
    assert [name for name in names if "trimtab_" not in name] == ["mine"]


# -- erasing


def _fill(store: SQLiteStore, session: str, count: int, *, secret_at: int = 0) -> int:
    """Add messages, one of them with the secret, in batches that split pages."""
    version = 0
    while version < count:
        events = [
            _message(at, SECRET if at == secret_at else f"filler {at} " * 9)
            for at in range(version + 1, min(version + 7, count) + 1)
        ]
        version = _append(store, session, *events, at=version)
    return version


def _withdrawn(store: SQLiteStore, session: str, version: int) -> AppendRequest:
    stored = store.load(LoadRequest(session=session, after=version - 1, limit=1))[0]
    new = Event(id=stored.id, kind="message", time=stored.time, data={"message": None}, version=version)
    head = store.load(LoadRequest(session=session, newest_first=True, limit=1))[0].version
    notice = Event(id="notice", kind="redacted", time=9.0)
    return AppendRequest(session=session, expected_version=head, events=[notice], rewrites=[new])


@pytest.mark.parametrize("searched", [False, True], ids=["not-indexed", "indexed"])
@pytest.mark.parametrize("count", [3, 2 * BATCH_EVENTS])
@pytest.mark.parametrize("how", ["delete", "rewrite"])
def test_no_byte_of_what_was_erased_is_left(tmp_path: Path, how: str, count: int, searched: bool) -> None:
    """In no file, in no encoding; while the store is open, and after it was closed."""
    store = SQLiteStore(tmp_path / "a.db")
    _fill(store, "a", count, secret_at=2)
    _fill(store, "b", count)
    if searched:
        assert _search(store, "a", "zanzibar") == [2]
        assert _search(store, "b", "filler") != []
    assert _traces(tmp_path) != []
    if how == "delete":
        store.delete("a")
    else:
        store.append(_withdrawn(store, "a", 2))
    assert _traces(tmp_path) == []
    assert _search(store, "a", "zanzibar", "天气") == []
    assert len(_search(store, "b", "filler")) == min(count, 10)
    assert _traces(tmp_path) == []
    store.close()
    assert _traces(tmp_path) == []


@pytest.mark.parametrize("seed", [2, 10])
def test_no_copy_is_left_where_pages_were_split(tmp_path: Path, seed: int) -> None:
    """Zeroing what is deleted is not enough: with these seeds a page keeps a copy of a row that moved."""
    chance = random.Random(seed)
    heads: dict[str, int] = {}
    with SQLiteStore(tmp_path / "a.db") as store:
        for _ in range(250):
            session = chance.choice("abcdef")
            at = heads.get(session, 0)
            event_id = f"id{chance.randrange(10**9)}-{at}"
            data = {"m": f"MARK{session}MARK" + "x" * chance.randrange(10, 1_500)}
            event = Event(id=event_id, kind="message", time=1.0, data=data)
            heads[session] = _append(store, session, event, at=at)
        store.delete("c")
        assert [path.name for path in tmp_path.iterdir() if b"MARKcMARK" in path.read_bytes()] == []
        assert any(b"MARKbMARK" in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("how", ["delete", "rewrite"])
def test_somebody_who_reads_cannot_make_erasing_incomplete_in_silence(tmp_path: Path, how: str) -> None:
    """The removal stands, the error says to ask again, and asked again it is complete."""
    path = tmp_path / "a.db"
    store = SQLiteStore(path, busy_seconds=0.05)
    _fill(store, "a", 5, secret_at=2)
    request = _withdrawn(store, "a", 2)

    def erase() -> None:
        if how == "delete":
            store.delete("a")
        else:
            store.append(request)

    with _raw(path) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM trimtab_events LIMIT 1").fetchall()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="Repeat the delete, redaction or prune"):
                erase()
            assert _traces(tmp_path) != []
            assert all(event.data != {"message": {"content": SECRET}} for event in _all(store, "a"))
        reader.execute("ROLLBACK")
        erase()
        assert _traces(tmp_path) == []
    store.close()


def _all(store: SQLiteStore | MemoryStore, session: str) -> list[Event]:
    return store.load(LoadRequest(session=session))


def test_what_one_store_could_not_finish_another_does(tmp_path: Path) -> None:
    """What waits to be erased is written down in the file; any later delete does it."""
    path = tmp_path / "a.db"
    store, other = SQLiteStore(path, busy_seconds=0.05), SQLiteStore(path)
    _fill(store, "a", 5, secret_at=2)
    with _raw(path) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM trimtab_events LIMIT 1").fetchall()
        with pytest.raises(StoreUnavailableError):
            store.delete("a")
    other.delete("nobody")
    assert _traces(tmp_path) == []
    store.close()
    other.close()


def test_the_files_are_written_anew_only_where_something_waits(tmp_path: Path) -> None:
    """To delete what is not there costs no rewriting of a large file."""
    store = SQLiteStore(tmp_path / "a.db")
    _fill(store, "a", 5)
    assert store._connection is not None
    said: list[str] = []
    store._connection.set_trace_callback(said.append)
    for session, times in (("nobody", 0), ("a", 1), ("a", 1), ("nobody", 1)):
        store.delete(session)
        assert said.count("VACUUM") == times
    store.close()


# -- search


def _make_old_index(path: Path) -> None:
    """Make the index as trimtab had it in FTS5."""
    with _raw(path) as connection:
        for statement in (
            "DROP TABLE trimtab_terms",
            "DROP TABLE trimtab_indexed",
            *WITHOUT_OWNERS,
            "DELETE FROM trimtab_schema WHERE version >= 4",
            "CREATE TABLE trimtab_indexed (session TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL UNIQUE,"
            " version INTEGER NOT NULL) WITHOUT ROWID",
            "CREATE VIRTUAL TABLE trimtab_search"
            " USING fts5(terms, content='', columnsize=0, detail=none, tokenize='ascii')",
            "INSERT INTO trimtab_search (rowid, terms) VALUES (4294967346, 'zanzibar')",
            "INSERT INTO trimtab_indexed VALUES ('s', 1, 600)",
        ):
            connection.execute(statement)


def test_an_index_that_knew_no_frequencies_is_made_anew(tmp_path: Path) -> None:
    """As trimtab had it in FTS5: the table goes, and a log is put into the new one as it grows."""
    path, batch = tmp_path / "a.db", BATCH_EVENTS
    with SQLiteStore(path) as store:
        _fill(store, "s", 3 * batch, secret_at=50)
    _make_old_index(path)
    with SQLiteStore(path) as store:
        _append(store, "s", _message(9_999, "heron"), at=3 * batch)
        assert _indexed(path) == [("s", batch)]
        assert _search(store, "s", "heron", "zanzibar") == [3 * batch + 1, 50]
        assert _indexed(path) == [("s", 3 * batch)]
    with _raw(path) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name GLOB '*search*'").fetchall() == []


def _set_module(path: Path, old: str, new: str) -> None:
    """Let the old index stand on another module; one this SQLite lacks is what FTS5 is to a build without."""
    with _raw(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'trimtab_search'",
            (f"USING {old}(", f"USING {new}("),
        )


def test_an_old_index_that_this_sqlite_cannot_remove_is_told(tmp_path: Path) -> None:
    """Each call says what to do, and changes nothing; where the module is there the file is brought up."""
    path = tmp_path / "a.db"
    with SQLiteStore(path) as store:
        _fill(store, "s", 60, secret_at=50)
    _make_old_index(path)
    _set_module(path, "fts5", "fts5_of_another_build")
    before = path.read_bytes()
    with SQLiteStore(path) as store:
        for ask in (
            lambda: store.load(LoadRequest(session="s")),
            lambda: _append(store, "s", _message(61), at=60),
            lambda: _search(store, "s", "zanzibar"),
            store.sessions,
        ):
            with pytest.raises(StoreError) as caught:
                ask()
            assert type(caught.value) is StoreError, "no use in asking again, and nothing is damaged"
            assert str(path) in str(caught.value)
            assert "no such module: fts5_of_another_build" in str(caught.value)
            assert "Open the file once with a Python whose SQLite has FTS5; nothing was" in str(caught.value)
    assert path.read_bytes() == before
    _set_module(path, "fts5_of_another_build", "fts5")
    with SQLiteStore(path) as store:
        assert len(store.load(LoadRequest(session="s"))) == 60
        assert _search(store, "s", "zanzibar") == [50]


def test_a_new_file_needs_no_module_of_sqlite(tmp_path: Path) -> None:
    """Ordinary tables only, after everything a store does: FTS5 is not in every build."""
    path = tmp_path / "a.db"
    with SQLiteStore(path) as store:
        _fill(store, "s", 3 * BATCH_EVENTS, secret_at=50)
        assert _search(store, "s", "zanzibar") == [50]
        store.delete("s")
        _fill(store, "t", 10, secret_at=5)
        assert _search(store, "t", "zanzibar") == [5]
    with _raw(path) as connection:
        made = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    assert made
    assert not [sql for sql in made if "VIRTUAL" in sql.upper()]


def _indexed(path: Path) -> list[tuple[str, int]]:
    with _raw(path) as connection:
        return connection.execute("SELECT session, version FROM trimtab_indexed ORDER BY session").fetchall()


def test_the_index_is_filled_as_the_session_grows(tmp_path: Path) -> None:
    """In batches; what is less than one is read where it stands, and nothing is indexed twice."""
    path, batch = tmp_path / "a.db", BATCH_EVENTS
    with SQLiteStore(path) as store:
        version = _fill(store, "s", batch - 1)
        assert _search(store, "s", "filler") != []
        assert _indexed(path) == []
        version = _append(store, "s", _message(batch, "heron"), at=version)
        assert _indexed(path) == [("s", batch)]
        assert _search(store, "s", "heron") == [batch]
        version = _append(store, "s", *(_message(at) for at in range(batch + 1, 3 * batch)), at=version)
        assert _indexed(path) == [("s", 2 * batch)]
        assert _search(store, "s", "heron") == [batch]
        _fill(store, "t", batch, secret_at=3)
        assert _indexed(path) == [("s", 2 * batch), ("t", batch)]
        assert _search(store, "t", "zanzibar") == [3]
        assert _search(store, "s", "zanzibar") == []


def _terms(path: Path) -> list[tuple[str, int]]:
    """Return which terms the index has of one version or the other."""
    with _raw(path) as connection:
        return connection.execute("SELECT term, version FROM trimtab_terms ORDER BY term, version").fetchall()


def test_a_rewrite_takes_its_terms_out_of_the_index_and_no_others(tmp_path: Path) -> None:
    """In the index and behind it, in one step; the rest stays indexed."""
    path, batch = tmp_path / "a.db", BATCH_EVENTS
    with SQLiteStore(path) as store:
        _fill(store, "s", batch + 2, secret_at=batch)
        _append(store, "t", *(_message(at, SECRET) for at in range(batch)))
        before = _terms(path)
        inside, behind = (_withdrawn(store, "s", version) for version in (batch, batch + 1))
        store.append(replace(inside, rewrites=[*behind.rewrites, *inside.rewrites]))
        assert _indexed(path) == [("s", batch), ("t", batch)]
        assert _search(store, "s", "zanzibar") == []
        assert len(_search(store, "t", "zanzibar")) == 10
        gone = Counter(before) - Counter(_terms(path))
        assert set(gone) == {(term, batch) for term in text_terms(SECRET)}
        store.delete("t")
        assert "zanzibar" not in {term for term, _ in _terms(path)}


def test_sessions_do_not_meet_in_the_index(tmp_path: Path) -> None:
    """The best of one session is found whatever the one before and the one behind it hold."""
    batch = BATCH_EVENTS
    texts = {"first": "heron otter", "middle": "heron", "last": "heron otter"}
    with SQLiteStore(tmp_path / "a.db") as store:
        for session, text in texts.items():
            _append(store, session, *(_message(at, text if at == 7 else "x") for at in range(batch)))
            _search(store, session, "heron")
        assert [session for session, _ in _indexed(tmp_path / "a.db")] == ["first", "last", "middle"]
        for session in texts:
            request = SearchRequest(session=session, terms=("heron", "otter"), limit=1)
            assert [event.version for event in store.search(request)] == [8]


# -- threads, processes, forks


def test_a_writer_that_waits_too_long_says_so(tmp_path: Path) -> None:
    """After busy_seconds; what it wanted can be asked again."""
    path = tmp_path / "a.db"
    store = SQLiteStore(path, busy_seconds=0.05)
    store.sessions()
    with _raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="locked"):
            _append(store, "s", _message(1))
        other.execute("ROLLBACK")
    assert _append(store, "s", _message(1)) == 1
    store.close()


def _child(work: Any) -> int:
    """Run something in a forked child; 0 if it answered True."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # a child that waits for a lock nobody gives back
        code = 2
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


FORKS = 20
forking = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # beside threads, from 3.12 on


@pytest.mark.long
@forking
@pytest.mark.parametrize("make", [SQLiteStore, lambda path: MemoryStore()], ids=["sqlite", "memory"])
def test_a_process_may_be_forked_while_other_threads_write(
    make: Callable[[Path], SQLiteStore | MemoryStore], tmp_path: Path
) -> None:
    """Children write to the same store, whatever the threads of the parent were in the middle of."""
    store, stop = make(tmp_path / "a.db"), threading.Event()
    written = [0, 0]

    def write(writer: int) -> None:
        while not stop.is_set():
            at = written[writer]
            written[writer] = _append(store, f"parent {writer}", _message(at), at=at)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(2)]
    for writer in writers:
        writer.start()
    codes = []
    for at in range(FORKS):

        def work(name: str = f"child {at}") -> bool:
            return _append(store, name, _message(1)) == 1 and len(_all(store, name)) == 1

        codes.append(_child(work))
    stop.set()
    for writer in writers:
        writer.join()
    assert codes == [0] * FORKS
    for writer in range(2):
        assert len(_all(store, f"parent {writer}")) == written[writer] > 0
    children = [f"child {at}" for at in range(FORKS)] if isinstance(store, SQLiteStore) else []
    assert store.sessions() == sorted([*children, "parent 0", "parent 1"])
    store.close()


class _Held(dict[str, Any]):
    """Data of an event that is stored already: it is compared inside of the transaction, and waits there."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data)
        self.reached, self.let = threading.Event(), threading.Event()
        self._read = False

    def items(self) -> Any:
        """Wait when it is read for the second time."""
        if self._read:
            self.reached.set()
            assert self.let.wait(30)
        self._read = True
        return super().items()


@forking
def test_a_child_is_told_of_a_file_that_its_parent_was_too_long_in_the_middle_of(tmp_path: Path) -> None:
    """SQLite in the child would wait for ever for the thread that stayed behind."""
    store = SQLiteStore(tmp_path / "a.db", busy_seconds=0.05)
    _append(store, "s", _message(1))
    data = _Held(_message(1).data)
    again = AppendRequest(session="s", expected_version=0, events=[replace(_message(1), data=data)])
    thread = threading.Thread(target=store.append, args=(again,))
    thread.start()
    assert data.reached.wait(30)

    def work() -> bool:
        for one in (store, SQLiteStore(tmp_path / "a.db")):
            with pytest.raises(StoreError, match="forked while another thread was busy"):
                one.sessions()
        return SQLiteStore(tmp_path / "other.db").sessions() == []

    code = _child(work)
    data.let.set()
    thread.join()
    assert code == 0
    assert _append(store, "s", _message(2), at=1) == 2
    store.close()


def test_a_fork_leaves_what_a_store_does_as_it_is(tmp_path: Path) -> None:
    """Parent and child go on with the same store, and the child's end takes nothing from the parent."""
    store = SQLiteStore(tmp_path / "a.db")
    _append(store, "s", _message(1))

    def work() -> bool:
        written = _append(store, "s", _message(2), at=1) == 2
        store.close()
        return written

    assert _child(work) == 0
    assert _append(store, "s", _message(3), at=2) == 3
    assert [event.id for event in _all(store, "s")] == ["e1", "e2", "e3"]
    store.close()


def test_a_store_that_was_refused_keeps_nobody_from_forking(tmp_path: Path) -> None:
    """Its error holds it; it was told of each fork, which it had no lock for."""
    with pytest.raises(ConfigurationError) as refused:
        SQLiteStore(tmp_path / "a.db", busy_seconds=-1)
    assert _child(lambda: True) == 0
    assert "busy_seconds" in str(refused.value)


def test_a_store_in_memory_does_not_pretend_to_be_shared_with_a_child() -> None:
    """What the child wrote would be seen by nobody; closing it there changes nothing."""
    with SQLiteStore(":memory:") as store:
        _append(store, "s", _message(1))

        def work() -> bool:
            store.close()
            with pytest.raises(StoreError, match="belongs to the process that made it"):
                store.sessions()
            return True

        assert _child(work) == 0
        assert store.sessions() == ["s"]
