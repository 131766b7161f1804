"""Conversations of Chat Completions written in the wire forms in which not every message may come first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]


def said_in(form: str, messages: Sequence[Message]) -> list[Message]:
    """Write a conversation in another form, without the system messages at its front.

    Results behind one call stand in one message there, as these providers want it.
    """
    names: dict[str, str] = {}
    written: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            result = _result(form, message, names)
            last = written[-1] if written else None
            if last is not None and last.get("results"):
                last["results"].append(result)
            else:
                written.append({"role": "user", "results": [result]})
        elif message["role"] != "system":
            calls = message.get("tool_calls") or []
            names.update((call["id"], call["function"]["name"]) for call in calls)
            parts = [_text(form, message["content"])] if message.get("content") else []
            parts += [_call(form, call) for call in calls]
            role = "model" if form == "gemini" and message["role"] == "assistant" else message["role"]
            written.append({"role": role, "results": None, "parts": parts or [_text(form, "-")]})
    key = "parts" if form == "gemini" else "content"
    return [{"role": one["role"], key: one.get("parts") or one["results"]} for one in written]


def _text(form: str, content: Any) -> Message:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"text": text} if form in ("gemini", "bedrock") else {"type": "text", "text": text}


def _call(form: str, call: Message) -> Message:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    try:
        read = json.loads(arguments)
    except ValueError:
        read = {"text": arguments}
    read = read if isinstance(read, dict) else {"value": read}
    if form == "gemini":
        return {"functionCall": {"id": call["id"], "name": name, "args": read}}
    if form == "bedrock":
        return {"toolUse": {"toolUseId": call["id"], "name": name, "input": read}}
    return {"type": "tool_use", "id": call["id"], "name": name, "input": read}


def _result(form: str, message: Message, names: dict[str, str]) -> Message:
    content = message["content"] if isinstance(message["content"], str) else json.dumps(message["content"])
    call_id = message["tool_call_id"]
    if form == "gemini":
        response = {"id": call_id, "name": names.get(call_id, "f"), "response": {"result": content}}
        return {"functionResponse": response}
    if form == "bedrock":
        return {"toolResult": {"toolUseId": call_id, "content": [{"text": content}]}}
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}
