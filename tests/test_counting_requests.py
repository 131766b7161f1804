"""What a request is charged beside its messages, by every kind of counter: all of it, always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import user
from trimtab import fit
from trimtab.counting import (
    CharCounter,
    CountRequest,
    EstimateCounter,
    FixedCounter,
    TextCounter,
    counter_for,
    counter_from_text,
)
from trimtab.testing import WordCounter

WORDS = " ".join(["word"] * 500)
FUNCTIONS = [{"name": "f", "description": WORDS}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "description": WORDS}}


def words_in(value: object) -> int:
    """Count the words wherever they stand."""
    return str(value).count("word")


class Whole:
    """A counter of whole requests; says nothing of single messages."""

    def count_request(self, messages: Any, system: Any = None, tools: Any = None) -> int:
        """Count the words of everything."""
        return words_in(messages) + words_in(system) + words_in(tools)

    def count(self, messages: Any) -> int:
        """Count the words of messages."""
        return self.count_request(messages)


class WholeAndSingle(Whole):
    """Also counts single messages."""

    def count_message(self, message: Any) -> int:
        """Count the words of one."""
        return words_in(message)


class Single:
    """Counts single messages and lists of them."""

    def count_message(self, message: Any) -> int:
        """Count the words of one."""
        return words_in(message)

    def count(self, messages: Any) -> int:
        """Count the words of messages."""
        return words_in(messages)


# What 500 words cost at least; FixedCounter takes one message for it.
COUNTERS: dict[str, tuple[Callable[[], Any], int]] = {
    "exact": (lambda: counter_for("gpt-4o"), 500),
    "estimate": (EstimateCounter, 500),
    "function": (lambda: counter_from_text(lambda text: len(text.split())), 500),
    "characters": (lambda: CharCounter(4), 500 * 5 // 4),
    "fixed": (lambda: FixedCounter(10), 10),
    "foreign": (WordCounter, 500),
    "whole requests": (Whole, 500),
    "whole requests and messages": (WholeAndSingle, 500),
    "messages": (Single, 500),
    "black box": (lambda: lambda messages: sum(words_in(one) for one in messages if one["role"]), 500),
}


@pytest.mark.parametrize(
    "charged",
    [{"functions": FUNCTIONS}, {"tools": FUNCTIONS}, {"response_format": SCHEMA}],
    ids=["functions", "tools", "response_format"],
)
@pytest.mark.parametrize(("make", "least_tokens"), COUNTERS.values(), ids=COUNTERS)
def test_what_stands_beside_the_messages_is_counted(
    make: Callable[[], Any], least_tokens: int, charged: dict[str, Any]
) -> None:
    """Legacy functions, tools and an output schema, by every counter there can be."""
    body = {"messages": [user("hi")]}
    bare = fit(body, 100_000, counter=make()).report.tokens_after
    full = fit({**body, **charged}, 100_000, counter=make()).report.tokens_after
    assert bare is not None
    assert full is not None
    assert full - bare >= least_tokens


@pytest.mark.parametrize("make", [make for make, _ in COUNTERS.values()], ids=list(COUNTERS))
def test_legacy_functions_cost_what_they_would_as_tools(make: Callable[[], Any]) -> None:
    """The same texts are charged, one after the other where there are both."""
    body = {"messages": [user("hi")]}
    both = [{"name": "g"}, *FUNCTIONS]
    for apart in ({"functions": both}, {"tools": both[:1], "functions": both[1:]}):
        found = fit({**body, **apart}, 100_000, counter=make()).report
        same = fit({**body, "tools": both}, 100_000, counter=make()).report
        assert found.tokens_after == same.tokens_after
        assert found.tools_tokens == same.tools_tokens


def test_a_counter_itself_takes_functions_for_tools() -> None:
    """As `read_request` hands them out, in `extra`."""
    for counter in (counter_for("gpt-4o"), EstimateCounter(), CharCounter(), FixedCounter(10)):
        as_tools = counter.count_request(CountRequest([user("hi")], tools=FUNCTIONS))
        assert counter.count_request(CountRequest([user("hi")], extra={"functions": FUNCTIONS})) == as_tools


class Shouting(TextCounter):
    """Counts messages in its own way: 7 tokens each."""

    def count_message(self, message: Any, /) -> int:
        """Give 7."""
        return 7


def test_a_text_counter_that_counts_messages_in_its_own_way_is_asked() -> None:
    """The fast path for plain messages does not pass it by."""
    counter = Shouting(len, name="shouting")
    assert fit([user("a"), user("b")], 99, counter=counter).report.tokens_after == 3 + 7 + 7
    assert counter.count([user("a"), user("b")]) == 3 + 7 + 7
