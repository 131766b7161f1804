"""A model call of an OpenAI agent whose filter fits it, without the model."""

from __future__ import annotations

from typing import Any

from agents import Agent
from agents.run import CallModelData, ModelInputData

from tests.integrations.seam import MODEL, Run, bare, complete
from trimtab.integrations.openai_agents import trim_filter


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    items: list[Any] = [item for message in messages for item in _items(message)]
    trim, agent = trim_filter(budget), Agent[None]("looker", model=MODEL)
    data = CallModelData(ModelInputData(items, None), agent, None)
    return complete(lambda: trim(data)), bare(items, budget, format="openai_responses")


def _items(message: dict[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        call_id = message["tool_call_id"]
        return [{"type": "function_call_output", "call_id": call_id, "output": message["content"]}]
    said = [{"role": message["role"], "content": message["content"]}] if message["content"] else []
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]}
        for call in message.get("tool_calls") or ()
    ]
    return [*said, *calls]
