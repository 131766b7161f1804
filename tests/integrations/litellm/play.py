"""Loops of an agent that calls LiteLLM: its own history, and one of its calls for each step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import litellm

from tests.integrations.loops import IMAGE, SYSTEM, LookError, Loop, Question
from tests.integrations.upstream import Score, upstream

KEYS: Any = {"api_key": "none", "num_retries": 0}
PARAMETERS = {"type": "object", "properties": {"place": {"type": "integer"}}, "required": ["place"]}
FUNCTION = {"name": "look", "description": "Look at a place.", "parameters": PARAMETERS}

Send = Callable[..., Awaitable[Any]]
"""Sends a call as LiteLLM takes it: address of the server, and the arguments that all loops share."""


class Chat:
    """A history of chat completions; the answers are LiteLLM's own objects."""

    def __init__(self) -> None:
        self.messages: list[Any] = [{"role": "system", "content": SYSTEM}]

    def ask(self, question: Question) -> None:
        """Add what a user asks."""
        content: Any = question.text
        if question.has_image:
            content = [
                {"type": "text", "text": question.text},
                {"type": "image_url", "image_url": {"url": IMAGE}},
            ]
        self.messages.append({"role": "user", "content": content})

    def arguments(self) -> dict[str, Any]:
        """Return what is sent."""
        return {"messages": self.messages, "tools": [{"type": "function", "function": FUNCTION}]}

    def hear(self, answer: Any) -> list[tuple[str, int]]:
        """Add what the model says; returns its calls: id and place."""
        message = answer.choices[0].message
        self.messages.append(message)
        calls = message.tool_calls or ()
        return [(call.id, json.loads(call.function.arguments)["place"]) for call in calls]

    def look(self, results: list[tuple[str, str, bool]]) -> None:
        """Add what the tool says to each call, and whether it failed."""
        self.messages += [{"role": "tool", "tool_call_id": key, "content": text} for key, text, _ in results]


class Messages(Chat):
    """A history in Anthropic's form."""

    def __init__(self) -> None:
        self.messages = []

    def ask(self, question: Question) -> None:
        """Add what a user asks."""
        mark = {"cache_control": {"type": "ephemeral"}} if question.is_marked else {}
        content: list[Any] = [{"type": "text", "text": question.text, **mark}]
        if question.has_image:
            source = {"type": "base64", "media_type": "image/png", "data": IMAGE.partition(",")[2]}
            content.append({"type": "image", "source": source})
        self.messages.append({"role": "user", "content": content})

    def arguments(self) -> dict[str, Any]:
        """Return what is sent."""
        tool = {"name": "look", "description": "Look at a place.", "input_schema": PARAMETERS}
        return {"messages": self.messages, "system": SYSTEM, "tools": [tool], "max_tokens": 1_000}

    def hear(self, answer: Any) -> list[tuple[str, int]]:
        """Add what the model says; returns its calls."""
        self.messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        return [(call["id"], call["input"]["place"]) for call in calls]

    def look(self, results: list[tuple[str, str, bool]]) -> None:
        """Add what the tool says to all calls."""
        content = [
            {"type": "tool_result", "tool_use_id": key, "content": text, "is_error": failed}
            for key, text, failed in results
        ]
        self.messages.append({"role": "user", "content": content})


class Items(Chat):
    """A history of Responses items."""

    def __init__(self) -> None:
        self.messages = []

    def ask(self, question: Question) -> None:
        """Add what a user asks."""
        content: list[Any] = [{"type": "input_text", "text": question.text}]
        if question.has_image:
            content.append({"type": "input_image", "image_url": IMAGE, "detail": "auto"})
        self.messages.append({"role": "user", "content": content})

    def arguments(self) -> dict[str, Any]:
        """Return what is sent."""
        return {"input": self.messages, "instructions": SYSTEM, "tools": [{"type": "function", **FUNCTION}]}

    def hear(self, answer: Any) -> list[tuple[str, int]]:
        """Add what the model says; returns its calls."""
        self.messages += [item.model_dump(exclude_none=True) for item in answer.output]
        calls = [item for item in answer.output if item.type == "function_call"]
        return [(call.call_id, json.loads(call.arguments)["place"]) for call in calls]

    def look(self, results: list[tuple[str, str, bool]]) -> None:
        """Add what the tool says to each call."""
        self.messages += [
            {"type": "function_call_output", "call_id": key, "output": text} for key, text, _ in results
        ]


def _look(loop: Loop, calls: list[tuple[str, int]]) -> list[tuple[str, str, bool]]:
    said = []
    for key, place in calls:
        try:
            said.append((key, loop.look(place), False))
        except LookError as error:
            said.append((key, str(error), True))
    return said


async def converse(loop: Loop, talk: Chat, send: Send, questions: int) -> None:
    """Ask the questions of a loop, one after the other."""
    for question in loop.questions[:questions]:
        talk.ask(question)
        while calls := talk.hear(await send(**talk.arguments())):
            talk.look(_look(loop, calls))


def play(
    loop: Loop,
    send: Send,
    *callbacks: Any,
    talk: Chat | None = None,
    questions: int = 1_000,
    charges: tuple[str | None, float] | None = None,
) -> tuple[Score, list[Any]]:
    """Play a loop; returns the score and the history of the agent.

    `send` is given the address of the server, `address`, beside what all calls have. With `charges` (see
    `Upstream`) the answers say what was billed.
    """
    talk = talk or Chat()
    litellm.callbacks = [*callbacks]
    with upstream(loop, bills=charges is not None, charges=charges) as served:

        async def sends(**arguments: Any) -> Any:
            return await send(address=served.address, **arguments, **KEYS)

        try:
            asyncio.run(converse(loop, talk, sends, questions))
        finally:
            litellm.callbacks = []
        return served.score, talk.messages


async def sdk(*, address: str, **arguments: Any) -> Any:
    """Call a model of OpenAI's."""
    return await litellm.acompletion(model="openai/gpt-4o", api_base=f"{address}/v1", **arguments)
