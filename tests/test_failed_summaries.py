"""A summarizer that fails is named where it mattered, and one that answers a message is taken by its text."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import talk
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    Context,
    Session,
    Strict,
    Summarize,
    TruncateText,
    afit,
    fit,
)
from trimtab.errors import SummaryError
from trimtab.strategies import EvictionRequest, EvictionResult, SlidingWindow
from trimtab.summaries import SummaryRequest, run_summarizer
from trimtab.testing import WordCounter

WORDS = WordCounter()
LONG = talk("u40 a40 u40 a40 u40 a40 u5")


class RateLimitError(Exception):
    """What a model's client raises."""


def broken(messages: list[Any]) -> str:
    """Fail, as a model that is asked too often."""
    raise RateLimitError("429")


async def later(messages: list[Any]) -> str:
    """Fail after a wait."""
    raise RateLimitError("429")


STRICT = Summarize(broken, fallback=Strict())

REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("fit", lambda: fit(LONG, 100, counter=WORDS, strategy=STRICT)),
    ("first-of-cascade", lambda: fit(LONG, 100, counter=WORDS, strategy=Cascade(STRICT, Strict()))),
    ("last-of-cascade", lambda: fit(LONG, 100, counter=WORDS, strategy=Cascade(ClearToolResults(), STRICT))),
    ("within", lambda: fit(LONG, 100, counter=WORDS, strategy=Cascade(Cascade(STRICT), Strict()))),
    ("block", lambda: Context(100, counter=WORDS).add("a", LONG, strategy=STRICT).fit()),
    ("beside", lambda: Context(100, counter=WORDS, system="w").add("a", LONG, strategy=STRICT).fit()),
    (
        "later",
        lambda: asyncio.run(afit(LONG, 100, counter=WORDS, strategy=Summarize(later, fallback=Strict()))),
    ),
]


@pytest.mark.parametrize("call", [case[1] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_summarizer_that_fails_is_the_cause_of_a_refusal(call: Callable[[], object]) -> None:
    """It says who failed and how; that of the client is behind it."""
    with pytest.raises(
        BudgetExceededError, match=r"What failed before: .*failed with RateLimitError\."
    ) as told:
        call()
    cause = told.value.__cause__
    assert isinstance(cause, SummaryError)
    assert isinstance(cause.__cause__, RateLimitError)
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)


def test_where_it_fits_in_the_end_a_failure_is_a_note() -> None:
    """The report says it, as before, and nothing is raised."""
    fitted = fit(LONG, 100, counter=WORDS, strategy=Cascade(STRICT, SlidingWindow(), TruncateText()))
    (note,) = fitted.report.notes
    assert "failed with RateLimitError" in note


def test_what_fits_beside_no_summary_has_no_cause() -> None:
    """Nobody failed: what stays is too much."""
    strategy = Summarize(lambda messages: "short", fallback=Strict())
    with pytest.raises(BudgetExceededError) as told:
        fit(talk("s200 u40 a40 u5"), 100, counter=WORDS, strategy=strategy)
    assert told.value.__cause__ is None
    assert "failed" not in str(told.value)


class Failing:
    """A strategy of a user's that asks something which fails."""

    name = "failing"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Give up, and say why."""
        return EvictionResult(kept=request.units, fits=False, cause=RateLimitError("429"))


def test_a_strategy_of_ones_own_says_what_failed() -> None:
    """By the same field."""
    with pytest.raises(BudgetExceededError, match=r"What failed before: 429\.") as told:
        fit(LONG, 100, counter=WORDS, strategy=Failing())
    assert isinstance(told.value.__cause__, RateLimitError)


ANSWERS: list[Any] = [
    {"role": "assistant", "content": "Tea was drunk."},
    {"role": "assistant", "content": [{"type": "text", "text": "Tea was drunk."}]},
    {"role": "model", "parts": [{"text": "Tea was drunk."}]},
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_summarizer_that_answers_a_message_is_taken_by_its_text(answer: Any) -> None:
    """In whatever wire form the model answers; in `fit`, `afit`, sessions and alone."""

    async def awaited(messages: list[Any]) -> Any:
        return answer

    assert run_summarizer(lambda messages: answer, SummaryRequest(messages=[])) == "Tea was drunk."
    fitted = fit(LONG, 100, counter=WORDS, strategy=Summarize(lambda messages: answer))
    assert "Tea was drunk." in fitted.messages[0]["content"]
    fitted = asyncio.run(afit(LONG, 100, counter=WORDS, strategy=Summarize(awaited)))
    assert "Tea was drunk." in fitted.messages[0]["content"]
    session = Session(100, counter=WORDS, summarizer=lambda messages: answer)
    session.extend(LONG)
    assert session.summary is not None
    assert "Tea was drunk." in str(session.messages()[0]["content"])


@pytest.mark.parametrize(
    "answer", [None, 5, b"x", [], {}, {"content": "x"}, {"role": "assistant", "content": None}]
)
def test_what_has_no_text_is_no_summary(answer: Any) -> None:
    """It is said, and what leaves is not made up."""
    assert run_summarizer(lambda messages: answer, SummaryRequest(messages=[])) is None
    fitted = fit(LONG, 100, counter=WORDS, strategy=Summarize(lambda messages: answer))
    assert "has no summary" in fitted.report.notes[0]
