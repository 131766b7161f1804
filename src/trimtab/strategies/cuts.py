"""Cuts: everything from one message on stays, with what stays anyway."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trimtab.conversation import History, Unit
from trimtab.conversation.reader import Stretch
from trimtab.counting.sizes import Sizes

if TYPE_CHECKING:
    from trimtab.strategies.base import EvictionRequest

Also = Callable[[int], tuple[int, ...]]
"""Tells which units stay beside a cut, by their first messages."""


class Cuts:
    """Where a conversation may be cut. A cut is the position of the first message kept.

    It goes by the units of a request. Where these are not all told apart, they are where a cut comes to fall.
    """

    def __init__(self, request: EvictionRequest) -> None:
        self._request = request
        self._few = 8
        self._list()

    def _list(self) -> None:
        """Take the units of the request."""
        request = self._request
        units, protected, oldest = request.units, request.protected, request.oldest_cut
        self._units = units
        self._end = request.history.count
        self._stay: list[Unit] = []
        self._free: list[Unit] = []
        self._free_firsts: list[int] = []
        self._users: list[Unit] = []
        self._by_first: dict[int, Unit] = {}
        firsts: list[int] = []
        head, shared = request.history.head, False
        for unit in units:
            first = unit.indices[0]
            if unit.state != "free" or first in protected:
                self._stay.append(unit)
                if first >= head:  # units that stay are places to cut at, too
                    firsts.append(first)
            else:
                self._free.append(unit)
                self._free_firsts.append(first)
                firsts.append(first)
            if unit.kind == "user":
                self._users.append(unit)
            self._by_first[first] = unit
            shared = shared or bool(unit.parts)
        self._user_firsts = [unit.indices[0] for unit in self._users]
        # Of several units of one message the user's words are the one that opens a turn.
        self._by_first.update(zip(self._user_firsts, self._users, strict=True))
        self._firsts = firsts if not shared else sorted(set(firsts))
        if oldest:
            self._firsts = self._firsts[bisect_left(self._firsts, oldest) :]
        self._shared = shared
        self._stay_tokens: int | None = None
        self._sums = [0]
        self._there: dict[int, set[int]] = {}
        """Parts of shared messages among what stays and what was added up."""
        self._there_anyway: dict[int, set[int]] = {}
        """The same among what stays."""
        self._openers = request._openers
        self._staying: list[int] = []
        """Messages that stay, ascending, where it counts what stands before a cut."""
        self._says = self._end
        """The first of them that is no system text."""
        if self._openers is not None:
            self._staying = sorted({index for unit in self._stay for index in unit.indices})
            at = self._openers.front(self._stay)
            self._says = self._end if at is None else self._stay[at].first

    @property
    def end(self) -> int:
        """The cut that keeps only what stays anyway."""
        return self._end

    def tokens(self, cut: int, also: tuple[int, ...] = (), /) -> int:
        """Return the size of the request cut there, units beginning at `also` kept too."""
        request = self._request
        if not request.additive:
            firsts = set(also)
            kept = [u for u in self._units if u.first >= cut or u.first in firsts or request.stays(u)]
            return request.total(kept)
        if self._stay_tokens is None:
            self._stay_tokens = self._sum(self._stay, self._there_anyway)
            self._there.update(self._there_anyway)
        newer, sums = len(self._free) - bisect_left(self._free_firsts, cut), self._sums
        while len(sums) <= newer:
            newest = self._free[-len(sums)]
            sums.append(sums[-1] + request._added_tokens(newest, self._there))
        beside = self._sum([self._by_first[first] for first in also]) if also else 0
        return request._fixed_tokens_of(self._first(newer, also)) + self._stay_tokens + sums[newer] + beside

    def _sum(self, units: list[Unit], there: dict[int, set[int]] | None = None) -> int:
        """Return the tokens of units beside a cut: what shares a message with them is older, or stays."""
        request = self._request
        if not (self._shared or request.edits):
            return request.sizes.sum([index for unit in units for index in unit.indices])
        if there is None:
            indices = (index for unit in units for index in unit.parts)
            there = {index: self._there_anyway[index] for index in indices if index in self._there_anyway}
        return sum([request._added_tokens(unit, there) for unit in units])

    def _first(self, newer: int, also: tuple[int, ...]) -> Unit | None:
        """Return the first of the units that stay beside the newest of the free ones."""
        found = self._stay[0] if self._stay else None
        if newer and (found is None or self._free_firsts[-newer] < found.indices[0]):
            found = self._free[-newer]
        for first in also:
            if found is None or first < found.indices[0]:
                found = self._by_first[first]
        return found

    def oldest(self, fits: Callable[[int], bool], also: Also | None = None, /) -> int | None:
        """Return the oldest cut that fits, found by halves; None if what must stay alone does not fit.

        `fits` must hold for every newer cut once it holds for one. With `also` it is one behind which the
        provider takes what is kept; without it something is put in there.
        """
        cut = self._oldest(fits, also)
        while cut is not None and self._part_before(cut):
            cut = self._oldest(fits, also)
        return cut

    def _oldest(self, fits: Callable[[int], bool], also: Also | None) -> int | None:
        # Where it is known at which message the limit was passed, mostly the first or second place fits.
        near = 2 if self._request.oldest_cut else 0
        at = next((at for at, cut in enumerate(self._firsts[:near]) if fits(cut)), None)
        if at is None:
            if not fits(self._end):
                return None
            at = bisect_left(self._firsts, True, key=fits, lo=min(near, len(self._firsts)))
        for place in range(at, len(self._firsts)):
            cut = self._firsts[place]
            if (also is None or self.stands(cut, also(cut))) and (place == at or fits(cut)):
                return cut
        return self._end

    def _part_before(self, cut: int) -> bool:
        """Tell units apart where older ones than those behind a cut may stay; False if all of these are."""
        at = bisect_left(self._units, cut, key=_first_of)
        for unit in self._units[max(0, at - 1) : at + 1]:
            if isinstance(unit, Stretch):
                self._few *= 4
                self._request.part(unit, at=unit.first, few=self._few)
                self._list()
                return True
        return False

    def part(self, cut: int, /) -> None:
        """Tell units apart where a cut is to fall."""
        at = bisect_right(self._units, cut, key=_first_of)
        unit = self._units[at - 1] if at else None
        if isinstance(unit, Stretch) and cut <= unit.indices[-1]:
            self._request.part(unit, at=cut, few=1)
            self._list()

    def stands(self, cut: int, also: tuple[int, ...], /) -> bool:
        """Tell whether the provider takes the first message kept behind what stays before it."""
        openers = self._openers
        if openers is None:
            return True
        at = bisect_left(self._units, cut, key=_first_of)
        if at == len(self._units):
            return True
        unit = self._units[at]
        first = unit.first
        older = bisect_left(self._staying, first)
        beside = (index for one in also for index in self._by_first[one].indices if index < first)
        before = max((*self._staying[max(0, older - 1) : older], *beside), default=-1)
        if before < 0 or (first < self._says and not also):
            return openers.says(unit) is None or self._request.stays(unit) or openers.leads(unit)
        return openers.stands(first, before)

    def opener(self, cut: int, /) -> tuple[int, ...]:
        """Return the unit of the user message that opened the turn cut into, if it is free.

        Where there is none and what is kept may not come first, it is what opens for it otherwise.
        """
        if cut >= self._end:
            return ()
        at = bisect_right(self._user_firsts, cut)
        unit = self._users[at - 1] if at else self._opener_otherwise(cut)
        if unit is None or unit.indices[0] == cut or self._request.stays(unit):
            return ()
        return (unit.indices[0],)

    def _opener_otherwise(self, cut: int) -> Unit | None:
        """Return what a cut in no user's turn needs in front, where it may not come first."""
        openers, at = self._openers, bisect_left(self._units, cut, key=_first_of)
        if openers is None or self._says < cut or at == len(self._units):
            return None
        unit = self._units[at]
        return None if self._request.stays(unit) else openers.of(unit)

    def holds(self, first: int, /) -> bool:
        """Tell whether a unit that is still there begins at a message."""
        return first in self._by_first

    def unit(self, first: int, /) -> Unit:
        """Return the unit that begins at a message."""
        return self._by_first[first]


def _first_of(unit: Unit) -> int:
    return unit.indices[0]


SMALL_SHARE = 16
"""A user message below this part of the room is not reserved first: at most so much is counted in vain."""


def count_back(history: History, sizes: Sizes, limit_tokens: int) -> int:
    """Count from the newest message back until the limit is passed.

    What stays is counted first: leading system messages and the latest user message. Each
    message is counted once; what is far too old is not looked at.

    Returns:
        The lowest position counted beside those.
    """
    count, head = history.count, history.head
    room = limit_tokens - sizes.fixed_tokens(history.leads_system)
    for index in range(head):
        room -= sizes.of(index)
    user = history.latest_user if history.protect else None
    if user is not None and user >= head:
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
    if history.head or counted >= history.count or history.kind(counted) != "system":
        return counted + 1
    return counted if sizes.fixed_tokens(True) < sizes.fixed_tokens(False) else counted + 1


def count_words_back(history: History, sizes: Sizes, limit_tokens: int) -> int:
    """Count from the newest message back until what is no result alone passes the limit.

    However small results become, what is older than the message returned, and that one, cannot all stay.
    """
    apart = history.format.rules.results_are_messages  # else words of the user may stand beside results
    room, index, head, kind = limit_tokens, history.count, history.head, history.kind
    while index > head and room >= 0:
        if index <= history.walked_from:  # as much again as results may take up
            sizes.walk(history, head, limit_tokens)
        index -= 1
        if kind(index) == "assistant" or (apart and kind(index) == "user"):
            room -= sizes.of(index)
    return index


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
    return sizes.back(start, count, room_tokens) if low is None else low


def _passed_at(known: Sequence[int | None], start: int, count: int, room_tokens: int) -> int:
    """Return the message at which known sizes pass the room, from the newest back; `start` if none does."""
    at = count
    while at > start and room_tokens >= 0:
        at -= 1
        room_tokens -= known[at] or 0
    return at
