"""What may be given as `counter=`: a counter, a function of a list or of a text, or words."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import assistant, user
from trimtab import CharCounter, ConfigurationError, Context, EstimateCounter, Session, fit
from trimtab import afit as fit_later
from trimtab.counting import AdditiveCounter, AsyncRequestCounter, CountRequest, RequestCounter, measure
from trimtab.errors import CountingError
from trimtab.history import evict_messages, within

CHAT = [one for n in range(127) for one in (user(f"{n} " + "x" * 396), assistant("y" * 400))]


def quarter(text: str) -> int:
    """Count a token every four characters, as the references' own counters do."""
    return math.ceil(len(text) / 4)


def of_list(messages: list[Any]) -> int:
    """Count the same over a list of messages."""
    return sum(4 + quarter(one["content"]) for one in messages)


def in_a_session(counter: Any) -> int:
    """Tell how many messages a session shows."""
    session = Session(budget=2_080, counter=counter, target_ratio=1.0)
    session.extend(CHAT)
    return len(session.messages())


DOORS: dict[str, Callable[[Any], int]] = {
    "fit": lambda counter: len(fit(CHAT, 2_080, counter=counter).messages),
    "afit": lambda counter: len(asyncio.run(fit_later(CHAT, 2_080, counter=counter)).messages),
    "Context": lambda counter: len(Context(2_080, counter=counter).add("history", CHAT).fit().messages),
    "within": lambda counter: len(within(CHAT, 2_080, counter)),
    "evict_messages": lambda counter: len(evict_messages(CHAT, 2_080, counter=counter).remaining),
    "Session": in_a_session,
    "measure": lambda counter: measure(CHAT, counter=counter).tokens // 104,
}
"""How many of the messages fit, by each way to give a counter; 20 of 104 tokens each do."""


@pytest.mark.parametrize("door", DOORS)
def test_a_function_of_a_text_counts_what_messages_hold(door: str) -> None:
    """Not the entries of the list: 254 messages of 100 tokens and 4 around them are no 64 tokens."""
    ask = DOORS[door]
    assert ask(quarter) == ask(of_list) == (254 if door == "measure" else 20)


def test_the_report_says_that_a_function_was_taken_for_one_of_a_text() -> None:
    """So that nobody wonders where the tokens of framing come from."""
    report = fit(CHAT, 2_080, counter=quarter).report
    assert report.counter == "quarter, a function of a text"
    assert not report.exact
    assert fit(CHAT, 2_080, counter=of_list).report.counter == "of_list"


@pytest.mark.parametrize(
    ("counter", "tokens"),
    [
        pytest.param(lambda text: len(text.split()), 2 + 4, id="words"),
        pytest.param(lambda text: len(text.encode()), 7 + 4, id="bytes"),
        pytest.param(lambda messages: sum(len(one["content"]) for one in messages), 7, id="list"),
        pytest.param(lambda messages: len(str(messages)) // 2, 20, id="what-a-list-looks-like"),
        pytest.param(lambda messages: sum(1 for one in messages if one["role"]), 1, id="entries"),
        pytest.param(lambda messages: 500, 500, id="more-than-the-text"),
    ],
)
def test_a_function_is_taken_for_what_it_reads(counter: Any, tokens: int) -> None:
    """A list, if it reads one; else a text. `str([{'role': …}])` of this message has 40 characters."""
    message = {"role": "user", "content": "one two"}
    assert fit([message], 1_000, counter=counter).report.tokens_after == tokens


@pytest.mark.parametrize(
    ("counter", "why"),
    [
        pytest.param(lambda what: 7, "it returns 7 for a list of one message and 7 for", id="alike"),
        pytest.param(lambda text: len(text) / 4, "returns a fraction for a text", id="fraction"),
        pytest.param(lambda message: len(message["content"]), "counts a single message", id="message"),
    ],
)
def test_a_function_that_counts_neither_is_refused_with_both_ways_to_write_it(counter: Any, why: str) -> None:
    """Before anything is fitted."""
    with pytest.raises(ConfigurationError, match=why) as caught:
        Context(100, counter=counter)
    assert "counter=lambda text: math.ceil(len(text) / 4)" in str(caught.value)
    assert "counter=lambda messages: sum(" in str(caught.value)


def test_a_function_that_fails_on_everything_says_why_when_it_is_asked_in_earnest() -> None:
    """It may need a key that the message of the probe does not have."""

    def by_size(messages: list[Any]) -> int:
        return sum(one["size"] for one in messages)

    assert fit([{"role": "user", "content": "hi", "size": 9}], 10, counter=by_size).report.tokens_after == 9
    with pytest.raises(CountingError, match=r"by_size failed on a request: KeyError: 'size'"):
        fit([user("hi")], 10, counter=by_size)


def test_a_function_is_tried_out_once() -> None:
    """A good one over lists with one list; the next fit asks nothing but what it needs."""
    asked: list[Any] = []

    def count(messages: list[Any]) -> int:
        asked.append(messages)
        return of_list(messages)

    within(CHAT[:1], 10_000, count)
    first, asked[:] = len(asked), []
    within(CHAT[:1], 10_000, count)
    assert len(asked) == first - 1


def test_a_function_of_a_text_keeps_its_counts_from_fit_to_fit() -> None:
    """Each text is counted once in a growing chat, as by `counter_from_text`."""
    texts: list[str] = []

    def count(text: str) -> int:
        texts.append(text)
        return quarter(text)

    for size in (250, 252, 254):
        fit(CHAT[:size], 2_080, counter=count)
    known = {one["content"] for one in CHAT}
    counted = [text for text in texts if isinstance(text, str) and text in known]
    assert len(counted) == len(set(counted))


def test_an_async_function_of_a_text_is_refused_where_lists_are_counted() -> None:
    """`afit` asks it about lists; one over lists is awaited."""

    async def later(text: str) -> int:
        return quarter(text)

    async def list_later(messages: list[Any]) -> int:
        return of_list(messages)

    with pytest.raises(ConfigurationError, match="async function that counts a text"):
        asyncio.run(fit_later(CHAT, 2_080, counter=later))
    assert len(asyncio.run(fit_later(CHAT, 2_080, counter=list_later)).messages) == 20


@pytest.mark.parametrize(
    ("words", "counter"),
    [("estimate", EstimateCounter()), ("chars", CharCounter()), ("chars:3.5", CharCounter(3.5))],
)
@pytest.mark.parametrize("door", DOORS)
def test_words_for_counters_mean_the_same_as_in_policies(door: str, words: str, counter: Any) -> None:
    """And as on the command line."""
    assert DOORS[door](words) == DOORS[door](counter)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("chars:0", r"counter=chars:0: chars_per_token must be a number above 0"),
        ("chars:four", r"counter=chars:four: 'four' is not a number"),
        ("gpt-4o", r"counter='gpt-4o' is not one of .*'chars:N' \(such as 'chars:4'\).*pass model='gpt-4o'"),
    ],
)
@pytest.mark.parametrize("door", DOORS)
def test_other_words_are_refused_with_what_to_write(door: str, words: str, said: str) -> None:
    """At every door alike."""
    with pytest.raises(ConfigurationError, match=said):
        DOORS[door](words)


@pytest.mark.parametrize("door", DOORS)
def test_a_class_of_counters_is_refused_with_what_to_write(door: str) -> None:
    """It has a `count`, but counts nothing."""
    with pytest.raises(
        ConfigurationError, match=r"counter=CharCounter is a class: pass an object, CharCounter\(\.\.\.\)"
    ):
        DOORS[door](CharCounter)


@pytest.mark.parametrize("given", [{"counter": quarter}, {"counter": CharCounter()}, {"model": "gpt-4o"}])
def test_what_a_message_costs_beside_its_text_is_not_ignored_in_a_session(given: dict[str, Any]) -> None:
    """A counter and a model charge their own; the error says how a text function is given another."""
    with pytest.raises(ConfigurationError, match=r"counter_from_text\(fn, message_overhead=9\)"):
        Session(budget=2_080, message_overhead=9, **given)
    more, less = (Session(budget=2_080, message_overhead=n) for n in (9, 5))
    for session in (more, less):
        session.add(CHAT[0])
    assert more.token_count - less.token_count == 9 - 5


def test_a_session_of_an_older_trimtab_that_had_both_is_gone_on_with() -> None:
    """0.1 took an overhead beside a counter without a word; what its log says of it is let be."""
    session = Session(budget=2_080, message_overhead=9)
    session.extend(CHAT[:3])
    again = Session.restore(session.snapshot(), counter=CharCounter())
    assert again.messages() == CHAT[:3]
    with pytest.raises(ConfigurationError, match="message_overhead=9"):
        Session.restore(session.snapshot(), counter=CharCounter(), message_overhead=9)


class Letters(AdditiveCounter):
    """A counter of one's own that says nothing but what a message costs: its letters."""

    def count_message(self, message: Any, /) -> int:
        """Count the letters of the content."""
        return len(message["content"])


def test_an_additive_counter_of_ones_own_needs_one_method() -> None:
    """The base class adds up, cuts texts by messages, and counts what stands beside as a system message."""
    counter = Letters()
    assert counter.count([user("abc"), user("de")]) == 5
    assert counter.count_text("abcd") == 4
    assert counter.count_request(CountRequest([user("a")], system="Be brief.")) == 1 + len("Be brief.")
    report = fit([user("abc"), assistant("defg"), user("hi")], 8, counter=counter).report
    assert (report.counter, report.tokens_after) == ("Letters", 2)  # the older turn is 7
    assert measure([user("abc")], counter=counter).margin_tokens is None


def test_a_counter_of_whole_requests_is_asked_with_one_request() -> None:
    """With the charged parts of a body that the three arguments of other counters have no place for."""
    asked: list[CountRequest] = []

    class Whole(RequestCounter):
        def count_request(self, request: CountRequest, /) -> int:
            asked.append(request)
            return len(request.messages)

    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    body = {"messages": [user("hi")], "response_format": schema}
    assert measure(body, counter=Whole()).tokens == 1
    assert asked[-1].extra == {"response_format": schema}
    assert fit(body, 10, counter=Whole()).report.counter == "Whole"


def test_a_counter_that_counts_requests_and_no_lists_is_taken() -> None:
    """It gets messages, system text and tools; what else is charged stands before the messages."""
    asked: list[Any] = []

    class Requests:
        name = "requests"

        def count_request(self, messages: Any, system: Any = None, tools: Any = None) -> int:
            asked.append((list(messages), system, tools))
            return 7

    schema = {"type": "json_schema"}
    found = fit({"messages": [user("hi")], "response_format": schema}, 10, counter=Requests())
    assert found.report.tokens_after == 7
    leading = {"role": "system", "content": '{"response_format":{"type":"json_schema"}}'}
    assert ([leading, user("hi")], None, None) in asked


def test_an_async_counter_of_whole_requests_is_asked_as_it_stands() -> None:
    """One fit asks one snapshot of it, with one request."""
    taken: list[Any] = []

    class Later(AsyncRequestCounter):
        def snapshot(self) -> Later:
            taken.append(self)
            return self

        async def count_request(self, request: CountRequest, /) -> int:
            return 5 * len(request.messages)

    fitted = asyncio.run(fit_later([user("a"), assistant("b"), user("c")], 10, counter=Later()))
    assert (fitted.report.counter, fitted.report.tokens_after, len(taken)) == ("Later", 5, 1)


@pytest.mark.parametrize("counter", [[], [CharCounter()], (), range(3), b"x", deque()])
def test_a_sequence_is_no_counter(counter: Any) -> None:
    """Its `count` tells how often something is in it: every request came to 0 tokens, and fitted."""
    with pytest.raises(ConfigurationError, match="counter must be a single counter, not a"):
        fit([{"role": "user", "content": "a" * 4_000}], 100, counter=counter)
