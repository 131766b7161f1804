"""What Anthropic refuses of a request as a whole: what its model, thinking and cache points decide.

The texts in quotes are the API's own, status 400, as people report them; each constant says where. A last
message of the model's whose calls wait for results is not at the end yet, and is not looked at as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.anthropic.read import CALLS, THINKING, blocks_of, is_directive, type_of
from trimtab.formats.base import Fault, Path, Request
from trimtab.formats.values import as_dict, as_list, as_text, item_of

# As returned by claude-opus-5-5 on 2026-10-06 and by all current models on 2026-09-10.
ANYWHERE = "; the directive-only form (content: [] with output_config) is accepted at any position"
SYSTEM_FIRST = "use the top-level 'system' parameter for the initial system prompt" + ANYWHERE

# Quoted in langchain-ai/langchain#31696.
_NO_MESSAGES = "messages: at least one message is required"
# Quoted in anthropics/claude-code#61412.
_NO_SYSTEM = "role 'system' is not supported on this model"
_TAKES_NO_SYSTEM = re.compile(r"claude-(?:instant|[123](?!\d)|(?:sonnet|haiku)-4|opus-4(?![-.][89](?!\d)))")
"""Models before Opus 4.8, which first took such messages ("What's new in Claude Opus 4.8").

The list is that of docs.rs/gproxy-transform 2.6.1, less Sonnet 5, which takes them (langchainjs, 1.5.13).
Errs: of a model that is not listed nothing is said.
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
# Quoted in griffinmartin/opencode-claude-auth#121.
_CACHE_POINTS = "A maximum of 4 blocks with cache_control may be provided. Found {}."
_MAX_CACHE_POINTS = 4
# Quoted in cnighswonger/claude-code-cache-fix#44.
_CACHE_ORDER = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are "
    "processed in the following order: `tools`, `system`, `messages`."
)


def request_faults(messages: Sequence[Any], request: Request) -> Iterator[Fault]:
    """List what the rest of a body makes of its messages."""
    body = request.body or {}
    if not messages:
        yield Fault(index=None, rule="no_messages", detail=_NO_MESSAGES)
        return
    model = as_text(body.get("model")) or ""
    front = True
    for index, message in enumerate(messages):
        if message.get("role") != "system" or is_directive(message):
            front = False
        elif not front and _TAKES_NO_SYSTEM.search(model):
            yield Fault(index=index, rule="unsupported_role", detail=_NO_SYSTEM, path=("role",))
    thinking = item_of(body.get("thinking"), "type")
    yield from _end_faults(messages, model, thinking)
    if thinking == "enabled":
        yield from _loop_faults(messages)


def front_faults(messages: Sequence[Any]) -> Iterator[Fault]:
    """List messages of system text that come first: a request holds that beside them, whatever its model."""
    for index, message in enumerate(messages):
        if message.get("role") != "system" or is_directive(message):
            return
        yield Fault(index=index, rule="misplaced_system", detail=SYSTEM_FIRST, path=("role",))


def cache_faults(messages: Sequence[Any], request: Request | None) -> Iterator[Fault]:
    """Look at the marks for the prompt cache, in the order the API reads them."""
    body = request.body if request is not None else None
    short = False
    for count, (index, path, mark) in enumerate(_marks(messages, body or {}), 1):
        if count > _MAX_CACHE_POINTS:
            said = _CACHE_POINTS.format(count)
            yield Fault(index=index, rule="too_many_cache_points", detail=said, path=path)
        long = item_of(mark, "ttl") == "1h"
        if long and short:
            yield Fault(index=index, rule="cache_order", detail=_CACHE_ORDER, path=path)
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


def _end_faults(messages: Sequence[Any], model: str, thinking: Any) -> Iterator[Fault]:
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
