"""Rankers: functions that say how much messages say about a question; how they are asked."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from trimtab._shared.checks import answers_later, check_numbers, is_later, name_of
from trimtab.errors import ConfigurationError, RankerError
from trimtab.relevance.ranker import RankerLike


class AskScores(NamedTuple):
    """A question to a ranker."""

    ranker: RankerLike
    query: str
    messages: list[Any]


def ranker_name(ranker: RankerLike, /) -> str:
    """Return the word for a ranker in errors and in the log."""
    return f"ranker {name_of(ranker)}"


def is_async_ranker(ranker: RankerLike, /) -> bool:
    """Tell whether a ranker's scores have to be awaited, as far as it says so."""
    return answers_later(ranker)


def refusal(ranker: RankerLike, /) -> ConfigurationError:
    """Make the error for a ranker that is async and was not awaited."""
    return ConfigurationError(
        f"{ranker_name(ranker)} is async: await aadd(...) instead of calling add(...), and arecall(...)"
        " instead of recall(...)"
    )


def scores_by(question: AskScores, /) -> list[float]:
    """Return the scores a ranker answers at once.

    Raises:
        RankerError: It failed, or answered something else than a number for each message.
        ConfigurationError: It is async.
    """
    try:
        answer = question.ranker(question.query, question.messages)
    except Exception as error:
        raise _failure(question, error) from error
    if is_later(answer):
        raise refusal(question.ranker)
    return _check_scores(question, answer)


async def ascores_by(question: AskScores, /) -> list[float]:
    """Return the scores a ranker answers, awaited; one that is not async runs in a thread.

    Raises:
        RankerError: As `scores_by`.
    """
    import asyncio  # takes longer to import than all of this room needs

    try:
        if is_async_ranker(question.ranker):
            answer: Any = question.ranker(question.query, question.messages)
        else:
            answer = await asyncio.to_thread(question.ranker, question.query, question.messages)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as error:
        raise _failure(question, error) from error
    return _check_scores(question, answer)


def _failure(question: AskScores, error: Exception) -> RankerError:
    return RankerError(f"{ranker_name(question.ranker)} failed with {type(error).__name__}: {error!s:.200}")


def _check_scores(question: AskScores, answer: Any) -> list[float]:
    try:
        return check_numbers(ranker_name(question.ranker), answer, len(question.messages))
    except ConfigurationError as error:
        raise RankerError(str(error)) from error
