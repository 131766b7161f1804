"""What redaction leaves of a message of Chat Completions, where it thinks, and what remains without that."""

from __future__ import annotations

from typing import Any

from trimtab.formats.structure import Step
from trimtab.formats.values import (
    REDACTED,
    REDACTED_NAME,
    Dict,
    as_list,
    blank,
    item_of,
    with_values,
    without_indices,
    without_keys,
)


def redacted_of(message: Dict) -> Dict:
    """Return a message that says nothing any more.

    What stays is who says it and which call it makes or answers, where the wire form has that and nowhere
    else: role, ids of calls, the name that is the id of a call without one, kinds of parts and of calls.
    """
    made = {key: _blank_key(message, key, value) for key, value in message.items() if key != "audio"}
    if "audio" in message and message.get("content") is None:
        made["content"] = REDACTED  # a provider looks up what was said by its id: it goes as a whole
    return made


def _blank_key(message: Dict, key: str, value: Any) -> Any:
    if key in ("role", "tool_call_id") and isinstance(value, str):
        return value
    if key == "name" and isinstance(value, str):  # has to stay a name
        return value if message.get("role") == "function" else REDACTED_NAME
    if key == "content" and isinstance(value, list):
        return [_part(one) for one in value]
    if key == "tool_calls" and isinstance(value, list):
        return [_call(one) for one in value]
    if key == "function_call" and isinstance(value, dict):
        return {**_function(value), **{name: value[name] for name in ("name",) if name in value}}
    return blank(value)


def _part(part: Any) -> Any:
    """Put a text in the place of a part; of an image, sound or file, too: a provider would look at it."""
    if not isinstance(part, dict):
        return blank(part)
    kind = "refusal" if part.get("type") == "refusal" else "text"
    return {"type": kind, kind: REDACTED}


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return blank(call)
    made = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    if call.get("type") in ("function", "custom"):
        made["type"] = call["type"]
    return {**made, **{key: _function(call[key]) for key in ("function", "custom") if key in call}}


def _function(function: Any) -> Any:
    """Blank a called function: its name has to stay a name, and its arguments JSON."""
    if not isinstance(function, dict):
        return blank(function)
    valid = {"name": REDACTED_NAME, "arguments": "{}", "input": REDACTED}
    return {
        key: valid[key] if isinstance(value, str) else blank(value)
        for key, value in function.items()
        if key in valid
    }


_THINKING_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_THINKING_KEYS = ("thinking_blocks", "reasoning_content", "reasoning_details", "reasoning")
"""What gateways and frameworks carry a model's thinking in: parts, or keys beside the content."""


def step_of(message: Dict) -> Step:
    """Say what a message is to its turn; see `Format.turn_step`.

    What stands beside the content is sent before it, and of parts the first decides.
    """
    role = message.get("role")
    if role in ("tool", "function"):
        return "answers"
    if role != "assistant":
        return ""
    content = message.get("content")
    parts = () if content.__class__ is str else as_list(content) or ()
    leads = bool(parts) and item_of(parts[0], "type") in _THINKING_PARTS
    return "thinks" if leads or any(message.get(key) for key in _THINKING_KEYS) else "speaks"


def without_thinking(message: Any) -> Any | None:
    """Return a message without its thinking; None if nothing remains."""
    content = item_of(message, "content")
    parts = () if content.__class__ is str else as_list(content) or ()
    gone = {at for at, part in enumerate(parts) if item_of(part, "type") in _THINKING_PARTS}
    keys = tuple(key for key in _THINKING_KEYS if item_of(message, key) is not None)
    if not gone and not keys:
        return message
    left: Any = without_indices(parts, gone) if gone else content
    calls = item_of(message, "tool_calls") or item_of(message, "function_call")
    if not left and not calls:
        return None
    changed = with_values(message, {("content",): left or None}) if gone else message
    return without_keys(changed, keys)
