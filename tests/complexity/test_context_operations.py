"""Operations of a Context grow with its messages and its blocks, and not with the square of either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.complexity.counting_machine import assert_linear, exact_counter, operations_of
from tests.complexity.shapes import Message, calls, ids, result, said, user, valid
from trimtab import BudgetExceededError, Context, TruncateText
from trimtab.counting import TextCounter
from trimtab.testing import WordCounter

Call = Callable[[TextCounter], Any]
Fill = Callable[[Context, list[Message]], None]

MESSAGES_A_BLOCK = 25
SIZES = (400, 1_600)
"""Of those that are tried in every shape; 1,000 blocks are counted once."""


def in_blocks(context: Context, messages: list[Message], **options: Any) -> Context:
    """Add messages in blocks of 25, of four ranks."""
    for at, start in enumerate(range(0, len(messages), MESSAGES_A_BLOCK)):
        block = messages[start : start + MESSAGES_A_BLOCK]
        context.add(f"block {at}", block, priority=at % 4, **options)
    return context


def plain(count: int) -> list[Message]:
    """Talk without tools."""
    return [message for at in range(count // 2) for message in (user(f"question {at}"), said(f"answer {at}"))]


def split_units(count: int) -> list[Message]:
    """Every call in the first half, every result in the second: all units span blocks."""
    return [*map(calls, ids(count // 2)), *map(result, ids(count // 2))]


def one_wide_unit(count: int) -> list[Message]:
    """One call message whose results fill all blocks."""
    return [calls(*ids(count - 1)), *map(result, ids(count - 1))]


SHAPES = {shape.__name__: shape for shape in (plain, valid, split_units, one_wide_unit)}


def fitted_or_attempt(context: Context, budget: int | None = None) -> Any:
    """Return what came out, or what came nearest."""
    try:
        return context.fit(budget)
    except BudgetExceededError as error:
        return error.attempt


@pytest.mark.few(3)
@pytest.mark.parametrize("tokens_each", [1, 5, 30])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_blocks_are_fitted_in_linear_time(shape: Callable[[int], list[Message]], tokens_each: int) -> None:
    """Also where most of them leave, and where all of it fits."""

    def case(count: int) -> Call:
        messages = shape(count)
        return lambda counter: in_blocks(Context(tokens_each * count, counter=counter), messages).fit()

    assert_linear(case, SIZES)


@pytest.mark.parametrize(
    "options",
    [
        {"min_tokens": 100, "max_tokens": 400},
        {"pinned": True},
        {"strategy": TruncateText()},
        {"cache_control": "ephemeral", "role": "user"},
        {"on_trim": lambda context: context.remove(range(0, MESSAGES_A_BLOCK, 2))},
    ],
    ids=["floors", "pinned", "shortened", "cached", "callbacks"],
)
@pytest.mark.parametrize("shape", ["plain", "split_units"])
def test_options_of_blocks_take_linear_time(shape: str, options: dict[str, Any]) -> None:
    """Each block has them."""

    def case(count: int) -> Call:
        messages = SHAPES[shape](count)
        return lambda counter: in_blocks(Context(5 * count, counter=counter), messages, **options).fit()

    if not (shape == "split_units" and "role" in options):
        assert_linear(case, SIZES)


@pytest.mark.few(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_report_takes_linear_time(shape: str) -> None:
    """Its rows, its data and its text; and all counts."""

    def case(count: int) -> Call:
        context = in_blocks(Context(5 * count, counter=exact_counter()), SHAPES[shape](count))
        fitted = fitted_or_attempt(context)
        return lambda _: (list(fitted.report.messages), fitted.report.to_dict(), str(fitted.count_all()))

    assert_linear(case, SIZES)


def test_many_small_blocks_take_linear_time() -> None:
    """One message each; added, fitted and fitted to another budget."""

    def case(count: int) -> Call:
        messages = plain(count)

        def call(counter: TextCounter) -> None:
            context = Context(5 * count, counter=counter)
            for at, message in enumerate(messages):
                context.add(f"block {at}", message, max_ratio=0.5)
            context.fit().at(count)

        return call

    assert_linear(case, (250, 1_000))


@pytest.mark.long
def test_1_000_blocks_take_linear_time() -> None:
    """25,000 messages, with calls whose results stand in the next block."""

    def case(count: int) -> Call:
        messages = [user("go"), *valid(count)[:-1]]
        return lambda counter: in_blocks(Context(3 * count, counter=counter), messages).fit()

    assert_linear(case, (6_250, 25_000))


def test_what_is_too_old_to_stay_costs_a_block_no_line() -> None:
    """Not when it is added, laid out or left behind."""

    def lines(count: int) -> int:
        talk = valid(count)

        def call(counter: TextCounter) -> None:
            context = Context(1_000, counter=counter)
            context.add("older", talk, max_ratio=0.5).add("newer", talk, max_ratio=0.5).fit()

        return operations_of(call).lines

    assert lines(8_000) <= 1.05 * lines(2_000)


def test_a_black_box_is_called_a_few_times_a_block() -> None:
    """Twice the messages in as many blocks cost no more than a few calls each (SPEC A9)."""

    def calls_for(count: int) -> int:
        made: list[int] = []

        def words(messages: Any) -> int:
            made.append(len(messages))
            return WordCounter().count(messages)

        context = Context(count, counter=words)
        for at in range(4):
            context.add(f"block {at}", plain(count // 4), priority=at, max_ratio=0.3)
        context.fit()
        return len(made)

    once, twice, four_times = calls_for(100), calls_for(200), calls_for(400)
    assert twice - once <= 4 * 3
    assert four_times - twice <= 4 * 3
    assert four_times <= 80
