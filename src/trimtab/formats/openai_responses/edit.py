"""What redaction leaves of an item of the Responses API."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from trimtab.formats.openai_responses.read import ITEM_TYPES, type_of
from trimtab.formats.values import REDACTED, REDACTED_NAME, Dict, as_list, blank, texts_of_ids

_STAYS = (
    "type",
    "id",
    "call_id",
    "approval_request_id",
    "approve",
    "status",
    "role",
    "phase",
    "execution",
    "container_id",
    "fingerprint",
)
"""Which item it is, which call it makes or answers, and how that went."""

_NO_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
"""One pixel: the output of a computer is a picture, and nothing else."""

_FUNCTION: Dict = {"name": REDACTED_NAME, "arguments": "{}"}
_OF_SERVER: Dict = {**_FUNCTION, "server_label": REDACTED_NAME}
_PRINTED: Dict = {"stdout": REDACTED, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}

_LEAST: dict[str, Dict] = {
    "function_call": _FUNCTION,
    "function_call_output": {"output": REDACTED},
    "custom_tool_call": {"name": REDACTED_NAME, "input": REDACTED},
    "custom_tool_call_output": {"output": REDACTED},
    "computer_call": {"action": {"type": "screenshot"}, "pending_safety_checks": []},
    "computer_call_output": {"output": {"type": "computer_screenshot", "image_url": _NO_PICTURE}},
    "local_shell_call": {"action": {"type": "exec", "command": [REDACTED], "env": {}}},
    "local_shell_call_output": {"output": REDACTED},
    "shell_call": {"action": {"commands": [REDACTED]}},
    "shell_call_output": {"output": [_PRINTED]},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": REDACTED_NAME}},
    "apply_patch_call_output": {},
    "tool_search_call": {"arguments": {}},
    "tool_search_output": {"tools": []},
    "program": {"code": REDACTED},
    "program_output": {"result": REDACTED},
    "mcp_approval_request": _OF_SERVER,
    "mcp_approval_response": {},
    "mcp_call": _OF_SERVER,
    "mcp_list_tools": {"server_label": REDACTED_NAME, "tools": []},
    "file_search_call": {"queries": []},
    "web_search_call": {"action": {"type": "search", "query": REDACTED}},
    "code_interpreter_call": {"code": None, "outputs": None},
    "image_generation_call": {"result": None},
    "additional_tools": {"tools": []},
    "compaction_trigger": {},
    "item_reference": {},
    "reasoning": {"summary": []},
}
"""The least the package's types (openai 3.54) demand of an item beside what stays."""


def redacted_of(item: Dict) -> Dict:
    """Return an item that says nothing any more.

    What stays is its type, its role, its ids and its status. A reference keeps its id: it may be to a call.
    """
    name = type_of(item)
    if name == "compaction" or (name == "reasoning" and item.get("encrypted_content")):
        # All it says is one sealed text, and without it the API takes none of its type.
        return {"role": "assistant", "content": REDACTED}
    made = {key: item[key] for key in _STAYS if isinstance(item.get(key, 0), str | bool | None)}
    if isinstance(item.get("caller"), dict):
        made["caller"] = texts_of_ids(item["caller"], "type", "caller_id")
    if name == "message":
        parts = as_list(item.get("content"))
        left = None if parts is None else [_part(item, part) for part in parts]
        return {**made, "content": blank(item.get("content")) if left is None else left}
    if name not in ITEM_TYPES or name not in _LEAST:
        return {**made, **{key: blank(value) for key, value in item.items() if key not in made}}
    made.update(deepcopy(_LEAST[name]))
    if "actions" in item and "action" in made:
        made["actions"] = [made.pop("action")]
    if name == "function_call_output" and item.get("call_id") is None and "name" in item:
        made["name"] = blank(item["name"]) and REDACTED_NAME
    return made


def _part(message: Dict, part: Any) -> Any:
    """Put a text in the place of a part, also of an image or a file: a provider would look at it."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "refusal":
        return {"type": kind, kind: REDACTED}
    if kind == "output_text" or (kind != "input_text" and message.get("role") == "assistant"):
        return {"type": "output_text", "text": REDACTED, "annotations": []}
    return {"type": "input_text", "text": REDACTED}
