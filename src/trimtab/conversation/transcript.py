"""`Transcript`: the messages of a conversation, each read once and none before somebody asks about it.

It goes from the newest message back. Counting may go with it: a form that can do both in one pass looks at
each message once (`walk`). What belongs together is not told here, but in `reader.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, cast

from trimtab._shared.checks import move
from trimtab._shared.once import once
from trimtab.errors import FormatError
from trimtab.formats import FREE, Format, Kind, Prices, Structure, Thinking, refuse_foreign
from trimtab.formats.values import has_no_key

__all__ = ["Transcript", "last_turn_of"]


class Transcript:
    """Authors, calls and answers of messages, read as far back as needed."""

    def __init__(
        self,
        messages: list[Any],
        *,
        format: Format,
        protect: bool,
        leading: int | None,
        latest_user: int | None,
        elsewhere: bool,
        looked_over: bool,
        thinking: Thinking | None,
    ) -> None:
        self.messages: list[Any] = messages
        """The messages, in a list of our own; an entry that is no dict becomes one when read."""
        self.count = len(messages)
        """Number of messages."""
        self.format = format
        self._kind_of = format.kind
        self._results_are_messages = format.rules.results_are_messages
        # One object: what a walk noted is not read again. They part where all is asked for (`_forget_turns`).
        self.structure = self.walked = Structure(self.count)
        """What was read of its messages; until all units are asked for, what was noted while walking, too."""
        self.structure.elsewhere = self.elsewhere = elsewhere
        """True if the request goes on from messages the provider has stored."""
        self.thinking = format.thinking_rules(None, None) if thinking is None else thinking
        """What the model asks of thinking that is sent back to it."""
        self._unwritten: Transcript | None = None
        self.protect = protect
        """True if leading system messages, the latest user message and the newest unit stay."""
        self._read_from = self._walked_from = self.count
        self._looked_from = 0 if looked_over else self.count
        self._latest_user = latest_user
        self._turn = (-1, -1)
        self._alone: dict[int, bool] = {}
        self.head = self._count_head() if leading is None else leading
        """Number of leading system messages; 0 where these may leave."""

    def __len__(self) -> int:
        return self.count

    @property
    def unwritten(self) -> Transcript:
        """The same conversation before results in it were written otherwise."""
        return self._unwritten or self

    @property
    def originals(self) -> list[Any]:
        """The caller's own objects, in order; not to be changed."""
        return self.originals_from(0) if self.structure.replaced else self.messages

    def originals_from(self, start: int, /) -> list[Any]:
        """Return the caller's own objects from a position on, in a list.

        Args:
            start: Index of the first message.
        """
        kept = self.messages[start:]
        for index, message in self.structure.replaced.items():
            if index >= start:
                kept[index - start] = message
        return kept

    def originals_at(self, indices: Iterable[int], /) -> list[Any]:
        """Return some of the caller's own objects.

        Args:
            indices: Their positions in `messages`.
        """
        get = self.original if self.structure.replaced else self.messages.__getitem__
        return [*map(get, indices)]

    def original(self, index: int, /) -> Any:
        """Return one of the caller's own objects.

        Args:
            index: Its position in `messages`.
        """
        return self.structure.replaced.get(index, self.messages[index])

    @property
    def read_from(self) -> int:
        """Oldest message read or walked so far, apart from leading system messages."""
        return min(self._read_from, self._walked_from)

    @once
    def _nowhere(self) -> Structure:
        """What is noted of messages that stand nowhere, which nobody reads."""
        return Structure(1)

    @once
    def compaction(self) -> int:
        """The latest message that replaces those before it and must be kept; -1 if there is none."""
        return self.format.latest_compaction(self.messages) if self.format.rules.keeps_messages else -1

    @property
    def unread(self) -> range:
        """Messages that the provider skips, because a compaction replaces them."""
        at = self.compaction
        return range(0) if at < 0 else self.format.unread(self.messages, compaction=at)

    @once
    def last_mark(self) -> int | None:
        """The newest message with a cache mark, after the head."""
        marks, places = self.format.cache_marks, range(self.count - 1, self.head - 1, -1)
        if has_no_key(self.messages[self.head :], self.format.rules.mark_keys):
            return None
        return next((index for index in places if marks(self.message(index))), None)

    @once
    def columns(self) -> Structure:
        """The columns of all messages, read for a report, separately from those read for units."""
        columns = Structure(self.count)
        self.format.scan(self.messages.copy(), 0, self.count, columns)  # which puts dicts into its list
        return columns

    @property
    def walked_from(self) -> int:
        """Oldest message counted during the walk; the length if none was."""
        return self._walked_from

    def read(self, start: int, /) -> None:
        """Read the structure of every message from `start` on, each once.

        Args:
            start: Index of the oldest message to read.
        """
        if start < self._read_from:
            self.format.scan(self.messages, start, self._read_from, self.structure)
            self._read_from = start
            self.look_over(start)

    def look_over(self, start: int, also: Iterable[int] = ()) -> None:
        """Raise for messages that no wire form can read.

        Each message from `start` on is checked once. Messages that were read or walked have been checked; all
        other kept messages must be.

        Args:
            start: The first of them.
            also: A few single messages before it, ascending.

        Raises:
            FormatError: A message is of no known form; `.path` names it, and the error says what it looks
                like.
        """
        for index in takewhile(min(start, self._looked_from).__gt__, also):
            self._look_at(index, index + 1)
        if start < self._looked_from:
            self._look_at(start, self._looked_from)
            self._looked_from = start

    def _look_at(self, start: int, stop: int) -> None:
        few = self.messages[start:stop]
        if set(map(type, few)) != {dict}:
            few = [self.structure.read_as_dict(self.messages, index) for index in range(start, stop)]
        refuse_foreign(few, self.format.name, start=start)

    def kind(self, index: int, /) -> Kind:
        """Return the author of a message; reads only that message.

        Args:
            index: Its position in `messages`.
        """
        back = self.walked.kinds_back  # newest first: a walk appends, which costs nothing at the end
        if back and index >= self._walked_from:
            return back[self.count - 1 - index]
        message = self.messages[index]
        if type(message) is not dict:
            self._columns(index, index + 1)
            message = self.messages[index]
        return self._kind_of(message)

    def kinds(self, start: int, stop: int, /) -> list[Kind]:
        """Return the authors of neighboring messages.

        Args:
            start: Index of the first message.
            stop: One past the index of the last message.
        """
        back, count = self.walked.kinds_back, self.count
        if back and start >= self._walked_from:
            return back[count - stop : count - start][::-1]
        messages = self.messages[start:stop]
        if set(map(type, messages)) == {dict}:  # half the time of a loop that asks each
            return self.format.kinds(messages)
        return [*map(self.kind, range(start, stop))]

    def message(self, index: int, /) -> Any:
        """Return one message as a read-only dict.

        Args:
            index: Its position in `messages`.
        """
        self.kind(index)
        return self.messages[index]

    def messages_between(self, start: int, stop: int, /) -> list[Any]:
        """Return neighboring messages as read-only dicts.

        Args:
            start: Index of the first message.
            stop: One past the index of the last message.
        """
        few = self.messages[start:stop]
        return few if set(map(type, few)) <= {dict} else [*map(self.message, range(start, stop))]

    def _columns(self, start: int, stop: int) -> Structure:
        """Read a few messages into columns of their own; what is no dict becomes one."""
        few = self.messages[start:stop]
        columns = Structure(len(few))
        try:
            self.format.scan(few, 0, len(few), columns)
        except FormatError as error:
            move(error, start)
            raise
        self.messages[start:stop] = few
        for index, message in columns.replaced.items():
            self.structure.replaced.setdefault(start + index, message)
        return columns

    def _count_head(self) -> int:
        head = 0
        while self.protect and head < self.count and self.kind(head) == "system":
            head += 1
        return head

    @property
    def latest_user(self) -> int | None:
        """Position of the latest message the user wrote; None if there is none."""
        if self._latest_user == -1:
            self._latest_user = self.user_at_or_before(self.count - 1)
        return self._latest_user

    def user_at_or_before(self, index: int, /) -> int | None:
        """Find the user message that opens the turn of the message at `index`.

        The last turn found is remembered, so stepping through a turn costs one lookup per message.

        Args:
            index: Its position in `messages`.
        """
        user, last = self._turn
        if not user <= index <= last:
            found = self.format.newest(self.messages, "user", last if index > last else -1, index)
            if found >= 0 or index < user:
                user = found
            self._turn = (user, index)
        return user if user >= 0 else None

    def user_at_or_after(self, index: int, /) -> int | None:
        """Find the first user message at or after `index`.

        Args:
            index: Its position in `messages`.
        """
        for i in range(index, len(self)):
            if self.kind(i) == "user":
                return i
        return None

    def walk(self, start: int, room_tokens: int, sizes: list[int | None], prices: Prices, /) -> int | None:
        """Walk and count messages back to `start`, from the last position walked.

        Stops as soon as the room is exceeded. Notes messages out of order; the structure needed later is read
        then.

        Args:
            start: Index of the oldest message to read.
            room_tokens: Counting stops once the sum exceeds this many tokens.
            sizes: Tokens of each message; filled in.
            prices: The counter's charges.

        Returns:
            The lowest position counted; None if the format cannot count while it reads.
        """
        high, (times, by) = self._walked_from, prices.scale
        span = range(high - 1, start - 1, -1)
        # It counts before the scale, so the room is divided by that; then each size is scaled and rounded, as
        # the counter rounds a message, and if the sum came to less than the room it goes on.
        room = room_tokens * by // times
        low = self.format.count_back(self.messages, span, room, sizes, self.walked, prices)
        if low is None:
            return None
        self._walked_from = low
        left_tokens = -1
        if times != by:
            priced = [(2 * (size or 0) * times + by) // (2 * by) for size in sizes[low:high]]
            sizes[low:high] = priced
            left_tokens = room_tokens - sum(priced)
        if not self.walked.foreign:  # plain messages, each of them: nothing that could be mistaken
            self._looked_from = min(low, self._looked_from)
        if left_tokens >= 0 and start < low < high:  # what was rounded down makes room for more
            return self.walk(start, left_tokens, sizes, prices)
        return low

    def price(self, message: Any, prices: Prices, /) -> int | None:
        """Count a message outside the conversation, as a walk does.

        Counting it in full takes three times as long.

        Args:
            message: As a dict.
            prices: The counter's charges.

        Returns:
            Its tokens; None if the format cannot count while it reads.
        """
        sizes, only = list[int | None]((None,)), range(0, -1, -1)
        noted = self._nowhere
        noted.behind.clear()
        if self.format.count_back([message], only, sys.maxsize, sizes, noted, prices) is None:
            return None
        (size,), (times, by) = sizes, prices.scale
        return size if size is None or times == by else (2 * size * times + by) // (2 * by)

    def look_back(self, start: int, /) -> None:
        """Note what a walk notes, if the counter cannot count on the way.

        A pass over messages that are already counted takes a tenth of the time of pairing them.

        Args:
            start: Index of the oldest message to read.
        """
        if start < self._walked_from:
            nowhere = cast("list[int | None]", {})  # a list would be as long as the conversation
            self.walk(start, sys.maxsize, nowhere, FREE)

    def is_result(self, index: int, /) -> bool:
        """Tell whether a message, or a part of it, answers a call.

        Args:
            index: Its position in `messages`.
        """
        kind = self.kind(index)
        if kind == "tool" or self._results_are_messages:
            return kind == "tool"
        if self._walked_from <= index and index not in self.walked.odd:
            return False
        return bool(self._columns(index, index + 1).answers)

    def results(self, start: int, stop: int, /) -> list[int]:
        """List those of neighboring messages that answer calls, in whole or in part.

        Args:
            start: Index of the first message.
            stop: One past the index of the last message.
        """
        if self._results_are_messages:
            return [index for index, kind in enumerate(self.kinds(start, stop), start) if kind == "tool"]
        low, odd = min(max(start, self._walked_from), stop), self.walked.odd
        found = [*filter(self.is_result, range(start, low))]
        for index, kind in enumerate(self.kinds(low, stop), low):
            if kind == "tool" or (index in odd and self.is_result(index)):
                found.append(index)
        return found

    @property
    def is_ordinary(self) -> bool:
        """True if the walked messages form units of their own, without older ones.

        Results at their beginning belong to the call in the message before them.
        """
        if self._walked_from == self.count or self.walked.odd:
            return False
        at = self.border_at_or_before(self._walked_from) if self.walked.behind else -1
        return at < 0 or self.kind(at) == "assistant"

    def answers_in(self, index: int, /) -> tuple[tuple[str, int | None], ...]:
        """Return the ids of the calls a message answers, each with its part.

        Reads only that message.

        Args:
            index: Its position in `messages`.
        """
        return self._columns(index, index + 1).answers.get(0, ())

    def has_calls(self, index: int, /) -> bool:
        """Tell whether a message makes calls; reads only that message.

        Args:
            index: Its position in `messages`.
        """
        walked = self.walked
        if walked.kinds_back and index >= self._walked_from and index not in walked.odd:
            return index in walked.callers
        if self._read_from <= index or index in self.structure.kinds:
            return index in self.structure.calls
        return bool(self._columns(index, index + 1).calls)

    def border_at_or_before(self, index: int, /) -> int:
        """Return the nearest message at or before `index` that is not a result.

        It is 0 if all are results.

        Args:
            index: Its position in `messages`.
        """
        while index > 0 and self.is_result(index):
            index -= 1
        return index

    def border_at_or_after(self, index: int, /) -> int:
        """Return the nearest message at or after `index` that is not a result.

        It is the length if all are results.

        Args:
            index: Its position in `messages`.
        """
        while index < self.count and self.is_result(index):
            index += 1
        return index

    def stands_alone(self, index: int, /) -> bool:
        """Tell whether a message has no call and no result, and is bound to no other.

        Reads it and the message before it.

        Args:
            index: Its position in `messages`.
        """
        if self.format.rules.users_stand_alone and self.kind(index) == "user":
            return True
        walked = self.walked
        is_told = self._walked_from < index and bool(walked.kinds_back) and index not in walked.odd
        if is_told and self.kind(index) == "user":  # with results beside its words it would be odd
            return index not in walked.callers and walked.bound.isdisjoint((index - 1, index))
        known = self._alone.get(index)
        if known is None:
            known = self._alone[index] = self._is_alone(index)
        return known

    def _is_alone(self, index: int) -> bool:
        columns = self.structure
        if index <= self._read_from:
            start = max(0, index - 1)  # the one behind tells whether it is bound to that
            columns = self._columns(start, min(index + 2, self.count))
            index -= start
        tied = index in columns.calls or index in columns.answers or index in columns.loose
        return not tied and columns.bound.isdisjoint((index - 1, index))

    def _is_bound(self, index: int) -> bool:
        """Tell whether a message stays only together with the one after it; looks at these two."""
        if not self.format.rules.binds_messages or not 0 <= index < self.count - 1:
            return False
        if self._walked_from <= index:
            return index in self.walked.bound
        return 0 in self._columns(index, index + 2).bound

    @property
    def leads_system(self) -> bool:
        """True if it begins with system text that is kept."""
        return self.head > 0 and self.kind(0) == "system"

    def cannot_lead(self, index: int, /) -> bool:
        """Tell whether the provider may refuse a message in first place.

        Args:
            index: Its position in `messages`.
        """
        return self.format.order_fault(None, self.message(index), parted=True) is not None


def last_turn_of(
    count: int, kind_of: Callable[[int], Kind | None], is_bound: Callable[[int], bool] | None = None
) -> int:
    """Return the last of `count` messages that is from the user or the model; -1 if there is none.

    Where messages are bound to the one after them, it is the first of those that are bound to it.
    """
    last = count - 1
    while last >= 0 and kind_of(last) not in ("user", "assistant"):
        last -= 1
    while is_bound is not None and last > 0 and is_bound(last - 1):
        last -= 1
    return last
