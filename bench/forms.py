"""The same chat in other forms, and the loop somebody writes by hand for each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from conversations import Message, Messages
from formula import CALL_TOKENS, COUNT, MESSAGE_TOKENS, PARALLEL_TOKENS, REQUEST_TOKENS, Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one wire form is read by hand."""

    write: Callable[[Messages], list[Any]]
    """Write a chat of Chat Completions in this form, without the system messages at its front."""
    tokens: Callable[[Any, Count], int]
    """The size of one message."""
    calls: Callable[[Any], Iterable[str]]
    """The ids of the calls it makes."""
    results: Callable[[Any], Iterable[str]]
    """The ids of the calls it answers."""


def newest_first(messages: list[Any], limit_tokens: int, form: Form, count: Count = COUNT) -> list[Any]:
    """Keep the newest that fits: `floors.plain_loop` for a form that is read by functions.

    Only what these forms say by blocks is read that way; what stays, and when the walk stops, is the same but
    for the latest user message: it is within what is kept here, as the budgets of the bench are large.
    """
    tokens, calls, results = form.tokens, form.calls, form.results
    used, start, group_tokens = REQUEST_TOKENS, len(messages), 0
    waiting: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        group_tokens += tokens(message, count)
        if used + group_tokens > limit_tokens:
            break
        waiting.update(results(message))
        if waiting:
            waiting.difference_update(calls(message))
        if not waiting:
            start, used, group_tokens = index, used + group_tokens, 0
    return messages[start:]


def _entries(messages: Messages) -> Iterable[tuple[Message | None, list[Message]]]:
    """Yield each message that is no result alone, and results that stand together as one list."""
    results: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(message)
            continue
        if results:
            yield None, results
            results = []
        if message["role"] != "system":
            yield message, []
    if results:
        yield None, results


def _arguments(call: Message) -> Any:
    return json.loads(call["function"]["arguments"])


# Anthropic's Messages.


def _write_anthropic(messages: Messages) -> list[Any]:
    written: list[Any] = []
    for message, results in _entries(messages):
        if message is None:
            blocks = [
                {"type": "tool_result", "tool_use_id": one["tool_call_id"], "content": one["content"]}
                for one in results
            ]
            written.append({"role": "user", "content": blocks})
            continue
        calls = [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": _arguments(call),
            }
            for call in message.get("tool_calls") or ()
        ]
        texts = [{"type": "text", "text": message["content"]}] if message.get("content") else []
        content = [*texts, *calls] if calls else message["content"] or "-"
        written.append({"role": message["role"], "content": content})
    return written


def _anthropic_tokens(message: Any, count: Count) -> int:
    content = message["content"]
    if isinstance(content, str):
        return MESSAGE_TOKENS + count(content)
    tokens = MESSAGE_TOKENS
    for block in content:
        if block["type"] == "text":
            tokens += count(block["text"])
        elif block["type"] == "tool_use":
            tokens += CALL_TOKENS + 2 * count(block["name"]) + count(json.dumps(block["input"]))
        else:
            tokens += MESSAGE_TOKENS + count(block["content"])
    return tokens


def _anthropic_ids(message: Any, type: str, key: str) -> Iterable[str]:
    content = message["content"]
    return () if isinstance(content, str) else [block[key] for block in content if block["type"] == type]


ANTHROPIC = Form(
    write=_write_anthropic,
    tokens=_anthropic_tokens,
    calls=lambda message: _anthropic_ids(message, "tool_use", "id"),
    results=lambda message: _anthropic_ids(message, "tool_result", "tool_use_id"),
)


# OpenAI's Responses: calls and results are items of their own.


def _write_responses(messages: Messages) -> list[Any]:
    written: list[Any] = []
    for message in messages:
        if message["role"] == "tool":
            output = {"call_id": message["tool_call_id"], "output": message["content"]}
            written.append({"type": "function_call_output", **output})
        elif message["role"] != "system":
            if message.get("content"):
                written.append({"role": message["role"], "content": message["content"]})
            written += [
                {"type": "function_call", "call_id": call["id"], **call["function"]}
                for call in message.get("tool_calls") or ()
            ]
    return written


def _responses_tokens(item: Any, count: Count) -> int:
    type_ = item.get("type")
    if type_ == "function_call":
        return CALL_TOKENS + 2 * count(item["name"]) + count(item["arguments"])
    return MESSAGE_TOKENS + count(item["output"] if type_ == "function_call_output" else item["content"])


RESPONSES = Form(
    write=_write_responses,
    tokens=_responses_tokens,
    calls=lambda item: (item["call_id"],) if item.get("type") == "function_call" else (),
    results=lambda item: (item["call_id"],) if item.get("type") == "function_call_output" else (),
)


# Gemini's contents.


def _write_gemini(messages: Messages) -> list[Any]:
    names: dict[str, str] = {}
    written: list[Any] = []
    for message, results in _entries(messages):
        if message is None:
            responses = [
                {
                    "functionResponse": {
                        "id": one["tool_call_id"],
                        "name": names[one["tool_call_id"]],
                        "response": {"result": one["content"]},
                    }
                }
                for one in results
            ]
            written.append({"role": "user", "parts": responses})
            continue
        parts: list[Message] = [{"text": message["content"]}] if message.get("content") else []
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
            named = {"id": call["id"], "name": call["function"]["name"], "args": _arguments(call)}
            parts.append({"functionCall": named})
        role = "model" if message["role"] == "assistant" else "user"
        written.append({"role": role, "parts": parts or [{"text": "-"}]})
    return written


def _gemini_tokens(content: Any, count: Count) -> int:
    tokens = MESSAGE_TOKENS
    for part in content["parts"]:
        if "text" in part:
            tokens += count(part["text"])
        elif "functionCall" in part:
            call = part["functionCall"]
            tokens += CALL_TOKENS + 2 * count(call["name"]) + count(json.dumps(call["args"]))
        else:
            tokens += MESSAGE_TOKENS + count(json.dumps(part["functionResponse"]["response"]))
    return tokens


def _gemini_ids(content: Any, key: str) -> Iterable[str]:
    return [part[key]["id"] for part in content["parts"] if key in part]


GEMINI = Form(
    write=_write_gemini,
    tokens=_gemini_tokens,
    calls=lambda content: _gemini_ids(content, "functionCall"),
    results=lambda content: _gemini_ids(content, "functionResponse"),
)


# Objects of OpenAI's SDK: what the model said is an object, what the program says is a dict.


def _write_objects(messages: Messages) -> list[Any]:
    from openai.types.chat import ChatCompletionMessage

    return [
        ChatCompletionMessage.model_validate(message) if message["role"] == "assistant" else message
        for message in messages
        if message["role"] != "system"
    ]


def _object_tokens(message: Any, count: Count) -> int:
    if isinstance(message, dict):
        return MESSAGE_TOKENS + count(message["content"])
    tokens = MESSAGE_TOKENS + (count(message.content) if message.content else 0)
    calls = message.tool_calls or ()
    for call in calls:
        tokens += CALL_TOKENS + 2 * count(call.function.name) + count(call.function.arguments)
    return tokens + (PARALLEL_TOKENS if len(calls) > 1 else 0)


def _object_calls(message: Any) -> Iterable[str]:
    return () if isinstance(message, dict) else [call.id for call in message.tool_calls or ()]


def _object_results(message: Any) -> Iterable[str]:
    return (message["tool_call_id"],) if isinstance(message, dict) and message["role"] == "tool" else ()


SDK_OBJECTS = Form(write=_write_objects, tokens=_object_tokens, calls=_object_calls, results=_object_results)
