"""The runner: a strategy is trusted with the decision, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import call, places, result, talk, user, words
from trimtab import BudgetExceededError, fit
from trimtab.errors import StrategyContractError
from trimtab.strategies import Edit, EvictionRequest, EvictionResult
from trimtab.testing import WordCounter

WORDS = WordCounter()
LINE = "s1 u2 a3 u4 cA rA5 u1"


@dataclass(frozen=True)
class Custom:
    """A strategy of a user's."""

    decide: Callable[[EvictionRequest], Any]
    name: str = "mine"

    def evict(self, request: EvictionRequest, /) -> Any:
        """Decide."""
        return self.decide(request)


def run(decide: Callable[[EvictionRequest], Any], messages: list[Any], budget: int) -> Any:
    """Fit with a strategy made of a function."""
    return fit(messages, budget, counter=WORDS, strategy=Custom(decide))


def kept(*firsts: int, **options: Any) -> Callable[[EvictionRequest], EvictionResult]:
    """Keep the units that begin at those messages."""
    return lambda request: EvictionResult(
        kept=[unit for first in firsts for unit in request.units if unit.first == first], **options
    )


def cut(at: Any, *beside: int, **options: Any) -> Callable[[EvictionRequest], EvictionResult]:
    """Cut at a message, and keep those units beside it."""
    return lambda request: EvictionResult(
        cut=at, kept=[unit for unit in request.units if unit.first in beside], **options
    )


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (kept(0, 1, 3, 6), [0, 1, 3, 6]),
        (kept(0, 4, 6), [0, 4, 5, 6]),
        (kept(0, 6), [0, 6]),
        (cut(4), [0, 4, 5, 6]),
        (cut(3), [0, 3, 4, 5, 6]),
        (cut(6), [0, 6]),
        (cut(7), [0, 6]),
        (cut(4, 1), [0, 1, 4, 5, 6]),
        (cut(6, 4), [0, 4, 5, 6]),
        (cut(4, 0, 4, 6), [0, 4, 5, 6]),
    ],
)
def test_what_a_strategy_keeps_comes_out(decide: Any, expected: list[int]) -> None:
    """As a list of units, or as a cut with some beside it; pinned units need not be named for a cut."""
    messages = talk(LINE)
    fitted = run(decide, messages, 15)
    assert places(fitted.messages, messages) == expected
    assert fitted.report.tokens_after == WORDS.count(fitted.messages)
    assert fitted.report.blocks[0].actions == ("mine",)


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (lambda request: None, "returned NoneType"),
        (lambda request: [], "returned list"),
        (cut("3"), "cuts at '3'"),
        (cut(True), "cuts at True"),
        (cut(5), "cuts at message 5"),
        (cut(8), "cuts at message 8"),
        (kept(0, 1, 2, 3, 4, 6), "says it fits, but 18 tokens are over 15"),
        (cut(1), "says it fits, but 18 tokens are over 15"),
        (kept(0, 3), "which is pinned"),
        (kept(3, 6), "which is pinned"),
        (kept(0, 3, 1, 6), "changed the order"),
        (kept(0, 1, 1, 6), "kept one twice"),
        (lambda request: EvictionResult(kept=["x"]), "not a unit"),
        (lambda request: EvictionResult(cut=6, kept=[_half(request)]), "not a unit"),
        (lambda request: EvictionResult(kept=[*request.units[:1], _half(request)]), "not a unit"),
        (kept(0, 3, 6, edits=[Edit(index=1, texts={("content",): "x"})]), "edits message 1, which left"),
        (kept(0, 3, 6, edits=[Edit(index=6, texts={("content",): "x"})]), "edits message 6, which is pinned"),
        (kept(0, 3, 6, edits=[Edit(index=3, texts={("name",): "x"})]), "where no text is"),
    ],
)
def test_a_breach_of_the_contract_is_an_error(decide: Any, said: str) -> None:
    """And never a wrong request."""
    with pytest.raises(StrategyContractError, match=said) as caught:
        run(decide, talk(LINE), 15)
    assert "mine" in str(caught.value)


def _half(request: EvictionRequest) -> Any:
    """Make a unit of a call without its result."""
    whole = next(unit for unit in request.units if unit.first == 4)
    return type(whole)((4,), kind="assistant")


@pytest.mark.parametrize(("budget", "fits"), [(15, True), (14, True), (13, False)])
def test_at_the_limit_itself_it_fits(budget: int, fits: bool) -> None:
    """1 + 2 + 3 + 7 + 1 tokens of 18."""
    decide = kept(0, 1, 2, 4, 6)
    if fits:
        assert run(decide, talk(LINE), budget).report.tokens_after == 14
    else:
        with pytest.raises(StrategyContractError):
            run(decide, talk(LINE), budget)


def test_a_strategy_may_say_that_it_does_not_fit() -> None:
    """Then it may be over: that is BudgetExceededError, with its attempt and its size."""
    with pytest.raises(BudgetExceededError) as caught:
        run(kept(0, 1, 2, 4, 6, fits=False), talk(LINE), 13)
    assert caught.value.needed_tokens == 14
    with pytest.raises(BudgetExceededError) as caught:
        run(cut(1, fits=False, needed_tokens=16), talk(LINE), 13)
    assert caught.value.needed_tokens == 16


def test_a_cut_below_what_was_read_is_settled_by_units() -> None:
    """The result at 2 belongs to a call before the cut, and leaves with it."""
    messages = talk("cA a9 rA9 u9 u1")
    with pytest.raises(BudgetExceededError) as caught:
        run(cut(2, fits=False), messages, 5)
    assert places(caught.value.attempt.messages, messages) == [3, 4]


def test_edits_are_laid_over_the_message() -> None:
    """Of several for one message the last text of a place wins; the caller's objects stay."""
    messages = talk(LINE)
    edits = [Edit(index=5, texts={("content",): words(2)}), Edit(index=5, texts={("content",): "x"})]
    fitted = run(kept(0, 4, 6, edits=edits, actions=("cut",)), messages, 15)
    assert [message["content"] for message in fitted.messages] == ["w", None, "x", "w"]
    assert messages[5]["content"] == words(5)
    assert places(fitted.messages[:2], messages) == [0, 4]
    report = fitted.report
    assert (report.tokens_after, report.changed_messages) == (5, 1)
    assert report.blocks[0].actions == ("cut",)
    assert [(row.fate, row.tokens_after) for row in report.messages][4:6] == [("kept", 2), ("changed", 1)]


def test_a_message_at_the_cut_may_be_edited() -> None:
    """Everything after it comes out unedited, in its place."""
    messages = [
        user("old"),
        call("A"),
        result("A", words(9)),
        user("q"),
        {"role": "assistant", "content": "a"},
    ]
    decide = cut(1, edits=[Edit(index=2, texts={("content",): "x"})])
    assert [m["content"] for m in run(decide, messages, 12).messages] == [None, "x", "q", "a"]
