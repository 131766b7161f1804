"""What Bedrock's Converse API refuses in the shape of messages, apart from pairs of calls and results.

The texts in quotes are the API's own, ValidationException, as people report them; each constant says where.
What it passes on to Claude is refused in Anthropic's words, and looked at by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.anthropic.faults import (
    BLANK_TEXT,
    CACHE_ORDER,
    CACHE_POINTS,
    MAX_CACHE_POINTS,
    end_faults,
    request_faults,
    role_faults,
)
from trimtab.formats.base import Request
from trimtab.formats.bedrock.read import (
    BLOCKS,
    CACHE_POINT,
    CALL,
    RESULT,
    THOUGHT,
    blocks_of,
    is_blank,
    key_of,
    places_of,
    result_id_of,
    view_of,
)
from trimtab.formats.refusal import Fault, Finding, faults_at, holds_one, tool_faults
from trimtab.formats.values import Dict, Path, as_dict, as_list, as_text, item_of, short_repr, type_name

_ROLES = ("user", "assistant", "system")
"""Of `ConversationRole` in the service model (botocore 1.44.5); "system" stands inside a conversation."""
SYSTEM_FIRST = "use the top-level 'system' parameter for the initial system prompt"

# Quoted in maximhq/bifrost#6732, with the place filled in.
_NULL = "Value null at '{}' failed to satisfy constraint: Member must not be null"
# Quoted in theopenco/llmgateway#3127: for either role.
_EMPTY = (
    "The content field in the Message object at messages.{} is empty. Add a ContentBlock object to the "
    "content field and try again."
)
# Quoted in LibreChat-AI/agents#501; white space alone the model refuses (NousResearch/hermes-agent#67978),
# and takes beside other content (billed, pydantic-ai's test_bedrock_cache_write_and_read).
_BLANK = (
    "The text field in the ContentBlock object at messages.{}.content.{} is blank. Add text to the text "
    "field, and try again."
)
# Quoted in envoyproxy/ai-gateway#1717.
_SEVERAL = "ContentBlock object at messages.{}.content.{} can only set one of the following keys: {}."
# The same where none is set: the service model's unions want exactly one.
_NO_KEY = "ContentBlock object at messages.{}.content.{} must set one of the following keys: {}."
# Quoted in anomalyco/opencode#36517.
_POINT_AFTER_REASONING = (
    "Cache point cannot be inserted after reasoning block. Please remove the invalid cache point and try "
    "again."
)
# zed-industries/zed#59436: a message of nothing but a cache point is refused; with what words is not said.
_POINT_ALONE = "a cache point has nothing in front of it in this message to mark"
# Quoted in archestra-ai/archestra#4220.
_DOCUMENT_ALONE = "A text block must be included when using documents."
# Quoted in aws-samples/sample-multi-agent-orchestration-chat-on-agentcore#15.
_EMPTY_ERROR = (
    "The content field at messages.{}.content.{}.toolResult cannot be empty when status value is error."
)
# The service model's `ToolUseId`; that it is checked: run-llama/llama_index#22775.
_BAD_ID = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+, and have at most 64 characters"
_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
# As of toolSpec.inputSchema.json, quoted in aws/aws-sdk-net#3377.
_NOT_OBJECT = (
    "The format of the value at messages.{}.content.{}.toolUse.input is invalid. Provide a json object for "
    "the field and try again."
)
# As of results, quoted in BerriAI/litellm#20047; that calls are checked too: BerriAI/litellm#20049.
_DUPLICATE = "The toolUse blocks at messages.{}.content contain duplicate Ids: {}"
# Quoted in vxcontrol/pentagi#196 and nearai/ironclaw#1629.
_NO_TOOL_CONFIG = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
# Measured for Claude: langchain-ai/langchain-aws#451.
_RESULT_NOT_FIRST = (
    "a toolResult block stands behind other content; the API answers that it did not find tool_result "
    "block(s) at the beginning of this message"
)
# Quoted in langchain-ai/langchain-aws#141 and, of two messages in a row, strands-agents/harness-sdk#1223
# (Llama, Mistral).
_MIXED = "Conversation blocks and tool result blocks cannot be provided in the same turn."
_TAKES_NO_MIX = re.compile(r"(?:^|[./])(?:meta|mistral|cohere)\.")
# Quoted in aws/bedrock-agentcore-sdk-python#416.
_THINKING_NOT_FIRST = (
    "If an assistant message contains any thinking blocks, the first block must be thinking. Found {}"
)
_REQUIRED = "Missing required parameter"
"""As boto3 says it, before anything is sent."""

_MESSAGE_KEYS = frozenset({"role", "content"})
_BY_MODEL_ONLY = frozenset({CALL, THOUGHT, "citationsContent"})
_BY_USER_ONLY = frozenset({"image", "document", "video", "audio", "guardContent", "searchResult"})
_IN_RESULTS = frozenset({"json", "text", "image", "document", "video", "searchResult"})
_MEDIA = frozenset({"image", "video", "audio"})


def faults_of(messages: Sequence[Dict], request: Request | None = None, *, model: str = "") -> list[Fault]:
    """List what is wrong with each message, in order; see `Format.faults`."""
    found = [] if request is None else list(faults_at(None, tool_faults(request.tools, _tool_fault)))
    run = _Run()
    for index, message in enumerate(messages):
        if not _is_plain(message):
            found += faults_at(index, _message_faults(message, index))
        found += faults_at(index, run.faults(message, index))
    found += _front_faults(messages)
    if _TAKES_NO_MIX.search(model):
        found += _mixed_faults(messages)
    found += _point_faults(messages, request)
    if request is not None and request.body is not None:
        found += _body_faults(messages, request)
    if not model or "claude" in model:
        found += _model_faults(messages, None if request is None else request.body, model)
    return sorted(found, key=lambda fault: -1 if fault.index is None else fault.index)


class _Run:
    """What the messages before one decide about it."""

    __slots__ = ("_last_calls", "_role")

    def __init__(self) -> None:
        self._role: object = None
        self._last_calls: set[str] = set()
        """Ids called in the turn of the model before: messages of it in a row are one turn."""

    def faults(self, message: Dict, index: int) -> Iterator[Finding]:
        """Look at a message in the light of those before it."""
        role, past_results = message.get("role"), False
        if role == "assistant" and role != self._role:
            self._last_calls.clear()
        self._role = role
        blocks = blocks_of(message)
        if role == "user" and not any(key_of(block) == RESULT for block in blocks):
            self._last_calls.clear()  # what comes now is late, which is found where calls and results are
        for at, block in enumerate(blocks):
            key = key_of(block)
            if key == CALL and (call_id := as_text(item_of(item_of(block, CALL), "toolUseId"))) is not None:
                if call_id in self._last_calls:
                    yield "duplicate_call_id", _DUPLICATE.format(index, call_id), ("content", at, CALL)
                self._last_calls.add(call_id)
            elif role == "user" and key not in (RESULT, CACHE_POINT):
                past_results = True
            elif past_results and key == RESULT and result_id_of(block) in self._last_calls:
                yield "result_not_first", _RESULT_NOT_FIRST, ("content", at)


def _front_faults(messages: Sequence[Dict]) -> Iterator[Fault]:
    """List messages of system text that come first: a request holds that beside them."""
    for index, message in enumerate(messages):
        if message.get("role") != "system":
            return
        yield Fault(index=index, rule="misplaced_system", detail=SYSTEM_FIRST, path=("role",))


def _mixed_faults(messages: Sequence[Dict]) -> Iterator[Fault]:
    """List messages that put words beside results in one turn: the service joins the user's in a row."""
    held: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "system":
            continue
        keys = {key_of(block) for block in blocks_of(message)} - {CACHE_POINT}
        held = held | keys if role == "user" else set()
        if RESULT in held and len(held) > 1:
            yield Fault(index=index, rule="mixed_turn", detail=_MIXED, path=("content",))


def _is_plain(message: Dict) -> bool:
    """Tell whether a message is plain to see right: one block that is a text, a call or a result of a text.

    Nearly every message is, and to look for each fault takes four times as long.
    """
    role: Any = message.get("role")
    content: Any = message.get("content")
    if len(message) != 2 or role not in ("user", "assistant") or not holds_one(content):
        return False
    ((key, data),) = content[0].items()
    if key == "text":
        return data.__class__ is str and bool(data.strip())
    if data.__class__ is not dict or not _has_id(data):
        return False
    if key == CALL:
        named = data.get("name").__class__ is str and bool(data["name"])
        return role == "assistant" and named and data.get("input").__class__ is dict
    if key != RESULT or role != "user" or not holds_one(data.get("content")):
        return False
    text: Any = data["content"][0].get("text")
    return text.__class__ is str and bool(text.strip())


def _has_id(data: Dict) -> bool:
    call_id: Any = data.get("toolUseId")
    return call_id.__class__ is str and _ID.fullmatch(call_id) is not None


def _message_faults(message: Dict, index: int) -> Iterator[Finding]:
    role, content = message.get("role"), message.get("content")
    for key in message:
        if key not in _MESSAGE_KEYS:
            yield "unknown_key", f"{key}: boto3 knows no such parameter of a message", (str(key),)
    if role is None:
        yield "missing_role", _NULL.format(f"messages.{index + 1}.member.role"), ("role",)
        return
    if not isinstance(role, str) or role not in _ROLES:
        said = f"Member must satisfy enum value set: [user, assistant, system], not {short_repr(role)}"
        yield "unknown_role", said, ("role",)
        return
    blocks = as_list(content)
    if content is None:
        yield "missing_content", _NULL.format(f"messages.{index + 1}.member.content"), ("content",)
    elif blocks is None:
        yield "bad_content", f"content must be a list of blocks, not {type_name(content)}", ("content",)
    elif not blocks:
        yield "empty_content", _EMPTY.format(index), ("content",)
    yield from _blocks_faults(role, blocks or (), index)
    keys = {key_of(block) for block in blocks or ()}
    if role == "user" and "document" in keys and "text" not in keys:
        yield "document_alone", _DOCUMENT_ALONE, ("content",)


def _blocks_faults(role: str, blocks: Sequence[object], index: int) -> Iterator[Finding]:
    says = any(key_of(block) != CACHE_POINT and not is_blank(block) for block in blocks)
    for at, block in enumerate(blocks):
        for fault in _block_faults(role, block, (index, at)):
            if not (says and fault[0] == "blank_text" and len(fault[2]) == 3):
                yield fault


def _tool_fault(at: int, tool: Dict) -> str | None:
    """Say what is wrong with a tool, as boto3 does."""
    if any(tool.get(key) is not None for key in ("toolSpec", CACHE_POINT, "systemTool")):
        return None
    return f"toolConfig.tools[{at}] must set one of: toolSpec, systemTool, cachePoint"


def _block_faults(role: str, value: object, place: tuple[int, int]) -> Iterator[Finding]:
    block = None if isinstance(value, str) else as_dict(value)
    path: Path = ("content", place[1])
    if block is None:
        yield "bad_block", f"a content block must be an object, not {type_name(value)}", path
        return
    listed = ", ".join(BLOCKS)
    held = [key for key in block if block[key] is not None]
    key = key_of(block)
    if key not in BLOCKS:
        yield "unknown_block", _NO_KEY.format(*place, listed) + f" Not {short_repr(key)}.", path
        return
    if len(held) > 1:
        yield "several_data", _SEVERAL.format(*place, listed), path
    if (role == "user" and key in _BY_MODEL_ONLY) or (role == "assistant" and key in _BY_USER_ONLY):
        yield "misplaced_block", f"a message of the role {role!r} cannot hold {key}", path
    if role == "assistant" and key == RESULT and not item_of(block[key], "type"):
        yield "misplaced_block", f"a message of the role {role!r} cannot hold {key}", path
    yield from _data_faults(key, block[key], place, (*path, key))


def _data_faults(key: str, data: object, place: tuple[int, int], path: Path) -> Iterator[Finding]:
    """Look at what a block holds under its key."""
    if key == "text":
        yield from _text_faults(data, place, path)
    elif as_dict(data) is None:
        yield "bad_block", f"{key} must be an object, not {type_name(data)}", path
    elif key == CALL:
        yield from _call_faults(data, place, path)
    elif key == RESULT:
        yield from _result_faults(data, place, path)
    elif key in _MEDIA or key == "document":
        yield from _medium_faults(key, data, path)
    elif key == THOUGHT:
        yield from _thought_faults(data, path)


def _text_faults(text: object, place: tuple[int, int], path: Path) -> Iterator[Finding]:
    if not isinstance(text, str):
        yield "bad_block", f"text must be a string, not {type_name(text)}", path
    elif not text:
        yield "empty_text", _BLANK.format(*place), path
    elif not text.strip():
        yield "blank_text", BLANK_TEXT, path


def _id_faults(data: object, rule: str, path: Path) -> Iterator[Finding]:
    call_id = as_text(item_of(data, "toolUseId"))
    if call_id is None:
        yield rule, f"{path[-1]}.toolUseId: {_REQUIRED}", (*path, "toolUseId")
    elif not _ID.fullmatch(call_id):
        yield "bad_id", f"{path[-1]}.toolUseId: {_BAD_ID}", (*path, "toolUseId")


def _call_faults(data: object, place: tuple[int, int], path: Path) -> Iterator[Finding]:
    yield from _id_faults(data, "bad_call", path)
    if as_text(item_of(data, "name")) is None:
        yield "bad_call", f"toolUse.name: {_REQUIRED}, a string", (*path, "name")
    if not isinstance(item_of(data, "input"), Mapping):
        yield "bad_call", _NOT_OBJECT.format(*place), (*path, "input")


def _result_faults(data: object, place: tuple[int, int], path: Path) -> Iterator[Finding]:
    yield from _id_faults(data, "bad_result", path)
    content, inside = item_of(data, "content"), (*path, "content")
    blocks = as_list(content)
    if blocks is None:
        detail = _REQUIRED if content is None else f"a list of blocks, not {type_name(content)}"
        yield "bad_result", f"toolResult.content: {detail}", inside
    elif not blocks and item_of(data, "status") == "error":
        yield "empty_error_result", _EMPTY_ERROR.format(*place), inside
    for at, block in enumerate(blocks or ()):
        if (key := key_of(block)) not in _IN_RESULTS:
            yield "unknown_block", f"a result cannot hold {short_repr(key)}", (*inside, at)
        elif key == "text":
            yield from _text_faults(block[key], place, (*inside, at, key))


def _medium_faults(key: str, data: object, path: Path) -> Iterator[Finding]:
    needs = "name" if key == "document" else "format"
    if as_text(item_of(data, needs)) is None:
        yield "bad_source", f"{key}.{needs}: {_REQUIRED}", (*path, needs)
    source = as_dict(item_of(data, "source"))
    ways = ("bytes", "s3Location", *(("text", "content") if key == "document" else ()))
    if source is None:
        yield "bad_source", f"{key}.source: {_REQUIRED}", (*path, "source")
    elif not any(source.get(way) for way in ways):
        yield "bad_source", f"{key}.source must set one of: {', '.join(ways)}", (*path, "source")


def _thought_faults(data: object, path: Path) -> Iterator[Finding]:
    thought = item_of(data, "reasoningText")
    if thought is None and item_of(data, "redactedContent") is None:
        yield "bad_block", "reasoningContent must set reasoningText or redactedContent", path
    elif thought is not None and not isinstance(item_of(thought, "text"), str):
        yield "bad_block", f"reasoningText.text: {_REQUIRED}", (*path, "reasoningText", "text")


def _point_faults(messages: Sequence[Dict], request: Request | None) -> Iterator[Fault]:
    """Look at cache points: where they stand, how many there are, and how long what they mark is kept."""
    short = False
    for count, (index, path, point) in enumerate(_points(messages, request), 1):
        if count > MAX_CACHE_POINTS:
            said = CACHE_POINTS.format(count)
            yield Fault(index=index, rule="too_many_cache_points", detail=said, path=path)
        long = item_of(point, "ttl") == "1h"
        if long and short:
            yield Fault(index=index, rule="cache_order", detail=CACHE_ORDER, path=path)
        short |= not long
        if index is None:
            continue
        at = path[1]
        before = "" if not isinstance(at, int) or not at else key_of(blocks_of(messages[index])[at - 1])
        if before == THOUGHT:
            yield Fault(index=index, rule="cached_thinking", detail=_POINT_AFTER_REASONING, path=path)
        elif before in ("", CACHE_POINT):
            yield Fault(index=index, rule="lone_cache_point", detail=_POINT_ALONE, path=path)


def _points(messages: Sequence[Dict], request: Request | None) -> Iterator[tuple[int | None, Path, object]]:
    """Yield where each cache point is, and the point, in the order the API reads them."""
    body = (request.body if request is not None else None) or {}
    for key, listed in (
        ("toolConfig", item_of(body.get("toolConfig"), "tools")),
        ("system", body.get("system")),
    ):
        for at, block in enumerate(as_list(listed) or ()):
            if (point := item_of(block, CACHE_POINT)) is not None:
                yield None, (key, at), point
    for index, message in enumerate(messages):
        for at, block in enumerate(blocks_of(message)):
            if key_of(block) == CACHE_POINT:
                yield index, ("content", at), item_of(block, CACHE_POINT)


def _body_faults(messages: Sequence[Dict], request: Request) -> Iterator[Fault]:
    if not messages:
        said = "messages: at least one message is required"
        yield Fault(index=None, rule="no_messages", detail=said)
    held = as_list(item_of((request.body or {}).get("toolConfig"), "tools")) or request.tools
    for message in messages:
        if not held and any(key_of(block) in (CALL, RESULT) for block in blocks_of(message)):
            yield Fault(index=None, rule="missing_tool_config", detail=_NO_TOOL_CONFIG, path=("toolConfig",))
            return


def _model_faults(messages: Sequence[Dict], body: Mapping[str, Any] | None, model: str) -> Iterator[Fault]:
    """Look at what Claude refuses, by its own API's rules; the blocks of those are here at other places."""
    for index, message in enumerate(messages):
        keys = [key_of(block) for block in blocks_of(message)]
        if message.get("role") == "assistant" and THOUGHT in keys[1:] and keys[0] != THOUGHT:
            said = _THINKING_NOT_FIRST.format(keys[0])
            yield Fault(index=index, rule="thinking_not_leading", detail=said, path=("content", 0))
    shown = [view_of(message) for message in messages]
    if shown and shown[-1]["role"] == "assistant" and (blocks := as_list(shown[-1]["content"])):
        for rule, detail, path in end_faults(blocks):
            yield _at_place(Fault(index=len(shown) - 1, rule=rule, detail=detail, path=path), messages)
    if body is None or not messages:
        return
    thinking = item_of(body.get("additionalModelRequestFields"), "thinking")
    for fault in (*role_faults(shown, model), *request_faults(shown, {"thinking": thinking}, model)):
        yield _at_place(fault, messages)


def _at_place(fault: Fault, messages: Sequence[Dict]) -> Fault:
    if fault.index is None or len(fault.path) < 2 or not isinstance(fault.path[1], int):
        return fault
    at = places_of(messages[fault.index])[fault.path[1]]
    return Fault(index=fault.index, rule=fault.rule, detail=fault.detail, path=("content", at))
