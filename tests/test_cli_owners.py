"""`trimtab session list`, `export`, `delete` and `expire` of sessions that have owners."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.test_cli_session import any_url, at, lines, run, said
from trimtab.stores import AppendRequest, LoadRequest, SQLiteStore, open_store

__all__ = ["any_url"]

HELLO = {"role": "user", "content": "hello heron"}


def begin(url: str, name: str, *options: str) -> None:
    """Begin a session of one message."""
    run("add", *at(url, name), "--budget", "200", *options, data=HELLO)


def age(url: str, name: str, copy: str) -> None:
    """Make a copy of a session whose events are of 1970."""
    with open_store(url) as store:  # type: ignore[attr-defined]
        events = [replace(one, time=float(one.version)) for one in store.load(LoadRequest(session=name))]
        store.append(AppendRequest(session=copy, expected_version=0, events=events))


def ids(found: Any) -> list[str]:
    """Give the names of a list."""
    return [row["id"] for row in said(found)]


def test_sessions_are_listed_by_owner_metadata_and_use(any_url: str) -> None:
    """In pages; where one follows, standard error says how to ask for it."""
    begin(any_url, "a-1", "--owner", "ada", "--metadata", "plan=free", "--metadata", "seats=2")
    begin(any_url, "a-2", "--owner", "ada", "--metadata", "plan=paid", "--ttl", "30d")
    begin(any_url, "b-1", "--owner", "bob", "--metadata", "beta=true")
    age(any_url, "a-1", "a-0")
    store = ("list", "--store", any_url)
    assert ids(run(*store, "--owner", "ada")) == ["a-0", "a-1", "a-2"]
    assert ids(run(*store, "--prefix", "a-", "--metadata", "plan=free", "--metadata", "seats=2")) == [
        "a-0",
        "a-1",
    ]
    assert ids(run(*store, "--metadata", "beta=true")) == ["b-1"]
    assert ids(run(*store, "--used-before", "30d")) == ["a-0"]
    assert ids(run(*store, "--used-before", "1970-01-02")) == ["a-0"]
    assert ids(run(*store, "--used-before", "20200101")) == ["a-0"]
    assert ids(run(*store, "--used-after", "2020-01-01T00:00:00Z", "--owner", "bob")) == ["b-1"]
    assert ids(run(*store, "--used-after", "1.5", "--limit", "1")) == ["a-0"]
    first = run(*store, "--limit", "3")
    assert ids(first) == ["a-0", "a-1", "a-2"]
    assert "--after '[\"a-2\"]'" in first.stderr
    assert ids(run(*store, "--after", '["a-2"]')) == ["b-1"]
    row = said(run(*store, "--prefix", "a-2"))[0]
    assert (row["owner"], row["metadata"], row["ttl"], row["version"]) == (
        "ada",
        {"plan": "paid"},
        2_592_000,
        2,
    )
    text = run(*store, "--prefix", "a-1", "--output", "text").stdout
    assert text.split()[3:] == ["a-1", "of", "ada", 'plan="free"', "seats=2"]
    assert run(*store, "--owner", "eve", "--output", "text").stdout == "no sessions\n"


def test_a_list_says_where_each_session_stands(any_url: str) -> None:
    """From no session that was opened, whichever functions it was made with; in pages, and for people."""
    for name in ("a-1", "a-2", "b"):
        begin(any_url, name, "--owner", "ada")
    for _ in range(2):
        run("add", *at(any_url, "a-2"), data={"role": "user", "content": "heron " * 100})
    page = run("list", "--store", any_url, "--status", "--limit", "2")
    assert ids(page) == ["a-1", "a-2"]
    assert "--after" in page.stderr
    for row in said(page):
        stats = said(run("stats", *at(any_url, row["id"])))
        names = (
            "version",
            "budget_tokens",
            "recent_messages",
            "recent_tokens",
            "pending_messages",
            "failures",
        )
        assert {name: row[name] for name in names} == {name: stats[name] for name in names}
        assert row["owner"] == "ada"
    rows = run("list", "--store", any_url, "--status", "--output", "text").stdout.splitlines()
    assert re.search(r"a-1  of ada  \(1 recent message: \d+ of 200 tokens\)$", rows[0])
    assert re.search(r"a-2  of ada  \(1 recent message: \d+ of 200 tokens, 2 waiting: \d+ tokens\)$", rows[1])


def test_a_session_that_cannot_be_read_ends_no_list_with_status(tmp_path: Path) -> None:
    """It has a line of its own that says why."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    for name in ("a", "b"):
        begin(url, name)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE trimtab_events SET body = '{}' WHERE session = 'a' AND version = 2")
    bad, good = said(run("list", "--store", url, "--status", code=1))
    assert ("budget_tokens" in bad, good["budget_tokens"]) == (False, 200)
    assert bad["error"].startswith("session 'a': event 2 cannot be read")
    assert "?  a: session 'a'" in run("list", "--store", url, "--status", "--output", "text", code=1).stdout


@pytest.mark.parametrize(
    "given",
    [
        ("list", "--used-before", "soon"),
        ("list", "--used-before", "inf"),
        ("list", "--used-after", "5hd"),
        ("list", "--metadata", "plan"),
        ("list", "--limit", "0"),
        ("add", "--id", "a", "--budget", "200", "--ttl", "never"),
        ("add", "--id", "a", "--budget", "200", "--ttl", "0"),
        ("add", "--id", "a", "--budget", "200", "--ttl", "inf"),
        ("delete",),
        ("delete", "--id", "a", "--owner", "ada"),
        ("export",),
        ("export", "--id", "a", "--after", "x"),
        ("export", "--owner", "a", "--no-history"),
    ],
)
def test_wrong_usage_is_told(given: tuple[str, ...], tmp_path: Path) -> None:
    """With exit code 2, and nothing is made."""
    run(given[0], "--store", str(tmp_path / "a.db"), *given[1:], code=2)
    assert not (tmp_path / "a.db").exists()


def test_a_condition_that_cannot_be_is_wrong_usage(any_url: str) -> None:
    """As a token of another order."""
    begin(any_url, "a")
    for given in (("--after", '["a"]', "--used-after", "1"), ("--prefix", "\0"), ("--owner", "x" * 513)):
        run("list", "--store", any_url, *given, code=2)
    run("export", "--store", any_url, "--owner", "ada", "--after", "x", code=2)


def test_an_export_that_lacks_a_session_says_so(tmp_path: Path) -> None:
    """On standard error, and by exit code 1; the others are there."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    for name in ("a", "b"):
        begin(url, name, "--owner", "ada")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE trimtab_events SET body = '{}' WHERE session = 'a' AND version = 2")
    found = run("export", "--store", url, "--owner", "ada", code=1)
    assert [line["session"] for line in lines(found)] == ["a", "a", "b", "b", "b"]
    assert "session 'a' is not whole" in found.stderr
    run("export", "--store", url, "--owner", "ada", str(tmp_path / "out"), code=1)
    assert len((tmp_path / "out").read_text().splitlines()) == 5


def test_all_of_an_owner_is_exported_and_deleted(any_url: str, tmp_path: Path) -> None:
    """Line by line, from any line on; and then nothing of it is there."""
    for name in ("a-1", "a-2"):
        begin(any_url, name, "--owner", "ada")
    begin(any_url, "b-1", "--owner", "bob")
    store = ("--store", any_url)
    whole = lines(run("export", *store, "--owner", "ada"))
    assert [line["session"] for line in whole] == ["a-1"] * 3 + ["a-2"] * 3
    assert whole[1]["data"]["message"] == HELLO
    assert lines(run("export", *store, "--owner", "ada", "--after", whole[2]["at"])) == whole[3:]
    run("export", *store, "--owner", "ada", str(tmp_path / "ada.jsonl"))
    written = (tmp_path / "ada.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == whole
    run("delete", *store, "--owner", "ada", code=2)
    gone = said(run("delete", *store, "--owner", "ada", "--yes"))
    assert (gone["sessions"], gone["messages"], gone["left"], gone["not_erased"]) == (2, 2, {}, None)
    assert ids(run("list", *store)) == ["b-1"]
    text = run("delete", *store, "--owner", "ada", "--yes", "--output", "text").stdout
    assert text == "0 sessions with 0 messages deleted, 0 bytes\n"


def test_what_has_ended_is_not_opened_and_is_removed(any_url: str) -> None:
    """By cron, or by its name."""
    begin(any_url, "a", "--ttl", "1h")
    for copy in ("old-1", "old-2", "old-3"):
        age(any_url, "a", copy)
    assert "has expired" in run("show", *at(any_url, "old-1"), code=1).stderr
    assert said(run("delete", *at(any_url, "old-1"), "--yes")) == {"deleted": "old-1", "events": 2}
    run("add", *at(any_url, "old-2"), "--ttl", "none", data=HELLO)
    assert said(run("expire", "--store", any_url, "--limit", "1"))["sessions"] == 1
    text = run("expire", "--store", any_url, "--output", "text").stdout
    assert text == "0 sessions with 0 messages deleted, 0 bytes\n"
    assert ids(run("list", "--store", any_url)) == ["a", "old-2"]


def test_what_could_not_be_erased_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is exit code 1: the sessions are gone, and the receipt says what is not."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    begin(url, "a", "--owner", "ada")
    monkeypatch.setattr(SQLiteStore, "__init__", _impatient(SQLiteStore.__init__))
    with SQLiteStore(tmp_path / "a.db") as reader:
        reader.sessions()
        connection = reader._connection
        assert connection is not None
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM trimtab_events").fetchall()
        found = run("delete", "--store", url, "--owner", "ada", "--yes", code=1)
        connection.execute("ROLLBACK")
    assert said(found)["sessions"] == 1
    assert "still contain it" in said(found)["not_erased"]
    assert "files may still hold the text" in found.stderr


def _impatient(init: Any) -> Any:
    return lambda self, path, **options: init(self, path, **{**options, "busy_seconds": 0.05})


def test_orders_of_an_encrypted_store_take_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--keys` they are refused; no list shows a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRIMTAB_KEYS", raising=False)
    Path("keys").write_text(f"one:{'b25lIHNlY3JldCAh' * 3}\n", encoding="utf-8")
    plain = ("--store", "safe.db")
    keyed = (*plain, "--keys", "file:keys")
    for name, owner in (("a", "ada"), ("b", "ada"), ("c", "bob")):
        labels = ("--owner", owner, "--metadata", "n=1")
        run("add", *keyed, "--id", name, "--budget", "400", *labels, data=HELLO)
    for store in (keyed, plain):
        assert [one["metadata"] for one in said(run("list", *store))] == [{"n": 1}] * 3
        assert ids(run("list", *store, "--limit", "2")) == ["a", "b"]
        assert ids(run("list", *store, "--owner", "bob")) == ["c"]
    for words in (("delete", "--owner", "ada", "--yes"), ("expire",)):
        assert "pass --keys PLACE" in run(*words, *plain, code=2).stderr
    assert lines(run("export", *keyed, "--owner", "bob"))[-1]["session"] == "c"
    assert said(run("delete", *keyed, "--owner", "ada", "--yes"))["sessions"] == 2
    assert said(run("expire", *keyed))["sessions"] == 0
    with SQLiteStore("safe.db") as inner:
        assert [one.partition(":key:")[0] for one in inner.sessions()] == ["c", "trimtab"]
