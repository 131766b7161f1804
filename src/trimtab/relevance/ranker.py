"""A function of the caller's that says how much messages say about a question: embeddings, a reranker."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, cast

from trimtab._shared.checks import answers_later, check_parameters, is_later
from trimtab.errors import ConfigurationError

__all__ = ["RankCall", "RankerLike", "check_ranker"]

RankerLike: TypeAlias = Callable[[str, Sequence[Any]], Iterable[float] | Awaitable[Iterable[float]]]
"""Returns the relevance of each message to a query, one number each, higher is more relevant; may be async.

It is called as `ranker(query, messages)`, and must not change the messages.
"""


def check_ranker(name: str, ranker: object, /) -> RankerLike:
    """Refuse what is no function of a query and messages.

    Args:
        name: The option, for the error.
        ranker: What was given for it.

    Raises:
        ConfigurationError: It cannot be called with a query and messages.
    """
    if isinstance(ranker, type) or not callable(ranker):
        raise ConfigurationError(
            f"{name} must be a function of a query and messages, not {ranker!r:.80}", argument=name
        )
    check_parameters(name, ranker, "query", "messages")
    return cast(RankerLike, ranker)


class RankCall(NamedTuple):
    """What an algorithm yields for scores; it is sent a number for each message."""

    ranker: RankerLike
    query: str
    messages: Sequence[Any]
    word: str = "score"
    """What the ranker is called in errors."""
    instead: str = "await afit(...) instead of calling fit(...), or give a function that answers at once"
    """What to do with an async one."""

    @property
    def is_async(self) -> bool:
        """Whether the answer has to be awaited, as far as the ranker says so."""
        return answers_later(self.ranker)

    def refusal(self) -> ConfigurationError:
        """Make the error for a ranker that is async where nobody awaits it."""
        return ConfigurationError(f"{self.word} is async: {self.instead}")

    def now(self) -> list[float]:
        """Ask a ranker that answers at once.

        Raises:
            ConfigurationError: It is async, or answers something else than a number for each message.
        """
        scores = self.for_plan()
        if scores is None:
            raise self.refusal()
        return scores

    async def later(self) -> list[float]:
        """Ask a ranker, and await its answer if it has to be.

        Raises:
            ConfigurationError: It answers something else than a number for each message.
        """
        answer: Any = self.ranker(self.query, self.messages)
        return self._check(await answer if inspect.isawaitable(answer) else answer)

    def for_plan(self) -> list[float] | None:
        """Ask a ranker that answers at once; None for one that would have to be awaited."""
        answer = self.ranker(self.query, self.messages)
        return None if is_later(answer) else self._check(answer)

    def _check(self, answer: object) -> list[float]:
        """Return the number for each message that was answered.

        No more is read of an answer than is needed to tell that it has too many. What was answered is named
        by its class: it may be the text of a message.
        """
        word, count = self.word, len(self.messages)
        if not isinstance(answer, Iterable) or isinstance(answer, (str, bytes, Mapping, Set)):
            raise ConfigurationError(
                f"{word} returned {type(answer).__name__}; it must return a number for each message"
            )
        values = list(islice(answer, count + 1))
        if len(values) != count:
            found = f"more than {count:,}" if len(values) > count else f"{len(values):,}"
            raise ConfigurationError(f"{word} returned {found} numbers for {count:,} messages")
        return [self._number(at, value) for at, value in enumerate(values)]

    def _number(self, at: int, value: Any) -> float:
        """Return what was answered for a message as a number; a text of digits is none."""
        answered = type(value).__name__
        if not isinstance(value, (str, bytes)):
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                number = float("nan")
            if number == number:
                return number
            answered = "nan" if isinstance(value, float) else answered
        raise ConfigurationError(f"{self.word} returned {answered} for message {at}; it must be a number")
