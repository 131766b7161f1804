"""The sizes of one fit: counted when asked for, once each, and checked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import talk, user, words
from trimtab import ConfigurationError, SlidingWindow, fit
from trimtab.counting import CountRequest, FixedCounter, counter_for, measure
from trimtab.errors import CountingError
from trimtab.testing import WordCounter


class Plain:
    """A counter of a user's that counts single messages, and notes which."""

    name = "plain"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count_message(self, message: dict[str, Any]) -> int:
        """Count words."""
        self.asked.append(message["content"])
        return len(message["content"].split())

    def count(self, messages: list[dict[str, Any]]) -> int:
        """Count words, and 3 for the list."""
        return 3 + sum(map(self.count_message, messages))


class Noting(WordCounter):
    """Counts words and notes of which texts."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def count_message(self, message: Any, /) -> int:
        """Count words."""
        self.asked.append(message["content"])
        return super().count_message(message)


@pytest.mark.parametrize(
    ("room", "lowest"),
    [(1, 3), (2, 3), (3, 2), (5, 2), (6, 1), (9, 1), (10, 0), (14, 0), (15, 0), (99, 0)],
)
def test_counting_stops_where_the_room_is_passed(room: int, lowest: int) -> None:
    """Room for exactly so much is not passed by it: the next one is counted too, and none twice."""
    plain, noting = Plain(), Noting()
    for counter, budget in ((plain, room + 3), (noting, room)):
        fit(talk("u5 u4 u3 u2 u1"), budget, counter=counter, strategy=SlidingWindow())
        assert sorted(counter.asked, key=len) == [words(n) for n in (1, 2, 3, 4, 5)[: 5 - lowest]]


def test_a_counter_of_single_messages_adds_up_with_what_a_list_costs() -> None:
    """Its empty list is the fixed part; system text and tools are one more message."""
    assert fit(talk("u1"), 99, counter=Plain()).report.tokens_after == 3 + 1
    beside = fit(talk("u1"), 99, counter=Plain(), system="a b", tools=[{"x": 1}])
    assert beside.report.tokens_after == 3 + 3 + 1


def test_a_black_box_is_asked_for_whole_requests() -> None:
    """With tools and system text in front, a message each."""
    asked: list[Any] = []

    def box(messages: list[Any]) -> int:
        asked.append(messages)
        return WordCounter().count(messages)

    fitted = fit([user("hi")], 99, counter=box, system="a b", tools=[{"x": 1}])
    beside = [{"role": "system", "content": text} for text in ('[{"x":1}]', "a b")]
    assert [*beside, user("hi")] in asked
    assert fitted.report.tokens_after == 4
    assert fit(talk("u2"), 99, counter=box).report.tokens_after == 2


def test_a_black_box_that_takes_requests_gets_system_text_and_tools_apart() -> None:
    """`count_request(messages, system, tools)`."""

    class Whole:
        def count(self, messages: list[Any]) -> int:
            raise AssertionError

        def count_request(self, messages: list[Any], system: Any = None, tools: Any = None) -> int:
            return 100 * len(messages) + len(system or "") + len(tools or ())

    fitted = fit(
        talk("u1 u1"), 999, counter=Whole(), system="abc", tools=[{"x": 1}, {"x": 2}], format="anthropic"
    )
    assert fitted.report.tokens_after == 205


def test_the_shares_of_a_black_box_add_up() -> None:
    """To its total, in the proportion of estimates."""
    report = fit(talk("u20 u20 u1"), 1_000, counter=lambda messages: 1_000 if messages else 0).count_all()
    shares = [row.tokens_before or 0 for row in report.messages]
    assert sum(shares) == report.tokens_before == 1_000
    assert abs(shares[0] - shares[1]) <= 1
    assert shares[1] > shares[2] > 0


@pytest.mark.parametrize("answer", [True, -1, 1.0, "1", None])
@pytest.mark.parametrize("single", [True, False])
def test_an_answer_that_is_no_count_is_an_error(answer: Any, single: bool) -> None:
    """With the counter's name and what it returned."""

    class Bad:
        name = "bad"

        def count(self, messages: list[Any]) -> Any:
            return answer if messages or not single else 0

    if single:
        Bad.count_message = lambda self, message: answer  # type: ignore[attr-defined]  # made as asked for
    with pytest.raises(CountingError, match="bad returned"):
        fit([user("hi")], 9, counter=Bad())


def test_a_count_of_nothing_is_a_count() -> None:
    """0 is an answer like any other."""
    assert (
        fit(
            [user("")], 1, counter=lambda messages: sum(len(one["content"]) for one in messages)
        ).report.tokens_after
        == 0
    )
    assert fit([user("")], 1, counter=FixedCounter(per_message=0)).messages == [user("")]


def test_what_a_counter_raises_is_its_failure() -> None:
    """Named as such, with its cause; ours go through."""

    def broken(messages: list[Any]) -> int:
        raise KeyError("k")

    def ours(messages: list[Any]) -> int:
        raise ConfigurationError("mine")

    with pytest.raises(CountingError, match="broken failed on a request: KeyError") as caught:
        fit([user("hi")], 9, counter=broken)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ConfigurationError, match="mine"):
        fit([user("hi")], 9, counter=ours)


async def _later(messages: list[Any]) -> int:
    return 1


class _Later:
    async def count(self, messages: list[Any]) -> int:
        """Count, some day."""
        return 1


@pytest.mark.parametrize(
    ("counter", "said"),
    [
        (len, "counts messages, not tokens"),
        (_later, "is async"),
        (_Later(), "is async"),
        (3, "must have count"),
        ("gpt-4o", "pass model='gpt-4o'"),
    ],
)
def test_what_cannot_count_is_refused_at_once(counter: Any, said: str) -> None:
    """With what to pass instead."""
    with pytest.raises(ConfigurationError, match=said):
        fit([user("hi")], 10, counter=counter)


@pytest.mark.parametrize(
    ("low", "said"),
    [
        (-1, "returned -1 for a request"),
        (100, "counted back to 100, which is not between 3 and 3"),
        (True, "returned True for a request"),
    ],
)
def test_where_a_counter_of_ones_own_says_it_counted_back_to_is_looked_at(low: Any, said: str) -> None:
    """A place outside of what it was asked for is refused, with both ends; so is what is no count."""

    class Back(WordCounter):
        def count_back(self, *asked: Any) -> Any:
            """Count nothing, and name a place."""
            return low

    with pytest.raises(CountingError, match=said):
        fit(talk("u1 a1 u1"), 2, counter=Back())


def test_a_function_object_may_say_of_its_counts_what_a_counter_says() -> None:
    """A weight beside the call makes it no counter without a count."""

    class Boxed:
        def __call__(self, messages: list[Any]) -> int:
            """Count characters."""
            return sum(len(message["content"]) for message in messages)

        def weight(self, message: Any) -> float:
            """Weigh all alike."""
            return 1.0

    messages = [user("x" * 40) for _ in range(3)]
    assert fit(messages, 80, counter=Boxed()).messages == messages[1:]


def test_settings_of_a_request_are_no_text_to_a_black_box() -> None:
    """What sets a provider's own prompt (a choice of tools, thinking) is charged by who knows how."""
    asked: list[Any] = []

    def black_box(messages: list[Any]) -> int:
        asked.append(messages)
        return sum(len(one["content"]) for one in messages)

    body = {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "hi"}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
    }
    measure(body, counter=black_box)  # the function is tried out
    asked.clear()
    fit(body, 100, counter=black_box)
    assert asked
    assert all(messages in ([], body["messages"]) for messages in asked)


def test_a_tool_that_is_changed_in_place_is_counted_anew() -> None:
    """What tools cost is remembered by their content: the same list with another content is another one."""
    parameters: dict[str, Any] = {"properties": {"n": {"minimum": 1}}}
    tools: list[Any] = [{"type": "function", "function": {"name": "look", "parameters": parameters}}]
    messages = [{"role": "user", "content": "hi"}]
    counter = counter_for("gpt-4o")

    def counted() -> int:
        return counter.count_request(CountRequest(messages, tools=tools))

    def fitted_tokens() -> int:
        return fit(messages, 1_000, model="gpt-4o", tools=tools).report.tokens_after

    assert fitted_tokens() == fitted_tokens() == counted()
    before = fitted_tokens()
    tools[0]["function"]["description"] = "Look at a thing, closely and for as long as it takes."
    assert fitted_tokens() == counted() > before
    for written in (True, 1.0, 1):  # equal to each other, and written differently
        parameters["properties"]["n"]["minimum"] = written
        assert fitted_tokens() == counted()
