"""What can be mended in a message of Chat Completions that is refused for its shape."""

from __future__ import annotations

import re
from typing import Any

from trimtab.formats.values import Dict, as_dict, as_list, as_text, as_typed_part, compact_json, without_keys

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def mended_of(message: Dict) -> Dict:
    """Return the message as the API takes it, as far as nothing has to be made up; see `Format.mend`."""
    made = dict(message)
    if "content" in made or not any(made.get(key) for key in ("tool_calls", "function_call", "audio")):
        made["content"] = _content(made)
    if made.get("name") is not None and not isinstance(made["name"], str):
        del made["name"]
    calls = as_list(made.get("tool_calls"))
    if calls:
        made["tool_calls"] = [_call(call) for call in calls]
    elif "tool_calls" in made and not made["tool_calls"]:
        del made["tool_calls"]
    if made.get("role") != "assistant":
        made = without_keys(made, [key for key in ("function_call",) if not made.get(key)])
    return message if made == message else made


def _content(message: Dict) -> Any:
    content = message.get("content")
    parts = as_list(content)
    if parts is not None:
        parts = [part for part in map(_part, parts) if part is not None]
        return parts or ("" if not message.get("tool_calls") else None)
    if content is None and (message.get("role") != "assistant" or not _speaks(message)):
        return ""
    return content


def _speaks(message: Dict) -> bool:
    return any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))


def _part(value: Any) -> Any:
    part = as_typed_part(value)
    if part is None:
        return value
    if part.get("type") == "text" and part.get("text") is None:
        return None
    if part.get("type") == "image_url" and isinstance(part.get("image_url"), str):  # as Mistral takes it
        return {**part, "image_url": {"url": part["image_url"]}}
    return part


def _call(value: Any) -> Any:
    call = as_dict(value)
    if call is None:
        return value
    key, field = ("custom", "input") if "custom" in call else ("function", "arguments")
    called = as_dict(call.get(key))
    if called is None:
        return value
    made = {**called, field: _as_json(called.get(field))}
    if (name := as_text(called.get("name"))) is not None:
        made["name"] = _NOT_IN_NAMES.sub("_", name)
    return {**call, "type": call.get("type") or key, key: made}


def _as_json(arguments: Any) -> Any:
    """Write arguments as text: what was read from JSON, as JSON again."""
    if isinstance(arguments, str):
        return arguments
    return compact_json({} if arguments is None else arguments)
