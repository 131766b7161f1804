"""A provider's order is kept up: nothing stands where it would be refused, unless it stood there before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.properties.toy_format import ToyFormat, answers, asks, said, words
from trimtab import (
    BudgetExceededError,
    Cascade,
    CharCounter,
    Context,
    PriorityBased,
    SlidingWindow,
    TruncateText,
    fit,
    validate,
)
from trimtab.conversation import repair
from trimtab.errors import InvalidHistoryError
from trimtab.strategies import DropNewest, EvictionRequest, EvictionResult, Insertion, Strategy, Summarize
from trimtab.testing import WordCounter

TOY = ToyFormat()
COUNTER = WordCounter(format=TOY)


def user(text: str = "hi") -> dict[str, Any]:
    """Make words of the user."""
    return said("user", words(text))


def model(text: str = "ok") -> dict[str, Any]:
    """Make words of the model."""
    return said("assistant", words(text))


def calls(call_id: str) -> dict[str, Any]:
    """Make a call."""
    return said("assistant", asks(call_id))


def prefers(*texts: str) -> PriorityBased:
    """Score messages with one of these texts above all others."""
    return PriorityBased(score=lambda message, place: float(message["parts"][0].get("text") in texts))


def reasons(report: Any) -> dict[int, str]:
    """Map what left to why."""
    return {row.index: row.reason for row in report.messages if row.fate == "evicted"}


def test_an_answer_is_weighed_with_the_question_it_cannot_be_without() -> None:
    """The provider would refuse it as the first, so that both stay or both are over the limit."""
    messages = [user("one two"), model("three"), user("four"), model("five")]
    messages.insert(2, model("more"))
    fitted = fit(messages, 4, counter=COUNTER, format=TOY, strategy=prefers("three"))
    assert fitted.messages == [messages[0], *messages[3:]]
    assert reasons(fitted.report) == {1: "over_limit", 2: "over_limit"}
    fitted = fit(messages, 5, counter=COUNTER, format=TOY, strategy=prefers("three"))
    assert fitted.messages == [*messages[:2], *messages[3:]]
    fitted = fit(messages, 3, counter=COUNTER, format=TOY, strategy=prefers("three"))
    assert fitted.messages == messages[3:]
    assert reasons(fitted.report) == {0: "over_limit", 1: "over_limit", 2: "over_limit"}
    assert fitted.report.tokens_after == COUNTER.count(fitted.messages) == 2


def test_what_stood_there_before_stays() -> None:
    """A conversation that begins with the model is the caller's fault; listed, and not made worse."""
    messages = [model("zero"), user("one two"), model("three"), user("four"), model("five")]
    fitted = fit(messages, 4, counter=COUNTER, format=TOY, strategy=prefers("zero", "three"))
    assert fitted.messages == [messages[0], messages[2], *messages[3:]]
    assert [found.rule for found in fitted.report.violations] == ["wrong_order"]
    assert [found.rule for found in validate(messages, format=TOY)] == ["wrong_order"]
    assert validate(messages[1:], format=TOY) == []


def test_a_pinned_answer_holds_the_message_that_opens_its_turn() -> None:
    """Without it the pinned one could not be sent."""
    messages = [user("one two"), model("three"), user("four five"), model("six"), user("seven")]
    fitted = fit(messages, 4, counter=COUNTER, format=TOY, pin=[1], strategy=SlidingWindow())
    assert fitted.messages == [messages[0], messages[1], messages[4]]
    with pytest.raises(BudgetExceededError) as raised:
        fit(messages, 3, counter=COUNTER, format=TOY, pin=[1], strategy=SlidingWindow())
    assert raised.value.needed_tokens == 4


def test_a_unit_that_cannot_lead_leaves_whole() -> None:
    """Call and result go together; the user's own words beside the result stay."""
    shared = said("user", answers("a", "one"), words("two"))
    messages = [user("x y z"), calls("a"), shared, model("three"), user("four")]
    fitted = fit(messages, 5, counter=COUNTER, format=TOY, strategy=prefers())
    assert validate(fitted.messages, format=TOY) == []
    assert fitted.messages[0]["role"] == "user"


def test_a_callback_cannot_leave_what_cannot_lead() -> None:
    """It removed the question; the answer to it leaves too."""
    messages = [user("one"), model("two"), user("three"), model("four")]
    fitted = fit(messages, 99, counter=COUNTER, format=TOY, on_trim=lambda ctx: ctx.remove(0))
    assert fitted.messages == messages[2:]
    assert reasons(fitted.report) == {0: "callback", 1: "cannot_lead"}


def test_a_call_stays_behind_the_text_it_stood_behind_from_the_start() -> None:
    """Gemini refuses that where it is new; it is left as it was, at the beginning of the list, too."""
    counter = WordCounter(format="gemini")

    def turn(number: int) -> list[Any]:
        call = {"id": f"c{number}", "name": "f"}
        called = {"role": "model", "parts": [{"functionCall": {**call, "args": {}}}]}
        response = {**call, "response": {"result": "a b c"}}
        return [called, {"role": "user", "parts": [{"functionResponse": response}]}]

    text = {"role": "model", "parts": [{"text": "one two three"}]}
    messages = [text, *turn(1), *turn(2)]
    fitted = fit(messages, 99, counter=counter, format="gemini", on_trim=lambda ctx: ctx.remove(3))
    assert fitted.messages == messages[:3]
    messages = [text, {"role": "user", "parts": [{"text": "four"}]}, *turn(1)]
    fitted = fit(messages, 99, counter=counter, format="gemini", on_trim=lambda ctx: ctx.remove(1))
    assert fitted.messages == [text]
    assert reasons(fitted.report) == {1: "callback", 2: "cannot_lead", 3: "cannot_lead"}


def test_all_that_an_open_call_may_not_stand_behind_leaves() -> None:
    """Gemini takes no call behind text of the model where that is new; there are three of these."""
    counter = WordCounter(format="gemini")
    asked, *told = [{"role": "model" if at else "user", "parts": [{"text": str(at)}]} for at in range(4)]
    call = {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]}
    messages = [asked, *told, {"role": "user", "parts": [{"text": "go on"}]}, call]
    fitted = fit(messages, 99, counter=counter, format="gemini", on_trim=lambda ctx: ctx.remove(4))
    assert fitted.messages == [asked, call]
    assert reasons(fitted.report) == {4: "callback", **dict.fromkeys((1, 2, 3), "cannot_lead")}


def test_system_text_from_within_does_not_come_to_lead() -> None:
    """Anthropic takes it behind what somebody said, and no request that begins with it."""
    counter = WordCounter(format="anthropic")
    roles = ("user", "system", "user", "assistant", "user")
    messages = [{"role": role, "content": f"text {at}"} for at, role in enumerate(roles)]
    fitted = fit(messages, 99, counter=counter, format="anthropic", on_trim=lambda ctx: ctx.remove(0))
    assert fitted.messages == messages[2:]
    assert reasons(fitted.report) == {0: "callback", 1: "cannot_lead"}


class PutsIn(Strategy):
    """Keeps the first two units and the last, and puts a message in place of the others."""

    name = "puts_in"

    def evict(self, request: EvictionRequest) -> EvictionResult:
        """Keep three."""
        first, second, *others, last = request.units
        gone = frozenset(index for unit in others for index in unit.indices)
        note = Insertion(at=min(gone), message={"role": "user", "content": "so far"}, covers=gone, why="n")
        return EvictionResult(kept=(first, second, last), insertions=(note,), fits=True)


def test_nothing_leaves_for_what_a_strategy_puts_in() -> None:
    """Anthropic refuses the user behind system text, where that stood at first, too: the report tells."""
    roles = ("user", "system", "user", "assistant", "user")
    messages = [{"role": role, "content": "a b c"} for role in roles]
    counter = WordCounter(format="anthropic")
    fitted = fit(messages, 14, counter=counter, format="anthropic", strategy=PutsIn())
    assert fitted.messages == [*messages[:2], {"role": "user", "content": "so far"}, messages[4]]
    assert [found.rule for found in fitted.report.violations] == ["wrong_order"]


def test_a_summary_leads() -> None:
    """A message of the user's role stands where the evicted ones stood, so nothing else has to leave."""
    messages = [user("one two three"), model("a b c d e f g h i j k l"), user("four"), model("five")]
    strategy = Summarize(lambda messages: "so far", max_summary_tokens=9)
    fitted = fit(messages, 11, counter=COUNTER, format=TOY, strategy=strategy)
    assert "cannot_lead" not in reasons(fitted.report).values()
    assert fitted.messages[0]["role"] == "user"


def test_blocks_that_meet_are_in_order_too() -> None:
    """The documents left; the history that followed them begins with the model, and that cannot lead."""
    context = Context(8, counter=COUNTER, format=TOY)
    context.add("documents", [user("a b c d e f g")], priority=1, strategy=DropNewest())
    context.add("history", [model("one"), user("two"), model("three")], priority=2)
    context.add("question", [user("four five six")], priority=3)
    fitted = context.fit()
    assert [message["role"] for message in fitted.messages] == ["user", "assistant", "user"]
    assert reasons(fitted.report)[1] == "cannot_lead"
    assert fitted.report.tokens_after == COUNTER.count(fitted.messages)
    assert fitted.report.blocks[1].freed_tokens == 1


def test_a_repair_takes_out_what_stands_wrong() -> None:
    """With its result, and without the words of the user that stand beside the result."""
    shared = said("user", answers("a", "one"), words("two"))
    mended = repair([calls("a"), shared, model("three")], format=TOY)
    assert mended.messages == [said("user", words("two")), model("three")]
    assert [(change.index, change.action, change.rule) for change in mended.changes] == [
        (0, "removed", "wrong_order"),
        (1, "edited", "wrong_order"),
    ]


def test_a_repair_leaves_what_comes_first_where_nothing_else_could() -> None:
    """No user's message can be invented; `validate` tells, and `fit` raises."""
    loop = [
        message for at in range(3) for message in (calls(f"c{at}"), said("user", answers(f"c{at}", "one")))
    ]
    mended = repair(loop, format=TOY)
    assert (mended.messages, mended.changes) == (loop, ())
    assert {found.rule for found in validate(loop, format=TOY)} == {"wrong_order"}
    with pytest.raises(InvalidHistoryError, match=r"cannot repair: messages\[0\]"):
        fit(loop, 100, counter=COUNTER, format=TOY, repair=True)
    assert repair([*loop, user("two")], format=TOY).messages == [user("two")]


GEMINI_CALL = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}


def gemini(role: str, letters: int) -> dict[str, Any]:
    """Make a content of Gemini's."""
    return {"role": role, "parts": [{"text": "w" * letters}]}


def is_told_right(ask: Callable[[], Any], budget: int) -> bool:
    """Tell whether a request is within its budget, or is said to need more than that."""
    try:
        tokens: int = ask().report.tokens_after
    except BudgetExceededError as error:
        return (error.needed_tokens or 0) > budget
    return tokens <= budget


MODEL_FIRST = [gemini("model", 60), gemini("user", 60), GEMINI_CALL, gemini("user", 1)]
USER_FIRST = [gemini("user", 1), *MODEL_FIRST]
CALL_IN_FRONT = [gemini("model", 1), gemini("user", 30), GEMINI_CALL, gemini("model", 60)]


@pytest.mark.parametrize("messages", [MODEL_FIRST, USER_FIRST, CALL_IN_FRONT])
@pytest.mark.parametrize("behind", [(), (TruncateText(),)])
def test_what_leaves_for_the_order_is_not_needed(
    messages: list[dict[str, Any]], behind: tuple[Strategy, ...]
) -> None:
    """A strategy keeps what the provider then refuses: where there is room without it, nothing is refused."""
    strategy = Cascade(SlidingWindow(protect_roles=("assistant",)), *behind)
    ask = partial(fit, messages, counter=CharCounter(1, format="gemini"), strategy=strategy)
    assert all(is_told_right(partial(ask, budget), budget) for budget in range(1, 160))


def test_in_a_context_what_leaves_for_the_order_is_not_needed_either() -> None:
    """The block "needs at least 1 tokens and 22 remain for it, -21 too few"."""
    counter, strategy = CharCounter(1, format="gemini"), SlidingWindow(protect_roles=("assistant",))
    for budget in range(31, 100):
        context = Context(budget, counter=counter).add("history", CALL_IN_FRONT, strategy=strategy)
        context.add("question", [gemini("user", 30)])
        assert is_told_right(context.fit, budget)
