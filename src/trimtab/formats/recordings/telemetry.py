"""OpenTelemetry's GenAI conventions: recorded messages, and the spans that hold them, as exported in JSON.

Sources: opentelemetry.io, gen-ai-input-messages.json and gen-ai-output-messages.json; OpenInference,
spec/semantic_conventions.md; `ai` 4 to 6, src/telemetry (2026-11).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.programs import TELEMETRY, program_of
from trimtab.formats.recordings import chat, vercel
from trimtab.formats.recordings.base import (
    Bill,
    ForeignCall,
    ForeignConversation,
    Reader,
    Source,
    is_list,
    mappings,
)
from trimtab.formats.values import Dict, short_repr

_INPUT = "gen_ai.input.messages"
_OUTPUT = "gen_ai.output.messages"
_SYSTEM = "gen_ai.system_instructions"
_TOOLS = "gen_ai.tool.definitions"
_CONVERSATION = ("gen_ai.conversation.id", "session.id")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id")
_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
)
_BILLED = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
    ("llm.token_count.prompt", "llm.token_count.completion"),
    ("ai.usage.inputTokens", "ai.usage.outputTokens"),
    ("ai.usage.promptTokens", "ai.usage.completionTokens"),
)
_VERCEL = "ai.prompt.messages"
_FLAT = (("llm.input_messages.", "llm.output_messages."), ("gen_ai.prompt.", "gen_ai.completion."))
"""What was sent and answered, a key for each value: as OpenInference writes it, and OpenLLMetry."""

_OF_AGENTS = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "execute_tool"})
"""Operations that call no model themselves, though their spans may repeat what was sent."""


def _owns(source: Source) -> bool:
    if _is_spans(source):
        return True
    listed = source.get("messages") if isinstance(source, Mapping) else source
    return any(program_of(one) == TELEMETRY for one in mappings(listed))


def _read(source: Source) -> list[ForeignConversation]:
    if _is_spans(source):
        try:
            return _conversations(source)
        except RecursionError as error:
            raise FormatError("a span is nested too deep to be read") from error
    unread = Counter[str]()
    if not isinstance(source, Mapping):
        body: Dict = {"messages": messages_of(source, unread)}
    else:
        body = {"messages": messages_of(source["messages"], unread)}
        system = _system(source.get("system_instructions") or source.get("system"))
        body["messages"] = [*system, *body["messages"]]
        if isinstance(model := source.get("model"), str):
            body["model"] = model
        if tools := _tools(source.get("tools")):
            body["tools"] = tools
    return [ForeignConversation(program=TELEMETRY, format="openai_chat", body=body, notes=_notes_of(unread))]


def _notes_of(unread: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"not read: {kind} ({count:,}): {chat.WHY_NO_REASONING}" for kind, count in unread.items())


def messages_of(recorded: object, unread: Counter[str], /) -> list[Dict]:
    """Read a list of recorded messages; JSON of one will do, as spans hold it.

    A message with several results becomes one for each. Parts of a kind that nobody knows are kept as the
    JSON they are.

    Args:
        recorded: The messages.
        unread: Counts what is not read, by what it is.

    Raises:
        FormatError: It is no list of messages with parts.
    """
    listed = _plain(recorded)
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise FormatError(f"recorded messages must be a list, not {type(listed).__name__}")
    return [message for index, one in enumerate(listed) for message in _messages(one, index, unread)]


def _plain(value: object) -> Any:
    """Return the value of an attribute that may be written as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"a recorded value is not JSON: {value!r:.60}") from error


def _system(recorded: object) -> list[Dict]:
    """Read recorded instructions, which are apart from the messages: one message, or none."""
    try:
        parts = _plain(recorded)
    except FormatError:
        parts = recorded  # a text, as some write it
    if not parts:
        return []
    listed = parts if isinstance(parts, list | tuple) else [parts]
    return [{"role": "system", "content": "\n".join(_text(part)["text"] for part in listed)}]


def _messages(one: object, index: int, unread: Counter[str]) -> list[Dict]:
    if not isinstance(one, Mapping) or not isinstance(one.get("role"), str):
        raise FormatError(
            f"recorded messages[{index}] must be a mapping with a role", path=f"messages[{index}]"
        )
    parts = one.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        raise FormatError(f"recorded messages[{index}] has no list of parts", path=f"messages[{index}]")
    pieces = [piece for part in parts for piece in _pieces(part, unread)]
    if one["role"] != "assistant":  # results come first: some write what a user says next into their message
        pieces.sort(key=lambda piece: piece[0] != "result")
    made = chat.turn(pieces, one["role"])
    return made if made or parts else [chat.message(one["role"], [])]


def _pieces(part: object, unread: Counter[str]) -> Iterator[tuple[chat.Piece, Dict]]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(kind, str):
        yield "part", _text(part)
    elif kind == "reasoning":
        unread[kind] += 1
    elif kind == "tool_call":
        yield "call", chat.call(part.get("id"), part.get("name"), part.get("arguments") or {})
    elif kind == "tool_call_response":
        found = next((part[key] for key in ("response", "result", "content") if key in part), "")
        yield "result", chat.result(part.get("id"), chat.words(found))
    else:
        yield "part", _medium(part, kind) or _text(part)


def _text(part: object) -> Dict:
    content = part.get("content") if isinstance(part, Mapping) and part.get("type") == "text" else part
    return chat.text(content if isinstance(content, str) else part)


def _medium(part: Mapping[str, Any], kind: str) -> Dict | None:
    """Write an image, a sound or a file; None for what is none, or came without its data."""
    media_type = str(part.get("mime_type") or part.get("media_type") or part.get("modality") or "")
    if kind == "blob" and isinstance(part.get("content"), str):
        return chat.media(media_type, data=part["content"])
    if kind == "uri" and isinstance(part.get("uri"), str):
        return chat.media(media_type, address=part["uri"])
    return chat.file_by_id(part["file_id"]) if kind == "file" and part.get("file_id") else None


def _tools(recorded: object) -> list[Dict]:
    """Read tools: those of a provider as they are, and those of a name and a schema as Chat writes them."""
    listed = _plain(recorded)
    if listed is None:
        return []
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise FormatError(f"recorded tools must be a list, not {type(listed).__name__}")
    return [_tool(_plain(one)) for one in listed]


def _tool(one: Any) -> Dict:
    if not isinstance(one, Mapping):
        raise FormatError(f"a recorded tool must be a mapping, not {short_repr(one)}")
    schema = next((one[key] for key in ("parameters", "inputSchema", "input_schema") if key in one), None)
    if "function" in one or "name" not in one or schema is None:
        return dict(one)
    return chat.tool(one["name"], one.get("description"), _plain(schema))


def _is_spans(source: Any) -> bool:
    """Tell whether it is an export: of OTLP, a span, or a list of these."""
    if isinstance(source, Mapping):
        return any(key in source for key in _EXPORTS) or (_is_span(source) and not _SPAN.isdisjoint(source))
    if not is_list(source) or not source:
        return False
    return all(isinstance(one, Mapping) and (_is_span(one) or _is_spans(one)) for one in source)


def _is_span(one: Mapping[str, Any]) -> bool:
    """Tell a span from a message or a body whose writer has attributes of its own."""
    return "attributes" in one and _NO_SPAN.isdisjoint(one)


_LOGS = ("resourceLogs", "resource_logs")
_EXPORTS = ("resourceSpans", "resource_spans", *_LOGS)
_SPAN = frozenset({"traceId", "trace_id", "spanId", "span_id", "context"})
_NO_SPAN = frozenset({"role", "messages", "input", "contents"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call of a model, as its span says."""

    messages: list[Dict]
    answer: list[Dict]
    tools: list[Dict]
    conversation: str
    trace: str
    model: str | None
    usage: Dict | None
    cold: bool | None
    begun: float | None
    ended: float | None
    unread: Counter[str]


def _without_system(messages: list[Dict]) -> list[Dict]:
    return [one for one in messages if one["role"] != "system"]


@dataclass(slots=True, eq=False)
class _Chain:
    """The calls of one conversation, in the order they were made."""

    calls: list[_Call]
    longest: _Call
    """The last of those that sent the most messages."""
    length: int
    """How many of its messages are of no system."""
    ends: frozenset[int]
    """The places where a call that goes on may begin: behind what the longest sent, and behind its answer."""


class _Chains:
    """Puts calls into chains, in steps that grow with their messages alone.

    A place is what was sent up to a message; calls that sent the same have the same places.
    """

    def __init__(self) -> None:
        self.all: list[_Chain] = []
        self._places: dict[tuple[int | str, str], int] = {}
        self._ends: dict[tuple[str | None, int], list[_Chain]] = {}
        """Chains by where they end: of a trace, or of any."""
        self._passed: dict[tuple[str, int], _Chain] = {}
        """The newest chain of a trace that passes a place."""

    def add(self, call: _Call) -> None:
        """Put a call behind those it goes on from, or begin a chain with it."""
        rest = _without_system(call.messages)
        path = self._path(rest, call.conversation)
        chain = self._chain_of(call, path)
        if chain is None:
            chain = _Chain([], call, 0, frozenset())
            self.all.append(chain)
        chain.calls.append(call)
        if len(rest) >= chain.length:
            ends = self._end(call, path, chain)
            chain.ends = ends if len(rest) > chain.length else chain.ends | ends
            chain.longest, chain.length = call, len(rest)
        self._passed.update(dict.fromkeys(((call.trace, place) for place in path), chain))

    def _path(self, messages: list[Dict], start: int | str) -> list[int]:
        """List the places of messages; those of another conversation are others."""
        path = list[int]()
        for message in messages:
            start = self._places.setdefault((start, repr(message)), len(self._places))
            path.append(start)
        return path

    def _chain_of(self, call: _Call, path: list[int]) -> _Chain | None:
        """Find the chain of a call: it asks again what its trace sent, or has all that was sent before.

        In a trace, or with the id of a conversation, what was sent is enough; else the answer has to follow.
        """
        if not path:
            return None
        if (chain := self._passed.get((call.trace, path[-1]))) is not None:
            return chain
        for place in reversed(path):
            for scope in (call.trace, None):
                known = self._ends.get((scope, place), [])
                while known:
                    if place in known[-1].ends:
                        return known[-1]
                    known.pop()  # it has gone on from there
        return None

    def _end(self, call: _Call, path: list[int], chain: _Chain) -> frozenset[int]:
        """Note where a chain ends with a call."""
        if not path:
            return frozenset()
        end = path[-1]
        scopes: set[tuple[str | None, int]] = {(call.trace, end)}
        if call.conversation:
            scopes.add((None, end))
        if call.answer:
            scopes.add((None, self._path(call.answer, end)[-1]))
        for scope in scopes:
            self._ends.setdefault(scope, []).append(chain)
        return frozenset(place for _, place in scopes)


def _conversations(source: Source) -> list[ForeignConversation]:
    """Read the conversations of an export, in the order they were begun.

    Spans without recorded messages are passed over: content is recorded only where it was asked for.

    Raises:
        FormatError: No span has recorded messages, or one cannot be read.
    """
    found = [call for span in _spans(source) if (call := _call_of(span)) is not None]
    if not found:
        exports = [source] if isinstance(source, Mapping) else source
        if any(key in one for one in exports for key in _LOGS):
            raise FormatError(f"logs of OTLP ({_LOGS[0]!r}) are not read: export spans, with {_INPUT!r}")
        raise FormatError(f"no span has {_INPUT!r}: instrumentations record messages only if you enable it")
    chains = _Chains()
    for call in sorted(found, key=lambda one: one.begun or 0.0):
        chains.add(call)
    names = _names(chains.all)
    return [_conversation(chain, name) for chain, name in zip(chains.all, names, strict=True)]


def _names(chains: list[_Chain]) -> list[str]:
    """Name conversations by their ids, or their traces; two of one name get numbers."""
    firsts = [chain.calls[0] for chain in chains]
    if len(firsts) == 1:
        return [firsts[0].conversation]
    plain = [first.conversation or first.trace for first in firsts]
    counts, seen = Counter(plain), Counter[str]()
    names = list[str]()
    for name in plain:
        seen[name] += 1
        names.append(" ".join(filter(None, (name, str(seen[name])))) if counts[name] > 1 else name)
    return names


def _conversation(chain: _Chain, name: str) -> ForeignConversation:
    longest = chain.longest
    body: Dict = {"messages": [*longest.messages, *longest.answer]}
    if longest.model is not None:
        body["model"] = longest.model
    if longest.tools:
        body["tools"] = longest.tools
    ends = _ends_of(longest.messages)
    return ForeignConversation(
        program=TELEMETRY,
        name=name,
        format="openai_chat",
        body=body,
        times=_times(chain),
        bills=tuple(
            Bill(at=ends[len(_without_system(one.messages))], usage=one.usage, model=one.model)
            for one in chain.calls
            if one.usage is not None
        ),
        calls=tuple(
            ForeignCall(messages=one.messages, tools=one.tools or None, time=one.begun, cold=one.cold)
            for one in chain.calls
        ),
        notes=_notes_of(longest.unread),
    )


def _ends_of(messages: list[Dict]) -> list[int]:
    """Say how many messages there are, for each count of those of no system."""
    ends = [at for at, one in enumerate(messages) if one["role"] != "system"]
    return [*ends, len(messages)]


def _times(chain: _Chain) -> tuple[float | None, ...]:
    """Say when each message was there: what a call adds, when it was made; an answer, when it was given."""
    first, last = chain.calls[0], chain.longest
    if all(one.begun is None for one in chain.calls):
        return ()
    times: list[float | None] = [first.begun] * len(first.messages)
    before = first
    for call in chain.calls[1:]:
        added = len(call.messages) - len(times)
        times += [before.ended or call.begun] * min(1, added) + [call.begun] * (added - 1)
        before = call if added >= 0 else before
    return (*times[: len(last.messages)], *(last.ended for _ in last.answer))


def _call_of(span: Mapping[str, Any]) -> _Call | None:
    """Read a span; None if it is of no call, or holds no messages."""
    held = _attributes(span)
    if str(held.get("gen_ai.operation.name")) in _OF_AGENTS:
        return None
    unread = Counter[str]()
    if _INPUT in held:
        messages = [*_system(held.get(_SYSTEM)), *messages_of(held[_INPUT], unread)]
        answer = messages_of(held[_OUTPUT], Counter()) if _OUTPUT in held else []
        tools = _tools(held.get(_TOOLS))
    elif _VERCEL in held:
        sent = {"messages": _plain(held[_VERCEL]), "tools": _tools(held.get("ai.prompt.tools"))}
        body = vercel.READER.read(sent)[0].body
        messages, answer, tools = body["messages"], _vercel_answer(held), body.get("tools", [])
    else:
        messages, answer, tools = _flat(held)
    if not messages:
        return None
    context = span.get("context")
    owner = context if isinstance(context, Mapping) else span
    trace = next((owner[key] for key in ("traceId", "trace_id") if key in owner), "")
    usage, cold = _bill_of(held)
    return _Call(
        messages=messages,
        answer=answer,
        tools=tools,
        conversation=str(_first(held, _CONVERSATION) or ""),
        trace=str(trace),
        model=model if isinstance(model := _first(held, _MODELS), str) else None,
        usage=usage,
        cold=cold,
        begun=_seconds(span, _BEGAN),
        ended=_seconds(span, _ENDED),
        unread=unread,
    )


def _vercel_answer(held: Mapping[str, Any]) -> list[Dict]:
    """Read what a span of the Vercel AI SDK says of the answer: a text, and calls whose input is JSON."""
    said = held.get("ai.response.text")
    parts = [chat.text(said)] if isinstance(said, str) and said else []
    calls = [
        chat.call(one.get("toolCallId"), one.get("toolName"), one.get("input", one.get("args")))
        for one in mappings(_plain(held.get("ai.response.toolCalls")))
    ]
    return [chat.message("assistant", parts, calls)] if parts or calls else []


def _first(held: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((held[key] for key in keys if held.get(key) is not None), None)


def _bill_of(held: Mapping[str, Any]) -> tuple[Dict | None, bool | None]:
    """Write the bill as OpenAI's Responses do, and say whether the cache held nothing; None: not recorded.

    What was read from a cache is part of the input.
    """
    usage: Dict | None = None
    keys = next((pair for pair in _BILLED if held.get(pair[0]) is not None), None)
    if keys is not None:
        usage = {
            "input_tokens": _whole(held[keys[0]], keys[0]),
            "output_tokens": _whole(held.get(keys[1]) or 0, keys[1]),
        }
    read = _first(held, _READ)
    if read is None:
        return usage, None
    cached = _whole(read, "what was read from the cache")
    if usage is not None:
        usage["input_tokens_details"] = {"cached_tokens": cached}
    return usage, cached == 0


def _flat(held: Mapping[str, Any]) -> tuple[list[Dict], list[Dict], list[Dict]]:
    """Read what was sent, answered and offered, where each value has a key of its own."""
    for sent, answered in _FLAT:
        messages = [_flat_message(one) for one in _entries(held, sent)]
        if messages:
            tools = [_tool(_plain(_at(one, "tool", "json_schema"))) for one in _entries(held, "llm.tools.")]
            tools += [_tool(one) for one in _entries(held, "llm.request.functions.")]
            return messages, [_flat_message(one) for one in _entries(held, answered)], tools
    return [], [], []


def _entries(held: Mapping[str, Any], prefix: str) -> list[Any]:
    """Grow the mappings that dotted keys spell; those of numbers are lists, in their order."""
    root: Dict = {}
    for key, value in held.items():
        if key.startswith(prefix):
            *path, last = key.removeprefix(prefix).split(".")
            place = root
            for name in path:
                inner = place.setdefault(name, {})
                place = inner if isinstance(inner, dict) else {}
            place[last] = value
    grown = _in_order(root)
    return grown if isinstance(grown, list) else []


def _in_order(grown: Any) -> Any:
    if not isinstance(grown, dict):
        return grown
    if grown and all(name.isdecimal() for name in grown):
        return [_in_order(grown[name]) for name in sorted(grown, key=int)]
    return {name: _in_order(value) for name, value in grown.items()}


def _at(value: Any, *keys: str) -> Any:
    """Return what is under keys, one in another; None if nothing is."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _flat_message(one: Any) -> Dict:
    held = _at(one, "message") or one
    parts, calls = list[Dict](), list[Dict]()
    for entry in mappings(_at(held, "contents")):
        content = _at(entry, "message_content") or entry
        image = _at(content, "image", "image", "url")
        is_image = isinstance(image, str)
        parts.append(
            chat.media("image", address=image) if is_image else chat.text(_at(content, "text") or "")
        )
    if not parts and (content := _at(held, "content")):
        parts = [chat.text(content)]
    role = str(_at(held, "role") or "assistant")
    if role == "tool":
        return chat.result(_at(held, "tool_call_id"), chat.content_of_parts(parts))
    for entry in mappings(_at(held, "tool_calls")):
        called = _at(entry, "tool_call") or entry
        function = _at(called, "function") or called
        calls.append(chat.call(_at(called, "id"), _at(function, "name"), _at(function, "arguments")))
    return chat.message(role, parts, calls)


def _spans(source: Any) -> Iterator[Mapping[str, Any]]:
    """List the spans of an export, or of several."""
    if not isinstance(source, Mapping):
        for one in mappings(source):
            yield from _spans(one)
    elif "attributes" in source and not any(key in source for key in _NESTED):
        yield source
    else:
        for key in _NESTED:
            yield from _spans(source.get(key))


_NESTED = ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans")


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """Read attributes: a mapping, or OTLP's list of keys and values; those of events, too."""
    found: dict[str, Any] = {}
    for owner in (span, *mappings(span.get("events"))):
        given = owner.get("attributes")
        if isinstance(given, Mapping):
            found.update({str(key): value for key, value in given.items()})
        else:
            found.update(_pairs(given))
    return found


def _pairs(listed: Any) -> dict[str, Any]:
    """Read OTLP's list of keys and values."""
    return {str(one.get("key")): _value(one.get("value")) for one in mappings(listed)}


def _value(value: Any) -> Any:
    """Take a value out of OTLP's wrapping."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(held := value.get("arrayValue"), Mapping):
        listed = held.get("values")
        return [_value(one) for one in listed] if isinstance(listed, list | tuple) else []
    if isinstance(held := value.get("kvlistValue"), Mapping):
        return _pairs(held.get("values"))
    if "intValue" in value:
        return _whole(value["intValue"], "intValue")
    return next(iter(value.values()), None)


def _whole(value: Any, name: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"{name} must be a whole number, not {short_repr(value)}") from error


_BEGAN = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
_ENDED = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")


def _seconds(span: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    """Read a time of a span: nanoseconds since 1970, or a date."""
    for key in keys:
        value = span.get(key)
        if isinstance(value, str) and not value.isdigit():
            try:
                return datetime.fromisoformat(value).timestamp()
            except (ValueError, OverflowError, OSError) as error:
                raise FormatError(f"{key} of a span must be a time, not {value!r:.40}") from error
        if value:
            try:
                return _whole(value, key) / 1e9
            except OverflowError as error:
                raise FormatError(f"{key} of a span must be a time, not {value!r:.40}") from error
    return None


READER = Reader(owns=_owns, read=_read, by_line=True)
