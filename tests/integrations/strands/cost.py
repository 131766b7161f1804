"""A model call of an agent of Strands whose middleware fits it, without the model."""

from __future__ import annotations

from copy import deepcopy
from itertools import cycle
from typing import Any

from strands import Agent
from strands.middleware import InvokeModelContext
from strands.models.openai import OpenAIModel

from tests.integrations.seam import MODEL, Run, bare, calls_of, complete
from trimtab.integrations.strands import trim_middleware


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    model, trim = OpenAIModel(model_id=MODEL), trim_middleware(budget)
    history = [_message(message) for message in messages if message["role"] != "system"]
    context = InvokeModelContext(
        agent=Agent(model),
        messages=history,
        system_prompt=[{"text": one["content"]} for one in messages if one["role"] == "system"],
        tool_specs=[],
        tool_choice=None,
        invocation_state={},
        model=model,
    )
    wires = [_wire(message) for message in history]
    # The framework shows a middleware a copy of all messages, another at each call.
    calls = cycle([context.replace(messages=deepcopy(history)) for _ in range(3)])
    return complete(lambda: trim(next(calls))), bare(wires, budget, format="anthropic")


def _wire(message: dict[str, Any]) -> dict[str, Any]:
    """Write a message in the form that the adapter reads it in."""
    return {"role": message["role"], "content": [_block(one) for one in message["content"]]}


def _block(content: dict[str, Any]) -> dict[str, Any]:
    if "toolUse" in content:
        use = content["toolUse"]
        return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
    if "toolResult" in content:
        result = content["toolResult"]
        said = [_block(one) for one in result["content"]]
        return {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": said}
    return {"type": "text", "text": content["text"]}


def _message(message: dict[str, Any]) -> Any:
    said = [{"text": message["content"]}] if message["content"] else []
    if message["role"] == "tool":
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": said}
        return {"role": "user", "content": [{"toolResult": result}]}
    uses = [{"toolUse": {"toolUseId": i, "name": name, "input": args}} for i, name, args in calls_of(message)]
    return {"role": message["role"], "content": [*said, *uses]}
