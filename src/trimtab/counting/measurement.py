"""A count of one request with its parts, and how far it may be from the bill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from trimtab._shared.checks import check_messages
from trimtab.conversation.units import format_of, refuse_foreign
from trimtab.counting.checks import counter_name
from trimtab.counting.door import as_counter
from trimtab.counting.margin import known_margin, unsure_of
from trimtab.counting.sizes import Fixed, Shares, Sizes, fixed_tokens_of, for_whole, sizes_for
from trimtab.counting.texts import TextCounter
from trimtab.counting.unknown import Unknown, is_known, model_notes, unknown_in
from trimtab.formats import Format, Pieces, Request
from trimtab.formats.base import Dict, entry_of

__all__ = ["Count", "count_of_request", "read_given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The tokens of a request, and how far they may be from the bill.

    The bill is within `margin_tokens` of `tokens`, either way, for 95 % of requests. What nobody knows
    is None.
    """

    tokens: int
    exact: bool
    """Whether the model's tokenizer is its own, and how all this request holds is charged is known and seen.

    With OpenAI that is text alone: what frames tools, calls and media there is not public.
    """
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
    unknown: tuple[str, ...] = ()
    """What the request holds or names whose cost nobody can know from it, a phrase each."""
    notes: tuple[str, ...] = ()
    """What else the report of a fit would say of the count, a sentence each: that the model is not known."""

    @property
    def most_tokens(self) -> int | None:
        """What the bill hardly exceeds; None without a margin."""
        return None if self.margin_tokens is None else self.tokens + self.margin_tokens


class Given(NamedTuple):
    """What is to be counted, read."""

    form: Format
    entries: list[Dict]
    fixed: Fixed
    request: Request | None
    """The body, if it is one: what it does not hold is not sent."""


def read_given(given: Any, /, *, format: str | Format, model: str | None, system: Any, tools: Any) -> Given:
    """Read messages or a body: its wire form, its messages as dicts, and what stands beside them.

    Raises:
        ConfigurationError: It is neither.
        FormatError: An entry is no message.
    """
    check_messages(given)
    form = format_of(given, format, model)
    extra: Any = None
    request: Request | None = None
    messages: Any = given
    if isinstance(given, Mapping):
        request = form.read_request(given)
        messages, extra = request.messages, request.extra
        system = request.system if system is None else system
        tools = request.tools if tools is None else tools
    entries = [entry_of(messages, index) for index in range(len(messages))]
    refuse_foreign(entries, form.name, listed=True)
    if system is not None and form.rules.system_in_messages:
        entries.insert(0, form.message("system", [system] if isinstance(system, str) else list(system)))
        system = None
    return Given(form, entries, Fixed(system, tools, extra), request)


def count_of_request(
    given: Any,
    counter: Any,
    /,
    *,
    format: str | Format = "auto",
    model: str | None = None,
    system: Any = None,
    tools: Any = None,
) -> Count:
    """Count messages or a whole body by a counter; see `trimtab.counting.measure`."""
    form, entries, fixed, request = read_given(given, format=format, model=model, system=system, tools=tools)
    counter = as_counter(counter)
    notes = model_notes(model, counter)
    if hasattr(counter, "with_format"):
        counter = counter.with_format(form)
    if request is not None:
        counter = for_whole(counter, fixed.tools)
    leads_system = bool(entries) and form.kind(entries[0]) == "system"
    found = sizes_for(counter, entries, fixed)
    pieces = [form.pieces(entry) for entry in entries]
    unknown = unknown_in(counter, fixed.tools, pieces, request)
    if isinstance(found, Shares):
        count = _of_whole(counter, form, found.whole(entries), fixed, pieces, unknown)
    else:
        count = _of_parts(counter, form, found, fixed, pieces, unknown, leads_system=leads_system)
    return replace(count, notes=notes) if notes else count


def _of_whole(
    counter: Any, form: Format, tokens: int, fixed: Fixed, pieces: list[Pieces], unknown: Unknown
) -> Count:
    """Say what a black box said, and no more."""
    unsure = unsure_of(counter, fixed.tools, pieces)
    margin = known_margin(counter, tokens) if unknown.is_bounded else None
    return Count(
        tokens=tokens,
        exact=getattr(counter, "exact", False) is True and unsure == 0 and not unknown.phrases,
        margin_tokens=None if margin is None or unsure is None else margin + unsure,
        unknown=unknown.phrases,
        messages_tokens=None,
        media_tokens=None,
        system_tokens=None,
        tools_tokens=None,
        output_schema_tokens=None,
        framing_tokens=None,
        counter=counter_name(counter),
        format=form.name,
    )


def _of_parts(
    counter: Any,
    form: Format,
    found: Sizes,
    fixed: Fixed,
    pieces: list[Pieces],
    unknown: Unknown,
    *,
    leads_system: bool,
) -> Count:
    sizes = [found.of(index) for index in range(len(found.messages))]
    if isinstance(counter, TextCounter):
        for index, tokens in _finished_thoughts(counter, form, found.messages, pieces):
            sizes[index] = max(0, sizes[index] - tokens)
    price = getattr(counter, "media_tokens", None)
    media = [medium for one in pieces for medium in one.media]
    of_media = None if price is None else sum(map(price, media))
    beside = _beside(counter, fixed, has_system=leads_system or bool(fixed.system))
    tokens = sum(sizes) + found.fixed_tokens(leads_system)
    unsure = unsure_of(counter, fixed.tools, pieces)
    known = is_known(counter, pieces)
    exact = getattr(counter, "exact", False) is True and unsure == 0 and not unknown.phrases and known
    if isinstance(counter, TextCounter):
        plain = known and not (fixed.tools or (fixed.extra or {}).get("response_format"))
        exact = exact and plain
        margin = 0 if exact else counter.margin_tokens(tokens, is_plain=plain)
    else:
        margin = known_margin(counter, tokens) if known else None
    margin = margin if unknown.is_bounded else None
    return Count(
        tokens=tokens,
        exact=exact,
        margin_tokens=None if margin is None or unsure is None else margin + unsure,
        messages_tokens=sum(sizes) - (of_media or 0),
        media_tokens=of_media,
        system_tokens=beside.system,
        tools_tokens=beside.tools,
        output_schema_tokens=beside.output_schema,
        framing_tokens=beside.framing,
        counter=counter_name(counter),
        format=form.name,
        sizes=tuple(sizes),
        unknown=unknown.phrases,
    )


class _Beside(NamedTuple):
    """What a request costs beside its messages, in tokens."""

    framing: int
    system: int
    tools: int
    output_schema: int


def _beside(counter: Any, fixed: Fixed, *, has_system: bool) -> _Beside:
    """Tell the parts apart, by what each adds to those before it."""
    without_schema = {key: value for key, value in (fixed.extra or {}).items() if key != "response_format"}
    steps = (Fixed(), Fixed(fixed.system), Fixed(fixed.system, fixed.tools, without_schema), fixed)
    passed = [fixed_tokens_of(counter, one, has_system) for one in steps]
    return _Beside(passed[0], *(after - before for before, after in pairwise(passed)))


def _finished_thoughts(
    counter: TextCounter, form: Format, entries: list[Dict], pieces: list[Pieces]
) -> list[tuple[int, int]]:
    """List (index, tokens) of reasoning before the newest user message, where that is charged no more.

    A counter of single messages cannot know, and takes the most; the whole request says.
    """
    if counter.framing.past_thoughts_charged:
        return []
    last = max((at for at, entry in enumerate(entries) if form.kind(entry) == "user"), default=0)
    charged = [(at, counter.thought_tokens(pieces[at])) for at in range(last)]
    return [(at, tokens) for at, tokens in charged if tokens]
