"""Programs whose recordings are told and refused, each with the line that converts them."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from trimtab import validate
from trimtab.errors import FormatError
from trimtab.formats import read_foreign
from trimtab.testing.hooks import INSTEAD, program_of, said_of, said_of_bytes

EVENTS = [
    {
        "id": "e1",
        "invocation_id": "i",
        "author": "user",
        "timestamp": 1.5,
        "content": {"role": "user", "parts": [{"text": "Sky?"}]},
        "actions": {"state_delta": {}},
    },
    {"id": "e2", "invocation_id": "i", "author": "agent", "actions": {"state_delta": {"a": 1}}},
    {
        "id": "e3",
        "invocationId": "i",
        "author": "agent",
        "content": {"role": "model", "parts": [{"text": "Blue."}]},
    },
]
PYDANTIC_AI = [
    {
        "kind": "request",
        "parts": [{"part_kind": "user-prompt", "content": "Sky?", "timestamp": "2026-01-01T00:00:00Z"}],
    },
    {"kind": "response", "model_name": "gpt-4o", "parts": [{"part_kind": "text", "content": "Blue."}]},
]
INSPECT = [
    {"id": "m1", "role": "user", "source": "input", "content": "Sky?"},
    {
        "id": "m2",
        "role": "assistant",
        "source": "generate",
        "content": "",
        "tool_calls": [{"id": "a", "function": "look", "arguments": {}, "type": "function"}],
    },
    {"id": "m3", "role": "tool", "content": "blue", "tool_call_id": "a", "function": "look"},
]
LETTA = [
    {
        "type": "message",
        "id": "message-0",
        "role": "system",
        "content": [{"type": "text", "text": "Be."}],
        "otid": None,
    },
    {"id": "message-1", "role": "user", "content": [{"type": "text", "text": "Sky?"}], "otid": "o"},
    {
        "id": "message-2",
        "role": "assistant",
        "otid": "p",
        "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look."}],
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        "tool_returns": [],
    },
    {
        "id": "message-3",
        "role": "tool",
        "content": [{"type": "text", "text": "blue"}],
        "tool_call_id": "a",
        "tool_returns": [{"tool_call_id": "a", "status": "success", "func_response": "blue"}],
        "otid": None,
    },
]
GEMINI_CLI = {
    "sessionId": "s",
    "projectHash": "p",
    "startTime": "2026-04-17T15:23:55.515Z",
    "messages": [
        {"id": "1", "timestamp": "2026-04-17T15:23:55.515Z", "type": "user", "content": [{"text": "Sky?"}]},
        {
            "id": "2",
            "timestamp": "2026-04-17T15:23:56.515Z",
            "type": "gemini",
            "content": "Blue.",
            "toolCalls": [],
        },
    ],
}
ANSWERED = [
    {
        "method": "generateContentStream",
        "response": [{"candidates": [{"content": {"parts": [{"text": "Blue."}]}}]}],
    }
]
SHAREGPT = [
    {"id": "row-1", "conversations": [{"from": "human", "value": "Sky?"}, {"from": "gpt", "value": "Blue."}]},
    {"id": "row-2", "conversations": [{"from": "human", "value": "Sea?"}]},
]
TANSTACK = [
    {"id": "1", "role": "user", "parts": [{"type": "text", "content": "Sky?"}]},
    {
        "id": "2",
        "role": "assistant",
        "parts": [
            {"type": "tool-call", "id": "a", "name": "look", "arguments": "{}", "state": "input-complete"},
            {"type": "tool-result", "toolCallId": "a", "content": "blue", "state": "complete"},
        ],
    },
]
AG_UI = [
    {"id": "1", "role": "user", "content": "Sky?"},
    {
        "id": "2",
        "role": "assistant",
        "toolCalls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"id": "3", "role": "tool", "toolCallId": "a", "content": "blue"},
]

RECORDINGS = [
    ("Google's ADK", EVENTS),
    ("Google's ADK", {"id": "s", "appName": "app", "userId": "u", "state": {}, "events": EVENTS}),
    ("pydantic-ai", PYDANTIC_AI),
    ("inspect_ai", INSPECT),
    ("inspect_ai", {"id": 1, "epoch": 1, "input": "Sky?", "messages": INSPECT}),
    ("inspect_ai", {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": []}),
    ("Letta", LETTA),
    (
        "Letta",
        {"agents": [{"id": "agent-0", "llm_config": {}, "messages": LETTA}], "blocks": [], "tools": []},
    ),
    ("Letta", {"agent_type": "memgpt_agent", "llm_config": {}, "messages": LETTA[1:2]}),
    ("Letta", [{"id": "1", "message_type": "user_message", "content": "Sky?"}]),
    ("gemini-cli", GEMINI_CLI),
    ("gemini-cli", [{key: GEMINI_CLI[key] for key in ("sessionId", "projectHash")}, *GEMINI_CLI["messages"]]),
    ("gemini-cli", GEMINI_CLI["messages"]),
    ("gemini-cli's responses", ANSWERED),
    ("ShareGPT", SHAREGPT),
    ("ShareGPT", SHAREGPT[0]),
    ("TanStack AI", TANSTACK),
    ("AG-UI", AG_UI),
]


@pytest.mark.parametrize(("program", "recording"), RECORDINGS)
def test_a_recording_is_refused_by_its_name(program: str, recording: Any) -> None:
    """With what to write instead: nothing of it is counted in silence."""
    with pytest.raises(FormatError) as error:
        read_foreign(recording)
    assert str(error.value).startswith(f"it is a recording of {program}: ")
    said = INSTEAD.get(program)
    assert str(error.value).endswith(said or "pass the requests")


@pytest.mark.parametrize(
    ("program", "messages"),
    [
        ("Google's ADK", EVENTS),
        ("pydantic-ai", PYDANTIC_AI),
        ("inspect_ai", INSPECT[1:]),
        ("Letta", LETTA),
        ("gemini-cli", GEMINI_CLI["messages"]),
        ("TanStack AI", TANSTACK[1:]),
        ("AG-UI", AG_UI[1:]),
    ],
)
def test_one_message_tells_its_program(program: str, messages: list[dict[str, Any]]) -> None:
    """Every door asks so; the words are those of a whole recording."""
    for message in messages:
        assert said_of(message) == f"it is a message of {program}: {INSTEAD[program]}"


@pytest.mark.parametrize(
    ("called", "message"),
    [
        (
            "a line of Claude Code's log",
            {"type": "user", "uuid": "a", "sessionId": "s", "message": {"role": "user"}},
        ),
        ("a line of Claude Code's log", {"type": "summary", "leafUuid": "a", "summary": "Sky"}),
        (
            "a line of Codex's log",
            {"type": "response_item", "timestamp": "t", "payload": {"type": "message"}},
        ),
        (
            "a message of the Vercel AI SDK",
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a"}]},
        ),
        ("a message of the Vercel AI SDK", {"role": "assistant", "parts": [{"type": "step-start"}]}),
        (
            "a message of the Vercel AI SDK",
            {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Sky?"}]},
        ),
        ("a message of the Vercel AI SDK", {"role": "assistant", "content": "x", "toolInvocations": []}),
        (
            "a message of the Vercel AI SDK",
            {"role": "user", "content": [{"type": "file", "mediaType": "image/png"}]},
        ),
        ("a message of OpenTelemetry", {"role": "user", "parts": [{"type": "text", "content": "Sky?"}]}),
        (
            "a message of OpenTelemetry",
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a"}]},
        ),
    ],
)
def test_a_message_of_a_program_that_is_read_names_its_reader(called: str, message: Any) -> None:
    """One message alone has lost its order: the whole recording is read."""
    assert said_of(message) == f"it is {called}: read_foreign(messages) of trimtab.formats reads it"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "Sky?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "blue", "name": "look"},
        {"role": "function", "name": "look", "content": "blue"},
        {"role": "user", "parts": [{"text": "Sky?"}, {"functionResponse": {"name": "look"}}]},
        {"role": "model", "parts": []},
        {
            "role": "user",
            "content": [{"type": "image", "source": {}}, {"type": "tool_result", "tool_use_id": "a"}],
        },
        {
            "role": "user",
            "content": [{"type": "file", "file": {}}, {"type": "input_file", "file_id": "f"}, "x"],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a"}}]},
        {"type": "message", "role": "assistant", "id": "m", "content": []},
        {"type": "function_call_output", "call_id": "a", "output": "blue"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "mcp_approval_request", "id": "a", "name": "look", "arguments": "{}", "server_label": "s"},
        {"type": "human", "content": "Sky?"},
        {"from": "human", "value": "Sky?"},
        {},
    ],
)
def test_a_message_of_a_wire_form_is_of_no_program(message: Any) -> None:
    """Nor one that another part of the door tells."""
    assert program_of(message) is None
    assert said_of(message) is None


def _expression(program: str) -> str:
    """Take the expression out of what is said."""
    found = re.fullmatch(r"pass (\[.*?\])(, (for each|one row).*| with .*)?", INSTEAD[program])
    assert found is not None, program
    return found[1]


@pytest.mark.parametrize(
    ("program", "names", "format"),
    [
        ("Google's ADK", {"events": EVENTS}, "gemini"),
        ("Letta", {"agent": {"messages": LETTA}}, "openai_chat"),
        ("ShareGPT", {"row": SHAREGPT[0]}, "openai_chat"),
        ("AG-UI", {"messages": AG_UI}, "openai_chat"),
    ],
)
def test_an_expression_that_is_named_converts(program: str, names: Any, format: str) -> None:
    """As it is written, with a valid conversation as its result."""
    source = _expression(program)
    ast.parse(source, mode="eval")
    made = eval(source, dict(names))
    assert len(made) > 1
    assert validate(made, format=format) == []
    assert read_foreign(made) is None


def test_a_zip_archive_is_told_by_its_first_bytes() -> None:
    """Which no reader of text would say."""
    assert "inspect_ai" in str(said_of_bytes(b"PK\x03\x04rest"))
    assert said_of_bytes(b'{"messages"') is None
