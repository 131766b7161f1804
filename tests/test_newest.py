"""The newest unit in `fit`: cut behind every strategy that has done all it can, or left as it is."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest

from tests.builders import assistant, call, result, talk, user, without_address, words
from tests.chat_in_forms import said_in
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    ConfigurationError,
    Context,
    Drop,
    DropNewest,
    Fitted,
    PriorityBased,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
    afit,
    fit,
    validate,
)
from trimtab.counting import CharCounter
from trimtab.strategies import ClampResults, Edit, EvictionRequest, EvictionResult, Relevant, Strategy
from trimtab.testing import WordCounter, check_strategy

WORDS = WordCounter()
STEPS = "s1 u2 cA rA3 a2 u4 cB rB3 cC rC90"
"""An agent whose last tool answered more than any room here has."""


class Own:
    """A strategy of a user's, which lets everything go that may."""

    name = "own"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep what must stay."""
        kept = [unit for unit in request.units if request.stays(unit)]
        return EvictionResult(kept=kept, fits=request.fits(kept))


class OwnWord(Own):
    """The same, and nothing is tried behind it."""

    has_last_word = True


class Marked(Own):
    """The same, which also changes the newest result by itself."""

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Put its own words in front of the result."""
        kept = [unit for unit in request.units if request.stays(unit)]
        at = request.history.count - 1
        texts = {slot.path: "seen: " + slot.text for slot in request.texts(at)}
        return EvictionResult(kept=kept, fits=False, edits=[Edit(index=at, texts=texts)])


STRATEGIES: list[Strategy | str] = [
    "sliding_window",
    "cheapest",
    "relevant",
    "priority_based",
    "drop",
    "drop_newest",
    "clear_tool_results",
    SlidingWindow(target_ratio=0.5, keep_turns=True),
    SlidingWindow(keep_cached=True),
    SlidingWindow(min_messages=3),
    ClampResults(max_tokens=80),
    Summarize(lambda messages: "s"),
    Cascade(ClearToolResults(keep_results=1), SlidingWindow()),
    Cascade(Strict(), DropNewest()),
    Own(),
    Marked(),
]
REFUSING: list[Strategy | str] = [
    "strict",
    Cascade(SlidingWindow(), Strict()),
    Cascade(Cascade(Drop(), Strict())),
    Summarize(lambda messages: "s", fallback=Strict()),
    OwnWord(),
]
FORMS = ("openai_chat", "anthropic", "gemini", "openai_responses", "bedrock")


def written(line: str, form: str) -> list[dict[str, Any]]:
    """Write a conversation in a wire form."""
    messages = talk(line)
    if form == "openai_responses":
        return [
            {"type": "function_call_output", "call_id": one["tool_call_id"], "output": one["content"]}
            if one["role"] == "tool"
            else {
                "type": "function_call",
                "call_id": one["tool_calls"][0]["id"],
                "name": "f",
                "arguments": "{}",
            }
            if "tool_calls" in one
            else {"role": one["role"], "content": one["content"]}
            for one in messages
        ]
    return messages if form == "openai_chat" else said_in(form, messages)


def lets_nothing_go(strategy: Any) -> bool:
    """Tell whether a strategy changes results and nothing else."""
    return isinstance(strategy, ClampResults) or strategy == "clear_tool_results"


def newest_row(fitted: Fitted[Any]) -> tuple[str, str | None, str]:
    """Say what became of the last message."""
    row = fitted.report.messages[-1]
    return row.fate, row.reason, row.state


def is_cut(fitted: Fitted[Any]) -> bool:
    """Tell whether the newest result bears our mark."""
    return "[text cut by trimtab" in str(fitted.messages[-1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=without_address)
def test_a_huge_newest_result_is_cut_behind_every_strategy(strategy: Any, form: str) -> None:
    """To what there is room for, valid, and the report says so."""
    messages = written(STEPS, form)
    counter = WordCounter(format=form)
    for budget in (50, 60) if lets_nothing_go(strategy) else (20, 25, 45):
        fitted = fit(messages, budget, counter=counter, strategy=strategy, format=form)
        assert is_cut(fitted), budget
        assert fitted.report.tokens_after <= budget
        assert counter.count(fitted.messages) == fitted.report.tokens_after
        assert newest_row(fitted) == ("changed", "over_limit", "held")
        assert fitted.report.blocks[0].actions[-1] == "shortened"
        assert not [one for one in validate(fitted.messages, format=form) if one.fault]


@pytest.mark.parametrize(
    "strategy", [one for one in STRATEGIES[:-1] if not lets_nothing_go(one)], ids=without_address
)
def test_the_room_is_used_as_the_default_uses_it(strategy: Any) -> None:
    """Nothing else leaves room: the last token is taken, in an async fit and at another budget, too."""
    messages = talk("u9 a9 u1 cA rA90")
    for budget in (12, 30, 50):
        plain = fit(messages, budget, counter=WORDS)
        fitted = fit(messages, budget, counter=WORDS, strategy=strategy)
        again = fit(messages, 80, counter=WORDS, strategy=strategy).at(budget)
        assert fitted.messages[-1] == again.messages[-1]
        if fitted.positions == plain.positions:
            assert fitted.messages == plain.messages
        assert budget - 1 <= fitted.report.tokens_after <= budget


@pytest.mark.parametrize("strategy", REFUSING, ids=without_address)
def test_a_strategy_that_has_the_last_word_refuses(strategy: Any) -> None:
    """Strict, wherever it is asked last, and one of a user's that says so."""
    with pytest.raises(BudgetExceededError) as caught:
        fit(talk(STEPS), 25, counter=WORDS, strategy=strategy)
    assert caught.value.needed_tokens is not None
    assert caught.value.needed_tokens > 90


@pytest.mark.parametrize("strategy", [None, "agent", TruncateText(), *STRATEGIES[:-1]], ids=without_address)
def test_the_newest_unit_may_be_left_alone(strategy: Any) -> None:
    """As if it was pinned, by every strategy; and it stays whole where there is room."""
    messages = talk(STEPS)
    with pytest.raises(BudgetExceededError):
        fit(messages, 90, counter=WORDS, strategy=strategy, cut_newest=False)
    if lets_nothing_go(strategy):
        return
    fitted = fit(messages, 100, counter=WORDS, strategy=strategy, cut_newest=False)
    assert fitted.messages[-1] is messages[-1]
    assert newest_row(fitted) == ("kept", None, "pinned")


def test_a_steady_fit_leaves_it_alone_too() -> None:
    """And one whose callback takes the newest out: what is then the newest."""
    with pytest.raises(BudgetExceededError):
        fit(talk(STEPS), 90, counter=WORDS, steady=True, cut_newest=False)
    messages = talk("u1 a2 u1 cA rA30 cB rB9")
    for cut, room in ((True, 12), (False, 40)):
        fitted = fit(
            messages, room, counter=WORDS, on_trim=lambda context: context.remove([5, 6]), cut_newest=cut
        )
        assert is_cut(fitted) is cut
    with pytest.raises(BudgetExceededError):
        fit(messages, 20, counter=WORDS, on_trim=lambda context: context.remove([5, 6]), cut_newest=False)


def test_a_newest_result_that_a_repair_moved_is_left_alone_too() -> None:
    """It stands behind its call then, and not last."""
    messages = [user("q"), call("A"), user("and?"), result("A", words(30))]
    for cut, system in product((True, False), (None, "be brief")):
        try:
            fitted = fit(messages, 20, counter=WORDS, repair=True, cut_newest=cut, system=system)
        except BudgetExceededError:
            assert not cut
        else:
            assert cut
            assert "[text cut by trimtab" in str(fitted.messages)


def test_what_stands_behind_a_newest_result_that_a_repair_moved_is_cut_for_it() -> None:
    """Also where a callback takes out what stands before both."""
    messages = [user("q"), call("A"), user("and?"), assistant(words(30)), result("A", words(30))]
    fitted = fit(
        messages,
        50,
        counter=WORDS,
        strategy=TruncateText(),
        repair=True,
        on_trim=lambda context: context.remove(0),
        cut_newest=False,
    )
    assert fitted.positions == [1, 4, 2, 3]
    assert fitted.changed == [3]


@pytest.mark.parametrize("wrong", [0, "no", None])
def test_what_is_no_flag_is_refused(wrong: Any) -> None:
    """True or False."""
    with pytest.raises(ConfigurationError, match="cut_newest"):
        fit(talk("u1"), 9, counter=WORDS, cut_newest=wrong)


@pytest.mark.parametrize("strategy", ["sliding_window", "drop", Own()], ids=without_address)
def test_what_the_user_wrote_last_and_pins_are_never_cut(strategy: Any) -> None:
    """They are refused as ever, and the error counts the newest at its shortest."""
    with pytest.raises(BudgetExceededError) as caught:
        fit(talk("u1 a2 u90"), 20, counter=WORDS, strategy=strategy)
    assert caught.value.needed_tokens == 90
    with pytest.raises(BudgetExceededError) as caught:
        fit(talk("u30 cA rA90"), 20, counter=WORDS, strategy=strategy)
    least = fit(talk("u30 cA rA90"), caught.value.needed_tokens, counter=WORDS, strategy=strategy)
    assert least.report.tokens_after == caught.value.needed_tokens < 40
    with pytest.raises(BudgetExceededError):
        fit(talk(STEPS), 45, counter=WORDS, strategy=strategy, pin=[-1])


def test_parallel_results_give_way_to_the_length_of_the_next() -> None:
    """The small one stays whole."""
    messages = [user("q"), call("A", "B"), result("A", words(60)), result("B", words(5))]
    fitted = fit(messages, 40, counter=WORDS, strategy="cheapest")
    assert fitted.messages[3] is messages[3]
    assert fitted.positions == [0, 1, 2, 3]


def test_open_calls_are_held_too() -> None:
    """The words beside a call whose result is still to come."""
    messages = [user("q"), call("A", text=words(60))]
    fitted = fit(messages, 20, counter=WORDS, strategy=SlidingWindow())
    assert is_cut(fitted) or "[text cut by trimtab" in str(fitted.messages)


def test_a_strategy_that_lets_nothing_leave_is_helped_no_further() -> None:
    """The old messages are its own to let go."""
    with pytest.raises(BudgetExceededError):
        fit(talk("u9 a9 u9 a9 u1 cA rA30"), 30, counter=WORDS, strategy=ClearToolResults())


@pytest.mark.parametrize(
    "counter", [WORDS, WORDS.count, CharCounter(3)], ids=["adds up", "black box", "chars"]
)
def test_any_counter_will_do(counter: Any) -> None:
    """Also one that counts whole lists."""
    fitted = fit(talk(STEPS), 60, counter=counter, strategy=PriorityBased())
    assert is_cut(fitted)
    assert fitted.report.tokens_after <= 60


def test_an_async_fit_cuts_it_alike() -> None:
    """And refuses alike."""
    fitted = asyncio.run(afit(talk(STEPS), 25, counter=WORDS, strategy=Relevant()))
    assert fitted.messages == fit(talk(STEPS), 25, counter=WORDS, strategy=Relevant()).messages
    with pytest.raises(BudgetExceededError):
        asyncio.run(afit(talk(STEPS), 25, counter=WORDS, strategy=Relevant(), cut_newest=False))


def test_a_block_of_a_context_is_cut_by_its_own_strategy_alone() -> None:
    """There nothing but pins and open calls has to stay: it becomes empty."""
    fitted = Context(50, counter=WORDS).add("history", talk(STEPS), strategy="sliding_window").fit()
    assert not is_cut(fitted) if fitted.messages else True
    assert fitted.report.messages[-1].fate == "evicted"


@pytest.mark.few(1)
@pytest.mark.parametrize("strategy", [Own(), OwnWord(), ClampResults(max_ratio=0.1)], ids=without_address)
def test_the_contract_of_strategies_knows_of_it(strategy: Strategy) -> None:
    """What does not fit by itself may do so in `fit`."""
    check_strategy(strategy, thrifty=False)


@pytest.mark.parametrize("form", FORMS)
def test_few_messages_are_read_for_it(form: str) -> None:
    """What is cut is what grouping everything cuts; a result of no call is no part of it."""

    class All(SlidingWindow):
        """Asked about all units."""

    for line in (STEPS, "u1 cA rA9 rZ5", "u1 a3 cA rZ9 rA5", "u1 cA rA9 a1 rZ50"):
        messages, counter = written(line, form), WordCounter(format=form)
        for budget in range(5, counter.count(messages)):
            told = []
            for strategy in (SlidingWindow(), All()):
                try:
                    told.append(
                        fit(messages, budget, counter=counter, strategy=strategy, format=form).messages
                    )
                except BudgetExceededError as error:
                    told.append([error.needed_tokens])
            assert told[0] == told[1], (line, budget)
