"""The wire form of Anthropic's Messages API: system text apart, content as typed blocks.

Read in place: message dicts and the `anthropic` package's own objects, whole messages or blocks in dicts.
Results are blocks of a user message, several to a message; thinking is signed and never edited; tools the
provider runs have their call and result in one turn of the model; a compaction block stands for all that was
before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from operator import itemgetter
from typing import Any

from trimtab.formats.anthropic.edit import (
    redacted_of,
    thinking_of,
    with_allowed_thinking,
    without_thinking,
)
from trimtab.formats.anthropic.faults import ANYWHERE, SYSTEM_FIRST, faults_of, lets_model_lead
from trimtab.formats.anthropic.mend import mended_of
from trimtab.formats.anthropic.read import (
    CALLS,
    THINKING,
    Scan,
    blocks_of,
    calls_in,
    compacts,
    ends_in_server_result,
    is_directive,
    is_server_result,
    kind_of,
    origins_of,
    pieces_of,
    plain_words,
    result_id_of,
    step_of,
    texts_of,
    type_of,
    unsure_in,
)
from trimtab.formats.anthropic.walk import Walk
from trimtab.formats.base import Format, Pieces, Prices, Request, Rules, TextSlot, named_in, output_schema
from trimtab.formats.origin import Origins
from trimtab.formats.refusal import Fault
from trimtab.formats.structure import Kind, Step, Structure, Thinking, lacks_thinking, told_by
from trimtab.formats.values import (
    Dict,
    Path,
    as_dict,
    as_list,
    compact_json,
    content_of,
    item_of,
    mapping_of,
    text_part,
    with_values,
    without_emptied,
)

# What the API answers, status 400. The first two as quoted in anthropics/claude-code#64383, #18947 and
# #1237, the third in openai-agents' and artiik's test fixtures and vercel's production logs of it.
_UNANSWERED = (
    "`tool_use` ids were found without `tool_result` blocks immediately after: {call_id}. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message."
)
_ORPHAN = (
    "unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each `tool_result` block must have "
    "a corresponding `tool_use` block in the previous message."
)
_REPEATED = "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call_id}"

# lobehub/lobehub#1601. Since 2026 some models take a first message of the model's; none refuses a user's.
_FIRST = 'messages: first message must use the "user" role'
# As returned by claude-opus-5-5 on 2026-10-06 and by all current models on 2026-09-10.
_SYSTEM_AFTER = (
    "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result"
    + ANYWHERE
)
_SYSTEM_BEFORE = "role 'system' must precede an 'assistant' message or end the array" + ANYWHERE

_ONLY_HERE = frozenset(
    {
        *THINKING,
        *CALLS,
        "tool_result",
        "mcp_tool_result",
        "web_search_tool_result",
        "container_upload",
        "compaction",
        "search_result",
    }
)
_content_of, _type_of = itemgetter("content"), itemgetter("type")
_BODY_MARKS = frozenset({"system", "stop_sequences", "output_config", "mcp_servers", "anthropic_version"})
_UNMARKED = THINKING | {"fallback", "mcp_tool_listing"}
"""Blocks that cannot carry `cache_control`."""


class Anthropic(Format):
    """Messages and request bodies of the Messages API."""

    name = "anthropic"
    title = "Messages"
    rules = Rules(
        system_in_messages=False,
        lifts_system=True,
        results_lead=True,
        ordered=True,
        keeps_messages=True,
        body_marks=_BODY_MARKS,
        mark_keys=("cache_control",),
        orphan_result=_ORPHAN,
        unanswered_call=_UNANSWERED,
        late_result=_UNANSWERED,
        repeated_result=_REPEATED,
    )

    def kind(self, message: Dict, /) -> Kind:
        return kind_of(message)

    def origins(self, message: Dict, /) -> Origins:
        return origins_of(message)

    def latest_compaction(self, messages: Sequence[Any], /) -> int:
        try:  # this runs over all messages, nearly always in vain: in C, but for the texts among contents
            contents = [content for content in map(_content_of, messages) if type(content) is not str]
            if "compaction" not in map(_type_of, chain.from_iterable(contents)):
                return -1
        except (KeyError, TypeError):
            pass  # one is an object, or has no such key
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            content = message.get("content") if message.__class__ is dict else item_of(message, "content")
            if content.__class__ is str:
                continue
            for block in as_list(content) or ():
                # Nearly every block is a dict of another type: asked first, as this runs over all messages.
                if (block.__class__ is not dict or block.get("type") == "compaction") and compacts(block):
                    return index
        return -1

    def unread(self, messages: Sequence[Any], /, *, compaction: int | None = None) -> range:
        at = self.latest_compaction(messages) if compaction is None else compaction
        if at <= 0 or kind_of(mapping_of(messages[at])) != "assistant":
            return range(0)
        # system text in front is no part of what it stands for
        head = takewhile(lambda message: kind_of(mapping_of(message)) == "system", messages)
        return range(min(at, sum(1 for _ in head)), at)

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        Scan(messages, structure).read(start, stop)

    def count_back(
        self,
        messages: list[Any],
        span: range,
        room_tokens: int,
        sizes: list[int | None],
        structure: Structure,
        prices: Prices,
        /,
    ) -> int:
        return Walk(messages, structure, prices, self.is_foreign).back(span, room_tokens, sizes)

    def order_fault(self, previous: Dict | None, message: Dict, /, *, parted: bool = False) -> str | None:
        """Require a user message first, and check the places of system messages.

        A message that begins with a compaction block stays in front, whoever its author is, but is not moved
        there: the block replaces what was before it, but no source says that the API accepts it first.
        """
        role = message.get("role")
        if role == "user" and (previous is None or previous.get("role") != "system"):
            return None  # as it is nearly always
        if is_directive(message) or (previous is not None and is_directive(previous)):
            return None
        if previous is None:
            if role == "system":
                return SYSTEM_FIRST
            opens = role == "user" or (
                not parted and (lets_model_lead(self.model) or any(map(compacts, blocks_of(message)[:1])))
            )
            return None if opens else _FIRST
        if role == "system":
            follows = previous.get("role") in ("user", "system") or ends_in_server_result(previous)
            return None if follows else _SYSTEM_AFTER
        if previous.get("role") == "system" and role != "assistant":
            return _SYSTEM_BEFORE
        return None

    def thinking_rules(self, model: str | None, body: Mapping[str, Any] | None, /) -> Thinking:
        """Say what a model requires of thinking; without a body it may be on."""
        return thinking_of(model, None if body is None else body.get("thinking") or {})

    def without_thinking(self, message: Any, /) -> Any | None:
        return without_thinking(message)

    def turn_step(self, message: Dict, /) -> Step:
        return step_of(message)

    def texts(self, message: Dict, /) -> list[TextSlot]:
        """List text, results, plain-text documents and search results.

        A message with thinking has none.
        """
        return list(texts_of(message))

    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        """Return a shallow copy of the caller's message with those texts replaced.

        A block of a result without any remaining text is removed: the API refuses an empty one.
        """
        return without_emptied(with_values(message, texts), texts, at=3)

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        """Return a shallow copy without those calls.

        A call by the provider itself that has its result here is kept. Only another call with the same id is
        removed. Thinking at the end of the message is removed too: the API does not accept it there. Returns
        None if nothing remains.
        """
        blocks = blocks_of(message)
        answered = {result_id_of(block) for block in blocks if is_server_result(type_of(block))}
        gone = {
            at
            for at, call_id in calls_in(message)
            if call_id in call_ids and (type_of(blocks[at]) == "tool_use" or call_id not in answered)
        }
        if not gone:
            return message
        left = [at for at in range(len(blocks)) if at not in gone]
        while left and type_of(blocks[left[-1]]) in THINKING:
            gone.add(left.pop())
        return self.without_parts(message, sorted(gone)) if left else None

    def join_results(self, message: Any, other: Any, /) -> Any:
        blocks, added = blocks_of(message), blocks_of(other)
        end = 1 + max((at for at, block in enumerate(blocks) if type_of(block) == "tool_result"), default=-1)
        return with_values(message, {("content",): [*blocks[:end], *added, *blocks[end:]]})

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        blocks = blocks_of(message)
        return {call_id: str(item_of(blocks[at], "name") or "") for at, call_id in calls_in(message)}

    def pieces(self, message: Dict, /) -> Pieces:
        return pieces_of(message, self.write_json)

    def full_text(self, message: Dict, /) -> str:
        try:
            return plain_words(message)
        except (KeyError, TypeError):
            return super().full_text(message)

    def faults(self, messages: list[Any], request: Request | None = None, /) -> list[Fault]:
        return faults_of(messages, request, model=self._model_of(request))

    def mend(self, message: Dict, /) -> Dict | None:
        return mended_of(message)

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Take a request body apart.

        `extra` has an output schema, in Chat's shape, and the settings for how much of a prompt the provider
        adds.
        """
        return replace(
            super().read_request(body),
            extra={**_output_schema(body), **_settings(body)},
            unseen=named_in(body, _UNSEEN),
            unsure=unsure_in(body),
        )

    def write_request(self, request: Request, messages: list[Any], /) -> Any:
        """Put messages back; drops the last turn's thinking if thinking is disabled."""
        body = request.body
        if body is None:
            return messages
        if request.system is not body.get("system") and not isinstance(request.system, str | None):
            request = replace(request, system=_system_blocks(request.system))
        return super().write_request(request, with_allowed_thinking(body.get("thinking"), messages))

    @told_by()
    def matches(self, message: Dict, /) -> bool:
        return message.get("content").__class__ is not str and any(
            (kind in _ONLY_HERE and as_list(item_of(block, "thinking")) is None)  # Mistral's is a list
            or (kind in ("image", "document") and item_of(block, "source") is not None)
            for block in blocks_of(message)
            if (kind := type_of(block)) is not None
        )

    def message(self, role: str, parts: Sequence[Any], /) -> Dict:
        """Make a message from texts and ready-made blocks.

        A role that the API lacks becomes the user's. A message of the role "system" is for the front of a
        request; `lift_system` moves its text.
        """
        return {"role": _role(role), "content": content_of(parts, text_part)}

    def with_role(self, message: Any, role: str, /) -> Any:
        """Return a shallow copy of the caller's message with another role."""
        return with_values(message, {("role",): _role(role)})

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Return a shallow copy whose last block carries `cache_control`.

        It is the last block that can carry it: thinking and empty text cannot. A message without such a block
        is returned unchanged.
        """
        content, blocks = item_of(message, "content"), blocks_of(message)
        if isinstance(content, str) and content.strip():
            return with_values(message, {("content",): [{**text_part(content), "cache_control": value}]})
        for at in range(len(blocks) - 1, -1, -1):
            block = as_dict(blocks[at])
            if block is not None and type_of(block) not in _UNMARKED and block.get("text") != "":
                return with_values(message, {("content", at): {**block, "cache_control": value}})
        return message

    def mark_last(self, parts: Any, value: Any, /) -> Any:
        """Return system text or tools whose last part carries `cache_control`.

        It is the last one that can carry it: empty text and tools with deferred loading cannot.
        """
        blocks = _system_blocks(parts)
        for at in range(len(blocks) - 1, -1, -1):
            block = as_dict(blocks[at])
            blank = block is None or not str(block.get("text", "-")).strip()
            if block is not None and not blank and not block.get("defer_loading"):
                return [*blocks[:at], {**block, "cache_control": value}, *blocks[at + 1 :]]
        return parts

    def lift_system(self, messages: Sequence[Any], system: Any, /) -> Any:
        """Return system text with the text of system messages after it.

        It is a list of blocks if any part of it is.
        """
        said = [mapping_of(message).get("content") or "" for message in messages]
        given = [] if system is None else [system]
        if all(isinstance(one, str) for one in (*given, *said)):
            return "\n\n".join(filter(None, (*given, *said)))
        return [block for one in (*given, *said) for block in _system_blocks(one)]

    def forget_thinking(
        self, body: Mapping[str, Any], known: Collection[str] | None = None, /
    ) -> Dict | None:
        """Remove it; if a turn in progress loses its thinking, `thinking` is switched off.

        "When `thinking` is enabled, a final `assistant` message must start with a thinking block."
        """
        made = super().forget_thinking(body, known)
        if made is None or item_of(body.get("thinking"), "type") != "enabled":
            return made
        return (
            {**made, "thinking": {"type": "disabled"}} if lacks_thinking(made["messages"], step_of) else made
        )

    def redact(self, message: Dict, /) -> Dict:
        return redacted_of(message)

    def tool_schema(self, name: str, /, *, description: str, parameters: Dict) -> Dict:
        return {"name": name, "description": description, "input_schema": parameters}

    def transcript(self, message: Dict, /) -> str:
        """Write a message as `ROLE: text`, after its results and before calls as JSON."""
        slots = list(texts_of(message, whole=True))
        lines: list[str] = []
        calls: list[Dict] = []
        for at, block in enumerate(blocks_of(message)):
            if type_of(block) == "tool_result":
                told = "\n".join(slot.text for slot in slots if slot.path[1:2] == (at,))
                lines.append(f"TOOL({result_id_of(block)}): {told}")
            elif type_of(block) in CALLS:
                calls.append({key: item_of(block, key) for key in ("id", "name", "input")})
        said = [slot.text for slot in slots if not slot.is_result]
        if calls:
            said.append(f"[tool_calls] {compact_json(calls)}")
        if said or not lines:
            role = str(message.get("role") or "unknown").upper()
            lines.append(f"{role}: " + "\n".join(said))
        return "\n".join(lines)


def _role(role: str) -> str:
    if role in ("system", "developer"):
        return "system"
    return role if role == "assistant" else "user"


def _system_blocks(system: Any) -> list[Any]:
    parts = as_list(system)
    parts = (system,) if parts is None else parts
    return [text_part(part) if isinstance(part, str) else part for part in parts if part]


def _output_schema(body: Mapping[str, Any]) -> dict[str, Any]:
    form = as_dict(item_of(body.get("output_config"), "format")) or as_dict(body.get("output_format")) or {}
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), Mapping):
        return {}
    return output_schema({"schema": form["schema"]})


def _settings(body: Mapping[str, Any]) -> Dict:
    charged = {key: body[key] for key in ("tool_choice", "thinking") if body.get(key)}
    budget = item_of(body.get("output_config"), "task_budget")
    return {**charged, "task_budget": budget} if budget else charged


_UNSEEN = {
    "mcp_servers": "the tools of MCP servers (mcp_servers)",
    "container": "the container that the provider runs, and its skills (container)",
}
