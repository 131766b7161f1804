"""Counters by characters, by fixed numbers and by a text function, by hand and as the references count."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat_shapes import calling, function_call, result
from trimtab.counting import CharCounter, CountRequest, FixedCounter, counter_from_text
from trimtab.errors import ConfigurationError, CountingError

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def quarter(text: str) -> int:
    """Count one token for four UTF-16 units begun, as sliding-context does by default."""
    return -(-len(text.encode("utf-16-le", "surrogatepass")) // 2 // 4)


def user(content: Any, **more: Any) -> dict[str, Any]:
    """Make a user message."""
    return {"role": "user", "content": content, **more}


@pytest.mark.parametrize(
    ("counter", "messages", "tokens"),
    [
        pytest.param(CharCounter(4), [user("hello")], 2, id="rounds-up"),
        pytest.param(CharCounter(4), [user("hell")], 1, id="exact-multiple"),
        pytest.param(CharCounter(4), [user("")], 0, id="empty"),
        pytest.param(CharCounter(4), [user("a")] * 3, 3, id="rounds-once-a-message"),
        pytest.param(CharCounter(1), [user("привет")], 6, id="code-points"),
        pytest.param(CharCounter(2.5), [user("hello")], 2, id="a-fraction"),
        pytest.param(CharCounter(4), [user("hello", name="bob")], 2, id="name-counts-8-chars"),
        pytest.param(CharCounter(1), [user("hello", name="bob")], 8, id="name-counts"),
        pytest.param(CharCounter(1), [result("an id", "four")], 4, id="role-and-id-are-free"),
        pytest.param(CharCounter(1), [calling(function_call(name="foo", arguments="{}"))], 5, id="call"),
        pytest.param(CharCounter(4), [user([{"type": "text", "text": "abcd"}, IMAGE])], 1 + 85, id="image"),
        pytest.param(CharCounter(4, part_tokens=10), [user([IMAGE, IMAGE])], 20, id="part-tokens"),
        pytest.param(CharCounter(4), [user([{"type": "input_text", "text": "abcd"}])], 85, id="other-type"),
        pytest.param(
            CharCounter(1, tool_call_tokens=lambda name, arguments: 10 * len(name)),
            [calling(function_call(name="foo", arguments="{}"), content="ab")],
            2 + 30,
            id="tool-call-tokens-replace-name-and-arguments",
        ),
        pytest.param(FixedCounter(10, 2), [user("any text")], 12, id="fixed-text-is-one-part"),
        pytest.param(FixedCounter(10, 2), [user([IMAGE, IMAGE])], 14, id="fixed-parts"),
        pytest.param(FixedCounter(10, 2, per_tool_call=5), [calling(function_call())], 15, id="fixed-call"),
        pytest.param(FixedCounter(5), [], 0, id="fixed-nothing"),
    ],
)
def test_a_simple_counter_counts_as_said(counter: Any, messages: list[Any], tokens: int) -> None:
    """SPEC B2, by hand."""
    assert counter.count(messages) == tokens


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        # 4 of overhead each
        pytest.param(user(""), 4, id="empty-text-is-not-asked-about"),
        pytest.param(user("abcde"), 4 + 2, id="text"),
        pytest.param(user("😀😀😀"), 4 + 2, id="utf-16"),
        pytest.param(user("abcd", name="a long name"), 4 + 1, id="name-is-free"),
        pytest.param(
            user([{"type": "text", "text": "abcd"}, IMAGE, {"text": "efgh"}]), 4 + 1 + 85 + 1, id="parts"
        ),
        pytest.param(result("call_1", "abcd"), 4 + 1 + 2, id="result-id"),
        # [{"id":"call_1","type":"function","function":{"name":"fn","arguments":"{}"}}] has 77 characters
        pytest.param(calling(function_call("call_1", "fn"), content=""), 4 + 20, id="calls-as-compact-json"),
        # {"odd_key":"abc"} has 17 characters
        pytest.param(user("abcd", odd_key="abc"), 4 + 1 + 5, id="unknown-key-as-json"),
        pytest.param(user("abcd", reasoning_content="abc"), 4 + 1 + 1, id="reasoning-is-text"),
    ],
)
def test_a_text_function_counts_as_sliding_context_does(message: dict[str, Any], tokens: int) -> None:
    """Rule S2, by hand."""
    assert counter_from_text(quarter).count_message(message) == tokens


def test_an_empty_part_is_asked_about_and_an_empty_text_is_not() -> None:
    """Rule S2 on a function that answers 7 to anything."""
    counter = counter_from_text(lambda text: 7)
    assert counter.count([user("")]) == 4
    assert counter.count([user([{"type": "text", "text": ""}])]) == 4 + 7


def test_overhead_and_parts_can_be_set() -> None:
    """Both are tokens, and 0 is allowed."""
    counter = counter_from_text(quarter, message_overhead=0, part_tokens=3, name="mine")
    assert counter.count([user([IMAGE])]) == 3
    assert counter.name == "mine"


@pytest.mark.parametrize("counter", [CharCounter(1), counter_from_text(lambda text: len(text))])
def test_system_text_and_tools_are_one_leading_message(counter: Any) -> None:
    """Text and compact JSON, each once (SPEC B1)."""
    tools = [{"name": "add"}]
    overhead = counter.count_message(user(""))
    apart = counter.count_request(CountRequest([], system="be brief", tools=tools))
    # a line break joins the two where a message is counted as one text
    assert apart - overhead - len("be brief") - len('[{"name":"add"}]') in (0, 1)
    assert counter.count_request(CountRequest([], tools=tools)) == overhead + len('[{"name":"add"}]')
    assert counter.count_request(CountRequest([])) == 0


@pytest.mark.parametrize("ratio", [0, -1, float("nan"), float("inf"), True])
def test_a_ratio_must_be_above_zero(ratio: float) -> None:
    """The references take anything; we say at once that it makes no sense."""
    with pytest.raises(ConfigurationError, match="above 0"):
        CharCounter(ratio)


@pytest.mark.parametrize(
    "make",
    [
        lambda value: CharCounter(4, part_tokens=value),
        lambda value: FixedCounter(value),
        lambda value: FixedCounter(1, value),
        lambda value: FixedCounter(1, per_tool_call=value),
        lambda value: counter_from_text(quarter, message_overhead=value),
        lambda value: counter_from_text(quarter, part_tokens=value),
    ],
)
@pytest.mark.parametrize("value", [-1, True, 1.5, None])
def test_a_charge_is_an_integer_from_zero_up(make: Any, value: Any) -> None:
    """A negative charge would make longer conversations smaller."""
    with pytest.raises(ConfigurationError, match="at least 0"):
        make(value)


async def later(text: str) -> int:
    """Count, but not now."""
    return len(text)


@pytest.mark.parametrize("function", [len, later, None, "o200k_base", 3])
def test_what_cannot_count_a_text_is_refused(function: Any) -> None:
    """`len` counts characters; the error says what to use."""
    with pytest.raises(ConfigurationError):
        counter_from_text(function)


@pytest.mark.parametrize("answer", [-1, True, 2.0])
def test_tool_call_tokens_are_checked(answer: Any) -> None:
    """Like any answer of a user's function."""
    counter = CharCounter(tool_call_tokens=lambda name, arguments: answer)
    with pytest.raises(CountingError, match="add"):
        counter.count([calling(function_call())])


def test_tool_call_tokens_that_raise_are_an_error_with_the_cause() -> None:
    """The message is named."""
    counter = CharCounter(tool_call_tokens=lambda name, arguments: 1 // 0)
    with pytest.raises(CountingError) as caught:
        counter.count([user("a"), calling(function_call())])
    assert caught.value.index == 1
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
