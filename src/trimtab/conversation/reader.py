"""`History`: a conversation, read in place and no further back than it is asked about."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any

from trimtab._shared.checks import move
from trimtab._shared.once import once
from trimtab.conversation.pairing import last_turn_of, open_calls, pair
from trimtab.conversation.turns import LastTurn
from trimtab.conversation.units import (
    NO_PARTS,
    Group,
    Parts,
    Span,
    State,
    Unit,
    members,
    missing_ids,
    span_of,
    unit_of,
    with_openers,
    with_stored,
    with_thinking,
)
from trimtab.errors import FormatError
from trimtab.formats import Format, Kind, Prices, Structure, Thinking, refuse_foreign
from trimtab.formats.origin import OriginOf
from trimtab.formats.values import has_no_key

__all__ = ["History"]


class History:
    """One conversation, read in place and only as far back as it is asked about.

    It is walked over from the newest message back, and counted on the way. What belongs together is then told
    of the messages near a cut and of those that something must stay of (`near`); what stands between stays as
    it is, and is told apart where a cut comes to fall into it (`part`). `units` reads and pairs everything.
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
        thinking: Thinking | None = None,
        origin_of: OriginOf | None = None,
    ) -> None:
        self.messages: list[Any] = messages
        """The messages, in a list of our own; an entry that is no dict becomes one when read."""
        self.count = len(messages)
        """Number of messages."""
        self.format = format
        self._kind_of = format.kind
        rules = format.rules
        self._plain = rules.results_are_messages and not rules.binds_messages
        """Each message that is no result begins something."""
        self._results_are_messages = rules.results_are_messages
        self.structure = self.walked = Structure(self.count)
        """What was read of its messages; until all units are asked for, what was noted while walking, too."""
        self.structure.elsewhere = self.elsewhere = elsewhere
        """True if the request goes on from messages the provider has stored."""
        self.thinking = format.thinking_rules(None, None) if thinking is None else thinking
        """What the model asks of thinking that is sent back to it."""
        self.ordered = rules.ordered or bool(self.thinking.leads)
        """Not every message may come first, or behind every other."""
        self.pins = frozenset(pins)
        self.pending_calls = frozenset(pending_calls)
        self.protect = protect
        """True if leading system messages, the latest user message and the newest unit stay."""
        self.origin_of = origin_of
        self._followed = followed
        self._answered = frozenset(answered)
        self.last_turn = (
            LastTurn(messages, format.turn_step, answered=bool(answered)) if self.thinking.leads else None
        )
        """The turn in which the model is to go on; None where that may begin with anything."""
        self.holds = frozenset(holds)
        """Messages that do not leave, and may be shortened, beside the newest unit."""
        self._apart = frozenset(apart)
        self._read_from = self._walked_from = self.count
        self._looked_from = 0 if looked_over else self.count
        self._latest_user = latest_user
        self._last_turn_at: int | None = None
        self._turn = (-1, -1)
        self._newest: int | None = None
        self._alone: dict[int, bool] = {}
        self._marks: list[tuple[int, State]] = []
        self._units: tuple[Unit, ...] | None = None
        self._read_apart = False
        self._is_alone_here = not (elsewhere or self._answered or self.holds or self._apart)
        self.head = self._count_head() if leading is None else leading
        """Number of leading system messages; 0 where these may leave."""

    def __len__(self) -> int:
        return self.count

    @property
    def originals(self) -> list[Any]:
        """The caller's own objects, in order; not to be changed."""
        return self.originals_from(0) if self.structure.replaced else self.messages

    def originals_from(self, start: int, /) -> list[Any]:
        """Return the caller's own objects from a position on, in a list.

        Args:
            start: Index of the first.
        """
        kept = self.messages[start:]
        for index, message in self.structure.replaced.items():
            if index >= start:
                kept[index - start] = message
        return kept

    def original(self, index: int, /) -> Any:
        """Return one of the caller's own objects.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        return self.structure.replaced.get(index, self.messages[index])

    @property
    def read_from(self) -> int:
        """Oldest message read or walked over so far, but for leading system messages."""
        return min(self._read_from, self._walked_from)

    @once
    def compaction(self) -> int:
        """The latest message that stands for those before it and may not leave; -1 where none does."""
        return self.format.latest_compaction(self.messages) if self.format.rules.keeps_messages else -1

    @property
    def unread(self) -> range:
        """What the provider neither reads nor charges, since a compaction stands for it."""
        at = self.compaction
        return range(0) if at < 0 else self.format.unread(self.messages, compaction=at)

    @once
    def last_mark(self) -> int | None:
        """The newest message with a mark for a prompt cache, behind the head."""
        marks, places = self.format.cache_marks, range(self.count - 1, self.head - 1, -1)
        if has_no_key(self.messages[self.head :], self.format.rules.mark_keys):
            return None
        return next((index for index in places if marks(self.message(index))), None)

    @property
    def walked_from(self) -> int:
        """Oldest message counted while it was looked over; the length if none was."""
        return self._walked_from

    def read(self, start: int, /) -> None:
        """Read the structure of every message from `start` on, each once.

        Args:
            start: Index of the oldest message to be read.
        """
        if start < self._read_from:
            self.format.scan(self.messages, start, self._read_from, self.structure)
            self._read_from = start
            self.look_over(start)

    def look_over(self, start: int, also: Iterable[int] = ()) -> None:
        """Refuse messages of which no wire form knows what they are.

        Each from `start` on is looked at once. What is read or walked over was; what else stays must be.

        Args:
            start: The first of them.
            also: Single messages before it, ascending, of which there are few.

        Raises:
            FormatError: With what it looks like; `.path` says which.
        """
        for index in takewhile(min(start, self._looked_from).__gt__, also):
            self._look_at(index, index + 1)
        if start < self._looked_from:
            self._look_at(start, self._looked_from)
            self._looked_from = start

    def _look_at(self, start: int, stop: int) -> None:
        messages = self.messages
        few = [self.structure.read_as_dict(messages, index) for index in range(start, stop)]
        refuse_foreign(few, self.format.name, start=start)

    def kind(self, index: int, /) -> Kind:
        """Tell whom a message is from; looks at that message only.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        back = self.walked.kinds_back
        if back and index >= self._walked_from:
            return back[self.count - 1 - index]
        message = self.messages[index]
        if type(message) is not dict:
            self._columns(index, index + 1)
            message = self.messages[index]
        return self._kind_of(message)

    def kinds(self, start: int, stop: int, /) -> list[Kind]:
        """Tell whom neighboring messages are from.

        Args:
            start: Index of the first message.
            stop: Index behind the last one.
        """
        back, count = self.walked.kinds_back, self.count
        if back and start >= self._walked_from:
            return back[count - stop : count - start][::-1]
        messages = self.messages[start:stop]
        if set(map(type, messages)) == {dict}:
            return self.format.kinds(messages)
        return [*map(self.kind, range(start, stop))]

    def message(self, index: int, /) -> Any:
        """Return one message as a dict, to be read only.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        self.kind(index)
        return self.messages[index]

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

        The turn found last is remembered, so that stepping through one costs a look a message.

        Args:
            index: Of a message, as it stands in `messages`.
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
            index: Of a message, as it stands in `messages`.
        """
        for i in range(index, len(self)):
            if self.kind(i) == "user":
                return i
        return None

    def walk(self, start: int, room_tokens: int, sizes: list[int | None], prices: Prices, /) -> int | None:
        """Look over and count messages back to `start`, from what was walked over last.

        Stops as soon as the room is passed. Notes what does not stand where it belongs; what of the structure
        is asked about later is read then.

        Args:
            start: Index of the oldest message to be read.
            room_tokens: Tokens at which it stops when the sum passes them.
            sizes: Tokens of each message; filled in.
            prices: What the counter charges.

        Returns:
            The lowest position counted; None if the format cannot count while it reads.
        """
        high, (times, by) = self._walked_from, prices.scale
        span = range(high - 1, start - 1, -1)
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
        if left_tokens >= 0 and start < low < high:  # what was rounded down left room for more
            return self.walk(start, left_tokens, sizes, prices)
        return low

    def is_result(self, index: int, /) -> bool:
        """Tell whether a message answers a call, or a part of it does.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        kind = self.kind(index)
        if kind == "tool" or self._results_are_messages:
            return kind == "tool"
        if self._walked_from <= index and index not in self.walked.odd:
            return False
        return bool(self._columns(index, index + 1).answers)

    def results(self, start: int, stop: int, /) -> list[int]:
        """List those of neighboring messages that answer calls, or a part of which does.

        Args:
            start: Index of the first message.
            stop: Index behind the last one.
        """
        if self._results_are_messages:
            return [index for index, kind in enumerate(self.kinds(start, stop), start) if kind == "tool"]
        return [*filter(self.is_result, range(start, stop))]

    def is_sound(self, cut: int, before: Collection[int], /) -> bool:
        """Tell whether no call or result that stays lacks its other half.

        Args:
            cut: All from this message on stays.
            before: Messages before it that stay.
        """
        if self.walked.odd or self.walked.unanswered or self.walked.foreign or self._walked_from > cut:
            return False
        there = {*before, cut} if cut < self.count else set(before)
        return all(
            index - 1 in there
            if self.is_result(index)
            else index >= self._walked_from or self.kind(index) in ("user", "system")
            for index in there
        )

    @property
    def is_ordinary(self) -> bool:
        """True if nothing walked over stays or leaves with what is further back.

        Results at its beginning leave with the call before them, which is no other than the message there.
        """
        if self._walked_from == self.count or self.walked.odd:
            return False
        at = self.border_at_or_before(self._walked_from) if self.walked.behind else -1
        return at < 0 or self.kind(at) == "assistant"

    def answers_in(self, index: int, /) -> tuple[tuple[str, int | None], ...]:
        """Return the ids of the calls a message answers, each with its part.

        Looks at that message only.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        return self._columns(index, index + 1).answers.get(0, ())

    def has_calls(self, index: int, /) -> bool:
        """Tell whether a message makes calls; looks at that message only.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        walked = self.walked
        if walked.kinds_back and index >= self._walked_from and index not in walked.odd:
            return index in walked.callers
        if self._read_from <= index or index in self.structure.kinds:
            return index in self.structure.calls
        return bool(self._columns(index, index + 1).calls)

    def _newest_unit(self) -> int:
        if self._newest is None:  # 0 if every message answers something
            self._newest = self.border_at_or_before(max(self.count - 1, 0))
        return self._newest

    def border_at_or_before(self, index: int, /) -> int:
        """Return the nearest message at or before `index` that answers nothing.

        It is 0 if every one does.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        while index > 0 and self.is_result(index):
            index -= 1
        return index

    def border_at_or_after(self, index: int, /) -> int:
        """Return the nearest message at or after `index` that answers nothing.

        It is the length if none is.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        while index < self.count and self.is_result(index):
            index += 1
        return index

    def stands_alone(self, index: int, /) -> bool:
        """Tell whether a message neither calls, answers nor is bound.

        Looks at it and the one before.

        Args:
            index: Of a message, as it stands in `messages`.
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
        """Tell whether a message stays only together with the one after it; looks at these two."""
        if not self.format.rules.binds_messages or not 0 <= index < self.count - 1:
            return False
        if self._walked_from <= index:
            return index in self.walked.bound
        return 0 in self._columns(index, index + 2).bound

    def may_hold(self) -> bool:
        """Tell whether anything may have to stay where nothing is protected.

        Reads no further back than the last turn.
        """
        tied = self.pins or self.pending_calls or not self._is_alone_here
        if self.protect or self.ordered or self.format.rules.keeps_messages or tied:
            return True
        last = self._last_turn()
        if not 0 <= last < self.count or self.kind(last) != "assistant":
            return False
        behind = self._columns(last, self.count)
        return bool(missing_ids(behind.answers, 0, behind.calls.get(0, ())))

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
            if self.ordered:
                units = self._with_openers(units)
            self._units = tuple(with_stored(units, pairing) if self.elsewhere else units)
        return self._units

    @property
    def spans(self) -> list[Span]:
        """The units as spans.

        Where everything was walked over, no unit is made of what is ordinary.
        """
        near = self.near(self.head) if self._walked_from <= self.head < self.count else None
        found: list[Span] = []
        for span in near or ():
            group = [span] if span[3] is not None else self._all_between(span[0], span[1])
            if group is None:
                found = []
                break
            found += group
        return self._mark(found) or list(map(span_of, self.units))

    def _all_between(self, start: int, stop: int) -> list[Span] | None:
        """Tell apart all units of a stretch: what is out of the ordinary, and what stands between."""
        if stop == self.count or self._is_told(start, stop):
            return self._group(start, stop, set())
        walked = self.walked
        marks = {index for index in (*walked.odd, *walked.unanswered) if start <= index < stop}
        apart = self._spans_of(marks, start)
        if not marks or any(first < start or end > stop for first, end in apart):
            return self._group(start, stop, set())
        found: list[Span] = []
        for span in self._row(apart, start=start, stop=stop) or ():
            group = [span] if span[3] is not None else self._group(span[0], span[1], set())
            if group is None:
                return None
            found += group
        return found or None

    def near(self, counted: int, also: Collection[int] = (), /) -> list[Span] | None:
        """Tell apart the units near a cut, at the end, and those that must stay.

        What stands between these is a stretch, to be told apart by `part` where a cut falls into it. What is
        older than all surely leaves. Of it those alone are read that are pinned or asked for, that open the
        turn cut into, or that stand for what was before: the latest of these is looked for by its shape. A
        turn in which something is out of the ordinary is read as if it were all there is.

        Args:
            counted: The newest message that cannot stay along with all behind it.
            also: Older messages that are asked for.

        Returns:
            Their spans in order; None where it takes the whole conversation to tell: a result whose call is
            in another turn, ids of calls that wait and are not found, parts of the conversation elsewhere.
        """
        if self._units is not None or not self._is_alone_here or not self.count:
            return None
        index = min(counted, self.count - 1)
        told = self._walked_from <= counted
        start = self._turn_at(index) if self.ordered or not told or self.walked.odd else index
        if start is None:
            return None
        end = self._border_at_or_before(min(max(0, self._last_turn()), self.count - 1))
        if told:
            start = self._border_at_or_before(index)
            spans = [(start, self._border_after(start, _FEW)), (end, self.count)]
        else:
            spans = [(start, self.count)]
        spans += self._spans_of(self._landmarks(start, end, also), start)
        return self._row(spans, start=max(start, self.head), stop=self.count)

    def part(self, first: int, stop: int, /, *, at: int, few: int) -> list[Span] | None:
        """Tell apart some units of a stretch.

        Args:
            first: Where the stretch begins that `near` did not tell apart.
            stop: Where it ends.
            at: A message of it, from which on units are told apart.
            few: How many at least, if there are as many.

        Returns:
            Spans in order, and what of the stretch is not told apart; None if they cannot be.
        """
        start = max(first, self._border_at_or_before(at))
        spans = self._spans_of([user for user in self._openers_of(start) if first <= user < start], first)
        spans.append((start, min(stop, self._border_after(start, few))))
        return self._row(spans, start=first, stop=stop)

    def _landmarks(self, start: int, end: int, also: Collection[int]) -> set[int]:
        """List the messages whose units must be told apart wherever they stand."""
        asked = {index for index in (*self.pins, *also) if index >= self.head}
        if self.protect:
            asked.update(self.holds if self.latest_user is None else (*self.holds, self.latest_user))
        if 0 <= self.compaction < (self.count if self.walked.odd else self._walked_from):
            self.structure.kept = {self.compaction}  # what was before is in it; walked over, it is odd
            asked.add(self.compaction)
        if self.pending_calls:
            asked.update(self.walked.unanswered)
        # Each of them, and what is cut into, stays together with the message that opens its turn.
        for index in (start, end, *asked) if self.ordered else (start,):
            asked.update(self._openers_of(index))
        if self.walked.odd:
            asked.update(index for index in self.walked.odd if index >= start)
        return asked if not self.head else {index for index in asked if index >= self.head}

    def _openers_of(self, index: int) -> list[int]:
        """List what a message needs in front of it.

        The user's message before it, which may always come first, and the thinking that opens what is left of
        the last turn.
        """
        if not self.ordered:
            return self._user_before(index)
        thinking = None if self.last_turn is None else self.last_turn.thinking_for(index)
        if thinking is None:
            return self._user_before(index)
        return [*self._user_before(index), thinking, *self._user_before(thinking)]

    def _user_before(self, index: int) -> list[int]:
        user = self.user_at_or_before(index)
        if user is None:  # then what stands nearest before it and may come first
            before = range(index - 1, self.head - 1, -1) if self.cannot_lead(index) else ()
            first = next((at for at in before if not self.cannot_lead(at)), None)
            return [] if first is None else [first]
        return [user]

    def _spans_of(self, asked: Collection[int], start: int) -> list[tuple[int, int]]:
        """Return for each message where to begin and to end to tell its unit apart."""
        odd = self.walked.odd
        found: list[tuple[int, int]] = []
        for index in sorted(asked):
            if found and found[-1][0] <= index < found[-1][1]:
                continue
            if (index >= start or self._opens_rest(index)) and index not in odd:
                found.append((self._border_at_or_before(index), self._border_after(index)))
            elif self.stands_alone(index) and index not in odd:
                found.append((index, index + 1))
            else:
                first = self._turn_at(index)
                found.append((self.count if first is None else first, self._turn_after(index)))
        return found

    def _opens_rest(self, index: int) -> bool:
        """Tell whether a message is thinking of the last turn: what its call needs stands behind it."""
        turn = self.last_turn
        return turn is not None and turn.thinks(index)

    def _row(self, spans: list[tuple[int, int]], *, start: int, stop: int) -> list[Span] | None:
        """List the units in some places, and what stands between these; None if it cannot be told."""
        waiting, head = set(self.pending_calls), self.head
        found: list[Span] = []
        if stop == self.count:
            found.extend((index, index + 1, "pinned", self.kind(index), None) for index in range(head))
            self._marks = self._find_marks()
        at = start
        for first, end in _join(spans):
            if first >= end or first < head:
                return None  # no turn is known that it could be read in
            if first > at:
                found.append((at, first, "free", None, None))
            group = self._group(first, end, waiting)
            if group is None:
                return None
            found += group
            at = max(at, end)
        if at < stop:
            found.append((at, stop, "free", None, None))
        self._mark(found)
        if stop < self.count:
            return found
        if waiting:
            return None
        return list(map(span_of, self._with_openers(list(map(unit_of, found))))) if self.ordered else found

    def _find_marks(self) -> list[tuple[int, State]]:
        """List messages that decide on the state of their unit, the strongest first."""
        marks: list[tuple[int, State]] = [(index, "pinned") for index in self.pins]
        if self.protect and self.latest_user is not None:
            marks.append((self.latest_user, "pinned"))
        if self.structure.kept:
            marks.append((max(self.structure.kept), "held"))
        if self.protect:
            marks.append((self.count - 1, "held"))
        marks.extend((index, "held") for index in self.holds)
        return marks

    def _border_at_or_before(self, index: int) -> int:
        """Return the nearest message at or before one with which something begins."""
        while index > self.head and not self._is_border(index):
            index -= 1
        return index

    def _border_after(self, index: int, count: int = 1) -> int:
        """Return the message after one with which the next thing, or a later one, begins."""
        for at in range(index + 1, self.count):
            if self._is_border(at):
                count -= 1
                if not count:
                    return at
        return self.count

    def _is_border(self, index: int) -> bool:
        """Tell whether nothing before a message belongs to it or to what follows, in an ordinary turn."""
        kind = self.kind(index)
        if kind == "tool" or self._plain:
            return kind != "tool"
        if kind == "user":
            return self.stands_alone(index)
        # Calls behind one another may be answered behind all of them.
        return self.kind(index - 1) in ("user", "tool") and not self._is_bound(index - 1)

    def _turn_at(self, index: int) -> int | None:
        """Find the message of the user that opens the turn of a message and stands alone."""
        user = self.user_at_or_before(index)
        while user is not None and not self._opens(user):
            user = self.user_at_or_before(user - 1) if user else None
        return user

    def _turn_after(self, index: int) -> int:
        """Find where the turn of a message ends."""
        user = self.user_at_or_after(index + 1)
        while user is not None and not self._opens(user):
            user = self.user_at_or_after(user + 1)
        return self.count if user is None else user

    def _opens(self, user: int) -> bool:
        """Tell whether a message of the user stands alone, as far as is known."""
        return user not in self.walked.odd and self.stands_alone(user)

    def _group(self, start: int, stop: int, waiting: set[str]) -> list[Span] | None:
        """Group some neighboring messages as if they were all there is; None if they are not."""
        if self._is_told(start, stop) and (ordinary := self._ordinary(start, stop)) is not None:
            return ordinary
        if start < self._walked_from < stop:  # of what was walked over more is known
            border = self._border_after(self._walked_from - 1)
            if border < stop:
                older, newer = self._group(start, border, waiting), self._group(border, stop, waiting)
                return None if older is None or newer is None else older + newer
        # What follows shows that the turn is not the last, of which a form may ask for more.
        columns = self._columns(start, min(stop + 1, self.count))
        columns.count = stop - start
        pairing = pair(columns, range(stop - start))
        alone = columns.references or columns.elsewhere or pairing.repeated
        if alone or any(None in owners for owners in pairing.owner.values()):
            return None
        newest = stop == self.count
        if pairing.unanswered and not newest and start < self._walked_from:
            return None  # an answer may stand further on
        self._take(columns, start)
        last_turn = self._last_turn() - start if newest else columns.count
        opened = open_calls(pairing, last_turn=last_turn, pending_calls=self.pending_calls)
        at = {start + index for index, _ in opened}
        # One that is answered is not it: an id may be used again, and the call that waits be an older one.
        waiting.difference_update(call_id for _, call_id in pairing.unanswered)
        units = [self._unit_of(group.shift(start), at) for group in members(columns, pairing)]
        units.sort(key=lambda unit: unit.indices[0])
        return list(map(span_of, units))

    def _ordinary(self, start: int, stop: int) -> list[Span] | None:
        """Group what the walk has told enough of: each message, or those bound, with the results behind."""
        kinds, bound = self.kinds(start, stop), self.walked.bound
        found: list[Span] = []
        first, leads, before = start, kinds[0], kinds[0]
        if before == "tool" and kinds[1:2] == ["tool"]:
            return None
        for at, kind in enumerate(kinds[1:], start + 1):
            if bound and at - 1 in bound:
                if not kind == before == "assistant":
                    return None
            elif kind != "tool":
                found.append((first, at, "free", leads, None))
                first, leads = at, kind
            elif before not in ("assistant", "tool"):
                return None
            before = kind
        found.append((first, stop, "free", leads, None))
        return found

    def _mark(self, spans: list[Span]) -> list[Span]:
        """Give units of which none was made the states that single messages decide on."""
        for index, state in reversed(self._marks):
            at = bisect_right(spans, index, key=itemgetter(0)) - 1
            if at >= 0 and index >= self.head:
                first, end, _, kind, unit = spans[at]
                if index < end and unit is None and kind is not None:
                    spans[at] = (first, end, state, kind, None)
        return spans

    def _is_told(self, start: int, stop: int) -> bool:
        """Tell whether in a span each message begins a unit, but for results, and what those before bind."""
        if self.pending_calls:
            return False
        if start < self._walked_from:
            alone = stop == start + 1 and self.stands_alone(start)
            if not alone and not (self._walked_from < stop and self._meets(start)):
                return False
        walked = self.walked
        if walked.behind and start == self._walked_from and self.kind(start) != "tool":
            return False  # one of the results behind it answers a call further back than its own
        if walked.bound and (start - 1 in walked.bound or stop - 1 in walked.bound):
            return False
        apart = (walked.odd, walked.unanswered) if walked.odd or walked.unanswered else ()
        return not any(start <= index < stop for found in apart for index in found)

    def _meets(self, start: int) -> bool:
        """Tell whether the oldest results walked over answer the call a little further back."""
        if not self._plain or self._walked_from - start > 2 * _FEW:
            return False
        columns = self._columns(start, self._walked_from)
        behind = [call_id for answers in columns.answers.values() for call_id, _ in answers]
        behind += self.walked.behind
        return len(set(behind)) == len(behind) and set(behind) == set(columns.calls.get(0, ()))

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
        """Begin again where less than all was read: all of it is read in one go, where it is asked for."""
        if self._read_apart or self._walked_from < self.count:
            replaced = self.structure.replaced
            self.structure = Structure(self.count)
            self.structure.replaced, self.structure.elsewhere = replaced, self.elsewhere
            self._read_apart, self._read_from = False, self.count

    @property
    def leads_system(self) -> bool:
        """True if it begins with system text that stays."""
        return self.head > 0 and self.kind(0) == "system"

    def cannot_lead(self, index: int, /) -> bool:
        """Tell whether the provider may refuse a message once it is the first.

        Args:
            index: Of a message, as it stands in `messages`.
        """
        return self.format.order_fault(None, self.message(index), parted=True) is not None

    def _with_openers(self, units: list[Unit]) -> list[Unit]:
        head = self.head  # system text at the front leads by itself
        held = units if self.last_turn is None else with_thinking(units, self.last_turn)
        return with_openers(
            held, lambda index: index >= head and self.cannot_lead(index), self.user_at_or_before
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
        if self.protect and (indices[0] < self.head or self._is_latest_user(indices, parts)):
            return "pinned"
        if open_call or not self.holds.isdisjoint(indices):
            return "held"
        return "held" if self.protect and self.count - 1 in indices else "free"

    def _is_latest_user(self, indices: Sequence[int], parts: Parts) -> bool:
        user = self.latest_user
        if user is None or user not in indices:
            return False
        return user not in parts or parts[user] == self.structure.loose.get(user)


_FEW = 2
"""Units near a cut that are told apart at first."""


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Put pairs of beginning and end in order, those that overlap as one."""
    found: list[tuple[int, int]] = []
    spans.sort()
    for start, stop in spans:
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return found
