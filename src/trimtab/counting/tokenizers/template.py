"""The counter of a model behind a chat template: a message costs what it adds to a rendered request.

First messages as templates read them, and small requests to try one with; then the jinja2 text by which a
server writes a conversation before it splits it; then the counter. Rendered as Hugging Face's `transformers`
renders (5.23, utils/chat_template_utils.py): sandboxed, blocks trimmed, with `raise_exception`,
`strftime_now`, loop controls and the `generation` block, which writes what it holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple

from trimtab._shared.lazy import package_of
from trimtab.counting.base import AdditiveCounter, CountRequest, TextFunction
from trimtab.counting.cache import TextCache
from trimtab.counting.media import media_tokens
from trimtab.counting.schemas import function_tool, split_beside, system_texts
from trimtab.errors import ConfigurationError, CountingError
from trimtab.formats import Format, Media, get_format
from trimtab.formats.values import as_dict, compact_json, mapping_of
from trimtab.models import MediaRule

Entry = dict[str, Any]
"""A message of Chat Completions with string content; arguments of calls are text."""

Entries = list[Entry]

Render = Callable[[Entries, list[object] | None, bool], str]
"""Writes messages and tools as one text; True adds the beginning of the answer."""


CALL_ID = "call00000"
"""An id for calls of ours: nine letters and digits, which is all that some templates take."""

_ARGUMENT = "probe"
"""An argument of calls of ours, to see whether a template writes arguments."""

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Where messages of open models hold what was thought; templates read one of them."""


class Read(NamedTuple):
    """A message as a template reads it, and what of it no template has a place for."""

    entry: Entry
    other: tuple[str, ...]
    media: tuple[Media, ...]
    more_results: int
    """Results in the message beside the one it is read as."""


def read_entry(message: Any, format: Format, /) -> Read:
    """Read a message of any wire form.

    Text parts are joined by line ends, as vLLM does for templates that take strings
    (vllm/entrypoints/chat_utils.py, 2026-11).
    """
    message = mapping_of(message)
    reasoning = {key: message[key] for key in _REASONING_KEYS if isinstance(message.get(key), str)}
    if reasoning:
        message = {key: value for key, value in message.items() if key not in reasoning}
    pieces = format.pieces(message)
    kind = format.kind(message)
    entry: Entry = {"role": pieces.role if kind == "other" else kind, "content": "\n".join(pieces.texts)}
    if pieces.name:
        entry["name"] = pieces.name
    if pieces.thoughts and not reasoning:
        reasoning = {"reasoning_content": "\n".join(pieces.thoughts)}
    if reasoning:
        # servers give a template both names, whichever the client wrote
        entry.update({"reasoning_content": next(iter(reasoning.values())), **reasoning})
    if pieces.calls:
        entry["tool_calls"] = _calls(pieces.calls, list(format.tool_names(message)))
    if kind == "tool":
        entry["tool_call_id"] = pieces.result_id or CALL_ID
    more_results = max(0, pieces.results - (kind == "tool"))
    return Read(entry, (*pieces.other, *map(compact_json, pieces.tools)), pieces.media, more_results)


def _calls(calls: Sequence[tuple[str, str]], ids: Sequence[str]) -> list[Entry]:
    named = ids if len(ids) == len(calls) else [f"call{at:05}" for at in range(len(calls))]
    return [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, (name, arguments) in zip(named, calls, strict=True)
    ]


class Shape(NamedTuple):
    """What a template takes messages to look like, where templates differ."""

    parts: bool = False
    """Content is a list of parts; else a text."""
    text_arguments: bool = False
    """Arguments of calls are JSON as text; else mappings."""
    null_content: bool = False
    """A message that only calls has null for content; else an empty text."""

    def apply(self, entries: Sequence[Entry], /) -> Entries:
        """Return entries as the template takes them."""
        return [self._apply_to(entry) for entry in entries]

    def _apply_to(self, entry: Entry) -> Entry:
        if self.parts:
            part = {"type": "text", "text": entry["content"]}
            if entry["role"] == "tool":
                part["name"] = entry.get("name", "")
            entry = {**entry, "content": [part]}
        if "tool_calls" not in entry:
            return entry
        entry = dict(entry)
        if self.null_content and entry["content"] == "":
            entry["content"] = None
        if not self.text_arguments:
            entry["tool_calls"] = [_with_mapping(one) for one in entry["tool_calls"]]
        return entry


def shape_for(render: Callable[[Entries], str], /) -> Shape:
    """Find out by trial what a template takes; `render` raises CountingError where it refuses.

    Text is tried before parts, mappings before text for arguments, and empty before null content.
    Taken is what it writes the arguments of a call with, and not as Python does.
    """
    shape = Shape()
    for parts in (False, True):
        if _render_or_empty(render, [USER], Shape(parts=parts)):
            shape = Shape(parts=parts)
            break
    turn = [USER, call(CALL_ID), result()]
    for text_arguments, null_content in ((False, False), (False, True), (True, False), (True, True)):
        tried = Shape(shape.parts, text_arguments, null_content)
        written = _render_or_empty(render, turn, tried)
        if _ARGUMENT in written and "{'" not in written:
            return tried
    return shape


def _render_or_empty(render: Callable[[Entries], str], entries: Entries, shape: Shape) -> str:
    try:
        return render(shape.apply(entries))
    except CountingError:
        return ""


def _with_mapping(one: Entry) -> Entry:
    function = dict(one["function"])
    with suppress(ValueError, RecursionError):  # no JSON: the template gets the text as the model wrote it
        function["arguments"] = json.loads(function["arguments"] or "{}")
    return {**one, "function": function}


def template_tools(tools: object, /) -> list[object]:
    """List tools as templates are given them; what is no function stays as it is."""
    listed = tools if isinstance(tools, list | tuple) else [tools] if tools else []
    return [function_tool(tool) or as_dict(tool) or tool for tool in listed]


def texts_in(value: object, /) -> Iterator[str]:
    """List the texts a message or a schema holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def call(*ids: str) -> Entry:
    """Make a message with calls."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": _calls([("f", f'{{"a": "{_ARGUMENT}"}}')] * len(ids), ids),
    }


def result(id: str = CALL_ID, name: str = "f") -> Entry:
    """Make the result of a call."""
    return {"role": "tool", "content": "x", "tool_call_id": id, "name": name}


SYSTEM: Entry = {"role": "system", "content": "x"}
USER: Entry = {"role": "user", "content": "x"}
ANSWER: Entry = {"role": "assistant", "content": "x"}
_FUNCTION = {"name": "f", "description": "x", "parameters": {"type": "object", "properties": {}}}
TOOLS: list[object] = [{"type": "function", "function": _FUNCTION}]

_IDS = (CALL_ID, "call00001")
_TURN = [USER, call(CALL_ID), result()]
PROBES: tuple[Entries, ...] = (
    [USER],
    [SYSTEM, USER],
    [USER, ANSWER, USER],
    [SYSTEM, USER, ANSWER, USER, ANSWER, USER],
    _TURN,
    [SYSTEM, *_TURN, call(CALL_ID), result(), ANSWER, USER],
    [SYSTEM, *_TURN, ANSWER, *_TURN, call(CALL_ID), result()],
    [SYSTEM, USER, call(*_IDS), *map(result, _IDS), ANSWER, USER],
)
"""Requests of every shape, with which sums are compared when a counter is made."""


def template_renderer(source: Any, /, *, name: str, variables: Mapping[str, Any]) -> Render:
    """Compile a chat template, or one of several.

    Args:
        source: A template, a mapping of names to templates, or a list of `{"name": ..., "template": ...}`:
            the one named "tool_use" is taken, since a size may not depend on whether tools are given,
            else "default".
        name: Whom errors name.
        variables: What else the template may read: `bos_token`, `enable_thinking` and the like.

    Raises:
        ConfigurationError: It is no template, or does not compile.
        MissingExtraError: jinja2 is not installed.
    """
    by_name = _templates_by_name(source, name)
    first = next(iter(by_name.values()))
    return _Template(by_name.get("tool_use") or by_name.get("default") or first, name, variables)


class _Template:
    """A compiled chat template; travels to another process as its text."""

    def __init__(self, text: str, name: str, variables: Mapping[str, Any]) -> None:
        package = package_of("tokenizers", package="jinja2", needed_by="a chat template")
        try:
            self._template = _environment().from_string(text)
        except package.TemplateError as error:
            raise ConfigurationError(
                f"the chat template of {name} is not a valid template: {error}"
            ) from error
        self._made_of = (text, name, variables)

    def __reduce__(self) -> tuple[object, ...]:
        return _Template, self._made_of

    def __call__(self, entries: Entries, tools: list[object] | None, answer_begins: bool) -> str:
        _, name, variables = self._made_of
        given: dict[str, Any] = {"tools": tools, "documents": None, **variables}
        try:
            return str(self._template.render(messages=entries, add_generation_prompt=answer_begins, **given))
        except Exception as error:  # a template may call anything on anything
            raise refusal_of(name, error) from error


def refusal_of(name: str, error: Exception) -> CountingError:
    """Make our error of what a template said, in its words."""
    return CountingError(f"the chat template of {name} refused the messages: {error!s:.300}", counter=name)


def _templates_by_name(source: Any, name: str) -> dict[str, str]:
    if isinstance(source, str):
        return {"default": source}
    if isinstance(source, list):
        pairs = [(entry.get("name"), entry.get("template")) for entry in source if isinstance(entry, Mapping)]
        source = dict(pairs) if len(pairs) == len(source) else None
    if not isinstance(source, Mapping) or not source or not all(isinstance(t, str) for t in source.values()):
        raise ConfigurationError(
            f"{name}: a chat template must be a text, or several by name"
            f' ({{"default": ..., "tool_use": ...}}), not {source!r:.80}'
        )
    return {str(key): text for key, text in source.items()}


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """Writes what a `generation` block holds; trainers mark answers with it."""

        # jinja2 declares it of instances, although it reads it of the class
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )

    def raise_exception(message: object) -> None:
        raise TemplateError(str(message))

    def strftime_now(format: str) -> str:
        return datetime.now().astimezone().strftime(format)

    environment.filters["tojson"] = _to_json
    names: dict[str, Any] = environment.globals
    names.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return environment


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON without jinja2's escapes for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class TemplateCounter(AdditiveCounter):
    """Counts as a server does that renders a chat template and splits the text.

    A message costs the difference between a small request rendered with and without it. Shared parts
    (tools, default system text, the start of the answer) are in the fixed part. A new counter compares its
    sums with whole rendered requests of every shape, and adds any difference to the fixed part, so sums are
    not below the whole for these shapes. `count_whole` renders your request.

    If a template treats a message by what follows it, for example when it drops the reasoning of older turns,
    the message costs the most possible. Special tokens in a user's text are one token for most servers, which
    let them act, and text for others; they cost the larger number.

    Args:
        render: Renders a request as the server's chat template does.
        count_served: Returns the tokens of a rendered text, with special tokens read as such.
        name: Its name in reports.
        special_tokens: The special tokens of the tokenizer, as text.
        media: Charges for images, sound and files. None: `MediaRule()`.
        format: Name of the wire form of the messages; `fit` and `Context` set it themselves.
    """

    def __init__(
        self,
        render: Render,
        count_served: TextFunction,
        /,
        *,
        name: str,
        special_tokens: Iterable[str] = (),
        media: MediaRule | None = None,
        format: str | Format = "openai_chat",
    ) -> None:
        self.name = name
        self.media = MediaRule() if media is None else media
        self._render = render
        self._served = count_served
        self._format = get_format(format)
        found = sorted(filter(None, special_tokens), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, found))) if found else None
        self._made_of: dict[str, Any] = {"name": name, "special_tokens": found, "media": media}
        self._known: dict[str, int] = {}
        self._text = TextCache(lambda text: count_served(text) + self._surplus(text), name=name)
        self._sizes = TextCache(lambda key: self._size(json.loads(key)), name=name)
        self._fixed = TextCache(lambda key: self._fixed_part(*json.loads(key)), name=name)
        self._shape = shape_for(lambda entries: render(entries, None, False))
        self._correction_tokens = 0
        self._correction_tokens, self.spread_tokens = self._compare()
        self.exact = self.spread_tokens == 0

    def __reduce__(self) -> tuple[object, ...]:
        """Travel by what it is made of; the counts stay behind."""
        make = partial(type(self), **self._made_of, format=self._format)
        return make, (self._render, self._served)

    def __copy__(self) -> TemplateCounter:
        """Share the counts."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def clear(self) -> None:
        """Forget the remembered counts."""
        for cache in (self._text, self._sizes, self._fixed):
            cache.clear()

    def margin_tokens(self, tokens: int, /) -> int:
        """Return how far a count of this size may be off; it errs high.

        Source: 16 published templates, each with 64 windows of recorded tool chats (2026-11-22): never below
        the whole, above it by at most a token for the nine whose sums were exact, by 2.5 % for others.
        """
        return 1 if self.exact else 1 + tokens * 3 // 100

    def count_text(self, text: str, /) -> int:
        return self._text.young[text]

    def count_message(self, message: Any, /) -> int:
        found = read_entry(message, self._format)
        entry = found.entry
        if entry["role"] == "tool":
            # what the id and the name of a result cost is charged with its call
            entry |= {"tool_call_id": CALL_ID, "name": "f"}
        tokens = self._sizes.young[json.dumps(entry, ensure_ascii=False)]
        if found.more_results:
            tokens += found.more_results * self._size_of_ours(result())
        return tokens + self._beside(found.other, found.media)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count what a request is charged in addition to its messages.

        Output schemas cost nothing: servers enforce them but do not show them.
        """
        tools, _ = split_beside(tools, extra)
        texts = system_texts(system)
        key = compact_json(["\n".join(texts), template_tools(tools), has_system and not texts])
        return self._fixed.young[key]

    def count_whole(
        self,
        messages: Sequence[Any],
        /,
        *,
        system: Any = None,
        tools: Any = None,
        extra: Mapping[str, Any] | None = None,
        answer_begins: bool = True,
    ) -> int:
        """Render a whole request and count it: the server's charge, without media.

        It is slower than `count_request` and not a sum; use it to check the sum.

        Args:
            messages: The messages of the request.
            system: System text outside the messages.
            tools: Tool schemas.
            extra: Further keys of the request.
            answer_begins: Whether the beginning of an answer is counted, as a server writes it
                (`add_generation_prompt`). False for a conversation to train on.

        Raises:
            CountingError: The template refuses the request, in its words.
        """
        tools, _ = split_beside(tools, extra)
        found = [read_entry(message, self._format) for message in messages]
        texts = system_texts(system)
        leading = [{"role": "system", "content": "\n".join(texts)}] if texts else []
        whole = self._tokens(
            [*leading, *(one.entry for one in found)], template_tools(tools), answer_begins=answer_begins
        )
        return whole + sum(self._beside(one.other, one.media) for one in found)

    def _beside(self, other: Sequence[str], media: Sequence[Media]) -> int:
        """Count what templates have no place for."""
        return sum(map(self.count_text, other)) + sum(media_tokens(one, self.media) for one in media)

    def _surplus(self, value: object) -> int:
        """Count how much more the special tokens in texts cost where they are taken as text."""
        special = self._special
        if special is None:
            return 0
        return sum(
            max(0, self._served(token[: len(token) // 2]) + self._served(token[len(token) // 2 :]) - 1)
            for text in texts_in(value)
            for token in special.findall(text)
        )

    def _tokens(
        self, entries: Sequence[Entry], tools: list[object] | None = None, *, answer_begins: bool = False
    ) -> int:
        return self._served(self._render(self._shape.apply(entries), tools or None, answer_begins))

    def _base(self, *entries: Entry) -> int:
        """Count a request of ours, once."""
        key = json.dumps(entries)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._tokens(entries)
        return known

    def _size(self, entry: Entry) -> int:
        """Count what an entry adds to a request, and more for special tokens in it."""
        role = entry["role"]
        if role == "system":
            tokens = self._tokens([entry, USER]) - self._base(SYSTEM, USER) + self._system_tokens()
        elif role == "assistant":
            tokens = self._answer_tokens(entry)
        elif role == "tool":
            before = (USER, call(CALL_ID))
            tokens = self._tokens([*before, entry]) - self._base(*before)
        else:
            try:
                tokens = self._tokens([USER, entry]) - self._base(USER)
            except CountingError:
                # users and answers have to take turns here
                tokens = self._tokens([USER, ANSWER, entry]) - self._base(USER, ANSWER)
        return max(0, tokens) + self._surplus({key: entry[key] for key in entry if key != "role"})

    def _system_tokens(self) -> int:
        """Size of our system message: above that of the system text a template writes without one."""
        return max(0, self._base(SYSTEM, USER) - self._base(USER))

    def _answer_tokens(self, entry: Entry) -> int:
        """Count an answer with what stands behind it: its results, a user's message, or nothing."""
        calls = entry.get("tool_calls", ())
        results = [result(one["id"], one["function"]["name"]) for one in calls]
        later = [*results, ANSWER, USER] if calls else [USER]
        ends = [(later, sum(map(self._size_of_ours, later[len(results) :])))]
        if calls or "reasoning_content" in entry or "</think>" in entry["content"]:
            # in the turn that goes on, more of it may be shown
            ends.append((results, 0))
        results_tokens = len(results) * self._size_of_ours(result()) if calls else 0
        found: list[int] = []
        refusal: CountingError | None = None
        for end, end_tokens in ends:
            try:
                found.append(self._tokens([USER, entry, *end]) - end_tokens)
            except CountingError as error:
                refusal = error
        if not found and refusal is not None:
            raise refusal
        return max(found) - results_tokens - self._base(USER)

    def _size_of_ours(self, entry: Entry) -> int:
        return self._sizes.young[json.dumps(entry, ensure_ascii=False)]

    def _fixed_part(self, system: str, tools: list[object], has_system: bool) -> int:
        entries: Entries = [USER]
        less_tokens = self._size_of_ours(USER)
        if system:
            entries.insert(0, {"role": "system", "content": system})
        elif has_system:
            entries.insert(0, SYSTEM)
            less_tokens += self._system_tokens()
        tokens = self._tokens(entries, tools, answer_begins=True) - less_tokens
        return max(0, tokens + self._correction_tokens) + self._surplus([system, tools])

    def _compare(self) -> tuple[int, int]:
        """Compare sums with requests rendered whole.

        Returns:
            How much sums are short at most, and by how much they differ among each other.
        """
        short = []
        for probe in PROBES:
            for tools in (None, TOOLS):
                try:
                    whole_tokens = self._tokens(probe, tools, answer_begins=True)
                    short.append(whole_tokens - self.count_request(CountRequest(probe, tools=tools)))
                except CountingError:
                    continue  # a shape that the template refuses costs nothing
        self._fixed.clear()
        if not short:
            self._tokens([USER], answer_begins=True)  # raises what it says
        return max(0, *short), max(short) - min(short)
