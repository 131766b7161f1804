"""What pins tell apart in the middle of a conversation hides nothing from a cut: however it was read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from tests.builders import Message, assistant, call, result, user, words
from trimtab import BudgetExceededError, Fitted, SlidingWindow, counter_for, fit

COUNTER = counter_for("gpt-4o")
"""It counts while a conversation is read, from the newest message back."""


def turns(random: Random) -> list[Message]:
    """Make a few turns, most of them with calls."""
    messages: list[Message] = []
    for turn in range(random.randint(3, 7)):
        messages.append(user(words(random.randint(1, 20))))
        for step in range(random.choice((0, 1, 2, 3))):
            ids = [f"{turn}-{step}-{at}" for at in range(random.choice((1, 1, 2)))]
            messages += [call(*ids), *(result(id, words(random.choice((1, 9, 60)))) for id in ids)]
        messages.append(assistant(words(random.randint(1, 30))))
    return [*messages, user("now?")]


def kept_by(ask: Callable[[int], Fitted[Any]], budget: int) -> Any:
    """Return where the messages kept were, or what would be needed."""
    try:
        return ask(budget).positions
    except BudgetExceededError as error:
        return error.needed_tokens


def check(random: Random, strategy: Any) -> None:
    """Compare a fit with what another one shows at its budget, once its report was read."""
    messages = turns(random)
    pin = random.sample(range(len(messages)), random.choice((1, 2, 3)))

    def ask(budget: int) -> Fitted[Any]:
        return fit(messages, budget, counter=COUNTER, strategy=strategy, pin=pin)

    whole = COUNTER.count(messages)
    with suppress(BudgetExceededError):
        fitted = ask(random.randint(whole // 2, whole))
        list(fitted.report.messages)
        for budget in random.sample(range(10, whole), 3):
            assert kept_by(fitted.at, budget) == kept_by(ask, budget), (pin, budget)


@pytest.mark.parametrize("strategy", [None, "agent", SlidingWindow(target_ratio=0.5)])
def test_pins_between_a_cut_and_its_turn_hide_no_opener(strategy: Any) -> None:
    """What opened an earlier turn stayed in its place, until the report was read."""
    for seed in range(150):
        check(Random(seed), strategy)
