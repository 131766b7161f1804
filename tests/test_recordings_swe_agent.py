"""Trajectories of SWE-agent, read as the program sent them (its page "Output files")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.errors import FormatError
from trimtab.formats import read_foreign
from trimtab.replay import read_recording, replay
from trimtab.strategies import SlidingWindow

Message = dict[str, Any]

CALL = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}


def _text_history() -> list[Message]:
    """History of an agent whose model writes its action in its text: observations are the user's messages."""
    return [
        {"role": "system", "content": "You fix issues.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "A demonstration.", "agent": "main", "is_demo": True},
        {"role": "user", "content": [{"type": "text", "text": "Fix issue 7."}], "agent": "main"},
        {
            "role": "assistant",
            "content": "I look.\n```\nls\n```",
            "thought": "I look.",
            "action": "ls",
            "agent": "main",
            "tool_calls": None,
            "message_type": "action",
        },
        {"role": "user", "content": "a.py\nb.py", "agent": "main", "message_type": "observation"},
        {"role": "assistant", "content": "Done.", "thought": "", "action": "submit", "agent": "main"},
    ]


def _tool_history() -> list[Message]:
    """The same of one whose model calls functions."""
    asked, looked, found = _text_history()[2:5]
    looked = {**looked, "content": "", "tool_calls": [CALL], "thinking_blocks": [{"type": "thinking"}]}
    mark = {"type": "text", "text": "a.py", "cache_control": {"type": "ephemeral"}}
    found = {**found, "role": "tool", "content": [mark], "tool_call_ids": ["call_1"]}
    return [asked, looked, found]


def _steps() -> list[Message]:
    return [{"action": "ls", "observation": "a.py\nb.py", "response": "I look.", "thought": "I look."}]


def _file(history: list[Message]) -> dict[str, Any]:
    return {"environment": "repo", "trajectory": _steps(), "history": history, "info": {"exit_status": "ok"}}


def test_messages_are_those_that_were_sent() -> None:
    """What the program notes beside them, as thought and action, is not."""
    (found,) = read_foreign(_file(_text_history())) or ()
    assert (found.program, found.format, found.name) == ("SWE-agent", "openai_chat", "")
    assert found.body == {
        "messages": [
            {"role": "system", "content": "You fix issues."},
            {"role": "user", "content": "A demonstration."},
            {"role": "user", "content": "Fix issue 7."},
            {"role": "assistant", "content": "I look.\n```\nls\n```"},
            {"role": "user", "content": "a.py\nb.py"},
            {"role": "assistant", "content": "Done."},
        ]
    }


def test_calls_and_results_are_those_of_chat() -> None:
    """A result names its call; marks of a cache and reasoning are in no message."""
    (found,) = read_foreign(_file(_tool_history())) or ()
    assert found.body["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a.py"},
    ]
    assert [note.partition(":")[0] for note in found.notes] == ["Reasoning is in no message"]


@pytest.mark.parametrize("key", ["query", "messages"])
def test_without_a_history_the_last_step_says_what_was_sent(key: str) -> None:
    """Since 1.1 under one name, and before under another; the answer stands behind it."""
    steps = [{**_steps()[0], key: _text_history()[:3]}, {**_steps()[0], key: [], "response": ""}]
    (found,) = read_foreign({"trajectory": steps, "info": {}}) or ()
    assert [one["role"] for one in found.body["messages"]] == ["system", "user", "user", "assistant"]
    assert found.body["messages"][-1]["content"] == "I look."


def test_each_agent_has_its_conversation() -> None:
    """One that was asked by another has messages of its own."""
    other = [{"role": "user", "content": "Look for it.", "agent": "scout"}]
    main, scout = read_foreign(_file([*_text_history(), *other])) or ()
    assert (main.name, scout.name) == ("main", "scout")
    assert len(main.body["messages"]) == 6
    assert scout.body["messages"] == [{"role": "user", "content": "Look for it."}]


def test_replay_plays_the_calls_of_a_file(tmp_path: Path) -> None:
    """A call for each answer, by the same function as any other recording."""
    path = tmp_path / "repo__7.traj"
    path.write_text(json.dumps(_file(_text_history())), encoding="utf-8")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [len(call.messages) for call in read_recording(document).calls] == [3, 5]
    assert replay(document, SlidingWindow(), budget=4_000).totals.calls == 2


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ({"trajectory": _steps(), "history": {}}, "trajectory"),
        ({"trajectory": _steps(), "history": [{"role": "judge"}]}, "history[0]"),
        ({"trajectory": _steps(), "history": [{"role": "user", "content": 7}]}, "history[0].content"),
        ({"trajectory": _steps(), "history": [{"role": "user", "content": [7]}]}, "history[0].content[0]"),
        (
            {"trajectory": _steps(), "history": [{"role": "assistant", "content": "", "tool_calls": [7]}]},
            "history[0].tool_calls",
        ),
    ],
)
def test_what_the_program_never_writes_is_refused_with_its_place(source: Any, path: str) -> None:
    """A broken file is no conversation."""
    with pytest.raises(FormatError) as caught:
        read_foreign(source)
    assert caught.value.path == path


@pytest.mark.parametrize("source", [{"trajectory": []}, {"trajectory": [{"x": 1}]}, {"history": []}, []])
def test_other_documents_are_of_no_program(source: Any) -> None:
    """A key of the same name is not enough."""
    assert read_foreign(source) is None
