"""The Format protocol carries wire forms with shared messages and bound ones."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.toy_format import ToyFormat, answers, asks, said, words
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    Drop,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    TrimContext,
    TruncateText,
    fit,
    validate,
)
from trimtab.conversation import Unit
from trimtab.errors import StrategyContractError
from trimtab.strategies import EvictionRequest, EvictionResult, Relevant, Strategy
from trimtab.testing import WordCounter

TOY = ToyFormat()
COUNTER = WordCounter(format=TOY)
WINDOWS: tuple[Strategy, ...] = (
    SlidingWindow(),
    SlidingWindow(keep_turns=True),
    SlidingWindow(keep_first_user=True),
    SlidingWindow(target_ratio=0.5),
    SlidingWindow(protect_roles=("user",)),
    Cascade(SlidingWindow(), TruncateText()),
    Cascade(ClearToolResults(keep_results=0), SlidingWindow(), TruncateText("start")),
)
STRATEGIES = (
    *WINDOWS,
    Drop(),
    DropNewest(),
    PriorityBased(),
    Relevant(gap="gap"),
    TruncateText(),
    ClearToolResults(),
)


def text(count: int) -> str:
    """Write a text of so many words."""
    return " ".join(["w"] * count)


@st.composite
def talks(draw: st.DrawFn) -> list[Any]:
    """Make conversations in which results come in one message, with the user's words or without."""
    messages = [said("user", words(text(draw(st.integers(0, 9)))))]
    size = st.integers(0, 20)
    for at in range(draw(st.integers(1, 9))):
        if draw(st.booleans()):
            messages.append(said("thought", words(text(draw(size)))))
        ids = [f"{letter}{at}" for letter in "abc"[: draw(st.integers(0, 3))]]
        messages.append(said("assistant", words(text(draw(size))), *map(asks, ids)))
        results = [answers(call_id, text(draw(size))) for call_id in draw(st.permutations(ids))]
        own = [words(text(draw(size)))] if not ids or draw(st.booleans()) else []
        messages.append(said("user", *results, *own))
    return messages[: len(messages) - draw(st.sampled_from((0, 0, 1)))]


def parts_of(messages: list[Any], kind: str) -> list[tuple[int, Any]]:
    """List (position, id) of calls or results."""
    return [(at, p["id"]) for at, m in enumerate(messages) for p in m["parts"] if p["type"] == kind]


def wrong_with(messages: list[Any]) -> set[str]:
    """List results without an earlier call, and calls without a result that are not at the end."""
    called = {call_id: at for at, call_id in parts_of(messages, "asks")}
    answered = {call_id for at, call_id in parts_of(messages, "answers") if called.get(call_id, at) < at}
    orphans = {call_id for _, call_id in parts_of(messages, "answers")} - answered
    last = max((at for at, m in enumerate(messages) if m["role"] != "thought"), default=-1)
    return orphans | {call_id for call_id, at in called.items() if call_id not in answered and at != last}


def outcome(messages: list[Any], limit: int, strategy: Strategy, counter: Any = COUNTER) -> tuple[Any, bool]:
    """Fit, and take the best attempt where it does not."""
    try:
        return fit(messages, limit, counter=counter, format=TOY, strategy=strategy), True
    except BudgetExceededError as error:
        return error.attempt, False


@given(talks(), st.sampled_from(STRATEGIES), st.sampled_from((COUNTER, COUNTER.count)), st.integers(0, 100))
@settings(max_examples=settings.default.max_examples * 2)
def test_a_form_with_shared_messages_is_fitted_without_a_violation(
    messages: list[Any], strategy: Strategy, counter: Any, percent: int
) -> None:
    """A1 to A5 where one message belongs to several units."""
    before = copy.deepcopy(messages)
    assert wrong_with(messages) == set()
    limit = max(1, COUNTER.count(messages) * percent // 100)
    fitted, fits = outcome(messages, limit, strategy, counter)
    output = fitted.messages
    assert messages == before
    assert output
    assert wrong_with(output) == set()
    assert [v for v in validate(output, format=TOY) if v.fault] == []
    assert (COUNTER.count(output) <= limit) == fits
    assert fitted.report.tokens_after == COUNTER.count(output)
    stays = [row.index for row in fitted.report.messages if row.fate != "evicted"]
    put_in = {row.position for row in fitted.report.inserted}
    for at, message in zip(stays, (one for at, one in enumerate(output) if at not in put_in), strict=True):
        assert message["role"] == messages[at]["role"]
        assert is_part_of(message["parts"], messages[at]["parts"])
    assert bound_are_together(messages, stays)


def is_part_of(parts: list[Any], of: list[Any]) -> bool:
    """Tell whether parts are among others, in order, their texts apart; none of them empty of parts."""
    rest = iter([{**part, "text": ""} for part in of])
    return bool(parts) and all({**part, "text": ""} in rest for part in parts)


def bound_are_together(messages: list[Any], stays: list[int]) -> bool:
    """Tell whether every thought has the message after it, and that its thought."""
    pairs = [(at, at + 1) for at, m in enumerate(messages[:-1]) if m["role"] == "thought"]
    return all((first in stays) == (second in stays) for first, second in pairs)


@given(talks(), st.sampled_from(WINDOWS), st.integers(0, 100))
@settings(max_examples=settings.default.max_examples * 2)
def test_a_window_begins_with_what_may_lead(messages: list[Any], strategy: Strategy, percent: int) -> None:
    """The message that opened the turn stays, so the first one has words of the user."""
    limit = max(1, COUNTER.count(messages) * percent // 100)
    fitted, _ = outcome(messages, limit, strategy)
    rows = [row for row in fitted.report.messages if row.fate != "evicted"]
    if rows[0].state == "free":
        assert TOY.order_fault(None, fitted.messages[0]) is None


def test_results_in_one_message_leave_singly() -> None:
    """Two calls, one message that answers both and asks on: the older call takes its part along."""
    messages = [
        said("user", words("go")),
        said("assistant", asks("a"), words(text(9))),
        said("assistant", asks("b"), words("hm")),
        said("user", answers("a", text(9)), answers("b", "yes"), words("and now?")),
        said("assistant", words("done")),
    ]
    fitted = fit(messages, 12, counter=COUNTER, format=TOY, strategy=SlidingWindow())
    shared = said("user", answers("b", "yes"), words("and now?"))
    assert fitted.messages == [messages[0], messages[2], shared, messages[4]]
    assert fitted.report.tokens_after == 1 + 3 + 3 + 1
    rows = fitted.report.messages
    assert [row.fate for row in rows] == ["kept", "evicted", "kept", "changed", "kept"]
    assert rows[3].tokens_before == 12
    assert rows[3].tokens_after == 3


def test_the_words_beside_results_are_what_is_pinned() -> None:
    """The latest user message is its words; results in it may leave with their call."""
    messages = [
        said("user", words("go")),
        said("assistant", asks("a"), words(text(20))),
        said("user", answers("a", text(20)), words("and now?")),
        said("assistant", words("done")),
    ]
    fitted = fit(messages, 4, counter=COUNTER, format=TOY, strategy=SlidingWindow())
    assert fitted.messages == [said("user", words("and now?")), messages[3]]


def test_a_callback_that_removes_a_call_takes_its_part_of_a_shared_message() -> None:
    """D9: and what is left of the message is counted as it is, whatever was counted before."""

    def remove_the_call(trim: TrimContext) -> None:
        assert trim.total_tokens == 1 + 11 + 11 + 1
        trim.remove(1)

    messages = [
        said("user", words("go")),
        said("assistant", asks("a"), words(text(9))),
        said("user", answers("a", text(9)), words("and now?")),
        said("assistant", words("done")),
    ]
    fitted = fit(messages, 99, counter=COUNTER, format=TOY, on_trim=remove_the_call)
    assert fitted.messages == [messages[0], said("user", words("and now?")), messages[3]]
    assert fitted.report.tokens_after == 4


def test_system_text_stays_outside() -> None:
    """It is counted, handed back, and put into no message; a body comes back as a body."""
    body = {"system": "be brief", "turns": [said("user", words("one two")), said("user", words("three"))]}
    fitted = fit(body, 3, counter=COUNTER, format=TOY)
    assert fitted.system == "be brief"
    assert fitted.request == {"system": "be brief", "turns": [body["turns"][1]]}


FAR_BEHIND = [
    said("user", words("go")),
    said("assistant", asks("a"), words(text(9))),
    said("user", answers("a", text(9)), words("and now?")),
    *(said("assistant", words("hm")) for _ in range(100)),
]


def test_words_of_the_user_far_behind_stay_without_the_results_beside_them() -> None:
    """The latest user message is not where reading the end would see what else is in it."""
    fitted = fit(FAR_BEHIND, 20, counter=COUNTER, format=TOY, strategy=SlidingWindow())
    assert fitted.messages == [said("user", words("and now?")), *FAR_BEHIND[-18:]]


def test_a_turn_opened_beside_results_is_kept_without_them() -> None:
    """The opener of the turn cut into is its words, also when it lies where nothing was read."""
    messages = [*FAR_BEHIND, said("user", words("thanks"))]
    fitted = fit(messages, 20, counter=COUNTER, format=TOY, strategy=SlidingWindow())
    assert fitted.messages == [said("user", words("and now?")), *messages[-18:]]


def test_the_first_users_words_stay_without_the_results_beside_them() -> None:
    """`keep_first_user`, where that message holds the result of a call that leaves."""
    messages = [
        said("assistant", asks("a1")),
        said("user", answers("a1", "x x"), words("hi")),
        *[said("assistant", words("a a a")), said("user", words("q q"))] * 6,
    ]
    fitted = fit(messages, 5, counter=COUNTER, format=TOY, strategy=SlidingWindow(keep_first_user=True))
    assert fitted.messages == [said("user", words("hi")), messages[-1]]


class AnyOrderFormat(ToyFormat):
    """The same with any message first."""

    name = "any_order"
    rules = replace(ToyFormat.rules, ordered=False)


@pytest.mark.parametrize("form", [TOY, AnyOrderFormat()], ids=lambda form: form.name)
def test_a_strategy_cannot_keep_a_shared_message_whole_when_a_call_of_it_leaves(form: ToyFormat) -> None:
    """A unit of one message, made by hand, is none of the request's if the message is shared."""

    class Whole:
        name = "whole"

        def evict(self, request: EvictionRequest, /) -> EvictionResult:
            """Cut at the last message, and keep the second one beside it."""
            return EvictionResult(cut=13, kept=[Unit((1,), kind="user")])

    messages = [
        said("assistant", asks("a1")),
        said("user", answers("a1", "x x"), words("hi")),
        *[said("assistant", words("a a a")), said("user", words("q q"))] * 6,
    ]
    with pytest.raises(StrategyContractError, match="not a unit"):
        fit(messages, 9, counter=WordCounter(format=form), format=form, strategy=Whole())


def test_a_strategy_cannot_keep_a_message_without_the_thought_bound_to_it() -> None:
    """A unit of one message, made by hand, is none of the request's if what is before is bound to it."""

    class Second:
        name = "second"

        def evict(self, request: EvictionRequest, /) -> EvictionResult:
            """Cut at the last message, and keep the second one beside it."""
            return EvictionResult(cut=13, kept=[Unit((1,), kind="user")])

    form = AnyOrderFormat()
    messages = [
        said("thought", words("hm")),
        said("user", words("hi")),
        *[said("assistant", words("a a a")), said("user", words("q q"))] * 6,
    ]
    with pytest.raises(StrategyContractError, match="not a unit"):
        fit(messages, 9, counter=WordCounter(format=form), format=form, strategy=Second())


def test_a_turn_opened_beside_a_result_is_cut_behind_its_words() -> None:
    """The words come first without the result they stood beside: 2, and 7 and 3 behind them."""
    form = AnyOrderFormat()
    messages = [
        said("user", words(text(2))),
        said("assistant", asks("a")),
        said("user", answers("a", text(3)), words(text(2))),
        *(said("assistant", words(text(count))) for count in (7, 5, 7)),
        said("user", words(text(3))),
    ]
    fitted = fit(messages, 12, counter=WordCounter(format=form), format=form, strategy=SlidingWindow())
    assert fitted.messages == [said("user", words(text(2))), *messages[5:]]
