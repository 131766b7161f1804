"""What Anthropic refuses in the shape of messages, apart from pairs of calls and results.

The texts in quotes are the API's own, status 400, as people report them; each constant says where. Where
reports differ over the years the newest is taken. What a beta header decides is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.anthropic.read import (
    CALLS,
    THINKING,
    blocks_of,
    is_directive,
    is_server_result,
    result_id_of,
    type_of,
)
from trimtab.formats.anthropic.request_faults import cache_faults, front_faults, request_faults
from trimtab.formats.base import Dict, Fault, Path, Request, shown
from trimtab.formats.values import as_dict, as_list, as_text

_Found = tuple[str, str, Path]
"""Rule, detail and path of one fault."""

_ROLES = ("user", "assistant", "system")
_MESSAGE_KEYS = frozenset({"role", "content"})
_SYSTEM_KEYS = _MESSAGE_KEYS | {"output_config", "clear_at"}

# Quoted in danny-avila/LibreChat#3372.
_EMPTY = "all messages must have non-empty content except for the optional final assistant message"
# Returned by claude-opus-5-5 on 2026-10-06, as are the texts about blocks of system messages.
_EMPTY_SYSTEM = "system content must contain at least one block"
_SYSTEM_BLOCKS = "role 'system' supports text, tool_addition, and tool_removal blocks only"
# Quoted in anthropics/claude-code#59812 and #23369.
_EMPTY_TEXT = "text content blocks must be non-empty"
_BLANK_TEXT = "text content blocks must contain non-whitespace text"
# Quoted in tailcallhq/forgecode#1872 and langchain-ai/langchain#35071.
_TRAILING = "final assistant content cannot end with trailing whitespace"
# Measured in router-for-me/CLIProxyAPI#5321: only the last message of all is looked at.
_LAST_THINKING = "The final block in an assistant message cannot be `thinking`"
# Measured by several on 2026-09-20 and before: images, documents and uploads are the user's.
_NOT_BY_MODEL = "'{}' blocks are not permitted within assistant turns"
_RESULT_BY_MODEL = "`tool_result` blocks can only be in `user` messages"
# vercel/ai#13013 and anthropics/anthropic-sdk-typescript#653: the results come before all else.
_RESULT_NOT_FIRST = (
    "a `tool_result` block stands behind other content; the API answers that `tool_use` ids were found"
    " without `tool_result` blocks immediately after"
)
# Quoted in anthropics/claude-code#20901. Within one turn: an id that comes again in a later one is billed.
_DUPLICATE = "`tool_use` ids must be unique"
# Quoted in tailcallhq/forgecode#1142, for ids of another provider's calls.
_BAD_ID = "String should match pattern '^[a-zA-Z0-9_-]+$'"
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_EMPTY_CACHED = "cache_control cannot be set for empty text blocks"
# Measured 2026-09 against on-demand compaction, whose blocks are signed.
_COMPACTION_FIRST = (
    "`compaction` block must be sent first, in place of the messages it summarizes; remove those messages"
)
# `compaction_block_ambiguous` in the anthropic package's errors.
_COMPACTION_TWICE = "`messages` holds more than one `compaction` block with content"
_EXTRA = "Extra inputs are not permitted"
_REQUIRED = "Field required"

_SYSTEM_TYPES = frozenset({"text", "tool_addition", "tool_removal"})
_BY_MODEL_ONLY = THINKING | CALLS
_BY_USER_ONLY = frozenset({"image", "document", "container_upload"})
_KNOWN = (
    frozenset({"text", "search_result", "tool_result", "compaction", "fallback", "mcp_tool_listing"})
    | _BY_MODEL_ONLY
    | _BY_USER_ONLY
    | {"tool_addition", "tool_removal", "mid_conv_system"}
)
_IN_RESULTS = frozenset({"text", "image", "search_result", "document", "tool_reference", "browser_state"})
_SOURCES = {
    "image": {"base64": "data", "url": "url", "file": "file_id"},
    "document": {"base64": "data", "url": "url", "file": "file_id", "text": "data", "content": "content"},
}


def faults_of(messages: Sequence[Any], request: Request | None = None) -> list[Fault]:
    """List what is wrong with each message, in order; see `Format.faults`."""
    run = _Run()
    found: list[Fault] = []
    for index, message in enumerate(messages):
        last = index == len(messages) - 1
        for rule, detail, path in (*_message_faults(message, last), *run.faults(message, index)):
            found.append(Fault(index=index, rule=rule, detail=detail, path=path))
    found.extend(front_faults(messages))
    found.extend(cache_faults(messages, request))
    if request is not None:
        found.extend(request_faults(messages, request))
    return sorted(found, key=lambda fault: -1 if fault.index is None else fault.index)


class _Run:
    """What the messages before one decide about it."""

    __slots__ = ("_compactions", "_last_calls", "_past_results", "_role")

    def __init__(self) -> None:
        self._role: object = None
        self._last_calls: set[str] = set()
        """Ids called in the turn of the model before: messages of it in a row are one turn."""
        self._past_results = False
        """Whether something else than results was in the turn of the user so far."""
        self._compactions = 0

    def faults(self, message: Dict, index: int) -> Iterator[_Found]:
        """Look at a message in the light of those before it."""
        role = message.get("role")
        if role != self._role:
            self._past_results = False
            if role == "assistant":
                self._last_calls.clear()
        self._role = role
        if role == "user" and not any(type_of(block) == "tool_result" for block in blocks_of(message)):
            self._last_calls.clear()  # what comes now is late, which is found where calls and results are
        for at, value in enumerate(blocks_of(message)):
            block = as_dict(value)
            if block is not None:
                yield from self._block(block, role, (index, at), ("content", at))

    def _block(self, block: Dict, role: Any, place: tuple[int, int], path: Path) -> Iterator[_Found]:
        kind = type_of(block)
        if kind in CALLS and (call_id := as_text(block.get("id"))) is not None:
            if call_id in self._last_calls:
                yield "duplicate_call_id", _DUPLICATE, (*path, "id")
            self._last_calls.add(call_id)
        elif role == "user":
            if kind != "tool_result":
                self._past_results = True
            elif self._past_results and result_id_of(block) in self._last_calls:
                yield "result_not_first", _RESULT_NOT_FIRST, path
        if kind == "compaction" and block.get("content"):
            yield from self._compaction(block, place, path)

    def _compaction(self, block: Dict, place: tuple[int, int], path: Path) -> Iterator[_Found]:
        """Look at where a signed block stands; one without a signature may stand anywhere."""
        self._compactions += 1
        if block.get("signature") is None:
            return
        if place != (0, 0):
            yield "misplaced_compaction", _COMPACTION_FIRST, path
        if self._compactions > 1:
            yield "repeated_compaction", _COMPACTION_TWICE, path


def _message_faults(message: Dict, last: bool) -> Iterator[_Found]:
    role = message.get("role")
    if role is None:
        yield "missing_role", f"role: {_REQUIRED}", ("role",)
        return
    if not isinstance(role, str) or role not in _ROLES:
        listed = "'user', 'assistant' or 'system'"
        yield "unknown_role", f"role: Input should be {listed}, not {shown(role)}", ("role",)
        return
    known = _SYSTEM_KEYS if role == "system" else _MESSAGE_KEYS
    for key in message:
        if key not in known:
            yield "unknown_key", f"{key}: {_EXTRA}", (str(key),)
    yield from _content_faults(role, message, last)


def _content_faults(role: str, message: Dict, last: bool) -> Iterator[_Found]:
    content, path = message.get("content"), ("content",)
    blocks = as_list(content)
    if "content" not in message and not is_directive(message):
        yield "missing_content", f"content: {_REQUIRED}", path
    elif isinstance(content, str):
        yield from _string_faults(role, content, last)
    elif blocks is None:
        yield "bad_content", f"content must be a string or a list of blocks, not {_type(content)}", path
    elif not blocks:
        if role == "system":
            if not is_directive(message):
                yield "empty_content", _EMPTY_SYSTEM, path
        elif not (last and role == "assistant"):
            yield "empty_content", _EMPTY, path
    for at, block in enumerate(blocks or ()):
        yield from _block_faults(role, block, ("content", at))
    if blocks and last and role == "assistant":
        yield from _end_faults(blocks)


def _string_faults(role: str, content: str, last: bool) -> Iterator[_Found]:
    optional = last and role == "assistant"
    if not content:
        if not optional:
            yield "empty_content", _EMPTY_SYSTEM if role == "system" else _EMPTY, ("content",)
    elif not content.strip():
        yield "blank_text", _BLANK_TEXT, ("content",)
    elif optional and content != content.rstrip():
        yield "trailing_whitespace", _TRAILING, ("content",)


def _end_faults(blocks: Sequence[Any]) -> Iterator[_Found]:
    """Look at how the last message ends, if the model is to go on with it."""
    end, path = as_dict(blocks[-1]) or {}, ("content", len(blocks) - 1)
    text = end.get("text")
    if type_of(end) in THINKING:
        yield "final_thinking", _LAST_THINKING, path
    elif end.get("type") == "text" and isinstance(text, str) and text.strip() and text != text.rstrip():
        yield "trailing_whitespace", _TRAILING, (*path, "text")


def _block_faults(role: str, value: Any, path: Path) -> Iterator[_Found]:
    block = None if isinstance(value, str) else as_dict(value)
    if block is None:
        yield "bad_block", f"a content block must be an object, not {_type(value)}", path
        return
    kind = block.get("type")
    if not isinstance(kind, str) or not (kind in _KNOWN or is_server_result(kind)):
        detail = f"Input tag {shown(kind)} found using 'type' does not match any of the expected tags"
        yield "unknown_block", detail, (*path, "type")
        return
    if (words := _misplaced(role, kind)) is not None:
        yield "misplaced_block", words, path
        return
    yield from _field_faults(kind, block, path)
    if block.get("cache_control") is not None and kind in THINKING:
        yield "cached_thinking", f"{kind}.cache_control: {_EXTRA}", (*path, "cache_control")


def _misplaced(role: str, kind: str) -> str | None:
    if role == "system":
        return None if kind in _SYSTEM_TYPES else _SYSTEM_BLOCKS
    if role == "assistant":
        if kind == "tool_result":
            return _RESULT_BY_MODEL
        return _NOT_BY_MODEL.format(kind) if kind in _BY_USER_ONLY else None
    return f"`{kind}` blocks can only be in `assistant` messages" if kind in _BY_MODEL_ONLY else None


def _field_faults(kind: str, block: Dict, path: Path) -> Iterator[_Found]:
    """Look at what a block of a known type holds."""
    if kind == "text":
        yield from _text_faults(block, path)
    elif kind in CALLS:
        yield from _call_faults(kind, block, path)
    elif kind == "tool_result" or is_server_result(kind):
        yield from _result_faults(kind, block, path)
    elif kind in _SOURCES:
        yield from _source_faults(kind, block.get("source"), (*path, "source"))
    elif kind in THINKING:
        for key in ("thinking", "signature") if kind == "thinking" else ("data",):
            if not isinstance(block.get(key), str):
                yield "bad_block", f"{kind}.{key}: {_REQUIRED}", (*path, key)
    elif kind == "compaction" and block.get("content") == "":
        yield "bad_block", "compaction.content: empty string content is not allowed", (*path, "content")


def _text_faults(block: Dict, path: Path) -> Iterator[_Found]:
    text, at = block.get("text"), (*path, "text")
    if not isinstance(text, str):
        yield "bad_block", f"text.text: {_REQUIRED}, a string, not {_type(text)}", at
    elif not text:
        yield "empty_text", _EMPTY_CACHED if block.get("cache_control") is not None else _EMPTY_TEXT, at
    elif not text.strip():
        yield "blank_text", _BLANK_TEXT, at


def _call_faults(kind: str, block: Dict, path: Path) -> Iterator[_Found]:
    if (call_id := as_text(block.get("id"))) is None:
        yield "bad_call", f"{kind}.id: {_REQUIRED}, a string", (*path, "id")
    elif kind == "tool_use" and not _ID.fullmatch(call_id):
        yield "bad_id", f"{kind}.id: {_BAD_ID}", (*path, "id")
    if as_text(block.get("name")) is None:
        yield "bad_call", f"{kind}.name: {_REQUIRED}, a string", (*path, "name")
    if not isinstance(block.get("input"), Mapping):
        detail = f"{kind}.input: Input should be a valid dictionary, not {_type(block.get('input'))}"
        yield "bad_call", detail, (*path, "input")
    if kind == "mcp_tool_use" and as_text(block.get("server_name")) is None:
        yield "bad_call", f"{kind}.server_name: {_REQUIRED}", (*path, "server_name")


def _result_faults(kind: str, block: Dict, path: Path) -> Iterator[_Found]:
    if (call_id := as_text(block.get("tool_use_id"))) is None:
        yield "bad_result", f"{kind}.tool_use_id: {_REQUIRED}", (*path, "tool_use_id")
    elif kind == "tool_result" and not _ID.fullmatch(call_id):
        yield "bad_id", f"{kind}.tool_use_id: {_BAD_ID}", (*path, "tool_use_id")
    if kind != "tool_result":
        return
    content = block.get("content")
    blocks = as_list(content)
    if content is not None and blocks is None and not isinstance(content, str):
        detail = f"{kind}.content must be a string or a list of blocks, not {_type(content)}"
        yield "bad_result", detail, (*path, "content")
    for at, value in enumerate(blocks or ()):
        if (found := type_of(as_dict(value))) not in _IN_RESULTS:
            yield (
                "unknown_block",
                f"a result cannot hold a block of type {shown(found)}",
                (*path, "content", at),
            )


def _source_faults(kind: str, value: Any, path: Path) -> Iterator[_Found]:
    source, ways = as_dict(value), _SOURCES[kind]
    if source is None:
        yield "bad_source", f"{kind}.source: {_REQUIRED}", path
        return
    way = source.get("type")
    if not isinstance(way, str) or way not in ways:
        listed = ", ".join(map(repr, ways))
        detail = f"{kind}.source: Input tag {shown(way)} does not match any of the expected tags: {listed}"
        yield "bad_source", detail, (*path, "type")
    elif not source.get(ways[way]):
        yield "bad_source", f"{kind}.source.{way}.{ways[way]}: {_REQUIRED}", (*path, ways[way])


def _type(value: Any) -> str:
    return "null" if value is None else type(value).__name__
