"""Cuts: everything from one message on stays, with what stays anyway.

`TailCuts` reads and counts the newest messages only and is the fast way for a tidy history;
`UnitCuts` works on grouped units and is right for every history. Both answer the same questions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from trimtab.conversation import History, Unit
from trimtab.counting.sizes import Sizes

if TYPE_CHECKING:
    from trimtab.strategies.base import EvictionRequest

__all__ = ["SMALL_SHARE", "Also", "Cuts", "TailCuts", "UnitCuts"]

Also = Callable[[int], tuple[int, ...]]
"""Tells which units stay beside a cut, by their first messages."""


class Cuts(Protocol):
    """Where a conversation may be cut. A cut is the position of the first message kept."""

    @property
    def end(self) -> int:
        """The cut that keeps only what stays anyway."""
        ...

    def tokens(self, cut: int, also: tuple[int, ...] = (), /) -> int:
        """Return the size of the request cut there, units beginning at `also` kept too."""
        ...

    def oldest(self, fits: Callable[[int], bool], also: Also | None = None, /) -> int | None:
        """Return the oldest cut that fits; None if none does.

        `fits` must hold for every newer cut once it holds for one. With `also` it is one behind which the
        provider takes what is kept; without it something is put in there.
        """
        ...

    def stands(self, cut: int, also: tuple[int, ...], /) -> bool:
        """Tell whether the provider takes the first message kept behind what stays before it."""
        ...

    def before(self, cut: int, /) -> int | None:
        """Return the next older cut; None before the oldest."""
        ...

    def opener(self, cut: int, /) -> tuple[int, ...]:
        """Return the unit of the user message that opened the turn cut into.

        Where there is none and what is kept may not come first, it is what opens for it otherwise. Empty if
        the cut is at a user message, no turn is cut into, or the message stays anyway.
        """
        ...

    def unit(self, first: int, /) -> Unit:
        """Return the unit that begins at a message."""
        ...

    def newest_first(self) -> Iterator[Unit]:
        """Walk the units from the newest to the oldest."""
        ...


class TailCuts:
    """Cuts of a tidy history, read and counted no further back than the limit reaches."""

    __slots__ = (
        "_at",
        "_count",
        "_counted",
        "_history",
        "_latest",
        "_lead_tokens",
        "_newer_tokens",
        "_oldest",
        "_openers",
        "_sizes",
        "_start",
        "_stay",
        "_stay_sums",
    )

    def __init__(self, history: History, sizes: Sizes, counted: int, start: int) -> None:
        self._history = history
        self._count = history.count
        self._sizes = sizes
        self._counted = counted
        # Counting stopped at a message that passed the limit, unless it reached the beginning.
        passed = counted > history.head and not self._costs_less_from(counted)
        self._oldest = counted + 1 if passed else counted
        self._start = start
        self._latest = history.latest_user
        self._openers: dict[int, tuple[int, ...]] = {}
        self._lead_tokens = sizes.total(0, history.head)
        self._stay = history.staying()
        self._stay_sums = list(accumulate(map(sizes.of, self._stay), initial=0))
        self._at = self._count
        self._newer_tokens = 0

    @classmethod
    def of(cls, history: History, sizes: Sizes, counted: int | None) -> TailCuts | None:
        """Read what was counted; None if nothing was, or that part is not tidy."""
        if counted is None:
            return None
        start = history.border_at_or_after(counted)
        # Results at the very start must belong to one call before them, else each may stay or leave alone.
        # What stays is decided at the end, also where the limit was passed inside the newest unit.
        first = history.border_at_or_before(counted) if counted < start else start
        if not history.tidy(min(first, history.newest_border())):
            return None
        user = history.latest_user
        if user is not None and history.head <= user < start and not history.stands_alone(user):
            return None
        tail = cls(history, sizes, counted, start)
        older = tail.opener(start)
        return tail if not older or history.stands_alone(older[0]) else None

    @property
    def end(self) -> int:
        """The cut that keeps only what stays anyway."""
        return self._count

    def tokens(self, cut: int, also: tuple[int, ...] = (), /) -> int:
        """Return the size of the request cut there, units beginning at `also` kept too."""
        total = self._fixed_tokens(cut, also) + self._lead_tokens + self._tokens_from(cut)
        total += self._stay_sums[bisect_left(self._stay, cut)]
        for first in also:
            total += sum(map(self._sizes.of, range(first, self._history.end_of(first))))
        return total

    def _costs_less_from(self, cut: int) -> bool:
        """Tell whether what stands beside the messages costs less once the request begins here."""
        if cut == self._count or self._history.head or self._history.kind(cut) != "system":
            return False
        return self._sizes.fixed_tokens(True) < self._sizes.fixed_tokens(False)

    def _fixed_tokens(self, cut: int, also: tuple[int, ...]) -> int:
        """Return what a request cut there costs beside its messages."""
        first = 0 if self._history.head else min((cut, *also, *self._stay[:1]))
        leads_system = first < self._count and self._history.kind(first) == "system"
        return self._sizes.fixed_tokens(leads_system)

    def _tokens_from(self, cut: int) -> int:
        """Return the tokens of every message from a cut on, by the steps from the cut asked before."""
        at, sizes = self._at, self._sizes
        if cut < at:
            for index in range(cut, min(at, self._counted)):
                sizes.of(index)
            self._newer_tokens += sizes.total(cut, at)
        elif cut > at:
            self._newer_tokens -= sizes.total(at, cut)
        self._at = cut
        return self._newer_tokens

    def stands(self, cut: int, also: tuple[int, ...], /) -> bool:
        """Return True: a history with an order is grouped."""
        return True

    def oldest(self, fits: Callable[[int], bool], also: Also | None = None, /) -> int | None:
        """Return the oldest cut that fits, stepping up from the message that passed the limit."""
        history, end = self._history, self._count
        cut = history.border_at_or_after(max(self._oldest, history.head))
        while not fits(cut):
            if cut >= end:
                return None
            cut = history.border_at_or_after(cut + 1)
        return cut

    def before(self, cut: int, /) -> int | None:
        """Return the next older cut; None before the oldest that was counted."""
        floor = max(self._history.head, self._counted)
        while cut > floor:
            cut -= 1
            if self._history.is_border(cut):
                return cut
        return None

    def opener(self, cut: int, /) -> tuple[int, ...]:
        """Return the user message that opened the turn cut into, if it is older than the cut."""
        known = self._openers.get(cut)
        if known is None:
            known = self._openers[cut] = self._opener_of(cut)
        return known

    def _opener_of(self, cut: int) -> tuple[int, ...]:
        history, latest = self._history, self._latest
        if cut >= self._count or (latest is not None and latest <= cut and self._stays(latest)):
            return ()
        user = history.user_at_or_before(cut)
        if user is None or user == cut:
            return ()
        return (user,)

    def _stays(self, index: int) -> bool:
        at = bisect_left(self._stay, index)
        return at < len(self._stay) and self._stay[at] == index

    def covers(self, cut: int, kept: Sequence[Unit]) -> bool:
        """Tell whether a cut and units kept beside it can be settled without grouping everything."""
        if cut < self._start:
            return False
        for unit in kept:
            first = unit.indices[0]
            if first < self._start and not (
                unit.indices == (first,)
                and self._history.kind(first) == "user"
                and self._history.stands_alone(first)
            ):
                return False
        return True

    def unit(self, first: int, /) -> Unit:
        """Return the unit that begins at a message."""
        if first < self._start and not self._stays(first):  # the message that opened a turn
            return Unit((first,), kind="user")
        return self._history.unit_at(first)

    def newest_first(self) -> Iterator[Unit]:
        """Walk the units from the newest to the oldest; groups everything past the tidy part."""
        history, first = self._history, len(self._history)
        while (older := self.before(first)) is not None:
            first = older
            yield history.unit_at(first)
        yield from (unit for unit in reversed(history.units) if unit.first < first)

    def staying_before(self, cut: int, /) -> list[int]:
        """List the messages older than the cut that stay, leading ones included."""
        head = self._history.head
        return [*range(head), *self._stay[: bisect_left(self._stay, cut)]]

    def kept(self, cut: int, also: Sequence[Unit]) -> list[Unit]:
        """List the units a cut keeps, in order."""
        history = self._history
        firsts = {first for first in self.staying_before(cut) if history.is_border(first)}
        units = {first: history.unit_at(first) for first in firsts}
        units.update((unit.first, unit) for unit in also)
        end = len(history)
        while cut < end:
            units[cut] = history.unit_at(cut)
            cut = history.border_at_or_after(cut + 1)
        return [units[first] for first in sorted(units)]


class UnitCuts:
    """Cuts over grouped units: any history, any counter, any step of a Cascade."""

    def __init__(self, request: EvictionRequest) -> None:
        self._request = request
        self._units = list(request.units)
        self._free = [unit for unit in self._units if not request.stays(unit)]
        # Units that stay are places to cut at, too: the tail cannot tell, and both must find the same cut.
        head = request.history.head
        self._firsts = sorted({u.first for u in self._units if u.first >= head or not request.stays(u)})
        # Of several units of one message the user's words are the one that opens a turn.
        mine = (unit for unit in self._units if unit.kind == "user")
        self._by_first = {unit.first: unit for unit in (*self._units, *mine)}
        self._users = [unit for unit in self._units if unit.kind == "user"]
        self._stay_tokens: int | None = None
        self._stay = [unit for unit in self._units if request.stays(unit)]
        self._sums = [0]
        self._there: dict[int, set[int]] = {}
        """Parts of shared messages among what stays and what was added up."""
        self._there_anyway: dict[int, set[int]] = {}
        """The same among what stays."""
        self._end = len(request.history)
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
            self._stay_tokens = sum(request._added_tokens(unit, self._there_anyway) for unit in self._stay)
            self._there.update(self._there_anyway)
        newer = len(self._free) - bisect_left(self._free, cut, key=_first_of)
        while len(self._sums) <= newer:
            newest = self._free[-len(self._sums)]
            self._sums.append(self._sums[-1] + request._added_tokens(newest, self._there))
        added = self._stay_tokens + self._sums[newer] + self._beside_tokens(also)
        return request._fixed_tokens_of(self._first(newer, also)) + added

    def _first(self, newer: int, also: tuple[int, ...]) -> Unit | None:
        """Return the first of the units that stay beside the newest of the free ones."""
        firsts = [
            *self._stay[:1],
            *(self._by_first[f] for f in also),
            *self._free[len(self._free) - newer :][:1],
        ]
        return min(firsts, key=_first_of, default=None)

    def _beside_tokens(self, also: tuple[int, ...]) -> int:
        """Return the tokens of units beside a cut: what shares a message with them is older, or stays."""
        units = [self._by_first[first] for first in also]
        shared = (index for unit in units for index in unit.parts)
        there = {index: self._there_anyway[index] for index in shared if index in self._there_anyway}
        return sum(self._request._added_tokens(unit, there) for unit in units)

    def oldest(self, fits: Callable[[int], bool], also: Also | None = None, /) -> int | None:
        """Return the oldest cut that fits, found by halves; None if what must stay alone does not fit."""
        if not fits(self._end):
            return None
        found = self._firsts[bisect_left(self._firsts, True, key=fits) :]
        for cut in found:
            if (also is None or self.stands(cut, also(cut))) and (cut == found[0] or fits(cut)):
                return cut
        return self._end

    def stands(self, cut: int, also: tuple[int, ...], /) -> bool:
        """Tell whether the provider takes the first message kept behind what stays before it."""
        openers = self._openers
        at = bisect_left(self._units, cut, key=_first_of)
        if openers is None or at == len(self._units):
            return True
        unit = self._units[at]
        first = unit.first
        older = bisect_left(self._staying, first)
        beside = (index for one in also for index in self._by_first[one].indices if index < first)
        before = max((*self._staying[max(0, older - 1) : older], *beside), default=-1)
        if before < 0 or (first < self._says and not also):
            return openers.says(unit) is None or self._request.stays(unit) or openers.leads(unit)
        return openers.stands(first, before)

    def before(self, cut: int, /) -> int | None:
        """Return the next older cut; None before the oldest."""
        at = bisect_left(self._firsts, cut)
        return self._firsts[at - 1] if at else None

    def opener(self, cut: int, /) -> tuple[int, ...]:
        """Return the unit of the user message that opened the turn cut into, if it is free."""
        if cut >= self._end:
            return ()
        at = bisect_right(self._users, cut, key=_first_of)
        unit = self._users[at - 1] if at else None
        if unit is None:
            unit = self._opener_otherwise(cut)
        return () if unit is None or unit.first == cut or self._request.stays(unit) else (unit.first,)

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

    def newest_first(self) -> Iterator[Unit]:
        """Walk the units from the newest to the oldest."""
        return reversed(self._units)


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


def count_words_back(history: History, sizes: Sizes, limit_tokens: int) -> int:
    """Count from the newest message back until what is no result alone passes the limit.

    However small results become, what is older than the message returned, and that one, cannot all stay.
    """
    index, room = history.count, limit_tokens
    apart = history.format.rules.results_are_messages  # else words of the user may stand beside results
    while index > history.head and room >= 0:
        index -= 1
        kind = history.kind(index)
        if kind == "assistant" or (apart and kind == "user"):
            room -= sizes.of(index)
    return index


def _back(history: History, sizes: Sizes, start: int, room_tokens: int) -> int:
    """Count from the newest message back to `start`, until the room is passed."""
    walked, left = history.walked_from, room_tokens
    if walked < history.count:
        left -= sizes.total(walked, history.count)
    if left < 0:
        return walked
    low = sizes.walk(history, start, left)
    return sizes.back(start, history.count, room_tokens) if low is None else low
