"""What a message is worth keeping for: whom it is from, how new it is, what it says about the question."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from trimtab._shared.checks import in_words, is_number, near_names
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.relevance import relevance
from trimtab.strategies.base import EvictionRequest

__all__ = [
    "BANDS",
    "OTHERS",
    "SCORE_NAMES",
    "Place",
    "Score",
    "Weights",
    "WeightsLike",
    "default_score",
    "messages_of",
    "score_data",
    "weigh",
    "weights_of",
]


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
    return _by_role(place.kind, place.recency, has_calls=place.has_calls)


def _by_role(kind: str, recency: float, *, has_calls: bool) -> float:
    base, more = BANDS.get("caller" if has_calls and kind == "assistant" else kind, OTHERS)
    return base + more * recency


OTHERS = (10.0, 5.0)
BANDS = {
    "system": (math.inf, 0.0),
    "user": (100.0, 50.0),
    "caller": (80.0, 40.0),
    "assistant": (60.0, 30.0),
    "tool": (50.0, 40.0),
}
"""What a message of a kind has at least, and what the newest one has beyond that."""


# Scores by name, and mixtures of them.

SCORE_NAMES = ("relevance", "role", "recency")
"""What a message may be scored by: what it says about the question, whom it is from, how new it is."""

WeightsLike: TypeAlias = str | Mapping[str, float]
"""One of `SCORE_NAMES`, or several with their weights."""


class Weights(Mapping[str, float]):
    """Scores by name with their weights; cannot be changed."""

    __slots__ = ("_items",)

    def __init__(self, weights: Mapping[str, float], /) -> None:
        self._items = tuple((name, float(weights[name])) for name in SCORE_NAMES if name in weights)

    def __getitem__(self, name: str, /) -> float:
        return dict(self._items)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(self.to_data())

    def to_data(self) -> str | dict[str, float]:
        """Write it as data: a word, or the words with their weights."""
        return self._items[0][0] if len(self._items) == 1 else dict(self._items)


def weights_of(score: WeightsLike, /) -> Weights:
    """Read scores by name.

    Raises:
        UnknownNameError: A name nobody knows.
        ConfigurationError: A weight is no finite number above 0, or there is none.
    """
    weights: Mapping[str, float] = {score: 1.0} if isinstance(score, str) else score
    for name, weight in weights.items():
        if name not in SCORE_NAMES:
            near = near_names(str(name), SCORE_NAMES)
            raise UnknownNameError(
                f"no score is called {name!r}; there are: {', '.join(SCORE_NAMES)}{in_words(near)}",
                name=str(name),
                near=near,
            )
        if not is_number(weight) or weight <= 0:
            raise ConfigurationError(f"score[{name!r}] is a finite number above 0, not {weight!r}")
    if not weights:
        raise ConfigurationError(f"score needs a weight for at least one of {', '.join(SCORE_NAMES)}")
    return Weights(weights)


def score_data(score: object, name: str | None, /) -> str | dict[str, float]:
    """Write a score as data: its words and weights, or the name its function was registered under.

    Raises:
        ConfigurationError: It is a function that has no name.
    """
    data = score.to_data() if isinstance(score, Weights) else name
    if data is None:
        raise ConfigurationError(
            "score is a function without a name: make the strategy by create_strategy(..., names={...})"
        )
    return data


def messages_of(request: EvictionRequest, /) -> Sequence[int]:
    """List the messages that are still there, ascending."""
    if request.is_whole:
        return range(request.history.count)
    return sorted({index for unit in request.units for index in unit.indices})


def weigh(request: EvictionRequest, weights: Weights, /, *, query: str | None = None) -> dict[int, float]:
    """Score each message that is still there by a mixture.

    Each part of it is at most 1, but that of system messages by role, which is infinite.

    Args:
        request: What is asked.
        weights: The mixture.
        query: What to look for; None: what the user wrote last.
    """
    indices = messages_of(request)
    found = dict.fromkeys(indices, 0.0)
    for name, weight in weights.items():
        column = (
            _relevance(request, indices, query) if name == "relevance" else _by_place(request, indices, name)
        )
        for index, value in zip(indices, column, strict=True):
            found[index] += weight * value
    return found


def _relevance(request: EvictionRequest, indices: Sequence[int], query: str | None) -> list[float]:
    """Score messages by what they say about a query; the question itself is no answer to it."""
    history, edits = request.history, request.edits
    full_text, messages, asking = history.format.full_text, history.messages, history.latest_user
    if request.is_whole and not edits and set(map(type, messages)) == {dict}:
        texts = list(map(full_text, messages))
    else:
        texts = [full_text(request.message(index)) for index in indices]
    if query is None and asking is not None and asking in indices:
        texts[bisect_left(indices, asking)] = ""
    scores = relevance(request.question if query is None else query, texts)
    most = max(scores, default=0.0)
    return [score / most for score in scores] if most else scores


def _by_place(request: EvictionRequest, indices: Sequence[int], name: str) -> list[float]:
    """Score messages by whom they are from, or how new they are."""
    history, count = request.history, len(indices)
    recencies = [(at + 1) / count for at in range(count)]
    if name == "recency":
        return recencies
    kinds = map(history.kind, indices)
    calls = map(history.has_calls, indices)
    return [
        _by_role(kind, recency, has_calls=has_calls) / _MOST
        for kind, recency, has_calls in zip(kinds, recencies, calls, strict=True)
    ]


_MOST = 150.0
"""What the newest message of the user scores by role."""
