"""Arguments of the wrong kind or size end in a typed error that says what to give."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import talk, user
from trimtab import (
    Budget,
    CharCounter,
    ClearToolResults,
    ConfigurationError,
    Context,
    PriorityBased,
    SlidingWindow,
    Summarize,
    fit,
)
from trimtab.counting import measure
from trimtab.errors import CountingError, FormatError
from trimtab.history import evict_messages, recent, span, within
from trimtab.policy import load_policy, policy_data
from trimtab.strategies import ClampResults, create_strategy
from trimtab.testing import WordCounter

WORDS = WordCounter()


def characters(messages: list[Any]) -> int:
    """Count a list as a black box."""
    return sum(len(str(message["content"])) for message in messages)


@pytest.mark.parametrize("number", [math.nan, math.inf, 2.5, "2", None, True])
@pytest.mark.parametrize(
    "call",
    [
        lambda number: recent(talk("u1 u2"), number),
        lambda number: span(talk("u1 u2"), number, 0),
        lambda number: span(talk("u1 u2"), 2, number),
        lambda number: within(talk("u1 u2"), number, WORDS),
        lambda number: evict_messages(talk("u1 u2"), number, counter=WORDS),
    ],
)
def test_helpers_over_lists_take_whole_numbers(call: Callable[[Any], Any], number: Any) -> None:
    """What is none is refused by its name, not compared or sliced with."""
    with pytest.raises(ConfigurationError, match="is a whole number, not"):
        call(number)


@pytest.mark.parametrize("messages", [None, 5, "hello", user()])
def test_helpers_that_count_take_a_list_of_messages(messages: Any) -> None:
    """One message, a text or nothing is none."""
    with pytest.raises(ConfigurationError, match="messages must be a list"):
        within(messages, 5, WORDS)
    with pytest.raises(ConfigurationError, match="messages must be a list"):
        evict_messages(messages, 5, counter=WORDS)


def deep() -> list[Any]:
    """Nest a list deeper than anything can write it."""
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


def endless() -> dict[str, Any]:
    """Make a schema that contains itself."""
    made: dict[str, Any] = {"type": "object"}
    made["properties"] = made
    return made


@pytest.mark.parametrize("schema", [deep, endless, lambda: {"maximum": 10**5_000}])
def test_tools_that_no_json_can_hold_are_a_typed_error_beside_a_list_counter(schema: Any) -> None:
    """They are written into one text for it; `measure` does the same."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema()}}]
    with pytest.raises(FormatError, match=r"tools.* cannot be written as JSON"):
        fit(talk("u1 u2"), 50, counter=characters, tools=tools)
    with pytest.raises(FormatError, match=r"tools.* cannot be written as JSON"):
        measure(talk("u1 u2"), counter=characters, tools=tools)


@pytest.mark.parametrize("weight", ["4", True, math.nan, math.inf, -1])
def test_a_weight_is_a_finite_number(weight: Any) -> None:
    """The error names the counter and the message it was asked about."""

    class Weighed(WordCounter):
        def weight(self, message: Any) -> Any:
            return weight

    with pytest.raises(CountingError, match=r"counter words answered .* as the weight of message \d+"):
        fit(talk("u1 a1 " * 100), 50, counter=Weighed(), strategy=SlidingWindow(target_ratio=0.5))


@pytest.mark.parametrize("weight", [0, 0.5, 3, None])
def test_a_weight_may_be_any_other_number_or_none(weight: float | None) -> None:
    """Nothing at all included; None takes the bytes of the texts."""

    class Weighed(WordCounter):
        def weight(self, message: Any) -> Any:
            return weight

    fitted = fit(talk("u1 a1 " * 100), 50, counter=Weighed(), strategy=SlidingWindow(target_ratio=0.5))
    assert 0 < fitted.report.tokens_after <= 50


@pytest.mark.parametrize("tokens", [(1 << 53) + 1, 10**400, 10**5_000], ids=["over", "float", "text"])
def test_a_budget_beyond_what_a_float_tells_apart_is_refused(tokens: int) -> None:
    """By every door, before a share of it is asked for; the number before is taken."""
    context = Context(100, counter=WORDS).add("notes", "one two", max_ratio=0.5)
    for call in (
        lambda: context.fit(tokens),
        lambda: fit(talk("u1"), tokens, counter=WORDS),
        lambda: Budget(tokens),
    ):
        with pytest.raises(ConfigurationError, match="at most 9,007,199,254,740,992 tokens"):
            call()
    assert context.fit(1 << 53).report.fits


@pytest.mark.parametrize("names", [5, ["mine"], {1: len}, "mine"])
def test_names_map_words(names: Any) -> None:
    """Whoever looks a word up in something else fails without saying why."""
    data: dict[str, Any] = {"kind": "priority_based", "score": "mine"}
    for call in (
        lambda: create_strategy("sliding_window", names=names),
        lambda: create_strategy(data, names=names),
        lambda: load_policy({"budget": 100, "blocks": [{"name": "a"}]}, names=names),
        lambda: policy_data(Context(100), names=names),
    ):
        with pytest.raises(ConfigurationError, match="names must map names to objects"):
            call()


@pytest.mark.parametrize("name", [["a"], {"a"}, {}, 5, None, ("a",)])
def test_a_block_is_asked_for_by_its_name(name: Any) -> None:
    """In one line, whatever was given."""
    context = Context(100, counter=WORDS).add("a", talk("u1"))
    for call in (context.remove, lambda name: context.replace(name, [])):
        with pytest.raises(ConfigurationError, match="the name of a block must be a text, not"):
            call(name)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "call",
    [
        Budget,
        create_strategy,
        lambda value: Budget(8_000, margin=value),
        lambda value: ClearToolResults(placeholder=value),
        lambda value: ClampResults(max_ratio=value),
        lambda value: SlidingWindow(protect_roles=value),
        lambda value: PriorityBased(score=value),
        lambda value: Summarize(value),
        lambda value: CharCounter(value),
        lambda value: Context(100).add("a", [], max_tokens=value),
        lambda value: Context(100).remove(value),
        lambda value: fit(talk("u1"), 100, format=value),
        lambda value: fit(talk("u1"), 100, model=value),
    ],
)
def test_what_is_too_deep_to_be_shown_is_refused_as_anything_else(call: Callable[[Any], Any]) -> None:
    """A list in lists, 100,000 times: to write it out is a RecursionError."""
    with pytest.raises(ConfigurationError):
        call(deep())
