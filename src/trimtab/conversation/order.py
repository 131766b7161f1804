"""A provider's order: what may not stand behind what is now before it, and what leaves for that.

One rule over rows, for whatever moved them together: eviction, a callback, blocks that meet, a session's
view, a repair. Who asks lists what stays as rows, says which row stands where it does, and what leaves in
place of one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, NamedTuple

from trimtab.formats import Dict, Format, Request, mapping_of

__all__ = [
    "LetGo",
    "Row",
    "Stands",
    "cannot_end",
    "find_misplaced",
    "newest_inside",
    "order_faults",
    "row_or_before",
    "stands_apart",
]


class Row(NamedTuple):
    """A message that stays, where it was, and what it is of."""

    place: int
    """Its position among all there were; negative for one that was put in, which was beside none of them."""
    message: Any
    owners: Sequence[int] = ()
    """Numbers of what it leaves with: it is there as long as one of these is. One of nothing never leaves."""
    last: tuple[int, Any] | None = None
    """Place and message of the last of those that it stands for, which are neighbors; None if it is one."""

    @property
    def end(self) -> tuple[int, Any]:
        """Place and message of what is nearest to the row behind."""
        return (self.place, self.message) if self.last is None else self.last


Stands = Callable[[Row | None, Row], bool]
"""Tells whether a row may stand behind another; None is the beginning."""

LetGo = Callable[[Row, Row | None], Collection[int]]
"""Says which owners leave where a row does not stand behind another: its own, those of the other, or none."""


def stands_apart(format: Format, first: int, *, led: bool = False) -> Stands:
    """Return the rule for rows of which others were evicted: what stood together before still does.

    Args:
        format: The wire form; its `order_fault` says what may not be.
        first: Position of the first message there was, but for leading system messages.
        led: Whether something in front of the rows may come first, so that the first of them need not.
    """

    def stands(before: Row | None, row: Row) -> bool:
        if row.place < 0 or (before is None and (led or row.place == first)):
            return True
        place, message = (-1, None) if before is None else before.end
        if place >= 0 and row.place == place + 1:
            return True
        after = None if before is None else mapping_of(message)
        return format.order_fault(after, mapping_of(row.message), parted=True) is None

    return stands


def row_or_before(may_leave: Callable[[int], bool]) -> LetGo:
    """Return the rule that a row's owners go, or, where all of them must stay, those of the row before it."""

    def let_go(row: Row, before: Row | None) -> list[int]:
        for one in (row, before):
            found = [owner for owner in (one.owners if one else ()) if may_leave(owner)]
            if found:
                return found
        return []

    return let_go


def find_misplaced(
    format: Format,
    rows: Sequence[Row],
    *,
    first: int,
    stands: Stands,
    let_go: LetGo,
) -> list[int]:
    """Find what has to leave for every row to stand where it is.

    Every row is looked at once, and again when the row before it is gone, so that this takes n log n steps
    whatever leaves.

    Args:
        format: The wire form.
        rows: What stays, in order.
        first: Position of the first message there was, but for system messages: those are passed over.
        stands: Tells whether a row may stand behind another.
        let_go: Says which owners leave where a row does not stand behind the one before it.

    Returns:
        The owners that leave.
    """
    # A linked list and a heap of places: who leaves makes two rows neighbors, of which the second alone is
    # looked at again; and always the oldest first, as in a pass from the front.
    line, gone = _Line(format, rows, first), dict[int, None]()
    while (at := line.next()) is not None:
        before = line.before(at)
        if line.is_ahead(at) or stands(before, rows[at]):
            continue
        for owner in let_go(rows[at], before):
            if owner not in gone:
                gone[owner] = None
                line.take_out(owner)
    return list(gone)


class _Line:
    """Rows behind one another, and those still to be looked at."""

    def __init__(self, format: Format, rows: Sequence[Row], first: int) -> None:
        count = len(rows)
        self._format = format
        self._rows = rows
        self._first = first
        self._before, self._after = list(range(-1, count - 1)), list(range(1, count + 1))
        self._owners = [len(row.owners) for row in rows]
        self._there, self._ahead = [True] * count, [False] * count
        self._of: dict[int, list[int]] = {}
        for at, row in enumerate(rows):
            for owner in row.owners:
                self._of.setdefault(owner, []).append(at)
        self._waiting = list(range(count))

    def next(self) -> int | None:
        """Return the next row to look at; None if all stand that remain."""
        while self._waiting:
            if self._there[at := heappop(self._waiting)]:
                return at
        return None

    def before(self, at: int) -> Row | None:
        """Return what a row stands behind; None if that is the beginning, or system text ahead of all."""
        before = self._before[at]
        return None if before < 0 or self._ahead[before] else self._rows[before]

    def is_ahead(self, at: int) -> bool:
        """Tell whether a row is system text ahead of all else, as it was before."""
        row = self._rows[at]
        ahead = self.before(at) is None and row.place < self._first
        ahead = ahead and self._format.kind(mapping_of(row.message)) == "system"
        if ahead != self._ahead[at]:
            self._ahead[at] = ahead
            self._look_at(self._after[at])
        return ahead

    def take_out(self, owner: int) -> None:
        """Take out the rows that are of nothing else; what stood behind them is looked at again."""
        for at in self._of[owner]:
            self._owners[at] -= 1
            if self._owners[at]:
                continue
            self._there[at] = False
            before, after = self._before[at], self._after[at]
            if before >= 0:
                self._after[before] = after
            if after < len(self._rows):
                self._before[after] = before
            self._look_at(after)

    def _look_at(self, at: int) -> None:
        if at < len(self._rows):
            heappush(self._waiting, at)


def cannot_end(format: Format, request: Request, message: Any) -> bool:
    """Tell whether the provider refuses a message of the model's as the last that it takes elsewhere.

    Some models go on with no answer of their own, some with none that has thinking, or ends in a space.

    Args:
        format: The wire form, for its model.
        request: What stands beside the messages.
        message: The message.
    """
    entry = mapping_of(message)
    if format.kind(entry) != "assistant":
        return False
    beside = request if request.body is not None else replace(request, body={})
    last, inside = (
        {fault.rule for fault in format.faults(messages, replace(beside, messages=messages))}
        for messages in ([entry], [entry, mapping_of(format.message("user", ["Go on."]))])
    )
    return not last <= inside


def newest_inside(places: Sequence[int]) -> int | None:
    """Return where the newest of some messages stands, if that is not the end: it was moved forward.

    Args:
        places: Where each of them stood before.
    """
    newest = max(range(len(places)), key=places.__getitem__, default=-1)
    return newest if newest < len(places) - 1 else None


def order_faults(format: Format, messages: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Find messages the provider does not take behind the one before them, and its words.

    Each is passed over from then on: what follows is looked at as if it were not there.
    """
    if not format.rules.ordered:
        return
    previous: Dict | None = None
    for index, message in enumerate(messages):
        entry = mapping_of(message)
        if previous is None and format.kind(entry) == "system":
            continue
        words = format.order_fault(previous, entry)
        if words is None:
            previous = entry
        else:
            yield index, words
