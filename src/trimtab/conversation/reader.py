"""`History`: what belongs together in a conversation, told apart near a cut and no further than that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from trimtab.conversation.pairing import open_calls, pair
from trimtab.conversation.transcript import Transcript, last_turn_of
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
from trimtab.formats import Format, Structure, Thinking
from trimtab.formats.origin import OriginOf

__all__ = ["History"]


class History(Transcript):
    """One conversation: its messages, and which of them belong together.

    A fit walks it from the newest message back, and counts on the way. Units are then built for the messages
    near a cut and for those of which something must be kept (`near`). The messages between keep their place,
    and units are built there if a cut falls between them (`part`). `units` reads and pairs everything.
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
        super().__init__(
            messages,
            format=format,
            protect=protect,
            leading=leading,
            latest_user=latest_user,
            elsewhere=elsewhere,
            looked_over=looked_over,
            thinking=thinking,
        )
        rules = format.rules
        self._plain = rules.results_are_messages and not rules.binds_messages
        """Each message that is no result begins something."""
        self.ordered = rules.ordered or bool(self.thinking.leads)
        """Not every message may come first, or behind every other."""
        self.pins = frozenset(pins)
        self.pending_calls = frozenset(pending_calls)
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
        self._last_turn_at: int | None = None
        self._newest: int | None = None
        self._marks: list[tuple[int, State]] = []
        self._units: tuple[Unit, ...] | None = None
        self._read_apart = False
        self._is_alone_here = not (elsewhere or self._answered or self.holds or self._apart)

    def with_messages(self, messages: list[Any], /) -> History:
        """Return the same conversation with other texts in some of its messages.

        Args:
            messages: As many messages, which call and answer as these do.
        """
        made = History(
            messages,
            format=self.format,
            pins=self.pins,
            pending_calls=self.pending_calls,
            protect=self.protect,
            followed=self._followed,
            answered=self._answered,
            holds=self.holds,
            apart=self._apart,
            leading=self.head,
            latest_user=self._latest_user,
            elsewhere=self.elsewhere,
            looked_over=not self._looked_from,
            thinking=self.thinking,
            origin_of=self.origin_of,
        )
        made._unwritten = self.unwritten
        return made

    def _newest_unit(self) -> int:
        if self._newest is None:  # 0 if every message answers something
            self._newest = self.border_at_or_before(max(self.count - 1, 0))
        return self._newest

    def _last_turn(self) -> int:
        """Position of the last message from the user or the model; only its calls can be open."""
        if self._followed:
            return self.count
        if self._last_turn_at is None:
            # Results alone stand behind the newest unit's first message, where they are messages.
            count = self._newest_unit() + 1 if self._results_are_messages else self.count
            self._last_turn_at = last_turn_of(min(count, self.count), self.kind, self._is_bound)
        return self._last_turn_at

    def is_sound(self, cut: int, before: Collection[int], /) -> bool:
        """Tell whether every kept call and result has its other half.

        An open call waits for its result.

        Args:
            cut: Every message from this one on is kept.
            before: Kept messages before it.
        """
        walked = self.walked
        if walked.odd or walked.foreign or self._walked_from > cut:
            return False
        if walked.unanswered and min(walked.unanswered) < self._last_turn():
            return False
        there = {*before, cut} if cut < self.count else set(before)
        for index in there:
            if self.is_result(index):
                if index - 1 not in there:
                    return False
            elif index < self._walked_from and self.kind(index) not in ("user", "system"):
                return False
        return True

    def may_hold(self) -> bool:
        """Tell whether some message may have to be kept if nothing is protected.

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

        If the whole conversation was walked, no unit is built for ordinary messages.
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
        """Build the units near a cut, at the end, and those that must be kept.

        The messages between these are a stretch, whose units `part` builds if a cut falls there. All older
        messages are surely evicted. Of those, only these are read: pinned or requested messages, the message
        that opens the cut turn, and the latest message that replaces earlier ones, which is found by its
        shape. A turn with something unusual is read as if it were the whole conversation.

        Args:
            counted: The newest message that cannot be kept together with everything behind it.
            also: Older messages that were requested.

        Returns:
            Their spans in order; None if that needs the whole conversation, because the call of a result is
            in another turn, an id of a waiting call is not found, or parts of the conversation are elsewhere.
        """
        if self._units is not None or not self._is_alone_here or not self.count:
            return None
        # It relies on pairs within a turn: a result whose call is further back was noted by the walk (`odd`,
        # `behind`) or is found by `_group`, which gives up then. To read all of 10,000 messages takes some
        # 200 times the fit into 8,000 tokens that this leads to.
        index = min(counted, self.count - 1)
        told = self._walked_from <= counted
        start = self._turn_at(index) if self.ordered or not told or self.walked.odd else index
        if start is None:
            return None
        end = self._border_at_or_before(min(max(0, self._last_turn()), self.count - 1))
        if told:
            start = self._border_at_or_before(index)
            spans = [(start, self._border_after(start, _UNITS_READ_FIRST)), (end, self.count)]
        else:
            spans = [(start, self.count)]
        spans += self._spans_of(self._landmarks(start, end, also), start)
        return self._row(spans, start=max(start, self.head), stop=self.count)

    def part(self, first: int, stop: int, /, *, at: int, few: int) -> list[Span] | None:
        """Build some units of a stretch.

        Args:
            first: Start of the stretch, for which `near` built no units.
            stop: End of the stretch.
            at: A message in the stretch; units are built from there on.
            few: Minimum number of units, if there are that many.

        Returns:
            Spans in order, and the rest of the stretch; None if they cannot be built.
        """
        start = max(first, self._border_at_or_before(at))
        spans = self._spans_of([user for user in self._openers_of(start) if first <= user < start], first)
        spans.append((start, min(stop, self._border_after(start, few))))
        return self._row(spans, start=first, stop=stop)

    def _landmarks(self, start: int, end: int, also: Collection[int]) -> set[int]:
        """List the messages whose units must be told apart wherever they stand."""
        asked = {*self.pins, *also}
        if self.protect:
            user = self.latest_user
            asked.update(self.holds if user is None else (*self.holds, user))
        if self.format.rules.keeps_messages:
            at = self.compaction
            if 0 <= at < (self.count if self.walked.odd else self._walked_from):
                self.structure.kept = {at}  # what was before is in it; walked over, it is odd
                asked.add(at)
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

        The user's message before it, which may always come first, and the thinking that opens what remains of
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
            for index in range(head):
                found.append((index, index + 1, "pinned", self.kind(index), None))
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
        user = self.latest_user if self.protect else None
        pinned = [*self.pins] if user is None else [*self.pins, user]
        held = [max(self.structure.kept)] if self.structure.kept else []
        if self.protect:
            held.append(self.count - 1)
        marks: list[tuple[int, State]] = []
        for index in pinned:
            marks.append((index, "pinned"))
        for index in (*held, *self.holds):
            marks.append((index, "held"))
        return marks

    def _border_at_or_before(self, index: int) -> int:
        """Return the nearest message at or before one with which something begins."""
        kind, is_border = self.kind, None if self._plain else self._is_border
        while index > self.head and (kind(index) == "tool" if is_border is None else not is_border(index)):
            index -= 1
        return index

    def _border_after(self, index: int, count: int = 1) -> int:
        """Return the message after one with which the next thing, or a later one, begins."""
        kind, is_border = self.kind, None if self._plain else self._is_border
        for at in range(index + 1, self.count):
            if kind(at) != "tool" if is_border is None else is_border(at):
                count -= 1
                if not count:
                    return at
        return self.count

    def _is_border(self, index: int) -> bool:
        """Tell whether nothing before a message belongs to it or to what follows, in an ordinary turn.

        In a form of plain messages (`_plain`) that is each which is no result, and nobody asks here.
        """
        kind = self.kind(index)
        if kind == "tool":
            return False
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
        groups = members(columns, pairing)
        for group in groups:
            group.hold_whole(columns)
        units = [self._unit_of(group.shift(start), at) for group in groups]
        units.sort(key=lambda unit: unit.indices[0])
        return list(map(span_of, units))

    def _ordinary(self, start: int, stop: int) -> list[Span] | None:
        """Group what the walk has told enough of: each message, or those bound, with the results behind."""
        # No message is read again: where the walk noted nothing odd, results stand behind their call, so that
        # kinds alone tell where a unit ends.
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
        for index, state in reversed(self._marks):  # so that the strongest is written last
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
        if not walked.odd and not walked.unanswered:
            return True
        return not any(start <= index < stop for index in chain(walked.odd, walked.unanswered))

    def _meets(self, start: int) -> bool:
        """Tell whether the oldest results walked over answer the call a little further back."""
        if not self._plain or self._walked_from - start > 2 * _UNITS_READ_FIRST:
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


_UNITS_READ_FIRST = 2
"""Units near a cut that are told apart at first.

Nearly always a cut is within two units of where counting stopped: from 2 to 64 a fit takes the same time, and
a third longer with 1. Where it is not, `Cuts` asks `part` for four times as many, again and again.
"""


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
