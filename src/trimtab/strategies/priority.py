"""`PriorityBased`: the units with the best scores stay, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from trimtab._shared.checks import check_parameters
from trimtab.conversation.units import Span
from trimtab.errors import ConfigurationError
from trimtab.formats import mapping_of
from trimtab.strategies.base import EvictionRequest, EvictionResult
from trimtab.strategies.greedy import must_stay, take_best
from trimtab.strategies.scores import (
    BANDS,
    OTHERS,
    SCORE_NAMES,
    Place,
    Score,
    Weights,
    WeightsLike,
    default_score,
    messages_of,
    score_data,
    weigh,
    weights_of,
)

__all__ = ["PriorityBased"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityBased:
    """Keep what scores best.

    Pinned and held units come first, then units by their best message. Ties go to the newer unit;
    what does not fit is skipped; the order of the conversation is kept. Reads and counts the whole
    history.

    Args:
        score: What a message is worth: `"role"` (whom it is from), `"recency"`, `"relevance"` (what it says
            about the user's latest message), several with weights, as in `{"relevance": 1, "role": 0.3}`,
            or a function of a message (a read-only mapping) and its `Place`.
        score_name: Name a function was registered under, for `to_dict`.

    Raises:
        ConfigurationError: `score` is neither a function nor names with weights.
        UnknownNameError: It is a name nobody knows.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> texts = ("My cat is called Tom.", "Nice.", "It rains.", "It does.", "And my cat?")
        >>> messages = [{"role": "user", "content": text} for text in texts]
        >>> strategy = PriorityBased(score="relevance")
        >>> fitted = fit(messages, 20, counter=FixedCounter(per_message=10), strategy=strategy)
        >>> [message["content"] for message in fitted.messages]
        ['My cat is called Tom.', 'And my cat?']
    """

    score: Score | WeightsLike = default_score
    score_name: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot score."""
        score = self.score
        if isinstance(score, (str, Mapping)):
            weights = weights_of(score)
            object.__setattr__(self, "score", default_score if list(weights) == ["role"] else weights)
        elif callable(score):
            check_parameters("score", score, "message", "place")
        else:
            raise ConfigurationError(
                f"score must be a function of a message and its place, one of {', '.join(SCORE_NAMES)}, or"
                f" several of these with weights, not {score!r}"
            )

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
        return {"kind": self.name, "score": score_data(self.score, self.score_name)}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take units greedily by score."""
        stays, _, impossible = must_stay(request)
        if impossible is not None:
            return impossible
        kept = take_best(request, stays, self._rank(request, stays))
        return EvictionResult(kept=kept, actions=("evicted",))

    def _rank(self, request: EvictionRequest, stays: Sequence[int]) -> list[int]:
        """Sort the units that may leave by their best message, the best first; of equals the newer one.

        Args:
            request: What is asked.
            stays: Places in its row of the others.

        Returns:
            Their places in the row of the request.
        """
        row = request.row
        places: Mapping[int, int] | range = range(request.history.count)
        if not request.is_whole:
            places = {index: at for at, index in enumerate(messages_of(request))}
        score: Callable[[EvictionRequest, Span, Mapping[int, int] | range], float]
        if isinstance(self.score, Weights):
            score = partial(_best, weigh(request, self.score))
        else:
            score = self._score_by_kind if self.score is default_score else self._score
        free = set(range(len(row))).difference(stays)
        best = {at: (score(request, row[at], places), row[at][0]) for at in free}
        return sorted(best, key=best.__getitem__, reverse=True)

    def _score(self, request: EvictionRequest, span: Span, places: Mapping[int, int] | range) -> float:
        """Ask the function about each message of a unit."""
        first, stop, _, _, unit = span
        function, found = cast("Score", self.score), []
        for index in range(first, stop) if unit is None else unit.indices:
            place = Place(
                index=places[index],
                count=len(places),
                kind=request.history.kind(index),
                has_calls=_has_calls(request, span, index),
            )
            value = function(MappingProxyType(mapping_of(request.message(index))), place)
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
            base, more = BANDS.get(kind or "other", OTHERS)
            return base + more * ((places[first] + 1) / count)
        base, more = BANDS["caller"]  # and behind it results, of which the last is the newest
        result_base, more_of_result = BANDS["tool"]
        return max(
            base + more * ((places[first] + 1) / count),
            result_base + more_of_result * ((places[stop - 1] + 1) / count),
        )


def _best(scores: Mapping[int, float], request: EvictionRequest, span: Span, places: Any) -> float:
    """Return the score of the best message of a unit."""
    return max(map(scores.__getitem__, range(span[0], span[1]) if span[4] is None else span[4].indices))


def _has_calls(request: EvictionRequest, span: Span, index: int) -> bool:
    """Tell whether a message makes calls: of units not made the first does, where results are behind it."""
    first, stop, _, _, unit = span
    if unit is None and request.history.walked_from <= first:
        return index == first and stop > first + 1
    return request.history.has_calls(index)
