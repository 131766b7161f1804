"""`History`: a conversation, read in place and no further back than it is asked about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from trimtab._shared.checks import move
from trimtab.conversation.pairing import last_turn_of, open_calls, pair
from trimtab.conversation.units import (
    NO_PARTS,
    Group,
    Parts,
    State,
    Unit,
    members,
    results_behind,
    results_in_place,
    unresolved,
    with_openers,
    with_stored,
)
from trimtab.errors import FormatError
from trimtab.formats import Format, Kind, Prices, Structure, refuse_foreign

__all__ = ["History"]


class History:
    """One conversation, read in place and only as far back as it is asked about.

    Two ways lead to the same units. `tidy(start)` tells that every result from `start` on stands
    directly behind its call, so that each message that is no result begins a unit and nothing
    older has to be read. Where that does not hold, `units` reads and pairs everything.
    """

    # What the whole request says of a part of it is five values, what a session knows better is two (the
    # messages that lead it, and the latest of the user's own); all else comes from the messages.
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
        leading: int | None = None,
        latest_user: int | None = -1,
        elsewhere: bool = False,
        looked_over: bool = False,
    ) -> None:
        self.messages: list[Any] = messages
        """The messages, in a list of our own; an entry that is no dict becomes one when read."""
        self.count = len(messages)
        """Number of messages."""
        self.format = format
        self._kind_of = format.kind
        self._results_are_messages = format.rules.results_are_messages
        self.structure = Structure(self.count)
        self.structure.elsewhere = self.elsewhere = elsewhere
        """True if the request goes on from messages the provider has stored."""
        self.pins = frozenset(pins)
        self.pending_calls = frozenset(pending_calls)
        self.protect = protect
        """True if leading system messages, the latest user message and the newest unit stay."""
        self._followed = followed
        self._answered = frozenset(answered)
        self._holds = frozenset(holds)
        self._apart = frozenset(apart)
        rules = format.rules
        tied = bool(elsewhere or self.pins or self.pending_calls or answered or holds or apart)
        self.asks_for_all = tied or rules.ordered or rules.keeps_messages
        """True if everything has to be grouped: pins, pending ids, results elsewhere, order that counts."""
        self._read_from = self._walked_from = self.count
        self._looked_from = 0 if looked_over else self.count
        self._latest_user = latest_user
        self._last_turn_at: int | None = None
        self._turn = (-1, -1)
        self._newest: int | None = None
        self._alone: dict[int, bool] = {}
        self._units: tuple[Unit, ...] | None = None
        self._read_apart = False
        self._is_alone_here = not (elsewhere or followed or self._answered or self._holds or self._apart)
        self.head = self._leading() if leading is None else leading
        """Number of leading system messages; 0 where these may leave."""

    def __len__(self) -> int:
        return self.count

    @property
    def originals(self) -> list[Any]:
        """The caller's own objects, in order; not to be changed."""
        return self.originals_from(0) if self.structure.replaced else self.messages

    def originals_from(self, start: int, /) -> list[Any]:
        """Return the caller's own objects from a position on, in a list of its own.

        Those before it are not touched: of a long history they are most.
        """
        kept = self.messages[start:]
        for index, message in self.structure.replaced.items():
            if index >= start:
                kept[index - start] = message
        return kept

    def original(self, index: int, /) -> Any:
        """Return one of the caller's own objects."""
        return self.structure.replaced.get(index, self.messages[index])

    @property
    def read_from(self) -> int:
        """Oldest message read or walked over so far, but for leading system messages."""
        return min(self._read_from, self._walked_from)

    @property
    def walked_from(self) -> int:
        """Oldest message counted while it was looked over; the length if none was."""
        return self._walked_from

    def read(self, start: int, /) -> None:
        """Read the structure of every message from `start` on, each once."""
        if start < self._read_from:
            self.format.scan(self.messages, start, self._read_from, self.structure)
            self._read_from = start
            self.look_over(start)

    def look_over(self, start: int, also: Iterable[int] = ()) -> None:
        """Refuse messages of which no wire form knows what they are.

        Each from `start` on is looked at once. What is read or walked over was; what else stays must be.

        Args:
            start: The first of them.
            also: Single messages before it, of which there are few.

        Raises:
            FormatError: With what it looks like; `.path` says which.
        """
        for index in also:
            if index < min(start, self._looked_from):
                self._look_at(index, index + 1)
        if start < self._looked_from:
            self._look_at(start, self._looked_from)
            self._looked_from = start

    def _look_at(self, start: int, stop: int) -> None:
        messages = self.messages
        few = [self.structure.read_as_dict(messages, index) for index in range(start, stop)]
        refuse_foreign(few, self.format.name, start=start)

    def kind(self, index: int, /) -> Kind:
        """Tell whom a message is from; looks at that message only."""
        message = self.messages[index]
        if type(message) is not dict:
            self._columns(index, index + 1)
            message = self.messages[index]
        return self._kind_of(message)

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
            found = self.format.newest(self.messages, "user", last if index > last else -1, index)
            if found >= 0 or index < user:
                user = found
            self._turn = (user, index)
        return user if user >= 0 else None

    def user_at_or_after(self, index: int, /) -> int | None:
        """Find the first user message at or after `index`."""
        for i in range(index, len(self)):
            if self.kind(i) == "user":
                return i
        return None

    def walk(self, start: int, room_tokens: int, sizes: list[int | None], prices: Prices, /) -> int | None:
        """Look over and count messages back to `start`, from what was walked over last.

        Stops as soon as the room is passed. Notes whether a result is not in its place, and no more:
        what of the structure is asked about later is read then.

        Returns:
            The lowest position counted; None if the format cannot count while it reads.
        """
        span = range(self._walked_from - 1, start - 1, -1)
        low = self.format.count_back(self.messages, span, room_tokens, sizes, self.structure, prices)
        if low is None:
            return None
        self._walked_from = low
        if not self.structure.foreign:  # plain messages, each of them: nothing that could be mistaken
            self._looked_from = min(low, self._looked_from)
        return low

    def _go_on(self, structure: Structure, low: int, /) -> None:
        """Take over what was noted where the same messages were walked over back to `low`."""
        self.structure, self._walked_from, self._looked_from = structure, low, low

    def tidy(self, start: int, /) -> bool:
        """Tell whether every result from `start` on stands directly behind its call.

        False if the message at `start` is a result itself. When true, every message from `start` on that
        answers nothing begins a unit, and its results follow it.
        """
        walked = self._walked_from
        if walked == self.count:
            return self._read_tidy(start)
        if self.asks_for_all or self.structure.late or self.is_result(start):
            return False
        if start >= walked:
            return True
        stop = self.border_at_or_after(start + 1)
        if stop < walked:
            return self._read_tidy(start)
        few = self._columns(start, stop)
        return results_behind(few.answers, 0, few.calls.get(0, ())) == stop - start - 1

    def _read_tidy(self, start: int) -> bool:
        # The message before may be bound to it.
        self.read(max(0, start - 1) if self.format.rules.binds_messages else start)
        structure = self.structure
        answers = structure.answers
        if structure.bound or structure.loose or self.asks_for_all:
            return False
        older = sum(1 for index in answers if index < start) if self._read_from < start else 0
        return results_in_place(structure, start) == len(answers) - older

    def is_result(self, index: int, /) -> bool:
        """Tell whether a message answers a call.

        Where parts of messages do, everything from it on is read.
        """
        if self._results_are_messages:
            message = self.messages[index]
            return (self._kind_of(message) if type(message) is dict else self.kind(index)) == "tool"
        self.read(index)
        return index in self.structure.answers

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
        """Return the nearest message at or before `index` that answers nothing.

        It is 0 if every one does.
        """
        while index > 0 and self.is_result(index):
            index -= 1
        return index

    def border_at_or_after(self, index: int, /) -> int:
        """Return the first border at or after `index`; the length if there is none."""
        while index < self.count and self.is_result(index):
            index += 1
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
            start = max(0, index - 1)  # the one behind tells whether it is bound to that
            columns = self._columns(start, min(index + 2, self.count))
            index -= start
        tied = index in columns.calls or index in columns.answers or index in columns.loose
        return not tied and columns.bound.isdisjoint((index - 1, index))

    def is_border(self, index: int, /) -> bool:
        """Tell whether a unit begins here, in a tidy part."""
        return not self.is_result(index)

    def unit_at(self, index: int, /) -> Unit:
        """Make the unit that begins at a border of a tidy part."""
        indices = tuple(range(index, self.end_of(index)))
        open_call = self.is_open(index)
        return Unit(indices, kind=self.kind(index), state=self._state(indices, open_call), open=open_call)

    def is_open(self, index: int, /) -> bool:
        """Tell, in a tidy part, whether a call's result can still come (SPEC A4b).

        Pending ids are not asked about: with any of them everything is grouped.
        """
        if index != self._last_turn() or self.kind(index) != "assistant":
            return False
        behind = self._columns(index, self.end_of(index))
        return bool(unresolved(behind.answers, 0, behind.calls.get(0, ())))

    def _last_turn(self) -> int:
        """Position of the last message from the user or the model; only its calls can be open."""
        if self._followed:
            return self.count
        if self._last_turn_at is None:
            # Results alone stand behind the newest unit's first message, where they are messages.
            count = self._newest_unit() + 1 if self._results_are_messages else self.count
            self._last_turn_at = last_turn_of(min(count, self.count), self.kind, self._is_bound)
        return self._last_turn_at

    def _is_bound(self, index: int) -> bool:
        if not self.format.rules.binds_messages:
            return False
        self.read(index)
        return index in self.structure.bound

    def staying(self) -> list[int]:
        """List, in a tidy history, the messages after the leading ones that do not leave.

        They are the latest user message, the unit of the newest message and open calls.
        """
        firsts = set[int]()
        if self.protect and self.count:
            firsts.add(self._newest_unit())
            if (user := self.latest_user) is not None:
                firsts.add(user)
        last = self._last_turn()
        if last not in firsts and 0 <= last < self.count and self.is_open(last):
            firsts.add(last)
        return [
            at for first in sorted(firsts) if first >= self.head for at in range(first, self.end_of(first))
        ]

    def may_hold(self) -> bool:
        """Tell whether anything may have to stay where nothing is protected.

        Reads no further back than the last turn.
        """
        if self.protect or self.asks_for_all:
            return True
        last = self._last_turn()
        if not 0 <= last < self.count:
            return False
        return self.is_open(last)

    def end_of(self, first: int, /) -> int:
        """Return where the unit that begins at a border ends, in a tidy part."""
        if first == self._newest:
            return self.count
        return self.border_at_or_after(first + 1) if self.kind(first) == "assistant" else first + 1

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units in order of their first message; pairs the whole conversation."""
        if self._units is None:
            self._forget_turns()
            self.read(0)
            pairing = pair(self.structure, range(len(self)))
            pairing.part_from(self._apart, self.structure)
            last_turn = self._last_turn()
            calls = open_calls(pairing, last_turn=last_turn, pending_calls=self.pending_calls)
            opened = {index for index, _ in calls - self._answered}
            groups = members(self.structure, pairing, whole={index for index, _ in self._apart})
            units = [self._unit_of(group, opened) for group in groups]
            units.sort(key=lambda unit: unit.indices[0])
            if self.format.rules.ordered:
                units = self._with_openers(units)
            self._units = tuple(with_stored(units, pairing) if self.elsewhere else units)
        return self._units

    def newest_turns(self, counted: int, /) -> tuple[Unit, ...] | None:
        """Group the newest turns, and those older ones that something must stay of.

        The first of these turns holds the message `counted`, at which the limit is passed. What is bound,
        what answers what and what an order asks for ends with a turn: one is read as if it were all. Of
        older turns those alone are read that hold a pin, and the latest message that stands for what was
        before it is looked for by its shape.

        Args:
            counted: The newest message that cannot stay along with all behind it.

        Returns:
            Units in order; None where it takes the whole conversation to tell: a result whose call is in an
            older turn, ids of calls that wait and are not found, parts of the conversation elsewhere.
        """
        if self._units is not None or not self.protect or not self._is_alone_here:
            return None
        start = self._turn_at(min(counted, self.count - 1))
        if start is None or start <= self.head:
            return None
        self._forget_turns()
        kept = self._latest_kept(start)
        # Whose words a message of the user's role are may be known better than by its role.
        asked = {index for index in (*self.pins, self.latest_user) if index is not None and index < start}
        if kept is not None:
            self.structure.kept = {kept}
            asked.add(kept)
        read = self._read_turns(start, asked - set(range(self.head)))
        if read is None:
            return None
        units = [Unit((index,), kind="system", state="pinned") for index in range(self.head)] + read
        if self.format.rules.ordered:
            units = self._with_openers(units)
        return tuple(units)

    def _turn_at(self, index: int) -> int | None:
        """Find the message of the user that opens the turn of a message, stands alone and may come first."""
        user = self.user_at_or_before(index)
        while user is not None and not (self.stands_alone(user) and not self.cannot_lead(user)):
            user = self.user_at_or_before(user - 1) if user else None
        return user

    def _latest_kept(self, start: int) -> int | None:
        """Find the latest message before `start` that stands for what was before it, if none behind does."""
        if not self.format.rules.keeps_messages:
            return None
        found = self.format.latest_compaction(self.messages)
        return found if 0 <= found < start else None

    def _read_turns(self, start: int, asked: Collection[int]) -> list[Unit] | None:
        """Group the turns from `start` on and those of single older messages; None if they are not whole."""
        spans = [(start, self.count)]
        for index in sorted(asked, reverse=True):
            if index < spans[-1][0]:
                first = self._turn_at(index)
                if first is None or first < self.head:
                    return None
                after = self.user_at_or_after(index + 1)
                while after is not None and after < spans[-1][0] and not self.stands_alone(after):
                    after = self.user_at_or_after(after + 1)
                spans.append((first, spans[-1][0] if after is None else min(after, spans[-1][0])))
        found: list[Unit] = []
        waiting = set(self.pending_calls)
        for first, stop in spans:
            units = self._group(first, stop, waiting)
            if units is None:
                return None
            found[:0] = units
        return None if waiting else found

    def _group(self, start: int, stop: int, waiting: set[str]) -> list[Unit] | None:
        """Read and group a span of turns as if they were all there is; None if they are not."""
        # What follows shows that the turn is not the last, of which a form may ask for more.
        columns = self._columns(start, min(stop + 1, self.count))
        columns.count = stop - start
        pairing = pair(columns, range(stop - start))
        alone = columns.references or columns.elsewhere or pairing.repeated
        if alone or any(None in owners for owners in pairing.owner.values()):
            return None
        newest = stop == self.count
        if pairing.unanswered and not newest:
            return None  # an answer may stand further on
        self._take(columns, start)
        if newest:
            self._read_from = start
        last_turn = self._last_turn() - start if newest else columns.count
        opened = open_calls(pairing, last_turn=last_turn, pending_calls=self.pending_calls)
        at = {start + index for index, _ in opened}
        waiting.difference_update(call_id for ids in columns.calls.values() for call_id in ids)
        units = [self._unit_of(group.moved(start), at) for group in members(columns, pairing)]
        units.sort(key=lambda unit: unit.indices[0])
        return units

    def _take(self, columns: Structure, start: int) -> None:
        """Put the columns of a span where they belong."""
        self._read_apart, own = True, self.structure
        own.kinds.update((start + index, kind) for index, kind in columns.kinds.items())
        own.calls.update((start + index, ids) for index, ids in columns.calls.items())
        own.answers.update((start + index, answers) for index, answers in columns.answers.items())
        own.loose.update((start + index, parts) for index, parts in columns.loose.items())
        own.bound.update(start + index for index in columns.bound)
        own.dangling.update(start + index for index in columns.dangling)
        own.needs.update((start + index, start + at) for index, at in columns.needs.items())
        if columns.kept:
            own.kept = {max(start + max(columns.kept), *own.kept, -1)}

    def _forget_turns(self) -> None:
        """Begin again if turns were read one by one: all of it is read in one go, where it is asked for."""
        if self._read_apart:
            replaced = self.structure.replaced
            self.structure = Structure(self.count)
            self.structure.replaced, self.structure.elsewhere = replaced, self.elsewhere
            self._read_apart, self._read_from = False, self.count

    @property
    def leads_system(self) -> bool:
        """True if it begins with system text that stays."""
        return self.head > 0 and self.kind(0) == "system"

    def cannot_lead(self, index: int, /) -> bool:
        """Tell whether the provider may refuse a message once it is the first."""
        self.kind(index)  # which makes a dict of an entry that is none
        return self.format.order_fault(None, self.messages[index], parted=True) is not None

    def _with_openers(self, units: list[Unit]) -> list[Unit]:
        head = self.head  # system text at the front leads by itself
        return with_openers(
            units, lambda index: index >= head and self.cannot_lead(index), self.user_at_or_before
        )

    def _unit_of(self, group: Group, opened: set[int]) -> Unit:
        indices = tuple(sorted(group.indices))
        parts = {index: tuple(own) for index, own in group.parts.items()} if group.parts else NO_PARTS
        kind = group.kind or self.kind(indices[0])
        open_call = not opened.isdisjoint(indices)
        state = self._state(indices, open_call, parts)
        return Unit(indices, kind=kind, state=state, open=open_call, parts=parts)

    def _state(self, indices: Sequence[int], open_call: bool, parts: Parts = NO_PARTS) -> State:
        if not self.pins.isdisjoint(indices):
            return "pinned"
        if self.structure.kept and max(self.structure.kept) in indices:
            return "held"
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
