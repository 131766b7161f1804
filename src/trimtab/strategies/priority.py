"""`PriorityBased`: keeps the units with the best scores, wherever they are."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from trimtab._shared.checks import check_parameters
from trimtab._shared.steps import Steps
from trimtab.errors import ConfigurationError
from trimtab.relevance.ranker import RankCall, RankerLike
from trimtab.strategies.base import EvictionRequest, EvictionResult
from trimtab.strategies.greedy import must_stay, take_best
from trimtab.strategies.scores import (
    SCORE_NAMES,
    OneByOne,
    Score,
    Weights,
    WeightsLike,
    by_role,
    default_score,
    messages_of,
    places,
    rank,
    score_data,
    spread,
    weigh,
    weights_of,
)
from trimtab.strategies.summarizer import drive

__all__ = ["PriorityBased"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityBased:
    """Keep the units with the highest scores.

    Pinned and held units are kept first, then units by the score of their best message. Of equal scores the
    newer unit wins; a unit that does not fit is skipped; the order of the conversation does not change. Reads
    and counts the whole history.

    Args:
        score: How to score a message: `"role"` (its author), `"recency"`, `"relevance"` (how much it says
            about the user's latest message), several of these with weights, such as `{"relevance": 1, "role":
            0.3}`, or a function of a message (a read-only mapping) and its `Place`. `afit` awaits an async
            function, one message at a time. To ask a service once for all messages, use
            `Relevant(score=...)`.
        score_name: Registered name of the function, for `to_dict`.

    Raises:
        ConfigurationError: `score` is neither a function nor names with weights.
        UnknownNameError: The name is unknown.

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
        """Refuse an argument that cannot score."""
        score = self.score
        if isinstance(score, (str, Mapping)):
            weights = weights_of(score)
            object.__setattr__(self, "score", default_score if list(weights) == ["role"] else weights)
        elif callable(score):
            check_parameters("score", score, "message", "place")
        else:
            raise ConfigurationError(
                f"score must be a function of a message and its place, one of {', '.join(SCORE_NAMES)}, or"
                f" several of these with weights, not {reprlib.repr(score)}",
                argument="score",
            )

    @property
    def asks_model(self) -> bool:
        """True if a function of the caller scores: it is asked once per fit."""
        return not isinstance(self.score, Weights) and self.score is not default_score

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "priority_based"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`.

        Raises:
            ConfigurationError: The score is a function without a name.
        """
        if self.score is default_score:
            return {"kind": self.name}
        return {"kind": self.name, "score": score_data(self.score, self.score_name)}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take units greedily, highest score first."""
        return drive(self.evicting(request))

    def evicting(self, request: EvictionRequest, /) -> Steps[EvictionResult]:
        """Take units greedily, highest score first; yields calls of a function.

        Args:
            request: As for `evict`.
        """
        stays, _, impossible = must_stay(request)
        if impossible is not None:
            return impossible
        scores = yield from self._scores(request)
        staying = set(stays)
        free = [at for at in range(len(request.row)) if at not in staying]
        kept = take_best(request, stays, rank(request, free, scores))
        return EvictionResult(kept=kept, actions=("evicted",))

    def _scores(self, request: EvictionRequest) -> Steps[list[float]]:
        """Score every remaining message; in a plan by role if the function is async."""
        if isinstance(self.score, Weights):
            return weigh(request, self.score)
        indices, scores = messages_of(request), None
        if self.asks_model:
            ranker = OneByOne(cast("Score", self.score), places(request, indices))
            scores = yield RankCall(cast("RankerLike", ranker), "", list(map(request.message, indices)))
        return spread(request, indices, by_role(request, indices) if scores is None else scores)
