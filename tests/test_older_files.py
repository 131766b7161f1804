"""What an earlier release wrote is read: sessions, a snapshot, a report, a policy.

`tests/data/0.1.0` was written by the code of that release, and is never written again; `expected.json` has
what it showed of its sessions. docs/versions.md promises what is held here.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from trimtab import Session
from trimtab.policy import load_policy, policy_data
from trimtab.report import Report
from trimtab.stores import SQLiteStore
from trimtab.testing import WordCounter

RELEASES = sorted((Path(__file__).parent / "data").glob("[0-9]*.[0-9]*.[0-9]*"))
WORDS = WordCounter()


@pytest.fixture(params=RELEASES, ids=lambda folder: folder.name)
def files(request: pytest.FixtureRequest) -> Path:
    """The files of one release."""
    folder: Path = request.param
    return folder


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _store(files: Path, folder: Path) -> SQLiteStore:
    """Return a store in a file as the release left it."""
    path = folder / "sessions.db"
    connection = sqlite3.connect(path)
    connection.executescript((files / "sessions.sql").read_text(encoding="utf-8"))
    connection.close()
    return SQLiteStore(path)


def _summarize(_messages: Any, existing: str | None) -> str:
    return f"{existing} And more."


def test_a_session_is_shown_as_it_was_and_goes_on(files: Path, tmp_path: Path) -> None:
    """With its anchors, its summary and its pin; nothing is summarized again until there is more to say."""
    expected = _read(files / "expected.json")
    with _store(files, tmp_path) as store:
        session = Session.open(store, "ada", counter=WORDS, summarizer=_summarize)
        assert session.messages() == expected["messages"]
        assert [one.message["content"] for one in session.recall("bicycles chains")][:1] == expected["recall"]
        session.add({"role": "user", "content": "And the saddle? " * 20})
        assert session.messages()[1] == expected["messages"][1]
        assert session.messages()[-1]["content"].startswith("And the saddle?")


def test_summaries_of_an_older_session_are_not_checked(files: Path, tmp_path: Path) -> None:
    """It had no `must_keep`, and has none until it is opened with it."""
    with _store(files, tmp_path) as store:
        session = Session.open(store, "ada", counter=WORDS, summarizer=_summarize)
        session.extend([{"role": "user", "content": f"Ada said ORD-{at}. " * 20} for at in range(20)])
        assert "Exact values" not in str(session.summary)
        assert not any("checked" in event.data for event in session.history(kinds=("summary",)))
        session = Session(store=store, id="ada", counter=WORDS, summarizer=_summarize, must_keep="values")
        session.extend([{"role": "user", "content": f"Ada said ORD-{at}. " * 20} for at in range(20, 40)])
        assert "Exact values: " in str(session.summary)


def test_a_session_with_a_redacted_message_never_says_it(files: Path, tmp_path: Path) -> None:
    """The log has its place and none of its words."""
    expected = _read(files / "expected.json")
    with _store(files, tmp_path) as store:
        session = Session.open(store, "bob", counter=WORDS)
        assert session.messages()[-4:] == expected["bob"][-4:]
        assert "It is there" not in json.dumps([event.data for event in session.history()])


def test_a_snapshot_is_restored(files: Path) -> None:
    """It shows what the session in the store showed."""
    session = Session.restore(_read(files / "snapshot.json"), counter=WORDS)
    assert session.messages()[-4:] == _read(files / "expected.json")["bob"][-4:]


def test_a_report_is_read(files: Path) -> None:
    """What it says of each message, and its sizes."""
    data = _read(files / "report.json")
    report = Report.from_dict(data)
    assert [row.fate for row in report.messages] == ["evicted", "evicted", "kept"]
    assert (report.tokens_before, report.tokens_after) == (data["tokens_before"], data["tokens_after"])
    assert report.to_text().startswith("fits")


def test_a_policy_is_loaded(files: Path) -> None:
    """Each block with its strategy; written as data it says what it said."""
    context = load_policy(files / "policy.toml")
    assert policy_data(context) == _read(files / "policy.json")
    context.replace("history", [{"role": "user", "content": "Why?"}])
    assert [one["content"] for one in context.fit().messages] == ["Why?"]
