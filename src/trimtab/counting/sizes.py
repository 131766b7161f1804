"""The sizes of one fit: what is known, what is counted on demand, what a black box says.

`Sizes` belongs to one conversation and one counter. With an additive counter each message is
counted when it is first asked for and never again. A black box is a function of a whole list:
it is asked about lists only, and what a part of one costs is a share of the whole.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, cast

from trimtab._shared import observers
from trimtab.counting.base import (
    AdditiveCounter,
    CountRequest,
    RequestCounter,
    checked_count,
    count_of,
    counter_name,
    with_index,
)
from trimtab.counting.estimate import EstimateCounter
from trimtab.counting.schemas import split_beside
from trimtab.counting.texts import TextCounter
from trimtab.errors import CountingError, FormatError
from trimtab.formats import FREE, Prices, mapping_of

__all__ = [
    "Fixed",
    "Shares",
    "Sizes",
    "counter_name",
    "fixed_tokens_of",
    "known_fixed_count",
    "shared_out",
    "sizes_for",
]


class Walked(Protocol):
    """A history that can read and count at once (`conversation.History`)."""

    @property
    def walked_from(self) -> int:
        """Oldest message counted while it was looked over."""
        ...

    def walk(self, start: int, room_tokens: int, sizes: list[int | None], prices: Prices, /) -> int | None:
        """Read and count from what was read last back to `start`, until the room is passed."""
        ...

    def price(self, message: Any, prices: Prices, /) -> int | None:
        """Count a message that stands nowhere, as it is read; None if that cannot be done."""
        ...


class Shown(Protocol):
    """A message that every request of a conversation has, and that no strategy sees."""

    @property
    def message(self) -> Any:
        """The message."""
        ...

    @property
    def is_system(self) -> bool:
        """True if it is system text."""
        ...

    def put_in(self, messages: Sequence[Any], /) -> list[Any]:
        """Return messages with it."""
        ...


class Fixed:
    """What a request costs beside its messages: system text, tools, output schema, framing.

    Legacy functions are among the tools, so that every counter charges them.
    """

    __slots__ = ("extra", "has_system", "shown", "system", "tools")

    def __init__(
        self, system: Any = None, tools: Any = None, extra: Any = None, shown: Shown | None = None
    ) -> None:
        self.system = system
        self.shown = shown
        """Rules of the host, which are charged with it."""
        self.has_system = bool(system) or (shown is not None and shown.is_system)
        """True if a request has system text, whatever its messages are."""
        self.tools, self.extra = split_beside(tools, extra) if tools or extra else (tools, None)


_CHECKED = (AdditiveCounter.count_back, TextCounter.count_back)
"""Ways to count back that check each size themselves."""


class Sizes:
    """Sizes in tokens of a conversation's messages under an additive counter."""

    additive = True
    counted: tuple[int | None, int] = (None, 0)
    """To which limit was counted back last, and how far."""

    unread = range(0)
    """Messages the provider neither reads nor charges, since a compaction stands for them."""

    offered: Any = None
    """Of a part: the tools of the whole request, which are charged elsewhere."""

    def __init__(self, counter: AdditiveCounter, messages: list[Any], fixed: Fixed | None) -> None:
        self.counter: Any = counter
        self.messages = messages
        self.known: list[int | None] = [None] * len(messages)
        """Tokens of each message; None where nobody asked."""
        self._fixed = Fixed() if fixed is None else fixed
        self._is_part = fixed is None
        self._fixed_counts: dict[bool, FixedCount] = {}
        self._shown_tokens: int | None = None
        self._checks_itself = type(counter).count_back in _CHECKED
        self._own = counter.count_message if _is_ours(counter) else None
        self._is_given = False
        """Whether somebody else said sizes."""

    @property
    def fixed(self) -> Fixed:
        """What stands beside the messages."""
        return self._fixed

    @property
    def tools(self) -> Any:
        """The tools of the request; None if there are none."""
        return self.offered if self._is_part else self._fixed.tools

    def leave_unread(self, unread: range, /) -> None:
        """Charge nothing for some messages, and for those the size again that were free before."""
        for index in self.unread:
            self.known[index] = None
        self.unread = unread
        for index in unread:
            self.known[index] = 0

    @property
    def told_by(self) -> object:
        """What sizes follow from beside what messages say; None where each call may say others.

        A counter of ours is taken by its state: in another wire form it is a copy, made anew in each call.
        """
        if self._own is None or self.unread or self._is_given:
            return None
        return self.counter.__getstate__()

    def take(self, known: Sequence[int | None], /) -> None:
        """Take sizes that are known; what is unread stays free."""
        self._is_given = True
        self.known[:] = known
        for index in self.unread:
            self.known[index] = 0

    @property
    def known_read(self) -> list[int | None]:
        """The known sizes of what is read: where something leaves, the rest may be read that was not."""
        return [None if index in self.unread else size for index, size in enumerate(self.known)]

    def fixed_tokens(self, leads_system: bool, /) -> int:
        """Return what a request costs beside its messages: framing, tools, system text beside them.

        Args:
            leads_system: Whether the first of its messages is system text. What comes out says so, not what
                went in: a later system message or a summary may have become the first.
        """
        if self._is_part:
            return 0
        known = self._fixed_counts.get(leads_system or self._fixed.has_system)
        return (self._fixed_count(leads_system) if known is None else known).tokens

    def _fixed_count(self, leads_system: bool) -> FixedCount:
        """Ask, once, for all there is to say: a report is read without asking a counter."""
        has_system = leads_system or self._fixed.has_system
        made = self._fixed_counts.get(has_system)
        if made is None:
            made = known_fixed_count(self.counter, self._fixed, has_system)
            if self._fixed.shown is not None:
                made = made._replace(tokens=made.tokens + self.shown_tokens)
            self._fixed_counts[has_system] = made
        return made

    @property
    def shown_tokens(self) -> int:
        """What the rules of the host cost, which the fixed tokens hold; 0 where there are none."""
        if self._shown_tokens is None:
            shown = self._fixed.shown
            self._shown_tokens = 0 if shown is None else self.size_of_shown(shown.message)
        return self._shown_tokens

    def size_of_shown(self, message: Any, /) -> int:
        """Count rules of the host; what they have of a black box's total is their estimate."""
        return self.message(message)

    def most_fixed_tokens(self, leads_system: bool, /) -> int:
        """Return the same of a request that may still come to begin with system text."""
        tokens = self.fixed_tokens(leads_system)
        return tokens if leads_system else max(tokens, self.fixed_tokens(True))

    def fixed_parts(self, leads_system: bool, /) -> tuple[int | None, int | None]:
        """Return what of the fixed tokens is system text, and tools; None where they cannot be told apart."""
        if self._is_part:
            return 0, 0
        count = self._fixed_count(leads_system)
        return count.system_tokens, count.tools_tokens

    def of(self, index: int, /) -> int:
        """Count one message, unless it is known."""
        size = self.known[index]
        if size is None:
            message = self.messages[index]
            try:
                # our own counters check themselves
                size = self._own(message) if self._own is not None else self.message(message, index)
            except (CountingError, FormatError) as error:
                raise with_index(error, index) from error.__cause__
            self.known[index] = size
        return size

    def sum(self, indices: Sequence[int], /) -> int:
        """Sum the sizes of some messages."""
        known: Any = self.known
        try:
            return int(sum(map(known.__getitem__, indices)))
        except TypeError:  # one is not known
            return sum(map(self.of, indices))

    def sums(self) -> list[int]:
        """Sum the sizes of the messages before each place, and of all."""
        if None in self.known:
            self.count_each()
        return [*accumulate(cast("list[int]", self.known), initial=0)]

    def count_each(self) -> None:
        """Count every message nobody asked about yet."""
        for index, size in enumerate(self.known):
            if size is None:
                self.of(index)

    def message(self, message: Any, index: int | None = None, /) -> int:
        """Count a message that may not be of the conversation (an edited one)."""
        if type(message) is not dict:
            message = mapping_of(message)
        return checked_count(lambda: self.counter.count_message(message), self.counter, index)

    def with_change(self, history: Walked, message: Any, index: int, /) -> int:
        """Count a message of a conversation with a change."""
        prices, tokens = self.counter.prices if self.additive else None, None
        if prices is not None and type(message) is dict and index not in self.unread:
            try:
                tokens = history.price(message, prices)
            except (CountingError, FormatError):
                tokens = None  # it is told below, with the message
        return self.message(message, index) if tokens is None else tokens

    def with_text(self, indices: Iterable[int], text: str, /) -> list[int | None]:
        """Return the sizes of messages with another text for content; None where that has to be counted.

        Of a message with a price for its role and one text, that text alone is charged otherwise.
        """
        prices, messages, known = self.counter.prices, self.messages, self.known
        if prices is None or not text or prices.scale != (1, 1):
            return [None for _ in indices]
        counts, bases, found = cast("dict[Any, int]", prices.counts), prices.bases, list[int | None]()
        text_tokens = counts[text]
        for index in indices:
            message = messages[index]
            content = message.get("content") if type(message) is dict else None
            if type(content) is str and content and message.get("role") in bases:
                size = known[index]
                found.append((self.of(index) if size is None else size) - counts[content] + text_tokens)
            else:
                found.append(None)
        return found

    def alone(self, message: Any, /) -> int:
        """Count a message that trimtab wrote; a black box is asked about it, not about a share."""
        return self.message(message)

    def back(self, start: int, stop: int, room_tokens: int, /) -> int:
        """Count from `stop - 1` down to `start` until their sum passes `room_tokens`.

        Returns:
            The lowest position counted; `stop` if there was nothing to count.
        """
        if self._checks_itself:
            low: int = self.counter.count_back(self.messages, start, stop, room_tokens, self.known)
            return low
        return self._checked_back(start, stop, room_tokens)

    def _checked_back(self, start: int, stop: int, room_tokens: int) -> int:
        """Let a counter of a user's count back, and look at what it filled in."""
        counter, known = self.counter, self.known
        low = checked_count(
            lambda: counter.count_back(self.messages, start, stop, room_tokens, known), counter, None
        )
        if not start <= low <= stop:
            name = counter_name(counter)
            raise CountingError(
                f"counter {name} counted back to {low}, which is not between {start} and {stop}",
                counter=name,
                answer=low,
            )
        for index in range(low, stop):
            size = known[index]
            if type(size) is not int or size < 0:
                known[index] = count_of(
                    size, counter=counter_name(counter), of=f"message {index}", index=index
                )
        return low

    def walk(self, history: Walked, start: int, room_tokens: int, /) -> int | None:
        """Count back from what was read last, reading on the way, until the room is passed.

        Returns:
            The lowest position counted; None if counter or format cannot do both at once.
        """
        prices = self.counter.prices
        if prices is None:
            return None
        try:
            return self._walk(history, start, room_tokens, prices)
        except (CountingError, FormatError) as error:
            at = next(i for i in range(history.walked_from - 1, -1, -1) if self.known[i] is None)
            raise with_index(error, at) from error.__cause__

    def _walk(self, history: Walked, start: int, room_tokens: int, prices: Prices) -> int | None:
        return history.walk(start, room_tokens, self.known, prices)

    def each(self, start: int, stop: int, /) -> list[int]:
        """Return the sizes of neighboring messages."""
        known = self.known[start:stop]
        return [*map(self.of, range(start, stop))] if None in known else cast("list[int]", known)

    def total(self, start: int, stop: int, /) -> int:
        """Sum neighboring messages."""
        known: Any = self.known
        try:
            return int(sum(known[start:stop]))
        except TypeError:  # one is not known
            return sum(map(self.of, range(start, stop)))


class UnreadSizes(Sizes):
    """The same, where a compaction stands for a part of the messages, which costs nothing."""

    def message(self, message: Any, index: int | None = None, /) -> int:
        """Count a message that may not be of the conversation; one that is not read is free, edited too."""
        return 0 if index in self.unread else super().message(message, index)

    def with_text(self, indices: Iterable[int], text: str, /) -> list[int | None]:
        """Return the sizes of messages with another text for content: each has to be counted."""
        return [None for _ in indices]

    def _walk(self, history: Walked, start: int, room_tokens: int, prices: Prices) -> int | None:
        """Count back over what is read, what is not and costs nothing, and what is in front of it."""
        unread, low = self.unread, history.walked_from
        for stop, price in ((unread.stop, prices), (unread.start, FREE), (0, prices)):
            to, high = max(start, stop), low
            if to >= high:
                continue
            walked = history.walk(to, room_tokens, self.known, price)
            if walked is None:
                return None
            low = walked
            room_tokens -= self.total(low, high)
            if room_tokens < 0:
                break
        return low


class TimedSizes(Sizes):
    """The same, where somebody looks on: it measures what is spent in counting."""

    def _fixed_count(self, leads_system: bool) -> FixedCount:
        with observers.CountTime():
            return super()._fixed_count(leads_system)

    def of(self, index: int, /) -> int:
        """Count one message, unless it is known."""
        size = self.known[index]
        if size is not None:
            return size
        with observers.CountTime():
            return super().of(index)

    def message(self, message: Any, index: int | None = None, /) -> int:
        """Count a message that may not be of the conversation."""
        with observers.CountTime():
            return super().message(message, index)

    def with_change(self, history: Walked, message: Any, index: int, /) -> int:
        """Count a message of a conversation with a change."""
        with observers.CountTime():
            return super().with_change(history, message, index)

    def count_each(self) -> None:
        """Count every message nobody asked about yet."""
        with observers.CountTime():
            super().count_each()

    def with_text(self, indices: Iterable[int], text: str, /) -> list[int | None]:
        """Return the sizes of messages with another text for content."""
        with observers.CountTime():
            return super().with_text(indices, text)

    def back(self, start: int, stop: int, room_tokens: int, /) -> int:
        """Count back until the room is passed."""
        with observers.CountTime():
            return super().back(start, stop, room_tokens)

    def walk(self, history: Walked, start: int, room_tokens: int, /) -> int | None:
        """Count back on the way of reading."""
        with observers.CountTime():
            return super().walk(history, start, room_tokens)


class _TimedUnreadSizes(TimedSizes, UnreadSizes):
    """Both."""


def shared_out(total_tokens: int, weights: Sequence[int], /) -> list[int]:
    """Share a total by weights, in whole tokens that add up to it; all 0 where the weights are."""
    whole, passed, shares = sum(weights), 0, []
    for weight in weights:
        before = passed * total_tokens // whole if whole else 0
        passed += weight
        shares.append((passed * total_tokens // whole if whole else 0) - before)
    return shares


class Base:
    """What a black box says of a request without messages; shared by the parts of one."""

    __slots__ = ("tokens",)

    def __init__(self) -> None:
        self.tokens: int | None = None


class Shares(Sizes):
    """Sizes under a counter that is a black box over a list of messages."""

    additive = False

    def __init__(self, counter: RequestCounter, messages: list[Any], fixed: Fixed | None) -> None:
        self.counter = counter
        self.messages = messages
        self.known = [None] * len(messages)
        self._checks_itself = False
        self._own = None
        self._fixed = Fixed() if fixed is None else fixed
        self._is_part = fixed is None
        self._shown_tokens = None
        self.base = Base()
        self._estimate = EstimateCounter()
        self._scale: float | None = None
        self.whole_tokens: int | None = None
        """The conversation with system text and tools; None until somebody asked for it."""

    def fixed_tokens(self, leads_system: bool, /) -> int:
        """Return 0: a black box does not say what its parts cost."""
        return 0

    def fixed_parts(self, leads_system: bool, /) -> tuple[int | None, int | None]:
        """Return that the parts are not known."""
        return None, None

    def request_tokens(self, messages: Sequence[Any], /) -> int:
        """Ask for the size of a whole request; of a part of one, without what an empty one costs."""
        if not self._is_part:
            return self._ask(messages)
        return max(0, self._ask(messages) - self.base_tokens()) if messages else 0

    def base_tokens(self) -> int:
        """Ask, once, what a request without messages costs; 0 where the counter refuses one."""
        base = self.base
        if base.tokens is None:
            try:
                base.tokens = self._ask([])
            except CountingError:
                base.tokens = 0
        return base.tokens

    def _ask(self, messages: Sequence[Any]) -> int:
        """Ask the black box."""
        counter, fixed = self.counter, self._fixed
        whole = list(messages) if fixed.shown is None else fixed.shown.put_in(messages)
        request = CountRequest(whole, system=fixed.system, tools=fixed.tools, extra=fixed.extra)
        if not observers.active:
            return checked_count(lambda: counter.count_request(request), counter, None)
        with observers.CountTime():
            return checked_count(lambda: counter.count_request(request), counter, None)

    def whole(self, messages: Sequence[Any], /) -> int:
        """Ask for the size of the whole conversation, once; `messages` are all of it."""
        if self.whole_tokens is None:
            self.whole_tokens = self.request_tokens(messages)
        return self.whole_tokens

    def message(self, message: Any, index: int | None = None, /) -> int:
        """Return the share of a message: its estimate, scaled to what the black box said."""
        if self._scale is None:
            estimate = sum(self._estimate_message(one, at) for at, one in enumerate(self.messages))
            self._scale = self.whole(self.messages) / max(1, estimate)
        return round(self._estimate_message(message, index) * self._scale)

    def _estimate_message(self, message: Any, index: int | None = None) -> int:
        try:
            return self._estimate.count_message(mapping_of(message))
        except FormatError as error:
            raise (error if index is None else with_index(error, index)) from error.__cause__

    def size_of_shown(self, message: Any, /) -> int:
        """Estimate rules of the host: nobody says what they have of a total."""
        return self._estimate_message(message)

    def with_text(self, indices: Iterable[int], text: str, /) -> list[int | None]:
        """Return None for each: a black box is asked."""
        return [None for _ in indices]

    def alone(self, message: Any, /) -> int:
        """Ask for the size of a message that trimtab wrote."""
        return max(0, self._ask([message]) - self.base_tokens())

    def count_each(self) -> None:
        """Ask for the size of the whole; what each message has of it is a share."""
        self.whole(self.messages)

    def split(self, messages: Sequence[Any], total_tokens: int, /) -> list[int]:
        """Share a total among messages by their estimates; the shares add up to it."""
        return shared_out(total_tokens, [self._estimate_message(message) for message in messages])

    def back(self, start: int, stop: int, room_tokens: int, /) -> int:
        """Return `start`: a black box cannot count as it goes."""
        return start


def sizes_for(
    counter: RequestCounter, messages: list[Any], fixed: Fixed | None, *, unread: range = range(0)
) -> Sizes:
    """Make the table of sizes for a counter: additive if it counts single messages.

    Without `fixed` it is one of a part of a request, which is charged nothing beside its messages. What is
    `unread` is charged nothing either; a black box has its own mind about that.
    """
    if isinstance(counter, AdditiveCounter):
        if not unread:
            return (TimedSizes if observers.active else Sizes)(counter, messages, fixed)
        sizes = (_TimedUnreadSizes if observers.active else UnreadSizes)(counter, messages, fixed)
        sizes.leave_unread(unread)
        return sizes
    return Shares(counter, messages, fixed)


def fixed_tokens_of(counter: AdditiveCounter, fixed: Fixed, has_system: bool, /) -> int:
    """Ask a counter what a request costs beside its messages."""
    return checked_count(
        lambda: counter.fixed_tokens(fixed.system, fixed.tools, has_system=has_system, extra=fixed.extra),
        counter,
        None,
    )


class FixedCount(NamedTuple):
    """What a request costs beside its messages, and parts of it."""

    tokens: int
    system_tokens: int
    tools_tokens: int


def _is_ours(counter: AdditiveCounter) -> bool:
    """Tell whether a counter counts messages as ours do, which check themselves and never change."""
    return type(counter).count_message is TextCounter.count_message


def known_fixed_count(counter: AdditiveCounter, fixed: Fixed, has_system: bool) -> FixedCount:
    """Count what each call of a chat sends again, under a counter of ours, once for its content.

    A counter of somebody else's may say another number tomorrow, and is asked each time.

    It is written byte for byte with the kind of every value in it, so that a tool that was changed in place
    is another one. What cannot be written so, as objects of an SDK, is counted again each time.
    """
    if not _is_ours(counter):
        return _fixed_count(counter, fixed, has_system)
    try:
        # Version 2 writes no references, which would tell equal values apart by who else holds them.
        content = marshal.dumps(cast("Any", (fixed.system, fixed.tools, fixed.extra)), 2)
    except ValueError:
        return _fixed_count(counter, fixed, has_system)
    return _count_written(counter, content, has_system)


@lru_cache(maxsize=16)
def _count_written(counter: AdditiveCounter, content: bytes, has_system: bool) -> FixedCount:
    fixed = Fixed()
    fixed.system, fixed.tools, fixed.extra = marshal.loads(content)
    return _fixed_count(counter, fixed, has_system)


def _fixed_count(counter: AdditiveCounter, fixed: Fixed, has_system: bool) -> FixedCount:
    tokens = fixed_tokens_of(counter, fixed, has_system)
    if not (fixed.system or fixed.tools or fixed.extra):
        return FixedCount(tokens, 0, 0)
    bare = fixed_tokens_of(counter, Fixed(), has_system)
    without_tools = fixed_tokens_of(counter, Fixed(system=fixed.system), has_system)
    return FixedCount(tokens, without_tools - bare, tokens - without_tools)
