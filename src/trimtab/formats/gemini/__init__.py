"""Gemini's generateContent: a content is a role and a list of parts.

Calls and responses are parts, with an id or without: then they match by name and order. The responses
of all calls of one turn stand in the one content behind it. System text stands apart. Keys may be
spelled as on the wire (`functionCall`) or as in the SDK (`function_call`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.base import Format, Pieces, Prices, Request, Rules, TextSlot
from trimtab.formats.gemini.edit import parts_of_system, read_body, redacted_of, without_thoughts, write_body
from trimtab.formats.gemini.faults import UNEQUAL, faults_of, takes_apart
from trimtab.formats.gemini.mend import mended_of
from trimtab.formats.gemini.read import (
    CALL_PREFIX,
    DATA_KEYS,
    SIGNATURE,
    UNCHECKED_SIGNATURE,
    GeminiFound,
    answered_ids,
    calls_of,
    goes_on,
    is_signed,
    key_in,
    kind_of,
    origins_of,
    parts_for,
    parts_in,
    pieces_of,
    plain_words,
    results_of,
    speaker,
    unchecked_signature,
    value_in,
)
from trimtab.formats.gemini.walk import Walk
from trimtab.formats.origin import Origins
from trimtab.formats.refusal import Fault
from trimtab.formats.structure import Kind, Structure, told_by
from trimtab.formats.values import (
    Dict,
    as_dict,
    as_list,
    item_of,
    longest_strings_in,
    with_values,
    without_indices,
)

# Quoted in langchain-ai/langchain#27799.
_NOT_BEHIND = (
    "Please ensure that function response turn comes immediately after a function call turn. And the number "
    "of function response parts should be equal to number of function call parts of the function call turn."
)
# Title of google-gemini/gemini-cli#11814, of contents that begin with a call.
_CALL_FIRST = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn."
)
# Quoted, of contents that begin with a model's text, in NousResearch/hermes-agent#55427 (2026-06).
_MODEL_FIRST = "Please ensure that multiturn requests alternate between user and model."

_ROLES = {"assistant": "model", "model": "model", "system": "system", "developer": "system"}
"""Roles as asked for by name; every other one is the user's.

No content may be the system's: a request holds that text apart, and such contents at its front go there.
"""


class Gemini(Format):
    """Contents and request bodies of Gemini's generateContent."""

    name = "gemini"
    title = "Gemini"
    rules = Rules(
        result_frame='{"name":"get_current_weather","response":{"result":""}}',
        results_follow_call=True,
        results_in_one=True,
        takes_apart=True,
        system_in_messages=False,
        lifts_system=True,
        ordered=True,
        parts_key="parts",
        unnamed_prefix=CALL_PREFIX,
        body_key="contents",
        body_marks=frozenset(
            {
                "contents",
                "systemInstruction",
                "system_instruction",
                "generationConfig",
                "generation_config",
                "cachedContent",
                "cached_content",
            }
        ),
        orphan_result=_NOT_BEHIND,
        unanswered_call=UNEQUAL,
        late_result=_NOT_BEHIND,
        repeated_result=UNEQUAL,
        stray_result=UNEQUAL,
    )

    def for_model(self, model: str | None, /) -> Format:
        made = super().for_model(model)
        if made is not self:
            made.rules = replace(self.rules, takes_apart=takes_apart(made.model))
        return made

    def kind(self, message: Dict, /) -> Kind:
        return kind_of(message)

    def origins(self, message: Dict, /) -> Origins:
        return origins_of(message)

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Read `messages[start:stop]` into the columns of `structure`.

        It looks back for the calls of responses without ids, and one content ahead: a model's content with an
        open call is kept with the model's content after it, as parts of one turn.

        Raises:
            FormatError: An entry is not a message; `.path` names it.
        """
        for index in range(start, stop):
            message = structure.read_as_dict(messages, index)
            structure.kinds[index] = self.kind(message)
            parts = parts_in(message)
            if calls := calls_of(parts):
                structure.calls[index] = tuple([call.id for call in calls])
            if results := results_of(parts):
                ids = answered_ids(messages, index, results)
                at = [result.part for result in results]
                structure.answers[index] = tuple(zip(ids, at, strict=True))
                if rest := tuple(sorted(set(range(len(parts))).difference(at))):
                    structure.loose[index] = rest
                continue
            if index + 1 < len(messages):
                structure.read_as_dict(messages, index + 1)
            if goes_on(messages, index):
                structure.bound.add(index)
        if start == 0 and stop == len(messages):
            self._find_needs(messages, structure)

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

    def _find_needs(self, messages: list[Any], structure: Structure) -> None:
        """Note contents whose first call is not signed, where the one before is: a step has one signature."""
        for index in sorted(structure.bound):
            opened = index in structure.needs or _first_is_signed(messages[index])
            if opened and _first_is_signed(messages[index + 1]) is False:
                structure.needs[index + 1] = index

    def order_fault(self, previous: Dict | None, message: Dict, /, *, parted: bool = False) -> str | None:
        """Require the user first.

        Consecutive contents of one role are accepted, also a call after a call: such requests were billed in
        2026. Google's own CLI sends a call after a model's text (gemini-cli#685), but others refuse it: an
        existing one is kept, and none is made.
        """
        if speaker(message) != "model":
            return None
        if previous is not None:
            lone = parted and speaker(previous) == "model" and not calls_of(parts_in(previous))
            return _CALL_FIRST if lone and calls_of(parts_in(message)) else None
        return _CALL_FIRST if calls_of(parts_in(message)) else _MODEL_FIRST

    def texts(self, message: Dict, /) -> list[TextSlot]:
        """List text parts, and the strings in function responses.

        A model's content with a thought signature is not changed, nor are thoughts, arguments and code.
        """
        parts = parts_in(message)
        if any(map(is_signed, parts)):
            return []
        return [slot for at, part in enumerate(parts) for slot in _slots(at, part)]

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        """Return a shallow copy without those calls; None if no content remains.

        Only the first of parallel calls is signed. If it is removed, the next one gets the value that Google
        names for a call without a signature, because Gemini 3 requires one there.
        """
        listed = as_list(item_of(message, "parts")) or ()
        parts = [as_dict(part) or {} for part in listed]
        gone = {call.part for call in calls_of(parts) if call.id in call_ids}
        if not gone:
            return message
        left = [at for at in range(len(parts)) if at not in gone]
        if all(parts[at].get("thought") is True for at in left):
            return None
        kept = list(without_indices(listed, gone))
        after = next((at for at in left if key_in(parts[at], "function_call") is not None), None)
        if after is not None and not is_signed(parts[after]):
            signed = next((part for part in gone if part < after and is_signed(parts[part])), None)
            if signed is not None:
                kept[left.index(after)] = _with_signature(listed[after], parts[signed])
        return with_values(message, {("parts",): tuple(kept) if isinstance(listed, tuple) else kept})

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        return {call.id: call.name for call in calls_of(parts_in(message))}

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
        return mended_of(message, self.model)

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Take a request body apart: JSON, or the SDK's keyword arguments.

        Raises:
            FormatError: `contents` is missing, or has bare texts or parts.
        """
        return read_body(body)

    def write_request(self, request: Request, messages: list[Any], /) -> Any:
        return write_body(request, messages)

    @told_by()
    def matches(self, message: Dict, /) -> bool:
        parts = as_list(message.get("parts"))
        if not parts or "content" in message:
            return False
        found = [as_dict(part) or {} for part in parts]
        return any("type" not in part and any(key_in(part, key) for key in DATA_KEYS) for part in found)

    def message(self, role: str, parts: Sequence[Any], /) -> Dict:
        """Make a content from texts and parts; every role but the model's is the user's."""
        made = [{"text": part} if isinstance(part, str) else part for part in parts]
        return {"role": _ROLES.get(role, "user"), "parts": made}

    def with_role(self, message: Any, role: str, /) -> Any:
        """Return a shallow copy of the caller's content with another role."""
        return with_values(message, {("role",): _ROLES.get(role, "user")})

    def with_text(self, message: Any, text: str, /) -> Any:
        """Return a shallow copy of the caller's content with one text as parts."""
        return with_values(message, {("parts",): parts_for(message, [{"text": text}])})

    def join_results(self, message: Any, other: Any, /) -> Any:
        parts = [*(as_list(item_of(message, "parts")) or ()), *(as_list(item_of(other, "parts")) or ())]
        return with_values(message, {("parts",): parts})

    def lift_system(self, messages: Sequence[Any], system: Any, /) -> Any:
        """Return a request's system text with that of system contents, as parts.

        Raises:
            FormatError: The parts of a content are not valid.
        """
        if not messages and (system is None or isinstance(system, str)):
            return system
        given = [] if system is None else parts_of_system(system)
        return [*given, *(part for message in messages for part in parts_of_system(message))]

    def without_thinking(self, message: Any, /) -> Any | None:
        return without_thoughts(message)

    def redact(self, message: Dict, /) -> Dict:
        return redacted_of(message)

    def tool_schema(self, name: str, /, *, description: str, parameters: Dict) -> Dict:
        return {
            "functionDeclarations": [
                {"name": name, "description": description, "parametersJsonSchema": parameters}
            ]
        }

    def transcript(self, message: Dict, /) -> str:
        role = str(message.get("role") or "user").upper()
        parts = parts_in(message)
        made = [value_in(part, "function_call") for part in parts if key_in(part, "function_call")]
        if made:
            return f"{role}: [function_calls] {GeminiFound().to_json(made)}"
        lines = [f"TOOL({result.name}): {_answer(parts[result.part])}" for result in results_of(parts)]
        said = "\n".join(text for part in parts for text in _part_texts(part))
        return "\n".join([*lines, f"{role}: {said}"] if said or not lines else lines)


def _first_is_signed(message: Dict) -> bool | None:
    """Tell whether the first call of a content carries a signature; None if it makes no call."""
    parts = parts_in(message)
    calls = calls_of(parts)
    return is_signed(parts[calls[0].part]) if calls else None


def _slots(at: int, part: Dict) -> Iterator[TextSlot]:
    text = part.get("text")
    if isinstance(text, str) and part.get("thought") is not True:
        yield TextSlot(("parts", at, "text"), text, False)
    key = key_in(part, "function_response")
    response = None if key is None else (as_dict(part[key]) or {}).get("response")
    if key is not None and response is not None:
        for path, found in longest_strings_in(response):
            yield TextSlot(("parts", at, key, "response", *path), found, True)


def _part_texts(part: Dict) -> Iterator[str]:
    if isinstance(part.get("text"), str) and part.get("thought") is not True:
        yield part["text"]
    for name, field in (("executable_code", "code"), ("code_execution_result", "output")):
        found = item_of(value_in(part, name), field)
        if isinstance(found, str):
            yield found


def _answer(part: Dict) -> str:
    """Write a response: its text if that is all it holds, else JSON."""
    response = item_of(value_in(part, "function_response"), "response")
    entry = as_dict(response) or {}
    values = list(entry.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return "" if response is None else GeminiFound().to_json(response)


def _with_signature(part: Any, signed: Dict) -> Any:
    """Sign a call with the value nobody checks, spelled and typed as the signature that was evicted."""
    key = key_in(signed, SIGNATURE) or SIGNATURE
    raw = UNCHECKED_SIGNATURE.encode()
    value: Any = raw if isinstance(signed[key], bytes) else unchecked_signature()
    return with_values(part, {(key,): value})
