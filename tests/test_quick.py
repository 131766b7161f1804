"""The quick way of `fit` answers what the full way answers, or leaves the answer to it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import (
    assistant,
    call,
    conversations,
    places,
    result,
    system,
    talk,
    user,
    valid_conversations,
)
from tests.properties.cases import limits
from tests.properties.test_real import SOURCES, coding_session, conversations_of
from tests.properties.toy_format import ToyFormat
from tests.quick_ways import FRAMING, agree, full_way, outcome, quick_way, words_counter
from trimtab import (
    Budget,
    BudgetExceededError,
    CharCounter,
    ContextError,
    EstimateCounter,
    SlidingWindow,
    counter_for,
    counter_from_text,
    fit,
    testing,
)
from trimtab._fitting.fit_plan import FitPlan
from trimtab._quick import QuickPlan, _counts_units
from trimtab.counting import FixedCounter, TextCounter
from trimtab.counting.cache import TextCache
from trimtab.errors import CountingError, FormatError
from trimtab.formats import OpenAIChat, formats, get_format

WORDS = words_counter()


@pytest.mark.parametrize(
    ("line", "budget", "kept", "tokens"),
    [
        pytest.param("s3 u1 a20 u1 a20", 48, "0 1 2 3 4", 48, id="exactly-all"),
        pytest.param("s3 u1 a20 u1 a20", 47, "0 3 4", 27, id="one-short-of-all"),
        pytest.param("u1", 20, "0", 4, id="one-message"),
        pytest.param("s3 d3 u1 a20 u1 a20", 50, "0 1 4 5", 30, id="two-leading-messages"),
        pytest.param("a20 u1 a20", 43, "1 2", 24, id="no-leading-message"),
        pytest.param("s3 u1 a20 a20 a20", 47, "0 1 3 4", 47, id="latest-user-before-the-cut-exactly-fits"),
        pytest.param("s3 u1 a20 a20 a20", 46, "0 1 4", 27, id="latest-user-before-the-cut-one-short"),
        pytest.param("s3 u1 a20 a20 u1 a9", 37, "0 1 3 4 5", 37, id="opener-stays-exactly-fits"),
        pytest.param("s3 u1 a20 a20 u1 a9", 36, "0 4 5", 16, id="opener-one-short-goes-with-its-turn"),
        pytest.param("s3 a20 a20 u1 a9", 36, "0 2 3 4", 36, id="a-turn-nobody-opened"),
        pytest.param("s3 u9 a5 cA rA9 u1 a9", 34, "0 5 6", 16, id="steps-over-a-whole-unit-for-the-opener"),
        pytest.param("s3 u9 a9 a5 u1 a9", 30, "0 1 3 4 5", 30, id="opener-exactly"),
        pytest.param("s3 u9 a9 a3 a2 u1 a9", 27, "0 1 4 5 6", 27, id="one-step-and-the-opener-stays"),
        pytest.param("s3 u9 a9 a3 a2 u1 a9", 26, "0 5 6", 16, id="two-steps-and-it-goes"),
        pytest.param("u1 a20 u1 a20 u1", 45, "2 3 4", 25, id="cut-at-a-user"),
        pytest.param("a9 u1 cA rA20 u1 a20", 47, "1 2 3 4 5", 47, id="call-and-result-at-the-cut-stay"),
        pytest.param("a9 u1 cA rA20 u1 a20", 46, "4 5", 24, id="opener-of-a-call-one-short"),
        pytest.param("u1 cA rA20 u1 a20", 46, "3 4", 24, id="limit-passed-at-the-opener"),
        pytest.param("a1 cA rA20 u1 a20", 45, "3 4", 24, id="limit-passed-at-the-call"),
        pytest.param("u1 cA rA20 u1 a20", 40, "3 4", 24, id="limit-passed-at-the-result"),
        pytest.param("u1 cA,B rA20 rB20 u1 a20", 40, "4 5", 24, id="limit-passed-at-the-second-result"),
        pytest.param("u1 cA,B rB20 rA20 u1 a20", 60, "4 5", 24, id="limit-passed-at-the-first-result"),
        pytest.param("s1 a9 a9 u1 a3 cA rA20", 40, "0 2 3 4 5 6", 39, id="newest-unit-is-a-call"),
        pytest.param("s1 u1 a30 u1 cA", 30, "0 3 4", 7, id="newest-call-is-open"),
        pytest.param("s1 u1 a30 u1 cA,B rB3", 30, "0 3 4 5", 12, id="newest-call-is-half-open"),
        pytest.param("a30 u1 a20 u1", 30, "1 2 3", 25, id="newest-is-the-user"),
        pytest.param("u1 cA a2 rA3 u1 a20", 99, "0 1 2 3 4 5", 32, id="a-late-result-where-all-fits"),
        pytest.param("cA a2 rA3 a9 u1 a20", 29, "4 5", 24, id="a-late-result-before-the-cut"),
    ],
)
def test_a_plain_request_is_decided_at_once(line: str, budget: int, kept: str, tokens: int) -> None:
    """The request costs 3, so the room is 3 less; the size is exact."""
    messages = talk(line)
    fitted = fit(messages, budget, counter=WORDS)
    assert isinstance(fitted._plan, QuickPlan)
    assert places(fitted.messages, messages) == [int(place) for place in kept.split()]
    assert fitted._plan.tokens == tokens == WORDS.count(fitted.messages)
    assert agree(messages, budget, counter=WORDS, others=(budget - 1, budget + 7, tokens, 10_000))


@pytest.mark.parametrize(
    ("line", "budget"),
    [
        pytest.param("", 30, id="no-messages"),
        pytest.param("s3 s3", 30, id="nothing-but-system-messages"),
        pytest.param("a20 a20 a9", 40, id="no-user-message"),
        pytest.param("a20 u2 a20", 35, id="user-message-a-sixteenth-of-the-room"),
        pytest.param("u1 a20 cA a2 rA3 u1 a9", 30, id="late-result"),
        pytest.param("u1 a20 rZ3 u1 a9", 30, id="orphan-among-what-stays"),
        pytest.param("u1 rA20 u1 a9", 30, id="limit-passed-at-an-orphan"),
        pytest.param("rA20 u1 a9", 30, id="limit-passed-at-an-orphan-at-the-beginning"),
        pytest.param("s3 rA20 u1 a9", 30, id="limit-passed-at-an-orphan-behind-the-system-message"),
        pytest.param("cA rA2 rA20 u1 a9", 30, id="limit-passed-at-a-repeated-result"),
        pytest.param("cA rA20 rA2 u1 a9", 30, id="limit-passed-before-a-repeated-result"),
        pytest.param("u1 a20 u1 a9 s3", 30, id="newest-is-a-system-message"),
        pytest.param("u1 a30 u1 cA s9 s9", 30, id="open-call-before-system-messages"),
        pytest.param("u1 a9 u1 cA,B rA9 rB30", 30, id="limit-passed-inside-the-newest-unit"),
        pytest.param("u1 a30", 30, id="limit-passed-at-the-newest-message"),
        pytest.param("s30 u1 a3", 30, id="system-message-over-budget"),
        pytest.param("u5 a3 a26", 33, id="what-must-stay-is-all-that-fits"),
        pytest.param("s3 a9 u1 a9 a20", 26, id="what-must-stay-does-not-fit"),
    ],
)
def test_what_is_not_plain_is_left_to_the_full_way(line: str, budget: int) -> None:
    """Which answers as it did."""
    messages = talk(line)
    assert quick_way(messages, budget, counter=WORDS) is None
    assert same_outcome(messages, budget, counter=WORDS)


def same_outcome(messages: Any, budget: Any, **asked: Any) -> bool:
    """Tell whether `fit` comes to the same end as the full way: the same answer, or the same error."""
    mine = outcome(lambda: fit(messages, budget, **asked), messages)
    return bool(mine == outcome(lambda: full_way(messages, budget, **asked), messages))


PLAIN = talk("s3 u1 a20 cA rA9 a3 u1 a20")


class Louder(TextCounter):
    """Counts in its own way."""

    def count_message(self, message: Any, /) -> int:
        """Count twice as much."""
        return 2 * super().count_message(message)


class Later(TextCounter):
    """Counts lists asynchronously, which `fit` does not take."""

    # a subclass that breaks its base's promise is what this is about
    async def count(self, messages: Any, /) -> int:  # type: ignore[override]
        """Count."""
        return super().count(messages)


class Words(str):
    """A text of a class of its own."""


class Margin(Budget):
    """A budget of a class of its own."""


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"system": "Be brief."}, id="system"),
        pytest.param({"system": ""}, id="empty-system"),
        pytest.param({"tools": [{"type": "function", "function": {"name": "f"}}]}, id="tools"),
        pytest.param({"tools": []}, id="no-tools"),
        pytest.param({"strategy": SlidingWindow()}, id="strategy"),
        pytest.param({"pin": [1]}, id="pin"),
        pytest.param({"pin": lambda message, index: index == 1}, id="pin-by-predicate"),
        pytest.param({"pin": [99]}, id="pin-out-of-range"),
        pytest.param({"pin": None}, id="pin-none"),
        pytest.param({"pending_calls": ["A"]}, id="pending-calls"),
        pytest.param({"pending_calls": "A"}, id="pending-calls-text"),
        pytest.param({"on_trim": lambda ctx: ctx.remove(2)}, id="on-trim"),
        pytest.param({"on_trim": 5}, id="on-trim-number"),
        pytest.param({"repair": True}, id="repair"),
        pytest.param({"strict": True}, id="strict"),
        pytest.param({"messages": tuple(PLAIN)}, id="tuple"),
        pytest.param({"messages": {"messages": PLAIN}}, id="body"),
        pytest.param({"messages": "hi"}, id="text"),
        pytest.param({"messages": [system(), 5, user()]}, id="no-message"),
        pytest.param({"messages": [SimpleNamespace(model_dump=lambda **_: system()), user()]}, id="object"),
        pytest.param(
            {"messages": [user(), SimpleNamespace(model_dump=lambda **_: assistant())]}, id="object-later"
        ),
        pytest.param({"budget": None}, id="no-budget"),
        pytest.param({"budget": None, "model": "gpt-4o"}, id="budget-of-the-model"),
        pytest.param({"budget": 40.0}, id="budget-float"),
        pytest.param({"budget": True}, id="budget-bool"),
        pytest.param({"budget": 0}, id="budget-zero"),
        pytest.param({"budget": -5}, id="budget-negative"),
        pytest.param({"budget": "40"}, id="budget-text"),
        pytest.param({"budget": Budget(40, output_reserve=40)}, id="budget-without-room"),
        pytest.param({"budget": Margin(40)}, id="budget-subclass"),
        pytest.param({"model": 5}, id="model-number"),
        pytest.param({"model": 5, "format": "nope"}, id="model-number-and-unknown-format"),
        pytest.param({"model": Words("gpt-4o")}, id="model-subclass"),
        pytest.param({"format": "nope"}, id="format-unknown"),
        pytest.param({"format": 5}, id="format-number"),
        pytest.param({"format": get_format("openai_chat")}, id="format-object"),
        pytest.param({"counter": None, "model": "no-such-model"}, id="model-unknown"),
        pytest.param({"counter": None, "model": "no-such-model", "format": "nope"}, id="both-unknown"),
        pytest.param({"counter": None, "model": "no-such-model", "budget": -1}, id="model-and-budget"),
        pytest.param({"counter": len}, id="counter-len"),
        pytest.param({"counter": "gpt-4o"}, id="counter-text"),
        pytest.param({"counter": TextCounter}, id="counter-class"),
        pytest.param({"counter": WORDS.count}, id="black-box"),
        pytest.param({"counter": testing.WordCounter()}, id="counter-without-prices"),
        pytest.param({"counter": CharCounter()}, id="characters"),
        pytest.param({"counter": FixedCounter(5)}, id="fixed"),
        pytest.param({"counter": counter_from_text(lambda text: len(text.split()))}, id="text-function"),
        pytest.param(
            {"counter": Louder(lambda text: len(text.split()), name="louder", framing=FRAMING)}, id="subclass"
        ),
        pytest.param(
            {"counter": Later(lambda text: len(text.split()), name="later", framing=FRAMING)},
            id="async-subclass",
        ),
        pytest.param({"counter": words_counter(replace(FRAMING, result_ids_counted=True))}, id="ids-counted"),
        pytest.param(
            {"counter": words_counter(replace(FRAMING, per_request_tokens=-1))}, id="framing-below-0"
        ),
        pytest.param(
            {"counter": words_counter(replace(FRAMING, per_request_tokens=True))}, id="framing-bool"
        ),
    ],
)
def test_whatever_else_is_asked_for_goes_the_full_way(asked: dict[str, Any]) -> None:
    """And comes to the same end: the same answer, or the same error."""
    given = {"messages": PLAIN, "budget": 40, "counter": WORDS, **asked}
    messages, budget = given.pop("messages"), given.pop("budget")
    assert same_outcome(messages, budget, **given)
    try:
        fitted = fit(messages, budget, **given)
    except (ContextError, ValueError):
        return
    assert isinstance(fitted._plan, FitPlan)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({}, id="as-it-is"),
        pytest.param({"budget": Budget(140, output_reserve=4, margin=6)}, id="budget"),
        pytest.param({"format": "openai_chat"}, id="format-by-name"),
        pytest.param({"model": "gpt-4o"}, id="model-beside-the-counter"),
        pytest.param({"model": "no-such-model"}, id="unknown-model-beside-the-counter"),
        pytest.param({"model": "gpt-4o", "counter": None}, id="counter-of-the-model"),
        pytest.param({"counter": None}, id="estimate"),
        pytest.param({"counter": EstimateCounter()}, id="estimate-given"),
        pytest.param(
            {"pin": (), "pending_calls": (), "repair": False, "strict": False}, id="defaults-written-out"
        ),
    ],
)
def test_a_plain_request_may_be_asked_for_in_several_ways(asked: dict[str, Any]) -> None:
    """All of them are decided at once."""
    messages = talk("s3 " + "u1 a20 cA rA9 a3 " * 6 + "u1 a20")
    given = {"budget": 130, "counter": WORDS, **asked}
    budget = given.pop("budget")
    fitted = fit(messages, budget, **given)
    assert isinstance(fitted._plan, QuickPlan)
    assert len(fitted.messages) < len(messages)
    plain = {key: value for key, value in given.items() if key in ("model", "counter", "format")}
    assert agree(messages, budget, others=(120, 160), **plain)


SHAPES = [
    pytest.param({"role": "user", "content": [{"type": "text", "text": "w w"}]}, id="parts"),
    pytest.param({"role": "assistant", "content": "w", "refusal": "no no"}, id="refusal"),
    pytest.param({"role": "assistant", "content": None}, id="nothing-said"),
    pytest.param({"role": "critic", "content": "w w"}, id="role-of-another-form"),
    pytest.param({"role": "assistant", "content": 5}, id="content-number"),
    pytest.param({**call("A"), "function_call": {"name": "f", "arguments": "w"}}, id="legacy-call"),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("at", range(6))
def test_messages_of_any_shape_are_as_the_full_way_takes_them(shape: dict[str, Any], at: int) -> None:
    """Wherever one stands: at the front, before the cut, at it, and newest."""
    messages = talk("s3 u1 a20 a20 u1 a20")
    messages.insert(at + 1, shape)
    for budget in range(1, 90):
        agree(messages, budget, counter=WORDS)
        assert same_outcome(messages, budget, counter=WORDS)


def test_an_entry_that_is_no_dict_may_stand_where_nobody_looks() -> None:
    """It is neither read nor named, as in the full way; where it is read, the full way reads it."""
    thing = SimpleNamespace(model_dump=lambda **_: assistant())
    assert agree([system(), user(), thing, *talk("a9 u1 a20")], 30, counter=WORDS)
    assert quick_way([user(), *talk("u1 a9"), thing, *talk("u1 a9")], 30, counter=WORDS) is None
    lead = SimpleNamespace(model_dump=lambda **_: system("w w w"))
    messages = [lead, *talk("u1 a20 u1 a20")]
    assert quick_way(messages, 30, counter=WORDS) is None
    assert places(fit(messages, 30, counter=WORDS).messages, messages) == [0, 3, 4]
    answer = SimpleNamespace(model_dump=lambda **_: result("A", "w"))
    messages = [*talk("u1 cA,B"), answer, *talk("rB3 u1 a20")]
    assert quick_way(messages, 25, counter=WORDS) is None
    assert same_outcome(messages, 25, counter=WORDS)


def test_the_callers_list_may_grow_before_the_report_is_read() -> None:
    """The messages are those of the call."""
    messages = talk("s3 u1 a20 u1 a20")
    fitted = fit(messages, 40, counter=WORDS)
    expected = full_way(list(messages), 40, counter=WORDS).report.to_dict()
    messages.append(user("and"))
    messages[0] = system("other")
    assert fitted.report.to_dict() == expected
    assert fitted.report.total_message_count == 5
    assert len(fitted.at(99).messages) == 5
    fitted.messages.clear()
    assert len(fitted.at(99).messages) == 5


def test_a_copy_holds_all_there_is_to_read() -> None:
    """As one of the full way."""
    fitted = fit(PLAIN, 40, counter=WORDS)
    twin = copy.copy(fitted)
    assert (twin.messages, twin.report, twin.request) == (fitted.messages, fitted.report, fitted.request)


class Noting:
    """A text function that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        """Count words."""
        self.asked.append(text)
        return len(text.split())


@pytest.mark.parametrize(
    "line", ["s3 u1 a20 a9 a20 a20", "s3 u2 a5 cA rA9 a3 u1 a9 cA,B rA3 rB9 a2 u1 a9 a9"]
)
def test_the_same_texts_are_counted_as_often_as_in_the_full_way(line: str) -> None:
    """By a counter that remembers none of them."""
    taken = 0
    for budget in range(1, WORDS.count(talk(line)) + 2):
        if quick_way(talk(line), budget, counter=WORDS) is None:
            continue
        asked = []
        for way in (quick_way, full_way):
            noting = Noting()
            cache = TextCache(noting, name="forgetful", max_chars=0)
            counter = TextCounter(noting, name="forgetful", framing=FRAMING, cache=cache)
            assert way(talk(line), budget, counter=counter) is not None
            asked.append(sorted(noting.asked))
        assert asked[0] == asked[1]
        taken += 1
    assert taken > 30


def test_nothing_is_counted_again_for_the_report_or_another_budget() -> None:
    """Even if the counter has forgotten everything; only what was not counted yet is."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    texts = [f"{at}{'' if role == 'u' else ' w' * 19}" for at, role in enumerate("sauaauauaa")]
    messages = [
        {"role": roles[role], "content": text} for role, text in zip("sauaauauaa", texts, strict=True)
    ]
    noting = Noting()
    counter = TextCounter(noting, name="noting", framing=FRAMING)
    fitted = fit(messages, 80, counter=counter)
    assert isinstance(fitted._plan, QuickPlan)
    counted = set(noting.asked) & set(texts)
    assert 3 < len(counted) < len(texts)
    counter.clear()
    noting.asked.clear()
    fitted.report.to_dict()
    assert fitted.at(79).messages == fit(messages, 79, counter=words_counter()).messages
    assert noting.asked == []
    fitted.count_all()
    assert sorted(noting.asked) == sorted(set(texts) - counted)


def test_a_counter_that_fails_is_named_with_the_place() -> None:
    """By the full way, whichever message it fails on."""

    def count(text: str) -> int:
        if text == "bad":
            raise RuntimeError("no")
        return len(text.split())

    for at in range(6):
        messages = talk("s3 u1 a20 u1 a20 a20")
        messages[at] = {**messages[at], "content": "bad"}
        counter = TextCounter(count, name="failing", framing=FRAMING)
        assert quick_way(messages, 90, counter=counter) is None
        with pytest.raises(CountingError) as caught:
            fit(messages, 90, counter=counter)
        assert (caught.value.index, caught.value.counter) == (at, "failing")


def test_a_message_that_cannot_be_read_is_named_with_the_place() -> None:
    """By the full way."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    messages = [*talk("s3 u1 a20 u1"), {"role": "assistant", "content": "w", "deep": deep}]
    assert quick_way(messages, 90, counter=WORDS) is None
    with pytest.raises(FormatError) as caught:
        fit(messages, 90, counter=WORDS)
    with pytest.raises(FormatError) as expected:
        full_way(messages, 90, counter=WORDS)
    assert (str(caught.value), caught.value.path) == (str(expected.value), expected.value.path)
    assert caught.value.path == "messages[4]"


def test_an_interrupt_passes_through() -> None:
    """It is no failure of the counter's."""

    def count(text: str) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(PLAIN, 40, counter=TextCounter(count, name="stopped", framing=FRAMING))


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ({}, True),
        ({"results_are_messages": False}, False),
        ({"users_stand_alone": False}, False),
        ({"binds_messages": True}, False),
    ],
)
def test_only_a_wire_form_whose_units_are_in_one_piece_is_decided_at_once(
    changed: dict[str, bool], counts: bool
) -> None:
    """And that counts while it reads."""
    form: Any = OpenAIChat()  # one of its own: a copy of a form that has a name is the form
    form.rules = replace(form.rules, **changed)
    assert _counts_units(form) is counts
    assert not _counts_units(ToyFormat())
    assert formats()


# -- properties

STEPS = (
    *(
        "u0",
        "u1",
        "u1",
        "u2",
        "u9",
        "a5",
        "a20",
        "a30",
        "s5",
        "cA rA9",
        "cA rA1",
        "cA,B rB9 rA3",
        "cA,B,C rA2 rB2 rC2",
    ),
    *("cA rA9", "cA rA1", "cA,B rB9 rA3"),
)
BROKEN = ("cA", "rA4", "rZ2", "cA u1 rA3", "cA rA3 rA2", "cA,B rA3")


@st.composite
def chats(draw: st.DrawFn, *, steps: tuple[str, ...] = STEPS) -> list[Any]:
    """Make a chat of short user messages; the newest is mostly the user's or a tool's."""
    head = draw(st.sampled_from(("", "s3", "s3 d2")))
    body = draw(st.lists(st.sampled_from(steps), min_size=1, max_size=24))
    tail = draw(st.sampled_from(("u1", "u1 a9", "u1 cA rA9", "u1 cA", "u1 a9 cA,B rA3 rB9 a2", "")))
    return talk(" ".join((head, *body, tail)))


def room_for(messages: list[Any]) -> st.SearchStrategy[int]:
    """Draw a budget up to a little more than all."""
    return st.integers(1, WORDS.count(messages) + 5)


@given(chats(), st.data())
@settings(max_examples=settings.default.max_examples * 5)
def test_both_ways_agree_on_tidy_chats(messages: list[Any], data: st.DataObject) -> None:
    """In everything that can be seen, at any budget, and at another one after that."""
    agree(messages, data.draw(room_for(messages)), counter=WORDS, others=(data.draw(room_for(messages)),))


@given(chats(steps=(*STEPS, *BROKEN)), st.data())
@settings(max_examples=settings.default.max_examples * 5)
def test_both_ways_agree_on_broken_chats(messages: list[Any], data: st.DataObject) -> None:
    """What is broken is seen where it matters."""
    agree(messages, data.draw(room_for(messages)), counter=WORDS, others=(data.draw(room_for(messages)),))


@given(
    st.one_of(conversations(), valid_conversations()),
    st.sampled_from((WORDS, EstimateCounter(), counter_for("gpt-4o"))),
    st.data(),
)
@settings(max_examples=settings.default.max_examples * 3)
def test_both_ways_agree_on_conversations_nobody_would_write(
    messages: list[Any], counter: Any, data: st.DataObject
) -> None:
    """Contents of every shape, ids used again, texts in many scripts."""
    agree(messages, data.draw(limits(messages, counter)), counter=counter)


def test_both_ways_agree_on_generated_conversations() -> None:
    """Those that users of `trimtab.testing` get, valid or not, at ten budgets each; many go the quick way."""
    taken = 0
    for valid in (False, True):
        for messages in testing.conversations(60, seed=3, valid=valid, max_messages=40):
            whole = WORDS.count(messages)
            for part in range(1, 11):
                taken += agree(messages, max(1, whole * part // 10), counter=WORDS)
    assert taken > 100


def test_every_budget_of_a_chat_gives_the_same() -> None:
    """From nothing fits to all does, and the quick way ends where what must stay does not fit."""
    messages = talk("s3 u9 a5 cA rA9 u1 a9 cA,B rA3 rB9 a2 u1 a9")
    taken = [agree(messages, budget, counter=WORDS) for budget in range(1, WORDS.count(messages) + 2)]
    first = taken.index(True)
    assert all(taken[first:])
    assert first < 30


# -- real conversations

EVICTING = 0.97
"""At least this part of the calls that have to evict go the quick way."""


@pytest.mark.parametrize("name", SOURCES)
def test_both_ways_agree_on_real_conversations(data_dir: Path, name: str) -> None:
    """At six budgets, under o200k and under the estimate."""
    taken = 0
    for messages in conversations_of(data_dir, name):
        for counter in (counter_for("gpt-4o"), EstimateCounter()):
            whole = counter.count(messages)
            for percent in (10, 35, 60, 85, 99, 100):
                taken += agree(
                    messages, max(1, whole * percent // 100), counter=counter, others=(whole // 2,)
                )
    assert taken


def test_both_ways_agree_on_the_calls_of_a_coding_session(data_dir: Path) -> None:
    """What each model call was given, at two budgets."""
    messages = coding_session(data_dir)
    counter = counter_for("gpt-4o")
    calls = [messages[:at] for at, message in enumerate(messages) if at and message["role"] == "assistant"]
    for budget in (8_000, 32_000):
        taken = sum(agree(given, budget, counter=counter) for given in calls[::3])
        assert taken


def test_the_calls_of_a_long_chat_go_the_quick_way(data_dir: Path) -> None:
    """Nearly all of them: an agent's chats one behind the other, what each model call was given."""
    lines = (data_dir / "tau_airline_gpt4o.jsonl").read_text(encoding="utf-8").splitlines()
    chats = [json.loads(line)["messages"] for line in lines[:12]]
    messages = [chats[0][0], *(message for chat in chats for message in chat if message["role"] != "system")]
    counter = counter_for("gpt-4o")
    calls = [messages[:at] for at, message in enumerate(messages) if at and message["role"] == "assistant"]
    for budget in (4_000, 8_000):
        evicting = [given for given in calls if counter.count(given) > budget]
        assert len(evicting) > 20
        taken = sum(agree(given, budget, counter=counter) for given in evicting)
        assert taken >= EVICTING * len(evicting)


def test_what_cannot_fit_is_the_full_ways_error() -> None:
    """With its numbers and its attempt."""
    with pytest.raises(BudgetExceededError) as caught:
        fit(talk("s9 u1 a9"), 12, counter=WORDS)
    assert caught.value.attempt is not None
    assert isinstance(caught.value.attempt._plan, FitPlan)
