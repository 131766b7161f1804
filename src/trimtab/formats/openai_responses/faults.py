"""What the Responses API refuses in the shape of items.

The texts in quotes are the API's own, status 400, as people report them; each constant says where.
What depends on what the API has stored (a reasoning item left out, an expired id) cannot be told here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from trimtab.formats.base import Request
from trimtab.formats.openai_responses.read import (
    ITEM_TYPES,
    OUTPUT_OF,
    answered_id_of,
    call_id_of,
    is_reference,
    kind_of,
    lone_reasoning,
    type_of,
)
from trimtab.formats.refusal import Fault, Finding, faults_at, tool_faults
from trimtab.formats.values import Dict, Path, as_dict, as_list, as_text, short_repr

# Both as shravankshenoy notes them in AI-ML-Notes (2025) and as codex and agents report them, for example
# BigPizzaV3/CodexPlusPlus#315 (empty string) and newo-ether/Agora#141 (`summary`).
_MISSING = "Missing required parameter: 'input[{index}].{key}'."
_EMPTY = (
    "Invalid 'input[{index}].{key}': empty string. Expected a string with minimum length 1, but got an "
    "empty string instead."
)
# AnswerDotAI/fastllm#45.
_LONG = (
    "Invalid 'input[{index}].call_id': string too long. Expected a string with maximum length 64, but got a "
    "string with length {length} instead."
)
# openai/openai-python#2677.
_UNKNOWN_KEY = "Unknown parameter: 'input[{index}].{key}'."
_WRONG_TYPE = "Invalid type for 'input[{index}].{key}': expected {expected}, but got {got} instead."
_VALUE = "Invalid value: '{}'. Supported values are: {}."
# OpenRouterTeam/ai-sdk-provider#254, vercel/ai#7883, microsoft/vscode#321977.
_DUPLICATE = "Duplicate item found with id {}. Remove duplicate items from your input and try again."
# earendil-works/pi#10257 ('ctc'), NousResearch/hermes-agent and others ('fc'); the same for the other types.
_BAD_ID = "Invalid 'input[{}].id': '{}'. Expected an ID that begins with '{}'."
# continuedev/continue#8933, openai/openai-node#1567, vercel/ai#7099.
_DANGLING = "Item '{}' of type 'reasoning' was provided without its required following item."
# Quoted in pydantic/pydantic-ai#3470.
_NO_INPUT = 'One of "input" or "previous_response_id" or "prompt" or "conversation_id" must be provided.'
# Quoted in router-for-me/CLIProxyAPI#2381.
_NOT_STORED = (
    "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again with "
    "`store` set to true, or remove this item from your input."
)
# Quoted in mozilla-ai/any-llm#1310, of tools as Chat has them.
_NO_TOOL_NAME = "Missing required parameter: 'tools[{}].name'."

_ID_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
}

_ROLES = ("assistant", "system", "developer", "user")
# NousResearch/hermes-agent#15687, WordPress/php-ai-client#182 (assistant); BerriAI/litellm's tests of its
# responses bridge (input).
_INPUT_PARTS = ("input_text", "input_image", "input_file", "input_audio", "scoped_content")
_PART_TYPES = {"assistant": ("output_text", "refusal")}
_RESULT_PARTS = ("input_text", "input_image", "input_file", "scoped_content")

_Check: TypeAlias = tuple[str, Callable[[Any], bool]]
"""The type that is expected of a value, in the API's words, and whether it has it."""

_TEXT: _Check = ("a string", lambda value: isinstance(value, str))
_OBJECT: _Check = ("an object", lambda value: as_dict(value) is not None)
_LIST: _Check = ("an array", lambda value: as_list(value) is not None)
_TEXT_OR_LIST: _Check = (
    "one of a string or array of objects",
    lambda value: isinstance(value, str) or as_list(value) is not None,
)
_TRUTH: _Check = ("a boolean", lambda value: isinstance(value, bool))
_ANYTHING: _Check = ("", lambda value: True)

# What each type must have, from the types of openai 3.54 (2026-11), less what the API is known to do
# without: ids and states (requests billed with neither are in pydantic-ai's cassettes).
_REQUIRED: dict[str, dict[str, _Check]] = {
    "function_call": {"call_id": _TEXT, "name": _TEXT, "arguments": _TEXT},
    "function_call_output": {"call_id": _TEXT, "output": _TEXT_OR_LIST},
    "custom_tool_call": {"call_id": _TEXT, "name": _TEXT, "input": _TEXT},
    "custom_tool_call_output": {"call_id": _TEXT, "output": _TEXT_OR_LIST},
    "computer_call": {"call_id": _TEXT},
    "computer_call_output": {"call_id": _TEXT, "output": _OBJECT},
    "local_shell_call": {"call_id": _TEXT, "action": _OBJECT},
    "local_shell_call_output": {"output": _TEXT},
    "shell_call": {"call_id": _TEXT, "action": _OBJECT},
    "shell_call_output": {"call_id": _TEXT, "output": _LIST},
    "apply_patch_call": {"call_id": _TEXT, "operation": _OBJECT},
    "apply_patch_call_output": {"call_id": _TEXT, "status": _TEXT},
    "tool_search_call": {"arguments": _ANYTHING},
    "tool_search_output": {"tools": _LIST},
    "program": {"call_id": _TEXT, "code": _TEXT},
    "program_output": {"call_id": _TEXT, "result": _TEXT},
    "mcp_approval_request": {"id": _TEXT, "name": _TEXT, "arguments": _TEXT},
    "mcp_approval_response": {"approval_request_id": _TEXT, "approve": _TRUTH},
    "mcp_call": {"name": _TEXT, "arguments": _TEXT},
    "mcp_list_tools": {"tools": _LIST},
    "additional_tools": {"tools": _LIST},
    "reasoning": {"summary": _LIST},
    "compaction": {"encrypted_content": _TEXT},
    "item_reference": {"id": _TEXT},
}
_MAX_CALL_ID_CHARS = 64
_CHAT_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal", "name")
_NEVER_EMPTY = frozenset({"call_id", "name", "id", "approval_request_id"})


def faults_of(messages: list[Any], request: Request | None = None) -> list[Fault]:
    """List what is wrong with each item, and with its place among the others; see `Format.faults`."""
    body = request.body if request is not None else None
    if request is not None and body is not None and not (messages and body.get("input")):
        held = request.elsewhere or body.get("prompt") is not None
        return [] if held else [Fault(index=None, rule="no_messages", detail=_NO_INPUT)]
    found = [] if request is None else list(faults_at(None, tool_faults(request.tools, _tool_fault)))
    found += [
        fault for index, item in enumerate(messages) for fault in faults_at(index, _faults(index, item))
    ]
    found.extend(_among_others(messages))
    if body is not None and body.get("store") is False:  # what could a reference be to?
        for index in filter(lambda at: is_reference(messages[at]), range(len(messages))):
            said = _NOT_STORED.format(short_repr(messages[index].get("id")).strip("'"))
            found.append(Fault(index=index, rule="not_stored", detail=said, path=("id",)))
    return sorted(found, key=lambda fault: -1 if fault.index is None else fault.index)


def _tool_fault(at: int, tool: Dict) -> str | None:
    named = as_text(tool.get("name")) is not None
    return None if named or tool.get("type") not in (None, "function", "custom") else _NO_TOOL_NAME.format(at)


def _faults(index: int, item: Dict) -> Iterator[Finding]:
    name = type_of(item)
    if name == "message":
        yield from _message_faults(index, item)
        return
    if name not in ITEM_TYPES:
        if "type" in item:
            said = _VALUE.format(short_repr(item["type"]).strip("'"), _name_list(sorted(ITEM_TYPES)))
            yield "unknown_item", said, ("type",)
        else:
            said = f"neither a type nor a role; {_VALUE.format('', _name_list(_ROLES))}"
            yield "missing_role", said, ("role",)
        return
    for key, check in _REQUIRED.get(name, {}).items():
        if not (name == "function_call_output" and key == "call_id" and kind_of(item) != "tool"):
            yield from _value_faults(index, item, key, check)
    if name == "local_shell_call_output" and not answered_id_of(item):
        yield "missing_value", _MISSING.format(index=index, key="call_id"), ("call_id",)
    if name in ("function_call_output", "custom_tool_call_output"):
        for at, part in enumerate(as_list(item.get("output")) or ()):
            yield from _part_faults(index, part, ("output", at), _RESULT_PARTS)


def _value_faults(index: int, item: Dict, key: str, check: _Check) -> Iterator[Finding]:
    if key not in item:
        yield "missing_value", _MISSING.format(index=index, key=key), (key,)
    elif not check[1](item[key]):
        yield "bad_value", _wrong_type(index, (key,), check[0], item[key]), (key,)
    elif key in _NEVER_EMPTY and not item[key]:
        yield "empty_value", _EMPTY.format(index=index, key=key), (key,)
    elif key == "call_id" and len(item[key]) > _MAX_CALL_ID_CHARS:
        yield "long_value", _LONG.format(index=index, length=len(item[key])), (key,)


def _message_faults(index: int, item: Dict) -> Iterator[Finding]:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in _ROLES:
        rule = "missing_role" if role is None else "unknown_role"
        said = "" if role is None else short_repr(role).strip("'")
        yield rule, _VALUE.format(said, _name_list(_ROLES)), ("role",)
        return
    for key in _CHAT_KEYS:
        if key in item:
            yield "unknown_key", _UNKNOWN_KEY.format(index=index, key=key), (key,)
    if "content" not in item:
        yield "missing_value", _MISSING.format(index=index, key="content"), ("content",)
    elif not isinstance(content, str) and as_list(content) is None:
        expected = "one of an array of objects or string"
        yield "bad_value", _wrong_type(index, ("content",), expected, content), ("content",)
    for at, part in enumerate(as_list(content) or ()):
        yield from _part_faults(index, part, ("content", at), _PART_TYPES.get(role, _INPUT_PARTS))


def _part_faults(index: int, value: Any, path: Path, taken: tuple[str, ...]) -> Iterator[Finding]:
    part = None if isinstance(value, str) else as_dict(value)
    if part is None:
        yield "bad_part", _wrong_type(index, path, "an object", value), path
        return
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in taken:
        said = _VALUE.format(short_repr(kind).strip("'"), _name_list(taken))
        yield "misplaced_part", said, (*path, "type")
        return
    key = "refusal" if kind == "refusal" else "text"
    if kind.endswith("_text") or kind == "refusal":
        if key not in part:
            yield "missing_value", _MISSING.format(index=index, key=_key_path((*path, key))), (*path, key)
        elif not isinstance(part[key], str):
            yield "bad_part", _wrong_type(index, (*path, key), "a string", part[key]), (*path, key)


def _among_others(items: list[Any]) -> Iterator[Fault]:
    """Look at ids, at reasoning nothing follows, and at outputs of another kind than their call."""
    seen: set[str] = set()
    called: dict[str, str] = {}
    for index, item in enumerate(items):
        name, item_id = type_of(item), as_text(item.get("id"))
        if item_id is not None and name != "local_shell_call_output":  # there it is the call's
            prefix = _ID_PREFIXES.get(name)
            if item_id in seen:
                yield Fault(index=index, rule="duplicate_id", detail=_DUPLICATE.format(item_id), path=("id",))
            if prefix is not None and not item_id.startswith(prefix):
                detail = _BAD_ID.format(index, short_repr(item_id).strip("'"), prefix)
                yield Fault(index=index, rule="bad_id", detail=detail, path=("id",))
            seen.add(item_id)
        if name == "message":
            continue  # it calls and answers nothing
        if (call_id := call_id_of(item)) is not None:
            called[call_id] = name
        elif (call := called.get(answered_id_of(item) or "")) is not None and OUTPUT_OF[call] != name:
            detail = f"a {name!r} cannot answer the {call!r} with that id: that takes a {OUTPUT_OF[call]!r}"
            yield Fault(index=index, rule="mismatched_output", detail=detail, path=("type",))
        if name == "compaction_trigger" and index + 1 < len(items):
            yield Fault(index=index, rule="misplaced_trigger", detail="it must be the final input item")
    for index in lone_reasoning(items, 0, len(items)):
        said = _DANGLING.format(short_repr(items[index].get("id")).strip("'"))
        yield Fault(index=index, rule="dangling_reasoning", detail=said)


def _wrong_type(index: int, path: Path, expected: str, value: Any) -> str:
    got = "null" if value is None else _TYPES.get(type(value), "an object")
    return _WRONG_TYPE.format(index=index, key=_key_path(path), expected=expected, got=got)


def _key_path(path: Path) -> str:
    keys = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return keys.removeprefix(".")


def _name_list(names: Any) -> str:
    quoted = [f"'{name}'" for name in names]
    return f"{', '.join(quoted[:-1])}{',' * (len(quoted) > 2)} and {quoted[-1]}"


_TYPES = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
    tuple: "an array",
}
