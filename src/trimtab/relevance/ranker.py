"""A function of the caller's that says how much messages say about a question: embeddings, a reranker."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from trimtab._shared.checks import answers_later, check_numbers, check_parameters, is_later
from trimtab.errors import ConfigurationError

__all__ = ["RankCall", "RankerLike", "check_ranker"]

RankerLike: TypeAlias = Callable[[str, Sequence[Any]], Iterable[float] | Awaitable[Iterable[float]]]
"""Says how much each message says about a query, a number for each, higher is more; may be async.

It is called as `ranker(query, messages)`; the messages are to be read only.
"""


def check_ranker(name: str, ranker: Any, /) -> RankerLike:
    """Refuse what is no function of a query and messages.

    Args:
        name: The option, for the error.
        ranker: What was given for it.

    Raises:
        ConfigurationError: It cannot be called with a query and messages.
    """
    if isinstance(ranker, type) or not callable(ranker):
        raise ConfigurationError(f"{name} must be a function of a query and messages, not {ranker!r:.80}")
    check_parameters(name, ranker, "query", "messages")
    return cast(RankerLike, ranker)


class RankCall(NamedTuple):
    """What an algorithm yields when it needs scores of a ranker; it is sent a number for each message."""

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
            ConfigurationError: It is async, or answers no number for each message.
        """
        scores = self.for_plan()
        if scores is None:
            raise self.refusal()
        return scores

    async def later(self, *, in_thread: bool = False) -> list[float]:
        """Ask a ranker, and await its answer if it has to be.

        Args:
            in_thread: Ask one that is not async in a thread, so that no other task waits for it.

        Raises:
            ConfigurationError: It answers no number for each message.
        """
        if in_thread and not self.is_async:
            import asyncio  # not above: it takes longer to import than all of this room needs

            answer: Any = await asyncio.to_thread(self.ranker, self.query, self.messages)
        else:
            answer = self.ranker(self.query, self.messages)
        return self._check(await answer if inspect.isawaitable(answer) else answer)

    def for_plan(self) -> list[float] | None:
        """Ask a ranker that answers at once; None for one that would have to be awaited."""
        answer = self.ranker(self.query, self.messages)
        return None if is_later(answer) else self._check(answer)

    def _check(self, answer: Any) -> list[float]:
        return check_numbers(self.word, answer, len(self.messages))
