"""Helpers over a list of messages: the newest ones, a span, what fits, their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trimtab.counting._sizes import Fixed, Shares, check_counter, sizes_for
from trimtab.formats import detect, mapping_of
from trimtab.strategies._base import EvictionRequest
from trimtab.units import History

__all__ = ["Evicted", "evict_messages", "message", "recent", "span", "text", "within"]

M = TypeVar("M")


def recent(messages: Sequence[M], n: int, /) -> list[M]:
    """Return the newest `n` messages, oldest of them first; all if there are fewer.

    Example:
        >>> recent(["a", "b", "c"], 2)
        ['b', 'c']
    """
    return span(messages, n, 0)


def span(messages: Sequence[M], from_end: int, to_end: int, /) -> list[M]:
    """Return the messages from `from_end` to before `to_end`.

    Both are counted back from the end. Empty if `from_end` is not above `to_end`, or `to_end` is
    negative.

    Example:
        >>> span(["a", "b", "c", "d"], 3, 1)
        ['b', 'c']
    """
    if to_end < 0 or from_end <= to_end:
        return []
    count = len(messages)
    return list(messages[max(0, count - from_end) : max(0, count - to_end)])


def within(messages: Sequence[M], limit_tokens: int, counter: Any, /) -> list[M]:
    """Return the newest messages that together stay within a limit.

    Walks from the newest message back and stops at the first that would pass the limit. Tool pairs
    are not looked at: to send the result to a model, use `fit`.

    Raises:
        CountingError: The counter failed or answered nonsense.
        ConfigurationError: The counter is none.

    Example:
        >>> from trimtab import FixedCounter
        >>> len(within([{"role": "user", "content": "hi"}] * 9, 25, FixedCounter(per_message=10)))
        2
    """
    sizes = sizes_for(check_counter(counter), list(messages), Fixed(), has_system=False)
    if isinstance(sizes, Shares):
        low, high = 0, len(messages)
        while low < high:
            middle = (low + high) // 2
            if sizes.request_tokens(messages[middle:]) <= limit_tokens:
                high = middle
            else:
                low = middle + 1
        return list(messages[low:])
    start, left = len(messages), limit_tokens
    while start and sizes.of(start - 1) <= left:
        start -= 1
        left -= sizes.of(start)
    return list(messages[start:])


def text(messages: Sequence[Any], /, *, separator: str = "\n") -> str:
    r"""Return the text of messages, one after the other.

    Parts that are no text are left out.

    Example:
        >>> text([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
        'hi\nhello'
    """
    format = detect(messages)
    found = (slot.text for item in messages for slot in format.texts(mapping_of(item)))
    return separator.join(part for part in found if part)


def message(role: str, *parts: Any) -> dict[str, Any]:
    """Make a message of text and ready-made parts.

    One text gives text content; anything else a list of parts.

    Example:
        >>> message("user", "hi")
        {'role': 'user', 'content': 'hi'}
    """
    return detect([]).message(role, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted(Generic[M]):
    """What `evict_messages` took out and what it left."""

    evicted: list[M]
    """Messages that left, in the order they left: a call, its results, then the next."""
    remaining: list[M]
    """Messages that stay, in order."""
    remaining_tokens: int
    """Tokens of what stays; over the limit only where a last unit or a protected role is."""


def evict_messages(
    messages: Sequence[M],
    limit_tokens: int,
    *,
    counter: Any,
    protect_roles: Sequence[str] = ("system",),
) -> Evicted[M]:
    """Take the oldest units out of a list until the rest is within a limit.

    A call leaves with its results, wherever they are. Protected roles stay, and a unit whose leaving
    would empty the list stays too, over the limit if need be; a unit that is all there is leaves.

    Args:
        messages: A conversation; not changed.
        limit_tokens: Most tokens that may remain.
        counter: What counts; see `fit`.
        protect_roles: Messages of these roles stay.

    Raises:
        ConfigurationError: The counter is none.
        CountingError: The counter failed or answered nonsense.

    Example:
        >>> from trimtab import FixedCounter
        >>> talk = [{"role": "user", "content": word} for word in ("one", "two", "three")]
        >>> evict_messages(talk, 20, counter=FixedCounter(per_message=10)).evicted
        [{'role': 'user', 'content': 'one'}]
    """
    items = list(messages)
    history = History(items, format=detect(items), protect=False)
    sizes = sizes_for(check_counter(counter), history.messages, Fixed(), has_system=False)
    request = EvictionRequest(history, sizes, limit_tokens=limit_tokens).protecting(protect_roles)
    total = request.total(request.units) - request.fixed_tokens
    gone: list[int] = []
    for unit in request.units:
        if total <= limit_tokens:
            break
        if unit.first in request.protected:
            continue
        if gone and len(gone) + len(unit.indices) == len(items):
            break
        total -= request.size(unit)
        gone += unit.indices
    left = set(gone)
    return Evicted(
        evicted=[items[index] for index in gone],
        remaining=[item for index, item in enumerate(items) if index not in left],
        remaining_tokens=total,
    )
