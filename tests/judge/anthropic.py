"""Rules of POST /v1/messages, from Anthropic's pages and the errors people reported.

Consecutive messages of one role are one turn: the reference says so, and golden requests with the calls
of two assistant messages answered together were accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.judge._rules import Body, Found, Table, entry, found, items, objects, once, text

TABLE = Table()

ID = re.compile(r"[a-zA-Z0-9_-]+")
MAX_CACHED = 4
THINKING = ("thinking", "redacted_thinking")
SERVER_RESULTS = {
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
}
USES = {"tool_use", "server_tool_use", "mcp_tool_use"}
RESULTS = {"tool_result", "mcp_tool_result", *SERVER_RESULTS}
BLOCKS = {
    "text",
    "image",
    "document",
    "search_result",
    "container_upload",
    "compaction",
    "fallback",
    "mid_conv_system",
    "tool_addition",
    "tool_removal",
    "tool_reference",
    *THINKING,
    *USES,
    *RESULTS,
}
REQUIRED = {
    "text": ("text",),
    "image": ("source",),
    "document": ("source",),
    "tool_use": ("id", "name", "input"),
    "server_tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "thinking": ("thinking",),
    "redacted_thinking": ("data",),
}
NO_PREFILL = re.compile(r"claude-(opus|sonnet)-(4-[6-9]|[5-9])|claude-(fable|mythos)")
"""ericc-ch/copilot-api#261: 4-6 and later refuse an assistant's opening words; vybestack/llxprt-code#3695."""
CHOOSES = re.compile(r"claude-(opus-4-[78]|(opus|sonnet|haiku|fable|mythos)-5)(?!\d)")
"""Models that think adaptively alone: lidge-jun/opencodex#65, handochan/aelix-ai#258, migration guides."""
ALWAYS = re.compile(r"claude-((opus|sonnet)-5-5|(fable|mythos)-5-[12])(?!\d)")
"""Of these, those that cannot be told not to think."""
PRESERVES = re.compile(r"claude-((opus|sonnet|haiku)-5-5|(fable|mythos)-5-[12])(?!\d)")
"""Models with preserved thinking, as the page on it lists them (2026-10)."""
NO_SYSTEM = re.compile(r"claude-(2|3|instant)|claude-(opus|sonnet|haiku)-(4-[0-7]\b|4-\d{8}|4\b(?!-))")
"""Released before Opus 4.8, which first took system messages inside the conversation."""


class Block(NamedTuple):
    """A block and where it stands."""

    at: int
    spot: int
    role: str
    type: str
    body: dict[str, Any]

    @property
    def path(self) -> str:
        """The place as the errors write it."""
        return f"messages.{self.at}.content.{self.spot}"


@once
def messages(request: Body) -> list[tuple[int, dict[str, Any]]]:
    """Return the messages with their places."""
    return objects(request.get("messages"))


@once
def blocks(request: Body) -> Iterator[Block]:
    """Yield the blocks of all messages."""
    for at, message in messages(request):
        for spot, body in objects(message.get("content")):
            yield Block(at, spot, text(message.get("role")), text(body.get("type")), body)


@once
def turns(request: Body) -> list[tuple[str, list[Block]]]:
    """Return role and blocks of the turns; a system message inside the conversation is in none."""
    made: list[tuple[str, list[Block]]] = []
    for at, message in messages(request):
        role = text(message.get("role"))
        if role == "system":
            continue
        if not made or made[-1][0] != role:
            made.append((role, []))
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for spot, body in objects(parts):
            made[-1][1].append(Block(at, spot, role, text(body.get("type")), body))
    return made


def model(request: Body) -> str:
    """Return the model's name, if the request says one."""
    return text(request.get("model"))


@TABLE.rule("{where}: Field required", "https://github.com/LibreChat-AI/agents/pull/279")
def field_required(request: Body) -> Iterator[Found]:
    """What the reference requires, but for the signature of thinking."""
    if request.get("messages") is None:
        yield found("messages")
    for at, message in messages(request):
        for key in ("role", "content"):
            if message.get(key) is None:
                yield found(f"messages.{at}.{key}", key)
    for block in blocks(request):
        if block.body.get("type") is None:
            yield found(f"{block.path}.type", "type")
        for key in REQUIRED.get(block.type, ()):
            if block.body.get(key) is None:
                yield found(f"{block.path}.{block.type}.{key}", key)


@TABLE.rule(
    "{where}: Input should be a valid {expected}",
    "https://github.com/anthropics/anthropic-sdk-typescript/issues/648",
)
def wrong_type(request: Body) -> Iterator[Found]:
    """A value of another JSON type; the input of a call is an object, not text."""

    def wrong(path: str, value: Any, types: Any, expected: str) -> Iterator[Found]:
        if value is not None and not isinstance(value, types):
            yield found(path, expected, expected=expected)

    yield from wrong("messages", request.get("messages"), list | tuple, "list")
    for at, message in enumerate(items(request.get("messages"))):
        yield from wrong(f"messages.{at}", message, dict, "dictionary")
        content = entry(message).get("content")
        yield from wrong(f"messages.{at}.content", content, str | list | tuple, "list")
        for spot, body in enumerate(items(content)):
            yield from wrong(f"messages.{at}.content.{spot}", body, dict, "dictionary")
    for block in blocks(request):
        path = f"{block.path}.{block.type}"
        if block.type in USES:
            yield from wrong(f"{path}.input", block.body.get("input"), dict, "dictionary")
        for key in ("text", "id", "name", "tool_use_id", "thinking", "signature"):
            yield from wrong(f"{path}.{key}", block.body.get(key), str, "string")


@TABLE.rule(
    "messages: at least one message is required",
    "https://github.com/langchain-ai/langchain/pull/31696",
)
def no_messages(request: Body) -> Iterator[Found]:
    """Something to answer."""
    if isinstance(request.get("messages"), list | tuple) and not request["messages"]:
        yield found("messages")


@TABLE.rule(
    'messages: first message must use the "user" role',
    "https://github.com/lobehub/lobehub/issues/1601",
    elsewhere="Bedrock; Anthropic's own endpoint stopped asking for it (anthropic-sdk-typescript#622)",
)
def first_role(request: Body) -> Iterator[Found]:
    """A conversation opens with the user."""
    listed = items(request.get("messages"))
    if listed and entry(listed[0]).get("role") == "assistant":
        yield found("messages.0.role")


@TABLE.rule(
    'messages: Unexpected role "{about}". The Messages API accepts a top-level `system` parameter, not '
    '"{about}" as an input message role.',
    "https://github.com/ianarawjo/ChainForge/issues/271",
)
def unknown_role(request: Body) -> Iterator[Found]:
    """A role of nobody; 'system' stands right after the user, never first (simonw/llm-anthropic#73)."""
    before = ""
    for at, message in messages(request):
        role = text(message.get("role"))
        misplaced = role == "system" and before not in ("user", "system")
        if misplaced or (role and role not in ("user", "assistant", "system")):
            yield found(f"messages.{at}.role", role)
        before = role


@TABLE.rule(
    "role 'system' is not supported on this model",
    "https://docs.rs/gproxy-transform/2.5.2/gproxy_transform/transform/common/claude_mid_conv_system/index.html",
)
def system_unsupported(request: Body) -> Iterator[Found]:
    """Models before Opus 4.8 take instructions only apart."""
    for at, message in messages(request):
        if message.get("role") == "system" and NO_SYSTEM.match(model(request)):
            yield found(f"messages.{at}.role", "system")


@TABLE.rule(
    "{where}: all messages must have non-empty content except for the optional final assistant message",
    "https://github.com/anthropics/claude-code/issues/6774",
)
def empty_content(request: Body) -> Iterator[Found]:
    """Nobody says nothing, but for the assistant at the end."""
    listed = messages(request)
    for at, message in listed:
        final = at == listed[-1][0] and message.get("role") == "assistant"
        if message.get("content") in ("", [], ()) and not final:
            yield found(f"messages.{at}", message.get("role"))


@TABLE.rule(
    "messages: text content blocks must be non-empty",
    "https://github.com/anthropics/claude-code/issues/59812",
)
def empty_text(request: Body) -> Iterator[Found]:
    """A block of text has text."""
    for block in blocks(request):
        if block.type == "text" and block.body.get("text") == "" and "cache_control" not in block.body:
            yield found(block.path)


@TABLE.rule(
    "messages: text content blocks must contain non-whitespace text",
    "https://github.com/LibreChat-AI/agents/pull/124",
)
def only_whitespace(request: Body) -> Iterator[Found]:
    """White space alone is no message; beside other blocks it is accepted."""
    for at, message in messages(request):
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        said = [text(entry(part).get("text")) for part in parts if entry(part).get("type") == "text"]
        if said and len(said) == len(parts) and any(said) and not any(one.strip() for one in said):
            yield found(f"messages.{at}", message.get("role"))


@TABLE.rule(
    "{where}: Input tag '{about}' found using 'type' does not match any of the expected tags: {known}",
    "https://github.com/dirac-run/dirac/issues/57",
)
def unknown_block(request: Body) -> Iterator[Found]:
    """A block of no type of this API."""
    for block in blocks(request):
        if block.type and block.type not in BLOCKS:
            yield found(block.path, block.type, known=", ".join(f"'{name}'" for name in sorted(BLOCKS)))


@TABLE.rule(
    "messages.{at}: `{about}` blocks can only be in `{role}` messages",
    "https://github.com/tghamm/Anthropic.SDK/issues/128",
)
def block_of_another_role(request: Body) -> Iterator[Found]:
    """The user gives results and media, the assistant calls and thinks."""
    for block in blocks(request):
        if block.role == "assistant" and block.type in ("tool_result", "image", "document"):
            yield found(block.path, block.type, at=block.at, role="user")
        elif block.role == "user" and block.type in (*USES, *THINKING, *SERVER_RESULTS):
            yield found(block.path, block.type, at=block.at, role="assistant")


@TABLE.rule(
    "{where}: String should match pattern '^[a-zA-Z0-9_-]+$'",
    "https://github.com/tailcallhq/forgecode/issues/1142",
)
def bad_id(request: Body) -> Iterator[Found]:
    """Ids of calls are letters, digits, underscores and hyphens."""
    for block in blocks(request):
        key = "tool_use_id" if block.type == "tool_result" else "id"
        value = block.body.get(key)
        if block.type in ("tool_use", "tool_result") and isinstance(value, str) and not ID.fullmatch(value):
            yield found(f"{block.path}.{block.type}.{key}", value)


@TABLE.rule(
    "{where}: `tool_use` ids must be unique", "https://github.com/anthropics/claude-code/issues/20901"
)
def repeated_call(request: Body) -> Iterator[Found]:
    """An id calls once in a turn; a later turn may use it again (golden requests do)."""
    for _, own in turns(request):
        seen: set[str] = set()
        for block in own:
            id_ = text(block.body.get("id")) if block.type == "tool_use" else ""
            if id_ and id_ in seen:
                yield found(block.path, id_)
            seen.add(id_)


@once
def exchanges(request: Body) -> Iterator[tuple[list[Block], list[Block], list[Block]]]:
    """Yield calls of a turn, the results that open the next turn, and the results behind other content."""
    made = turns(request)
    for role_blocks, after in zip([("", []), *made], [*made, ("", [])], strict=True):
        role, own = role_blocks
        calls = [block for block in own if block.type == "tool_use"] if role == "assistant" else []
        first: list[Block] = []
        late: list[Block] = []
        others = False
        for block in after[1] if after[0] == "user" else ():
            others = others or block.type != "tool_result"
            if block.type == "tool_result":
                (late if others else first).append(block)
        yield calls, first, late


@TABLE.rule(
    "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {about}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    "https://github.com/anthropics/claude-code/issues/1237",
)
def call_without_result(request: Body) -> Iterator[Found]:
    """Every call is answered at the start of the next turn, before any text of it."""
    for calls, first, _ in exchanges(request):
        answered = {text(block.body.get("tool_use_id")) for block in first}
        for block in calls:
            id_ = text(block.body.get("id"))
            if id_ and id_ not in answered:
                yield found(f"messages.{block.at}", id_, at=block.at)


@TABLE.rule(
    "{where}: unexpected `tool_use_id` found in `tool_result` blocks: {about}. Each `tool_result` block "
    "must have a corresponding `tool_use` block in the previous message.",
    "https://github.com/anthropics/claude-code/issues/13460",
)
def result_without_call(request: Body) -> Iterator[Found]:
    """A result answers a call of the turn before."""
    for calls, first, late in exchanges(request):
        called = {text(block.body.get("id")) for block in calls}
        for block in (*first, *late):
            id_ = text(block.body.get("tool_use_id"))
            if id_ and id_ not in called:
                yield found(block.path, id_)


@TABLE.rule(
    "{where}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {about}",
    "https://github.com/anthropics/claude-code/issues/14110",
)
def repeated_result(request: Body) -> Iterator[Found]:
    """A call has one result."""
    for _, first, late in exchanges(request):
        seen: set[str] = set()
        for block in (*first, *late):
            id_ = text(block.body.get("tool_use_id"))
            if id_ and id_ in seen:
                yield found(block.path, id_)
            seen.add(id_)


@TABLE.rule(
    "{where}: unexpected `tool_use_id` found in `{type}` blocks: {about}. Each `{type}` block must have a "
    "corresponding `server_tool_use` block before it.",
    "https://github.com/anthropics/claude-code/issues/64383",
)
def server_result_without_call(request: Body) -> Iterator[Found]:
    """What the provider's tools gave stands behind their call."""
    made: set[str] = set()
    for block in blocks(request):
        if block.type == "server_tool_use":
            made.add(text(block.body.get("id")))
        elif block.type in SERVER_RESULTS:
            id_ = text(block.body.get("tool_use_id"))
            if id_ and id_ not in made:
                yield found(block.path, id_, type=block.type)


@TABLE.rule(
    "messages.{at}: `{name}` tool use with id `{about}` was found without a corresponding "
    "`{name}_tool_result` block",
    "https://github.com/AnswerDotAI/lisette/issues/108",
)
def server_call_without_result(request: Body) -> Iterator[Found]:
    """A call of the provider's tools keeps its result, unless the last turn was paused at it."""
    made = turns(request)
    last = made[-1][1] if made and made[-1][0] == "assistant" else []
    paused = {text(block.body.get("id")) for block in last}
    listed = list(blocks(request))
    answered = {text(block.body.get("tool_use_id")) for block in listed if block.type in SERVER_RESULTS}
    for block in listed:
        id_ = text(block.body.get("id"))
        if block.type == "server_tool_use" and id_ and id_ not in answered and id_ not in paused:
            yield found(f"messages.{block.at}", id_, at=block.at, name=text(block.body.get("name")))


@TABLE.rule(
    "messages: final assistant content cannot end with trailing whitespace",
    "https://github.com/tailcallhq/forgecode/issues/1872",
)
def trailing_whitespace(request: Body) -> Iterator[Found]:
    """The opening words of an answer end in a word."""
    made = turns(request)
    if made and made[-1][0] == "assistant" and made[-1][1] and made[-1][1][-1].type == "text":
        said = text(made[-1][1][-1].body.get("text"))
        if said.strip() and said != said.rstrip():
            yield found("messages")


@TABLE.rule(
    "This model does not support assistant message prefill. The conversation must end with a user message.",
    "https://github.com/ericc-ch/copilot-api/pull/261",
)
def ends_with_assistant(request: Body) -> Iterator[Found]:
    """Claude 4.6 and later continue no answer; a paused turn of a provider's tool may go on."""
    made = turns(request)
    if not made or made[-1][0] != "assistant" or not NO_PREFILL.match(model(request)):
        return
    if not any(block.type == "server_tool_use" for block in made[-1][1]):
        yield found("messages")


@TABLE.rule(
    "messages.{at}: The final block in an assistant message cannot be `thinking`.",
    "https://github.com/router-for-me/CLIProxyAPI/issues/5321",
)
def ends_with_thinking(request: Body) -> Iterator[Found]:
    """Of the last message only: measured so in the report."""
    made = turns(request)
    if made and made[-1][0] == "assistant" and made[-1][1] and made[-1][1][-1].type in THINKING:
        yield found(made[-1][1][-1].path, at=made[-1][1][-1].at)


def thinks(request: Body) -> bool:
    """Say whether the request turns thinking on."""
    return entry(request.get("thinking")).get("type") in ("enabled", "adaptive")


@TABLE.rule(
    "{where}: When thinking is disabled, an `assistant` message in the final position cannot contain "
    "`thinking`. To use thinking blocks, enable `thinking` in your request.",
    "https://github.com/tailcallhq/forgecode/issues/1853",
)
def thinking_disabled(request: Body) -> Iterator[Found]:
    """Thinking at the end needs the parameter."""
    made = turns(request)
    if made and made[-1][0] == "assistant" and not thinks(request):
        for block in made[-1][1]:
            if block.type in THINKING:
                yield found(block.path)


@TABLE.rule(
    "{where}.type: Expected `thinking` or `redacted_thinking`, but found `{about}`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
    "`tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
    "avoid this requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
    "https://github.com/Kilo-Org/kilocode/issues/5219",
)
def thinking_must_lead(request: Body) -> Iterator[Found]:
    """In a tool loop that goes on, the assistant's turn (up to the user's words) starts with thinking."""
    if entry(request.get("thinking")).get("type") != "enabled" or CHOOSES.search(model(request)):
        return
    made = turns(request)
    if not made or made[-1][0] != "user" or not any(block.type == "tool_result" for block in made[-1][1]):
        return
    start: list[Block] = []
    for role, own in reversed(made):
        if role == "assistant":
            start = own
        elif not any(block.type == "tool_result" for block in own):
            break
    if start and start[0].type not in THINKING:
        yield found(start[0].path, start[0].type)


@TABLE.rule(
    "{where}.thinking.signature: Field required", "https://github.com/lbjlaq/Antigravity-Manager/issues/1650"
)
def unsigned_thinking(request: Body) -> Iterator[Found]:
    """Thinking comes back as it was signed."""
    for block in blocks(request):
        if block.type == "thinking" and block.body.get("signature") is None:
            yield found(block.path)


def cached(request: Body) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and block of all that is marked for the cache, in the order they are read."""
    nested: list[tuple[str, Any]] = []
    nested += [(f"tools.{at}", tool) for at, tool in objects(request.get("tools"))]
    nested += [(f"system.{at}", part) for at, part in objects(request.get("system"))]
    for block in blocks(request):
        nested += [(f"{block.path}.content.{at}", part) for at, part in objects(block.body.get("content"))]
        nested.append((block.path, block.body))
    yield from ((path, body) for path, body in nested if isinstance(body.get("cache_control"), dict))


@TABLE.rule(
    "A maximum of 4 blocks with cache_control may be provided. Found {about}.",
    "https://github.com/tghamm/Anthropic.SDK/issues/50",
)
def too_many_cached(request: Body) -> Iterator[Found]:
    """Over tools, system and messages."""
    count = sum(1 for _ in cached(request))
    if count > MAX_CACHED:
        yield found("cache_control", count)


@TABLE.rule(
    "{where}.thinking.cache_control: Extra inputs are not permitted",
    "https://github.com/Wei-Shaw/sub2api/issues/225",
)
def cached_thinking(request: Body) -> Iterator[Found]:
    """Thinking cannot be marked."""
    yield from (found(path) for path, body in cached(request) if body.get("type") in THINKING)


@TABLE.rule(
    "{where}.text: cache_control cannot be set for empty text blocks",
    "https://github.com/askalf/dario/issues/1066",
)
def cached_nothing(request: Body) -> Iterator[Found]:
    """There is nothing to keep of an empty text."""
    for path, body in cached(request):
        if body.get("type") == "text" and body.get("text") == "":
            yield found(path)


@TABLE.rule(
    "{where}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
    "block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    "https://github.com/cnighswonger/claude-code-cache-fix/issues/44",
)
def longer_after_shorter(request: Body) -> Iterator[Found]:
    """What is kept longer stands first."""
    short = False
    for path, body in cached(request):
        long = body["cache_control"].get("ttl") == "1h"
        if long and short:
            yield found(path)
        short = short or not long


@TABLE.rule(
    '"thinking.type.{about}" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.',
    "https://github.com/lidge-jun/opencodex/pull/65",
)
def thinking_type(request: Body) -> Iterator[Found]:
    """Newer models choose for themselves, and the newest cannot be told not to think."""
    kind = text(entry(request.get("thinking")).get("type"))
    refused = {"enabled": CHOOSES, "disabled": ALWAYS}.get(kind)
    if refused is not None and refused.search(model(request)):
        yield found("thinking.type", kind)


ORIGIN = Table()
"""Rules that read `{"origin": ..., "request": ...}`: only the origin shows what thinking was made with."""


def unmarked(value: Any) -> Any:
    """Leave out marks for the cache, which are no part of what the model reads."""
    if isinstance(value, dict):
        return {key: unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [unmarked(one) for one in value] if isinstance(value, list) else value


def thoughts(beside: Any, messages: Any, thinking: Callable[[Any], bool]) -> Iterator[tuple[str, str]]:
    """Yield place and prefix of each block of thinking: all that stands before it, and itself."""
    before: list[Any] = [beside]
    for at, message in enumerate(items(messages)):
        own = items(entry(message).get("content"))
        for place, block in enumerate(own):
            if thinking(block):
                yield f"messages.{at}.content.{place}", json.dumps(unmarked([*before, own[: place + 1]]))
        before.append(message)


def checks_prefix(request: Body, thinking: Any, name: str) -> bool:
    """Say whether thinking is refused where something before it is another."""
    behavior = entry(entry(thinking).get("block_binding")).get("prefix_mismatch_behavior")
    return behavior != "drop_block" and (behavior == "error" or PRESERVES.search(name) is not None)


@ORIGIN.rule(
    "{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
    "https://github.com/anomalyco/opencode/issues/48637",
)
def bound_thinking(both: Body) -> Iterator[Found]:
    """System text, tools and every message before it are as they were."""
    origin, request = both["origin"], both["request"]
    if not checks_prefix(request, request.get("thinking"), model(request)):
        return
    beside = [request.get("system"), request.get("tools")]
    made = {prefix for _, prefix in thoughts(beside, origin.get("messages"), is_thinking)}
    for place, prefix in thoughts(beside, request.get("messages"), is_thinking):
        if prefix not in made:
            yield found(place)


def is_thinking(block: Any) -> bool:
    """Say whether a block is thinking."""
    return text(entry(block).get("type")) in THINKING
