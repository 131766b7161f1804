"""Bedrock's Converse API: one form for models of many makers, with blocks that are named by their one key.

Read in place: the dicts that boto3 takes and returns. What belongs together is as in Anthropic's messages:
results are blocks of the user's message, reasoning is signed and never edited. System text and tools stand
apart. A prefix for the cache ends at a block of its own, which goes where what is in front of it goes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from trimtab.formats.anthropic.edit import thinking_of
from trimtab.formats.anthropic.faults import lets_model_lead
from trimtab.formats.anthropic.read import (
    Scan,
    calls_in,
    is_server_result,
    origins_of,
    result_id_of,
    step_of,
    type_of,
)
from trimtab.formats.base import MOST_MARKS, Format, Pieces, Prices, Request, Rules, TextSlot
from trimtab.formats.bedrock.edit import (
    blocks_of_system,
    cache_point,
    read_body,
    redacted_of,
    with_point,
    with_tidy_points,
    without_thoughts,
    write_body,
)
from trimtab.formats.bedrock.faults import SYSTEM_FIRST, faults_of
from trimtab.formats.bedrock.mend import mended_of
from trimtab.formats.bedrock.read import (
    BLOCKS,
    CACHE_POINT,
    CALL,
    RESULT,
    THOUGHT,
    Views,
    blocks_of,
    is_cache_point,
    key_of,
    kind_of,
    pieces_of,
    places_of,
    plain_words,
    texts_of,
    view_of,
)
from trimtab.formats.bedrock.read import result_id_of as id_of_result
from trimtab.formats.bedrock.walk import Walk
from trimtab.formats.origin import Origins
from trimtab.formats.refusal import Fault
from trimtab.formats.structure import Kind, Step, Structure, Thinking, lacks_thinking, told_by
from trimtab.formats.values import (
    Dict,
    Path,
    as_dict,
    as_list,
    compact_json,
    item_of,
    mapping_of,
    with_values,
    without_emptied,
)

# ValidationException, as quoted in agno-agi/agno#6698, Just-Curieous/Curie#16 and BerriAI/litellm#20047.
_UNANSWERED = "Expected toolResult blocks in the next message for the following Ids: {call_id}"
_ORPHAN = (
    "The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of "
    "previous turn."
)
_REPEATED = "The toolResult blocks at messages.{index}.content contain duplicate Ids: {call_id}"
# Quoted in deepgram/deepgram-python-sdk#760 (2026-08), of Nova and Claude.
_FIRST = (
    "A conversation must start with a user message. Try again with a conversation that starts with a user "
    "message."
)
_SYSTEM_AFTER = "role 'system' must follow a 'user' message"
_SYSTEM_BEFORE = "role 'system' must precede an 'assistant' message or end the array"

_BODY_MARKS = frozenset(
    {
        *(
            "system",
            "modelId",
            "toolConfig",
            "inferenceConfig",
            "additionalModelRequestFields",
            "guardrailConfig",
        ),
        *("additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig", "outputConfig"),
    }
)
_CACHES = re.compile(r"claude|nova|:(?:application-)?inference-profile/[a-z0-9]+$")
"""Models whose prompts are cached at cache points ("Prompt caching" in Bedrock's user guide, 2026-11); others
refuse them (Boise-State-Development/agentcore-public-stack#1064). A profile does not tell its model."""

_MEDIA = ("image", "document", "video", "audio")
_ONLY_HERE = frozenset(BLOCKS) - {"text", *_MEDIA}


class Bedrock(Format):
    """Messages and request bodies of Bedrock's Converse API."""

    name = "bedrock"
    title = "Converse"
    rules = Rules(
        system_in_messages=False,
        lifts_system=True,
        results_lead=True,
        results_in_one=True,
        ordered=True,
        parts_listed=True,
        body_marks=_BODY_MARKS,
        mark_keys=(CACHE_POINT,),
        orphan_result=_ORPHAN,
        unanswered_call=_UNANSWERED,
        late_result=_UNANSWERED,
        repeated_result=_REPEATED,
    )

    def kind(self, message: Dict, /) -> Kind:
        return kind_of(message)

    def origins(self, message: Dict, /) -> Origins:
        return origins_of(view_of(message))

    def scan(self, messages: list[object], start: int, stop: int, structure: Structure, /) -> None:
        """Read messages as Anthropic's reader does, except those without content."""
        Scan(Views(messages, structure), structure).read(start, stop)
        for index in range(start, stop):
            answers = structure.answers.get(index)
            if answers is None:
                continue
            places = places_of(messages[index])
            if len(places) == len(blocks_of(messages[index])):
                continue
            structure.answers[index] = tuple(
                [(call_id, None if part is None else places[part]) for call_id, part in answers]
            )
            if index in structure.loose:
                structure.loose[index] = tuple([places[part] for part in structure.loose[index]])

    def count_back(
        self,
        messages: list[object],
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

        Neighbors of one role are accepted as one turn: measured with Claude Opus 4.8 in
        theopenco/llmgateway#3127 (2026-07). Reports that roles must alternate are from 2024 and 2025, and
        about older models. Words after results open a turn, as in Anthropic's form, which serves the same
        models (design/014).
        """
        role = message.get("role")
        if previous is None:
            leads = role == "user" or (role == "assistant" and not parted and lets_model_lead(self.model))
            return None if leads else SYSTEM_FIRST if role == "system" else _FIRST
        if role == "system":
            return None if previous.get("role") in ("user", "system") else _SYSTEM_AFTER
        return _SYSTEM_BEFORE if previous.get("role") == "system" and role != "assistant" else None

    def thinking_rules(self, model: str | None, body: Mapping[str, object] | None, /) -> Thinking:
        """Say what a Claude model requires of reasoning, as Anthropic's form does."""
        fields = None if body is None else body.get("additionalModelRequestFields")
        return thinking_of(model, None if body is None else item_of(fields, "thinking") or {})

    def without_thinking(self, message: object, /) -> object | None:
        return without_thoughts(message)

    def turn_step(self, message: Dict, /) -> Step:
        return step_of(view_of(message))

    def texts(self, message: Dict, /) -> list[TextSlot]:
        """List text, results (also inside JSON), and plain-text documents.

        Search results are included. A message of the model with reasoning has none.
        """
        return list(texts_of(message))

    def with_texts(self, message: object, texts: Mapping[Path, str], /) -> object:
        """Return a shallow copy of the caller's message with those texts replaced.

        A block of a result without any remaining text is removed: the API refuses an empty one.
        """
        return without_emptied(with_values(message, texts), texts, at=4)

    def without_parts(self, message: object, parts: Sequence[int], /) -> object:
        """Return a shallow copy without those blocks and the cache points behind them.

        A point is therefore kept in only one of the two copies that a repair makes of a message.
        """
        gone = set(parts)
        for at, block in enumerate(blocks_of(message)):
            if at - 1 in gone and is_cache_point(block):
                gone.add(at)
        return super().without_parts(message, sorted(gone))

    def without_calls(self, message: object, call_ids: frozenset[str], /) -> object | None:
        """Return a shallow copy without those calls.

        A call by the provider itself that has its result here is kept. Reasoning at the end of the message is
        removed too. Returns None if nothing remains.
        """
        shown, places = view_of(message), places_of(message)
        blocks = shown["content"]
        answered = {result_id_of(block) for block in blocks if is_server_result(type_of(block))}
        gone = {
            places[at]
            for at, call_id in calls_in(shown)
            if call_id in call_ids and (type_of(blocks[at]) == "tool_use" or call_id not in answered)
        }
        if not gone:
            return message
        listed = blocks_of(message)
        left = [at for at in places if at not in gone]
        while left and key_of(listed[left[-1]]) == THOUGHT:
            gone.add(left.pop())
        return self.without_parts(message, sorted(gone)) if left else None

    def join_results(self, message: object, other: object, /) -> object:
        blocks, added = blocks_of(message), blocks_of(other)
        end = 1 + max((at for at, block in enumerate(blocks) if key_of(block) == RESULT), default=-1)
        return with_values(message, {("content",): with_tidy_points([*blocks[:end], *added, *blocks[end:]])})

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        blocks, places = blocks_of(message), places_of(message)
        return {
            call_id: str(item_of(item_of(blocks[places[at]], CALL), "name") or "")
            for at, call_id in calls_in(view_of(message))
        }

    def pieces(self, message: Dict, /) -> Pieces:
        return pieces_of(message, self.write_json)

    def full_text(self, message: Dict, /) -> str:
        try:
            return plain_words(message)
        except (AttributeError, KeyError, TypeError, ValueError):
            return super().full_text(message)

    def faults(self, messages: list[Dict], request: Request | None = None, /) -> list[Fault]:
        return faults_of(messages, request, model=self._model_of(request))

    def mend(self, message: Dict, /) -> Dict | None:
        return mended_of(message)

    def read_request(self, body: Mapping[str, object], /) -> Request:
        """Take a request body apart: the keyword arguments of boto3's `converse`."""
        return read_body(body, super().read_request(body))

    def write_request(self, request: Request, messages: list[object], /) -> object:
        """Put messages back; drops the last turn's reasoning if it is disabled."""
        return write_body(request, messages)

    @told_by()
    def matches(self, message: Dict, /) -> bool:
        """Tell whether a message has a block of this API: a key, but no type.

        A text does not decide: other libraries write it without a type, too.
        """
        content = message.get("content")
        return content.__class__ is not str and any(
            block.__class__ is dict and "type" not in block and _is_own(block)
            for block in as_list(content) or ()
        )

    def message(self, role: str, parts: Sequence[object], /) -> Dict:
        """Make a message from texts and blocks; an unknown role becomes the user's."""
        made = [{"text": part} if isinstance(part, str) else part for part in parts]
        return {"role": _role(role), "content": made}

    def with_role(self, message: object, role: str, /) -> object:
        """Return a shallow copy of the caller's message with another role."""
        return with_values(message, {("role",): _role(role)})

    def with_text(self, message: object, text: str, /) -> object:
        """Return a shallow copy of the caller's message with one text as content."""
        return with_values(message, {("content",): [{"text": text}]})

    def with_cache_control(self, message: object, value: object, /) -> object:
        """Return a shallow copy with a cache point.

        The point follows the last block that may have one: reasoning and blank text may not. A message
        without such a block is returned unchanged.
        """
        marked = with_point(blocks_of(message), value)
        return message if marked is None else with_values(message, {("content",): marked})

    def mark_last(self, parts: object, value: object, /) -> object:
        """Return system text with a cache point at its end.

        Tools are returned unchanged: Nova models accept no cache point there.
        """
        blocks = blocks_of_system(parts)
        if not blocks or not all("text" in (as_dict(block) or {}) for block in blocks[-1:]):
            return parts
        return [*blocks, cache_point(value)]

    def most_marks(self, model: str | None, /) -> int:
        """Return the maximum number of cache points in a request."""
        return MOST_MARKS if model is None or _CACHES.search(model) else 0

    def cache_marks(self, value: object, /) -> list[object]:
        listed = blocks_of(value) if as_dict(value) is not None else as_list(value) or ()
        return [item_of(block, CACHE_POINT) for block in listed if is_cache_point(block)]

    def lift_system(self, messages: Sequence[object], system: object, /) -> object:
        """Return system text with the text of system messages after it, as blocks."""
        if not messages and (system is None or isinstance(system, str)):
            return system
        return [*blocks_of_system(system), *(one for said in messages for one in blocks_of_system(said))]

    def forget_thinking(
        self, body: Mapping[str, object], known: Collection[str] | None = None, /
    ) -> Dict | None:
        """Remove it; if a turn in progress loses its thinking, `thinking` is switched off."""
        made, fields = super().forget_thinking(body, known), body.get("additionalModelRequestFields")
        if made is None or item_of(item_of(fields, "thinking"), "type") != "enabled":
            return made
        if not lacks_thinking(made["messages"], lambda message: step_of(view_of(mapping_of(message)))):
            return made
        settings = with_values(fields, {("thinking",): {"type": "disabled"}})
        return {**made, "additionalModelRequestFields": settings}

    def redact(self, message: Dict, /) -> Dict:
        return redacted_of(message)

    def tool_schema(self, name: str, /, *, description: str, parameters: Dict) -> Dict:
        spec: Dict = {"name": name, "description": description, "inputSchema": {"json": parameters}}
        return {"toolSpec": spec}

    def transcript(self, message: Dict, /) -> str:
        """Write a message as `ROLE: text`, after its results and before calls as JSON."""
        slots = list(texts_of(message, whole=True))
        lines: list[str] = []
        calls: list[Dict] = []
        for at, block in enumerate(blocks_of(message)):
            key = key_of(block)
            if key == RESULT:
                told = "\n".join(slot.text for slot in slots if slot.path[1:2] == (at,))
                lines.append(f"TOOL({id_of_result(block)}): {told}")
            elif key == CALL:
                calls.append(
                    {name: item_of(item_of(block, key), name) for name in ("toolUseId", "name", "input")}
                )
        said = [slot.text for slot in slots if not slot.is_result]
        if calls:
            said.append(f"[tool_calls] {compact_json(calls)}")
        if said or not lines:
            role = str(message.get("role") or "unknown").upper()
            lines.append(f"{role}: " + "\n".join(said))
        return "\n".join(lines)


def _is_own(block: Dict) -> bool:
    """Tell whether a block is named by a key of this API alone, or holds a medium as only this one does."""
    if not _ONLY_HERE.isdisjoint(block):
        return True
    return any(as_dict(item_of(block.get(key), "source")) is not None for key in _MEDIA)


def _role(role: str) -> str:
    if role in ("system", "developer"):
        return "system"
    return role if role == "assistant" else "user"
