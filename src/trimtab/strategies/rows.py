"""The units of a request: how far they are told apart, and what is told when a strategy asks for more.

Who reads the newest alone is shown those near the cut: of 10,000 messages in a three-hundredth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from trimtab.conversation import History, Unit
from trimtab.conversation.units import Span, Stretch, span_of, unit_of
from trimtab.strategies.openers import Openers

if TYPE_CHECKING:
    from trimtab.strategies.base import EvictionRequest

__all__ = ["Near", "Rows", "first_of_run", "places_that_stay", "span_stays", "unit_key"]


Near = Callable[[], tuple["list[Span] | None", int, bool]]
"""Tells what is near the cut, before which message none fits, and whether nothing is large."""


class Rows:
    """The units of a conversation, built as far as they are needed."""

    __slots__ = (
        "_alive",
        "_is_apart",
        "_made_openers",
        "_near",
        "_origin",
        "_passed",
        "_promise_kept",
        "_row",
        "_walked",
        "history",
        "holds_nothing_large",
        "is_near",
        "oldest_cut",
        "reads_newest",
    )

    def __init__(
        self,
        history: History,
        *,
        alive: Sequence[Unit] | None,
        row: list[Span] | None,
        near: Near | None,
        reads_newest: bool,
    ) -> None:
        self.history = history
        self.reads_newest = reads_newest
        """Whether who is asked promised that no unit has a say that is older than those that fit."""
        self.oldest_cut = 0
        """A cut before this message surely does not fit; 0: none is known."""
        self._origin: Rows | None = None
        """What this was made from."""
        self._made_openers: Openers | None = None
        self._alive = alive
        self._row = row
        self._near = near
        """Tells apart what is near the cut, and says before which message none fits; None: nobody has to."""
        self.holds_nothing_large = False
        """Whether what makes results smaller before anything leaves surely finds none to make so."""
        self.is_near = False
        """Whether what is older than what may fit is there, and not in the row."""
        self._is_apart = row is None
        """Whether nothing in the row is a stretch; True where it is not read yet."""
        self._passed: list[Unit] = []
        """The units that a walk back from the newest has come to."""
        self._walked: Walked | None = None
        """What `units` are as long as a walk back from the newest has not gone on."""
        self._promise_kept = True
        """False once all was asked for after something was answered from what is near the cut."""

    @property
    def units(self) -> Sequence[Unit]:
        """All remaining units, in order. Reads the whole conversation.

        After a walk back from the newest (`newest_first`) that stopped early, one unit that may be evicted
        replaces all unread ones, so the indices of units have no meaning. A strategy that needs the contents
        of that unit, or the number of units, is asked again with all of them.
        """
        if self._walked is not None and self.is_near:
            return self._walked
        self._tell_all()
        return self.told_units

    @property
    def row(self) -> list[Span]:
        """The same as spans, without building units."""
        self._tell_all()
        return self.told

    @property
    def told(self) -> list[Span]:
        """The same as far as needed: if a strategy reads "newest", those near the cut.

        Older ones that may be evicted are not included, and neighbors far from the cut are one stretch until
        `part` builds their units. For any other strategy it is `row`.
        """
        if self._row is None and self._alive is None and self.reads_newest:
            self._read_near()
        if self._row is None:
            self._row = self.history.spans if self._alive is None else list(map(span_of, self._alive))
        return self._row

    @property
    def told_units(self) -> Sequence[Unit]:
        """The same as units, with a stretch as one unit."""
        if self._alive is None:
            if self._row is None and not self.reads_newest:
                return self.history.units
            self._alive = list(map(unit_of, self.told))
        return self._alive

    def _read_near(self) -> None:
        """Tell apart what is near the cut, if nothing was told apart yet and somebody knows where it is."""
        near, self._near = self._near, None
        if near is None or self._row is not None or self._alive is not None:
            return
        row, self.oldest_cut, self.holds_nothing_large = near()
        if row is not None:
            self._row, self.is_near, self._is_apart = row, True, False

    def _tell_all(self) -> None:
        """Tell apart all that is still there, here and in the requests this one was made from.

        Whoever asks for it pays for it once; a promise to read the newest alone was wrong then, or useless.
        """
        self._near = None
        if self.is_near:
            row = self.history.spans
            # Up to the request the strategy was asked with: `is_sure` is asked of that one.
            one: Rows | None = self
            while one is not None and one.is_near:
                one._row, one._alive, one._made_openers = row, None, None
                one.is_near, one._is_apart, one._promise_kept = False, True, False
                one = one._origin
        elif not self._is_apart:
            self._tell_stretches()

    def _tell_stretches(self) -> None:
        """Tell apart the neighbors that are one stretch."""
        for span in [span for span in self.told if span[3] is None]:
            self.part(span, at=span[0], few=span[1] - span[0])
        self._is_apart = True

    def newest_first(self) -> Iterator[Unit]:
        """Walk the units from the newest to the oldest.

        Units that may fit are read at first, and the others once the walk goes beyond them.
        """
        self._read_near()
        return self._walk_back() if self.is_near else reversed(self.units)

    def _walk_back(self) -> Iterator[Unit]:
        """Walk over what may fit, and then over all that is older."""
        self._tell_stretches()  # at once: of a hundred units one by one each takes longer than ten
        if not self.is_near:
            yield from reversed(self.told_units)
            return
        units, start = self.told_units, first_of_run(self.told)
        if self.told[start][0] > self.history.head:
            self._walked = Walked(units, self.told, self.history.head)
        newer, self._passed = units[start:], []
        for unit in reversed(newer):
            self._passed.append(unit)
            yield unit
        kept = self._promise_kept
        self._tell_all()
        all_units = [*self.told_units]
        older = len(all_units) - len(newer)
        if [*map(unit_key, all_units[older:])] == [*map(unit_key, newer)]:
            all_units[older:] = newer  # a strategy may tell them apart by what they are
            self._alive, self._promise_kept = all_units, kept and not self.reads_newest
        yield from reversed(all_units[:older])

    def is_sure(self, keeps: Callable[[int], bool], /) -> bool:
        """Tell whether the answer would be the same for all units.

        An answer from the units near the cut is valid if the strategy promised to read no others. Without a
        promise it is valid if the strategy stopped on its way back, read no missing unit, and keeps all that
        it passed except the last. These units are part of the row: a few may have been chosen by index, when
        the number of units was unknown.

        Args:
            keeps: Tells whether a message is kept.
        """
        if not self.is_near or not self._promise_kept:
            return self._promise_kept
        if self._walked is not None and self._walked.asked_for_more:
            return False
        if self.reads_newest:
            return True
        passed = [unit.first for unit in self._passed if unit.state == "free"]
        stay = [*map(keeps, passed)]
        return len(passed) > _SURELY_PASSED and all(stay[:-1])

    def part(self, stretch: Span, /, *, at: int, few: int) -> None:
        """Build some units of a stretch, from one of its messages on.

        Args:
            stretch: The stretch of the units.
            at: Index of the first message of the first unit.
            few: Maximum number of units.
        """
        self._put_for(stretch, self.history.part(stretch[0], stretch[1], at=at, few=few))

    def _put_for(self, stretch: Span, spans: list[Span] | None) -> None:
        """List spans in place of a stretch, here and in the request this one was made from."""
        if self._row is None and self._alive is None:
            return
        row = self.told
        place = next((at for at, span in enumerate(row) if span[:2] == stretch[:2] and span[3] is None), None)
        if place is not None and spans is None and self.is_near:
            self._tell_all()
        elif place is not None:
            if spans is None:  # what it takes all there is to tell, of which only this is still there
                spans = [span for span in self.history.spans if stretch[0] <= span[0] < stretch[1]]
            self._row = [*row[:place], *spans, *row[place + 1 :]]
            self._alive = self._made_openers = None
        if self._origin is not None:
            self._origin._put_for(stretch, spans)


def first_of_run(row: Sequence[Span]) -> int:
    """Return the place in a row from which on no message is missing between the units."""
    at = reach = 0
    for place, span in enumerate(row):
        if span[0] > reach:
            at = place
        reach = max(reach, span[1])  # a unit may stand inside another
    return at


class _Unread(Stretch):
    """Older units that nobody has read: they may leave. Whoever asks more of them is asked again with all."""

    __slots__ = ("_places", "_walked")

    def __init__(self, walked: Walked, places: range) -> None:
        super().__init__((), kind="other")
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "_walked", walked)

    def __getattribute__(self, name: str) -> Any:
        """Answer; and note that more was asked than whether they may leave."""
        if name in _TOLD:
            object.__getattribute__(self, "_walked").asked_for_more = True
        if name == "indices":  # 10,000 numbers take as long as a fit, and mostly nobody asks
            return tuple(object.__getattribute__(self, "_places"))
        return object.__getattribute__(self, name)


_TOLD = frozenset({"indices", "kind", "open", "parts"})
"""What only reading tells of a unit."""


class Walked(Sequence[Unit]):
    """The units walked over, those that must stay, and one in place of all that stand between these.

    A strategy that walked back and stopped writes `[unit for unit in request.units if unit in kept]`: to make
    units of 10,000 messages for that takes 200 times a fit. What stands for the others is free to leave, as
    each of them is, and that is all it may be asked. Whoever asks for more (its messages, its kind, how many
    units there are) is answered, and asked the whole question again with all units.
    """

    def __init__(self, units: Sequence[Unit], row: Sequence[Span], start: int) -> None:
        self.asked_for_more = False
        """Whether something was asked that only all units answer."""
        self._run = len(units) - first_of_run(row)
        """Units at the end between which none is missing."""
        self._units = list[Unit]()
        stop = start
        for span, unit in zip(row, units, strict=True):
            if span[0] > stop:
                self._units.append(_Unread(self, range(stop, span[0])))
            self._units.append(unit)
            stop = max(stop, span[1])

    def __iter__(self) -> Iterator[Unit]:
        return iter(self._units)

    def __len__(self) -> int:
        self.asked_for_more = True
        return len(self._units)

    def __contains__(self, unit: object) -> bool:
        return unit in self._units

    @overload
    def __getitem__(self, at: int, /) -> Unit: ...
    @overload
    def __getitem__(self, at: slice, /) -> Sequence[Unit]: ...
    def __getitem__(self, at: int | slice, /) -> Unit | Sequence[Unit]:
        first = at.start if isinstance(at, slice) and at.stop is at.step is None else at
        if not isinstance(first, int) or not -self._run <= first < 0:
            self.asked_for_more = True
        return self._units[at]


def span_stays(request: EvictionRequest, span: Span) -> bool:
    """Tell whether a unit must be kept, without building it."""
    return span[2] != "free" or span[0] in request.protected


def spans_that_stay(request: EvictionRequest) -> list[Span]:
    """List the units that may not leave among those that are told apart."""
    protected = request.protected
    return [span for span in request.told if span[2] != "free" or span[0] in protected]


def places_that_stay(request: EvictionRequest) -> list[int]:
    """List the places of the units that may not leave among those that are told apart."""
    protected = request.protected
    return [at for at, span in enumerate(request.told) if span[2] != "free" or span[0] in protected]


def unit_key(unit: Unit) -> tuple[object, ...]:
    """Tell units apart by what is in them: the same one may be made more than once."""
    return (unit.indices, tuple(sorted(unit.parts.items())))


_SURELY_PASSED = 8
"""Neighbors that a strategy keeps which chose by anything else than the way back hardly ever are so many.

One that keeps half of its units by their words would keep eight in a row once in 256 walks.
"""
