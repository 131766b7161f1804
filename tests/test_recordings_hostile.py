"""Recordings in which anything may stand anywhere: they are read, are nobody's, or are refused as such."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests import test_refused_programs as refused
from tests import test_telemetry_messages as telemetry
from tests.recorded_logs import claude_session, codex_session
from tests.sizes import sizes
from trimtab.errors import FormatError
from trimtab.formats import read_foreign
from trimtab.testing.hooks import said_of

CALL = {"type": "tool-call", "toolCallId": "a", "toolName": "look", "input": {"at": "Rome"}}
RESULT = {
    "type": "tool-result",
    "toolCallId": "a",
    "output": {"type": "content", "value": [{"type": "text"}]},
}
VERCEL = {
    "id": "c",
    "model": {"modelId": "gpt-4o"},
    "system": [{"role": "system", "content": "Be brief."}],
    "tools": {"look": {"inputSchema": {"jsonSchema": {"type": "object"}}}},
    "messages": [
        {"role": "user", "content": [{"type": "image", "image": {"type": "Buffer", "data": [1]}}]},
        {"role": "assistant", "content": [CALL, {"type": "tool-approval-request", "approvalId": "p"}]},
        {"role": "tool", "content": [RESULT, {"type": "tool-approval-response", "approvalId": "p"}]},
        {"role": "user", "content": "x", "experimental_attachments": [{"url": "data:image/png;base64,aGk="}]},
        {
            "role": "assistant",
            "content": "x",
            "toolInvocations": [{"state": "result", "step": 1, "result": 2}],
        },
        {
            "role": "assistant",
            "createdAt": "2025-03-01T10:00:00Z",
            "parts": [
                {
                    "type": "tool-look",
                    "state": "output-denied",
                    "approval": {"approved": False},
                    "rawInput": 2,
                },
                {"type": "tool-invocation", "toolInvocation": {"state": "call", "args": {}}},
                {"type": "steering-message", "parts": [{"type": "text", "text": "x"}]},
                {"type": "file", "mediaType": "image/png", "url": "https://example.org"},
            ],
        },
    ],
}
SPANS = [
    {
        "start_time": "2026-01-01T00:00:00Z",
        "context": {"trace_id": "1"},
        "attributes": {
            "gen_ai.input.messages": [telemetry.QUESTION, telemetry.CALLED, telemetry.RESULTS],
            "gen_ai.output.messages": [telemetry.SAID],
            "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
            "gen_ai.tool.definitions": [telemetry.TOOL],
            "gen_ai.usage.input_tokens": 4,
            "gen_ai.usage.cache_read.input_tokens": 4,
        },
    },
    {
        "startTimeUnixNano": "5",
        "attributes": [
            {"key": "llm.input_messages.0.message.role", "value": {"stringValue": "user"}},
            {
                "key": "llm.input_messages.0.message.contents.0.message_content.text",
                "value": {"stringValue": "x"},
            },
            {"key": "llm.input_messages.0.message.tool_calls.0.tool_call.id", "value": {"stringValue": "x"}},
            {"key": "llm.tools.0.tool.json_schema", "value": {"stringValue": "{}"}},
        ],
        "events": [{"attributes": {"ai.prompt.messages": "[]"}}],
    },
]
RECORDINGS = [
    VERCEL,
    SPANS,
    {"resourceSpans": [{"scopeSpans": [{"spans": SPANS}]}]},
    *(one for _, one in refused.RECORDINGS),
    claude_session(),
    codex_session(),
]
JUNK: list[Any] = [
    None,
    7,
    -1.5,
    True,
    "",
    "x",
    "{",
    "[]",
    [],
    {},
    [None],
    [[]],
    {"type": 3},
    {"type": "text"},
    {"0": "x"},
    {"a.b": 1},
]


def _with_junk(value: Any, chance: random.Random) -> Any:
    """Put junk at one place, however deep, or take it out."""
    places = [(owner, key) for owner, key in _places(value)]
    owner, key = chance.choice(places)
    if isinstance(owner, dict) and chance.random() < 0.3:
        del owner[key]
    else:
        owner[key] = copy.deepcopy(chance.choice(JUNK))
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    found = list[tuple[Any, Any]]()
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(held, dict | list):
            found += _places(held)
    return found


@sizes(few=30, many=1_000)
def test_junk_anywhere_is_read_or_refused(size: int) -> None:
    """No other error than the one that says what is wrong."""
    chance = random.Random(5)
    read = 0
    for number in range(size * len(RECORDINGS)):
        recording: Any = copy.deepcopy(RECORDINGS[number % len(RECORDINGS)])
        for _ in range(chance.randint(1, 3)):
            if not recording:
                break
            recording = _with_junk(recording, chance)
        try:
            found = read_foreign(recording)
        except FormatError:
            continue
        read += bool(found)
        for one in recording if isinstance(recording, list) else ():
            if isinstance(one, dict):
                said_of(one)
    assert read
