"""Lists of sessions beside an older trimtab, without their index, and after all of an owner's is gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.stores.served import Served
from tests.stores.test_owners import put
from trimtab import Session
from trimtab.errors import SessionExpiredError
from trimtab.stores import AppendRequest, Event, LoadRequest, MemoryStore, SQLiteStore


def test_sqlite_lists_what_an_older_trimtab_writes(tmp_path: Path) -> None:
    """It replaces the row of a session, and knows no owner: the labels stay, and the time of use moves."""
    path = tmp_path / "a.db"
    with SQLiteStore(path) as store:
        put(store, "s", owner="ada", metadata={"n": 1}, ttl=10.0)
        with closing(sqlite3.connect(path)) as older, older:
            row = older.execute("SELECT * FROM trimtab_events").fetchone()
            older.execute("INSERT INTO trimtab_events VALUES ('s', 2, 'x', 'note', 50.0, '{}', '')")
            older.execute(
                "INSERT OR REPLACE INTO trimtab_sessions (session, version, incarnation)"
                " SELECT session, 2, incarnation FROM trimtab_sessions"
            )
            older.execute("INSERT INTO trimtab_events VALUES (?, ?, ?, ?, ?, ?, ?)", ("new", *row[1:]))
            older.execute("INSERT INTO trimtab_sessions VALUES ('new', 1, 'abc')")
        assert store.sessions() == ["new", "s"]
        (one,) = store.sessions(owner="ada", metadata={"n": 1}, used_after=40.0)
        assert (one.version, one.used, one.expires) == (2, 50.0, 60.0)
        assert store.expire(now=20.0).sessions == 0
        with closing(sqlite3.connect(path)) as older, older:
            older.execute("DELETE FROM trimtab_sessions WHERE session = 's'")
            older.execute("DELETE FROM trimtab_events WHERE session = 's'")
        assert store.sessions() == ["new"]
        put(store, "s")
        assert store.sessions()[1].owner is None


def test_postgres_looks_at_the_newest_event_before_a_session_expires(on_postgres: Served) -> None:
    """An older trimtab moves the version and nothing else."""
    with on_postgres.make(scrub_on_delete=False) as store:
        put(store, "s", ttl=10.0)
        put(store, "t", ttl=10.0)
        add = "INSERT INTO trimtab_events SELECT key, 2, 'x', 'note', 50.0, '{}', '' FROM trimtab_sessions"
        _ask(on_postgres, f"{add} WHERE name = 's'")
        _ask(on_postgres, "UPDATE trimtab_sessions SET version = 2 WHERE name = 's'")
        _ask(on_postgres, "INSERT INTO trimtab_sessions (name, version) VALUES ('new', 0)")
        assert store.expire(now=20.0).sessions == 1
        assert store.sessions() == ["new", "s"]
        assert store.sessions(prefix="s")[0].expires == 60.0
        assert store.expire(now=60.0).sessions == 1


def _ask(served: Served, sql: str) -> Any:
    server: Any = served.server
    return server.ask(sql, database=served.url(None).rpartition("/")[2].partition("?")[0])


def test_redis_looks_at_the_newest_event_before_a_session_expires(on_redis: Served) -> None:
    """And a session that an older trimtab deleted is listed no more."""
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        for name in ("s", "t", "u"):
            put(store, name, owner="ada", ttl=10.0)
        client.hset("trimtab:session:s", mapping={"e2": '[2,"x","note",50.0,""]\n{}', "ix": "2", "v": "2"})
        client.delete("trimtab:session:t")
        assert store.sessions(owner="ada") == ["s", "u"]
        assert store.expire(now=20.0).sessions == 1
        assert [(one, one.expires) for one in store.sessions(owner="ada")] == [("s", 60.0)]
        assert store.expire(now=60.0).sessions == 1
        for asked in ({}, {"used_after": 0.0}, {"owner": "ada", "used_after": 0.0}):
            assert store.sessions(**asked) == []  # and each order forgets what was deleted behind its back
        assert client.zrange("trimtab:index", 0, -1) == ["ready"]


@pytest.mark.parametrize("lost", ["key", "schema"])
def test_redis_makes_a_list_anew_that_is_lost_or_was_never_made(on_redis: Served, lost: str) -> None:
    """With the same owners, metadata and ends; what is appended meanwhile does not hide the rest."""
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        for at in range(7):
            put(store, f"s{at}", time=float(at), owner="ada", metadata={"n": at % 2}, ttl=10.0)
        whole = client.zrange("trimtab:index", 0, -1)
        client.delete("trimtab:index")
        if lost == "schema":
            client.set("trimtab:schema", "4")
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        put(store, "s3", at=1, time=3.0)
        assert store.sessions(owner="ada", metadata={"n": 1}) == ["s1", "s3", "s5"]
        assert client.zrange("trimtab:index", 0, -1) == whole
        assert store.expire(now=12.0).sessions == 3


SECRET = "krakynquon"


def test_no_byte_of_an_owner_stays_in_the_files_of_sqlite(tmp_path: Path) -> None:
    """Neither of texts, nor of the owner, nor of metadata; and the file is written anew once."""
    store = SQLiteStore(tmp_path / "a.db")
    for at in range(150):
        put(store, f"{SECRET}-{at}", text=f"{SECRET} heron", owner=f"ada {SECRET}", metadata={SECRET: SECRET})
    put(store, "stays", text="otter")
    said: list[str] = []
    assert store._connection is not None
    store._connection.set_trace_callback(said.append)
    receipt = store.delete(owner=f"ada {SECRET}")
    assert (receipt.sessions, receipt.messages, receipt.left, receipt.not_erased) == (150, 150, {}, None)
    assert said.count("VACUUM") == 1
    store.close()
    files = [path for path in tmp_path.iterdir() if SECRET.encode() in path.read_bytes()]
    assert files == []


def test_no_byte_of_an_owner_stays_in_the_files_of_a_server(served: Served) -> None:
    """The files are written anew once for the order."""
    with served.make() as store:
        for at in range(20):
            put(
                store,
                f"{SECRET}-{at}",
                text=f"{SECRET} heron",
                owner=f"ada {SECRET}",
                metadata={SECRET: SECRET},
            )
        put(store, f"{SECRET}-x", text=f"{SECRET} heron", ttl=1.0)
        assert store.delete(owner=f"ada {SECRET}").not_erased is None
        assert store.expire(now=5.0).not_erased is None
        assert served.files_with(SECRET) == []


# Sessions.


def _sessions() -> Iterator[tuple[MemoryStore, Session]]:
    store = MemoryStore()
    session = Session(1_000, store=store, id="s", owner="ada", metadata={"plan": "free"}, ttl=60)
    session.add({"role": "user", "content": "hello"})
    yield store, session


def test_the_owner_of_a_session_goes_with_it() -> None:
    """Into forks, snapshots and copies; what is changed is in force at once, and stays when it is opened."""
    ((store, session),) = _sessions()
    assert (session.owner, session.metadata, session.ttl) == ("ada", {"plan": "free"}, 60.0)
    session.fork(id="fork")
    Session.restore(session.snapshot(), store=store, id="restored")
    Session.restore(session.snapshot(history=False), store=store, id="short")
    assert store.sessions(owner="ada", metadata={"plan": "free"}) == ["fork", "restored", "s", "short"]
    session.label(owner="bob", ttl=None)
    assert store.sessions(owner="bob") == ["s"]
    again = Session.open(store, "s")
    assert (again.owner, again.metadata, again.ttl) == ("bob", {"plan": "free"}, None)
    changed = Session(store=store, id="s", metadata=None)
    assert (changed.owner, changed.metadata) == ("bob", {})
    assert store.sessions(owner="bob", metadata={"plan": "free"}) == ["s"]  # with the next event
    changed.add({"role": "user", "content": "again"})
    assert store.sessions(owner="bob", metadata={"plan": "free"}) == []
    before = changed.version
    changed.label(owner="bob")
    assert changed.version == before


def test_labels_of_a_change_that_was_refused_are_forgotten() -> None:
    """The store has the old ones, and so has the object."""
    ((store, session),) = _sessions()

    def refuse(request: AppendRequest) -> None:
        raise OSError("no")

    append = store.append
    store.append = refuse  # type: ignore[method-assign, assignment]
    with pytest.raises(OSError, match="no"):
        session.label(owner="bob")
    store.append = append  # type: ignore[method-assign]
    session.add({"role": "user", "content": "again"})
    assert (session.owner, store.sessions(owner="bob")) == ("ada", [])


def test_a_session_that_has_ended_is_opened_by_who_says_so() -> None:
    """Not in silence; without an end, or with a later one, it goes on."""
    ((store, _),) = _sessions()
    events = [
        Event(id=one.id, kind=one.kind, time=float(one.version), data=one.data, state=one.state)
        for one in store.load(LoadRequest(session="s"))
    ]
    store.append(AppendRequest(session="old", expected_version=0, events=events))
    for begun in (Session.open(store, "old"), Session(1_000, store=store, id="old")):
        with pytest.raises(SessionExpiredError, match=r"store\.expire\(\)") as caught:
            begun.messages()
        assert (caught.value.session, caught.value.expired) == ("old", 62.0)
    kept = Session(store=store, id="old", ttl=1e10)
    kept.add({"role": "user", "content": "again"})
    assert len(Session.open(store, "old").messages()) == 2
    assert store.expire().sessions == 0
