"""Marks of the provider's cache under counters that charge for them, in random contexts."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import units, valid_conversations, words
from tests.chat_in_forms import said_in
from trimtab import (
    BudgetExceededError,
    Cascade,
    Context,
    DropNewest,
    Fitted,
    SlidingWindow,
    TruncateText,
)
from trimtab.strategies import Summarize
from trimtab.testing import WordCounter

MARK_TOKENS = 7
MARK = {"type": "ephemeral"}


class MarksCost(WordCounter):
    """Charges seven tokens for a mark."""

    def count_message(self, message: Any, /) -> int:
        """Count words, and marks."""
        return super().count_message(message) + MARK_TOKENS * str(message).count("cache_control")


def short(messages: list[Any]) -> str:
    """Write a summary of three words."""
    return "w w w"


STRATEGIES = (
    SlidingWindow(),
    TruncateText(),
    Cascade(SlidingWindow(), TruncateText()),
    DropNewest(),
    Summarize(short),
    SlidingWindow(keep_first_user=True),
)
OPTIONS = st.fixed_dictionaries(
    {"strategy": st.sampled_from(STRATEGIES)},
    optional={
        "cache_control": st.just(MARK),
        "max_tokens": st.integers(0, 60),
        "min_tokens": st.integers(0, 30),
        "priority": st.integers(-1, 2),
    },
)
TEXTS = st.lists(st.integers(0, 20).map(words), max_size=5)


@st.composite
def marked_fits(draw: st.DrawFn, *, form: str) -> tuple[Any, Context, Fitted[Any], dict[str, int]]:
    """Fit a context of up to four blocks, and say which cap each has."""
    additive = MarksCost(format=form)
    counter = draw(st.sampled_from((additive, additive.count)))
    made = Context(draw(st.integers(1, 150)), counter=counter, format=form)
    caps: dict[str, int] = {}
    for at in range(draw(st.integers(1, 4))):
        options = draw(OPTIONS)
        if "max_tokens" in options:
            caps[f"b{at}"] = options["max_tokens"]
        if draw(st.booleans()):
            made.add(f"b{at}", draw(TEXTS), join=draw(st.sampled_from((" ", "\n--\n"))), **options)
        else:
            messages = draw(valid_conversations() | st.just(units("9 3 12 1")))
            made.add(f"b{at}", messages if form == "openai_chat" else said_in(form, messages), **options)
    try:
        fitted = made.fit()
    except BudgetExceededError as error:
        fitted = cast("Fitted[Any]", error.attempt)
    return additive, made, fitted, caps


def everything_adds_up(counter: MarksCost, fitted: Fitted[Any], caps: dict[str, int]) -> None:
    """Check the budget, caps, and rows against a recount."""
    report = fitted.report
    total = counter.count(fitted.messages)
    assert report.tokens_after == total
    inserted_tokens = sum(row.tokens for row in report.inserted)
    rows_tokens = sum(row.tokens_after or 0 for row in report.messages)
    assert report.fixed_tokens + inserted_tokens + rows_tokens == total
    assert report.fixed_tokens + sum(block.tokens_after for block in report.blocks) == total
    if not report.fits:
        return
    assert total <= report.input_tokens
    for block in report.blocks:
        assert block.tokens_after <= block.limit_tokens
        assert block.tokens_after <= caps.get(block.name, total)


@pytest.mark.parametrize("form", ["openai_chat", "anthropic"])
@given(data=st.data())
@settings(max_examples=settings.default.max_examples * 2)
def test_a_mark_is_charged_to_its_block(form: str, data: st.DataObject) -> None:
    """A1, A8, D8: budget and caps hold with it, and rows add up to what is sent."""
    counter, _, fitted, caps = data.draw(marked_fits(form=form))
    everything_adds_up(counter, fitted, caps)


@given(marked_fits(form="openai_chat"))
def test_a_mark_is_there_or_the_report_says_that_it_is_not(
    drawn: tuple[Any, Context, Fitted[Any], dict[str, int]],
) -> None:
    """Each block that something stays of carries its mark; a note names one that does not."""
    _, made, fitted, _ = drawn
    report = fitted.report
    asked = {block.name for block in made.blocks if block.cache_control is not None}
    left_out = {name for name in asked if any(f"block {name!r} was left out" in n for n in report.notes)}
    there = {block.name for block in report.blocks} - set(report.blocks_dropped)
    assert str(fitted.messages).count("cache_control") == len((asked & there) - left_out)
