"""What a call of a chat remembers of the calls before never shows in what it sends.

Random chats grow call by call, and are changed in place, copied, cut at either end and taken up again from an
earlier place between two calls. A copy of the messages, which nobody has seen before, is fitted beside them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from tests.builders import Message
from tests.properties.test_clear_with_growth import FORMS, grow, strategy_for, written
from trimtab import BudgetExceededError, SlidingWindow, fit
from trimtab.counting import counter_for
from trimtab.errors import FormatError
from trimtab.strategies import Cascade, Cheapest, ClearToolResults, Strategy
from trimtab.testing import WordCounter

CHATS = 4
"""Of each form; hundreds were played when the memory was made."""


def _chat(random: Random) -> list[Message]:
    """Make a chat that is longer than the places marks go by are apart."""
    made = grow(random)
    for _ in range(random.choice((0, 2, 4))):
        made += [message for message in grow(random) if message["role"] != "system"]
    return made


def _strategy(random: Random) -> Strategy:
    if random.random() < 0.5:
        return strategy_for(random)
    return SlidingWindow(target_ratio=random.choice((0.5, 0.7, 0.9)), keep_turns=random.random() < 0.2)


def _lengthen(value: Any, words: str) -> bool:
    """Write more into the first text that is no role, name or id, wherever it stands."""
    if isinstance(value, list):
        return any(_lengthen(one, words) for one in value)
    for key, one in value.items() if isinstance(value, dict) else ():
        if isinstance(one, str) and key in ("content", "text", "output", "result"):
            value[key] = one + words
            return True
        if _lengthen(one, words):
            return True
    return False


def _shown(random: Random, chat: list[Any], end: int) -> list[Any]:
    """Show so many messages of a chat as a caller may: now and then changed since the last call."""
    drawn = random.random()
    if drawn < 0.15:
        _lengthen(chat[random.randrange(end)], " more" * random.randint(1, 40))
    elif drawn < 0.2:
        chat[random.randrange(end)]["number"] = random.choice((1, 1.0, True))
    elif drawn < 0.25:
        return copy.deepcopy(chat[:end])
    elif drawn < 0.3:
        return chat[random.randrange(end) : end]
    elif drawn < 0.35:
        return chat[: max(1, end - random.randint(1, 30))]
    elif drawn < 0.4:
        other = random.randrange(end)
        return [*chat[:other], *copy.deepcopy(chat[other:end])]
    return chat[:end]


def _sent(
    messages: list[Any], budget: int, strategy: Strategy, form: str, **options: Any
) -> tuple[list[Any], int]:
    """Return what a fit sends, or that it does not fit."""
    options = {"counter": WordCounter(), "format": form, **options}
    try:
        fitted = fit(messages, budget, strategy=strategy, **options)
    except BudgetExceededError as error:
        return [str(error)], error.needed_tokens or 0
    return fitted.messages, fitted.report.tokens_after


def _calls(form: str, seed: int) -> Iterator[tuple[list[Any], int, Strategy]]:
    random = Random(seed)
    chat, strategy = written(form, _chat(random)), _strategy(random)
    budget = random.choice((60, 150, 400))
    for end in range(2, len(chat) + 1, random.choice((3, 5, 8))):
        yield _shown(random, chat, end), budget, strategy


@pytest.mark.few(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_chat_is_sent_like_one_that_nobody_has_seen(form: str) -> None:
    """The same messages are sent, the same size is told and the same does not fit."""
    for seed in range(CHATS):
        for at, (messages, budget, strategy) in enumerate(_calls(form, seed)):
            unseen = copy.deepcopy(messages)
            known, new = (_sent(shown, budget, strategy, form) for shown in (messages, unseen))
            assert known == new, (seed, at, strategy)


TOKENS = counter_for("gpt-4o")
"""What a message costs under it is told by what it says, so that it is remembered."""


class _ReadsAll(Cheapest):
    """The same without a promise: all units are told apart."""

    reads = "all"


def _cheapest(random: Random) -> tuple[Strategy, Strategy]:
    options: dict[str, Any] = {
        "room_weight": random.choice((0.03, 0.3, 3)),
        "expected_calls": random.choice((None, None, 40)),
        "cold_at": random.choice(((), (20, 50))),
    }
    made, whole = Cheapest(**options), _ReadsAll(**options)
    if random.random() < 0.2:
        return Cascade(ClearToolResults(keep_results=2), made), Cascade(
            ClearToolResults(keep_results=2), whole
        )
    return made, whole


@pytest.mark.few(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_chat_is_cut_where_it_costs_least_as_if_nobody_had_seen_it(form: str) -> None:
    """Whatever was changed, pinned or asked for in the calls before."""
    for seed in range(2 * CHATS):
        random = Random(seed)
        (strategy, whole), system = _cheapest(random), None
        for at, (messages, budget, _) in enumerate(_calls(form, seed)):
            budget *= random.choice((2, 2, 2, 2, 2, 3))
            system = random.choice((system, system, system, "be brief " * random.randint(1, 5)))
            pin = (0, len(messages) // 2) if random.random() < 0.2 else ()
            options = {"counter": TOKENS, "system": system, "pin": pin}
            known = _sent(messages, budget, strategy, form, **options)
            assert known == _sent(copy.deepcopy(messages), budget, strategy, form, **options), (seed, at)
            assert known == _sent(copy.deepcopy(messages), budget, whole, form, **options), (seed, at)


def test_two_counters_in_turn_know_their_own_sizes() -> None:
    """The same messages cost something else under each."""
    chat = [message for seed in range(8) for message in grow(Random(seed)) if message["role"] != "system"]
    for end in range(len(chat) // 2, len(chat), 3):
        for counter in (TOKENS, counter_for("claude-opus-4-5")):
            known, new = (
                _sent(shown, 600, Cheapest(), "openai_chat", counter=counter)
                for shown in (chat[:end], copy.deepcopy(chat[:end]))
            )
            assert known == new, end


def test_what_no_form_knows_is_refused_at_each_call() -> None:
    """Also where it stands in front of what is new, and was looked at before; what leaves is no matter."""
    chat: list[Any] = [{"role": "user", "content": "word " * 60} for _ in range(90)]
    chat[5] = {"role": "robot", "content": "of another provider"}
    for end in (70, 80, 85, 90):
        with pytest.raises(FormatError):
            fit(chat[:end], 40_000, counter=TOKENS, strategy=Cheapest())
        assert fit(chat[:end], 2_000, counter=TOKENS, strategy=Cheapest()).evicted


def test_what_is_nested_deep_is_sent_at_each_call_as_at_the_first() -> None:
    """Arguments that JSON can still be written of, in a chat that is fitted again."""
    given: Any = 1
    for _ in range(700):
        given = {"a": given}
    called = {"type": "tool_use", "id": "t", "name": "f", "input": given}
    answered = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    chat: list[Any] = [{"role": "user", "content": "word " * 60} for _ in range(80)]
    chat += [{"role": "assistant", "content": [called]}, {"role": "user", "content": [answered]}]
    calls = [_sent(chat, 400, SlidingWindow(target_ratio=0.5), "anthropic") for _ in range(3)]
    assert calls[0] == calls[1] == calls[2]
    assert calls[0][0][-2:] == chat[-2:]


@pytest.mark.long
@pytest.mark.parametrize(
    "strategy", [SlidingWindow(target_ratio=0.7), Cheapest()], ids=["strides", "cheapest"]
)
def test_threads_that_fit_branches_of_one_chat_do_not_disturb_each_other(strategy: Strategy) -> None:
    """Each sends what it would alone, however they take turns."""
    random = Random(7)
    chat = [message for _ in range(6) for message in grow(random) if message["role"] != "system"]
    branches = [[*chat[: len(chat) // 2], *random.sample(chat, len(chat) // 4)] for _ in range(4)]

    def play(branch: list[Any]) -> list[Any]:
        return [
            _sent(branch[:end], 400, strategy, "openai_chat", counter=TOKENS)
            for end in range(len(chat) // 4, len(branch), 3)
        ]

    alone = [play(copy.deepcopy(branch)) for branch in branches]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(play, branches)) == alone
