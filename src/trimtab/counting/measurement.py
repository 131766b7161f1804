"""A count of one request with its parts, how far it may be from the bill, and what of it nobody can know.

Whether the request is read as a whole or, in a fit, message by message: what is unknown of it is named here.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

from trimtab._shared.checks import check_messages, in_words
from trimtab.counting.base import AdditiveCounter, CounterLike, RequestCounter, counter_name
from trimtab.counting.door import as_counter
from trimtab.counting.features import features_of
from trimtab.counting.margin import cited_files, known_margin, known_over_margin, unsure_of
from trimtab.counting.schemas import provider_tools
from trimtab.counting.sizes import Fixed, Shares, Sizes, fixed_tokens_of, sizes_for
from trimtab.counting.texts import TextCounter
from trimtab.errors import UnknownNameError
from trimtab.formats import Format, Pieces, Request, format_of, leading_system, refuse_foreign
from trimtab.formats.values import Dict, entry_of
from trimtab.models import ModelFacts, facts_for, near_models


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The tokens of a request, and how far they may be from the bill.

    For 97 % of requests the bill is at most `margin_tokens` above `tokens` and at most `over_margin_tokens`
    below. A number that nobody knows is None.

    Args:
        tokens: Tokens of the whole request.
        exact: Whether the tokenizer is the model's, and each feature of the request was billed as counted.
        margin_tokens: How far the bill may be above the count; None if unknown.
        over_margin_tokens: How far the bill may be below the count; None if unknown.
        messages_tokens: Tokens of the messages with their framing, without media; None for a black box.
        media_tokens: Tokens of images, sounds, videos and files.
        system_tokens: Tokens of system text outside the messages.
        tools_tokens: Tool schemas.
        output_schema_tokens: Tokens of the output schema.
        framing_tokens: Tokens of the request itself, whatever it contains.
        counter: Who counted.
        format: The wire form in which the messages were read.
        sizes: Tokens of each message, including media; None for a black box.
        unknown: Parts of the request, and things it names, whose cost cannot be known; one phrase each.
        notes: Further notes on the count, as in the report of a fit, such as that the model is unknown.
    """

    tokens: int
    exact: bool
    """Whether the tokenizer is the model's, and each feature of the request was billed as counted."""
    margin_tokens: int | None
    """How far the bill may be above the count; None if unknown."""
    over_margin_tokens: int | None = None
    """How far the bill may be below the count; None if unknown."""
    messages_tokens: int | None = None
    """Tokens of the messages with their framing, without media; None for a black box."""
    media_tokens: int | None = None
    """Tokens of images, sounds, videos and files."""
    system_tokens: int | None = None
    """Tokens of system text outside the messages."""
    tools_tokens: int | None = None
    output_schema_tokens: int | None = None
    framing_tokens: int | None = None
    """Tokens of the request itself, whatever it contains."""
    counter: str
    """Who counted."""
    format: str
    """The wire form in which the messages were read."""
    sizes: tuple[int, ...] | None = None
    """Tokens of each message, including media; None for a black box."""
    unknown: tuple[str, ...] = ()
    """Parts of the request, and things it names, whose cost cannot be known; one phrase each."""
    notes: tuple[str, ...] = ()
    """Further notes on the count, as in the report of a fit, such as that the model is unknown.
    """

    @property
    def most_tokens(self) -> int | None:
        """The upper limit of the expected bill; None without a margin."""
        return None if self.margin_tokens is None else self.tokens + self.margin_tokens

    @property
    def least_tokens(self) -> int | None:
        """The lower limit of the expected bill; None without a margin."""
        return None if self.over_margin_tokens is None else self.tokens - self.over_margin_tokens


class Given(NamedTuple):
    """What is to be counted, read."""

    form: Format
    entries: list[Dict]
    fixed: Fixed
    request: Request | None
    """The body, if it is one: what it does not hold is not sent."""


def read_given(
    given: Any, /, *, format: str | Format, model: str | None, system: Any, tools: object
) -> Given:
    """Read messages or a body: its wire form, its messages as dicts, and what stands beside them.

    Raises:
        ConfigurationError: It is neither.
        FormatError: An entry is no message.
    """
    check_messages(given)
    form = format_of(given, format, model)
    extra: Mapping[str, Any] | None = None
    request: Request | None = None
    messages: Any = given
    if isinstance(given, Mapping):
        request = form.for_model(model).read_request(given)
        messages, extra = request.messages, request.extra
        system = request.system if system is None else system
        tools = request.tools if tools is None else tools
    entries = [entry_of(messages, index) for index in range(len(messages))]
    refuse_foreign(entries, form.name, counted=True)
    lead = leading_system(system, form)
    return Given(form, [*lead, *entries], Fixed(None if lead else system, tools, extra), request)


class Counted(NamedTuple):
    """A count, and what was read for it."""

    total: Count
    entries: list[Dict]
    """The messages, with system text that stands among them."""
    pieces: list[Pieces]
    """What each of them is charged for."""
    sizes: Sizes | Shares
    """What each of them costs."""


def count_of_request(
    given: Any,
    counter: CounterLike,
    /,
    *,
    format: str | Format = "auto",
    model: str | None = None,
    system: Any = None,
    tools: Any = None,
    earlier: Counted | None = None,
) -> Counted:
    """Count messages or a whole body by a counter; see `measure`. What was read for it comes along.

    Args:
        given: Messages, or a request body.
        counter: Who counts.
        format: Their wire form.
        model: Whose request it is.
        system: System text beside it.
        tools: Tool schemas beside it.
        earlier: A count by the same counter, of a request this one goes on from: messages they share are
            not read again.
    """
    form, entries, fixed, request = read_given(given, format=format, model=model, system=system, tools=tools)
    made = as_counter(counter)
    notes = model_notes(model, made)
    made = made.with_format(form)
    if request is not None and not fixed.tools:
        made = made.without_tools()
    shared = [] if earlier is None else _shared_pieces(earlier, entries)
    pieces = [*shared, *map(form.pieces, entries[len(shared) :])]
    found = sizes_for(made, entries, fixed, unread=form.unread(entries))
    if earlier is not None and isinstance(found, Sizes) and isinstance(earlier.sizes, Sizes):
        found.take([*earlier.sizes.known_read[: len(shared)], *(None for _ in entries[len(shared) :])])
    parts: dict[str, Any] = {}  # a black box says how much it is, and no more
    if isinstance(found, Shares):
        tokens = found.whole(entries)
    else:
        leads_system = bool(entries) and form.kind(entries[0]) == "system"
        parts = _parts(found, form, fixed, pieces, has_system=leads_system or bool(fixed.system))
        tokens = sum(parts["sizes"]) + found.fixed_tokens(leads_system)
    unknown = unknown_in(made, fixed.tools, pieces, request)
    unsure = unsure_of(made, fixed.tools, pieces)
    known = all(map(made.knows, pieces))
    plain = known and not (fixed.tools or (fixed.extra or {}).get("response_format"))
    exact = unsure == 0 and not unknown.phrases
    if made.exact_features is None:
        exact = exact and made.exact is True and (plain if isinstance(made, TextCounter) else known)
    else:
        exact = exact and is_exact(made, entries, form, fixed, model=model, request=request)
    if isinstance(made, TextCounter):
        margin = 0 if exact else made.margin_tokens(tokens, is_plain=plain)
        over = 0 if exact else made.over_margin_tokens(tokens, is_plain=plain)
    else:
        margin = known_margin(made, tokens) if known else None
        over = known_over_margin(made, tokens) if known else None
    is_bounded = unsure is not None and unknown.is_bounded
    count = Count(
        tokens=tokens,
        exact=exact,
        margin_tokens=margin + (unsure or 0) if is_bounded and margin is not None else None,
        over_margin_tokens=min(tokens, over + (unsure or 0)) if is_bounded and over is not None else None,
        counter=counter_name(made),
        format=form.name,
        unknown=unknown.phrases,
        notes=(*notes, *unread_notes(form, entries)),
        **parts,
    )
    return Counted(count, entries, pieces, found)


def _shared_pieces(earlier: Counted, entries: list[Dict]) -> list[Pieces]:
    """Return what was read of the messages that two requests begin with."""
    read = zip(earlier.entries, earlier.pieces, entries, strict=False)
    return [pieces for _, pieces, _ in takewhile(lambda one: one[0] is one[2], read)]


def is_exact(
    counter: RequestCounter,
    messages: Sequence[Any],
    form: Format,
    fixed: Fixed,
    /,
    *,
    model: str | None,
    request: Request | None = None,
) -> bool:
    """Tell whether each feature of a request stood in a bill that was as counted (SPEC B0b).

    The word of a counter of which no bills were compared is taken for that.
    """
    seen = counter.exact_features
    if seen is None:
        return counter.exact is True
    name = counter_name(counter) if model is None else model
    return bool(seen) and features_of(messages, form, fixed, model=name, request=request) <= seen


def _parts(
    found: Sizes, form: Format, fixed: Fixed, pieces: list[Pieces], *, has_system: bool
) -> dict[str, Any]:
    """Tell what a request is made of, by the names that `Count` has for it."""
    counter: AdditiveCounter = found.counter
    sizes = [found.of(index) for index in range(len(found.messages))]
    for index, tokens in _finished_thoughts(counter, form, found.messages, pieces):
        sizes[index] = max(0, sizes[index] - tokens)
    read = (one for index, one in enumerate(pieces) if index not in found.unread)
    media = [counter.media_tokens(medium) for one in read for medium in one.media]
    media_tokens = None if None in media else sum(tokens or 0 for tokens in media)
    # parts beside the messages are told apart by what each adds to those before it
    without_schema = {key: value for key, value in (fixed.extra or {}).items() if key != "response_format"}
    steps = (Fixed(), Fixed(fixed.system), Fixed(fixed.system, fixed.tools, without_schema), fixed)
    passed = [fixed_tokens_of(counter, one, has_system) for one in steps]
    system, tools, schema = (after - before for before, after in pairwise(passed))
    return {
        "messages_tokens": sum(sizes) - (media_tokens or 0),
        "media_tokens": media_tokens,
        "system_tokens": system,
        "tools_tokens": tools,
        "output_schema_tokens": schema,
        "framing_tokens": passed[0],
        "sizes": tuple(sizes),
    }


def _finished_thoughts(
    counter: AdditiveCounter, form: Format, entries: list[Dict], pieces: list[Pieces]
) -> list[tuple[int, int]]:
    """List (index, tokens) of reasoning before the newest user message, where that is charged no more.

    A counter of single messages cannot know, and takes the most; the whole request says.
    """
    last = max((at for at, entry in enumerate(entries) if form.kind(entry) == "user"), default=0)
    charged = [(at, counter.dropped_tokens(pieces[at])) for at in range(last)]
    return [(at, tokens) for at, tokens in charged if tokens]


_KINDS = {"image": "image", "audio": "sound", "video": "video", "file": "document"}


_PROMPT = "the system prompt that the provider adds (prompt_mode)"
"""In the words that Chat's form has for a body that asks for it."""


class Unknown(NamedTuple):
    """What of a request nobody can count from it."""

    phrases: tuple[str, ...]
    """One each, for a report."""
    is_bounded: bool
    """Whether a margin can hold all of it: not what the provider adds, which may be of any size."""


def unknown_in(
    counter: RequestCounter, tools: object, pieces: Iterable[Pieces], request: Request | None = None, /
) -> Unknown:
    """List what a count leaves out or takes at a guess.

    Args:
        counter: Whose count it is; it says of which media a message holds enough.
        tools: All tools of the request.
        pieces: Its messages.
        request: The body; None if there is none.
    """
    media: Tally[str] = Tally()
    guessed: Tally[str] = Tally()
    sealed: Tally[str] = Tally()
    stored = cited = 0
    for one in pieces:
        cited += len(cited_files(one))
        media.update(medium.kind for medium in one.media if not counter.sees(medium))
        sealed.update({medium.name or "a part" for medium in one.media if medium.is_sealed})
        sealed["reasoning"] += one.sealed_chars > 0
        stored += one.is_elsewhere
        guessed.update(counter.guesses(one))
    added = [] if request is None else list(request.unseen)
    if counter.adds_prompt and _PROMPT not in added:
        added.append(_PROMPT)
    added += (f"the provider's own tool {name!r}" for name in provider_tools(tools))
    if stored:
        added.append(f"{_several(stored, 'item')} that the provider stored (item_reference)")
    found = [
        f"{_several(number, _KINDS.get(kind, kind))} whose size the request does not hold"
        for kind, number in media.items()
    ]
    if cited:
        found.append(f"{_several(cited, 'file')} that may be cited (citations)")
    found += [
        f"{what} in {_several(number, 'message')} that only the provider can read"
        for what, number in sealed.items()
        if number
    ]
    found += [f"{what} in {_several(number, 'message')}" for what, number in guessed.items()]
    unsure = () if request is None else request.unsure
    return Unknown((*added, *unsure, *found), not added)


def unknown_notes(unknown: Sequence[str], /) -> tuple[str, ...]:
    """Say in a sentence what is unknown of a request; nothing where nothing is."""
    return (f"What this costs is not known from the request: {'; '.join(unknown)}.",) if unknown else ()


def unread_notes(form: Format, messages: Sequence[Any], /, *, counted: bool = False) -> tuple[str, ...]:
    """Say in a sentence how many messages cost nothing, since a compaction stands for them.

    Args:
        form: Their wire form.
        messages: What is sent.
        counted: Whether the total holds them all the same.
    """
    number = len(form.unread(messages))
    if not number:
        return ()
    return (
        f"{_several(number, 'message')} {'stands' if number == 1 else 'stand'} before the provider's latest"
        " compaction, which it reads in place of all that is before it: nothing is charged there"
        f"{', though it is counted here' if counted else ''}.",
    )


def _several(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


def model_notes(model: str | None, counter: RequestCounter, /) -> tuple[str, ...]:
    """Say where tokens are counted as for another model."""
    facts = _facts_of(model)
    if facts is None or facts.counted_as is None or counter_name(counter) != model:
        return ()
    return (
        f"The model {model!r} is not known, only its maker: tokens are counted as for"
        f" {facts.counted_as!r}, the costliest known of that maker, and its window is not known"
        f"{near_words(model) or '.'}",
    )


def near_words(model: str | None, /) -> str:
    """End a sentence on a name nobody knows by those it may be a slip of; "" for a known one."""
    facts = _facts_of(model)
    is_known = facts is not None and facts.counted_as is None
    return "" if model is None or is_known else in_words(near_models(model))


def _facts_of(model: str | None) -> ModelFacts | None:
    try:
        return None if model is None else facts_for(model)
    except UnknownNameError:
        return None
