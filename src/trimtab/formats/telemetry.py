"""Messages as OpenTelemetry's GenAI conventions record them, read into the Chat form.

Source: opentelemetry.io, gen-ai-input-messages.json and gen-ai-output-messages.json (2026-11).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.values import Dict, compact_json


def messages_from_telemetry(recorded: object, /) -> list[Dict]:
    """Read a list of recorded messages; JSON of one will do, as spans hold it.

    A message with several results becomes one for each. Reasoning is left out: no provider takes it
    back from a recording. Parts of a kind that nobody knows are kept as the JSON they are.

    Raises:
        FormatError: It is no list of messages with parts.
    """
    listed = plain_value(recorded)
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise FormatError(f"recorded messages must be a list, not {type(listed).__name__}")
    return [message for index, one in enumerate(listed) for message in _messages(one, index)]


def plain_value(value: object, /) -> Any:
    """Return the value of an attribute that may be written as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise FormatError(f"a recorded value is not JSON: {value!r:.60}") from error


def system_from_telemetry(recorded: object, /) -> Dict | None:
    """Read recorded instructions, which stand apart from the messages; None where there are none."""
    parts = plain_value(recorded)
    if not parts:
        return None
    listed = [parts] if isinstance(parts, str | Mapping) else list(parts)
    return {"role": "system", "content": "\n".join(map(_text, listed))}


def _messages(one: object, index: int) -> list[Dict]:
    if not isinstance(one, Mapping) or not isinstance(one.get("role"), str):
        raise FormatError(f"recorded messages[{index}] is not a mapping with a role", path=str(index))
    parts = one.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        raise FormatError(f"recorded messages[{index}] has no list of parts", path=str(index))
    by_kind: dict[str, list[Any]] = {"text": [], "tool_call": [], "tool_call_response": []}
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else "text"
        if kind != "reasoning":
            by_kind[kind if kind in by_kind else "text"].append(part)
    made: list[Dict] = [_result(part) for part in by_kind["tool_call_response"]]
    texts, calls = "\n".join(map(_text, by_kind["text"])), by_kind["tool_call"]
    if texts or calls or not made:
        message: Dict = {"role": one["role"], "content": texts or (None if calls else "")}
        if calls:
            message["tool_calls"] = list(map(_call, calls))
        made.append(message)
    return made


def _text(part: object) -> str:
    if isinstance(part, str):
        return part
    content = part.get("content") if isinstance(part, Mapping) and part.get("type") == "text" else None
    return content if isinstance(content, str) else compact_json(part)


def _call(part: Mapping[str, Any]) -> Dict:
    arguments = part.get("arguments")
    written = arguments if isinstance(arguments, str) else compact_json(arguments or {})
    function = {"name": str(part.get("name") or ""), "arguments": written}
    return {"id": str(part.get("id") or ""), "type": "function", "function": function}


def _result(part: Mapping[str, Any]) -> Dict:
    found = next((part[key] for key in ("response", "result", "content") if key in part), "")
    content = found if isinstance(found, str) else compact_json(found)
    return {"role": "tool", "tool_call_id": str(part.get("id") or ""), "content": content}
