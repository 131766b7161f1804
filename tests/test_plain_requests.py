"""A request of messages, a budget and a counter, which nearly every call is: tables of what stays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import assistant, call, places, result, system, talk, user
from tests.properties.cases import DEFAULT
from trimtab import Budget, BudgetExceededError, ContextError, EstimateCounter, Fitted, fit
from trimtab.counting import TextCounter
from trimtab.errors import CountingError, FormatError
from trimtab.models import Framing

FRAMING = Framing(
    per_request_tokens=3,
    per_message_tokens=0,
    roles_counted=False,
    per_name_tokens=None,
    per_call_tokens=0,
    call_name_factor=1,
    parallel_calls_tokens=0,
)


def words_counter(framing: Framing = FRAMING) -> TextCounter:
    """Make a counter of words, 3 for the request; a call without text has 2."""
    return TextCounter(lambda text: len(text.split()), name="words", framing=framing)


WORDS = words_counter()
PLAIN = talk("s3 u1 a20 cA rA9 a3 u1 a20")


def outcome(fitting: Callable[[], Fitted[Any]], messages: list[Any]) -> Any:
    """Give what can be seen of a fit, or of the error in place of one."""
    try:
        return seen(fitting(), messages)
    except BudgetExceededError as error:
        numbers = error.needed_tokens, error.limit_tokens, error.block
        return str(error), numbers, seen(cast("Fitted[Any]", error.attempt), messages)
    except ContextError as error:
        return type(error), str(error)


def seen(fitted: Fitted[Any], messages: list[Any]) -> Any:
    """Give the report and the output: the caller's own objects, and in full what was edited."""
    own = set(map(id, messages))
    output = [id(message) if id(message) in own else message for message in fitted.messages]
    return output, fitted.report.to_dict()


def end(fitting: Callable[[], Fitted[Any]]) -> Any:
    """Give messages and size, or the numbers of the error."""
    try:
        fitted = fitting()
    except BudgetExceededError as error:
        return error.needed_tokens, error.limit_tokens
    return fitted.messages, fitted.report.tokens_after


def same_outcome(messages: list[Any], budget: Any, **asked: Any) -> bool:
    """Tell whether a request comes to one end with the default strategy left out and written out."""
    mine = outcome(lambda: fit(messages, budget, **asked), messages)
    return bool(mine == outcome(lambda: fit(messages, budget, strategy=DEFAULT, **asked), messages))


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
def test_what_stays_of_a_plain_request(line: str, budget: int, kept: str, tokens: int) -> None:
    """The request costs 3, so the room is 3 less; the size is exact."""
    messages = talk(line)
    fitted = fit(messages, budget, counter=WORDS)
    assert places(fitted.messages, messages) == [int(place) for place in kept.split()]
    assert fitted.report.tokens_after == tokens == WORDS.count(fitted.messages)
    for other in (budget - 1, budget + 7, tokens, 10_000):
        again = end(lambda other=other: fitted.at(other))
        assert again == end(lambda other=other: fit(messages, other, counter=WORDS))
    assert same_outcome(messages, budget, counter=WORDS)


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
def test_what_is_odd_ends_as_with_the_default_written_out(line: str, budget: int) -> None:
    """The same answer, or the same error."""
    assert same_outcome(talk(line), budget, counter=WORDS)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"budget": Budget(140, output_reserve=4, margin=6)}, id="budget"),
        pytest.param({"format": "openai_chat"}, id="format-by-name"),
        pytest.param({"model": "gpt-4o"}, id="model-beside-the-counter"),
        pytest.param({"model": "no-such-model"}, id="unknown-model-beside-the-counter"),
        pytest.param({"model": "gpt-4o", "counter": None}, id="counter-of-the-model"),
        pytest.param({"counter": None}, id="estimate"),
        pytest.param({"counter": EstimateCounter()}, id="estimate-given"),
        pytest.param({"pin": (), "pending_calls": (), "repair": False, "strict": False}, id="defaults"),
    ],
)
def test_a_plain_request_may_be_asked_for_in_several_ways(asked: dict[str, Any]) -> None:
    """All of them evict, and come to one end."""
    messages = talk("s3 " + "u1 a20 cA rA9 a3 " * 6 + "u1 a20")
    given = {"budget": 130, "counter": WORDS, **asked}
    budget = given.pop("budget")
    assert len(fit(messages, budget, **given).messages) < len(messages)
    assert same_outcome(messages, budget, **given)


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
def test_messages_of_any_shape_may_stand_anywhere(shape: dict[str, Any], at: int) -> None:
    """At the front, before the cut, at it, and newest."""
    messages = talk("s3 u1 a20 a20 u1 a20")
    messages.insert(at + 1, shape)
    for budget in range(1, 90, 4):
        assert same_outcome(messages, budget, counter=WORDS)


def test_an_entry_that_is_no_dict_may_stand_anywhere() -> None:
    """At the front and among results, too."""
    lead = SimpleNamespace(model_dump=lambda **_: system("w w w"))
    messages = [lead, *talk("u1 a20 u1 a20")]
    assert places(fit(messages, 30, counter=WORDS).messages, messages) == [0, 3, 4]
    answer = SimpleNamespace(model_dump=lambda **_: result("A", "w"))
    assert same_outcome([*talk("u1 cA,B"), answer, *talk("rB3 u1 a20")], 25, counter=WORDS)
    thing = SimpleNamespace(model_dump=lambda **_: assistant())
    assert same_outcome([system(), user(), thing, *talk("a9 u1 a20")], 30, counter=WORDS)


def test_the_callers_list_may_grow_before_the_report_is_read() -> None:
    """The messages are those of the call."""
    messages = talk("s3 u1 a20 u1 a20")
    fitted = fit(messages, 40, counter=WORDS)
    expected = fit(list(messages), 40, counter=WORDS).report.to_dict()
    messages.append(user("and"))
    messages[0] = system("other")
    assert fitted.report.to_dict() == expected
    assert fitted.report.total_message_count == 5
    assert len(fitted.at(99).messages) == 5
    fitted.messages.clear()
    assert len(fitted.at(99).messages) == 5


def test_a_copy_holds_all_there_is_to_read() -> None:
    """Messages, report and request."""
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
    """Whichever message it fails on."""

    def count(text: str) -> int:
        if text == "bad":
            raise RuntimeError("no")
        return len(text.split())

    for at in range(6):
        messages = talk("s3 u1 a20 u1 a20 a20")
        messages[at] = {**messages[at], "content": "bad"}
        counter = TextCounter(count, name="failing", framing=FRAMING)
        with pytest.raises(CountingError) as caught:
            fit(messages, 90, counter=counter)
        assert (caught.value.index, caught.value.counter) == (at, "failing")


def test_a_message_that_cannot_be_read_is_named_with_the_place() -> None:
    """Nested deeper than Python recurses into."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    messages = [*talk("s3 u1 a20 u1"), {"role": "assistant", "content": "w", "deep": deep}]
    with pytest.raises(FormatError) as caught:
        fit(messages, 90, counter=WORDS)
    assert caught.value.path == "messages[4]"


def test_an_interrupt_passes_through() -> None:
    """It is no failure of the counter's."""

    def count(text: str) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(PLAIN, 40, counter=TextCounter(count, name="stopped", framing=FRAMING))


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


@given(st.one_of(chats(), chats(steps=(*STEPS, *BROKEN))), st.data())
def test_a_chat_ends_as_with_the_default_written_out(messages: list[Any], data: st.DataObject) -> None:
    """Tidy or broken, at any budget, and at another one after that."""
    budget, other = data.draw(room_for(messages)), data.draw(room_for(messages))
    assert same_outcome(messages, budget, counter=WORDS)
    try:
        fitted = fit(messages, budget, counter=WORDS)
    except ContextError:
        return
    assert end(lambda: fitted.at(other)) == end(lambda: fit(messages, other, counter=WORDS))
