"""What Anthropic refuses in the shape of messages, apart from pairs of calls and results.

The texts in quotes are the API's own, status 400, as people report them; each constant says where. Where
reports differ over the years the newest is taken. What a beta header decides is not looked at. A last
message of the model's whose calls wait for results is not at the end yet, and is not looked at as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.anthropic.edit import TAKES_NO_BUDGET
from trimtab.formats.anthropic.read import (
    CALLS,
    THINKING,
    blocks_of,
    is_directive,
    is_server_result,
    result_id_of,
    type_of,
)
from trimtab.formats.base import Request
from trimtab.formats.refusal import Fault, Finding, faults_at, tool_faults
from trimtab.formats.values import Dict, Path, as_dict, as_list, as_text, item_of, short_repr, type_name

_ROLES = ("user", "assistant", "system")
MESSAGE_KEYS = frozenset({"role", "content"})
_SYSTEM_KEYS = MESSAGE_KEYS | {"output_config", "clear_at"}

# Quoted in danny-avila/LibreChat#3372.
_EMPTY = "all messages must have non-empty content except for the optional final assistant message"
# Returned by claude-opus-5-5 on 2026-10-06, as are the texts about blocks of system messages.
_EMPTY_SYSTEM = "system content must contain at least one block"
_SYSTEM_BLOCKS = "role 'system' supports text, tool_addition, and tool_removal blocks only"
# Quoted in anthropics/claude-code#59812 and #23369.
_EMPTY_TEXT = "text content blocks must be non-empty"
# A blank text beside a call is taken: billed of claude-haiku-4-5 (simonw/llm-anthropic, 2026).
BLANK_TEXT = "text content blocks must contain non-whitespace text"
# Quoted in bytedance/trae-agent#230 and anthropics/claude-agent-sdk-python#248.
_EMPTY_ERROR = "tool_result: content cannot be empty if `is_error` is true"
# Quoted in tailcallhq/forgecode#1872 and langchain-ai/langchain#35071.
_TRAILING = "final assistant content cannot end with trailing whitespace"
# Measured in router-for-me/CLIProxyAPI#5321: only the last message of all is looked at.
_LAST_THINKING = "The final block in an assistant message cannot be `thinking`"
# Measured by several on 2026-09-20 and before: images, documents and uploads are the user's.
_NOT_BY_MODEL = "'{}' blocks are not permitted within assistant turns"
_RESULT_BY_MODEL = "`tool_result` blocks can only be in `user` messages"
# vercel/ai#13013 and anthropics/anthropic-sdk-typescript#653: the results come before all else.
RESULT_NOT_FIRST = (
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

# As returned by claude-opus-5-5 on 2026-10-06 and by all current models on 2026-09-10.
ANYWHERE = "; the directive-only form (content: [] with output_config) is accepted at any position"
SYSTEM_FIRST = "use the top-level 'system' parameter for the initial system prompt" + ANYWHERE

# Quoted, of tools as OpenAI has them, in dirac-run/dirac#57, less the list of tags.
_TOOL_TYPE = "tools.{}: Input tag {} found using 'type' does not match any of the expected tags"
# A list of texts is refused: horselock/claude-code-proxy#12.
_SYSTEM_TEXT = "system.{}: Input should be a valid dictionary, not {}"

# Quoted in langchain-ai/langchain#31696.
_NO_MESSAGES = "messages: at least one message is required"
# Quoted in anthropics/claude-code#61412.
_NO_SYSTEM = "role 'system' is not supported on this model"
_TAKES_NO_SYSTEM = re.compile(r"claude-(?:instant|[123](?!\d)|(?:sonnet|haiku)-4|opus-4(?![-.][89](?!\d)))")
"""Models before Opus 4.8, which first took such messages ("What's new in Claude Opus 4.8").

The list is that of docs.rs/gproxy-transform 2.6.1, less Sonnet 5, which takes them (langchainjs, 1.5.13).
Errs: of a model that is not listed nothing is said.
"""
_LETS_MODEL_LEAD = re.compile(r"claude-(?:(?:opus|sonnet|haiku)-(?:4[-.][5-9](?!\d)|[5-9])|fable|mythos)")
"""Models that take a first message of the model's own: since 4.5, of which two such requests were billed, by
Anthropic and by Bedrock. All reports of the refusal are of Claude 3 (2024).
"""
# Quoted in anomalyco/opencode#13768 and many others.
_NO_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user message."
)
_TAKES_NO_PREFILL = re.compile(r"claude-(?:(?:opus|sonnet)-(?:4[-.][6-9](?!\d)|[5-9])|fable|mythos)")
"""Since Opus 4.6 (release notes of 2026-02-05) and Sonnet 4.6 (langchain-ai/deepagents#1585).

Errs likewise.
"""
# Quoted in tailcallhq/forgecode#1853.
_THINKING_OFF = (
    "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To "
    "use thinking blocks, enable `thinking` in your request."
)
# Quoted in anomalyco/opencode#3077 and Kilo-Org/kilocode#5219.
_THINKING_FIRST = (
    "Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final "
    "`assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and "
    "`tool_result` blocks)."
)
# Quoted in lidge-jun/opencodex#65 and, of "disabled", in persimmoq's report of 2026-10-06 on dev.to.
_THINKING_TYPE = (
    '"thinking.type.{}" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.'
)
_ALWAYS_THINKS = re.compile(r"claude-(?:(?:opus|sonnet)-5[-.]5|(?:fable|mythos)-5[-.][12])(?!\d)")
"""As their migration guides say (platform.claude.com, 2026-10); earlier models may be told not to think."""
# Quoted in griffinmartin/opencode-claude-auth#121.
CACHE_POINTS = "A maximum of 4 blocks with cache_control may be provided. Found {}."
MAX_CACHE_POINTS = 4
# Quoted in cnighswonger/claude-code-cache-fix#44.
CACHE_ORDER = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are "
    "processed in the following order: `tools`, `system`, `messages`."
)


def lets_model_lead(model: str) -> bool:
    """Tell whether a model takes a conversation that begins with a message of its own."""
    return _LETS_MODEL_LEAD.search(model) is not None


def faults_of(messages: Sequence[Any], request: Request | None = None, *, model: str = "") -> list[Fault]:
    """List what is wrong with each message, in order; see `Format.faults`."""
    run = _Run()
    found = [] if request is None else list(faults_at(None, _beside_faults(request)))
    for index, message in enumerate(messages):
        if index == len(messages) - 1 or not _is_plain(message):
            found += faults_at(index, _message_faults(message, index == len(messages) - 1))
        found += faults_at(index, run.faults(message, index))
    found += _front_faults(messages)
    found += _cache_faults(messages, request)
    found += role_faults(messages, model)
    if request is not None and request.body is not None:
        found += request_faults(messages, request.body, model)
    return sorted(found, key=lambda fault: -1 if fault.index is None else fault.index)


def _beside_faults(request: Request) -> Iterator[Finding]:
    """Look at what stands beside the messages: system text and tools."""
    for at, value in enumerate(as_list(request.system) or ()):
        if isinstance(value, str) or as_dict(value) is None:
            yield "bad_system", _SYSTEM_TEXT.format(at, type_name(value)), ("system", at)
    yield from tool_faults(request.tools, _tool_fault)


def _tool_fault(at: int, tool: Dict) -> str | None:
    """Say what is wrong with a tool; those that the API defines have types of their own."""
    kind = tool.get("type")
    if kind == "function" or "function" in tool:
        return _TOOL_TYPE.format(at, short_repr(kind))
    missing = next((key for key in ("name", "input_schema") if not tool.get(key)), None)
    return f"tools.{at}.custom.{missing}: {_REQUIRED}" if missing and kind in (None, "custom") else None


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

    def faults(self, message: Dict, index: int) -> Iterator[Finding]:
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

    def _block(self, block: Dict, role: Any, place: tuple[int, int], path: Path) -> Iterator[Finding]:
        kind = type_of(block)
        if kind in CALLS and (call_id := as_text(block.get("id"))) is not None:
            if call_id in self._last_calls:
                yield "duplicate_call_id", _DUPLICATE, (*path, "id")
            self._last_calls.add(call_id)
        elif role == "user":
            if kind != "tool_result":
                self._past_results = True
            elif self._past_results and result_id_of(block) in self._last_calls:
                yield "result_not_first", RESULT_NOT_FIRST, path
        if kind == "compaction" and block.get("content"):
            yield from self._compaction(block, place, path)

    def _compaction(self, block: Dict, place: tuple[int, int], path: Path) -> Iterator[Finding]:
        """Look at where a signed block stands; one without a signature may stand anywhere."""
        self._compactions += 1
        if block.get("signature") is None:
            return
        if place != (0, 0):
            yield "misplaced_compaction", _COMPACTION_FIRST, path
        if self._compactions > 1:
            yield "repeated_compaction", _COMPACTION_TWICE, path


def _is_plain(message: Dict) -> bool:
    """Tell whether a message is plain to see right: a text, or one block that is a text, a call or a result.

    Nearly every message is, and to look for each fault takes four times as long.
    """
    role: Any = message.get("role")
    content: Any = message.get("content")
    if len(message) != 2 or role not in ("user", "assistant"):
        return False
    if content.__class__ is str:
        return bool(content.strip())
    if content.__class__ is not list or len(content) != 1 or content[0].__class__ is not dict:
        return False
    (block,) = content
    kind = block.get("type")
    if kind == "text":
        return block.get("text").__class__ is str and bool(block["text"].strip())
    if kind == "tool_use":
        named = block.get("name").__class__ is str and bool(block["name"])
        return role == "assistant" and named and block.get("input").__class__ is dict and _has_id(block, "id")
    right = kind == "tool_result" and role == "user" and block.get("is_error") is not True
    return right and block.get("content").__class__ is str and _has_id(block, "tool_use_id")


def _has_id(block: Dict, key: str) -> bool:
    call_id: Any = block.get(key)
    return call_id.__class__ is str and _ID.fullmatch(call_id) is not None


def _message_faults(message: Dict, last: bool) -> Iterator[Finding]:
    role = message.get("role")
    if role is None:
        yield "missing_role", f"role: {_REQUIRED}", ("role",)
        return
    if not isinstance(role, str) or role not in _ROLES:
        listed = "'user', 'assistant' or 'system'"
        yield "unknown_role", f"role: Input should be {listed}, not {short_repr(role)}", ("role",)
        return
    known = _SYSTEM_KEYS if role == "system" else MESSAGE_KEYS
    for key in message:
        if key not in known:
            yield "unknown_key", f"{key}: {_EXTRA}", (str(key),)
    yield from _content_faults(role, message, last)


def _content_faults(role: str, message: Dict, last: bool) -> Iterator[Finding]:
    content, path = message.get("content"), ("content",)
    blocks = as_list(content)
    if "content" not in message and not is_directive(message):
        yield "missing_content", f"content: {_REQUIRED}", path
    elif isinstance(content, str):
        yield from _string_faults(role, content, last)
    elif blocks is None:
        yield "bad_content", f"content must be a string or a list of blocks, not {type_name(content)}", path
    elif not blocks:
        if role == "system":
            if not is_directive(message):
                yield "empty_content", _EMPTY_SYSTEM, path
        elif not (last and role == "assistant"):
            yield "empty_content", _EMPTY, path
    if blocks:
        yield from _blocks_faults(role, blocks)
    if blocks and last and role == "assistant":
        yield from end_faults(blocks)


def _blocks_faults(role: str, blocks: Sequence[Any]) -> Iterator[Finding]:
    calls = role == "assistant" and any(type_of(block) in CALLS for block in blocks)
    for at, block in enumerate(blocks):
        for fault in _block_faults(role, block, ("content", at)):
            if not (calls and fault[0] == "blank_text"):
                yield fault


def _string_faults(role: str, content: str, last: bool) -> Iterator[Finding]:
    optional = last and role == "assistant"
    if not content:
        if not optional:
            yield "empty_content", _EMPTY_SYSTEM if role == "system" else _EMPTY, ("content",)
    elif not content.strip():
        yield "blank_text", BLANK_TEXT, ("content",)
    elif optional and content != content.rstrip():
        yield "trailing_whitespace", _TRAILING, ("content",)


def end_faults(blocks: Sequence[Any]) -> Iterator[Finding]:
    """Look at how the last message ends, if the model is to go on with it."""
    end, path = as_dict(blocks[-1]) or {}, ("content", len(blocks) - 1)
    text = end.get("text")
    if type_of(end) in THINKING:
        yield "final_thinking", _LAST_THINKING, path
    elif end.get("type") == "text" and isinstance(text, str) and text.strip() and text != text.rstrip():
        yield "trailing_whitespace", _TRAILING, (*path, "text")


def _block_faults(role: str, value: Any, path: Path) -> Iterator[Finding]:
    block = None if isinstance(value, str) else as_dict(value)
    if block is None:
        yield "bad_block", f"a content block must be an object, not {type_name(value)}", path
        return
    kind = block.get("type")
    if not isinstance(kind, str) or not (kind in _KNOWN or is_server_result(kind)):
        detail = f"Input tag {short_repr(kind)} found using 'type' does not match any of the expected tags"
        yield "unknown_block", detail, (*path, "type")
        return
    if (words := _role_fault(role, kind)) is not None:
        yield "misplaced_block", words, path
        return
    yield from _field_faults(kind, block, path)
    if block.get("cache_control") is not None and kind in THINKING:
        yield "cached_thinking", f"{kind}.cache_control: {_EXTRA}", (*path, "cache_control")


def _role_fault(role: str, kind: str) -> str | None:
    if role == "system":
        return None if kind in _SYSTEM_TYPES else _SYSTEM_BLOCKS
    if role == "assistant":
        if kind == "tool_result":
            return _RESULT_BY_MODEL
        return _NOT_BY_MODEL.format(kind) if kind in _BY_USER_ONLY else None
    return f"`{kind}` blocks can only be in `assistant` messages" if kind in _BY_MODEL_ONLY else None


def _field_faults(kind: str, block: Dict, path: Path) -> Iterator[Finding]:
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


def _text_faults(block: Dict, path: Path) -> Iterator[Finding]:
    text, at = block.get("text"), (*path, "text")
    if not isinstance(text, str):
        yield "bad_block", f"text.text: {_REQUIRED}, a string, not {type_name(text)}", at
    elif not text:
        yield "empty_text", _EMPTY_CACHED if block.get("cache_control") is not None else _EMPTY_TEXT, at
    elif not text.strip():
        yield "blank_text", BLANK_TEXT, at


def _call_faults(kind: str, block: Dict, path: Path) -> Iterator[Finding]:
    if (call_id := as_text(block.get("id"))) is None:
        yield "bad_call", f"{kind}.id: {_REQUIRED}, a string", (*path, "id")
    elif kind == "tool_use" and not _ID.fullmatch(call_id):
        yield "bad_id", f"{kind}.id: {_BAD_ID}", (*path, "id")
    if as_text(block.get("name")) is None:
        yield "bad_call", f"{kind}.name: {_REQUIRED}, a string", (*path, "name")
    if not isinstance(block.get("input"), Mapping):
        detail = f"{kind}.input: Input should be a valid dictionary, not {type_name(block.get('input'))}"
        yield "bad_call", detail, (*path, "input")
    if kind == "mcp_tool_use" and as_text(block.get("server_name")) is None:
        yield "bad_call", f"{kind}.server_name: {_REQUIRED}", (*path, "server_name")


def _result_faults(kind: str, block: Dict, path: Path) -> Iterator[Finding]:
    if (call_id := as_text(block.get("tool_use_id"))) is None:
        yield "bad_result", f"{kind}.tool_use_id: {_REQUIRED}", (*path, "tool_use_id")
    elif kind == "tool_result" and not _ID.fullmatch(call_id):
        yield "bad_id", f"{kind}.tool_use_id: {_BAD_ID}", (*path, "tool_use_id")
    if kind != "tool_result":
        return
    content = block.get("content")
    blocks = as_list(content)
    if content is not None and blocks is None and not isinstance(content, str):
        detail = f"{kind}.content must be a string or a list of blocks, not {type_name(content)}"
        yield "bad_result", detail, (*path, "content")
    if block.get("is_error") is True and not content:
        yield "empty_error_result", _EMPTY_ERROR, (*path, "content")
    for at, value in enumerate(blocks or ()):
        if (found := type_of(as_dict(value))) not in _IN_RESULTS:
            yield (
                "unknown_block",
                f"a result cannot hold a block of type {short_repr(found)}",
                (*path, "content", at),
            )


def _source_faults(kind: str, value: Any, path: Path) -> Iterator[Finding]:
    source, ways = as_dict(value), _SOURCES[kind]
    if source is None:
        yield "bad_source", f"{kind}.source: {_REQUIRED}", path
        return
    way = source.get("type")
    if not isinstance(way, str) or way not in ways:
        listed = ", ".join(map(repr, ways))
        detail = (
            f"{kind}.source: Input tag {short_repr(way)} does not match any of the expected tags: {listed}"
        )
        yield "bad_source", detail, (*path, "type")
    elif not source.get(ways[way]):
        yield "bad_source", f"{kind}.source.{way}.{ways[way]}: {_REQUIRED}", (*path, ways[way])


def role_faults(messages: Sequence[Any], model: str) -> Iterator[Fault]:
    """List messages of system text inside a conversation, where the model takes none."""
    if not _TAKES_NO_SYSTEM.search(model):
        return
    front = True
    for index, message in enumerate(messages):
        if message.get("role") != "system" or is_directive(message):
            front = False
        elif not front:
            yield Fault(index=index, rule="unsupported_role", detail=_NO_SYSTEM, path=("role",))


def request_faults(messages: Sequence[Any], body: Mapping[str, Any], model: str) -> Iterator[Fault]:
    """List what the settings of a request decide, and its end."""
    if not messages:
        yield Fault(index=None, rule="no_messages", detail=_NO_MESSAGES)
        return
    thinking = item_of(body.get("thinking"), "type")
    yield from _request_end_faults(messages, model, thinking)
    refused = {"enabled": TAKES_NO_BUDGET, "disabled": _ALWAYS_THINKS}.get(thinking)
    if refused is not None and refused.search(model):
        said = _THINKING_TYPE.format(thinking)
        yield Fault(index=None, rule="unsupported_thinking", detail=said, path=("thinking", "type"))
    elif thinking == "enabled":
        yield from _loop_faults(messages)


def _front_faults(messages: Sequence[Any]) -> Iterator[Fault]:
    """List messages of system text that come first: a request holds that beside them, whatever its model."""
    for index, message in enumerate(messages):
        if message.get("role") != "system" or is_directive(message):
            return
        yield Fault(index=index, rule="misplaced_system", detail=SYSTEM_FIRST, path=("role",))


def _cache_faults(messages: Sequence[Any], request: Request | None) -> Iterator[Fault]:
    """Look at the marks for the prompt cache, in the order the API reads them."""
    body = request.body if request is not None else None
    short = False
    for count, (index, path, mark) in enumerate(_marks(messages, body or {}), 1):
        if count > MAX_CACHE_POINTS:
            said = CACHE_POINTS.format(count)
            yield Fault(index=index, rule="too_many_cache_points", detail=said, path=path)
        long = item_of(mark, "ttl") == "1h"
        if long and short:
            yield Fault(index=index, rule="cache_order", detail=CACHE_ORDER, path=path)
        short |= not long


def _marks(messages: Sequence[Any], body: Mapping[str, Any]) -> Iterator[tuple[int | None, Path, Any]]:
    """Yield where each mark is, and the mark; those within a result come before the result's own."""
    for key in ("tools", "system"):
        for at, value in enumerate(as_list(body.get(key)) or ()):
            if (mark := item_of(value, "cache_control")) is not None:
                yield None, (key, at), mark
    for index, message in enumerate(messages):
        for at, value in enumerate(blocks_of(message)):
            block = as_dict(value) or {}
            for inner, part in enumerate(as_list(block.get("content")) or ()):
                if (mark := item_of(part, "cache_control")) is not None:
                    yield index, ("content", at, "content", inner), mark
            if (mark := block.get("cache_control")) is not None:
                yield index, ("content", at), mark


def _request_end_faults(messages: Sequence[Any], model: str, thinking: Any) -> Iterator[Fault]:
    """Look at words of the model's at the end, with which it is to go on."""
    start = len(messages)
    while start and messages[start - 1].get("role") == "assistant":
        start -= 1
    types = {type_of(block) for message in messages[start:] for block in blocks_of(message)}
    if start == len(messages) or types & CALLS:
        return
    if _TAKES_NO_PREFILL.search(model):
        yield Fault(index=len(messages) - 1, rule="ends_with_assistant", detail=_NO_PREFILL)
    if thinking in ("enabled", "adaptive"):
        return
    for index in range(start, len(messages)):
        for at, block in enumerate(blocks_of(messages[index])):
            if type_of(block) in THINKING:
                path: Path = ("content", at)
                yield Fault(index=index, rule="unexpected_thinking", detail=_THINKING_OFF, path=path)


def _loop_faults(messages: Sequence[Any]) -> Iterator[Fault]:
    """Look at how the model's turn began, where it is to go on from results."""
    first, answers = -1, False
    for index in range(len(messages) - 1, -1, -1):
        role = messages[index].get("role")
        if role == "user":
            answers |= any(type_of(block) == "tool_result" for block in blocks_of(messages[index]))
        elif role == "assistant" and not answers:
            break
        elif role == "assistant":
            first = index
            answers = index > 0 and messages[index - 1].get("role") == "assistant"
    if first < 0:
        return
    blocks = blocks_of(messages[first])
    kind = type_of(blocks[0]) if blocks else "text"
    if kind not in THINKING:
        detail = _THINKING_FIRST.format(kind)
        yield Fault(index=first, rule="thinking_not_first", detail=detail, path=("content", 0, "type"))
