"""`ClearToolResults` keeps a prompt's prefix: alone, and with a window behind it (SPEC C7)."""

from __future__ import annotations

from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Message, call, result, talk, user, words
from tests.chat_in_forms import said_in
from tests.prices import common, price
from tests.test_near_cut import outcome
from tests.test_prompt_cache import airline, calls_of, coding, growing, replay
from trimtab import Cascade, ClearToolResults, SlidingWindow, TruncateText, counter_for, fit
from trimtab.strategies import EvictionRequest, EvictionResult
from trimtab.testing import WordCounter, eviction_request, group_all

CLEARED = ClearToolResults().placeholder
COUNTER = counter_for("gpt-4o")


def windows(clear: ClearToolResults | None, ratio: float) -> Cascade:
    """Make the cascade of the guide for agents, with clearing or without."""
    steps = (SlidingWindow(target_ratio=ratio), TruncateText())
    return Cascade(*steps) if clear is None else Cascade(clear, *steps)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("conversation", "messages", "budget", "keep"),
    [
        pytest.param(airline, 1_200, 8_000, 3, id="airline-8k"),
        pytest.param(airline, 1_200, 8_000, 2, id="airline-8k-keep-2"),
        pytest.param(coding, None, 8_000, 3, id="coding-8k"),
        pytest.param(coding, None, 32_000, 3, id="coding-32k"),
    ],
)
@pytest.mark.parametrize("ratio", [0.5, 0.7])
def test_clearing_before_strides_costs_no_more_than_strides_alone(
    data_dir: Path, conversation: Any, messages: int | None, budget: int, keep: int, ratio: float
) -> None:
    """At most 1.1 times their price, and the cut never moves back; it was 1.7 times before."""
    chat = conversation(data_dir)[:messages]
    found = []
    for clear in (None, ClearToolResults(keep_results=keep)):
        calls = replay(chat, budget=budget, strategy=windows(clear, ratio), counter=COUNTER)
        cuts = [cut for _, cut in calls]
        assert cuts == sorted(cuts)
        sent = [prompt for prompt, _ in calls]
        assert all(COUNTER.count(prompt) <= budget for prompt in sent[::9])
        found.append(price(sent, COUNTER.count_message) / len(sent))
    assert found[1] <= 1.1 * found[0]
    assert any(message.get("content") == CLEARED for prompt in sent for message in prompt)


def test_what_is_measured_here_can_fail(data_dir: Path) -> None:
    """Without strides the border of clearing moves on every call."""
    clear = ClearToolResults(target_ratio=1.0)
    chat, prices = airline(data_dir)[:600], []
    for strategy in (windows(None, 0.7), windows(clear, 0.7)):
        sent = [prompt for prompt, _ in replay(chat, budget=8_000, strategy=strategy, counter=COUNTER)]
        prices.append(price(sent, COUNTER.count_message) / len(sent))
    assert prices[1] > 1.3 * prices[0]


def test_a_plain_window_behind_it_keeps_the_prefix_too(data_dir: Path) -> None:
    """Clearing leaves room for a stride, so that the window behind it does not cut on each call."""
    chat, prices = airline(data_dir)[:800], []
    for strategy in (windows(None, 1.0), windows(ClearToolResults(), 1.0)):
        sent = [prompt for prompt, _ in replay(chat, budget=8_000, strategy=strategy, counter=COUNTER)]
        prices.append(price(sent, COUNTER.count_message) / len(sent))
    assert prices[1] < 0.6 * prices[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["openai_chat", "anthropic", "gemini", "bedrock"])
def test_the_prefix_stays_in_every_wire_form(data_dir: Path, form: str) -> None:
    """Of prompts of real chats at least 85 % begin like the one before, by messages' words."""
    chat = said_in(form, [one for one in airline(data_dir)[:500] if one["role"] != "system"])
    counter, sent, strategy = WordCounter(format=form), list[list[Any]](), windows(ClearToolResults(), 0.5)
    for at, message in enumerate(chat):
        if at and message["role"] in ("assistant", "model"):
            sent.append(fit(chat[:at], 3_000, counter=counter, format=form, strategy=strategy).messages)
    words_sent = reused = 0
    for before, after in pairwise(sent):
        if len(after) < len(chat) and after[0] is not chat[0]:
            sizes = [counter.count_message(one) for one in after]
            words_sent += sum(sizes)
            reused += sum(sizes[: common(before, after)])
    assert words_sent > 50_000
    assert reused / words_sent > 0.85


def steps_of(count: int, size: int = 20) -> list[Message]:
    """Make a chat of one question and tool calls, each with a result."""
    return [
        user("task"),
        *(one for at in range(count) for one in (call(f"c{at}"), result(f"c{at}", words(size)))),
    ]


def cleared_in(prompt: list[Message]) -> list[int]:
    """List which results of a prompt are cleared."""
    return [at for at, one in enumerate(prompt) if one["role"] == "tool" and one["content"] == "x"]


def test_alone_it_clears_in_strides() -> None:
    """Between two marks the same results are cleared on each call, and the border never moves back."""
    strategy = ClearToolResults(keep_results=1, placeholder="x")
    borders = []
    for count in range(20, 70):
        fitted = fit(steps_of(count), 400, counter=WordCounter(), strategy=strategy)
        assert fitted.report.tokens_after <= 400
        borders.append(max(cleared_in(fitted.messages), default=0))
    assert borders == sorted(borders)
    assert len(set(borders)) < 20
    exact = ClearToolResults(keep_results=1, placeholder="x", target_ratio=1.0)
    each = [
        max(cleared_in(fit(steps_of(count), 400, counter=WordCounter(), strategy=exact).messages), default=0)
        for count in range(20, 70)
    ]
    assert len(set(each)) > 45


def test_where_no_mark_makes_it_fit_as_few_are_cleared_as_must_be() -> None:
    """A mark among the newest results is none: the stride is halved, and in the end nothing more goes."""
    messages = talk("u1 cA rA90 cB rB5 cC rC5 u1")
    strategy = ClearToolResults(keep_results=2, placeholder="x")
    fitted = fit(messages, 100, counter=WordCounter(), strategy=strategy)
    assert cleared_in(fitted.messages) == [2]


def test_without_strides_as_few_are_cleared_before_a_window_as_must_be() -> None:
    """221 tokens into 202: a result of 20 words is cleared to one, and nothing leaves."""
    exact = ClearToolResults(keep_results=1, placeholder="x", target_ratio=1.0)
    strategy = Cascade(exact, SlidingWindow(target_ratio=0.7))
    sent = fit(steps_of(10), 202, counter=WordCounter(), strategy=strategy).messages
    assert cleared_in(sent) == [2]
    assert len(sent) == 21


def test_before_a_window_what_is_cleared_has_a_twentieth_of_the_room() -> None:
    """Of 1,000 tokens 950 are for what stands whole; 16 cleared steps of 3 fit into the rest, and no 17th."""
    strategy = Cascade(ClearToolResults(keep_results=1, placeholder="x"), SlidingWindow(target_ratio=0.7))
    whole = []
    for count in range(110, 200):
        messages = [user("do this task"), *steps_of(count)[1:]]
        sent = fit(messages, 1_000, counter=WordCounter(), strategy=strategy).messages
        cleared = cleared_in(sent)
        assert len(cleared) == 16
        whole.append(WordCounter().count(sent) - 16 * 3)
    assert 250 <= min(whole) < max(whole) <= 950
    assert len([1 for before, after in pairwise(whole) if after < before]) <= 5


@pytest.mark.parametrize(("whole_limit", "in_strides"), [(800, True), (801, False)])
def test_with_less_than_half_of_the_room_as_few_are_cleared_as_must_be(
    whole_limit: int, in_strides: bool
) -> None:
    """A stride of the whole budget is no measure for a block that others left little."""
    messages = steps_of(40)
    request = eviction_request(
        messages, 400, counter=WordCounter(), block=True, constant_limit_tokens=whole_limit
    )
    answer = ClearToolResults(keep_results=1, placeholder="x").evict(request)
    tokens, needed = WordCounter().count(messages), 0
    while tokens > 400:
        tokens, needed = tokens - 19, needed + 1
    assert (len(answer.edits) > needed) is in_strides
    assert len(answer.edits) >= needed


class FromThePlan:
    """A window of somebody else's, which cuts where the step before it says."""

    name = "from_the_plan"

    def __init__(self, *, follows_plan: bool) -> None:
        self.follows_plan = follows_plan
        self.cuts: list[int] = []

    def evict(self, request: EvictionRequest) -> EvictionResult:
        """Keep what begins at the cut or behind it."""
        self.cuts.append(request.planned_cut)
        kept = [one for one in request.units if one.first >= request.planned_cut or request.stays(one)]
        return EvictionResult(kept=kept, fits=request.fits(kept))


def test_a_window_of_ones_own_may_follow_the_plan() -> None:
    """One that says so is told where to cut, also where clearing alone would do; another is not."""
    for follows in (True, False):
        window = FromThePlan(follows_plan=follows)
        clear = ClearToolResults(keep_results=1, placeholder="x")
        for count in range(100, 160, 2):
            strategy = Cascade(clear, window, SlidingWindow())
            fit(steps_of(count), 400, counter=WordCounter(), strategy=strategy)
        assert window.cuts == sorted(window.cuts)
        assert (len(window.cuts) == 30 and 1 < len(set(window.cuts)) < 25) is follows
        assert follows is (set(window.cuts) != {0})


def test_what_was_cut_does_not_come_back_when_results_are_cleared() -> None:
    """A result that took the whole room has made what is older leave, also when it is small later."""
    strategy = Cascade(ClearToolResults(keep_results=1, placeholder="x"), SlidingWindow(), TruncateText())
    messages, cuts = steps_of(5), []
    for size in (110, 5, 5, 5, 5, 5):
        number = len(messages)
        messages = [*messages, call(f"d{number}"), result(f"d{number}", words(size))]
        sent = fit(messages, 120, counter=WordCounter(), strategy=strategy).messages
        cuts.append(len(messages) - len(sent))
    assert cuts == sorted(cuts)
    assert cuts[0] > 0


@pytest.mark.parametrize("keep", [1, 2, 3])
@pytest.mark.parametrize("budget", range(45, 80, 3))
def test_the_cut_stays_when_every_result_that_may_be_cleared_is_far_before_it(keep: int, budget: int) -> None:
    """The result that made it move is out of sight on the next call; the cut went back by two messages."""
    chat = talk("u6 cA rA20 cB rB60 a9 cC rC20 a29 u7 u7 a29 cD rD5 a5 u3 a8 u2 a9 u5")
    strategy = Cascade(ClearToolResults(keep_results=keep, placeholder="x"), SlidingWindow(), TruncateText())
    cuts = []
    for count in range(9, len(chat) + 1):
        if "tool_calls" not in chat[count - 1]:
            sent = fit(chat[:count], budget, counter=WordCounter(), strategy=strategy).messages
            cuts.append(cut_of(sent, chat[:count]))
    assert cuts == sorted(cuts)


def cut_of(sent: list[Message], messages: list[Message]) -> int:
    """Find the oldest message from which on everything was sent, cleared or not."""
    pairs = zip(reversed(sent), reversed(messages), strict=False)
    return len(messages) - sum(
        1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[1]["role"] == "tool", pairs)
    )


@given(growing(), st.integers(20, 400), st.sampled_from((0.5, 1.0)), st.sampled_from((0, 1, 3)))
def test_reading_near_the_cut_clears_what_reading_everything_clears(
    messages: list[Message], budget: int, ratio: float, keep: int
) -> None:
    """What is far before the cut has no say."""
    clear = ClearToolResults(keep_results=keep, placeholder="x")
    strategy = Cascade(clear, SlidingWindow(target_ratio=ratio), TruncateText())
    near = outcome(messages, budget, counter=WordCounter(), strategy=strategy)
    with group_all():
        assert near == outcome(messages, budget, counter=WordCounter(), strategy=strategy)


def test_reading_near_the_cut_of_real_chats_clears_what_reading_everything_clears(data_dir: Path) -> None:
    """Long before the room, too: a coding session and airline chats."""
    strategy = windows(ClearToolResults(), 0.5)
    for chat in (coding(data_dir), airline(data_dir)[:900]):
        for asked in calls_of(chat)[20::40]:
            near = outcome(asked, 6_000, counter=COUNTER, strategy=strategy)
            with group_all():
                assert near == outcome(asked, 6_000, counter=COUNTER, strategy=strategy)
