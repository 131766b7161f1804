"""`PriorityBased`: the units with the best scores stay, wherever they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trimtab._shared.checks import check_parameters
from trimtab.conversation import Unit
from trimtab.conversation.units import Span, span_of, unit_of
from trimtab.errors import ConfigurationError
from trimtab.formats import mapping_of
from trimtab.strategies.base import EvictionRequest, EvictionResult

__all__ = ["Place", "PriorityBased", "Score", "default_score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a message stands among those of its block."""

    index: int
    """Position, from 0."""
    count: int
    """Messages in the block."""
    kind: str
    """Whom it is from: system, user, assistant, tool or other."""
    has_calls: bool
    """Whether it calls tools."""

    @property
    def recency(self) -> float:
        """How new it is, above 0; 1.0 is the newest."""
        return (self.index + 1) / self.count


Score = Callable[[Mapping[str, Any], Place], float]
"""Says how much a message is worth keeping; higher stays longer.

The message is a read-only view; what is nested in it is the caller's own, and to be
read only.
"""


def default_score(message: Mapping[str, Any], place: Place, /) -> float:
    """Score by role and recency r in (0, 1]: the bands of seeds/002.

    system: infinite; user 100 + 50 r; assistant with calls 80 + 40 r; assistant 60 + 30 r;
    tool result 50 + 40 r; anything else 10 + 5 r.
    """
    calls = place.has_calls and place.kind == "assistant"
    base, more = _BANDS.get("caller" if calls else place.kind, _OTHERS)
    return base + more * place.recency


_OTHERS = (10.0, 5.0)
_BANDS = {
    "system": (math.inf, 0.0),
    "user": (100.0, 50.0),
    "caller": (80.0, 40.0),
    "assistant": (60.0, 30.0),
    "tool": (50.0, 40.0),
}
"""What a message of a kind has at least, and what the newest one has beyond that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityBased:
    """Keep what scores best.

    Pinned and held units come first, then units by their best message. Ties go to the newer unit;
    what does not fit is skipped; the order of the conversation is kept. Reads and counts the whole
    history.

    Args:
        score: Function of a message (a read-only mapping) and its `Place`.
        score_name: Name it was registered under, for `to_dict`; None for the default and for unnamed
            functions.

    Raises:
        ConfigurationError: `score` is not a function.
    """

    score: Score = default_score
    score_name: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot score."""
        if not callable(self.score):
            raise ConfigurationError(
                f"score must be a function of a message and its place, or a name given to create_strategy "
                f"with names={{{self.score!r}: function}}"
            )
        check_parameters("score", self.score, "message", "place")

    @property
    def name(self) -> str:
        """The word for it in reports and data."""
        return "priority_based"

    def to_dict(self) -> dict[str, Any]:
        """Write it as data for `create_strategy`.

        Raises:
            ConfigurationError: The score is a function that has no name.
        """
        if self.score is default_score:
            return {"kind": self.name}
        if self.score_name is None:
            raise ConfigurationError(
                "score is a function without a name: make the strategy by create_strategy(..., names={...})"
            )
        return {"kind": self.name, "score": self.score_name}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take units greedily by score."""
        request.count_each()
        row = request.row
        stays = [at for at, span in enumerate(row) if request._must_stay(span)]
        staying = [unit_of(row[at]) for at in stays]
        if not request.fits(staying):
            return EvictionResult(kept=staying, fits=False, actions=("evicted",))
        ranked = self._rank(request)
        if request.additive and request._openers is None and all(span[4] is None for span in row):
            taken = {*stays, *_take(request, [row[at] for at in stays], ranked)}
            kept = [unit_of(span) for at, span in enumerate(row) if at in taken]
            return EvictionResult(kept=kept, actions=("evicted",))
        units = request.units
        staying, best_first = [units[at] for at in stays], [units[at] for at in ranked]
        if request.additive:
            chosen = _Greedy(request, staying).take(best_first)
        else:
            chosen = [*staying, *_by_halves(request, staying, best_first)]
        found = set(map(id, chosen))
        return EvictionResult(kept=[unit for unit in units if id(unit) in found], actions=("evicted",))

    def _rank(self, request: EvictionRequest) -> list[int]:
        """Sort the units that may leave by their best message, the best first; of equals the newer one.

        Returns:
            Their places in the row of the request.
        """
        row = request.row
        places: Mapping[int, int] | range = range(request.history.count)
        if not request.is_whole:
            there = sorted(index for unit in request.units for index in unit.indices)
            places = {index: at for at, index in enumerate(there)}
        score = self._score_by_kind if self.score is default_score else self._score
        best = {
            at: (score(request, span, places), span[0])
            for at, span in enumerate(row)
            if not request._must_stay(span)
        }
        return sorted(best, key=best.__getitem__, reverse=True)

    def _score(self, request: EvictionRequest, span: Span, places: Mapping[int, int] | range) -> float:
        """Ask the function about each message of a unit."""
        first, stop, _, _, unit = span
        found = []
        for index in range(first, stop) if unit is None else unit.indices:
            place = Place(
                index=places[index],
                count=len(places),
                kind=request.history.kind(index),
                has_calls=_has_calls(request, span, index),
            )
            value = self.score(MappingProxyType(mapping_of(request.message(index))), place)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
                raise ConfigurationError(f"score answered {value!r} for message {index}; it must be a number")
            found.append(float(value))
        return max(found)

    def _score_by_kind(
        self, request: EvictionRequest, span: Span, places: Mapping[int, int] | range
    ) -> float:
        """Score as `default_score` does, which looks at nothing but the place of a message."""
        first, stop, _, kind, unit = span
        if unit is not None or first < request.history.walked_from:
            return self._score(request, span, places)
        count = len(places)
        if stop == first + 1:
            base, more = _BANDS.get(kind or "other", _OTHERS)
            return base + more * ((places[first] + 1) / count)
        base, more = _BANDS["caller"]  # and behind it results, of which the last is the newest
        result_base, more_of_result = _BANDS["tool"]
        return max(
            base + more * ((places[first] + 1) / count),
            result_base + more_of_result * ((places[stop - 1] + 1) / count),
        )


def _has_calls(request: EvictionRequest, span: Span, index: int) -> bool:
    """Tell whether a message makes calls: of units not made the first does, where results are behind it."""
    first, stop, _, _, unit = span
    if unit is None and request.history.walked_from <= first:
        return index == first and stop > first + 1
    return request.history.has_calls(index)


def _take(request: EvictionRequest, stays: list[Span], ranked: list[int]) -> list[int]:
    """Take what fits, best first, of units that are neighboring whole messages and need nothing in front."""
    row, limit = request.row, request.limit_tokens
    taken: list[int] = []
    used = sum(request._tokens_between(span[0], span[1]) for span in stays)
    first = stays[0] if stays else None
    fixed = request._fixed_tokens_of(first)
    for at in ranked:
        span = row[at]
        tokens = used + request._tokens_between(span[0], span[1])
        ahead = first is None or span[0] < first[0]
        fixed_with = request._fixed_tokens_of(span) if ahead else fixed
        if tokens + fixed_with <= limit:
            used, fixed = tokens, fixed_with
            first = span if ahead else first
            taken.append(at)
    return taken


class _Greedy:
    """Takes unit after unit while there is room, each with what it needs in front of it."""

    def __init__(self, request: EvictionRequest, stays: list[Unit]) -> None:
        self._request = request
        self._openers = request._openers
        self._there: dict[int, set[int]] = {}
        """Parts of shared messages that were taken."""
        self._used = sum(request._added_tokens(unit, self._there) for unit in stays)
        self._chosen = {id(unit): unit for unit in stays}
        self._first = span_of(stays[0]) if stays else None
        at = None if self._openers is None else self._openers.front(stays)
        self._front = len(request.history) if at is None else stays[at].first
        """The first message of what was taken; nothing behind it needs an opener."""

    def take(self, ranked: list[Unit]) -> list[Unit]:
        """Take what fits, best first; then what was passed over and needs nothing in front any more."""
        skipped = self._pass(ranked)
        if self._openers is None or not skipped:
            return list(self._chosen.values())
        skipped = self._pass(skipped)
        staying, left = self._request._in_order(self._in_place())
        if left:
            lost = [unit for unit in ranked if id(unit) in self._chosen and not left.isdisjoint(unit.indices)]
            self._drop(staying)
            for unit in lost[:_MISPLACED_TRIED]:
                self._try(unit)
            for unit in skipped[:_MISPLACED_TRIED]:
                self._try(unit)
        return list(self._chosen.values())

    def _try(self, unit: Unit) -> None:
        """Take a unit if there is room, and nothing is refused then where it would stand."""
        before = self._used, self._front, self._first, dict(self._there), dict(self._chosen)
        if self._fits(unit) and self._request._in_order(self._in_place())[1]:
            self._used, self._front, self._first, self._there, self._chosen = before

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
        wanted, front = [unit], self._front
        if self._openers is not None and unit.first < front and self._openers.says(unit) is not None:
            opener = self._openers.of(unit)
            wanted, front = [unit, *([opener] if opener else ())], (opener or unit).first
        there = {i: self._there[i] for one in wanted for i in one.parts if i in self._there}
        used, first = self._used, self._first
        for one in wanted:
            used += self._request._added_tokens(one, there)
            first = span_of(one) if first is None or one.first < first[0] else first
        if self._request._fixed_tokens_of(first) + used > self._request.limit_tokens:
            return False
        self._used, self._front, self._first = used, front, first
        self._there.update(there)
        self._chosen.update((id(one), one) for one in wanted)
        return True

    def _drop(self, staying: list[Unit]) -> None:
        """Go on from less than was taken: the rest may not stand where it would."""
        request = self._request
        self._there = {}
        self._used = sum(request._added_tokens(unit, self._there) for unit in staying)
        self._chosen = {id(unit): unit for unit in staying}
        self._first = span_of(staying[0]) if staying else None


_MISPLACED_TRIED = 16
"""Units that are tried one by one, where some of what was taken may not stand behind the rest."""

_BLACK_BOX_SKIPS = 4
"""Units a black box is asked to skip before the rest is taken by size: each costs O(log n) calls."""


def _by_halves(request: EvictionRequest, stays: list[Unit], ranked: list[Unit]) -> list[Unit]:
    """Take the longest run of best units that fits, skip one that does not, and go on.

    Of what is left after some skips the smallest, by their shares, are taken while they fit.
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
