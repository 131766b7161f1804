"""Functions over a list of messages: the newest ones, a span, what fits, and their text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trimtab._fitting.objects import ReadCache
from trimtab._shared.checks import check_roles, check_whole, list_messages
from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import assemble, assemble_one
from trimtab.conversation.units import span_of
from trimtab.counting import CounterLike
from trimtab.counting.door import as_counter
from trimtab.counting.sizes import Fixed, Shares, sizes_for
from trimtab.errors import ConfigurationError
from trimtab.formats import detect, mapping_of
from trimtab.strategies.base import EvictionRequest
from trimtab.strategies.openers import Openers, begin_of

__all__ = [
    "Evicted",
    "ReadCache",
    "evict_messages",
    "inject_into_system",
    "message",
    "recent",
    "span",
    "text",
    "within",
]

M = TypeVar("M")


def recent(messages: Sequence[M], n: int, /) -> list[M]:
    """Return the newest `n` messages, oldest first; all if there are fewer.

    Args:
        messages: A list, oldest first.
        n: Number of messages; 0 returns none.

    Raises:
        ConfigurationError: `n` is not a whole number.

    Example:
        >>> recent(["a", "b", "c"], 2)
        ['b', 'c']
    """
    return span(messages, check_whole("n", n), 0)


def span(messages: Sequence[M], from_end: int, to_end: int, /) -> list[M]:
    """Return the messages from `from_end` to before `to_end`.

    Both are counted from the end. Empty if `from_end` is not above `to_end`, or `to_end` is negative.

    Args:
        messages: A list, oldest first.
        from_end: Start, as a number of messages before the end.
        to_end: End, as a number of messages before the end; 0 is the end.

    Raises:
        ConfigurationError: An argument is not a whole number.

    Example:
        >>> span(["a", "b", "c", "d"], 3, 1)
        ['b', 'c']
    """
    from_end, to_end = check_whole("from_end", from_end), check_whole("to_end", to_end)
    if to_end < 0 or from_end <= to_end:
        return []
    count = len(messages)
    return list(messages[max(0, count - from_end) : max(0, count - to_end)])


def within(messages: Sequence[M], limit_tokens: int, counter: CounterLike, /) -> list[M]:
    """Return the newest messages that together stay within a limit.

    Walks from the newest message back and stops at the first that would exceed the limit. Only messages
    count: the cost of a request without messages (for a black box, `count([])`) is subtracted. Pairs of calls
    and results may be split: to send the result to a model, use `fit`.

    Args:
        messages: A list, oldest first.
        limit_tokens: Maximum number of tokens of the messages together.
        counter: What counts tokens; see `fit`.

    Raises:
        CountingError: The counter failed or returned something that is not a count.
        ConfigurationError: `counter` is not a counter, the limit is not a whole number, or the messages are
            not a list.

    Example:
        >>> from trimtab.counting import FixedCounter
        >>> len(within([{"role": "user", "content": "hi"}] * 9, 25, FixedCounter(per_message=10)))
        2
    """
    limit_tokens = check_whole("limit_tokens", limit_tokens)
    messages = list_messages(messages)
    sizes = sizes_for(as_counter(counter), [*messages], Fixed())
    if isinstance(sizes, Shares):
        room_tokens = limit_tokens + sizes.request_tokens([]) if messages else limit_tokens
        request_tokens, places = sizes.request_tokens, range(len(messages))
        return messages[
            bisect_left(places, True, key=lambda at: request_tokens(messages[at:]) <= room_tokens) :
        ]
    start, left = len(messages), limit_tokens
    while start and sizes.of(start - 1) <= left:
        start -= 1
        left -= sizes.of(start)
    return messages[start:]


def text(messages: Sequence[Any], /, *, separator: str = "\n") -> str:
    r"""Return the text of messages, one after another.

    Parts that are not text are omitted.

    Args:
        messages: A list, oldest first.
        separator: Text between two texts, also between those of one message.

    Example:
        >>> text([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
        'hi\nhello'
    """
    format = detect(messages)
    found = (slot.text for item in messages for slot in format.texts(mapping_of(item)))
    return separator.join(part for part in found if part)


def message(role: str, *parts: Any) -> dict[str, Any]:
    """Make a message from text and ready-made parts.

    A single text becomes text content; anything else becomes a list of parts.

    Args:
        role: As "user".
        parts: Texts, and parts of the wire form as mappings.

    Raises:
        ConfigurationError: The role is not text, or a part is neither text nor a mapping.

    Example:
        >>> message("user", "hi")
        {'role': 'user', 'content': 'hi'}
    """
    if not isinstance(role, str) or not role:
        raise ConfigurationError(f"a message needs a role, as in message('user', 'hi'), not {role!r:.80}")
    for part in parts:
        if not isinstance(part, (str, Mapping)) and not callable(getattr(part, "model_dump", None)):
            raise ConfigurationError(
                f"a part of a message must be a text or a mapping, not {type(part).__name__}: {part!r:.80}"
            )
    return detect([]).message(role, parts)


def inject_into_system(system: M, /, *facts: Any) -> M:
    r"""Put facts into a system message, marked and escaped.

    A fact that reads like a rule, or contains the end of the mark, remains a fact.

    Args:
        system: A system message. The message's own text is kept; parts that are not text are omitted.
        facts: Texts or messages; only their text is used.

    Returns:
        A shallow copy with one text; without facts, the message itself.

    Source: `InjectIntoSystem` of seeds/001.

    Example:
        >>> print(inject_into_system({"role": "system", "content": "Be kind."}, "Likes <tea>.")["content"])
        Be kind.
        <context>
          <fact>Likes &lt;tea&gt;.</fact>
        </context>
    """
    if not facts:
        return system
    format = detect([system])

    def text_of(value: Any) -> str:
        if isinstance(value, str):
            return value
        return "".join(slot.text for slot in format.texts(mapping_of(value)))

    told = "".join(f"  <fact>{text_of(fact).translate(_XML)}</fact>\n" for fact in facts)
    injected: M = format.with_text(system, f"{text_of(system)}\n<context>\n{told}</context>")
    return injected


_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"})
"""Escapes for XML text, in the spelling of seeds/001's own (Go's `encoding/xml`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted(Generic[M]):
    """The messages that `evict_messages` removed and kept.

    Args:
        evicted: Evicted messages, unit by unit: a call, its results, then the next unit.
        remaining: Kept messages, in order.
        remaining_tokens: Tokens of the kept messages; over the limit only if a last unit or a protected role
            is.
    """

    evicted: list[M]
    """Evicted messages, unit by unit: a call, its results, then the next unit."""
    remaining: list[M]
    """Kept messages, in order."""
    remaining_tokens: int
    """Tokens of the kept messages; over the limit only if a last unit or a protected role is."""


def evict_messages(
    messages: Sequence[M],
    limit_tokens: int,
    *,
    counter: CounterLike,
    protect_roles: Iterable[str] = ("system",),
) -> Evicted[M]:
    """Evict the oldest units of a list until the rest is within a limit.

    A call is evicted with its results, wherever they are. Protected roles are kept. A unit whose eviction
    would empty the list is kept too, even over the limit, unless it is the only unit of the list. If the
    provider requires a user message first, and the list began with one, the kept messages begin with one:
    more is evicted for that, or, if nothing else would remain, they exceed the limit.

    Args:
        messages: A conversation; it is not changed.
        limit_tokens: Maximum number of tokens to keep.
        counter: What counts tokens; see `fit`.
        protect_roles: Messages of these roles are kept.

    Raises:
        ConfigurationError: `counter` is not a counter, the limit is not a whole number, the messages are
            not a list, or `protect_roles` is not a sequence of role names.
        CountingError: The counter failed or returned something that is not a count.
        FormatError: An entry is not a message, or has a role or shape that no form knows; `.path` names it.

    Example:
        >>> from trimtab.counting import FixedCounter
        >>> talk = [{"role": "user", "content": word} for word in ("one", "two", "three")]
        >>> evict_messages(talk, 20, counter=FixedCounter(per_message=10)).evicted
        [{'role': 'user', 'content': 'one'}]
    """
    items, roles = list_messages(messages), check_roles(protect_roles)
    limit_tokens = check_whole("limit_tokens", limit_tokens)
    history = History(items, format=detect(items), protect=False)
    sizes = sizes_for(as_counter(counter), history.messages, Fixed(), unread=history.unread)
    request = EvictionRequest(history, sizes, limit_tokens=limit_tokens, led=True).protecting(roles)
    units = _may_leave(request)
    count, tokens = _exits(request, units)
    begin = begin_of(history)
    # What stays begins as the provider wants a list to begin, if this one did.
    if history.ordered and begin < len(history) and not history.cannot_lead(begin):
        well = _led_well(request, units, count)
        count, tokens = well, tokens if well == count else _rest_tokens(request, units[:well])
    return Evicted(
        evicted=_messages_of(history, units[:count]),
        remaining=assemble(history, _without(request.units, units[:count]), {}),
        remaining_tokens=tokens,
    )


def _messages_of(history: History, units: Iterable[Unit]) -> list[Any]:
    """List the messages of units, unit by unit; of one shared with what stays, the parts that leave."""
    parts: dict[int, set[int] | None] = {}
    for unit in units:
        for index in unit.indices:
            own = unit.parts.get(index)
            parts[index] = None if own is None else {*(parts.get(index) or ()), *own}
    return [assemble_one(history, index, own, None) for index, own in parts.items()]


def _may_leave(request: EvictionRequest) -> list[Unit]:
    """List the units that may leave, oldest first; not the last if that would empty a longer list."""
    units = [unit for unit in request.units if unit.first not in request.protected]
    return units[:-1] if 1 < len(units) == len(request.units) else units


def _exits(request: EvictionRequest, units: Sequence[Unit]) -> tuple[int, int]:
    """Return how many of the units leave, and the tokens of the rest; a black box is asked by halves."""
    limit = request.limit_tokens
    if not request.additive:
        counts = range(len(units))
        count = bisect_left(counts, True, key=lambda count: _rest_tokens(request, units[:count]) <= limit)
        return count, _rest_tokens(request, units[:count])
    free, there = set(map(id, units)), dict[int, set[int]]()
    tokens = sum(request.costs.unit(unit, there) for unit in request.units if id(unit) not in free)
    for count in range(len(units), 0, -1):
        more = request.costs.unit(units[count - 1], there)
        if tokens + more > limit:
            return count, tokens
        tokens += more
    return 0, tokens


def _rest_tokens(request: EvictionRequest, leaving: Sequence[Unit]) -> int:
    return request.costs.units(_without(request.units, leaving))


def _without(units: Iterable[Unit], leaving: Iterable[Unit]) -> list[Unit]:
    gone = set(map(id, leaving))
    return [unit for unit in units if id(unit) not in gone]


def _led_well(request: EvictionRequest, units: Sequence[Unit], count: int) -> int:
    """Return how many units leave for the rest to begin with what the provider takes as the first.

    As few more as that needs; where none of the rest may come first, as few less.
    """
    openers, leaving = Openers(request.history, request.row, lambda: request.units), list(map(span_of, units))
    staying = map(span_of, _without(request.units, units))
    fixed = next((span for span in staying if openers.says(span) is not None), None)

    def stands(count: int) -> bool:
        rest = (leaving[at] for at in range(count, len(units)))
        first = next((span for span in rest if openers.says(span) is not None), fixed)
        if first is None:
            return True
        return openers.leads(first if fixed is None else min(first, fixed, key=lambda span: span[0]))

    counts = (*range(count, len(units) + 1), *range(count - 1, -1, -1))
    return next((count for count in counts if stands(count)), count)
