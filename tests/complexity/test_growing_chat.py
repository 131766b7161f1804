"""What one call of a chat that grows costs: lines run inside trimtab, where the calls before are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.complexity.counting_machine import exact_counter, operations_of
from tests.complexity.shapes import Message, calls, result, said, user
from tests.properties.test_clear_with_growth import written
from trimtab import Cascade, ClearToolResults, SlidingWindow, TruncateText, fit
from trimtab.counting import FixedCounter, clear_counts
from trimtab.strategies import Cheapest

STRIDES = SlidingWindow(target_ratio=0.7)
AGENT = Cascade(ClearToolResults(keep_results=2), STRIDES, TruncateText())


def _chat(count: int) -> list[Message]:
    """Make turns of four messages, whose results are longer than what stands for a cleared one."""
    made: list[Message] = []
    for at in range(count // 4):
        found = f"found {at}: " + "row of the table, " * 8
        made += [user(f"question {at}"), calls(f"c{at}"), result(f"c{at}", found), said(f"answer {at}")]
    return made


def _lines(chat: list[Message], budget: int, strategy: Any, **options: Any) -> int:
    """Return the lines of a call that knows all its messages but the newest two from the two calls before."""
    options = {"counter": exact_counter(), "strategy": strategy, **options}
    for newer in (4, 2):
        fit(chat[:-newer], budget, **options)
    return operations_of(lambda _: fit(chat, budget, **options)).lines


@pytest.mark.parametrize(
    ("form", "strides", "agent"),
    [
        ("openai_chat", 9_800, 38_500),
        ("openai_responses", 12_000, 88_000),
        ("anthropic", 36_700, 202_000),
        ("gemini", 23_100, 219_000),
    ],
)
def test_a_call_of_a_growing_chat_runs_few_lines(form: str, strides: int, agent: int) -> None:
    """Each message that is counted or cleared costs a few; what was weighed in a call before costs none.

    The bounds are a tenth above what was counted once. Without what is remembered, and with a unit looked
    up for each message cleared, it took 13,300, 61,600, 168,800 and 39,300 in strides, and 57,600, 227,600,
    456,600 and 462,000 in those of an agent. Of Anthropic's 9,900 are spent on the look for a compaction. In
    those of an agent up to 2,500 look over the edits of our own strategies, as those of everybody's.
    """
    chat = written(form, _chat(9_900))
    assert _lines(chat, 8_000, STRIDES) <= strides
    assert _lines(chat, 8_000, AGENT) <= agent


@pytest.mark.parametrize(
    ("form", "lines"),
    [("openai_chat", 10_200), ("openai_responses", 12_500), ("anthropic", 37_000), ("gemini", 23_400)],
)
def test_a_cut_that_costs_least_looks_at_what_is_new(form: str, lines: int) -> None:
    """Where the calls before were cut is known from the call before; it took 298,000 lines (Chat)."""
    assert _lines(written(form, _chat(9_900)), 8_000, Cheapest()) <= lines


def test_a_chat_that_is_sent_in_another_form_is_remembered_too() -> None:
    """What is known of its messages goes by the form, which is the same in each call."""
    chat = _chat(9_900)
    assert _lines(chat, 8_000, STRIDES, charge_as="anthropic") <= 1.3 * _lines(chat, 8_000, STRIDES)


def test_a_call_of_an_agent_with_much_room_runs_few_lines() -> None:
    """The same where more messages stand: it took 210,700."""
    assert _lines(_chat(9_900), 32_000, AGENT) <= 139_000


def test_messages_changed_in_place_cost_little_more_than_themselves() -> None:
    """The others are still known, as where cache marks move on: to weigh all takes 5,300 lines."""
    chat = _chat(9_900)
    counter = exact_counter()
    for newer in (4, 2):
        fit(chat[:-newer], 8_000, counter=counter, strategy=STRIDES)
    unchanged = operations_of(lambda _: fit(chat[:-1], 8_000, counter=counter, strategy=STRIDES)).lines
    for at in range(9_500, 9_600, 10):
        chat[at]["cache_control"] = {"type": "ephemeral"}
    assert (
        operations_of(lambda _: fit(chat, 8_000, counter=counter, strategy=STRIDES)).lines
        <= unchanged + 2_200
    )


def _large_chat() -> None:
    """Fit a chat of which more would be remembered than may be, in two calls."""
    large = [user("x") for _ in range(90_000)]
    for _ in range(2):
        fit(large, 1_100_000, counter=FixedCounter(per_message=40), strategy=STRIDES)


def _much_beside_texts() -> None:
    """Fit a chat in which more numbers than may be remembered stand before the cut, in two calls."""
    vectors = [{**user("x " * 20), "vector": [float(at) for at in range(7_000)]} for _ in range(180)]
    for _ in range(2):
        fit(
            [*vectors, *(user("x") for _ in range(220))],
            8_000,
            counter=FixedCounter(per_message=40),
            strategy=STRIDES,
        )


def _fit_small(chat: list[Message]) -> None:
    fit(chat, 2_000, counter=FixedCounter(per_message=40), strategy=STRIDES)


def _large_texts_in_place() -> None:
    """Fit two chats in which a large text is put in place of a small one, and which go on after that."""
    text = "x" * 20_000_000
    for _ in range(2):
        chat = [user("x") for _ in range(120)]
        _fit_small(chat)
        _fit_small(chat)
        chat[5]["content"] = text
        for _ in range(2):
            _fit_small(chat)
            chat += [user("x") for _ in range(70)]


def _many_chats() -> list[list[Message]]:
    return [[user("x") for _ in range(60)] for _ in range(1_100)]


def _fit_many() -> None:
    for chat in _many_chats():
        _fit_small(chat)


@pytest.mark.long
@pytest.mark.parametrize(
    "forget",
    [_large_chat, _much_beside_texts, _large_texts_in_place, _fit_many, clear_counts],
    ids=["a large chat", "numbers beside texts", "texts put in place", "many chats", "clear_counts"],
)
def test_what_is_remembered_is_bounded_and_can_be_forgotten(forget: Callable[[], None]) -> None:
    """It is weighed again then, which takes some thousands of lines more."""
    chat, counter = _chat(9_900), exact_counter()

    def lines() -> int:
        return operations_of(lambda _: fit(chat, 8_000, counter=counter, strategy=STRIDES)).lines

    for _ in range(2):
        lines()
    known = lines()
    forget()
    assert lines() >= known + 3_000


def test_what_goes_on_is_remembered_beside_many_chats_and_much_that_is_replaced() -> None:
    """Of chats that stand alone little is kept, and of a text that is changed in each call the last one."""
    chat, counter = _chat(9_900), exact_counter()

    def lines() -> int:
        return operations_of(lambda _: fit(chat, 8_000, counter=counter, strategy=STRIDES)).lines

    for _ in range(2):
        lines()
    known = lines()
    for at, one in enumerate(_many_chats()):
        _fit_small(one)
        if at % 200 == 0:
            assert lines() <= known + 100
    changed = [user("x") for _ in range(120)]
    for at in range(80):
        changed[5]["content"] = f"{at}" + "x" * 500_000
        _fit_small(changed)
    assert lines() <= known + 100
