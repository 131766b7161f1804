"""A model call of an agent of Agent Framework whose middleware fits it, without the model."""

from __future__ import annotations

from typing import Any

from agent_framework import ChatContext, Content, Message
from agent_framework.openai import OpenAIChatCompletionClient

from tests.integrations.seam import MODEL, Run, bare, calls_of, complete
from trimtab.integrations.agent_framework import TrimMiddleware


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    history = [_message(message) for message in messages]
    client, trim = OpenAIChatCompletionClient(model=MODEL, api_key="none"), TrimMiddleware(budget)

    async def call_next() -> None:
        return None

    async def run() -> object:
        context = ChatContext(client=client, messages=history, options={})
        await trim.process(context, call_next)
        return context.messages

    return complete(run), bare(messages, budget)


def _message(message: dict[str, Any]) -> Message:
    text = message["content"] or ""
    if message["role"] == "tool":
        return Message("tool", [Content.from_function_result(message["tool_call_id"], result=text)])
    calls = [Content.from_function_call(i, name, arguments=args) for i, name, args in calls_of(message)]
    return Message(message["role"], [*([text] if text else []), *calls])
