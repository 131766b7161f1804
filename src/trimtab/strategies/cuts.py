"""Cuts: everything from one message on stays, with what stays anyway."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, takewhile
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from trimtab.conversation import History, Unit
from trimtab.conversation.units import Span, span_of, unit_of
from trimtab.counting.sizes import Sizes
from trimtab.strategies.rows import span_stays, spans_that_stay

if TYPE_CHECKING:
    from trimtab.conversation.turns import LastTurn
    from trimtab.strategies.base import EvictionRequest

Also = Callable[[int], tuple[int, ...]]
"""Tells which units stay beside a cut, by their first messages."""


class Cuts:
    """Where a conversation may be cut. A cut is the position of the first message kept.

    It goes by the units of a request. Where these are not all told apart, they are where a cut comes to fall.
    """

    def __init__(self, request: EvictionRequest) -> None:
        self._request, self._costs = request, request.costs
        self._row = request.told  # which says what the oldest cut is
        self._few = 8  # units that a look further back tells apart; four times as many each time
        self._known_from = max(request.oldest_cut, request.planned_cut)
        self._is_looked_for = False
        self._from = max(self._known_from, request.history.head)
        """A cut before this message is none; neither is one at the system text in front."""
        self._list()

    def _list(self) -> None:
        """Take the units of the request."""
        request = self._request
        self._row = row = request.told
        self._end = request.history.count
        self._all_firsts: list[int] = [*map(_first_of, row)]
        self._stay = spans_that_stay(request)
        made = [span[4] for span in row if span[4] is not None]
        self._shared = any(map(_parts_of, made))
        self._in_row = request.is_whole and not self._shared and not any(map(_is_torn, made))
        """Whether what is there from a cut on is all that stays beside what stays anyway."""
        self._firsts = self._all_firsts[bisect_left(self._all_firsts, self._from) :]
        if self._shared:
            self._firsts = sorted(set(self._firsts))
        self._users: list[Span] | None = None
        self._user_firsts: list[int] = []
        self._openers_at: dict[int, tuple[int, ...]] = {}
        """What each cut needs in front of it, as far as units are told apart now."""
        self._free: list[Span] = []
        self._free_firsts: list[int] | None = None
        self._stay_tokens: int | None = None
        self._sums = [0]
        self._there: dict[int, set[int]] = {}
        """Parts of shared messages among what stays and what was added up."""
        self._there_anyway: dict[int, set[int]] = {}
        """The same among what stays."""
        self._openers = request.openers
        self._staying: list[int] = []
        """Messages that stay, ascending, where it counts what stands before a cut."""
        self._says = self._end
        """The first of them that is no system text."""
        if self._openers is not None:
            stay = list(map(unit_of, self._stay))
            self._staying = sorted({index for unit in stay for index in unit.indices})
            front = self._openers.front(self._stay)
            self._says = self._end if front is None else self._stay[front][0]

    @property
    def end(self) -> int:
        """The cut that keeps only what stays anyway."""
        return self._end

    def tokens(self, cut: int, also: tuple[int, ...] = (), /) -> int:
        """Return the size of the request cut there, units beginning at `also` kept too."""
        request = self._request
        if not request.additive:
            firsts = set(also)
            kept = [u for u in request.told_units if u.first >= cut or u.first in firsts or request.stays(u)]
            return request.total(kept)
        if self._in_row:
            return self._tokens_in_row(cut, also)
        if self._stay_tokens is None:
            self._stay_tokens = self._sum(list(map(unit_of, self._stay)), self._there_anyway)
            self._there.update(self._there_anyway)
        if self._free_firsts is None:
            self._free = [span for span in self._row if not span_stays(request, span)]
            self._free_firsts = [span[0] for span in self._free]
        # Summed from the newest on, and only as far as somebody asks: a cut needs one step more, or none.
        newer, sums = len(self._free) - bisect_left(self._free_firsts, cut), self._sums
        while len(sums) <= newer:
            newest = unit_of(self._free[-len(sums)])
            sums.append(sums[-1] + self._costs.unit(newest, self._there))
        beside = self._sum(list(map(self.unit, also))) if also else 0
        first = min(
            (*self._stay[:1], *self._free[len(self._free) - newer :][:1], *map(self._span, also)),
            key=_first_of,
            default=None,
        )
        return self._costs.fixed_tokens(first) + self._stay_tokens + sums[newer] + beside

    def _tokens_in_row(self, cut: int, also: tuple[int, ...]) -> int:
        """Return the same where all from the cut on stays."""
        before = [span for span in self._stay if span[0] < cut]
        if also:
            before = sorted([*before, *map(self._span, also)], key=_first_of)
        costs = self._costs
        tokens = costs.between(cut, self._end) + sum([costs.between(span[0], span[1]) for span in before])
        return costs.fixed_tokens(before[0] if before else self._span_from(cut)) + tokens

    def saved_tokens(self, cut: int, /) -> int:
        """Return by how much earlier steps made messages from a cut on smaller; 0 for a black box."""
        request = self._request
        if not request.edits or not request.additive:
            return 0
        return request.sizes.total(cut, self._end) - self._costs.between(cut, self._end)

    def _sum(self, units: list[Unit], there: dict[int, set[int]] | None = None) -> int:
        """Return the tokens of units beside a cut: what shares a message with them is older, or stays."""
        if there is None:
            indices = (index for unit in units for index in unit.parts)
            there = {index: self._there_anyway[index] for index in indices if index in self._there_anyway}
        return sum([self._costs.unit(unit, there) for unit in units])

    def oldest(self, fits: Callable[[int], bool], also: Also | None = None, /) -> int | None:
        """Return the oldest cut that fits, found by halves; None if what must stay alone does not fit.

        `fits` must hold for every newer cut once it holds for one. With `also` it is one behind which the
        provider takes what is kept; without it something is put in there.
        """
        while True:
            firsts = self._firsts
            cut = self._oldest(fits, also)
            if cut is None or (not self._part_before(cut) and firsts is self._firsts):
                return cut

    def without_opener(self, cut: int, limit_tokens: int, /) -> frozenset[int]:
        """List the messages before a cut that have room, while there is none for what opens them."""
        firsts, first = self._firsts, cut
        at = bisect_left(firsts, cut)
        while self._request.additive and at and self.tokens(firsts[at - 1]) <= limit_tokens:
            at -= 1
            first = firsts[at]
        return frozenset(range(first, cut)) if first < cut else frozenset()

    def _look_for(self) -> None:
        """Find by sizes alone before which message no cut fits, and tell units apart there.

        What stays beside a cut is not asked for: in a stretch nobody knows yet what opens a turn.
        """
        self._is_looked_for = True
        if self._firsts and any([span[3] is None for span in self._row]):
            first, limit = self._firsts[0], self._request.limit_tokens
            cuts = range(first, self._end)
            # Between messages, not units: a unit has no fewer tokens than its messages behind the cut.
            self._from = first + bisect_left(cuts, True, key=lambda cut: self.tokens(cut) <= limit)
            self._known_from = self._from
            self.part(self._from, few=4)
            self._list()

    def _oldest(self, fits: Callable[[int], bool], also: Also | None) -> int | None:
        # Where it is known at which message the limit was passed, mostly the first or second place fits.
        near = _NEAR if self._known_from else 0
        at = next((at for at, cut in enumerate(self._firsts[:near]) if fits(cut)), None)
        if at is None and self._in_row and not self._is_looked_for:
            self._look_for()  # nothing is known, or what stays anyway was not counted with
            return self._oldest(fits, also)
        firsts = self._firsts
        if at is None:
            if not fits(self._end):
                return None
            at = bisect_left(firsts, True, key=fits, lo=min(near, len(firsts)))
        for place in range(at, len(firsts)):
            cut = firsts[place]
            if (also is None or self.stands(cut, also(cut))) and (place == at or fits(cut)):
                return cut
        return self._end

    def _part_before(self, cut: int) -> bool:
        """Tell units apart where older ones than those behind a cut may stay; False if all of these are."""
        at = bisect_left(self._all_firsts, cut)
        for span in self._row[max(0, at - 1) : at + 1]:
            if span[3] is None and span[1] > self._from:
                self._few *= 4
                self._request.part(span, at=max(span[0], self._from), few=self._few)
                self._list()
                return True
        return False

    def part(self, cut: int, /, *, few: int = 1) -> None:
        """Tell units apart where a cut is to fall."""
        at = bisect_right(self._all_firsts, cut)
        span = self._row[at - 1] if at else None
        if span is not None and span[3] is None and cut < span[1]:
            self._request.part(span, at=cut, few=few)
            self._list()

    def stands(self, cut: int, also: tuple[int, ...], /) -> bool:
        """Tell whether the provider takes the first message kept behind what stays before it."""
        openers = self._openers
        if openers is None:
            return True
        span = self._span_from(cut)
        if span is None:
            return True
        first = span[0]
        older = bisect_left(self._staying, first)
        beside = (index for one in also for index in self.unit(one).indices if index < first)
        before = max((*self._staying[max(0, older - 1) : older], *beside), default=-1)
        if before < 0 or (first < self._says and not also):
            return openers.says(span) is None or span_stays(self._request, span) or openers.leads(span)
        return openers.stands(first, before)

    def opener(self, cut: int, /) -> tuple[int, ...]:
        """Return the units that what is cut into needs in front of it, if they are free.

        That of the user message that opened the turn, or, where there is none and what is kept may not come
        first, what opens for it otherwise; and that of the thinking that opens what remains of the last turn.
        """
        if cut >= self._end:
            return ()
        openers = self._openers_at.get(cut)
        if openers is None:
            user, turn = self._user_before(cut), self._request.history.last_turn
            thinking = () if turn is None else self._thinking_before(cut, turn)
            more = self._user_before(thinking[0]) if thinking else ()
            openers = tuple(dict.fromkeys((*user, *thinking, *more))) if thinking else user
            self._openers_at[cut] = openers
        return openers

    def _thinking_before(self, cut: int, turn: LastTurn) -> tuple[int, ...]:
        """Return the unit of the thinking that has to open what a cut leaves of the last turn."""
        index = turn.thinking_for(cut)
        if index is None:
            return ()
        before = (span[0] for span in self._stay if span[3] == "assistant" and span[0] < cut)
        if any(map(turn.holds, before)):  # something older opens it, which has what it needs
            return ()
        span = self._row[bisect_right(self._all_firsts, index) - 1]
        return () if span[3] is None or span_stays(self._request, span) else (span[0],)

    def _user_before(self, cut: int) -> tuple[int, ...]:
        user = self._request.history.user_at_or_before(cut)
        if user is not None:
            self.part(user)  # else one that opened an earlier turn would be taken for it
        if self._users is None:
            self._users = [span for span in self._row if span[3] == "user"]
            self._user_firsts = [*map(_first_of, self._users)]
        at = bisect_right(self._user_firsts, cut)
        span = self._users[at - 1] if at else self._opener_otherwise(cut)
        if span is None or span[0] == cut or span_stays(self._request, span):
            return ()
        return (span[0],)

    def _opener_otherwise(self, cut: int) -> Span | None:
        """Return what a cut in no user's turn needs in front, where it may not come first."""
        openers, span = self._openers, self._span_from(cut)
        if openers is None or self._says < cut or span is None or span_stays(self._request, span):
            return None
        unit = openers.of(unit_of(span))
        return None if unit is None else span_of(unit)

    def holds(self, first: int, /) -> bool:
        """Tell whether a unit that is still there begins at a message."""
        at = bisect_left(self._all_firsts, first)
        return at < len(self._row) and self._all_firsts[at] == first

    def at_or_after(self, index: int, /) -> int:
        """Return the first cut at or behind a message: what began there may be gone in an earlier step."""
        self.part(index)
        span = self._span_from(index)
        return self._end if span is None else span[0]

    def unit(self, first: int, /) -> Unit:
        """Return the unit that begins at a message; of several the user's words, which open a turn."""
        return unit_of(self._span(first))

    def _span(self, first: int) -> Span:
        at = bisect_left(self._all_firsts, first)
        if self._shared:
            few = [*takewhile(lambda span: span[0] == first, self._row[at:])]
            return max(reversed(few), key=lambda span: span[3] == "user")
        return self._row[at]

    def _span_from(self, cut: int) -> Span | None:
        """Return the first unit from a message on; None behind the last."""
        at = bisect_left(self._all_firsts, cut)
        return self._row[at] if at < len(self._row) else None


def _is_torn(unit: Unit) -> bool:
    """Tell whether something else stands between the messages of a unit."""
    return unit.indices[-1] - unit.indices[0] + 1 != len(unit.indices)


_first_of, _parts_of = itemgetter(0), attrgetter("parts")

_NEAR = 2
"""Places behind the message at which the limit was passed that are tried one by one."""


class Shrinks(NamedTuple):
    """From what size on a strategy may make a message smaller, and how small at least, in tokens."""

    results_above: int = 0
    results_to: int = 0
    texts_above: int = sys.maxsize
    """The same of a message without results; the largest number there is: it stays as it is."""
    texts_to: int = 0
    but_newest: bool = False
    """Whether the newest message stays as it is."""

    def together(self, other: Shrinks, /) -> Shrinks:
        """Return what two strategies may do, one after the other."""
        above, to, texts_above, texts_to = map(min, self[:4], other[:4])
        return Shrinks(above, to, texts_above, texts_to, self.but_newest and other.but_newest)


ANY_RESULT = Shrinks()
"""Each result may come to nothing."""


SMALL_SHARE = 16
"""A user message below this part of the room is not reserved first: at most so much is counted in vain."""


def count_back(history: History, sizes: Sizes, limit_tokens: int) -> int:
    """Count from the newest message back until the limit is passed.

    What stays is counted first: leading system messages and the latest user message. Each
    message is counted once; what is far too old is not looked at.

    Returns:
        The lowest position counted beside those.
    """
    if sizes.counted[0] != limit_tokens:  # a block is asked about its need before it is offered the same
        sizes.counted = limit_tokens, _lowest(history, sizes, limit_tokens)
    return sizes.counted[1]


def _lowest(history: History, sizes: Sizes, limit_tokens: int) -> int:
    count, head = history.count, history.head
    room = limit_tokens - sizes.fixed_tokens(history.leads_system)
    for index in range(head):
        room -= sizes.of(index)
    user = history.latest_user if history.protect else None
    if user is not None and user >= head and history.stands_alone(user):  # else results in it may leave
        user_tokens = sizes.of(user)
        if user_tokens * SMALL_SHARE >= room:
            low = _back(history, sizes, user + 1, room - user_tokens)
            used = sizes.total(low, count)
            if used > room - user_tokens:
                return low
    return _back(history, sizes, head, room)


def oldest_cut_of(history: History, sizes: Sizes, counted: int) -> int:
    """Return the oldest message to cut at: the one behind that at which counting passed the limit.

    It is 0 where nothing is known. Where the request came to begin with system text at that message, less may
    be charged beside the messages.
    """
    if not history.is_ordinary:
        return 0  # with what is older, something that was counted may leave
    kind = history.kind(counted) if counted < history.count else "other"
    if kind == "user" and not history.stands_alone(counted):
        return counted  # the words in it may stay where its results leave, and were counted with these
    if history.head or kind != "system":
        return counted + 1
    return counted if sizes.fixed_tokens(True) < sizes.fixed_tokens(False) else counted + 1


def near_cut(
    history: History,
    sizes: Sizes,
    *,
    limit_tokens: int,
    counted: int,
    also: Collection[int] = (),
    shrinks: Shrinks | None = None,
) -> tuple[list[Span] | None, int, bool]:
    """Tell apart the units near the cut and at the end, and say before which message no cut fits.

    Args:
        history: The conversation.
        sizes: The sizes of its messages.
        limit_tokens: What stays may come to so much.
        counted: The message at which counting back passed that.
        also: Older messages whose units are told apart, too.
        shrinks: What is made smaller first, so that more may fit than was counted.

    Returns:
        Their spans, None where it takes all there is to tell; the message, 0 where none is known; and
        whether surely nothing is made smaller first.
    """
    if shrinks is None:
        return history.near(counted, also), oldest_cut_of(history, sizes, counted), False
    above, stop = min(shrinks.results_above, shrinks.texts_above), history.count
    if above == sys.maxsize:
        return history.near(counted, also), oldest_cut_of(history, sizes, counted), True
    # Mostly nothing that was counted is as large as that.
    stop -= shrinks.but_newest and history.protect
    small = above > 0 and max(sizes.each(counted, stop), default=0) <= above
    if not small:
        passed_at = count_shrunk_back(history, sizes, limit_tokens, shrinks)
        if passed_at is None:
            return None, 0, False
        counted = passed_at
    row = history.near(counted, also)
    small = small and row is not None and not _holds_large_before(row, history, sizes, counted, above)
    return row, oldest_cut_of(history, sizes, counted), small


def _holds_large_before(
    row: list[Span], history: History, sizes: Sizes, counted: int, above_tokens: int
) -> bool:
    """Tell whether anything large may stay beside what was counted: what opens that, or is held."""
    for first, stop, state, kind, _ in row:
        if first >= counted:
            return False
        may_stay = state == "held" or (state == "free" and (kind == "user" or history.ordered))
        if may_stay and max(sizes.each(first, min(stop, counted))) > above_tokens:
            return True
    return False


def count_shrunk_back(history: History, sizes: Sizes, limit_tokens: int, shrinks: Shrinks) -> int | None:
    """Count from the newest message back until what stands there, made as small as may be, passes the limit.

    What is older than the message returned, and that one, cannot all stay. None: all there is may.
    """
    # Where results are no messages, words of the user may stand beside them, which become no smaller.
    words = ("assistant", "user") if history.format.rules.results_are_messages else ("assistant",)
    of_results, of_texts = shrinks[:2], shrinks[2:4]
    counts_results = of_results[0] > 0  # else they may come to nothing, however large they are
    of, room, stop, head = sizes.of, limit_tokens, history.count, history.head
    while stop > head and room >= 0:
        if stop <= history.walked_from:  # where results come to nothing, as much again as they may take up
            sizes.walk(history, head, room if counts_results else limit_tokens)
        start = max(head, min(stop - 1, history.walked_from))
        kinds = history.kinds(start, stop)
        if counts_results:
            most = map({kind: of_texts if kind in words else of_results for kind in kinds}.__getitem__, kinds)
            sized = zip(sizes.each(start, stop), most, strict=True)
            tokens = [to if size > above else size for size, (above, to) in sized]
            if shrinks.but_newest and history.protect and stop == history.count:
                tokens[-1] = sizes.of(stop - 1)
        else:
            row = zip(range(start, stop), kinds, sizes.known[start:stop], strict=True)
            tokens = [(of(at) if size is None else size) if kind in words else 0 for at, kind, size in row]
            if of_texts[0] < sys.maxsize:  # one step may let results come to nothing, another cut texts
                tokens = [of_texts[1] if size > of_texts[0] else size for size in tokens]
        passed = [*accumulate(reversed(tokens))]
        if passed[-1] > room:
            return stop - 1 - bisect_right(passed, room)
        room, stop = room - passed[-1], start
    return None


def _back(history: History, sizes: Sizes, start: int, room_tokens: int) -> int:
    """Count from the newest message back to `start`, until the room is passed."""
    count, walked, left = history.count, history.walked_from, room_tokens
    if walked < count:
        known_from = max(walked, start)
        left -= sizes.total(known_from, count)
        if left < 0 or walked <= start:
            return _passed_at(sizes.known, known_from, count, room_tokens)
    if left < 0:
        return count
    low = sizes.walk(history, start, left)
    if low is None:
        low = sizes.back(start, count, room_tokens)
        history.look_back(low)
    return low


def _passed_at(known: Sequence[int | None], start: int, count: int, room_tokens: int) -> int:
    """Return the message at which known sizes pass the room, from the newest back; `start` if none does."""
    at = count
    while at > start and room_tokens >= 0:
        at -= 1
        room_tokens -= known[at] or 0
    return at
