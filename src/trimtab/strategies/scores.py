"""What a message is worth keeping for: whom it is from, how new it is, what it says about the question."""

from __future__ import annotations

import inspect
import math
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from trimtab._shared.checks import answers_later, in_words, is_later, near_names, number_of
from trimtab._shared.mapping import FixedMapping
from trimtab.conversation import Unit
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.relevance import relevance
from trimtab.strategies.base import EvictionRequest

__all__ = [
    "BANDS",
    "MIXTURE",
    "OTHERS",
    "SCORE_NAMES",
    "OneByOne",
    "Place",
    "Score",
    "Weights",
    "WeightsLike",
    "by_role",
    "default_score",
    "messages_of",
    "places",
    "rank",
    "score_data",
    "spread",
    "weigh",
    "weights_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a message among those of its block.

    Args:
        index: Position, from 0.
        count: Number of messages in the block.
        kind: Its author: system, user, assistant, tool or other.
        has_calls: Whether it has tool calls.
    """

    index: int
    """Position, from 0."""
    count: int
    """Number of messages in the block."""
    kind: str
    """Its author: system, user, assistant, tool or other."""
    has_calls: bool
    """Whether it has tool calls."""

    @property
    def recency(self) -> float:
        """How new it is, above 0; 1.0 is the newest."""
        return (self.index + 1) / self.count


Score = Callable[[Mapping[str, Any], Place], float | Awaitable[float]]
"""Returns how much a message is worth keeping; higher is kept longer; may be async.

The message is a read-only view; nested values are the caller's own, and must not be changed.
"""


def default_score(message: Mapping[str, Any], place: Place, /) -> float:
    """Score by role and recency r in (0, 1]: the bands of seeds/002.

    system: infinite; user 100 + 50 r; assistant with calls 80 + 40 r; assistant 60 + 30 r;
    tool result 50 + 40 r; anything else 10 + 5 r.

    Args:
        message: The message, as a dict.
        place: The place and kind of the message.
    """
    base, more = BANDS.get(_band(place.kind, has_calls=place.has_calls), OTHERS)
    return base + more * place.recency


def _band(kind: str, *, has_calls: bool) -> str:
    return "caller" if has_calls and kind == "assistant" else kind


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


class Weights(FixedMapping[float]):
    """Scores by name with their weights; cannot be changed."""

    __slots__ = ()

    def __init__(self, weights: Mapping[str, float], /) -> None:
        super().__init__((name, float(weights[name])) for name in SCORE_NAMES if name in weights)

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
                argument="score",
            )
        number = number_of(weight)
        if number is None or number <= 0:
            raise ConfigurationError(
                f"score[{name!r}] must be a finite number above 0, not {weight!r}", argument="score"
            )
    if not weights:
        raise ConfigurationError(
            f"score needs a weight for at least one of {', '.join(SCORE_NAMES)}", argument="score"
        )
    return Weights(weights)


MIXTURE = Weights({"relevance": 1.0, "role": 0.1})
"""What `Relevant` scores by: evidence is mostly what users said, and most of the rest answers them."""


def score_data(score: object, name: str | None, /) -> str | dict[str, float]:
    """Write a score as data: its words and weights, or the name its function was registered under.

    Raises:
        ConfigurationError: It is a function that has no name.
    """
    data = score.to_data() if isinstance(score, Weights) else name
    if data is None:
        raise ConfigurationError(
            "score is a function without a name: make the strategy with create_strategy(..., names={...})",
            argument="score",
        )
    return data


def messages_of(request: EvictionRequest, /) -> Sequence[int]:
    """List the messages that are still there, ascending."""
    if request.is_whole:
        return range(request.history.count)
    return sorted({index for unit in request.units for index in unit.indices})


def rank(request: EvictionRequest, free: Sequence[int], scores: Sequence[float], /) -> list[int]:
    """Sort units by their best message, the best first; of equals the newer one.

    Args:
        request: What is asked.
        free: Places of the units in its row, ascending.
        scores: What each message of the conversation scores.

    Returns:
        These places.
    """
    row = request.row
    best = [
        scores[first] if stop == first + 1 else max(scores[first:stop] if unit is None else _of(unit, scores))
        for first, stop, _, _, unit in row
    ]
    return sorted(reversed(free), key=best.__getitem__, reverse=True)  # which keeps the order of equals


def _of(unit: Unit, scores: Sequence[float]) -> Iterator[float]:
    """Return the scores of a unit's messages, between which others may stand."""
    return map(scores.__getitem__, unit.indices)


def weigh(request: EvictionRequest, weights: Weights, /, *, query: str | None = None) -> list[float]:
    """Score each message of the conversation that is still there by a mixture.

    Each part of it is at most 1, but that of system messages by role, which is infinite.

    Args:
        request: What is asked.
        weights: The mixture.
        query: What to look for; None: what the user wrote last.
    """
    indices = messages_of(request)
    found = [0.0] * len(indices)
    for name, weight in weights.items():
        column = _column(request, indices, name, query)
        found = [score + weight * value for score, value in zip(found, column, strict=True)]
    return spread(request, indices, found)


def spread(request: EvictionRequest, indices: Sequence[int], scores: Iterable[float], /) -> list[float]:
    """Put the scores of the messages that are still there in their places in the conversation."""
    if request.is_whole:
        return list(scores)
    found = [0.0] * request.history.count
    for index, score in zip(indices, scores, strict=True):
        found[index] = score
    return found


def _column(
    request: EvictionRequest, indices: Sequence[int], name: str, query: str | None
) -> Iterable[float]:
    if name == "relevance":
        return _relevance(request, indices, query)
    count = len(indices)
    if name == "recency":
        return [(at + 1) / count for at in range(count)]
    return [score / _MOST for score in by_role(request, indices)]


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


def by_role(request: EvictionRequest, indices: Sequence[int], /) -> list[float]:
    """Score messages as `default_score` does, which looks at nothing but where they stand."""
    kinds, count = _kinds(request), len(indices)
    bands = {kind: BANDS.get(kind, OTHERS) for kind in set(kinds)}
    own = [bands[kinds[index]] for index in indices]
    return [base + more * (at / count) for at, (base, more) in enumerate(own, 1)]


def _kinds(request: EvictionRequest) -> list[str]:
    """Name the band of each message that is still there."""
    history = request.history
    kinds: list[str] = [*history.kinds(0, history.count)]
    walked_from = history.walked_from
    for first, stop, _, _, unit in request.row:
        if unit is None and first >= walked_from:
            if stop == first + 1:
                continue
            if kinds[first + 1] == "tool":  # of units not made a message calls, where results are behind it
                kinds[first] = "caller"
                continue
        for index in range(first, stop) if unit is None else unit.indices:
            if kinds[index] == "assistant" and history.has_calls(index):
                kinds[index] = "caller"
    return kinds


def places(request: EvictionRequest, indices: Sequence[int], /) -> tuple[Place, ...]:
    """Say of each message where it stands."""
    kinds, count = _kinds(request), len(indices)
    return tuple(
        Place(
            index=at,
            count=count,
            kind="assistant" if kinds[index] == "caller" else kinds[index],
            has_calls=kinds[index] == "caller",
        )
        for at, index in enumerate(indices)
    )


_MOST = 150.0
"""What the newest message of the user scores by role (`BANDS`): by this no part of a mixture passes 1."""


class OneByOne(NamedTuple):
    """A score of one message as a ranker of many: asked about each, and awaited if it has to be."""

    score: Score
    places: tuple[Place, ...]

    def __call__(self, query: str, messages: Sequence[Any], /) -> Any:
        """Return the score of each message, or what is to be awaited for that."""
        if answers_later(self.score):
            return self._later(messages)
        answers = []
        for message, place in zip(messages, self.places, strict=True):
            answers.append(self.score(MappingProxyType(message), place))
            if is_later(answers[-1]):  # only its answer says so: it is asked again by who awaits it
                return self._later(messages)
        return answers

    async def _later(self, messages: Sequence[Any]) -> list[Any]:
        """Await one score after the other: nobody's service is stormed."""
        answers = []
        for message, place in zip(messages, self.places, strict=True):
            answer: Any = self.score(MappingProxyType(message), place)
            answers.append(await answer if inspect.isawaitable(answer) else answer)
        return answers
