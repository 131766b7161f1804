"""A refusal names the heaviest message that had to stay: what is worth to be shortened."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tests.builders import call, result, talk, user, words
from trimtab import BudgetExceededError, Context, SlidingWindow, Strict, fit
from trimtab.report import HeaviestMessage
from trimtab.testing import WordCounter

WORDS = WordCounter()
LOGS = [user("look"), call("A"), result("A", words(9)), user("again"), call("B"), result("B", words(300))]


def refusal(messages: list[Any], **options: Any) -> str:
    """Fit into 50 tokens, and return what is said."""
    options.setdefault("counter", WORDS)
    with pytest.raises(BudgetExceededError) as told:
        fit(messages, 50, **options)
    return str(told.value)


def test_a_result_is_named_by_its_place_its_tool_and_its_size() -> None:
    """Also where messages before it left."""
    assert "The heaviest that stays is message 5, the result of f, 300 tokens." in refusal(LOGS, pin=[5])
    said = refusal(LOGS, strategy=Strict())
    assert "message 5, the result of f, 300 tokens. Raise the budget, pin less, or shorten it" in said


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("s3 u2 a200 u5", {"pin": [2]}, "message 2, role assistant, 200 tokens"),
        ("s3 u2 a200 u60", {"strategy": SlidingWindow()}, "message 3, role user, 60 tokens"),
        ("u2 a2 u60", {"system": "be brief"}, "message 2, role user, 60 tokens"),
    ],
)
def test_another_message_is_named_by_its_role(line: str, options: dict[str, Any], said: str) -> None:
    """By its place in the list that was given, whatever stands in front of it."""
    assert f"The heaviest that stays is {said}." in refusal(talk(line), **options)


def test_results_in_one_message_are_named_together() -> None:
    """As Anthropic's form has them; each tool once."""
    uses = [{"type": "tool_use", "id": name, "name": name, "input": {}} for name in ("look", "draw")]
    held = [{"type": "tool_result", "tool_use_id": name, "content": words(100)} for name in ("look", "draw")]
    messages = [user("hi"), {"role": "assistant", "content": uses}, user(held)]
    said = refusal(messages, format="anthropic", strategy=Strict())
    assert "message 2, the result of look and draw, " in said


def test_a_block_of_a_context_names_its_own() -> None:
    """By the place in the block."""
    context = Context(50, counter=WORDS).add("rules", "be brief").add("log", LOGS, strategy=Strict())
    with pytest.raises(BudgetExceededError, match=r"block 'log'.*message 5, the result of f, 300 tokens"):
        context.fit()


def test_where_only_the_whole_is_counted_no_message_is_named() -> None:
    """Shares of it are no sizes."""
    assert "heaviest" not in refusal(LOGS, counter=lambda messages: WORDS.count(messages), strategy=Strict())


@pytest.mark.parametrize("cap", [1.0, 0.8], ids=["its share", "its cap"])
def test_the_message_is_data_too(cap: float) -> None:
    """Of `fit` and of a block; a copy and a pickle keep it, and the text is made of it."""
    expected = HeaviestMessage(index=5, role="tool", tools=("f",), tokens=300)
    context = Context(50, counter=WORDS).add("rules", "be brief")
    context.add("log", LOGS, strategy=Strict(), max_ratio=cap)
    asked = (lambda: fit(LOGS, 50, counter=WORDS, strategy=Strict()), context.fit)
    for ask in asked:
        with pytest.raises(BudgetExceededError) as told:
            ask()
        for error in (told.value, copy.copy(told.value), pickle.loads(pickle.dumps(told.value))):
            assert error.heaviest == expected
            assert f"The heaviest that stays is {error.heaviest}." in str(error)


def test_where_no_message_is_in_the_way_there_is_none() -> None:
    """System text alone is too long; and of shares of a whole nobody knows."""
    options: dict[str, Any]
    for options in ({"system": words(60)}, {"counter": lambda messages: WORDS.count(messages)}):
        with pytest.raises(BudgetExceededError) as told:
            Context(50, **{"counter": WORDS, **options}).add("log", LOGS, strategy=Strict()).fit()
        assert told.value.heaviest is None
