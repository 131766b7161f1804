"""A model call of a LangChain agent whose middleware fits it, without the model."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI

from tests.integrations.seam import MODEL, Run, bare, calls_of
from trimtab.integrations.langchain import TrimMiddleware


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    system, *others = map(_message, messages)
    model, trim = ChatOpenAI(model=MODEL, api_key="none"), TrimMiddleware(budget)
    request = ModelRequest(model=model, messages=others, system_message=system)
    answer = ModelResponse(result=[AIMessage("")])
    return lambda: trim.wrap_model_call(request, lambda sent: answer), bare(messages, budget)


def _message(message: dict[str, Any]) -> AnyMessage | Any:
    text = message["content"] or ""
    if message["role"] == "tool":
        return ToolMessage(text, tool_call_id=message["tool_call_id"])
    if message["role"] == "assistant":
        made = [{"id": call_id, "name": name, "args": args} for call_id, name, args in calls_of(message)]
        return AIMessage(text, tool_calls=made)
    return (SystemMessage if message["role"] == "system" else HumanMessage)(text)
