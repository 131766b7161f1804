"""Conversations of OpenAI Chat written as the Vercel AI SDK and OpenTelemetry record them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any


def compact_json(value: Any) -> str:
    """Write JSON as a provider does: without spaces, every letter as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


Message = dict[str, Any]


def plain_body(request: Message) -> Message:
    """Take the messages, tools and model of a request, without what only some hosts take.

    Arguments are written as every JSON library writes them without spaces.
    """
    made = []
    for message in request["messages"]:
        one = {"role": message["role"], "content": message.get("content")}
        if message.get("tool_calls"):
            one["tool_calls"] = [
                call | {"function": call["function"] | {"arguments": _compact(call)}}
                for call in message["tool_calls"]
            ]
        if message.get("tool_call_id"):
            one["tool_call_id"] = message["tool_call_id"]
        made.append(one)
    tools = [
        tool for tool in request.get("tools") or () if tool.get("type") == "function" and "function" in tool
    ]
    return {"messages": made, **({"tools": tools} if tools else {})}


def _compact(call: Message) -> str:
    return compact_json(json.loads(call["function"]["arguments"] or "{}"))


def outline(messages: Sequence[Message]) -> list[tuple[Any, ...]]:
    """Say who speaks, with which calls, and which call each result is of."""
    return [
        (one["role"], *(call["id"] for call in one.get("tool_calls") or ()), one.get("tool_call_id"))
        for one in messages
    ]


def as_model_messages(messages: Sequence[Message]) -> list[Message]:
    """Write ModelMessages; neighbouring results stand in one message, as the SDK puts them."""
    made: list[Message] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "tool":
            part = {
                "type": "tool-result",
                "toolCallId": message["tool_call_id"],
                "toolName": "any",
                "output": {"type": "text", "value": content}
                if isinstance(content, str)
                else {"type": "content", "value": content},
            }
            if made and made[-1]["role"] == "tool":
                made[-1]["content"].append(part)
            else:
                made.append({"role": "tool", "content": [part]})
        elif message["role"] == "assistant":
            parts = [*_vercel_parts(content), *map(_vercel_call, message.get("tool_calls") or ())]
            made.append({"role": "assistant", "content": parts})
        else:
            made.append(
                {
                    "role": message["role"],
                    "content": content if isinstance(content, str) else list(_vercel_parts(content)),
                }
            )
    return made


def _vercel_call(call: Message) -> Message:
    function = call["function"]
    return {
        "type": "tool-call",
        "toolCallId": call["id"],
        "toolName": function["name"],
        "input": json.loads(function["arguments"]),
    }


def _vercel_parts(content: Any) -> Iterator[Message]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for part in content if isinstance(content, list) else ():
        kind = part["type"]
        if kind == "text":
            yield {"type": "text", "text": part["text"]}
        elif kind == "image_url":
            yield {"type": "image", "image": part["image_url"]["url"]}
        elif kind == "input_audio":
            held = part["input_audio"]
            media_type = {"mp3": "audio/mpeg"}.get(held["format"], f"audio/{held['format']}")
            yield {"type": "file", "mediaType": media_type, "data": held["data"]}
        else:
            held = part["file"]
            media_type = held["file_data"].partition(":")[2].partition(";")[0]
            yield {
                "type": "file",
                "mediaType": media_type,
                "data": held["file_data"],
                "filename": held.get("filename"),
            }


def as_vercel_tools(tools: Sequence[Message]) -> list[Message]:
    """Write tools as the SDK gives them to a model."""
    made = []
    for tool in tools:
        function = dict(tool["function"])
        schema = function.pop("parameters", {})
        made.append({"type": "function", **function, "inputSchema": schema})
    return made


def as_ui_messages(messages: Sequence[Message]) -> list[Message] | None:
    """Write UIMessages, all steps of an answer in one; None for what a page could not show so."""
    made: list[Message] = []
    open_parts: dict[str, Message] = {}
    for number, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == "tool":
            part = open_parts.pop(message["tool_call_id"], None)
            if part is None or not isinstance(content, str):
                return None
            part |= {"state": "output-available", "output": content}
            continue
        if role not in ("system", "user", "assistant") or (open_parts and role == "assistant"):
            return None
        parts = [
            part
            if part["type"] == "text"
            else {
                "type": "file",
                "mediaType": part.get("mediaType", "image/png"),
                "filename": part.get("filename"),
                "url": part.get("image") or part.get("data"),
            }
            for part in _vercel_parts(content)
        ]
        if any(part["type"] == "file" and ":" not in str(part["url"])[:6] for part in parts):
            return None
        if role == "system" and len(parts) != 1:
            return None
        open_parts = {}
        for call in message.get("tool_calls") or ():
            called = _vercel_call(call)
            part = {
                "type": f"tool-{called['toolName']}",
                "toolCallId": called["toolCallId"],
                "state": "input-available",
                "input": called["input"],
            }
            parts.append(part)
            open_parts[called["toolCallId"]] = part
        if role == "assistant" and made and made[-1]["role"] == "assistant":
            made[-1]["parts"] += [{"type": "step-start"}, *parts]
        else:
            steps = [{"type": "step-start"}] if role == "assistant" else []
            made.append({"id": f"m{number}", "role": role, "parts": [*steps, *parts]})
    return made


def as_telemetry(messages: Sequence[Message]) -> list[Message]:
    """Write messages with parts, as `gen_ai.input.messages` has them."""
    made: list[Message] = []
    for message in messages:
        content = message["content"]
        parts: list[Message]
        if message["role"] == "tool":
            response = content if isinstance(content, str) else "".join(one["text"] for one in content)
            parts = [{"type": "tool_call_response", "id": message["tool_call_id"], "response": response}]
        else:
            parts = [*_telemetry_parts(content)]
            for call in message.get("tool_calls") or ():
                function = call["function"]
                parts.append(
                    {
                        "type": "tool_call",
                        "id": call["id"],
                        "name": function["name"],
                        "arguments": json.loads(function["arguments"]),
                    }
                )
        made.append({"role": message["role"], "parts": parts})
    return made


def _telemetry_parts(content: Any) -> Iterator[Message]:
    for part in _vercel_parts(content):
        if part["type"] == "text":
            yield {"type": "text", "content": part["text"]}
            continue
        found = part.get("image") or part["data"]
        media_type = part.get("mediaType", "image/png")
        if found.startswith("http"):
            yield {"type": "uri", "modality": media_type.partition("/")[0], "uri": found}
        else:
            data = found.rpartition(",")[2]
            yield {"type": "blob", "mime_type": media_type, "content": data}
