"""A prompt cache hits: with `target_ratio` the prefix stays from call to call, without memory (SPEC C3)."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Message, call, result, system, user, words
from trimtab import (
    BudgetExceededError,
    Cascade,
    ConfigurationError,
    Session,
    SlidingWindow,
    TruncateText,
    afit,
    counter_for,
    fit,
)
from trimtab.testing import WordCounter

WINDOW = SlidingWindow(target_ratio=0.7)
WINDOW_THEN_TEXTS = Cascade(WINDOW, TruncateText())

Sent = list[Message]


def calls_of(messages: list[Message]) -> list[list[Message]]:
    """Give what the model was given: everything before each of its messages."""
    return [messages[:at] for at, message in enumerate(messages) if at and message["role"] == "assistant"]


def replay(messages: list[Message], *, budget: int, strategy: Any, counter: Any) -> list[tuple[Sent, int]]:
    """Fit call by call, each on its own; gives what was sent, and the oldest message of its unbroken end.

    Calls that were refused are left out, and so are all but the last before the first that was cut.
    """
    found: list[tuple[Sent, int]] = []
    cut_yet = False
    for asked in calls_of(messages):
        try:
            sent = fit(asked, budget, counter=counter, strategy=strategy).messages
        except BudgetExceededError:
            continue
        cut_yet = cut_yet or sent != asked
        found = [*(found if cut_yet else ()), (sent, cut_of(sent, asked))]
    return found


def cut_of(sent: Sent, asked: list[Message]) -> int:
    """Go back from the newest as long as each message was sent, whole or with its result shortened."""
    cut = len(asked)
    for message in reversed(sent):
        other = asked[cut - 1]
        if message is not other and message.get("tool_call_id", "") != other.get("tool_call_id"):
            break
        cut -= 1
    return cut


class Sizes:
    """Tokens of messages by the tokenizer itself; each message is encoded once."""

    def __init__(self) -> None:
        self._count = counter_for("gpt-4o").count_text
        self._known: dict[int, tuple[Message, int]] = {}

    def of(self, messages: Sent) -> int:
        """Add up texts and call arguments, and 4 a message."""
        return sum(self._one(message) for message in messages)

    def _one(self, message: Message) -> int:
        if id(message) not in self._known:
            called = [one["function"] for one in message.get("tool_calls") or ()]
            text = "".join([message["content"] or "", *(one["name"] + one["arguments"] for one in called)])
            self._known[id(message)] = message, 4 + self._count(text)
        return self._known[id(message)][1]


def common(one: Sent, other: Sent) -> int:
    """Count how many messages two prompts begin alike with."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def airline(data_dir: Path) -> list[Message]:
    """Put all the airline chats behind one another, under one system message; call ids made unique."""
    messages: list[Message] = []
    for number, line in enumerate((data_dir / "tau_airline_gpt4o.jsonl").read_text("utf-8").splitlines()):
        for message in json.loads(line.replace('"call_', f'"call_{number}_'))["messages"]:
            if message["role"] != "system" or not messages:
                messages.append(message)
    return messages


def coding(data_dir: Path) -> list[Message]:
    """Read the coding session, without the reasoning that no provider bills as sent."""
    line = (data_dir / "pi_coding_sessions.jsonl").read_text("utf-8").splitlines()[0]
    return [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        for message in json.loads(line)["messages"]
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("conversation", "budget", "strategy", "least_calls"),
    [
        pytest.param(airline, 8_000, WINDOW, 1_000, id="airline-8k"),
        pytest.param(airline, 8_000, WINDOW_THEN_TEXTS, 1_000, id="airline-8k-then-texts"),
        pytest.param(airline, 32_000, WINDOW_THEN_TEXTS, 1_000, id="airline-32k-then-texts"),
        pytest.param(coding, 32_000, WINDOW, 100, id="coding-32k"),
        pytest.param(coding, 32_000, WINDOW_THEN_TEXTS, 100, id="coding-32k-then-texts"),
    ],
)
def test_over_90_percent_of_each_prompt_is_a_prefix_of_the_one_before(
    data_dir: Path, conversation: Any, budget: int, strategy: Any, least_calls: int
) -> None:
    """Summed up from the first call over budget on; and the cut never moves back."""
    calls = replay(conversation(data_dir), budget=budget, strategy=strategy, counter=counter_for("gpt-4o"))
    sizes, sent, reused = Sizes(), 0, 0
    for (before, _), (after, _) in pairwise(calls):
        sent += sizes.of(after)
        reused += sizes.of(after[: common(before, after)])
    cuts = [cut for _, cut in calls]
    assert len(calls) >= least_calls
    assert reused / sent > 0.9
    assert cuts == sorted(cuts)


@pytest.mark.parametrize(
    ("conversation", "least_reused"),
    [pytest.param(airline, 0.93, id="airline"), pytest.param(coding, 0.8, id="coding")],
)
def test_steady_reuses_most_of_each_prompt_in_8000_tokens(
    data_dir: Path, conversation: Any, least_reused: float
) -> None:
    """And uses two thirds of the room; the best that any cuts could do on the coding session is 0.89."""
    sizes, sent, reused, before, count = Sizes(), 0, 0, list[Message](), 0
    counter = counter_for("gpt-4o")
    for asked in calls_of(conversation(data_dir)[:1_600]):
        try:
            after = fit(asked, 8_000, counter=counter, steady=True).messages
        except BudgetExceededError:
            continue
        if len(after) < len(asked):
            count += 1
            sent += sizes.of(after)
            reused += sizes.of(after[: common(before, after)])
        before = after
    assert reused / sent > least_reused
    assert sent / count / 8_000 > 0.65


def test_a_session_cuts_results_above_half_of_it_once_they_are_not_the_newest(data_dir: Path) -> None:
    """And so reuses at least 83 % of each prompt of the coding session in 8,000 tokens, where all fit."""
    messages, counter = coding(data_dir), counter_for("gpt-4o")
    chat, before = Session(8_000, counter=counter), list[Message]()
    sent, reused, added, is_over = 0, 0, 0, False
    said = {one["tool_call_id"]: one for one in messages if one["role"] == "tool"}
    for asked in calls_of(messages):
        chat.extend(asked[added:])
        added = len(asked)
        is_over = is_over or counter.count(asked) > 8_000
        try:
            after = chat.messages()
        except BudgetExceededError:
            continue  # what a user wrote, or a call, is larger than all of it
        newest = max((at for at, one in enumerate(after) if one["role"] != "tool"), default=0)
        for one in after[:newest]:
            if one["role"] == "tool" and one != said[one["tool_call_id"]]:
                whole = said[one["tool_call_id"]]["content"]
                assert counter.count_text(one["content"]) <= 2_000 < 4_000 < counter.count_text(whole)
        assert counter.count(after) <= 8_000
        if is_over:
            sent += counter.count(after)
            reused += counter.count(after[: common(before, after)])
        before = after
    assert reused / sent >= 0.83


def test_steady_is_the_default_strategy_with_a_window_in_strides() -> None:
    """In both colours of `fit`, and for other budgets of the same fit."""
    chat = [user(words(9)) for _ in range(40)]
    strategy = Cascade(SlidingWindow(target_ratio=0.5), TruncateText())
    wanted = fit(chat, 100, counter=WordCounter(), strategy=strategy)
    found = fit(chat, 100, counter=WordCounter(), steady=True)
    assert found.messages == wanted.messages != fit(chat, 100, counter=WordCounter()).messages
    assert found.at(60).messages == wanted.at(60).messages
    assert asyncio.run(afit(chat, 100, counter=WordCounter(), steady=True)).messages == wanted.messages


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steady": True, "strategy": SlidingWindow()}, "target_ratio=0.5"),
        ({"steady": "yes"}, "steady must be True, False, or the share"),
    ],
)
def test_steady_beside_a_strategy_says_what_to_write(options: dict[str, Any], said: str) -> None:
    """A strategy of one's own has the ratio in its window."""
    with pytest.raises(ConfigurationError, match=said):
        fit([user("a")], 100, counter=WordCounter(), **options)


def test_what_is_measured_here_can_fail(data_dir: Path) -> None:
    """Without strides most of the prompt is sent anew."""
    strategy = SlidingWindow()
    calls = replay(airline(data_dir)[:400], budget=8_000, strategy=strategy, counter=counter_for("gpt-4o"))
    sizes = Sizes()
    shares = [sizes.of(b[: common(a, b)]) / sizes.of(b) for (a, _), (b, _) in pairwise(calls)]
    assert sum(shares) / len(shares) < 0.75


@st.composite
def growing(draw: st.DrawFn) -> list[Message]:
    """Make a conversation in proper order: turns of a question, calls with results, an answer."""
    sizes = st.integers(1, 40)
    messages = [system(words(draw(st.integers(1, 6))))] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(8, 40))):
        messages.append(user(words(draw(sizes))))
        for number in range(draw(st.integers(0, 3))):
            ids = [f"{turn}-{number}-{at}" for at in range(draw(st.integers(1, 3)))]
            messages.append(call(*ids))
            messages += [result(call_id, words(draw(sizes))) for call_id in ids]
        messages.append({"role": "assistant", "content": words(draw(sizes))})
    return messages


@given(growing(), st.integers(60, 400), st.sampled_from((0.3, 0.5, 0.7, 0.9)), st.booleans())
def test_the_cut_never_moves_back_while_a_conversation_grows(
    messages: list[Message], budget: int, ratio: float, texts: bool
) -> None:
    """Random talks, budgets and strides; a call that is refused changes nothing for those after it."""
    window = SlidingWindow(target_ratio=ratio)
    strategy = Cascade(window, TruncateText()) if texts else window
    cuts = [cut for _, cut in replay(messages, budget=budget, strategy=strategy, counter=WordCounter())]
    assert cuts == sorted(cuts)
