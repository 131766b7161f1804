"""Ids at the border of what each provider takes."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab import validate

PARTS = [{"type": "text", "text": "I look."}]


def chat(call_id: str, **more: Any) -> list[dict[str, Any]]:
    """Write a call and its result in Chat; `more` are other keys of its message."""
    function = {"name": "f", "arguments": "{}"}
    called = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [called], **more},
        {"role": "tool", "tool_call_id": call_id, "content": "ok"},
    ]


def responses(call_id: str) -> list[dict[str, Any]]:
    """Write the same as items of Responses."""
    return [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": "ok"},
    ]


def anthropic(call_id: str) -> list[dict[str, Any]]:
    """Write the same for Anthropic."""
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"}]},
    ]


@pytest.mark.parametrize(
    ("messages", "form", "is_taken"),
    [
        ({"model": "gpt-4o", "messages": chat("x" * 40)}, "openai_chat", True),
        ({"model": "gpt-4o", "messages": chat("x" * 41)}, "openai_chat", False),
        ({"model": "gpt-4o", "messages": chat("x" * 40, content=PARTS)}, "openai_chat", True),
        ({"model": "gpt-4o", "messages": chat("x" * 41, content=PARTS)}, "openai_chat", False),
        (responses("x" * 64), "openai_responses", True),
        (responses("x" * 65), "openai_responses", False),
        (anthropic("toolu_1-A"), "anthropic", True),
        (anthropic("toolu_1 and more"), "anthropic", False),
        (anthropic("toolu_1\n"), "anthropic", False),
    ],
)
def test_an_id_is_taken_up_to_its_border(messages: Any, form: str, is_taken: bool) -> None:
    """40 characters for OpenAI's models in Chat, 64 in Responses; for Anthropic each half by its letters."""
    found = validate(messages, format=form)
    assert (found == []) == is_taken
    if form == "anthropic" and not is_taken:
        assert {one.index for one in found} == {1, 2}
