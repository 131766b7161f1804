"""What OpenAI refuses in the shape of Chat Completions messages.

The texts in quotes are the API's own, status 400, as people report them; each constant says where.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from trimtab.formats.base import Request
from trimtab.formats.refusal import Fault, Finding, faults_at, is_made_by, tool_faults
from trimtab.formats.values import Dict, Path, as_dict, as_list, as_text, short_repr, type_name

_ROLES = ("system", "assistant", "user", "function", "tool", "developer")

# The text is quoted in langchain-ai/langchain#22600.
_NO_TOOL_CALL_ID = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
# Quoted in docker/docker-agent#63 and run-llama/llama_index#17555.
_NULL_CONTENT = "Invalid value for 'content': expected a string, got null."
# Quoted in openai/openai-node#1341.
_EMPTY_ARRAY = "Expected an array with minimum length 1, but got an empty array instead."
# Quoted in agno-agi/agno#5116.
_DUPLICATE = "Invalid parameter: Duplicate value for 'tool_call_id' of '{}'"

# Quoted in CopilotKit/CopilotKit#529.
_NO_MESSAGES = f"Invalid 'messages': empty array. {_EMPTY_ARRAY}"
# Quoted in SCTY-Inc/agentcy-cli#4.
_NOT_BY_MODEL = "Invalid parameter: only messages with role 'assistant' can have a function call."
# Quoted in vercel/ai#8132, for ids of another provider's calls. Others take them (ids of 50 characters are in
# chats that went on at OpenRouter), so it is a fault only where the model is one of OpenAI's own.
_LONG_ID = (
    "string too long. Expected a string with maximum length 40, but got a string with length {} instead."
)
_MAX_ID_CHARS = 40
_OF_OPENAI = re.compile(r"(?:openai/)?(?:gpt-(?!oss)|chatgpt-|o\d)")
# Quoted in mcp-use/mcp-use#94.
_BAD_NAME = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
_NAME = re.compile(r"[a-zA-Z0-9_-]+")

_NO_FUNCTION = "Missing required parameter: 'tools[{}].function': a function tool has its name in there"

# What Mistral's Chat takes beside OpenAI's: `ContentChunk` and `AssistantMessage` of its OpenAPI document
# (docs.mistral.ai, 2026-11). Pictures and documents as a text, thoughts, and lists of nothing were billed.
_MISTRAL_PARTS: dict[str, tuple[type, ...]] = {
    "image_url": (str, dict),
    "document_url": (str,),
    "input_audio": (str, dict),
    "file": (dict,),
    "thinking": (list, tuple, str),
    "reference": (),
}
"""By type of a part, as what it may hold under that name; nothing where it has other keys."""

_TEXT_ONLY = frozenset({"text"})
_PART_TYPES: dict[str, frozenset[str]] = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "system": _TEXT_ONLY,
    "developer": _TEXT_ONLY,
    "tool": _TEXT_ONLY,
    "function": frozenset(),
}
_KNOWN_PARTS = frozenset().union(*_PART_TYPES.values())
_SPEAKS = ("tool_calls", "function_call", "refusal", "audio")


def faults_of(messages: list[Any], request: Request | None = None, *, model: str = "") -> list[Fault]:
    """List what is wrong with each message, in order; see `Format.faults`."""
    if request is not None and request.body is not None and not messages:
        return [Fault(index=None, rule="no_messages", detail=_NO_MESSAGES)]
    found = [] if request is None else list(faults_at(None, tool_faults(request.tools, _tool_fault)))
    own, dialect = _OF_OPENAI.match(model) is not None, is_made_by(model, "mistral")
    for index in _not_plain(messages):
        message = messages[index]
        faults = _faults(message)
        found += faults_at(index, _without_dialect(message, faults) if dialect else faults)
        found += faults_at(index, _long_ids(message) if own else ())
    return found


_PLAIN = frozenset({"system", "user", "assistant", "developer"})


def _not_plain(messages: list[Any]) -> Iterator[int]:
    """Yield the places of messages that are not plain to see right: a text, a result, or plain calls.

    Nearly every message is, and to look for each fault takes five times as long.
    """
    for index, message in enumerate(messages):
        role, size, content = message.get("role"), len(message), message.get("content")
        if content.__class__ is str and role.__class__ is str:
            if size == 2 and role in _PLAIN:
                continue
            if role == "tool":
                call_id, named = message.get("tool_call_id"), 0
                if "name" in message:
                    named = 1 if message["name"].__class__ is str else -1
                if size == 3 + named and call_id.__class__ is str and call_id:
                    continue
        elif content is not None:
            yield index
            continue
        if (
            role != "assistant"
            or size != 2 + ("content" in message)
            or not _are_plain(message.get("tool_calls"))
        ):
            yield index


def _are_plain(calls: Any) -> bool:
    """Tell whether calls are right: at least one, each with an id of its own."""
    if calls.__class__ is not list or not calls or not all(map(_is_plain_call, calls)):
        return False
    return len(calls) == 1 or len({call["id"] for call in calls}) == len(calls)


def _is_plain_call(call: Any) -> bool:
    if call.__class__ is not dict or call.get("type") != "function":
        return False
    call_id, called = call.get("id"), call.get("function")
    if call_id.__class__ is not str or not 0 < len(call_id) <= _MAX_ID_CHARS or called.__class__ is not dict:
        return False
    name = called.get("name")
    return name.__class__ is str and called.get("arguments").__class__ is str and _is_name(name)


@lru_cache(maxsize=1024)
def _is_name(name: str) -> bool:
    """Tell whether a tool may have a name; the same few come in every call."""
    return _NAME.fullmatch(name) is not None


def _tool_fault(at: int, tool: Dict) -> str | None:
    """Say what is wrong with a tool; those that hosts run have types of their own."""
    has_function = as_dict(tool.get("function")) is not None
    return None if has_function or tool.get("type") not in (None, "function") else _NO_FUNCTION.format(at)


def _without_dialect(message: Dict, faults: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the faults that are none in what Mistral takes."""
    for fault in faults:
        rule, _, path = fault
        if rule in ("empty_tool_calls", "empty_content") and message.get("role") == "assistant":
            continue
        if rule in ("unknown_part", "misplaced_part", "bad_part") and len(path) > 2:
            part = as_dict((as_list(message.get("content")) or ())[int(path[1])]) or {}
            kind = part.get("type")
            held = _MISTRAL_PARTS.get(kind) if isinstance(kind, str) else None
            if held is not None and (not held or isinstance(part.get(str(kind)), held)):
                continue
        yield fault


def _long_ids(message: Dict) -> Iterator[Finding]:
    for at, value in enumerate(as_list(message.get("tool_calls")) or ()):
        call_id = as_text((as_dict(value) or {}).get("id")) or ""
        if len(call_id) > _MAX_ID_CHARS:
            yield "long_call_id", _LONG_ID.format(len(call_id)), ("tool_calls", at, "id")


def _faults(message: Dict) -> Iterator[Finding]:
    role = message.get("role")
    if role is None:
        yield "missing_role", "the message has no role; Missing required parameter: 'role'.", ("role",)
        return
    if not isinstance(role, str) or role not in _ROLES:
        listed = ", ".join(map(repr, _ROLES))
        yield "unknown_role", f"Invalid value: {short_repr(role)}. Supported values are: {listed}.", ("role",)
        return
    yield from _content_faults(role, message)
    if message.get("name") is not None and not isinstance(message["name"], str):
        yield "bad_name", f"a name must be a string, not {type_name(message['name'])}", ("name",)
    if role == "tool" and as_text(message.get("tool_call_id")) is None:
        yield "missing_tool_call_id", _NO_TOOL_CALL_ID, ("tool_call_id",)
    if role == "function" and as_text(message.get("name")) is None:
        yield "missing_name", "a 'function' message must name the function it answers for", ("name",)
    if role == "assistant":
        yield from _call_faults(message.get("tool_calls"))
        if message.get("function_call") is not None:
            yield from _named_faults(message["function_call"], "arguments", ("function_call",))
    else:
        for key in ("tool_calls", "function_call"):
            if message.get(key):
                yield "misplaced_call", _NOT_BY_MODEL, (key,)


def _content_faults(role: str, message: Dict) -> Iterator[Finding]:
    content = message.get("content")
    parts = as_list(content)
    path: Path = ("content",)
    if isinstance(content, str):
        return
    if content is None and role == "assistant":
        if not any(message.get(key) is not None for key in _SPEAKS):
            yield "empty_assistant", f"neither content nor calls nor a refusal; {_NULL_CONTENT}", path
    elif content is None:
        if role != "function" or "content" not in message:
            yield "missing_content", _NULL_CONTENT, path
    elif parts is None:
        yield "bad_content", f"content must be a string or a list of parts, not {type_name(content)}", path
    elif not parts:
        yield "empty_content", f"Invalid 'content': empty array. {_EMPTY_ARRAY}", path
    else:
        for index, part in enumerate(parts):
            yield from _part_faults(role, part, ("content", index))


def _part_faults(role: str, value: Any, path: Path) -> Iterator[Finding]:
    part = None if isinstance(value, str) else as_dict(value)
    if part is None:
        yield "bad_part", f"a content part must be an object, not {type_name(value)}", path
        return
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN_PARTS:
        listed = ", ".join(map(repr, sorted(_PART_TYPES[role])))
        detail = f"Invalid value: {short_repr(kind)}. Supported values are: {listed}."
        yield "unknown_part", detail, (*path, "type")
    elif kind not in _PART_TYPES[role]:
        yield "misplaced_part", f"a {role!r} message cannot hold a {kind!r} part", (*path, "type")
    else:
        yield from _body_faults(kind, part, path)


def _body_faults(kind: str, part: Dict, path: Path) -> Iterator[Finding]:
    """Look at what a part of a known type holds under the key named like its type."""
    value = part.get(kind)
    if kind in ("text", "refusal"):
        if not isinstance(value, str):
            yield "bad_part", f"{kind!r} must be a string, not {type_name(value)}", (*path, kind)
    elif as_dict(value) is None:
        yield "bad_part", f"{kind!r} must be an object, not {type_name(value)}", (*path, kind)


def _call_faults(tool_calls: Any) -> Iterator[Finding]:
    calls = as_list(tool_calls)
    if tool_calls is None:
        return
    if calls is None:
        yield "bad_tool_calls", f"tool_calls must be a list, not {type_name(tool_calls)}", ("tool_calls",)
    elif not calls:
        yield "empty_tool_calls", f"Invalid 'tool_calls': empty array. {_EMPTY_ARRAY}", ("tool_calls",)
    seen: set[str] = set()
    for index, value in enumerate(calls or ()):
        call, path = as_dict(value), ("tool_calls", index)
        if call is None:
            yield "bad_tool_call", f"a tool call must be an object, not {type_name(value)}", path
            continue
        yield from _one_call_faults(call, path)
        call_id = as_text(call.get("id"))
        if call_id in seen:
            yield "duplicate_call_id", _DUPLICATE.format(call_id), (*path, "id")
        seen.add(call_id or "")


def _one_call_faults(call: Dict, path: Path) -> Iterator[Finding]:
    if as_text(call.get("id")) is None:
        yield (
            "bad_tool_call",
            f"a tool call needs an id, a string, not {type_name(call.get('id'))}",
            (*path, "id"),
        )
    key, field = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
    if call.get("type") not in ("function", "custom"):
        detail = f"Invalid value: {short_repr(call.get('type'))}. Supported values are: 'function', 'custom'."
        yield "bad_tool_call", detail, (*path, "type")
        key, field = ("custom", "input") if "custom" in call else (key, field)
    yield from _named_faults(call.get(key), field, (*path, key))


def _named_faults(value: Any, field: str, path: Path) -> Iterator[Finding]:
    """Look at a called function: its name, and its arguments as text under `field`."""
    called = as_dict(value)
    if called is None:
        yield "bad_tool_call", f"{path[-1]!r} must be an object, not {type_name(value)}", path
        return
    name = as_text(called.get("name"))
    if name is None:
        yield "bad_tool_call", "a call must name the tool, as a non-empty string", (*path, "name")
    elif not _NAME.fullmatch(name):
        yield "bad_name", _BAD_NAME, (*path, "name")
    if not isinstance(called.get(field), str):
        detail = f"{field!r} must be a string (JSON as text), not {type_name(called.get(field))}"
        yield "bad_tool_call", detail, (*path, field)
