"""The opener of a unit: what it needs before it if not every message may come first."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import Insertion, keep_parts
from trimtab.conversation.order import Row, find_misplaced, row_or_before, stands_apart
from trimtab.conversation.turns import LastTurn
from trimtab.conversation.units import Span, Stretch, span_of, unit_of
from trimtab.formats import Step, mapping_of
from trimtab.formats.structure import head_of_turn
from trimtab.strategies.costs import Edits

if TYPE_CHECKING:
    from trimtab.report import Reason
    from trimtab.strategies.base import EvictionRequest

__all__ = [
    "Openers",
    "fit_in_order",
    "headless",
    "in_order",
    "kept_in_order",
    "place_of_message",
    "speaks_in",
    "with_thinking",
    "without_refused",
]


class Openers:
    """The openers of a request's units: for each at most one other unit.

    It is the user message that opens the turn of a unit; where there is none, the nearest unit before it that
    may come first, or the one that did.
    """

    __slots__ = ("_begin", "_history", "_leading", "_row", "_units")

    def __init__(self, history: History, row: Sequence[Span], units: Callable[[], Sequence[Unit]]) -> None:
        self._history = history
        self._row = row
        self._units = units
        self._begin = begin_of(history)
        self._leading: tuple[tuple[list[int], list[int]], ...] = ()
        """First messages and places of units that may come first, as far as is known: the user's, and all."""

    def place_before(self, index: int) -> int | None:
        """Return the place in the row of what opens for a message; None if nothing before it may."""
        row = self._row
        if not self._leading:
            users = [at for at, span in enumerate(row) if span[3] == "user"]
            firsts = [span[0] for span in row]
            self._leading = ([firsts[at] for at in users], users), (firsts, [*range(len(row))])
        # The user's come first, which nearly always may lead; what may not is taken off, so that each of many
        # that are refused is looked at once, whoever asks.
        for firsts, places in self._leading:
            at = bisect_left(firsts, index)
            while at:
                at -= 1
                if self.leads(row[places[at]]):
                    return places[at]
                del firsts[at], places[at]
        return None

    def lead_of(self, at: int) -> int | None:
        """Return the place of a unit, or of what opens for it if it needs that; None if it says nothing."""
        span = self._row[at]
        index = span[0] if span[0] >= self._begin else self.says(span)
        if index is None:
            return None
        opener = None if self._leads(span, index) else self.place_before(index)
        return at if opener is None else opener

    def before(self, index: int) -> Unit | None:
        """Return what opens for a message; None if nothing before it may."""
        place = self.place_before(index)
        return None if place is None else self._units()[place]

    def of(self, unit: Unit) -> Unit | None:
        """Return what a unit needs in front of it, if nothing there may come first; None if it may itself."""
        span = span_of(unit)
        index = self.says(span)
        return None if index is None or self.leads(span) else self.before(index)

    def leads(self, span: Span) -> bool:
        """Tell whether the provider accepts a unit as the first."""
        index = self.says(span)
        return index is not None and self._leads(span, index)

    def _leads(self, span: Span, index: int) -> bool:
        return self._may_lead(index, () if span[4] is None else span[4].parts.get(index, ()))

    def says(self, span: Span) -> int | None:
        """Return the first message of a unit that is not of the system text at the front, if there is one."""
        first, stop, _, _, unit = span
        if first >= self._begin:
            return first
        indices = range(first, stop) if unit is None else unit.indices
        return next((index for index in indices if index >= self._begin), None)

    def _may_lead(self, index: int, parts: Collection[int]) -> bool:
        history = self._history
        if index == self._begin or history.kind(index) == "system":
            return index == self._begin
        message = history.messages[index]
        if parts:
            message = mapping_of(keep_parts(history, index, message, parts))
        return history.format.order_fault(None, message, parted=True) is None

    def front(self, spans: Iterable[Span]) -> int | None:
        """Return where the first of these units is that says something; None if none does."""
        return next((at for at, span in enumerate(spans) if self.says(span) is not None), None)

    def complete(
        self, units: Sequence[Unit], insertions: Sequence[Insertion], stays: Callable[[Unit], bool]
    ) -> Sequence[Unit]:
        """Return units, in order, with the opener of the first if it needs one.

        Args:
            units: What is to stay.
            insertions: Messages that are put in; one of them may come first.
            stays: Tells which of them must stay, with or without an opener.
        """
        at = self.front(map(span_of, units))
        index = None if at is None else self.says(span_of(units[at]))
        if at is None or index is None or any(one.at <= index for one in insertions):
            return units
        beside = list(takewhile(lambda unit: unit.first <= index, units[at:]))
        parts = [part for unit in beside for part in unit.parts.get(index, ())]
        if any(map(stays, beside)) or self._may_lead(index, parts):
            return units
        opener = self.before(index)
        if opener is None or any(not one.covers.isdisjoint(opener.indices) for one in insertions):
            return units
        at = bisect_left(units, opener.first, hi=at, key=_first_of)
        return [*units[:at], opener, *units[at:]]

    def stands(self, index: int, before: int) -> bool:
        """Tell whether a message may stand behind one that came to be the nearest before it."""
        messages = self._history.messages
        return (
            before == index - 1
            or self._history.format.order_fault(messages[before], messages[index], parted=True) is None
        )


def with_thinking(
    turn: LastTurn, row: Sequence[Span], units: Sequence[Unit], insertions: Sequence[Insertion]
) -> Sequence[Unit]:
    """Return units, in order, with the thinking that has to open what they leave of the last turn.

    Args:
        turn: The last turn of the conversation.
        row: All units of it.
        units: What is to stay.
        insertions: Messages that are put in; what they stand for stays away.
    """
    if not units or not turn.holds(units[-1].indices[-1]):
        return units
    first = next((unit.first for unit in units if speaks_in(turn, unit)), None)
    index = None if first is None else turn.thinking_for(first)
    if index is None or any(index in one.covers for one in insertions):
        return units
    place = place_of_message(row, index)
    if place is None or any(index in unit.indices for unit in units):
        return units
    at = bisect_left(units, row[place][0], key=_first_of)
    return [*units[:at], unit_of(row[place]), *units[at:]]


def speaks_in(turn: LastTurn, unit: Unit) -> bool:
    """Tell whether a unit begins with a message of the model and is in the last turn."""
    return (unit.kind == "assistant" or isinstance(unit, Stretch)) and turn.holds(unit.indices[-1])


def place_of_message(row: Sequence[Span], index: int) -> int | None:
    """Return the place in the row of the unit that a message is told apart in; None if it is in none."""
    at = max(0, bisect_right(row, index, key=itemgetter(0)) - 1)
    span = row[at]
    return None if span[3] is None or not span[0] <= index < span[1] else at


def _first_of(unit: Unit) -> int:
    return unit.indices[0]


def begin_of(history: History) -> int:
    """Return the first message that is not a leading system message."""
    first = history.head
    while first < history.count and history.kind(first) == "system":
        first += 1
    return first


def in_order(
    history: History,
    kept: Sequence[Unit],
    insertions: Sequence[Insertion] = (),
    *,
    may_leave: Callable[[Unit], bool],
    led: bool = False,
) -> tuple[list[Unit], frozenset[int]]:
    """Let go of what the provider would refuse where it stands now.

    Args:
        history: The conversation; nothing happens where its wire form takes any order.
        kept: Units of it that stay, in order.
        insertions: Messages that are put in.
        may_leave: Tells which units may leave for it.
        led: Whether something in front of the conversation may come first.

    Returns:
        What still stays, and the messages that were evicted for this.
    """
    chosen = list(kept)
    if not history.ordered or (not insertions and _all_stand(history, chosen, led=led)):
        return chosen, frozenset()
    owners: dict[int, list[int]] = {}
    for at, unit in enumerate(chosen):
        for index in unit.indices[:1] if isinstance(unit, Stretch) else unit.indices:
            owners.setdefault(index, []).append(at)
    let_go = row_or_before(lambda at: may_leave(chosen[at]))
    format, first = history.format, begin_of(history)
    rows = _rows(history, chosen, owners, insertions)
    stands = stands_apart(format, first, led=led)
    gone = set(find_misplaced(format, rows, first=first, stands=stands, let_go=let_go))
    if not gone:
        return chosen, frozenset()
    staying = [unit for at, unit in enumerate(chosen) if at not in gone]
    left = {index for unit in staying for index in unit.indices}
    return staying, frozenset(i for unit in kept for i in unit.indices if i not in left)


def kept_in_order(
    request: EvictionRequest,
    units: Sequence[Unit],
    insertions: Sequence[Insertion] = (),
    *,
    led: bool = False,
) -> tuple[list[Unit], frozenset[int]]:
    """Let go of units of a request that the provider refuses behind what stays.

    Args:
        request: What is asked.
        units: Units of it that stay, in order.
        insertions: Messages to put in, beside those of earlier steps.
        led: Whether something stays in front of these units that may come first.

    Returns:
        The units that stay, and the messages of the others.
    """
    return in_order(
        request.history,
        units,
        (*request.insertions, *insertions),
        may_leave=lambda unit: not request.stays(unit),
        led=led or request.led,
    )


def fit_in_order(
    request: EvictionRequest,
    units: Sequence[Unit],
    edits: Edits | None = None,
    insertions: Sequence[Insertion] = (),
) -> bool:
    """Tell whether units fit since the provider's order has some leave: no strategy knows of these."""
    staying, gone = kept_in_order(request, units, insertions)
    return bool(gone) and request.costs.total(staying, edits, insertions) <= request.limit_tokens


def _all_stand(history: History, units: Sequence[Unit], *, led: bool) -> bool:
    """Tell whether all units surely stand where they are, by a look at each two that others stood between.

    False also where that does not tell: for units that share messages or stand inside one another, and
    where system text is ahead.
    """
    order_fault, messages, stop = history.format.order_fault, history.messages, begin_of(history)
    before: Any = None
    for unit in units:
        first, last = unit.indices[0], unit.indices[-1]
        if first < stop or unit.parts or last - first + 1 != len(unit.indices):
            return False
        apart = first != stop and not (led and before is None)
        if apart and order_fault(before, mapping_of(messages[first]), parted=True) is not None:
            return False
        before, stop = mapping_of(messages[last]), last + 1
    return True


def _rows(
    history: History,
    units: Sequence[Unit],
    owners: Mapping[int, Sequence[int]],
    insertions: Sequence[Insertion],
) -> list[Row]:
    """List what stays and what is put in, in order."""
    structure = history.structure
    rows: list[Row] = []
    indices = sorted(owners)
    for index in indices:
        message = history.messages[index]
        parts = {part for at in owners[index] for part in units[at].parts.get(index, ())}
        if parts and parts != structure.parts_of(index):
            message = keep_parts(history, index, message, parts)
        unit = units[owners[index][0]]
        last = (unit.indices[-1], history.messages[unit.indices[-1]]) if isinstance(unit, Stretch) else None
        rows.append(Row(index, message, owners[index], last))
    for shift, one in enumerate(insertions):
        rows.insert(bisect_right(indices, one.at - 1) + shift, Row(-2, one.message))
    return rows


def headless(history: History, units: Sequence[Unit], among: Callable[[], Sequence[Unit]]) -> int | None:
    """Return the message that opens the last turn of what stays, though it is none that may.

    None where the turn begins with thinking, or may begin without: also where nobody says that the model
    thinks, and nothing that was read shows it.

    Args:
        history: The conversation.
        units: Units of it that stay, in order.
        among: Lists those that were read; mostly nobody asks.
    """
    leads = history.thinking.leads
    if not leads:
        return None
    parts: dict[int, set[int]] = {}
    for unit in units:
        for index, own in unit.parts.items():
            parts.setdefault(index, set()).update(own)

    def step(index: int) -> Step:
        message = history.messages[index]
        if index in parts:  # of whose results some may be gone
            message = keep_parts(history, index, message, parts[index])
        return history.format.turn_step(mapping_of(message))

    back = (index for unit in reversed(units) for index in reversed(unit.indices))
    head = head_of_turn((index, step(index)) for index in back)
    if head is None or head.thinks:
        return None
    turn = history.last_turn
    if turn is not None and turn.holds(head.at) and turn.thinking_for(head.at) is None:
        return None  # as it came
    if leads == "surely" or (turn is not None and turn.holds(head.at)):
        return head.at
    thinks = any(step(index) == "thinks" for unit in among() for index in unit.indices)
    return head.at if thinks else None


def without_refused(
    history: History, units: Sequence[Unit], *, cannot_end: Callable[[Any], bool]
) -> tuple[list[Unit], dict[int, Reason]]:
    """Let go of what the provider would refuse now that others were evicted: as it stands, and at both ends.

    What would open the last turn without thinking leaves, and the model's words at the end where it goes on
    with none, unless they stood there before. A call whose result can still come stays.

    Args:
        history: The conversation.
        units: Units of it that stay, in order.
        cannot_end: Tells whether a message is refused as the last.

    Returns:
        What still stays, and why each message went that does not.
    """
    kept, misplaced = in_order(history, units, may_leave=_may_leave)
    reasons: dict[int, Reason] = dict.fromkeys(sorted(misplaced), "cannot_lead")
    while kept:
        index = headless(history, kept, among=lambda: history.units)
        reason: Reason = "cannot_lead"
        if index is None:
            last = max(unit.indices[-1] for unit in kept)
            if last == len(history) - 1 or not cannot_end(history.messages[last]):
                break
            index, reason = last, "cannot_end"
        gone = [unit for unit in kept if index in unit.indices]
        if not all(map(_may_leave, gone)):
            break
        kept = [unit for unit in kept if index not in unit.indices]
        reasons.update(dict.fromkeys((at for unit in gone for at in unit.indices), reason))
    for unit in kept:
        for index in unit.indices:
            reasons.pop(index, None)
    return kept, reasons


def _may_leave(unit: Unit) -> bool:
    return not unit.open
