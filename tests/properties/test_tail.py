"""The way that reads only the newest messages gives what the way that groups everything gives."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import conversations, places, talk, valid_conversations
from tests.properties.answers import answer_of
from tests.properties.cases import ADDITIVE, DEFAULT, MINIMUMS, STRIDES, WINDOWS, WORDS, limits
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    ContextError,
    SlidingWindow,
    TruncateText,
    fit,
)
from trimtab.strategies import ClampResults, Strategy
from trimtab.testing import eviction_request, group_all, request_bodies

BY_CUTS = (
    *WINDOWS,
    *STRIDES,
    *MINIMUMS,
    DEFAULT,
    Cascade(SlidingWindow(keep_first_user=True, target_ratio=0.5), TruncateText()),
)


def assert_same(messages: list[Any], limit: int, strategy: Strategy, counter: Any) -> None:
    """Compare `fit` with a strategy that is asked about all units: the same messages, size and verdict."""
    grouped = answer_of(strategy, eviction_request(messages, limit, counter=counter))
    # What lets nothing of the newest go says so; behind it `fit` would cut, and of that no strategy knows.
    cuts = any(isinstance(one, TruncateText) for one in getattr(strategy, "steps", ()))
    try:
        fitted = fit(messages, limit, counter=counter, strategy=strategy, cut_newest=cuts)
        assert grouped.fits
    except BudgetExceededError as error:
        assert not grouped.fits
        fitted = error.attempt
    rows = fitted.report.messages
    assert [row.index for row in rows if row.fate != "evicted"] == sorted(grouped.kept)
    assert fitted.report.tokens_after == grouped.tokens


@given(valid_conversations(), st.sampled_from(BY_CUTS), st.sampled_from(ADDITIVE), st.data())
@settings(max_examples=settings.default.max_examples)
def test_reading_only_the_end_of_a_valid_conversation_changes_nothing(
    messages: list[Any], strategy: Strategy, counter: Any, data: st.DataObject
) -> None:
    """Whatever of SlidingWindow is asked for."""
    limit = data.draw(limits(messages, counter))
    if counter.count(messages) > limit:
        assert_same(messages, limit, strategy, counter)


@given(conversations(), st.sampled_from(BY_CUTS), st.sampled_from(ADDITIVE), st.data())
@settings(max_examples=settings.default.max_examples * 2)
def test_reading_only_the_end_of_a_broken_conversation_changes_nothing(
    messages: list[Any], strategy: Strategy, counter: Any, data: st.DataObject
) -> None:
    """What is broken in the end is seen there; what is broken before it does not matter."""
    limit = data.draw(limits(messages, counter))
    if counter.count(messages) > limit:
        assert_same(messages, limit, strategy, counter)


def newest(line: str, budget: int) -> list[int] | None:
    """Fit by the newest units alone: what stays by position, None where that is over the budget."""
    messages = talk(line)
    try:
        return places(fit(messages, budget, counter=WORDS, strategy=SlidingWindow()).messages, messages)
    except BudgetExceededError:
        return None


def test_a_newest_unit_that_passes_the_limit_is_still_grouped_as_a_whole() -> None:
    """The limit is passed among the results of the newest call: the unit is that call with all of them."""
    assert newest("u1 a5 u2 cA,B,C rA9 rB9 rC9", 12) is None
    assert newest("u1 a5 u2 cA,B,C rA9 rB9 rC9", 35) == [2, 3, 4, 5, 6]


def test_an_orphan_at_the_end_is_no_part_of_the_unit_before_it() -> None:
    """The newest unit is the orphan alone; the call before it may leave."""
    assert newest("u1 cA rA9 rZ5", 7) == [0, 3]


def test_an_open_call_before_large_system_messages_is_not_overlooked() -> None:
    """Only a user message or a model turn closes a call, so what follows may be far past the limit."""
    assert newest("u1 a3 cA s20 s20", 25) == [0, 2, 4]


def test_a_result_behind_the_latest_user_message_is_not_kept_for_its_sake() -> None:
    """A late result right behind what the user wrote belongs to its own call."""
    assert newest("u1 cA u2 rA30 a4 a5", 11) == [2, 4, 5]
    assert newest("u1 cA u2 rA30 a9 a5", 11) == [2, 5]


def test_a_result_between_system_messages_closes_its_call() -> None:
    """It answers the last turn, far before the newest unit."""
    for line in ("u1 a9 cA s20 rA2 s3", "u1 a9 cA s2 rA2 s30 s3"):
        assert_same(talk(line), 8, SlidingWindow(), WORDS)


KEYS = {"gemini": "contents", "openai_responses": "input"}
NEWEST_FIRST = (
    DEFAULT,
    SlidingWindow(target_ratio=0.5),
    SlidingWindow(min_messages=3),
    Cascade(ClearToolResults(keep_results=1), SlidingWindow(), TruncateText()),
    Cascade(ClampResults(max_ratio=0.3), ClearToolResults(), SlidingWindow(), TruncateText()),
    Cascade(Cascade(ClampResults(max_tokens=5)), SlidingWindow(), TruncateText()),
    Cascade(ClearToolResults(keep_results=0, placeholder="-"), SlidingWindow(target_ratio=0.5)),
    Cascade(ClearToolResults(keep_results=2, target_ratio=1.0), SlidingWindow(target_ratio=0.7)),
)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"])
def test_reading_only_the_end_changes_nothing_in_any_form(form: str) -> None:
    """With pins, at any budget, for each strategy that lets the oldest leave; the report is the same, too."""
    random, compared = Random(form), 0
    for body in request_bodies(60, format=form, seed=7, valid=True, max_messages=20):
        messages = body[KEYS.get(form, "messages")]
        total = WORDS.with_format(form).count(messages)
        for strategy in NEWEST_FIRST:
            budget = random.randint(1, total)
            pin = random.sample(range(len(messages)), k=random.choice((0, 0, 1)))
            lazy = answer(messages, budget, form, strategy, pin)
            with group_all():
                assert answer(messages, budget, form, strategy, pin) == lazy
            compared += 1
    assert compared > 100


def answer(messages: list[Any], budget: int, form: str, strategy: Strategy, pin: list[int]) -> Any:
    """Fit, and give the messages and the rows of the report, or the words of the error."""
    try:
        fitted = fit(messages, budget, counter=WORDS, format=form, strategy=strategy, pin=pin)
    except ContextError as error:
        return type(error), str(error)
    rows = [(row.fate, row.reason) for row in fitted.report.messages]
    return fitted.messages, fitted.report.tokens_after, rows
