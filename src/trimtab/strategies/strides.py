"""Strides: fixed places in a conversation at which something may change, found again without memory.

What is decided is a pure function of the conversation so far. Candidates are marked from fixed places
(multiples of M messages) by weights that need no tokenizer, so that a call that adds a few messages finds
the marks of the call before. `SlidingWindow` cuts at them, `ClearToolResults` clears up to them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate, islice, takewhile
from typing import NamedTuple

from trimtab._shared.checks import number_of
from trimtab._shared.memory import WEIGHTS, Copies
from trimtab.conversation import History
from trimtab.counting.base import RequestCounter, counter_name
from trimtab.errors import CountingError
from trimtab.strategies.base import EvictionRequest

__all__ = ["first_mark", "marks_back"]

_HALVINGS = 4
"""How often the stride is halved when no mark leaves enough: the first mark is nearly always taken, and fewer
halvings change no number of the chats they were measured on (design/003)."""
_LEAST_GRID_MESSAGES = 64
"""How far fixed places are from one another at least: up to so many messages are weighed before a cut."""


class Weighed(NamedTuple):
    """Neighboring messages as they were, and what they weigh; nothing of it is changed once it is kept."""

    form: object
    """The wire form they were weighed in; while it is kept, no other has its id."""
    copies: Copies
    sums: list[float]
    """What stands before each message, and in all."""
    marks: dict[float, list[int]]
    """The marks found in them by stride, ascending."""

    @property
    def held(self) -> tuple[int, int]:
        """How many messages it holds, and their characters."""
        return len(self.copies), self.copies.chars


class Strides:
    """The marks of a conversation from a fixed place on, and the weights they go by.

    What messages weigh, by bytes of texts and call arguments, is not changed by what a step of a Cascade does
    to them: so each message is weighed once a request, and each mark is found once. In the next call of a
    chat both are known already, as far as the messages say the same.
    """

    def __init__(self, history: History, counter: RequestCounter, start: int, grid: int) -> None:
        self._history = history
        self._weighed = history.unwritten
        """What messages weigh: with results as they came, or marks would move with what refers to what."""
        self._counter = counter
        self.start = start
        """The fixed place."""
        self._grid = grid
        self._marks: dict[float, list[int]] = {}
        """Those found by stride, ascending."""
        self._sums = [0.0]
        """What stands before each message, from `start` on."""
        self._copies: Copies | None = None
        """Those messages as they are now; None where they are not to be remembered."""
        self._is_kept = True
        """Whether what is known is remembered as it is; lists that are must not be changed."""
        self._key: object = None
        if type(counter).weight is RequestCounter.weight and start < history.count:
            form = history.format
            # Marks are counted from the first message, so that one more system text in front is another key.
            self._key = (id(form), grid, start, id(self._weighed.original(start)))
            self._recall(WEIGHTS.find(self._key, Weighed(form, Copies(), [0.0], {})))

    def _recall(self, known: Weighed | None) -> None:
        """Take what is known of the same messages, as far as they say the same."""
        if known is None:
            return
        start, (_, copies, sums, marks) = self.start, known
        stop = min(self._history.count, start + len(copies))
        if stop - start < len(copies):
            copies, sums = copies.until(stop - start), sums[: stop - start + 1]
        messages = self._weighed.messages_between(start, stop)
        if changed := copies.differences(messages):
            weights = zip(
                changed, self._history.format.weights([messages[at] for at in changed]), strict=True
            )
            heavier = (at for at, weight in weights if sums[at] + weight != sums[at + 1])
            copies = copies.until(next(heavier, len(copies)))
            for at in takewhile(len(copies).__gt__, changed):
                copies.replace(at, messages[at])
            sums, stop, self._is_kept = sums[: len(copies) + 1], start + changed[0], False
        self._copies, self._sums = copies, sums
        # A mark is told by the messages up to itself; where it once was the end, it is none.
        self._marks = {stride: found[: bisect_left(found, stop)] for stride, found in marks.items()}

    def keep(self) -> None:
        """Remember what was found, for the next call."""
        if self._copies is None or self._is_kept:
            return
        marks = {stride: [*found] for stride, found in [*self._marks.items()][-_MOST_STRIDES:]}
        WEIGHTS.keep(self._key, Weighed(self._history.format, self._copies, self._sums, marks))
        self._is_kept = True

    def first(self, stride: float, /, *, place: int, last: int | None = None) -> int | None:
        """Return the first mark from a message on: a border behind a fixed place, or behind enough weight.

        Args:
            stride: The weight after which one follows another.
            place: No mark before this message.
            last: No mark behind this message; None: on to the end.
        """
        count, marks = self._history.count, self._marks.setdefault(stride, [])
        end = count if last is None or last >= count else last + 1
        while not marks or marks[-1] < place:
            if marks and marks[-1] >= end:
                return None
            self._change()
            marks.append(self._history.border_at_or_after(self._behind(marks, stride)))
        mark = marks[bisect_left(marks, place)]
        return mark if mark < end else None

    def until(self, last: int, stride: float, /) -> list[int]:
        """List the marks up to a message, ascending."""
        self.first(stride, place=last + 1, last=last)
        marks = self._marks[stride]
        return marks[: bisect_left(marks, min(last + 1, self._history.count))]

    def _behind(self, marks: list[int], stride: float) -> int:
        """Return the message at or behind which the next mark is."""
        if not marks:
            return self.start
        mark, head, grid = marks[-1], self._history.head, self._grid
        next_grid = head + ((mark - head) // grid + 1) * grid
        return min(next_grid, self._passed_at(mark, stride))

    def _passed_at(self, index: int, weight: float) -> int:
        """Return the first message behind one that so much stands before, from that one on; else the end."""
        start, sums, count = self.start, self._sums, self._history.count
        while len(sums) <= index - start or sums[-1] - sums[index - start] < weight:
            at = start + len(sums) - 1
            if at == count:
                return count
            stop = min(count, max(at + _AT_ONCE, index + 1))
            self._change()
            sums = self._sums
            sums += islice(accumulate(self._weigh_from(at, stop), initial=sums[-1]), 1, None)
        return max(index + 1, start + bisect_left(sums, weight + sums[index - start]))

    def _change(self) -> None:
        """Make lists that are remembered ones of our own."""
        if self._is_kept and self._copies is not None:
            self._copies, self._sums = self._copies.until(len(self._copies)), [*self._sums]
        self._is_kept = False

    def _weigh_from(self, start: int, stop: int) -> list[float]:
        """Weigh neighboring messages."""
        if self._key is None:
            return [self._weigh(index) for index in range(start, stop)]
        messages = self._weighed.messages_between(start, stop)
        weights = self._history.format.weights(messages)
        if self._copies is not None:
            self._copies.add(messages)
        return weights

    def _weigh(self, index: int) -> float:
        """Ask a counter that weighs messages itself."""
        counter, message = self._counter, self._weighed.messages[index]
        weight = counter.weight(message)
        if weight is None:
            return self._history.format.weights([message])[0]
        number = number_of(weight)
        if number is None or number < 0:
            name = counter_name(counter)
            raise CountingError(
                f"counter {name} returned {weight!r} as the weight of message {index}; it must be a finite"
                " number, 0 or more",
                counter=name,
                index=index,
                answer=weight,
            )
        return float(number)


_AT_ONCE = 64
"""Messages weighed in one go: what is behind the cut is not all looked at."""

_MOST_STRIDES = 16
"""Whose marks are remembered of one place: a stride and its halves are five."""


def _strides_from(request: EvictionRequest, place: int) -> Strides:
    """Return the marks from the last fixed place before a message on.

    The constant limit of the request says how far fixed places are from one another.
    """
    # By the limit that is the same from call to call: a grid that moved would move every mark behind it. So
    # many messages of 16 tokens fill that limit.
    grid = max(_LEAST_GRID_MESSAGES, request.constant_limit_tokens // 16)
    head = request.history.head
    start = head + max(0, place - head) // grid * grid
    known: dict[int, Strides] = request.memory.setdefault(Strides, {})
    if start not in known:
        known[start] = Strides(request.history, request.sizes.counter, start, grid)
    return known[start]


def first_mark(
    request: EvictionRequest,
    place: int,
    stride: float,
    /,
    *,
    begins: Callable[[int], bool] | None = None,
    takes: Callable[[int], bool] | None = None,
    last: int | None = None,
) -> int | None:
    """Return the first mark at or behind a message, if it is taken, else that of a smaller stride.

    Args:
        request: The request.
        place: The message, behind the head.
        stride: The weight between marks; it is halved a few times.
        begins: Whether a mark is looked at; None: each is.
        takes: Whether the first of these is taken; None: it is.
        last: No mark behind this message; None: on to the end.

    Returns:
        The mark; None if none is taken.
    """
    strides = _strides_from(request, place)
    for _ in range(_HALVINGS + 1):
        mark = strides.first(stride, place=place, last=last)
        while mark is not None and begins is not None and not begins(mark):
            mark = strides.first(stride, place=mark + 1, last=last)
        if mark is not None and (takes is None or takes(mark)):
            break
        stride /= 2
    else:
        mark = None
    strides.keep()
    return mark


def marks_back(request: EvictionRequest, place: int, stride: float, /) -> Iterator[int]:
    """Walk the marks at or before a message, the newest first, from one fixed place back to the next."""
    while place >= request.history.head:
        strides = _strides_from(request, place)
        marks = strides.until(place, stride)
        strides.keep()
        yield from reversed(marks)
        place = strides.start - 1
