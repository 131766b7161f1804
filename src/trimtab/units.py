"""Units: the messages that stay or leave together, read no further back than is asked about.

A unit is an assistant message with calls plus every message that answers them, wherever they
are; a message bound to the next one plus that one; or a message alone. Its members are whole
messages or, where one message answers several calls, parts of messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from trimtab._arguments import check_pending_calls, listed, move
from trimtab._grouping import (
    NO_PARTS,
    Group,
    Parts,
    State,
    Unit,
    format_of,
    members,
    resolve_pins,
    results_behind,
    results_in_place,
    unresolved,
)
from trimtab._pairing import last_turn_of, open_calls, pair
from trimtab.errors import FormatError
from trimtab.formats import Format, Kind, Prices, Structure

__all__ = ["History", "State", "Unit", "group"]


class History:
    """One conversation, read in place and only as far back as it is asked about.

    Two ways lead to the same units. `tidy(start)` tells that every result from `start` on stands
    directly behind its call, so that each message that is no result begins a unit and nothing
    older has to be read. Where that does not hold, `units` reads and pairs everything.
    """

    def __init__(
        self,
        messages: list[Any],
        *,
        format: Format,
        pins: Collection[int] = (),
        pending_calls: Collection[str] = (),
        protect: bool = True,
        followed: bool = False,
        answered: Collection[tuple[int, str]] = (),
        holds: Collection[int] = (),
        apart: Collection[tuple[int, str]] = (),
    ) -> None:
        self.originals: list[Any] = messages
        """The caller's objects, in a list that is not the caller's and is not changed."""
        self.messages: list[Any] = self.originals.copy()
        """The same as dicts; an entry that is none is replaced when it is first read."""
        self.count = len(messages)
        """Number of messages."""
        self.format = format
        self.structure = Structure(self.count)
        self.pins = frozenset(pins)
        self.pending_calls = frozenset(pending_calls)
        self.protect = protect
        """True if leading system messages, the latest user message and the newest unit stay."""
        self._followed = followed
        self._answered = frozenset(answered)
        self._holds = frozenset(holds)
        self._apart = frozenset(apart)  # (message, call id) of results whose call is not among these
        self._read_from = self._walked_from = self.count
        self._latest_user: int | None = -1
        self._last_turn_at: int | None = None
        self._turn = (-1, -1)
        self._newest: int | None = None
        self._alone: dict[int, bool] = {}
        self._units: tuple[Unit, ...] | None = None
        self.head = self._leading()
        """Number of leading system messages; 0 where these may leave."""

    def __len__(self) -> int:
        return self.count

    @property
    def asks_for_all(self) -> bool:
        """True if everything has to be grouped: pins, pending ids, results elsewhere."""
        return bool(self.pins or self.pending_calls or self._answered or self._holds)

    @property
    def read_from(self) -> int:
        """Oldest message read so far; of older ones only leading ones are known."""
        return self._read_from

    @property
    def walked_from(self) -> int | None:
        """Oldest message read and counted at once; None if some were read in another way."""
        return self._walked_from if self._walked_from == self._read_from else None

    def read(self, start: int, /) -> None:
        """Read the structure of every message from `start` on, each once."""
        if start < self._read_from:
            self.format.scan(self.messages, start, self._read_from, self.structure)
            self._read_from = start

    def kind(self, index: int, /) -> Kind:
        """Tell whom a message is from; looks at that message only."""
        known = self.structure.kinds.get(index)
        if known is None:
            message = self.messages[index]
            if type(message) is not dict:
                self._columns(index, index + 1)
                message = self.messages[index]
            known = self.structure.kinds[index] = self.format.kind(message)
        return known

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
        return columns

    def _leading(self) -> int:
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

        The turn found last is remembered, so that stepping through one costs a look a message.
        """
        user, last = self._turn
        if not user <= index <= last:
            if (found := self._user_between(last if index > last else -1, index)) >= 0 or index < user:
                user = found
            self._turn = (user, index)
        return user if user >= 0 else None

    def _user_between(self, after: int, index: int) -> int:
        """Find the newest user message in `(after, index]`; -1 if there is none."""
        while index > after:
            if self.kind(index) == "user":
                return index
            index -= 1
        return -1

    def user_at_or_after(self, index: int, /) -> int | None:
        """Find the first user message at or after `index`."""
        for i in range(index, len(self)):
            if self.kind(i) == "user":
                return i
        return None

    def walk(self, start: int, room_tokens: int, sizes: list[int | None], prices: Prices, /) -> int | None:
        """Read and count back to `start`, from what was read last.

        Stops as soon as the room is passed.

        Returns:
            The lowest position read; None if the format cannot count while it reads.
        """
        count_back = getattr(self.format, "count_back", None)
        if count_back is None:
            return None
        span = range(self._read_from - 1, start - 1, -1)
        low: int = count_back(self.messages, span, room_tokens, sizes, self.structure, prices)
        self._read_from = self._walked_from = low
        return low

    def tidy(self, start: int, /) -> bool:
        """Tell whether every result from `start` on stands directly behind its call.

        False if the message at `start` is a result itself. When true, every message from `start` on that
        answers nothing begins a unit, and its results follow it.
        """
        # The message before may be bound to it.
        self.read(max(0, start - 1) if self.format.rules.binds_messages else start)
        structure = self.structure
        if structure.bound or structure.loose or self.asks_for_all or start in structure.answers:
            return False
        answers, read_from = structure.answers, self._read_from
        if self._walked_from < self.count:  # the walk looked at what lies between its own ends
            if structure.late or start >= self._walked_from:
                return not structure.late
            stop = first_border(self, start + 1)
            if stop >= self._walked_from:
                return results_behind(answers, start, structure.calls.get(start, ())) == stop - start - 1
        found = results_in_place(structure, start)
        older = sum(1 for index in answers if index < start) if read_from < start else 0
        return found == len(answers) - older

    def newest_border(self) -> int:
        """Return the oldest message that says what is newest and what is open.

        It and those behind it tell what the newest unit is and which calls are open.
        """
        newest, last = self._newest_unit(), self._last_turn()
        return last if 0 <= last < newest and self.kind(last) == "assistant" else newest

    def _newest_unit(self) -> int:
        if self._newest is None:  # 0 if every message answers something
            self._newest = self.border_at_or_before(max(self.count - 1, 0))
        return self._newest

    def border_at_or_before(self, index: int, /) -> int:
        """Return the nearest message at or before it that answers nothing, or 0."""
        answers = self.structure.answers
        self.read(index)
        while index > 0 and index in answers:
            index -= 1
            self.read(index)
        return index

    def stands_alone(self, index: int, /) -> bool:
        """Tell whether a message neither calls, answers nor is bound.

        Looks at it and the one before.
        """
        if self.format.rules.users_stand_alone and self.kind(index) == "user":
            return True
        known = self._alone.get(index)
        if known is None:
            known = self._alone[index] = self._is_alone(index)
        return known

    def _is_alone(self, index: int) -> bool:
        columns = self.structure
        if index <= self._read_from:
            columns = self._columns(max(0, index - 1), index + 1)
            index = columns.count - 1
        tied = index in columns.calls or index in columns.answers or index in columns.loose
        return not tied and columns.bound.isdisjoint((index - 1, index))

    def is_border(self, index: int, /) -> bool:
        """Tell whether a unit begins here, in a tidy part."""
        return index not in self.structure.answers

    def unit_at(self, index: int, /) -> Unit:
        """Make the unit that begins at a border of a tidy part."""
        indices = tuple(range(index, self.end_of(index)))
        open_call = self.is_open(index)
        return Unit(indices, kind=self.kind(index), state=self._state(indices, open_call), open=open_call)

    def is_open(self, index: int, /) -> bool:
        """Tell, in a tidy part, whether a call's result can still come (SPEC A4b).

        Pending ids are not asked about: with any of them everything is grouped.
        """
        ids = self.structure.calls.get(index)
        if ids is None or index != self._last_turn():
            return False
        return bool(unresolved(self.structure.answers, index, ids))

    def _last_turn(self) -> int:
        """Position of the last message from the user or the model; only its calls can be open."""
        if self._followed:
            return self.count
        if self._last_turn_at is None:
            self._last_turn_at = last_turn_of(self.count, self.kind)
        return self._last_turn_at

    def staying(self) -> list[int]:
        """List, in a tidy history, the messages after the leading ones that do not leave.

        They are the latest user message, the unit of the newest message and open calls.
        """
        if not self.protect or not self.count:
            return self._staying_of(self._open_units())
        firsts = self._open_units()
        if (user := self.latest_user) is not None:
            firsts.add(user)
        firsts.add(self._newest_unit())
        return self._staying_of(firsts)

    def may_hold(self) -> bool:
        """Tell whether anything may have to stay where nothing is protected.

        Reads no further back than the last turn.
        """
        if self.protect or self.asks_for_all:
            return True
        last = self._last_turn()
        if not 0 <= last < self.count:
            return False
        self.read(last)
        return self.is_open(last)

    def _open_units(self) -> set[int]:
        last = self._last_turn()
        return {last} if 0 <= last < self.count and self.is_open(last) else set()

    def _staying_of(self, firsts: set[int]) -> list[int]:
        head = self.head
        found: list[int] = []
        for first in sorted(firsts):
            if first < head:
                continue
            found.extend(range(first, self.end_of(first)))
        return found

    def end_of(self, first: int, /) -> int:
        """Return where the unit that begins at a border ends."""
        stop = first + 1
        if first in self.structure.calls:
            answers = self.structure.answers
            while stop in answers:
                stop += 1
        return stop

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units in order of their first message.

        Reads and pairs the whole conversation.
        """
        if self._units is None:
            self.read(0)
            pairing = pair(self.structure, range(len(self)))
            pairing.part_from(self._apart, self.structure)
            last_turn = self._last_turn()
            calls = open_calls(pairing, last_turn=last_turn, pending_calls=self.pending_calls)
            opened = {index for index, _ in calls - self._answered}
            units = [self._unit_of(group, opened) for group in members(self.structure, pairing)]
            self._units = tuple(sorted(units, key=lambda unit: unit.indices[0]))
        return self._units

    def _unit_of(self, group: Group, opened: set[int]) -> Unit:
        indices, parts = tuple(sorted(group.indices)), group.parts or NO_PARTS
        kind = group.kind or self.kind(indices[0])
        open_call = not opened.isdisjoint(indices)
        state = self._state(indices, open_call, parts)
        return Unit(indices, kind=kind, state=state, open=open_call, parts=parts)

    def _state(self, indices: Sequence[int], open_call: bool, parts: Parts = NO_PARTS) -> State:
        if not self.pins.isdisjoint(indices):
            return "pinned"
        if not self.protect:
            return "held" if open_call or not self._holds.isdisjoint(indices) else "free"
        if indices[0] < self.head or self._is_latest_user(indices, parts):
            return "pinned"
        return "held" if open_call or self.count - 1 in indices else "free"

    def _is_latest_user(self, indices: Sequence[int], parts: Parts) -> bool:
        user = self.latest_user
        if user is None or user not in indices:
            return False
        return user not in parts or parts[user] == self.structure.loose.get(user)


def group(
    messages: Iterable[Any],
    *,
    format: str | Format = "auto",
    pin: Any = (),
    pending_calls: Collection[str] = (),
) -> tuple[Unit, ...]:
    """Group a conversation into units, in order of their first message.

    Args:
        messages: A list of messages; read in place, never changed.
        format: Name of the wire form, or a `Format`; "auto" goes by the shapes that occur.
        pin: Indices, or a predicate `(message, index)`, of messages that must not leave.
        pending_calls: Ids of calls whose results are still to come (SPEC A4b).

    Returns:
        Every message, or part of one, in exactly one unit. Results without a call are alone.

    Raises:
        ConfigurationError: An argument is of the wrong kind, or a pin is out of range.
        FormatError: An entry is no message; `.path` says which.

    Complexity: O(n) in messages and calls.
    """
    items, ids = listed(messages), check_pending_calls(pending_calls)
    chosen, pins = format_of(items, format), resolve_pins(pin, items)
    return History(items, format=chosen, pins=pins, pending_calls=ids).units


def first_border(history: History, index: int, /) -> int:
    """Return the first border at or after `index`, in a tidy part; the length if there is none."""
    count, answers = history.count, history.structure.answers
    while index < count and index in answers:
        index += 1
    return index
