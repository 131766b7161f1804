"""Writes an answer of a provider as the events it streams: pieces of text, and what frames them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from struct import pack
from typing import Any
from zlib import crc32

PIECE_CHARS = 40


def streamed(form: str, answer: dict[str, Any]) -> str | bytes:
    """Write a whole answer as server-sent events; Bedrock's as AWS's frames."""
    if form == "bedrock":
        return b"".join(_frame(kind, data) for kind, data in _converse(answer))
    return "".join(WRITERS[form](answer))


def _frame(kind: str, data: dict[str, Any]) -> bytes:
    """Write an event as AWS does: lengths and their checksum, headers, JSON, the checksum of all."""
    headers, payload = b"", json.dumps(data).encode()
    for name, value in (
        (":message-type", "event"),
        (":event-type", kind),
        (":content-type", "application/json"),
    ):
        headers += pack(
            f">B{len(name)}sBH{len(value)}s", len(name), name.encode(), 7, len(value), value.encode()
        )
    lengths = pack(">II", 16 + len(headers) + len(payload), len(headers))
    frame = lengths + pack(">I", crc32(lengths)) + headers + payload
    return frame + pack(">I", crc32(frame))


def _converse(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """List the events of an answer of ConverseStream."""
    message = answer["output"]["message"]
    yield "messageStart", {"role": message["role"]}
    for at, block in enumerate(message["content"]):
        place = {"contentBlockIndex": at}
        if use := block.get("toolUse"):
            start = {"toolUseId": use["toolUseId"], "name": use["name"]}
            yield "contentBlockStart", {**place, "start": {"toolUse": start}}
            for piece in _pieces(json.dumps(use["input"])):
                yield "contentBlockDelta", {**place, "delta": {"toolUse": {"input": piece}}}
        else:
            for piece in _pieces(block["text"]):
                yield "contentBlockDelta", {**place, "delta": {"text": piece}}
        yield "contentBlockStop", place
    yield "messageStop", {"stopReason": answer["stopReason"]}
    yield "metadata", {"usage": answer["usage"], "metrics": answer["metrics"]}


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
        empty = {"tool_use": {"input": {}}, "thinking": {"thinking": "", "signature": ""}}
        begun = {**block, **empty.get(block["type"], {"text": ""})}
        yield _event({"type": "content_block_start", "index": at, "content_block": begun})
        for delta in _deltas(block):
            yield _event({"type": "content_block_delta", "index": at, "delta": delta})
        yield _event({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}})
    yield _event({"type": "message_stop"})


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write the pieces of a block of Anthropic's; a signature comes whole, behind its thinking."""
    if block["type"] == "tool_use":
        for piece in _pieces(json.dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}
        return
    kind = block["type"]
    for piece in _pieces(block[kind]):
        yield {"type": f"{kind}_delta", kind: piece}
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": block["signature"]}


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
