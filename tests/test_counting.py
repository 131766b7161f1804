"""What a message and a request cost, and the loop that counts from the newest message back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.chat_shapes import calling, custom_call, function_call, result, sdk_message
from trimtab.counting import (
    AdditiveCounter,
    CharCounter,
    Counter,
    CountRequest,
    EstimateCounter,
    FixedCounter,
    TextCounter,
    counter_for,
    counter_from_text,
)
from trimtab.errors import CountingError
from trimtab.models import Framing, MediaRule


def in_words(text: str) -> int:
    """Count a token a word."""
    return len(text.split())


def word_counter(**framing: Any) -> TextCounter:
    """Make a counter of words with gpt-4o's framing, or another."""
    return TextCounter(in_words, name="words", framing=Framing(**framing), media=MediaRule(part_tokens=85))


USER = {"role": "user", "content": "one two three"}

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    USER,
    {"role": "user", "content": ""},
    {"role": "user", "name": "ann", "content": "one"},
    {"role": "user", "content": [{"type": "text", "text": "one two"}, {"type": "text", "text": "three"}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
    {"role": "assistant", "content": None, "refusal": "I can not"},
    {"role": "assistant", "content": "one", "reasoning_content": "because of this"},
    calling(function_call()),
    calling(function_call("a"), function_call("b", arguments='{"x": 1}'), content="one two"),
    calling(custom_call()),
    {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}},
    result(),
    {**result(), "name": "add"},
    {"role": "function", "name": "add", "content": "4"},
    {"role": "critic", "content": "one"},
    {"role": "user", "content": "one", "metadata": {"a": "b c d"}},
    {"content": "one"},
    {"role": "tool", "name": "add", "content": "", "tool_call_id": "a"},
    {"role": "user", "name": "ann", "content": "one", "tool_call_id": "odd"},
]


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        # 3 a message + 1 word of role + words
        pytest.param(USER, 3 + 1 + 3, id="text"),
        pytest.param({"role": "user", "content": ""}, 3 + 1, id="empty"),
        pytest.param({"role": "assistant", "content": None}, 3 + 1, id="null"),
        pytest.param({"role": "user", "name": "ann lee", "content": "one"}, 3 + 1 + 1 + 1 + 2, id="name"),
        pytest.param(MESSAGES[4], 3 + 1 + 3, id="parts"),
        pytest.param(MESSAGES[5], 3 + 1 + 85, id="image"),
        pytest.param(MESSAGES[6], 3 + 1 + 3, id="refusal"),
        # "because of this" is three words
        pytest.param(MESSAGES[7], 3 + 1 + 1 + 3, id="unknown-key-as-json"),
        # 5 a call, its name twice, its arguments
        pytest.param(
            calling(function_call(name="add up", arguments='{"x": 1}')), 4 + 5 + 2 * 2 + 2, id="call"
        ),
        pytest.param(
            calling(function_call("a"), function_call("b")), 4 + 17 + 2 * (5 + 2 + 1), id="parallel"
        ),
        pytest.param(MESSAGES[11], 4 + 5 + 2 + 1, id="legacy-call"),
        pytest.param(result("an id of four", "4"), 4 + 1, id="result-id-is-free"),
        pytest.param({**result(), "name": "add up"}, 4 + 1, id="name-of-a-result-went-with-its-call"),
        pytest.param({"role": "user", "content": "one", "metadata": {"a": "b c"}}, 4 + 1, id="metadata"),
        pytest.param({"content": "one"}, 3 + 0 + 1, id="no-role"),
    ],
)
def test_a_message_costs_its_texts_and_its_framing(message: dict[str, Any], tokens: int) -> None:
    """The rule of SPEC B3 and the cookbook, by hand."""
    assert word_counter().count_message(message) == tokens


TOOL = {"type": "function", "function": {"name": "add", "description": "Adds up.", "parameters": {}}}
# "namespace functions {", "// Adds up.", "type add = () => any;", "} // namespace functions"
TOOL_WORDS = 3 + 3 + 6 + 4


@pytest.mark.parametrize(
    ("messages", "system", "tools", "tokens"),
    [
        pytest.param([], None, None, 3, id="nothing"),
        pytest.param([USER], None, None, 3 + 7, id="messages"),
        pytest.param([USER], "be brief", None, 3 + 7 + 4 + 2, id="system-outside"),
        pytest.param(
            [USER], [{"type": "text", "text": "be brief"}], None, 3 + 7 + 4 + 2, id="system-in-parts"
        ),
        pytest.param([USER], None, [TOOL], 3 + 7 + 9 + TOOL_WORDS, id="tools"),
        pytest.param(
            [MESSAGES[0], USER], None, [TOOL], 3 + 6 + 7 + 9 + TOOL_WORDS - 4, id="tools-and-system"
        ),
        pytest.param([USER], None, [], 3 + 7, id="no-tools"),
    ],
)
def test_a_request_costs_its_messages_and_a_fixed_part(
    messages: list[Any], system: Any, tools: Any, tokens: int
) -> None:
    """System text and tools are counted once, whatever the messages are."""
    assert word_counter().count_request(CountRequest(messages, system=system, tools=tools)) == tokens


def test_an_output_schema_is_charged() -> None:
    """A heading, name, description and schema as JSON, and eight tokens; four less beside system text."""
    schema = {"name": "answer", "description": "what to say", "schema": {"type": "object"}}
    extra = {"response_format": {"type": "json_schema", "json_schema": schema}}
    assert word_counter().count_request(CountRequest([], extra=extra)) == 3 + 8 + 3 + 2 + 4 + 1
    beside = word_counter().count_request(CountRequest([], system="be brief", extra=extra))
    assert beside == 3 + 8 + 3 + 2 + 4 + 1 + 4 + 2 - 4
    assert (
        word_counter().count_request(CountRequest([], extra={"response_format": {"type": "json_object"}}))
        == 3
    )


COUNTERS: dict[str, Callable[[], AdditiveCounter]] = {
    "words": word_counter,
    "o200k": lambda: counter_for("gpt-4o"),
    "reasoning": lambda: counter_for("gpt-5"),
    "estimate": EstimateCounter,
    "text function": lambda: counter_from_text(in_words),
    "constant function": lambda: counter_from_text(lambda text: 7),
    "characters": CharCounter,
    "fixed": lambda: FixedCounter(3, 2, per_tool_call=5),
}
every_counter = pytest.mark.parametrize("make", COUNTERS.values(), ids=COUNTERS.keys())


@every_counter
def test_our_counters_are_additive(make: Callable[[], AdditiveCounter]) -> None:
    """A request is its fixed part and its messages, however it is asked."""
    counter = make()
    assert isinstance(counter, AdditiveCounter)
    assert isinstance(counter, Counter)
    fixed = counter.fixed_tokens(None, None, has_system=True)
    assert counter.count(MESSAGES) == fixed + sum(map(counter.count_message, MESSAGES))
    assert counter.count(MESSAGES) == counter.count_request(CountRequest(MESSAGES))
    assert counter.count([]) == counter.fixed_tokens(None, None, has_system=False)


@every_counter
def test_counting_back_agrees_with_counting_one_by_one(make: Callable[[], AdditiveCounter]) -> None:
    """The fast path is the slow one, before and after texts are remembered."""
    counter = make()
    one_by_one = [counter.count_message(message) for message in MESSAGES]
    for _ in range(2):
        sizes: list[int | None] = [None] * len(MESSAGES)
        assert counter.count_back(list(MESSAGES), 0, len(MESSAGES), 1 << 60, sizes) == 0
        assert sizes == one_by_one


texts = st.text(max_size=12)
plain = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool", "critic"]),
        "content": texts | st.none(),
    },
    optional={
        "tool_call_id": texts,
        "name": texts,
        "tool_calls": st.lists(st.builds(function_call, texts, texts, texts) | st.none(), max_size=3)
        | st.none(),
        "note": texts,
    },
)


@given(st.lists(plain, max_size=6), st.sampled_from(sorted(COUNTERS)))
@example([{"role": "tool", "content": "", "tool_call_id": "", "name": "a"}], "constant function")
def test_no_shape_takes_the_fast_path_by_mistake(messages: list[Any], name: str) -> None:
    """Whatever keys a message has, both paths read the same of it."""
    counter = COUNTERS[name]()
    sizes: list[int | None] = [None] * len(messages)
    counter.count_back(list(messages), 0, len(messages), 1 << 60, sizes)
    for message, size in zip(messages, sizes, strict=True):
        # a key that nobody charges for keeps a message off the fast path
        assert counter.count_message({**message, "metadata": {}}) == size


@pytest.mark.parametrize(
    ("room", "known", "filled", "sizes"),
    [
        # five messages of 5 tokens each
        pytest.param(100, {}, 0, [5, 5, 5, 5, 5], id="room-for-all"),
        pytest.param(25, {}, 0, [5, 5, 5, 5, 5], id="exactly-all"),
        pytest.param(24, {}, 0, [5, 5, 5, 5, 5], id="one-short-counts-what-passes"),
        pytest.param(10, {}, 2, [None, None, 5, 5, 5], id="stops-past-the-room"),
        pytest.param(9, {}, 3, [None, None, None, 5, 5], id="stops-earlier"),
        pytest.param(0, {}, 4, [None, None, None, None, 5], id="no-room"),
        pytest.param(10, {4: 100}, 4, [None, None, None, None, 100], id="known-sizes-count"),
        pytest.param(10, {3: 0}, 1, [None, 5, 5, 0, 5], id="known-sizes-are-kept"),
    ],
)
@pytest.mark.parametrize("make", [word_counter, lambda: FixedCounter(5)], ids=["text", "generic"])
def test_counting_back_stops_when_the_room_is_passed(
    make: Callable[[], AdditiveCounter],
    room: int,
    known: dict[int, int],
    filled: int,
    sizes: list[int | None],
) -> None:
    """What is older than the message that passes the room is not looked at."""
    messages = [{"role": "user", "content": "word"} for _ in range(5)]
    table: list[int | None] = [known.get(i) for i in range(5)]
    assert make().count_back(list(messages), 0, 5, room, table) == filled
    assert table == sizes


def test_counting_back_keeps_to_its_range() -> None:
    """Only `start` to `stop` is counted, and an empty range returns where it begins."""
    messages = [{"role": "user", "content": "word"} for _ in range(5)]
    sizes: list[int | None] = [None] * 5
    assert word_counter().count_back(list(messages), 1, 3, 1_000, sizes) == 1
    assert sizes == [None, 5, 5, None, None]
    assert word_counter().count_back(list(messages), 3, 3, 1_000, sizes) == 3


def test_each_text_is_given_to_the_text_function_once() -> None:
    """Counts are remembered by text, within a pass and after it."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 1

    counter = TextCounter(count, name="asked")
    messages = [{"role": "user", "content": "same"}] * 3 + [{"role": "user", "content": "other"}]
    counter.count(messages)
    counter.count(messages)
    roles = {"system", "developer", "user", "assistant", "model", "tool"}
    assert sorted(asked) == sorted({"same", "other"} | roles)
    counter.clear()
    counter.count(messages)
    assert asked.count("same") == 2


def test_objects_of_the_sdk_are_counted_like_their_dicts() -> None:
    """What `response.choices[0].message` gives can be counted as it is."""
    message = sdk_message()
    counter = word_counter()
    assert counter.count_message(message) == counter.count_message(message.model_dump(exclude_none=True))
    assert counter.count([message]) == 3 + counter.count_message(message)


@pytest.mark.parametrize("answer", [True, -1, 1.0, "3", None])
@pytest.mark.parametrize(
    "make", [lambda f: TextCounter(f, name="odd"), lambda f: counter_from_text(f, name="odd")]
)
def test_an_answer_that_is_no_count_is_an_error_with_its_place(make: Any, answer: Any) -> None:
    """A bool, a negative or a non-integer is refused, and the message is named."""

    def count(text: str) -> Any:
        return answer if text == "bad" else 1

    messages = [{"role": "user", "content": text} for text in ("good", "bad", "good")]
    with pytest.raises(CountingError) as caught:
        make(count).count(messages)
    assert (caught.value.counter, caught.value.index, caught.value.answer) == ("odd", 1, answer)
    assert "odd" in str(caught.value)
    assert "message 1" in str(caught.value)


@pytest.mark.parametrize("error", [ValueError("no"), ZeroDivisionError(), RecursionError(), TypeError("bad")])
def test_a_text_function_that_raises_is_an_error_with_its_cause(error: Exception) -> None:
    """The cause is kept, and the place is named: in the fast path and in the slow one."""

    def count(text: str) -> int:
        if text == "bad":
            raise error
        return 1

    for message in ({"role": "user", "content": "bad"}, calling(function_call(name="bad"))):
        with pytest.raises(CountingError) as caught:
            TextCounter(count, name="odd").count([USER, message])
        assert caught.value.index == 1
        assert caught.value.__cause__ is error


class PanicException(BaseException):
    """What pyo3 raises is called so, and is no Exception either."""


def test_a_panic_of_a_tokenizer_is_an_error_of_ours() -> None:
    """A user can catch it."""

    def count(text: str) -> int:
        raise PanicException("called `Result::unwrap()` on an `Err` value")

    with pytest.raises(CountingError, match="PanicException"):
        TextCounter(count, name="panics").count_text("text")


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_a_signal_to_stop_passes_through(signal: type[BaseException]) -> None:
    """Interrupts and cancellation are not failures of a counter."""

    def count(text: str) -> int:
        raise signal

    with pytest.raises(signal):
        TextCounter(count, name="stopped").count([USER])
    with pytest.raises(signal):
        counter_from_text(count).count([USER])


def test_lone_surrogates_are_replaced_only_where_the_function_refuses_them() -> None:
    """A function that takes any text gets it as it is."""
    asked: list[str] = []

    def picky(text: str) -> int:
        asked.append(text)
        return len(text.encode("utf-8"))

    assert TextCounter(picky, name="picky").count_text("a\ud83d") == 1 + 3
    assert asked == ["a\ud83d", "a\ufffd"]
    assert TextCounter(len, name="any").count_text("a\ud83d") == 2


def test_base64_is_never_counted_as_text() -> None:
    """A picture of a megabyte costs what its rule says."""
    data = "data:image/png;base64," + "A" * 1_000_000
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": data}}]}
    for counter in (counter_for("gpt-4o"), counter_for("gpt-5-mini"), EstimateCounter(), CharCounter()):
        assert counter.count_message(image) < 2_000


def test_a_counter_for_another_format_shares_what_it_remembers() -> None:
    """Only how messages are read changes; where nothing does, it is the same counter."""
    counter = word_counter()
    twin = counter.with_format("anthropic")
    assert twin is not counter
    assert twin.count([USER]) == counter.count([USER])
    assert counter.with_format("openai_chat") is counter
    assert repr(counter) == "<TextCounter 'words' exact=False>"


@pytest.mark.parametrize("model", ["gemini-2.0-flash", "vertex/gemini-2.5-flash"])
@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("openai_chat", {"role": "tool", "tool_call_id": "a", "content": "x"}),
        ("openai_chat", {"role": "tool", "tool_call_id": "a", "content": ""}),
        ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}),
        ("gemini", {"role": "user", "parts": [{"functionResponse": {"name": "f"}}]}),
        ("bedrock", {"role": "user", "content": [{"toolResult": {"toolUseId": "a"}}]}),
    ],
)
def test_no_message_costs_less_than_nothing(model: str, form: str, message: dict[str, Any]) -> None:
    """However much of a result is not charged; whichever way it is counted."""
    counter = counter_for(model).with_format(form)
    sizes: list[int | None] = [None]
    counter.count_back([message], 0, 1, 100, sizes)
    assert sizes == [counter.count_message(message)]
    assert counter.count_message(message) >= 0
    assert counter.count([message]) == counter.count_message(message)
