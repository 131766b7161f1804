"""Taking units one by one, the best first, while there is room: what does not fit is skipped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from trimtab.conversation import Unit
from trimtab.conversation.turns import LastTurn
from trimtab.conversation.units import Span, span_of, unit_of
from trimtab.strategies.base import EvictionRequest, EvictionResult
from trimtab.strategies.openers import kept_in_order, place_of_message, speaks_in
from trimtab.strategies.rows import places_that_stay, unit_key

__all__ = ["must_stay", "take_best"]


def must_stay(request: EvictionRequest) -> tuple[list[int], list[Unit], EvictionResult | None]:
    """Count everything, and find what must be kept.

    Returns:
        Its places in the row of the request, its units, and the answer where these alone do not fit.
    """
    request.count_each()
    row = request.row
    stays = places_that_stay(request)
    staying = [unit_of(row[at]) for at in stays]
    if request.fits(staying):
        return stays, staying, None
    return stays, staying, EvictionResult(kept=staying, fits=False, actions=("evicted",))


def take_best(request: EvictionRequest, stays: list[int], ranked: list[int]) -> list[Unit]:
    """Return what must stay and what fits beside it, in order, with what that needs in front.

    Args:
        request: What is asked; what must stay fits.
        stays: Places in its row of the units that must stay, ascending.
        ranked: Places of the others, the best first.
    """
    row = request.row
    shares = any([span[4].parts for span in row if span[4] is not None])
    if request.additive and not shares and _turn_of(request) is None:
        return _Places(request, stays).take(ranked)
    units = request.units
    staying, best_first = [units[at] for at in stays], [units[at] for at in ranked]
    if request.additive:
        chosen = _Greedy(request, staying).take(best_first)
    else:
        chosen = [*staying, *_by_halves(request, staying, best_first)]
    found = set(map(id, chosen))
    return [unit for unit in units if id(unit) in found]


class _Places:
    """Takes units that share no message, by their places in the row, each with what it needs in front.

    Their tokens are a list, for which no unit has to be made: 10,000 messages take 22 ms by priority, and 34
    unit by unit, as `_Greedy` takes those that share messages.
    """

    def __init__(self, request: EvictionRequest, stays: list[int]) -> None:
        self._request = request
        self._row, self._openers = request.row, request.openers
        self._tokens = request.costs.row(self._row)
        self._taken = set(stays)
        self._made: dict[int, Unit] = {}
        self._used = sum(self._tokens[at] for at in stays)
        self._fixed_by_kind: dict[Any, int] = {}
        """What a request costs beside its units by the kind of the first, where nothing was put in."""
        self._first = stays[0] if stays else len(self._row)
        self._fixed = self._fixed_tokens(self._first)
        at = None if self._openers is None else self._openers.front(self._row[at] for at in stays)
        self._front = len(self._row) if at is None else stays[at]
        """The first place of what was taken that says something; nothing behind it needs an opener."""

    def take(self, ranked: list[int]) -> list[Unit]:
        """Take what fits, best first; then what was passed over and needs nothing in front any more."""
        skipped = self._pass(ranked)
        if self._openers is not None and skipped:
            self._settle(ranked, self._pass(skipped))
        return self._units(sorted(self._taken))

    def _settle(self, ranked: list[int], skipped: list[int]) -> None:
        """Let go of what may not stand where it would, and try what has room then."""
        left = self._out_of_place(sorted(self._taken))
        if left:
            lost = [at for at in ranked if at in self._taken and not left.isdisjoint(_indices(self._row[at]))]
            self._taken.difference_update(lost)
            self._used -= sum(self._tokens[at] for at in lost)
            self._first = min(self._taken, default=len(self._row))
            self._fixed = self._fixed_tokens(self._first)
            for at in (*lost[:_MISPLACED_TRIED], *skipped[:_MISPLACED_TRIED]):
                self._try(at)

    def _units(self, places: Iterable[int]) -> list[Unit]:
        """Return the units at some places, each made once."""
        row, made = self._row, self._made
        return [made[at] if at in made else made.setdefault(at, unit_of(row[at])) for at in places]

    def _fixed_tokens(self, first: int) -> int:
        """Return what a request costs beside its units that begins at a place; behind all: has none."""
        span = self._row[first] if first < len(self._row) else None
        if self._request.insertions or span is None:
            return self._request.costs.fixed_tokens(span)
        tokens = self._fixed_by_kind.get(span[3])
        if tokens is None:
            tokens = self._fixed_by_kind[span[3]] = self._request.costs.fixed_tokens(span)
        return tokens

    def _pass(self, ranked: list[int]) -> list[int]:
        """Take what fits, best first; return what did not."""
        tokens, taken, skipped = self._tokens, self._taken, list[int]()
        least, most = self._request.costs.fixed_range_tokens()
        room, plain = self._request.limit_tokens - least, self._openers is None and least == most
        for at in ranked:
            if at in taken:
                continue
            if self._used + tokens[at] > room:
                skipped.append(at)
            elif plain:  # whatever comes first
                self._used += tokens[at]
                taken.add(at)
            elif not self._fits(at):
                skipped.append(at)
        return skipped

    def _fits(self, at: int) -> bool:
        """Take a unit, and what it needs in front, if there is room for both."""
        openers, lead, front = self._openers, at, self._front
        used = self._used + self._tokens[at]
        if openers is not None and at < front and (opener := openers.lead_of(at)) is not None:
            if opener != at:
                lead, used = opener, used + self._tokens[opener]
            front = lead
        first, fixed = self._first, self._fixed
        if lead < first:
            first, fixed = lead, self._fixed_tokens(lead)
        if used + fixed > self._request.limit_tokens:
            return False
        self._used, self._front, self._first, self._fixed = used, front, first, fixed
        self._taken.add(at)
        self._taken.add(lead)
        return True

    def _try(self, at: int) -> None:
        """Take a unit if there is room, and nothing is refused then where it would stand."""
        before = self._used, self._front, self._first, self._fixed, set(self._taken)
        if at not in self._taken and self._fits(at) and self._is_refused(at):
            self._used, self._front, self._first, self._fixed, self._taken = before

    def _is_refused(self, at: int) -> bool:
        """Tell whether the provider would refuse a unit that was taken last, where all others stand well."""
        places, request = sorted(self._taken), self._request
        place = bisect_left(places, at)
        beside = places[max(0, place - 1) : place + 2]
        spans = [self._row[one] for one in beside]
        whole = all(one[4] is None or _is_row(one[4]) for one in spans)
        if request.insertions or not whole or any(a[1] > b[0] for a, b in pairwise(spans)) or place == 0:
            return bool(self._out_of_place(places))
        return bool(self._out_of_place(beside, led=True))

    def _out_of_place(self, places: list[int], *, led: bool = False) -> frozenset[int]:
        """Return the messages of these units that the provider would refuse where they stand."""
        return kept_in_order(self._request, self._units(places), led=led)[1]


def _is_row(unit: Unit) -> bool:
    """Tell whether the messages of a unit are consecutive."""
    return unit.indices[-1] - unit.indices[0] + 1 == len(unit.indices)


def _indices(span: Span) -> Iterable[int]:
    return range(span[0], span[1]) if span[4] is None else span[4].indices


def _turn_of(request: EvictionRequest) -> LastTurn | None:
    """Return the last turn, of which what stays may need the thinking in front; None if it has nothing."""
    turn = request.history.last_turn
    return turn if turn is not None and turn.holds(request.history.count - 1) else None


class _Greedy:
    """Takes unit after unit while there is room, each with its opener."""

    def __init__(self, request: EvictionRequest, stays: list[Unit]) -> None:
        self._request = request
        self._openers = request.openers
        self._turn = _turn_of(request)
        self._begin(stays)
        at = None if self._openers is None else self._openers.front(map(span_of, self._chosen.values()))
        self._front = len(request.history) if at is None else [*self._chosen.values()][at].first
        """The first message of what was taken; nothing behind it needs an opener."""

    def _begin(self, units: Sequence[Unit]) -> None:
        """Take these units, and what comes back with them."""
        request = self._request
        complete = request.with_openers(units)
        if len(complete) > len(units):
            keys = set(map(unit_key, complete))
            units = [unit for unit in request.units if unit_key(unit) in keys]
        self._there: dict[int, set[int]] = {}
        """Parts of shared messages that were taken."""
        self._used = sum(request.costs.unit(unit, self._there) for unit in units)
        self._chosen = {id(unit): unit for unit in units}
        self._first = span_of(units[0]) if units else None
        turn = self._turn
        said = () if turn is None else (unit.first for unit in units if speaks_in(turn, unit))
        self._said = next(iter(said), len(request.history))
        """The first message of what was taken of the last turn; nothing behind it needs thinking."""

    def take(self, ranked: list[Unit]) -> list[Unit]:
        """Take what fits, best first; then what was passed over and needs nothing in front any more."""
        skipped = self._pass(ranked)
        if self._openers is None or not skipped:
            return list(self._chosen.values())
        skipped = self._pass(skipped)
        staying, left = kept_in_order(self._request, self._in_place())
        if left:
            lost = [unit for unit in ranked if id(unit) in self._chosen and not left.isdisjoint(unit.indices)]
            self._begin(staying)
            for unit in lost[:_MISPLACED_TRIED]:
                self._try(unit)
            for unit in skipped[:_MISPLACED_TRIED]:
                self._try(unit)
        return list(self._chosen.values())

    def _try(self, unit: Unit) -> None:
        """Take a unit if there is room, and nothing is refused then where it would stand."""
        before = self._used, self._front, self._first, self._said, dict(self._there), dict(self._chosen)
        if self._fits(unit) and kept_in_order(self._request, self._in_place())[1]:
            self._used, self._front, self._first, self._said, self._there, self._chosen = before

    def _in_place(self) -> list[Unit]:
        return [unit for unit in self._request.units if id(unit) in self._chosen]

    def _pass(self, ranked: list[Unit]) -> list[Unit]:
        """Take what fits, best first; return what did not."""
        skipped = []
        for unit in ranked:
            if id(unit) not in self._chosen and not self._fits(unit):
                skipped.append(unit)
        return skipped

    def _fits(self, unit: Unit) -> bool:
        """Take a unit, and what it needs in front, if there is room for both."""
        wanted, front, said, lead = [unit], self._front, self._said, unit
        if self._turn is not None and unit.first < said and speaks_in(self._turn, unit):
            if (thinking := self._thinking_before(self._turn, unit)) is not None:
                wanted, lead = [unit, thinking], thinking
            said = lead.first
        if self._openers is not None and lead.first < front and self._openers.says(span_of(lead)) is not None:
            opener = self._openers.of(lead)
            wanted, front = [*wanted, *([opener] if opener else ())], (opener or lead).first
        there = {i: self._there[i] for one in wanted for i in one.parts if i in self._there}
        used, first = self._used, self._first
        for one in wanted:
            used += self._request.costs.unit(one, there)
            first = span_of(one) if first is None or one.first < first[0] else first
        if self._request.costs.fixed_tokens(first) + used > self._request.limit_tokens:
            return False
        self._used, self._front, self._first, self._said = used, front, first, said
        self._there.update(there)
        self._chosen.update((id(one), one) for one in wanted)
        return True

    def _thinking_before(self, turn: LastTurn, unit: Unit) -> Unit | None:
        """Return the thinking that comes back if a unit opens what stays of the last turn."""
        index = turn.thinking_for(unit.first)
        place = None if index is None else place_of_message(self._request.row, index)
        if place is None or id(thinking := self._request.units[place]) in self._chosen:
            return None
        return thinking


_MISPLACED_TRIED = 16
"""Units that are tried one by one, where some of what was taken may not stand behind the rest. Each
try looks at what stands beside it, or at all that was taken."""

_BLACK_BOX_SKIPS = 4
"""Units a black box is asked to skip before the rest is taken by size: each costs O(log n) calls."""


def _by_halves(request: EvictionRequest, stays: list[Unit], ranked: list[Unit]) -> list[Unit]:
    """Take the longest run of best units that fits, skip one that does not, and go on.

    Of what remains after some skips the smallest, by their shares, are taken while they fit.
    """
    chosen: list[Unit] = []
    rest = ranked
    for _ in range(_BLACK_BOX_SKIPS):
        low = _longest_run(request, [*stays, *chosen], rest)
        chosen += rest[:low]
        rest = rest[low + 1 :]
        if not rest:
            return chosen
    rest = sorted(rest, key=request.size)
    return chosen + rest[: _longest_run(request, [*stays, *chosen], rest)]


def _longest_run(request: EvictionRequest, kept: list[Unit], rest: list[Unit]) -> int:
    """Return how many units from the first on fit beside those kept, by halves."""
    low, high = 0, len(rest)
    while low < high:
        middle = (low + high + 1) // 2
        if request.fits(sorted([*kept, *rest[:middle]], key=lambda unit: unit.indices)):
            low = middle
        else:
            high = middle - 1
    return low
