"""A model call of an agent of Haystack's whose hook fits it, without the model."""

from __future__ import annotations

from typing import Any

from haystack.components.agents.state import State, replace_values
from haystack.dataclasses import ChatMessage, ToolCall

from tests.integrations.seam import MODEL, Run, bare, calls_of
from trimtab.integrations.haystack import TrimHook


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    calls = {i: ToolCall(name, args, id=i) for one in messages for i, name, args in calls_of(one)}
    history = [_message(message, calls) for message in messages]
    trim = TrimHook(budget, model=MODEL)
    state = State({"tools": {"type": list}}, {"tools": []})

    def run() -> object:
        state.set("messages", history, handler_override=replace_values)
        trim.run(state)
        sent = state.data["messages"]
        state.set("messages", [])  # the answer, with which the whole history is back
        return sent

    return run, bare(messages, budget)


def _message(message: dict[str, Any], calls: dict[str, ToolCall]) -> ChatMessage:
    text = message["content"] or ""
    if message["role"] == "tool":
        return ChatMessage.from_tool(text, calls[message["tool_call_id"]])
    if message["role"] == "assistant":
        asked = [calls[i] for i, _, _ in calls_of(message)]
        return ChatMessage.from_assistant(text or None, tool_calls=asked)
    return (ChatMessage.from_system if message["role"] == "system" else ChatMessage.from_user)(text)
