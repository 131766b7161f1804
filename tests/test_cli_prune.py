"""`trimtab session prune`, and what `history` shows of a log that was pruned."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.builders import user
from trimtab import CharCounter, Session, cli
from trimtab.stores import SQLiteStore


def _run(*arguments: str, code: int = 0) -> Result:
    answer = CliRunner().invoke(cli.command(), ["session", *arguments])
    assert answer.exit_code == code, answer.output
    return answer


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Give a file with one long session."""
    path = tmp_path / "chats.db"
    with SQLiteStore(path) as made:
        session = Session(200, store=made, id="ada", counter=CharCounter())
        session.extend([user(f"message {at} of many about herons") for at in range(80)])
        for at in range(40):
            session.add(user(f"late {at}"))
    return str(path)


def test_a_session_is_pruned_with_a_receipt(store: str) -> None:
    """In JSON and in text; the second time nothing is removed."""
    where = ("--store", store, "--id", "ada")
    view = _run("show", *where).output
    refused = _run("prune", *where, code=2)
    assert "pass --yes" in refused.stderr.replace("\n", " ")
    receipt = json.loads(_run("prune", *where, "--keep", "1", "--yes").output)
    assert receipt["messages"] > 20
    assert receipt["not_erased"] is None
    assert _run("show", *where).output == view
    again = _run("prune", *where, "--keep", "1", "--yes", "--output", "text").output
    oldest = f"the oldest version that can be shown is {receipt['oldest']}"
    assert again == f"ada: 0 events removed, 0 messages of them, 0 bytes; {oldest}\n"
    assert "was pruned on" in _run("show", *where, "--at", "3", code=1).stderr
    assert "keep" in _run("prune", *where, "--keep", "-1", "--yes", code=2).stderr
    _run("prune", *where, "--keep", str(10**20), "--yes")
    assert _run("show", *where).output == view


def test_history_shows_a_run_of_pruned_events_as_one_line(store: str) -> None:
    """In text always, in JSON where all kinds are asked for."""
    where = ("--store", store, "--id", "ada")
    receipt = json.loads(_run("prune", *where, "--keep", "0", "--yes").output)
    lines = _run("history", *where, "--kinds", "all", "--output", "text").output.splitlines()
    gaps = [line for line in lines if "(pruned)" in line]
    assert gaps == [f"     2  (pruned) {receipt['events']} events up to version {receipt['events'] + 1}"]
    assert len(lines) == receipt["kept"] + 1
    assert "(pruning) what is older than version" in lines[-2]
    assert f"(erased) {receipt['events']} events pruned by version" in lines[-1]
    assert "(pruned)" in _run("history", *where, "--output", "text").output
    rows = [json.loads(line) for line in _run("history", *where, "--kinds", "all").output.splitlines()]
    assert rows[1] == {"version": 2, "until": receipt["events"] + 1, "kind": "pruned"}
    cut = _run("history", *where, "--kinds", "all", "--before", "20", "--output", "text").output.splitlines()
    assert cut[1:] == ["     2  (pruned) 18 events up to version 19"]
    said = [json.loads(line)["kind"] for line in _run("history", *where).output.splitlines()]
    assert {*said} == {"message"}


def test_what_could_not_be_cleaned_is_told(store: str) -> None:
    """With exit code 1, while somebody else reads the file; the next order cleans it."""
    where = ("--store", store, "--id", "ada")
    with closing(sqlite3.connect(store, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM trimtab_events").fetchone()
        answer = _run("prune", *where, "--keep", "0", "--yes", code=1)
        assert "trimtab: files may still hold the text: " in answer.stderr
        assert json.loads(answer.stdout)["events"] > 0
    again = json.loads(_run("prune", *where, "--keep", "0", "--yes").output)
    assert (again["events"], again["not_erased"]) == (0, None)
    assert b"message 3 of many" not in Path(store).read_bytes()
