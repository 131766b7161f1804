"""Recordings of other programs through every command: one entry per conversation, with its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trimtab import Session, cli, fit, validate
from trimtab.counting import measure
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import read_foreign
from trimtab.replay import read_recording, read_recordings

WORDS = "The lake road is closed until the end of June, so take the forest track instead. " * 8
USAGE = {"input_tokens": 900, "output_tokens": 9}


def log(name: str, branch: bool = False) -> list[dict[str, Any]]:
    """Write a log of Claude Code: a question, a call, its result, an answer; or a branch more."""
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": WORDS}
    said: list[tuple[str, str | None, dict[str, Any]]] = [
        ("a", None, {"role": "user", "content": f"Plan a ride. {WORDS}"}),
        ("b", "a", {"role": "assistant", "id": "m1", "content": [tool_use], "usage": USAGE}),
        ("c", "b", {"role": "user", "content": [result]}),
        (
            "d",
            "c",
            {"role": "assistant", "id": "m2", "content": [{"type": "text", "text": "Take the track."}]},
        ),
    ]
    if branch:
        other = {"role": "assistant", "id": "m3", "content": [{"type": "text", "text": "At nine."}]}
        said += [("e", "d", {"role": "user", "content": "On Sunday?"}), ("f", "e", other)]
        last = {"role": "assistant", "id": "m4", "content": [{"type": "text", "text": "At ten."}]}
        said += [("g", "d", {"role": "user", "content": "On Monday?"}), ("h", "g", last)]
    return [
        {
            "type": message["role"],
            "uuid": id,
            "parentUuid": parent,
            "sessionId": name,
            "timestamp": f"2026-11-01T10:00:0{at}Z",
            "message": message,
        }
        for at, (id, parent, message) in enumerate(said)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as `~/.claude/projects`, with a log in each of two folders."""
    for name, branch in (("one", False), ("two", True)):
        path = tmp_path / name / f"{name}.jsonl"
        path.parent.mkdir()
        path.write_text(
            "".join(f"{json.dumps(line)}\n" for line in log(name, branch=branch)), encoding="utf-8"
        )
    return tmp_path


def run(*words: object) -> Result:
    """Run a command."""
    return CliRunner().invoke(cli.command(), [str(word) for word in words])


MODEL = ("--model", "claude-sonnet-4-5")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_folder_of_logs_is_counted_conversation_by_conversation(folder: Path, jobs: int) -> None:
    """Three of two files; the count is that of the body, and the name tells the branch."""
    found = run("count", folder, *MODEL, "--jobs", jobs)
    assert found.exit_code == 0, found.stderr
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert len(rows) == 3
    bodies = [one for name in ("one", "two") for one in read_foreign(log(name, branch=name == "two")) or ()]
    assert [row.get("conversation", "") for row in rows] == [one.name for one in bodies]
    assert [row["tokens"] for row in rows] == [
        measure(one.body, model="claude-sonnet-4-5").tokens for one in bodies
    ]
    assert "all 3 conversations in 2 files are counted" in found.stderr


def test_a_log_is_fitted_and_a_call_keeps_its_result(folder: Path) -> None:
    """What comes out is a request body that its provider takes."""
    found = run("fit", folder / "one" / "one.jsonl", "--budget", 330, *MODEL, "--messages-only")
    assert found.exit_code == 0, found.stderr
    body = json.loads(found.stdout)
    assert validate(body) == []
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "assistant"]


def test_what_is_not_in_a_recording_is_said_once(folder: Path) -> None:
    """On standard error, with the name of the file."""
    found = run("validate", folder / "one" / "one.jsonl")
    assert found.exit_code == 0
    assert found.stderr.count("The system text and the tools are not in the log") == 1


def test_a_recording_is_replayed_with_its_times_and_branches(folder: Path) -> None:
    """Each branch is a recording of its own."""
    found = run("replay", folder / "two" / "two.jsonl", "--budget", 400, *MODEL)
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["policies"][0]["recordings"] == 2
    lines = log("two", branch=True)
    recordings = read_recordings(lines)
    assert [len(one.calls) for one in recordings.values()] == [3, 3]
    assert all(call.time is not None for one in recordings.values() for call in one.calls)
    with pytest.raises(FormatError, match="2 conversations"):
        read_recording(lines)


def test_stats_counts_the_conversations_of_a_recording(folder: Path) -> None:
    """As many as `count` lists."""
    found = run("stats", folder, *MODEL)
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["conversations"] == 3


def test_lines_that_no_reader_knows_are_no_messages(tmp_path: Path) -> None:
    """The hint to read lines as messages is given where lines are messages, and nowhere else."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"type": "step", "step": {}}\n{"type": "step", "step": {}}\n', encoding="utf-8")
    found = run("count", path)
    assert found.exit_code == 1
    assert "messages-jsonl" not in found.stderr
    path.write_text(
        '{"role": "user", "content": "Hi"}\n{"role": "user", "content": "Hi"}\n', encoding="utf-8"
    )
    assert "--input messages-jsonl" in run("count", path).stderr


@pytest.mark.parametrize(
    "call", [lambda one: fit(one, 99), measure, validate, lambda one: Session(budget=200).add(one[0])]
)
def test_lines_of_a_log_are_refused_at_each_door(call: Any) -> None:
    """With the function that reads them."""
    with pytest.raises(FormatError, match="read_foreign"):
        call(log("one"))


def test_one_bad_row_is_one_error(tmp_path: Path) -> None:
    """Also where it is among the first lines, by which a file is told."""
    path = tmp_path / "rows.jsonl"
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    bad = {"conversations": [{"from": "human", "value": "Hi"}]}
    path.write_text("".join(f"{json.dumps(one)}\n" for one in (body, bad, body)), encoding="utf-8")
    found = run("count", path)
    assert (found.exit_code, len(found.stdout.splitlines())) == (1, 3)
    assert "line 2: it is a recording of ShareGPT" in found.stderr


def test_times_that_are_given_go_before_those_of_a_recording() -> None:
    """And there are as many as messages."""
    lines = log("one")
    calls = read_recording(lines, times=[1.0, 2.0, 3.0, 4.0]).calls
    assert [call.time for call in calls] == [1.0, 3.0]
    with pytest.raises(ConfigurationError, match="times"):
        read_recording(lines, times=[1.0])
