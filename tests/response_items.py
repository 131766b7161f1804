"""Responses API items for tests: one of every type, and the openai package's own objects."""

from __future__ import annotations

import functools
import json
from typing import Any, get_args, get_type_hints

from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseInputItemParam,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from pydantic import TypeAdapter, ValidationError

Item = dict[str, Any]

PNG = "data:image/png;base64," + "iVBORw0KGgo" * 30


def user(text: Any = "hi") -> Item:
    """Make a user message."""
    return {"role": "user", "content": text}


def said(text: str = "ok", item_id: str | None = None) -> Item:
    """Make a message of the model; with an id it is one of its own output items."""
    if item_id is None:
        return {"role": "assistant", "content": text}
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": [part]}


def thought(item_id: str = "rs_1", **more: Any) -> Item:
    """Make a reasoning item."""
    return {"type": "reasoning", "id": item_id, "summary": [], **more}


def call(call_id: str, item_id: str | None = None, name: str = "look", arguments: str = "{}") -> Item:
    """Make a function call."""
    made = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    return made if item_id is None else {**made, "id": item_id}


def output(call_id: str, text: Any = "done") -> Item:
    """Make the output of a function call."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


EVERY: dict[str, Item] = {
    "message": user([{"type": "input_text", "text": "hi"}]),
    "file_search_call": {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": ["q"],
        "results": [{"text": "found"}],
    },
    "computer_call": {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c1",
        "status": "completed",
        "pending_safety_checks": [],
        "action": {"type": "screenshot"},
    },
    "computer_call_output": {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": PNG},
    },
    "web_search_call": {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    "function_call": call("c1"),
    "function_call_output": output("c1"),
    "tool_search_call": {
        "type": "tool_search_call",
        "call_id": "c1",
        "execution": "client",
        "arguments": {"queries": ["q"]},
    },
    "tool_search_output": {
        "type": "tool_search_output",
        "call_id": "c1",
        "execution": "client",
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": True}],
    },
    "additional_tools": {
        "type": "additional_tools",
        "role": "developer",
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": True}],
    },
    "configuration_update": {"type": "configuration_update", "reasoning": {"effort": "low"}},
    "reasoning": thought(),
    "compaction": {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"},
    "image_generation_call": {
        "type": "image_generation_call",
        "id": "ig_1",
        "status": "completed",
        "result": "iVBORw0KGgo",
    },
    "code_interpreter_call": {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "container_id": "cntr_1",
        "code": "1+1",
        "outputs": [{"type": "logs", "logs": "2"}],
    },
    "local_shell_call": {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "c1",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    "local_shell_call_output": {"type": "local_shell_call_output", "id": "c1", "output": '{"out": "a"}'},
    "shell_call": {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
    "shell_call_output": {
        "type": "shell_call_output",
        "call_id": "c1",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "apply_patch_call": {
        "type": "apply_patch_call",
        "call_id": "c1",
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a.py"},
    },
    "apply_patch_call_output": {
        "type": "apply_patch_call_output",
        "call_id": "c1",
        "status": "completed",
        "output": "done",
    },
    "mcp_list_tools": {
        "type": "mcp_list_tools",
        "id": "mcpl_1",
        "server_label": "s",
        "tools": [{"name": "f", "input_schema": {}}],
    },
    "mcp_approval_request": {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "f",
        "server_label": "s",
        "arguments": "{}",
    },
    "mcp_approval_response": {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": True,
    },
    "mcp_call": {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "f",
        "server_label": "s",
        "arguments": "{}",
        "output": "found",
    },
    "custom_tool_call": {"type": "custom_tool_call", "call_id": "c1", "name": "shell", "input": "ls"},
    "custom_tool_call_output": {"type": "custom_tool_call_output", "call_id": "c1", "output": "a"},
    "compaction_trigger": {"type": "compaction_trigger"},
    "item_reference": {"type": "item_reference", "id": "msg_1"},
    "program": {"type": "program", "id": "prog_1", "call_id": "c1", "code": "f()", "fingerprint": "x"},
    "program_output": {
        "type": "program_output",
        "id": "po_1",
        "call_id": "c1",
        "result": "2",
        "status": "completed",
    },
}
"""One good item of every type."""


def types_of_the_package() -> set[str]:
    """List the item types of the installed package, from its own union."""
    found: set[str] = set()
    for member in get_args(ResponseInputItemParam):
        for kind in _words(get_type_hints(member)["type"]):
            found.add(kind)
    return found


def _words(hint: Any) -> set[str]:
    if isinstance(hint, str):
        return {hint}
    return {word for inner in get_args(hint) for word in _words(inner)}


@functools.cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(ResponseInputItemParam)


def accepted_by_openai(item: Any) -> bool:
    """Tell whether an item is of a type of the openai package."""
    try:
        _adapter().validate_python(item, extra="ignore")
    except ValidationError:
        return False
    return True


def sdk_objects() -> list[Any]:
    """Make what `response.output` holds: reasoning, two parallel calls and a message."""
    said_item = said("There you are.", "msg_1")
    return [
        ResponseReasoningItem.model_validate(thought("rs_1", encrypted_content="gAAAA")),
        ResponseFunctionToolCall.model_validate(call("c1", "fc_1")),
        ResponseFunctionToolCall.model_validate(call("c2", "fc_2")),
        ResponseOutputMessage.model_validate(said_item),
    ]


def billed(path: Any) -> list[tuple[str, dict[str, Any]]]:
    """Read the recorded Responses requests: what was sent, and answered with a bill."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["id"], row["request"]) for row in rows if row["api"] == "responses"]
