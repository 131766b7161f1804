"""Writes an answer of a provider as the events it streams: pieces of text, and what frames them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

PIECE_CHARS = 40


def streamed(form: str, answer: dict[str, Any]) -> str:
    """Write a whole answer as server-sent events."""
    return "".join(WRITERS[form](answer))


def _event(data: Any, *, named: bool = True) -> str:
    """Write an event; those that say their type are named by it."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))


def _chat(answer: dict[str, Any]) -> Iterator[str]:
    [choice] = answer["choices"]
    message, head = choice["message"], {**answer, "object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], ends: str | None = None) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": ends}]
        return _event({**head, "choices": choices}, named=False)

    yield chunk({"role": "assistant", "content": None if message.get("tool_calls") else ""})
    for piece in _pieces(message.get("content") or ""):
        yield chunk({"content": piece})
    for at, call in enumerate(message.get("tool_calls") or ()):
        arguments = call["function"]["arguments"]
        yield chunk(
            {"tool_calls": [{**call, "index": at, "function": {**call["function"], "arguments": ""}}]}
        )
        for piece in _pieces(arguments):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, choice["finish_reason"])
    yield "data: [DONE]\n\n"


def _anthropic(answer: dict[str, Any]) -> Iterator[str]:
    start = {**answer, "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": start})
    for at, block in enumerate(answer["content"]):
        empty = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        yield _event({"type": "content_block_start", "index": at, "content_block": empty})
        kind, key, text = "text_delta", "text", block.get("text", "")
        if block["type"] == "tool_use":
            kind, key, text = "input_json_delta", "partial_json", json.dumps(block["input"])
        for piece in _pieces(text):
            yield _event({"type": "content_block_delta", "index": at, "delta": {"type": kind, key: piece}})
        yield _event({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}})
    yield _event({"type": "message_stop"})


def _responses(answer: dict[str, Any]) -> Iterator[str]:
    events = enumerate(_response_events(answer))
    return (_event({**event, "sequence_number": at}) for at, event in events)


def _response_events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**answer, "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": begun}
    for at, item in enumerate(answer["output"]):
        place = {"output_index": at, "item_id": item["id"]}
        is_call = item["type"] == "function_call"
        empty = {**item, "status": "in_progress", **({"arguments": ""} if is_call else {"content": []})}
        yield {"type": "response.output_item.added", "output_index": at, "item": empty}
        yield from _call(item, place) if is_call else _text(item, {**place, "content_index": 0})
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": "response.completed", "response": answer}


def _call(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = "response.function_call_arguments"
    for piece in _pieces(item["arguments"]):
        yield {"type": f"{kind}.delta", **place, "delta": piece}
    yield {"type": f"{kind}.done", **place, "name": item["name"], "arguments": item["arguments"]}


def _text(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    [part] = item["content"]
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _gemini(answer: dict[str, Any]) -> Iterator[str]:
    yield _event(answer, named=False)


WRITERS = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
"""What writes an answer of a form as events."""
