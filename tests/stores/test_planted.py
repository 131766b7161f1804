"""No planted text is in any table, index, file or key of an encrypted store, whatever was done with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.stores.served import Served, served_postgres, served_redis
from trimtab import Session
from trimtab.relevance import text_terms
from trimtab.stores import KeyRing, SQLiteStore, Store, encrypted
from trimtab.summaries import Fact, FactRequest

SECRETS = {"one": b"planted key one! " * 2, "two": b"planted key two! " * 2}
PLANTED = {
    "message": "zanzibarquoll",
    "later": "yukonibex",
    "name": "aliceplatypus",
    "tool": "find_numbatology",
    "argument": "wombatville",
    "result": "pangolinesque",
    "system": "okapisystem",
    "rule": "Never mention quokkaland.",
    "anchor": "axolotlanchor",
    "summary": "tapirsummary",
    "fact": "capybarafact",
    "metadata": "dugongmetadata",
}
"""A text for each kind of content; the words of no other."""


def _talk(store: Store) -> None:
    """Write every kind of content, and do all that is done with it: search, redact, pop, fork, undo."""

    def summarize(request: Any) -> str:
        return f"So far: {PLANTED['summary']}"

    def extract(request: FactRequest) -> list[Fact]:
        return [Fact(text=f"Ann likes {PLANTED['fact']}")]

    session = Session(
        160,
        store=store,
        id="talk",
        system=PLANTED["system"],
        anchors=[{"role": "user", "content": PLANTED["anchor"]}],
        rules=[PLANTED["rule"]],
        summarizer=summarize,
        fact_extractor=extract,
        find_rules="auto",
    )
    first = session.add({"role": "user", "content": f"I am in {PLANTED['message']}", "name": PLANTED["name"]})
    call = {"name": PLANTED["tool"], "arguments": f'{{"where": "{PLANTED["argument"]}"}}'}
    session.add(
        {
            "role": "assistant",
            "content": None,
            "metadata": {"note": PLANTED["metadata"]},
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        }
    )
    session.add({"role": "tool", "tool_call_id": "c1", "content": f"{PLANTED['result']} " * 30})
    session.add({"role": "user", "content": f"You must always say {PLANTED['later']} in your answers."})
    for at in range(14):
        session.add({"role": "user", "content": f"And {PLANTED['message']} again, number {at} of many."})
    session.summarize()
    assert PLANTED["summary"] in str(session.messages())
    assert session.recall(PLANTED["message"], 3)
    assert session.recall(PLANTED["result"])
    twin = session.fork(id="twin")
    twin.redact([first.id])
    session.pop()
    session.redact(where=PLANTED["later"])
    session.undo()
    session.clear()
    session.add({"role": "user", "content": f"Still {PLANTED['message']}"})
    kinds = {event.kind for event in session.history(kinds=None)}
    assert {"message", "summary", "fact", "redacted", "popped"} <= kinds, kinds


def _words() -> list[str]:
    """List what is looked for: the words, the terms of an index, and what would lead to them."""
    found = {word for text in PLANTED.values() for word in (text, *text.split(), *text_terms(text))}
    common = {"Never", "mention", "never", "find"}
    return sorted({*(found - common), *(secret.decode() for secret in SECRETS.values()), "So far", "okapi"})


@contextmanager
def _kept(store: Store) -> Iterator[list[str]]:
    """Talk in an encrypted store, rotate, talk on, and give the words that nothing may have."""
    one = encrypted(store, KeyRing({"one": SECRETS["one"]}))
    _talk(one)
    both = encrypted(store, KeyRing(SECRETS, current="two"))
    assert both.rotate().complete
    Session.open(both, "twin", allow_missing=True).recall(PLANTED["message"])
    try:
        yield _words()
    finally:
        store.close()


def _found_in(dump: bytes, words: list[str]) -> list[str]:
    low = dump.lower()
    return [word for word in words if word.lower().encode() in low]


def test_sqlite_has_no_planted_text(tmp_path: Path) -> None:
    """In its file, beside it, or in a value of a table; while it is open, and after."""
    path = tmp_path / "chats.db"
    store = SQLiteStore(path)
    with _kept(store) as words:
        assert [one.name for one in tmp_path.iterdir() if _found_in(one.read_bytes(), words)] == []
        with closing(sqlite3.connect(path)) as connection:
            dump = "\n".join(connection.iterdump()).encode("utf-8", "replace")
        assert _found_in(dump, words) == []
        assert b"talk" in dump
    assert [one.name for one in tmp_path.iterdir() if _found_in(one.read_bytes(), words)] == []


def test_the_words_are_found_where_nothing_is_encrypted(tmp_path: Path) -> None:
    """Or the tests beside this one could not fail."""
    path = tmp_path / "plain.db"
    with SQLiteStore(path) as store:
        _talk(store)
        session = Session(160, store=store, id="all")
        session.extend([{"role": "user", "content": text} for text in PLANTED.values()])
    there = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert set(PLANTED.values()) <= {*_found_in(there, _words())} | {PLANTED["rule"]}


def _dump_of(served: Served) -> bytes:
    """Read every value of every table, or every key."""
    if isinstance(served.server, servers.PostgresServer):
        database = served.url(None).rpartition("/")[2].partition("?")[0]
        tables = served.server.ask(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind = 'r' AND (n.nspname = 'public' OR c.relname = 'pg_statistic')",
            database=database,
        )
        rows = [served.server.ask(f"SELECT t::text FROM {name} t", database=database) for (name,) in tables]
        return str(rows).encode()
    with served.server.client() as client:
        return repr(
            [(key, client.dump(key), client.hgetall(key)) for key in client.keys("*:session:*")]
        ).encode()


@pytest.mark.server
@pytest.mark.parametrize("make", [served_postgres, served_redis], ids=["postgres", "redis"])
def test_servers_have_no_planted_text(make: Any) -> None:
    """In a table or a key, in a file of the server, nor in the log it writes ahead."""
    with make() as served, _kept(served.make()) as words:
        dump = _dump_of(served)
        assert _found_in(dump, words) == []
        assert b"trimtab.sealed" in dump
        served.at_rest()
        for path in served.server.data.rglob("*"):
            if path.is_file():
                assert _found_in(path.read_bytes(), words) == [], path
