"""The wire form of OpenAI's Responses API: a list of input items, each a message, a call, a result.

Read in place: dicts and the `openai` package's own objects, what `response.output` holds among them. An
item is one message here. What the model said in one response is bound together, as the API demands of
reasoning; a result is an item of its own and answers its call from anywhere behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

from trimtab.formats.base import Format, Pieces, Prices, Request, Rules, TextSlot, named_in, output_schema
from trimtab.formats.openai_responses.edit import redacted_of
from trimtab.formats.openai_responses.faults import faults_of
from trimtab.formats.openai_responses.mend import mended_of
from trimtab.formats.openai_responses.read import (
    ITEM_TYPES,
    OUTPUT_OF,
    answered_id_of,
    call_id_of,
    is_bound,
    is_output_message,
    is_reference,
    kind_of,
    lone_reasoning,
    needs_of,
    origins_of,
    pieces_of,
    plain_words,
    text_paths,
    tool_name,
    type_of,
)
from trimtab.formats.openai_responses.walk import Walk
from trimtab.formats.origin import Origins
from trimtab.formats.refusal import Fault
from trimtab.formats.structure import Kind, Structure, told_by
from trimtab.formats.values import (
    Dict,
    Path,
    as_dict,
    as_list,
    as_text,
    compact_json,
    content_of,
    item_of,
    mapping_of,
    with_values,
    without_emptied,
    without_keys,
)

# What the API answers, status 400: continuedev/continue#10092, can1357/oh-my-pi#106 (orphan) and
# router-for-me/CLIProxyAPI#2368, cloudflare/agents#477 (unanswered).
_ORPHAN = "No tool call found for function call output with call_id {call_id}."
_UNANSWERED = "No tool output found for function call {call_id}."
# As NousResearch/hermes-agent#102629 got it through a gateway; of the API itself no answer is known.
_REPEATED = (
    "Duplicate function_call_output for call_id '{call_id}'. Each function_call must have exactly one "
    "matching function_call_output"
)
# The API names the type of call (microsoft/vscode#320060, bytedance/trae-agent#245; a computer's in
# Azure-Samples/computer-use-model#22). Of approvals: community.openai.com/t/1365706, openai-agents-js#131.
_WORDS_BY_TYPE = {
    **{
        output: _ORPHAN.replace("function call", call.replace("_", " ")) for call, output in OUTPUT_OF.items()
    },
    **{call: _UNANSWERED.replace("function call", call.replace("_", " ")) for call in OUTPUT_OF},
    "mcp_approval_response": (
        "The following MCP approval requests have approval responses but weren't passed as input: {call_id}"
    ),
    "mcp_approval_request": "The following MCP approval requests do not have an approval: {call_id}",
}

_BODY_MARKS = frozenset(
    {
        "instructions",
        "previous_response_id",
        "conversation",
        "context_management",
        "max_output_tokens",
        "max_tool_calls",
        "truncation",
        "include",
        "text",
    }
)
_STORED = ("previous_response_id", "conversation")
_PARTS_ONLY_HERE = frozenset({"input_text", "output_text", "input_image", "input_file"})
# What only the model's own output has; the same words from another role have none of it.
_OUTPUT_KEYS = ("id", "status", "phase")


class OpenAIResponses(Format):
    """Responses API input items and request bodies."""

    name = "openai_responses"
    title = "Responses"
    rules = Rules(
        arguments_are_text=True,
        results_are_messages=True,
        calls_are_messages=True,
        results_follow_call=False,
        system_in_messages=False,
        users_stand_alone=True,
        keeps_messages=True,
        body_key="input",
        system_key="instructions",
        body_marks=_BODY_MARKS,
        mark_keys=("prompt_cache_breakpoint",),
        orphan_result=_ORPHAN,
        unanswered_call=_UNANSWERED,
        repeated_result=_REPEATED,
        words_by_type=_WORDS_BY_TYPE,
    )

    def kind(self, message: Dict, /) -> Kind:
        return kind_of(message)

    def origins(self, message: Dict, /) -> Origins:
        return origins_of(message)

    def latest_compaction(self, messages: Sequence[Any], /) -> int:
        try:  # this runs over all items, nearly always in vain: in C
            if "compaction" not in {*map(dict.get, messages, repeat("type"))}:  # a list takes a sixth longer
                return -1
        except TypeError:
            pass  # one is an object
        for index in range(len(messages) - 1, -1, -1):
            item = messages[index]
            kind = item.get("type") if item.__class__ is dict else item_of(item, "type")
            if kind == "compaction":
                return index
        return -1

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        kinds: dict[int, Kind] = structure.kinds
        previous: Dict | None = None
        for index in range(start, stop):
            item = structure.read_as_dict(messages, index)
            kinds[index] = kind_of(item)
            if (call_id := call_id_of(item)) is not None:
                structure.calls[index] = (call_id,)
            elif (answered := answered_id_of(item)) is not None:
                structure.answers[index] = ((answered, None),)
            elif type_of(item) == "compaction" and index > max(structure.kept, default=-1):
                structure.kept = {index}
            elif is_reference(item):
                structure.references.add(index)
                structure.elsewhere = True
            if previous is not None and is_bound(previous, item):
                structure.bound.add(index - 1)
            previous = item
        beyond = stop
        while previous is not None and beyond < len(messages):
            following = structure.read_as_dict(messages, beyond)
            if beyond == stop and is_bound(previous, following):
                structure.bound.add(stop - 1)
            if type_of(following) != "reasoning":
                break
            beyond += 1
        structure.dangling.update(lone_reasoning(messages, start, stop))
        self._bind_references(messages, start, stop, structure)
        structure.needs.update(needs_of(messages) if stop - start == len(messages) else ())

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

    def _bind_references(self, messages: list[Any], start: int, stop: int, structure: Structure) -> None:
        """Bind the results behind a reference to it: it may be their call, whose id it does not tell."""
        for index in range(start, stop):
            if index in structure.bound and is_reference(messages[index]):
                at = index + 1
                while at not in structure.bound and at + 1 < len(messages):
                    if self.kind(structure.read_as_dict(messages, at)) != "tool":
                        break
                    if self.kind(structure.read_as_dict(messages, at + 1)) != "tool":
                        break
                    structure.bound.add(at)
                    at += 1

    def texts(self, message: Dict, /) -> list[TextSlot]:
        """List the texts of messages and of results.

        Refusals, reasoning, arguments and results of built-in tools are not changed.
        """
        is_result = type_of(message) != "message"
        return [TextSlot(path, text, is_result) for path, text in text_paths(message)]

    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        """Return a shallow copy of the caller's item with those texts replaced.

        Annotations and log probabilities of a text are removed with it: they point into it. A part of a
        result without any remaining text is removed, unless it is the only one.
        """
        values: dict[Path, Any] = dict(texts)
        for path in [path for path in texts if len(path) > 1]:
            part = item_of(item_of(message, path[0]), path[1])
            for key in ("annotations", "logprobs"):
                if item_of(part, key):
                    values[*path[:-1], key] = []
        changed = with_values(message, values)
        if "" not in texts.values() or item_of(message, "output") is None:
            return changed
        return without_emptied(changed, texts, at=1, least=1)

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        return None if call_id_of(mapping_of(message)) in call_ids else message

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        """Map the call id of an item to the tool's name: a built-in tool's is its type."""
        call_id = call_id_of(message)
        return {} if call_id is None else {call_id: tool_name(message)}

    def pieces(self, message: Dict, /) -> Pieces:
        return pieces_of(message)

    def full_text(self, message: Dict, /) -> str:
        try:
            return plain_words(message)
        except (KeyError, TypeError):
            return super().full_text(message)

    def faults(self, messages: list[Any], request: Request | None = None, /) -> list[Fault]:
        return faults_of(messages, request)

    def mend(self, message: Dict, /) -> Dict | None:
        return mended_of(message, bad_id=any(fault.rule == "bad_id" for fault in self.faults([message])))

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Take a request body apart; input that is one text is read as a user message."""
        given = body.get("input")
        listed = {**body, "input": [{"role": "user", "content": given}]} if isinstance(given, str) else body
        return replace(
            super().read_request(listed),
            body=body,
            elsewhere=any(body.get(key) is not None for key in _STORED),
            extra=_extra(body),
            unseen=named_in(body, _UNSEEN),
        )

    def write_request(self, request: Request, messages: list[Any], /) -> Any:
        """Put items back into a copy of the body, with system text and tools.

        Input that was one text is written as one, as long as it is a single user message.
        """
        if request.body is None:
            return messages
        came_as_text = isinstance(request.body.get("input"), str)
        if request.system is not None:
            request = replace(request, system=_instructions(request.system))
        written: Dict = super().write_request(request, messages)
        if came_as_text and len(messages) == 1:
            only = messages[0]
            if type(only) is dict and only.keys() == {"role", "content"} and only["role"] == "user":
                written[request.key] = only["content"]
        return written

    @told_by("type")
    def matches(self, message: Dict, /) -> bool:
        name = message.get("type")
        if isinstance(name, str) and name != "message":
            return name in ITEM_TYPES
        content = message.get("content")
        if name == "message" and isinstance(content, str):
            return "role" in message  # Anthropic's answers are of this type, too, with blocks
        parts = as_list(content) or ()
        return any(as_text((as_dict(part) or {}).get("type")) in _PARTS_ONLY_HERE for part in parts)

    def message(self, role: str, parts: Sequence[Any], /) -> Dict:
        """Make a message from texts and ready-made content parts.

        The model's texts are joined: as parts they would need the id of a response.
        """
        if role == "assistant" and all(isinstance(part, str) for part in parts):
            return {"role": role, "content": "\n\n".join(parts)}
        return {"role": role, "content": content_of(parts, partial(_text_part, role))}

    def with_role(self, message: Any, role: str, /) -> Any:
        """Return a shallow copy of the caller's message with another role.

        Fields that only the model's output has are removed: its id, and the type of its parts. An item
        without a role is returned unchanged.
        """
        entry = mapping_of(message)
        if type_of(entry) != "message":
            return message
        was, now = entry.get("role") == "assistant", role == "assistant"
        if was == now:
            return with_values(message, {("role",): role})
        if was:
            message = without_keys(mapping_of(message), _OUTPUT_KEYS)
        values: dict[Path, Any] = {("role",): role}
        for index, part in enumerate(as_list(entry.get("content")) or ()):
            kind = (as_dict(part) or {}).get("type")
            if kind == ("output_text" if was else "input_text"):
                values["content", index] = _text_part(role, (as_dict(part) or {}).get("text"))
        return with_values(message, values)

    def with_text(self, message: Any, text: str, /) -> Any:
        """Return a shallow copy of the caller's item with one text as content or output."""
        entry = mapping_of(message)
        if type_of(entry) != "message":
            return with_values(message, {("output",): text})
        if is_output_message(entry):
            return with_values(message, {("content",): [_text_part("assistant", text)]})
        return with_values(message, {("content",): text})

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Return a shallow copy whose last input part is a cache breakpoint.

        The API has one kind, `{"mode": "explicit"}`, and accepts it on input text, images and files; an item
        without any of these is returned unchanged.
        """
        mode: Any = value if as_dict(value) and "mode" in value else {"mode": "explicit"}
        entry = mapping_of(message)
        key = "content" if type_of(entry) == "message" else "output"
        content = entry.get(key)
        parts = as_list(content)
        taken = kind_of(entry) in ("user", "system") or type_of(entry) == "function_call_output"
        if not taken:
            return message
        if isinstance(content, str):
            part = {"type": "input_text", "text": content, "prompt_cache_breakpoint": mode}
            return with_values(entry, {(key,): [part]})
        if parts and as_dict(parts[-1]) is not None:
            return with_values(entry, {(key, len(parts) - 1, "prompt_cache_breakpoint"): mode})
        return message

    def redact(self, message: Dict, /) -> Dict:
        return redacted_of(message)

    def transcript(self, message: Dict, /) -> str:
        """Write an item as `ROLE: text`, a call as its type and JSON."""
        found, name = pieces_of(message), type_of(message)
        role = "ASSISTANT" if name == "reasoning" else (found.role or "other").upper()
        if found.calls:
            asked = [{"name": tool, "arguments": arguments} for tool, arguments in found.calls]
            said = "\n".join([f"[{name}] {compact_json(asked)}", *found.texts])
            return f"{role}: {said}"
        said = "\n".join((*found.texts, *found.beside)) if name != "message" else "\n".join(found.texts)
        if kind_of(message) == "tool":
            return f"{role}({answered_id_of(message)}): {said}"
        return f"{role}: {said}" if name == "message" else f"{role}: [{name}] {said}".rstrip()


_UNSEEN = {
    "previous_response_id": "the conversation that the provider stored (previous_response_id)",
    "conversation": "the conversation that the provider stored (conversation)",
    "prompt": "the prompt that the provider stored (prompt)",
}


def _extra(body: Mapping[str, Any]) -> dict[str, Any]:
    settings = {key: body[key] for key in ("tool_choice", "parallel_tool_calls") if key in body}
    format = as_dict(item_of(body.get("text"), "format")) or {}
    if format.get("type") != "json_schema":
        return settings
    return {**settings, **output_schema({key: value for key, value in format.items() if key != "type"})}


def _instructions(system: Any) -> Any:
    """Write system text as `instructions`, which are one text: parts and messages are joined."""
    if isinstance(system, str):
        return system
    texts = [part if isinstance(part, str) else _text_of(part) for part in as_list(system) or (system,)]
    return "\n\n".join(text for text in texts if text)


def _text_of(part: Any) -> str:
    return as_text(item_of(part, "text")) or as_text(item_of(part, "content")) or ""


def _text_part(role: str, text: Any) -> Dict:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}
