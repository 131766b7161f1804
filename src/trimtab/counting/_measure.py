"""A count of one request with its parts, and how far it may be from the bill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab._grouping import format_of
from trimtab.counting._checks import counter_name
from trimtab.counting._margin import known_margin
from trimtab.counting._media import is_seen, media_tokens
from trimtab.counting._schemas import with_functions
from trimtab.counting._sizes import Fixed, Shares, check_counter, sizes_for
from trimtab.counting._text import TextCounter
from trimtab.formats import Format, Pieces
from trimtab.formats._base import Dict, entry_of
from trimtab.models import MediaRule

__all__ = ["Count", "count_of_request", "read_given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The tokens of a request, and how far they may be from the bill.

    The bill is within `margin_tokens` of `tokens`, either way, for 95 % of requests. What nobody knows
    is None.
    """

    tokens: int
    exact: bool
    """Whether the model's own tokenizer and framing were used, on text alone."""
    margin_tokens: int | None
    """How far the bill may be off, either way; None where nobody measured."""
    messages_tokens: int | None
    """Of the messages with their framing, media apart; None for a black box."""
    media_tokens: int | None
    """Of images, sounds, videos and files."""
    system_tokens: int | None
    """Of system text beside the messages."""
    tools_tokens: int | None
    output_schema_tokens: int | None
    framing_tokens: int | None
    """Of the request itself, whatever it holds."""
    counter: str
    """Who counted."""
    format: str
    """The wire form the messages were read in."""
    sizes: tuple[int, ...] | None = None
    """Tokens of each message, media included; None for a black box."""

    @property
    def most_tokens(self) -> int | None:
        """What the bill hardly exceeds; None without a margin."""
        return None if self.margin_tokens is None else self.tokens + self.margin_tokens


def read_given(
    given: Any, /, *, format: str | Format, system: Any, tools: Any
) -> tuple[Format, list[Dict], Fixed]:
    """Read messages or a body: its wire form, its messages as dicts, and what stands beside them."""
    form = format_of(given, format)
    extra: Any = None
    messages: Sequence[Any] = given if isinstance(given, list | tuple) else []
    if isinstance(given, Mapping):
        request = form.read_request(given)
        messages, extra = request.messages, request.extra
        system = request.system if system is None else system
        tools = request.tools if tools is None else tools
    entries = [entry_of(messages, index) for index in range(len(messages))]
    if system is not None and form.rules.system_in_messages:
        entries.insert(0, form.message("system", [system] if isinstance(system, str) else list(system)))
        system = None
    return form, entries, Fixed(system, tools, extra)


def count_of_request(
    given: Any, counter: Any, /, *, format: str | Format = "auto", system: Any = None, tools: Any = None
) -> Count:
    """Count messages or a whole body by a counter; see `trimtab.counting.measure`."""
    form, entries, fixed = read_given(given, format=format, system=system, tools=tools)
    counter = check_counter(counter)
    if isinstance(counter, TextCounter):
        return _of_parts(counter.with_format(form), form, entries, fixed)
    if hasattr(counter, "with_format"):
        counter = counter.with_format(form)
    return _of_whole(counter, form, entries, fixed)


def _of_whole(counter: Any, form: Format, entries: list[Dict], fixed: Fixed) -> Count:
    """Count by a counter of another kind: by its sizes if it has any, else as a black box."""
    has_system = bool(fixed.system) or bool(entries and form.kind(entries[0]) == "system")
    found = sizes_for(counter, entries, fixed, has_system=has_system)
    parts = found.fixed_parts
    sizes: tuple[int, ...] | None = None
    if isinstance(found, Shares):
        tokens = found.whole(entries)
    else:
        sizes = tuple(found.of(index) for index in range(len(entries)))
        tokens = found.fixed_tokens + sum(sizes)
    apart = (parts.system_tokens, parts.tools_tokens)
    unseen = any(not is_seen(medium, MediaRule()) for entry in entries for medium in form.pieces(entry).media)
    exact = bool(getattr(counter, "exact", False)) and not unseen
    known = sizes is not None and None not in apart
    return Count(
        tokens=tokens,
        exact=exact,
        margin_tokens=None if unseen else known_margin(counter, tokens),
        messages_tokens=None if sizes is None else sum(sizes),
        media_tokens=None,
        system_tokens=parts.system_tokens,
        tools_tokens=parts.tools_tokens,
        output_schema_tokens=None,
        framing_tokens=found.fixed_tokens - sum(part or 0 for part in apart) if known else None,
        counter=counter_name(counter),
        format=form.name,
        sizes=sizes,
    )


def _of_parts(counter: TextCounter, form: Format, entries: list[Dict], fixed: Fixed) -> Count:
    pieces = [form.pieces(entry) for entry in entries]
    sizes = [counter.count_message(entry) for entry in entries]
    for index, tokens in _finished_thoughts(counter, form, entries, pieces):
        sizes[index] = max(0, sizes[index] - tokens)
    media = [medium for one in pieces for medium in one.media]
    of_media = sum(media_tokens(medium, counter.media) for medium in media)
    tools, extra = with_functions(fixed.tools, fixed.extra)
    schema = {key: value for key, value in (extra or {}).items() if key == "response_format"}
    rest = {key: value for key, value in (extra or {}).items() if key != "response_format"}
    has_system = bool(fixed.system) or bool(entries and form.kind(entries[0]) == "system")

    def beside(system: Any, tools: Any, extra: Mapping[str, Any]) -> int:
        return counter.fixed_tokens(system, tools, has_system=has_system, extra=extra or None)

    framing = beside(None, None, {})
    of_system = beside(fixed.system, None, {}) - framing
    of_tools = beside(fixed.system, tools, rest) - beside(fixed.system, None, {})
    whole = beside(fixed.system, tools, {**rest, **schema})
    of_schema = whole - framing - of_system - of_tools
    tokens = sum(sizes) + whole
    plain = not (tools or schema or media or any(map(_is_more_than_text, pieces)))
    exact = counter.exact and plain
    margin = 0 if exact else counter.margin_tokens(tokens, is_plain=plain)
    unseen = sum(media_tokens(one, counter.media) for one in media if not is_seen(one, counter.media))
    unseen += counter.unsure_tokens(tools)
    return Count(
        tokens=tokens,
        exact=exact,
        margin_tokens=None if margin is None else margin + unseen,
        messages_tokens=sum(sizes) - of_media,
        media_tokens=of_media,
        system_tokens=of_system,
        tools_tokens=of_tools,
        output_schema_tokens=of_schema,
        framing_tokens=framing,
        counter=counter.name,
        format=form.name,
        sizes=tuple(sizes),
    )


def _is_more_than_text(pieces: Pieces) -> bool:
    found = (pieces.calls, pieces.results, pieces.result_id, pieces.thoughts, pieces.tools, pieces.other)
    return any(found) or pieces.sealed_chars > 0


def _finished_thoughts(
    counter: TextCounter, form: Format, entries: list[Dict], pieces: list[Pieces]
) -> list[tuple[int, int]]:
    """List (index, tokens) of reasoning before the newest user message, which is charged no more.

    A counter of single messages cannot know, and takes the most; the whole request says.
    """
    last = max((at for at, entry in enumerate(entries) if form.kind(entry) == "user"), default=0)
    charged = [(at, counter.thought_tokens(pieces[at])) for at in range(last)]
    return [(at, tokens) for at, tokens in charged if tokens]
