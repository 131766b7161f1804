"""The wire form of OpenAI's Chat Completions, which most other providers take as well.

Read in place: message dicts and the `openai` package's own objects, with string, null and list
content, refusals, images, audio, files, parallel and custom tool calls, and the legacy
`function_call` with its "function" messages. A legacy call has no id; `function:NAME` stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.anthropic.edit import thinking_of
from trimtab.formats.base import (
    BYTES_PER_TOKEN,
    CALL_WEIGHT,
    MESSAGE_WEIGHT,
    Format,
    Pieces,
    Prices,
    Request,
    Rules,
    TextSlot,
    bytes_of,
    named_in,
)
from trimtab.formats.openai_chat.edit import redacted_of, step_of, without_thinking
from trimtab.formats.openai_chat.faults import faults_of
from trimtab.formats.openai_chat.mend import mended_of
from trimtab.formats.openai_chat.read import (
    LEGACY_PREFIX,
    call_id_of,
    call_text,
    is_foreign,
    pieces_of,
    result_id_of,
    thought_in,
)
from trimtab.formats.refusal import Fault
from trimtab.formats.structure import Kind, Step, Structure, Thinking, complete_ids, told_by
from trimtab.formats.values import (
    Dict,
    Path,
    as_dict,
    as_list,
    as_text,
    compact_json,
    content_of,
    entry_of,
    item_of,
    mapping_of,
    text_part,
    with_values,
    without_emptied,
    without_indices,
    without_keys,
)

_KINDS: dict[str, Kind] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

# What the API answers, status 400, as quoted in miurla/morphic#136, dapr/dapr-agents#145,
# BerriAI/litellm#10083 and agno-agi/agno#5116; its spelling ("preceeding") is its own.
_INVALID = "Invalid parameter: "
_ORPHAN = _INVALID + "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
_STRAY = _INVALID + "'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message."
_REPEATED = _INVALID + "Duplicate value for 'tool_call_id' of '{call_id}'."
_UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {call_id}"
)

_SAYS = ("content", "tool_calls", "function_call", "refusal", "audio")
_ONLY_HERE = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal"})
_PARTS_ONLY_HERE = frozenset({"image_url", "file", "document_url"})
_BODY_MARKS = frozenset(
    {
        *("max_completion_tokens", "stop", "response_format", "stream_options", "n", "seed", "logit_bias"),
        *("frequency_penalty", "presence_penalty", "logprobs", "functions", "function_call", "modalities"),
    }
)
"""Keys Anthropic's do not know (https://platform.openai.com/docs/api-reference/chat/create, 2026-11)."""

_UNSEEN = {
    "web_search_options": "a web search that the provider runs",
    "plugins": "plugins that the provider runs",
    "prompt_mode": "the system prompt that the provider adds (prompt_mode)",
}


_JSON_MODE = "what a host adds for an answer in JSON (response_format)"
"""Nothing at ollama.com, 26 tokens at Groq and 212 at an Ollama of one's own (billed, 2026-11)."""


_UNMARKED = ("thinking", "redacted_thinking", "reasoning")
"""Parts that no provider lets carry a mark."""


def _asks_host_for_json(body: Mapping[str, Any], model: str | None) -> bool:
    """Tell whether an open model is asked for JSON of any shape, which hosts see to in ways of their own."""
    if item_of(body.get("response_format"), "type") != "json_object":
        return False
    from trimtab.models import find_facts, model_in  # not above: few requests ask for it

    named = model or model_in(body)
    facts = None if named is None else find_facts(named)
    return facts is not None and facts.open_weights


class OpenAIChat(Format):
    """Chat Completions messages and request bodies."""

    name = "openai_chat"
    title = "Chat Completions"
    rules = Rules(
        arguments_are_text=True,
        results_are_messages=True,
        body_marks=_BODY_MARKS,
        mark_keys=("cache_control", "prompt_cache_breakpoint"),
        results_follow_call=True,
        binds_messages=False,
        users_stand_alone=True,
        orphan_result=_ORPHAN,
        unanswered_call=_UNANSWERED,
        late_result=_UNANSWERED,
        repeated_result=_REPEATED,
        stray_result=_STRAY,
        unnamed_prefix=LEGACY_PREFIX,
        unchecked_prefix=LEGACY_PREFIX,
    )

    def kind(self, message: Dict, /) -> Kind:
        try:
            return _KINDS[message["role"]]
        except (KeyError, TypeError):
            return "other"

    def thinking_rules(self, model: str | None, body: Mapping[str, Any] | None, /) -> Thinking:
        """Say what a Claude requires of thinking that gateways carry in this form.

        Gateways have settings of their own for thinking, so the model may think without `thinking` in the
        body.
        """
        if model is None or "claude" not in model.lower():
            return Thinking()
        return thinking_of(model, None if body is None else body.get("thinking"))

    def turn_step(self, message: Dict, /) -> Step:
        return step_of(message)

    def without_thinking(self, message: Any, /) -> Any | None:
        return without_thinking(message)

    def kinds(self, messages: Sequence[Dict], /) -> list[Kind]:
        if type(self).kind is OpenAIChat.kind:
            try:
                return [_KINDS[message["role"]] for message in messages]
            except (KeyError, TypeError):
                pass  # a role nobody knows is among them
        return super().kinds(messages)

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        kinds, calls, answers = structure.kinds, structure.calls, structure.answers
        for index in range(start, stop):
            message = messages[index]
            if type(message) is not dict:
                message = structure.read_as_dict(messages, index)
            # A subscript in `try` costs half of `.get`; only broken roles pay for the exception.
            try:
                kind = _KINDS[message["role"]]
            except (KeyError, TypeError):
                kind = "other"
            kinds[index] = kind
            if kind == "assistant":
                if (len(message) > 2 or "content" not in message) and (ids := _call_ids(message)):
                    calls[index] = ids
            elif kind == "tool":
                call_id = message.get("tool_call_id")
                answers[index] = ((call_id if type(call_id) is str else result_id_of(message) or "", None),)

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
        def other(index: int) -> tuple[int, Kind]:
            message = structure.read_as_dict(messages, index)
            structure.foreign |= is_foreign(message)
            kind = self.kind(message)
            if kind == "tool":
                structure.behind.append(result_id_of(message) or "")
            else:
                ids = _call_ids(message) if message.get("role") == "assistant" else ()
                structure.close(ids, index)
                if ids:
                    structure.callers.add(index)
            return prices.in_full(message), kind

        own = type(self).kind is OpenAIChat.kind  # a form derived from this one may tell kinds in its own way
        return _walk_back(
            messages,
            span,
            room_tokens,
            sizes,
            structure=structure,
            prices=prices,
            kinds=structure.kinds_back if own else [],
            kinds_by_role=_KINDS,
            other=other,
        )

    def newest(self, messages: list[Any], kind: Kind, after: int, index: int, /) -> int:
        kinds = _KINDS
        for at in range(index, after, -1):
            try:
                if kinds[messages[at]["role"]] == kind:
                    return at
            except (KeyError, TypeError):  # no dict, or a role nobody knows
                if self.kind(entry_of(messages, at)) == kind:
                    return at
        return -1

    def texts(self, message: Dict, /) -> list[TextSlot]:
        """List string content and text parts.

        Refusals and call arguments are not changed.
        """
        content, is_result = message.get("content"), self.kind(message) == "tool"
        if isinstance(content, str):
            return [TextSlot(("content",), content, is_result)]
        return [TextSlot(path, text, is_result) for path, text in _part_texts(content)]

    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        """Return a shallow copy of the caller's message with those texts replaced.

        A part of a result without any remaining text is removed, unless it is the only one.
        """
        changed = with_values(message, texts)
        if "" not in texts.values() or item_of(message, "role") != "tool":
            return changed
        return without_emptied(changed, texts, at=1, least=1)

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        changed = message
        tool_calls = as_list(item_of(message, "tool_calls")) or ()
        ids = complete_ids(map(call_id_of, map(as_dict, tool_calls)))
        gone = {at for at, call_id in enumerate(ids) if call_id in call_ids}
        if gone and len(gone) == len(tool_calls):
            changed = without_keys(changed, ("tool_calls",))
        elif gone:
            changed = with_values(changed, {("tool_calls",): without_indices(tool_calls, gone)})
        if _function_id(item_of(message, "function_call")) in call_ids:
            changed = without_keys(changed, ("function_call",))
        is_something = changed is message or any(item_of(changed, key) for key in _SAYS)
        return changed if is_something else None

    # Strides weigh hundreds of messages in each call of a chat: nearly all of them take no call here.
    def weights(self, messages: Sequence[Dict], /) -> list[float]:
        if type(self).weight is not Format.weight:  # a form derived from this one weighs in its own way
            return super().weights(messages)
        found: list[float] = []
        for message in messages:
            content, made, calls = message.get("content"), message.get("tool_calls"), 0
            try:
                size = 0 if content is None else len(content) if content.isascii() else bytes_of(content)
                if made:
                    calls = len(made)
                    plain = len(message) - ("content" in message) == 2  # a role beside it, and nothing else
                    for call in made if plain else ({},):
                        text = call["function"]["arguments"]
                        size += len(text) if text.isascii() else bytes_of(text)
                elif content is None or "function_call" in message:
                    raise KeyError
            except (KeyError, TypeError, AttributeError):  # parts, or other calls than of functions
                size, calls = self.weight(message)
            found.append(size / BYTES_PER_TOKEN + MESSAGE_WEIGHT + CALL_WEIGHT * calls)
        return found

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        # One plain call is by far the commonest shape, and this runs for every call of a long history.
        calls = message.get("tool_calls") if "function_call" not in message else None
        if type(calls) is list and len(calls) == 1 and type(calls[0]) is dict:
            call_id, called = calls[0].get("id"), calls[0].get("function")
            if type(call_id) is str and call_id and type(called) is dict and type(called.get("name")) is str:
                return {call_id: called["name"]}
        return {call_id: call_text(call)[0] for call_id, call in _calls(message)}

    def pieces(self, message: Dict, /) -> Pieces:
        return pieces_of(message)

    def faults(self, messages: list[Any], request: Request | None = None, /) -> list[Fault]:
        return faults_of(messages, request, model=self._model_of(request))

    def mend(self, message: Dict, /) -> Dict | None:
        return mended_of(message)

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Take a request body apart.

        Legacy `functions`, an output schema and the choice of tools are in `extra`; counters charge the
        functions as tools.
        """
        extra = {key: body[key] for key in ("functions", "tool_choice") if body.get(key)}
        if item_of(body.get("response_format"), "type") == "json_schema":
            extra["response_format"] = body["response_format"]
        unsure = (_JSON_MODE,) if _asks_host_for_json(body, self.model) else ()
        return replace(super().read_request(body), extra=extra, unseen=named_in(body, _UNSEEN), unsure=unsure)

    def is_foreign(self, message: Dict, /) -> bool:
        return is_foreign(message)

    @told_by("role", *_ONLY_HERE)
    def matches(self, message: Dict, /) -> bool:
        if message.get("role") == "function" or not _ONLY_HERE.isdisjoint(message):
            return True
        parts = [as_dict(part) or {} for part in as_list(message.get("content")) or ()]
        return any(not _PARTS_ONLY_HERE.isdisjoint(part) or thought_in(part) is not None for part in parts)

    def message(self, role: str, parts: Sequence[Any], /) -> Dict:
        """Make a message from texts, ready-made content parts and ready-made tool calls."""
        calls = [part for part in parts if _is_call(part)]
        content = [part for part in parts if not _is_call(part)]
        made: Dict = {"role": role, "content": content_of(content, text_part)}
        if calls:
            made["content"] = made["content"] or None
            made["tool_calls"] = calls
        return made

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Return a shallow copy whose last content part carries `cache_control`.

        Gateways to caching providers read it there (OpenRouter, LiteLLM); a message without text carries it
        itself. A message of empty text or of thinking is returned unchanged: the providers behind gateways
        refuse a mark on it.
        """
        given = message
        if not isinstance(message, Mapping):
            message = mapping_of(message)  # a model refuses, or warns of, content of another type
        content, parts = item_of(message, "content"), as_list(item_of(message, "content"))
        if item_of(message, "role") == "function":  # whose content is one text, and no parts
            return given
        if isinstance(content, str):
            if not content.strip():
                return given
            return with_values(message, {("content",): [{**text_part(content), "cache_control": value}]})
        if parts and (item_of(parts[-1], "text") == "" or item_of(parts[-1], "type") in _UNMARKED):
            return given
        if parts and as_dict(parts[-1]) is not None:
            return with_values(message, {("content", len(parts) - 1, "cache_control"): value})
        return with_values(message, {("cache_control",): value})

    def most_marks(self, model: str | None, /) -> int:
        """Return the maximum number of marks in a request: none for OpenAI's models.

        OpenAI's Chat Completions has no `cache_control`, which is for providers behind a gateway.
        """
        from trimtab.models import find_facts  # not above: most fits mark nothing

        facts = None if model is None else find_facts(model)
        own = facts is not None and facts.provider == "openai"
        return 0 if own else super().most_marks(model)

    def redact(self, message: Dict, /) -> Dict:
        return redacted_of(message)

    def tool_schema(self, name: str, /, *, description: str, parameters: Dict) -> Dict:
        return {
            "type": "function",
            "function": {"name": name, "description": description, "parameters": parameters},
        }

    def full_text(self, message: Dict, /) -> str:
        content, made = message.get("content"), message.get("tool_calls")
        if type(content) is str and _BESIDE_TEXT.issuperset(message):
            return content
        try:
            if type(made) is list and len(message) == 3 and (content is None or type(content) is str):
                asked = [call["function"] for call in made]
                said = [] if content is None else [content]
                return "\n".join([*said, *(f"{one['name']} {one['arguments']}" for one in asked)])
        except (KeyError, TypeError):
            pass  # not plain function calls
        return super().full_text(message)

    def transcript(self, message: Dict, /) -> str:
        """Write a message as `ROLE: text`; calls are written as JSON in place of the text."""
        role = str(message.get("role") or "unknown").upper()
        calls = message.get("tool_calls") or message.get("function_call")
        if calls:
            return f"{role}: [tool_calls] {compact_json(calls)}"
        said = "\n".join(slot.text for slot in self.texts(message))
        call_id = result_id_of(message) or ""
        return f"{role}({call_id}): {said}" if role in ("TOOL", "FUNCTION") else f"{role}: {said}"


_BESIDE_TEXT = frozenset({"role", "content", "tool_call_id", "name"})
"""Keys of a message that says nothing but its content."""


def _calls(message: Dict) -> Iterator[tuple[str, Dict]]:
    """Yield (id, call) of the calls, the legacy one last."""
    calls = [as_dict(value) for value in as_list(message.get("tool_calls")) or ()]
    for call_id, call in zip(complete_ids(map(call_id_of, calls)), calls, strict=True):
        if call is not None:
            yield call_id, call
    legacy = _function_id(message.get("function_call"))
    if legacy is not None:
        yield legacy, {"function": message["function_call"]}


def _call_ids(message: Dict) -> tuple[str, ...]:
    """List the ids called, one a call: several may have the same."""
    tool_calls = message.get("tool_calls")
    if not tool_calls and "function_call" not in message:
        return ()
    # One plain call is by far the commonest shape, and this runs for every call of a long history.
    if type(tool_calls) is list and len(tool_calls) == 1 and type(tool_calls[0]) is dict:
        call_id = tool_calls[0].get("id")
        if type(call_id) is str and call_id and "function_call" not in message:
            return (call_id,)
    ids: list[str] = []
    # Plain lists of plain dicts without a generator: this runs for every call of a long history.
    if type(tool_calls) is list and message.get("function_call") is None:
        for call in tool_calls:
            if type(call) is not dict:
                break
            call_id = call.get("id")
            if type(call_id) is not str or not call_id:
                break
            ids.append(call_id)
        else:
            return tuple(ids)
    return tuple([call_id for call_id, _ in _calls(message)])


def _function_id(value: Any) -> str | None:
    name = as_text(item_of(value, "name"))
    return None if name is None else LEGACY_PREFIX + name


def _part_texts(content: Any) -> Iterator[tuple[Path, str]]:
    for index, value in enumerate(as_list(content) or ()):
        if isinstance(value, str):
            yield ("content", index), value
            continue
        part = as_dict(value) or {}
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            yield ("content", index, "text"), part["text"]


def _is_call(part: Any) -> bool:
    entry = None if isinstance(part, str) else as_dict(part)
    return entry is not None and ("function" in entry or "custom" in entry)


_Other = Callable[[int], tuple[int, Kind]]
"""Reads and counts a message of any shape, by position: its tokens, and whom it is from."""


# The hottest loop of the library, and one on purpose: a call a message would cost a fifth of the whole.
# A plain message is a role, a text or null, and what is free beside it or plain function calls, which may
# stand without a text. It costs a few lookups; they fail, with KeyError or TypeError, for exactly the other
# shapes. An object of an SDK is made a dict first: nearly all are plain then.
def _walk_back(  # noqa: C901
    messages: list[Any],
    span: range,
    room_tokens: int,
    sizes: list[int | None],
    *,
    structure: Structure,
    prices: Prices,
    kinds: list[Kind],
    kinds_by_role: Mapping[str, Kind],
    other: _Other,
) -> int:
    """Fill `sizes` over a descending span until the room is passed; see `Format.count_back`."""
    behind, unanswered = structure.behind, structure.unanswered
    callers = structure.callers
    bases, counts = prices.bases, prices.counts
    per_call, name_factor = prices.per_call_tokens, prices.name_factor
    index = span.start + 1
    for index in span:
        message = messages[index]
        if type(message) is not dict:
            message = structure.read_as_dict(messages, index)
        try:
            role, width = message["role"], len(message)
            if "tool_calls" in message:
                size = bases[role] + (counts[message["content"]] if width == 3 else 0)
                made = message["tool_calls"]
                if width > 3 or role != "assistant" or made.__class__ is not list:
                    raise KeyError
                if len(made) == 1:
                    call = made[0]
                    call_id, function = call["id"], call["function"]
                    if not call_id or call_id.__class__ is not str or len(call) != 3:
                        raise KeyError
                    call["type"]
                    size += per_call + counts[function["arguments"]] + name_factor * counts[function["name"]]
                    if not behind:
                        unanswered.add(index)
                    elif len(behind) == 1 and behind[0] == call_id:
                        behind.clear()
                    else:
                        structure.close((call_id,), index)
                else:
                    ids, tokens = _parallel_calls(made, prices)
                    size += tokens
                    structure.close(ids, index)
                callers.add(index)
                kind: Kind = "assistant"
            else:
                size = bases[role] + counts[message["content"]]
                kind = kinds_by_role[role]
                if role == "tool":
                    call_id = message["tool_call_id"]
                    if call_id.__class__ is not str or width > 4 or (width == 4 and "name" not in message):
                        raise KeyError
                    behind.append(call_id)
                elif width != 2:
                    raise KeyError
                elif behind:
                    structure.close((), index)
        except (KeyError, TypeError):
            size, kind = other(index)
        kinds.append(kind)
        sizes[index] = size
        room_tokens -= size
        if room_tokens < 0:
            break
    if behind and not index:
        structure.odd.add(0)
    return index


def _parallel_calls(made: list[Any], prices: Prices) -> tuple[tuple[str, ...], int]:
    """Read the ids of several plain function calls, and count them.

    Raises:
        KeyError: A call is not plain, or there are none.
        TypeError: The same.
    """
    ids, tokens = [], prices.parallel_tokens + prices.further_call_tokens * (len(made) - 1)
    for call in made:
        call_id, function = call["id"], call["function"]
        if not call_id or call_id.__class__ is not str or len(call) != 3:
            raise KeyError
        call["type"]
        ids.append(call_id)
        tokens += prices.per_call_tokens + prices.counts[function["arguments"]]
        tokens += prices.name_factor * prices.counts[function["name"]]
    if not ids:
        raise KeyError
    return tuple(ids), tokens
