"""Whole numbers of any make, as numpy's: what has `__index__` and is no flag is one at every door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from tests.builders import call, places, result, talk, user
from trimtab import (
    Block,
    Budget,
    CharCounter,
    ClearToolResults,
    ConfigurationError,
    Context,
    Session,
    SlidingWindow,
    Summarize,
    afit,
    counter_from_text,
    fit,
)
from trimtab.conversation import group
from trimtab.counting import FixedCounter, measure
from trimtab.errors import CountingError
from trimtab.history import evict_messages, recent, span, within
from trimtab.models import CachePricing
from trimtab.stores import LoadRequest
from trimtab.strategies import Cheapest, ClampResults, Relevant
from trimtab.testing import WordCounter, check_counter

WORDS = WordCounter()

HALF: Any = Fraction(1, 2)
"""A share of another make, which no type checker would let pass."""


class Whole:
    """A whole number of another make: neither an int, nor what JSON can write."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        """Say which number it is."""
        return self.number

    def __repr__(self) -> str:
        """Show its make, as numpy's do."""
        return f"Whole({self.number})"


class Array:
    """Numbers in a row that compare one by one, so that what `==` answers is neither true nor false."""

    def __init__(self, *numbers: Any) -> None:
        self.numbers = numbers

    def __iter__(self) -> Iterator[Any]:
        """Give one after the other."""
        return iter(self.numbers)

    def __eq__(self, other: object) -> Any:
        """Answer in a row, too."""
        return Array()

    __hash__ = None  # type: ignore[assignment]  # as numpy's

    def __bool__(self) -> bool:
        """Refuse to be one answer."""
        raise ValueError("the truth value of an array is ambiguous")


def numpy_int(number: int) -> Any:
    """Make one of numpy's, where it is installed."""
    return pytest.importorskip("numpy").int64(number)


MAKES = [pytest.param(Whole, id="index"), pytest.param(numpy_int, id="numpy")]
Make = Callable[[int], Any]


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("inside", [lambda number: number, lambda number: [number], Array])
def test_a_callback_takes_out_what_it_names(make: Make, inside: Callable[[Any], Any]) -> None:
    """One number, or several in whatever holds them."""
    messages = talk("u1 a2 u3")
    fitted = fit(messages, 99, counter=WORDS, on_trim=lambda context: context.remove(inside(make(0))))
    assert places(fitted.messages, messages) == [1, 2]


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("inside", [lambda number: [number], Array])
def test_pins_are_numbers_in_whatever_holds_them(make: Make, inside: Callable[[Any], Any]) -> None:
    """In `fit`, `afit`, with objects, and in `group`."""
    messages, pin = talk("u1 a2 u3 a4 u5"), inside(make(0))
    assert places(fit(messages, 8, counter=WORDS, pin=pin).messages, messages) == [0, 4]
    assert places(asyncio.run(afit(messages, 8, counter=WORDS, pin=pin)).messages, messages) == [0, 4]
    read = [f"{at} " * at for at in (1, 2, 3, 4, 5)]
    shown = fit(read, 8, counter=WORDS, pin=pin, read=user, write=lambda line, _: line)
    assert shown.messages == [read[0], read[4]]
    assert group(messages, pin=pin)[0].state == "pinned"


def test_ids_of_calls_are_taken_from_an_array() -> None:
    """It is iterated, and asked nothing else."""
    ids: Any = Array("c1")
    fitted = fit([user(), call("c1"), user()], 99, counter=WORDS, pending_calls=ids)
    assert [row.state for row in fitted.report.messages] == ["free", "held", "pinned"]


@pytest.mark.parametrize("make", MAKES)
def test_counters_answer_numbers_of_any_make(make: Make) -> None:
    """Functions over lists and texts, objects, sync and async; what comes out is a plain number."""
    messages = talk("u10 a20 u30 a40 u5")

    def of_list(given: list[Any]) -> Any:
        return make(WORDS.count(given))

    def of_text(text: str) -> Any:
        return make(len(text.split()))

    class Counting:
        def count(self, given: list[Any]) -> Any:
            return of_list(given)

        def margin_tokens(self, tokens: int) -> Any:
            return make(tokens // 10)

    async def awaited(given: list[Any]) -> Any:
        return of_list(given)

    for counter in (of_list, counter_from_text(of_text, message_overhead=0), of_text, Counting()):
        overhead = 4 if counter is of_text else 0  # which the door adds for each message
        fitted = fit(messages, 80 + 3 * overhead, counter=counter)
        assert places(fitted.messages, messages) == [2, 3, 4]
        assert fitted.report.tokens_after == 75 + 3 * overhead
        assert type(fitted.report.tokens_after) is int
        json.dumps(fitted.report.to_dict())
    assert places(asyncio.run(afit(messages, 80, counter=awaited)).messages, messages) == [2, 3, 4]
    for tokens, kept in ((82, [2, 3, 4]), (81, [4])):  # 75 and 7, a tenth of it, are 82
        close = fit(messages, Budget(tokens, margin="auto"), counter=Counting())
        assert places(close.messages, messages) == kept
    assert measure(messages, counter=of_list).tokens == 105
    check_counter(of_list)
    calls = CharCounter(tool_call_tokens=lambda name, arguments: make(7))
    assert calls.count_message(call("A")) == 7


@pytest.mark.parametrize("answer", [True, -1, 2.5, "9", None, Whole(-1)])
def test_what_is_no_count_is_a_counting_error(answer: Any) -> None:
    """A number of another make is held to the same."""
    with pytest.raises(CountingError, match=r"a count must be an integer >= 0"):
        fit(talk("u1"), 9, counter=lambda messages: answer if len(messages[0]["content"]) < 9 else 900)


@pytest.mark.parametrize("make", MAKES)
def test_budgets_and_blocks_take_numbers_of_any_make(make: Make) -> None:
    """They are plain from then on, and so is what a report or a session writes of them."""
    messages = talk("u1 a2 u3 a4 u5")
    fitted = fit(messages, make(8), counter=WORDS)
    assert (len(fitted.messages), len(fitted.at(make(99)).messages)) == (1, 5)
    context = Context(make(9), counter=WORDS)
    context.add("a", messages, min_tokens=make(1), max_tokens=make(5), priority=make(3), position=make(1))
    assert places(context.fit().messages, messages) == [4]
    json.dumps(context.fit().report.to_dict())
    block = Block(name="b", content="x", tier=make(10), max_ratio=HALF)
    assert (block.tier, block.max_ratio) == (10, 0.5)
    assert (type(block.tier), type(block.max_ratio)) == (int, float)


@pytest.mark.parametrize("make", MAKES)
def test_options_of_strategies_and_counters_take_numbers_of_any_make(make: Make) -> None:
    """As data they are plain."""
    made = [
        SlidingWindow(min_messages=make(2), target_ratio=HALF),
        ClearToolResults(keep_results=make(2), clear_at_least_tokens=make(1)),
        ClampResults(max_tokens=make(2)),
        ClampResults(max_ratio=HALF),
        Cheapest(expected_calls=make(2), cold_at=[make(1)], room_weight=make(1)),
        Relevant(recent_ratio=HALF, score={"relevance": make(1)}),
    ]
    assert [json.loads(json.dumps(one.to_dict())) for one in made] == [
        SlidingWindow(min_messages=2, target_ratio=0.5).to_dict(),
        ClearToolResults(keep_results=2, clear_at_least_tokens=1).to_dict(),
        ClampResults(max_tokens=2).to_dict(),
        ClampResults(max_ratio=0.5).to_dict(),
        Cheapest(expected_calls=2, cold_at=[1], room_weight=1).to_dict(),
        Relevant(recent_ratio=0.5, score={"relevance": 1}).to_dict(),
    ]
    assert type(Summarize(lambda messages: "x", max_summary_tokens=make(9)).max_summary_tokens) is int
    assert FixedCounter(make(3)).count(talk("u1 a1")) == 6
    assert CharCounter(make(2)).count(talk("u2")) == CharCounter(2).count(talk("u2"))
    assert json.dumps(CachePricing(read=0.1, write=1, min_prefix_tokens=make(9)).min_prefix_tokens) == "9"
    assert json.dumps(LoadRequest(session="s", limit=make(3)).limit) == "3"


@pytest.mark.parametrize("make", MAKES)
def test_helpers_over_lists_slice_by_numbers_of_any_make(make: Make) -> None:
    """And answer what they do for plain ones."""
    messages = talk("u1 a2 u3")
    assert recent(messages, make(2)) == messages[1:]
    assert span(messages, make(2), make(1)) == [messages[1]]
    assert within(messages, make(5), WORDS) == messages[1:]
    assert evict_messages(messages, make(5), counter=WORDS).remaining == messages[1:]


@pytest.mark.parametrize("make", MAKES)
def test_a_session_takes_and_writes_numbers_of_any_make(make: Make) -> None:
    """Its log holds plain ones: a store takes them, and the session opens again."""
    session = Session(
        make(400),
        counter=WORDS,
        min_recent_tokens=make(40),
        max_candidates=make(4),
        recall_ratio=HALF,
    )
    session.extend(talk("u10 a20 u30"))
    assert session.view_at(make(1)) == session.view_at(1)
    assert session.messages() == talk("u10 a20 u30")
    assert session.recall("w", limit=make(2)) == session.recall("w", limit=2)
    session.set_budget(make(300))
    json.dumps(session.snapshot())
    assert Session.restore(session.snapshot(), counter=WORDS).messages() == talk("u10 a20 u30")


@pytest.mark.parametrize("seqs", ["3", ["1"], b"x", 1.0, [1.5], [None], True, [True], Array(0.0), object()])
def test_what_is_no_number_of_a_message_is_refused(seqs: Any) -> None:
    """In silence it would take out nothing; a number no message has is ignored, and so is None (SPEC D9)."""
    with pytest.raises(
        ConfigurationError, match=r"remove takes the numbers of messages, such as element\.seq"
    ):
        fit([user(), call("A"), result("A")], 99, counter=WORDS, on_trim=lambda context: context.remove(seqs))


def test_an_element_in_place_of_its_number_is_told_what_to_write() -> None:
    """As a mapping it would be read as a row of its keys."""
    with pytest.raises(ConfigurationError, match=r"write element\.seq, not the element itself"):
        fit([user(), call("A"), result("A")], 99, counter=WORDS, on_trim=lambda it: it.remove({"seq": 0}))  # type: ignore[dict-item]


def test_a_number_that_looks_like_a_row_is_one_number() -> None:
    """As numpy's arrays without dimensions are, which cannot be walked through."""

    class Cell(Whole):
        def __iter__(self) -> Iterator[Any]:
            raise TypeError("iteration over a 0-d array")

    messages = [user(), call("A"), result("A"), user()]
    fitted = fit(messages, 99, counter=WORDS, on_trim=lambda context: context.remove(Cell(0)))
    assert fitted.messages == messages[1:]
