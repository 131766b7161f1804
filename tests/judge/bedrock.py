"""Rules of Bedrock's Converse API, from its service model and the errors people reported.

Consecutive messages of one role are taken, and are one turn: theopenco/llmgateway#3127 measured it of Claude
Opus 4.8. But for results: all of one turn's stand in the one message behind it (agno-agi/agno#6698).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from tests.judge._rules import Body, Found, Table, entry, found, items, objects, once, text
from tests.judge.anthropic import ALWAYS, CHOOSES, checks_prefix, thoughts

TABLE = Table()

ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
MAX_POINTS = 4
KEYS = (
    *("text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint"),
    *("reasoningContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval"),
)
"""Members of the union `ContentBlock` in botocore's model of bedrock-runtime."""
REQUIRED = {
    "toolUse": ("toolUseId", "name", "input"),
    "toolResult": ("toolUseId", "content"),
    "image": ("format", "source"),
    "document": ("name", "source"),
    "cachePoint": ("type",),
}
BY_MODEL = ("toolUse", "reasoningContent", "citationsContent")
BY_USER = ("toolResult", "image", "document", "video", "audio", "guardContent", "searchResult")
NO_PREFILL = re.compile(r"claude-(opus|sonnet)-(4-[6-9]|[5-9])|claude-(fable|mythos)")
NO_MIX = re.compile(r"(^|\.)(meta|mistral|cohere)\.")


class Block(NamedTuple):
    """A block and where it stands."""

    at: int
    spot: int
    role: str
    key: str
    data: Any

    @property
    def path(self) -> str:
        """The place as the errors write it."""
        return f"messages.{self.at}.content.{self.spot}"

    @property
    def id(self) -> str:
        """The id of a call, or of the call that is answered."""
        return text(entry(self.data).get("toolUseId"))


@once
def messages(request: Body) -> list[tuple[int, dict[str, Any]]]:
    """Return the messages with their places."""
    return objects(request.get("messages"))


def set_in(block: dict[str, Any]) -> list[str]:
    """List the members of a union that are set."""
    return [key for key, value in block.items() if value is not None]


def blocks_of(at: int, message: dict[str, Any]) -> list[Block]:
    """Return the blocks of one message that are of one kind."""
    made = []
    for spot, block in objects(message.get("content")):
        held = set_in(block)
        if len(held) == 1 and held[0] in KEYS:
            made.append(Block(at, spot, text(message.get("role")), held[0], block[held[0]]))
    return made


@once
def spoken(request: Body) -> Iterator[tuple[int, dict[str, Any], list[Block]]]:
    """Yield the messages with their places and blocks."""
    for at, message in messages(request):
        yield at, message, blocks_of(at, message)


@once
def blocks(request: Body) -> list[Block]:
    """Return the blocks of all messages."""
    return [block for _, _, own in spoken(request) for block in own]


@once
def turns(request: Body) -> list[tuple[str, list[list[Block]]]]:
    """Return role and messages of the turns; a system message inside the conversation is in none."""
    made: list[tuple[str, list[list[Block]]]] = []
    for _, message, own in spoken(request):
        role = text(message.get("role"))
        if role == "system":
            continue
        if not made or made[-1][0] != role:
            made.append((role, []))
        made[-1][1].append(own)
    return made


def said(turn: list[list[Block]]) -> list[Block]:
    """Return what a turn holds beside marks."""
    return [block for own in turn for block in own if block.key != "cachePoint"]


def is_claude(request: Body) -> bool:
    """Say whether the model is Claude; without a name it may be."""
    named = text(request.get("modelId"))
    return not named or "claude" in named


def fields(request: Body) -> dict[str, Any]:
    """Return what is passed on to the model as it is."""
    return entry(request.get("additionalModelRequestFields"))


@TABLE.rule(
    "Value null at '{where}' failed to satisfy constraint: Member must not be null",
    "https://github.com/maximhq/bifrost/pull/6732",
)
def missing_member(request: Body) -> Iterator[Found]:
    """What the service model requires."""
    if request.get("messages") is None:
        yield found("messages", "messages")
    for at, message in messages(request):
        for key in ("role", "content"):
            if message.get(key) is None:
                yield found(f"messages.{at + 1}.member.{key}", key)
    for block in blocks(request):
        for key in REQUIRED.get(block.key, ()):
            if isinstance(block.data, dict) and block.data.get(key) is None:
                place = f"messages.{block.at + 1}.member.content.{block.spot + 1}.member"
                yield found(f"{place}.{block.key}.{key}", key)


@TABLE.rule(
    "The format of the value at {where} is invalid. Provide a json object for the field and try again.",
    "https://github.com/aws/aws-sdk-net/issues/3377",
)
def wrong_type(request: Body) -> Iterator[Found]:
    """A value of another JSON type; the input of a call is an object, not text."""
    if request.get("messages") is not None and not isinstance(request["messages"], list | tuple):
        yield found("messages", "messages")
    for at, message in enumerate(items(request.get("messages"))):
        content = entry(message).get("content")
        if not isinstance(message, dict):
            yield found(f"messages.{at}", "message")
        elif content is not None and not isinstance(content, list | tuple):
            yield found(f"messages.{at}.content", "content")
        for spot, block in enumerate(items(content)):
            if not isinstance(block, dict):
                yield found(f"messages.{at}.content.{spot}", "block")
    for block in blocks(request):
        if not isinstance(block.data, str if block.key == "text" else dict):
            yield found(f"{block.path}.{block.key}", block.key)
        given = entry(block.data).get("input")
        if block.key == "toolUse" and given is not None and not isinstance(given, dict):
            yield found(f"{block.path}.toolUse.input", "input")


@TABLE.rule(
    "messages: at least one message is required",
    "https://github.com/langchain-ai/langchain/pull/31696",
)
def no_messages(request: Body) -> Iterator[Found]:
    """Something to answer; the words are Claude's."""
    if isinstance(request.get("messages"), list | tuple) and not request["messages"]:
        yield found("messages")


@TABLE.rule(
    "A conversation must start with a user message. Try again with a conversation that starts with a user "
    "message.",
    "https://github.com/deepgram/deepgram-python-sdk/issues/760",
    elsewhere="other models than Claude 4.5 (billed: pydantic-ai's ..._starting_with_response)",
)
def first_role(request: Body) -> Iterator[Found]:
    """A conversation opens with the user."""
    listed = items(request.get("messages"))
    if listed and entry(listed[0]).get("role") in ("assistant", "system"):
        yield found("messages.0.role")


@TABLE.rule(
    "Value '{about}' at '{where}' failed to satisfy constraint: Member must satisfy enum value set: "
    "[user, assistant, system]",
    "https://github.com/boto/botocore (bedrock-runtime: ConversationRole)",
)
def unknown_role(request: Body) -> Iterator[Found]:
    """A role of nobody; system messages stand behind the user's (boto/boto3#4800)."""
    before = "user"
    for at, message in messages(request):
        role = text(message.get("role"))
        misplaced = role == "system" and before not in ("user", "system")
        if misplaced or (role and role not in ("user", "assistant", "system")):
            yield found(f"messages.{at + 1}.member.role", role)
        before = role


@TABLE.rule(
    "The content field in the Message object at {where} is empty. Add a ContentBlock object to the content "
    "field and try again.",
    "https://github.com/theopenco/llmgateway/pull/3127",
)
def empty_content(request: Body) -> Iterator[Found]:
    """Nobody says nothing."""
    for at, message in messages(request):
        if message.get("content") in ([], ()):
            yield found(f"messages.{at}", message.get("role"))


@TABLE.rule(
    "The text field in the ContentBlock object at {where} is blank. Add text to the text field, and try "
    "again.",
    "https://github.com/LibreChat-AI/agents/pull/501",
)
def empty_text(request: Body) -> Iterator[Found]:
    """A block of text has text."""
    yield from (found(block.path) for block in blocks(request) if block.key == "text" and block.data == "")


@TABLE.rule(
    "messages: text content blocks must be non-empty",
    "https://github.com/NousResearch/hermes-agent/issues/55092",
)
def empty_result_text(request: Body) -> Iterator[Found]:
    """So has a block of text in a result."""
    for block in blocks(request):
        for at, part in objects(entry(block.data).get("content")) if block.key == "toolResult" else ():
            if part.get("text") == "":
                yield found(f"{block.path}.toolResult.content.{at}")


@TABLE.rule(
    "messages: text content blocks must contain non-whitespace text",
    "https://github.com/NousResearch/hermes-agent/pull/67978",
)
def only_whitespace(request: Body) -> Iterator[Found]:
    """White space alone is no text."""
    for block in blocks(request):
        if block.key == "text" and isinstance(block.data, str) and block.data and not block.data.strip():
            yield found(block.path, block.role)


@TABLE.rule(
    "ContentBlock object at {where} can only set one of the following keys: {known}.",
    "https://github.com/envoyproxy/ai-gateway/pull/1717",
)
def union_of_one(request: Body) -> Iterator[Found]:
    """A block is of one kind, and of one the API knows."""
    for at, message in messages(request):
        for spot, block in objects(message.get("content")):
            held = set_in(block)
            if len(held) != 1 or held[0] not in KEYS:
                yield found(f"messages.{at}.content.{spot}", "+".join(held), known=", ".join(KEYS))


@TABLE.rule(
    "messages.{at}: `{about}` blocks can only be in `{role}` messages",
    "https://github.com/tghamm/Anthropic.SDK/issues/128",
)
def block_of_another_role(request: Body) -> Iterator[Found]:
    """The user gives results and media, the assistant calls and reasons."""
    for block in blocks(request):
        by_provider = block.key == "toolResult" and entry(block.data).get("type") is not None
        if block.role == "assistant" and block.key in BY_USER and not by_provider:
            yield found(block.path, block.key, at=block.at, role="user")
        elif block.role == "user" and block.key in BY_MODEL:
            yield found(block.path, block.key, at=block.at, role="assistant")


@TABLE.rule(
    "Value '{about}' at '{where}' failed to satisfy constraint: Member must satisfy regular expression "
    "pattern: [a-zA-Z0-9_.:-]+",
    "https://github.com/run-llama/llama_index/pull/22775",
)
def bad_id(request: Body) -> Iterator[Found]:
    """Ids of calls are at most 64 letters, digits, underscores, points, colons and hyphens."""
    for block in blocks(request):
        value = entry(block.data).get("toolUseId")
        if block.key in ("toolUse", "toolResult") and isinstance(value, str) and not ID.fullmatch(value):
            yield found(f"{block.path}.{block.key}.toolUseId", value)


@TABLE.rule(
    "The toolUse blocks at messages.{at}.content contain duplicate Ids: {about}",
    "https://github.com/BerriAI/litellm/pull/20049",
)
def repeated_call(request: Body) -> Iterator[Found]:
    """An id calls once in a turn."""
    for _, turn in turns(request):
        seen: set[str] = set()
        for block in said(turn):
            if block.key == "toolUse" and block.id and block.id in seen:
                yield found(block.path, block.id, at=block.at)
            seen.update({block.id} if block.key == "toolUse" else ())


class Exchange(NamedTuple):
    """Calls of a turn, and what the next turn answers."""

    calls: list[Block]
    answers: list[Block]
    """Results of the first message behind, in front of other content."""
    late: list[Block]
    """Results behind other content, or in another message."""


@once
def exchanges(request: Body) -> Iterator[Exchange]:
    """Yield the calls of each turn with the results of the next."""
    made = turns(request)
    nothing: tuple[str, list[list[Block]]] = ("", [])
    for (role, own), (behind, after) in zip([nothing, *made], [*made, nothing], strict=True):
        calls = [one for one in said(own) if one.key == "toolUse"] if role == "assistant" else []
        calls = [one for one in calls if entry(one.data).get("type") is None]
        first: list[Block] = []
        late: list[Block] = []
        others = False
        for number, message in enumerate(after if behind == "user" else ()):
            for block in message:
                others = others or block.key not in ("toolResult", "cachePoint")
                if block.key == "toolResult":
                    (late if others or number else first).append(block)
        yield Exchange(calls, first, late)


@TABLE.rule(
    "Expected toolResult blocks at messages.{at}.content for the following Ids: {about}",
    "https://github.com/agno-agi/agno/issues/6698",
)
def call_without_result(request: Body) -> Iterator[Found]:
    """Every call is answered in the next message, before any text of it (langchain-ai/langchain-aws#451)."""
    for calls, answers, _ in exchanges(request):
        answered = {block.id for block in answers}
        for block in calls:
            if block.id and block.id not in answered:
                yield found(f"messages.{block.at + 1}.content", block.id, at=block.at + 1)


@TABLE.rule(
    "The number of toolResult blocks at messages.{at}.content exceeds the number of toolUse blocks of "
    "previous turn.",
    "https://github.com/strands-agents/harness-sdk/issues/1435",
)
def result_without_call(request: Body) -> Iterator[Found]:
    """A result answers a call of the turn before."""
    for calls, answers, late in exchanges(request):
        called = {block.id for block in calls}
        for block in (*answers, *late):
            if block.id and block.id not in called:
                yield found(block.path, block.id, at=block.at)


@TABLE.rule(
    "The toolResult blocks at messages.{at}.content contain duplicate Ids: {about}",
    "https://github.com/BerriAI/litellm/issues/20047",
)
def repeated_result(request: Body) -> Iterator[Found]:
    """A call has one result."""
    for _, answers, late in exchanges(request):
        seen: set[str] = set()
        for block in (*answers, *late):
            if block.id and block.id in seen:
                yield found(block.path, block.id, at=block.at)
            seen.add(block.id)


@TABLE.rule(
    "The content field at {where} cannot be empty when status value is error.",
    "https://github.com/aws-samples/sample-multi-agent-orchestration-chat-on-agentcore/issues/15",
)
def empty_error(request: Body) -> Iterator[Found]:
    """A failed call says why."""
    for block in blocks(request):
        data = entry(block.data)
        if block.key == "toolResult" and data.get("status") == "error" and data.get("content") in ([], ()):
            yield found(f"{block.path}.toolResult", block.id)


@TABLE.rule(
    "A text block must be included when using documents.",
    "https://github.com/archestra-ai/archestra/pull/4220",
)
def document_alone(request: Body) -> Iterator[Found]:
    """Somebody says what a document is for."""
    for at, message, own in spoken(request):
        held = {block.key for block in own}
        if message.get("role") == "user" and "document" in held and "text" not in held:
            yield found(f"messages.{at}")


@TABLE.rule(
    "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    "https://github.com/nearai/ironclaw/issues/1629",
)
def no_tool_config(request: Body) -> Iterator[Found]:
    """Who shows calls has tools."""
    listed = items(entry(request.get("toolConfig")).get("tools"))
    if not listed and any(block.key in ("toolUse", "toolResult") for block in blocks(request)):
        yield found("toolConfig")


@TABLE.rule(
    "messages.{at}.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
    "https://github.com/strands-agents/harness-sdk/issues/1223",
)
def mixed_turn(request: Body) -> Iterator[Found]:
    """Llama, Mistral and Command take results alone; messages of the user's in a row are one turn."""
    for role, turn in turns(request) if NO_MIX.search(text(request.get("modelId"))) else ():
        held: set[str] = set()
        for own in turn if role == "user" else ():
            held |= {block.key for block in own} - {"cachePoint"}
            if own and "toolResult" in held and len(held) > 1:
                yield found(f"messages.{own[0].at}", at=own[0].at)


@TABLE.rule(
    "The model returned the following errors: This model does not support assistant message prefill. The "
    "conversation must end with a user message.",
    "https://github.com/NousResearch/hermes-agent/pull/101401",
)
def ends_with_assistant(request: Body) -> Iterator[Found]:
    """Claude 4.6 and later continue no answer."""
    made = turns(request)
    if made and made[-1][0] == "assistant" and NO_PREFILL.search(text(request.get("modelId"))):
        yield found("messages")


@TABLE.rule(
    "The model returned the following errors: messages: final assistant content cannot end with trailing "
    "whitespace",
    "https://github.com/tailcallhq/forgecode/issues/1872",
)
def trailing_whitespace(request: Body) -> Iterator[Found]:
    """The opening words of an answer end in a word."""
    made = turns(request)
    last = said(made[-1][1])[-1:] if made and made[-1][0] == "assistant" and is_claude(request) else []
    for block in last:
        if block.key == "text" and text(block.data).strip() and block.data != block.data.rstrip():
            yield found("messages")


@TABLE.rule(
    "If an assistant message contains any thinking blocks, the first block must be thinking. Found {about}",
    "https://github.com/aws/bedrock-agentcore-sdk-python/issues/416",
)
def thinking_first(request: Body) -> Iterator[Found]:
    """Reasoning opens the message it is in."""
    for _, message, own in spoken(request):
        held = [one for one in own if one.key != "cachePoint"]
        if message.get("role") != "assistant" or not any(one.key == "reasoningContent" for one in held):
            continue
        if held[0].key != "reasoningContent":
            yield found(held[0].path, held[0].key)


@TABLE.rule(
    "{where}.type: Expected `thinking` or `redacted_thinking`, but found `{about}`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block.",
    "https://github.com/RooCodeInc/Roo-Code/pull/11238",
)
def thinking_must_lead(request: Body) -> Iterator[Found]:
    """In a tool loop that goes on, the assistant's turn (up to the user's words) starts with reasoning."""
    if entry(fields(request).get("thinking")).get("type") != "enabled" or not is_claude(request):
        return
    if CHOOSES.search(text(request.get("modelId"))):
        return
    made = [(role, said(turn)) for role, turn in turns(request)]
    if not made or made[-1][0] != "user" or not any(block.key == "toolResult" for block in made[-1][1]):
        return
    start: list[Block] = []
    for role, own in reversed(made):
        if role == "assistant":
            start = own
        elif not any(block.key == "toolResult" for block in own):
            break
    if start and start[0].key != "reasoningContent":
        yield found(start[0].path, start[0].key)


def points(request: Body) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and content of all cache points, in the order they are read."""
    config = entry(request.get("toolConfig"))
    for path, listed in (("toolConfig.tools", config.get("tools")), ("system", request.get("system"))):
        yield from (
            (f"{path}.{at}", one["cachePoint"]) for at, one in objects(listed) if entry(one.get("cachePoint"))
        )
    for block in blocks(request):
        if block.key == "cachePoint":
            yield block.path, entry(block.data)


@TABLE.rule(
    "A maximum of 4 blocks with cache_control may be provided. Found {count}.",
    "https://github.com/maximhq/bifrost/pull/5931",
)
def too_many_points(request: Body) -> Iterator[Found]:
    """Over tools, system and messages. It is about marks, however many: fewer of too many are nothing new."""
    count = sum(1 for _ in points(request))
    if count > MAX_POINTS:
        yield found("cachePoint", "cachePoint", count=count)


@TABLE.rule(
    "Cache point cannot be inserted after reasoning block. Please remove the invalid cache point and try "
    "again.",
    "https://github.com/anomalyco/opencode/issues/36517",
)
def point_after_reasoning(request: Body) -> Iterator[Found]:
    """Reasoning cannot be marked."""
    for _, _, own in spoken(request):
        for before, block in pairwise(own):
            if block.key == "cachePoint" and before.key == "reasoningContent":
                yield found(block.path)


@TABLE.rule(
    "a message of nothing but a cache point, or with one in front",
    "https://github.com/zed-industries/zed/pull/59436",
)
def point_alone(request: Body) -> Iterator[Found]:
    """There is nothing to keep; the report has no words of this."""
    for _, _, own in spoken(request):
        if own and own[0].key == "cachePoint":
            yield found(own[0].path)


@TABLE.rule(
    "The model returned the following errors: {where}.cache_control.ttl: a ttl='1h' cache_control block must "
    "not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: "
    "`tools`, `system`, `messages`.",
    "https://github.com/Portkey-AI/gateway/issues/1762",
)
def longer_after_shorter(request: Body) -> Iterator[Found]:
    """What is kept longer stands first."""
    short = False
    for path, point in points(request):
        long = point.get("ttl") == "1h"
        if long and short:
            yield found(path)
        short = short or not long


@TABLE.rule(
    'The model returned the following errors: "thinking.type.{about}" is not supported for this model. Use '
    '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    "https://github.com/openclaw/openclaw/issues/117871",
)
def thinking_type(request: Body) -> Iterator[Found]:
    """As in the models' own API."""
    kind = text(entry(fields(request).get("thinking")).get("type"))
    refused = {"enabled": CHOOSES, "disabled": ALWAYS}.get(kind)
    if refused is not None and refused.search(text(request.get("modelId"))):
        yield found("thinking.type", kind)


ORIGIN = Table()
"""Rules that read `{"origin": ..., "request": ...}`, as for the models' own API."""


@ORIGIN.rule(
    "The model returned the following errors: {where}: Invalid `signature` in `thinking` block. The block is "
    "bound to a different conversation.",
    "https://github.com/anomalyco/opencode/issues/48637",
)
def bound_thinking(both: Body) -> Iterator[Found]:
    """System text, tools and every message before it are as they were."""
    origin, request = both["origin"], both["request"]
    if not checks_prefix(request, fields(request).get("thinking"), text(request.get("modelId"))):
        return
    beside = [request.get("system"), request.get("toolConfig")]
    made = {prefix for _, prefix in thoughts(beside, origin.get("messages"), is_thinking)}
    for place, prefix in thoughts(beside, request.get("messages"), is_thinking):
        if prefix not in made:
            yield found(place)


def is_thinking(block: Any) -> bool:
    """Say whether a block is reasoning."""
    return "reasoningContent" in entry(block)
