"""What can be mended in an item of the Responses API that is refused for its shape."""

from __future__ import annotations

from typing import Any

from trimtab.formats.openai_responses.read import type_of
from trimtab.formats.values import Dict, as_list, as_typed_part, compact_json, says_elsewhere

_LEAST = {
    "function_call": ("arguments", "{}"),
    "custom_tool_call": ("input", ""),
    "function_call_output": ("output", ""),
    "custom_tool_call_output": ("output", ""),
}
"""What an item holds as text, and what stands for nothing."""
_NAMED = frozenset({"item_reference", "mcp_approval_request"})
"""Items that are nothing without their id; of others it only says under what the provider stored it."""


def mended_of(item: Dict, *, bad_id: bool) -> Dict:
    """Return the item as the API takes it, as far as nothing has to be made up; see `Format.mend`."""
    made, kind = dict(item), type_of(item)
    if bad_id and kind not in _NAMED:
        del made["id"]
    if kind == "message":
        for key in ("tool_calls", "tool_call_id", "function_call", "refusal", "name"):
            if key in made and (key == "name" or not made[key]):
                del made[key]
        parts = as_list(made.get("content"))
        if parts is not None:
            made["content"] = [_part(part, item.get("role")) for part in parts]
        elif made.get("content") is None and not says_elsewhere(made, "content"):
            made["content"] = ""
    elif kind in _LEAST:
        key, nothing = _LEAST[kind]
        value = made.get(key)
        if not isinstance(value, str) and (key == "arguments" or as_list(value) is None):
            made[key] = nothing if value is None else compact_json(value)
    return item if made == item else made


def _part(value: Any, role: Any) -> Any:
    """Call a text as the role has it: a part of Chat's, or one of the other side's."""
    part = as_typed_part(value)
    if part is None or part.get("type") not in ("text", "input_text", "output_text"):
        return value if part is None else part
    return {**part, "type": "output_text" if role == "assistant" else "input_text"}
