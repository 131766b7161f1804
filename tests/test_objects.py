"""`fit(objects, read=, write=)`: a framework's own messages, read where the fit looks and written back."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import call, conversations, result, talk, user, words
from tests.properties.cases import GAPS, STRATEGIES, SUMMARIES
from trimtab import BudgetExceededError, ConfigurationError, Fitted, SlidingWindow, afit, fit
from trimtab.errors import FormatError, InvalidHistoryError
from trimtab.formats import formats, get_format
from trimtab.history import ReadCache
from trimtab.testing import WordCounter, request_bodies

WORDS = WordCounter()


@dataclass(frozen=True, eq=False)
class Turn:
    """A made-up framework's message: it may hold several of a provider's."""

    said: tuple[Any, ...]


def read_each(turn: Turn) -> Any:
    """Read a turn as the one message it holds."""
    return turn.said[0]


def read_list(turn: Turn) -> list[Any]:
    """Read a turn as its messages."""
    return list(turn.said)


def write(turn: Turn | None, messages: list[Any]) -> Turn:
    """Write messages as a turn."""
    return Turn(tuple(messages)) if turn is None else replace(turn, said=tuple(messages))


def outcome(make: Callable[[], Fitted[Any]]) -> Any:
    """Return a fit, what came nearest, or None where a repair could not mend what stays."""
    try:
        return make()
    except InvalidHistoryError:
        return None
    except BudgetExceededError as error:
        return error.attempt


@pytest.mark.parametrize("name", formats())
@given(data=st.data())
def test_it_is_the_fit_of_the_messages_mapped_back(name: str, data: st.DataObject) -> None:
    """In every form and for every strategy: as if the wire messages were given, in turns of any size."""
    body = request_bodies(1, format=name, seed=data.draw(st.integers(0, 99_999)))[0]
    messages = body[get_format(name).rules.body_key]
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=len(messages), max_size=len(messages)))
    single = data.draw(st.booleans())
    turns, owners = grouped(messages, [1] * len(messages) if single else sizes)
    counter = WordCounter(format=name)
    how: dict[str, Any] = {
        "counter": data.draw(st.sampled_from((counter, counter.count))),
        "strategy": data.draw(st.sampled_from((None, *STRATEGIES, *SUMMARIES, *GAPS))),
        "format": name,
        "repair": data.draw(st.booleans()),
        "system": data.draw(st.sampled_from((None, "be brief"))),
    }
    limit = max(1, counter.count(messages) * data.draw(st.integers(1, 110)) // 100)
    plain = outcome(lambda: fit(messages, limit, **how))
    made = outcome(lambda: fit(turns, limit, read=read_each if single else read_list, write=write, **how))
    assert (made is None) == (plain is None)
    if made is None:
        return
    assert [message for turn in made.messages for message in turn.said] == plain.messages
    assert made.report.to_dict() == plain.report.to_dict()
    expected: list[int | None] = []
    for owner, run in groupby(plain.positions, lambda at: None if at is None else owners[at]):
        expected += [None for _ in run] if owner is None else [owner]
    assert [at for at in made.positions if at is None or turns[at].said] == expected
    for at, (turn, was) in enumerate(zip(made.messages, made.positions, strict=True)):
        assert (at in made.changed) == (was is not None and turn is not turns[was])
        if was is not None and at not in made.changed:
            assert list(turn.said) == [m for m, owner in zip(messages, owners, strict=True) if owner == was]
    left = set(range(len(turns))) - set(made.positions)
    assert list(map(id, made.evicted)) == [id(turns[at]) for at in sorted(left)]


def grouped(messages: list[Any], sizes: list[int]) -> tuple[list[Turn], list[int]]:
    """Put messages into turns of these sizes; say in which turn each is."""
    turns, owners, rest = [], [], list(messages)
    for size in [*sizes, *([len(messages)] if sum(sizes) < len(messages) else [])]:
        turns.append(Turn(tuple(rest[:size])))
        owners += [len(turns) - 1] * len(rest[:size])
        rest = rest[size:]
    return turns, owners


class Counted:
    """A `read` that notes what it read."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read
        self.of: list[Any] = []

    def __call__(self, thing: Any, /) -> Any:
        """Read, and note it."""
        self.of.append(thing)
        return self.read(thing)


LONG = [Turn((one,)) for one in talk(" ".join(["u20 a20 cA,B rA30 rB30"] * 2_000))]


@pytest.mark.parametrize("strategy", [None, SlidingWindow(), "agent"])
def test_no_more_is_read_than_is_looked_at(strategy: Any) -> None:
    """10,000 objects into 8,000 tokens: about as many as stay, the newest first, each once."""
    read = Counted(read_each)
    fitted = fit(LONG, 8_000, counter=WORDS, strategy=strategy, format="openai_chat", read=read, write=write)
    assert len(fitted.messages) > 300
    most = 4 if strategy == "agent" else 1.3  # whose older results are cleared, so that more of them may fit
    assert len(read.of) < most * len(fitted.messages) + 20
    assert len(set(map(id, read.of))) == len(read.of)
    assert fitted.report.fits
    assert fitted.positions[-1] == len(LONG) - 1
    before = len(read.of)
    assert len(fitted.report.messages) == len(fitted.evicted) + len(fitted.messages) == len(LONG)
    assert len(read.of) == before
    assert fitted.report.messages[0].role == "user"
    assert len(read.of) == len(LONG)


def test_lists_are_read_all_and_once() -> None:
    """How many messages stand before one is told by no part of them."""
    read = Counted(read_list)
    fitted = fit(LONG, 8_000, counter=WORDS, format="openai_chat", read=read, write=write)
    assert fitted.changed == []
    assert len(read.of) == len({id(one) for one in read.of}) == len(LONG)


def test_a_cache_reads_an_object_once_in_all_fits() -> None:
    """Of a chat that grows only what is new is read."""
    counted = Counted(read_list)
    read = ReadCache(counted)
    for count in range(100, 110):
        fit(LONG[:count], 500, counter=WORDS, format="openai_chat", read=read, write=write)
    assert len(counted.of) == 109


def test_a_cache_keeps_so_many_and_those_used_last() -> None:
    """The object lives on with its reading, so its identity is nobody else's."""
    counted = Counted(len)
    read = ReadCache(counted, most_objects=2)
    a, b, c = [1], [1, 1], [1, 1, 1]
    assert [read(one) for one in (a, b, a, c, a, b)] == [1, 2, 1, 3, 1, 2]
    assert [len(one) for one in counted.of] == [1, 2, 3, 2]
    with pytest.raises(ConfigurationError, match="most_objects"):
        ReadCache(len, most_objects=0)


def test_a_conversation_that_is_fitted_stays_in_a_cache() -> None:
    """Its objects are used by each fit; those that nobody asks for leave first."""
    counted = Counted(read_each)
    read = ReadCache(counted, most_objects=150)
    chat, others = list(LONG[:100]), [Turn(tuple(talk("u1"))) for _ in range(50)]
    fresh = [Turn(tuple(talk("u2"))) for _ in range(50)]
    for between in (others, fresh):
        fit(chat, 8_000, counter=WORDS, format="openai_chat", read=read, write=write)
        for one in between:
            read(one)
    seen = len(counted.of)
    fit(chat, 8_000, counter=WORDS, format="openai_chat", read=read, write=write)
    assert len(counted.of) == seen == 200
    read(others[0])
    assert len(counted.of) == seen + 1


def test_what_a_cache_gives_may_be_any_kind_of_reading() -> None:
    """Lists and tuples, some of them known before; the output is the same as without a cache."""

    def read(turn: Turn) -> Any:
        return list(turn.said) if len(turn.said) % 2 else turn.said

    turns = [Turn(tuple(talk("u9 a1"))), Turn(tuple(talk("a3"))), Turn(tuple(talk("a1 u1")))]
    plain = fit(turns, 6, counter=WORDS, read=read, write=write, format="openai_chat")
    for count in (0, 1, 3):
        cache = ReadCache(read)
        for turn in turns[:count]:
            cache(turn)
        found = fit(turns, 6, counter=WORDS, read=cache, write=write, format="openai_chat")
        assert (found.positions, found.changed) == (plain.positions, plain.changed)
        assert [one.said for one in found.messages] == [one.said for one in plain.messages]


def test_an_object_changed_in_place_is_read_anew_by_the_next_fit() -> None:
    """As a message that is changed in place; what one fit has read holds for its report and other budgets."""
    turns = [["u", "one"], ["u", "two"]]

    def read(turn: Any) -> Any:
        return user(turn[1])

    def never(turn: Any, messages: list[Any]) -> Any:
        raise AssertionError("nothing changed")

    first = fit(turns, 9, counter=WORDS, read=read, write=never)
    turns[0][1] = "one and more"
    assert fit(turns, 9, counter=WORDS, read=read, write=never).report.tokens_after == 4
    assert (first.report.tokens_after, first.at(2).report.tokens_after) == (2, 2)


def test_only_what_changed_is_written() -> None:
    """Of a turn of several messages those that stay; what was put in is written for no object."""
    asked: list[Any] = []

    def note(turn: Turn | None, messages: list[Any]) -> Turn:
        asked.append((turn, len(messages)))
        return write(turn, messages)

    turns = [Turn(tuple(talk("u9 a1"))), Turn(tuple(talk("a3 u2"))), Turn(tuple(talk("a1 u1")))]
    fitted = fit(turns, 6, counter=WORDS, system="be", read=read_list, write=note, format="openai_chat")
    assert (fitted.positions, fitted.changed) == ([None, 1, 2], [1])
    assert asked == [(None, 1), (turns[1], 1)]
    assert fitted.messages[1].said == turns[1].said[1:]
    assert fitted.messages[2] is turns[2]
    assert fitted.evicted == turns[:1]


def test_an_object_that_is_given_twice_is_told_by_its_place() -> None:
    """Of two that are the same object the first may stay, and the second leave."""
    question, answer, newest = (Turn((one,)) for one in talk("u1 a3 u1"))
    turns = [question, answer, answer, newest]
    for read in (read_each, read_list):
        fitted = fit(turns, 5, counter=WORDS, strategy="drop_newest", read=read, write=write)
        assert (fitted.positions, fitted.messages) == ([0, 1, 3], [question, answer, newest])


def test_what_was_put_in_may_have_no_place_in_the_framework() -> None:
    """None leaves it out; an object of the caller's may not go that way: a call could lack its result."""

    def ours(turn: Turn | None, messages: list[Any]) -> Turn | None:
        return None

    turns = [Turn((one,)) for one in talk("u1 a40 u1")]
    for read in (read_each, read_list):
        fitted = fit(turns, 99, counter=WORDS, system="be", read=read, write=ours)
        assert (fitted.positions, fitted.messages) == ([0, 1, 2], turns)
        with pytest.raises(
            ConfigurationError, match=r"None for objects\[1\], of which 1 of 1 messages are kept"
        ):
            fit(turns, 12, counter=WORDS, strategy="truncate_text", read=read, write=ours)


def test_an_object_that_reads_as_nothing_stays_with_the_one_before_it() -> None:
    """And at the front with all; where everything fits all are there."""
    turns = [Turn(()), *(Turn(tuple(talk(line))) for line in ("u3", "a1")), Turn(()), Turn(tuple(talk("u1")))]
    assert fit(turns, 99, counter=WORDS, read=read_list, write=write).messages == turns
    cut = fit(turns, 1, counter=WORDS, read=read_list, write=write)
    assert cut.positions == [0, 4]


def test_a_result_that_is_mended_is_written_where_it_stands() -> None:
    """A repair that moves a result within its turn, or out of it: each part is an object of its own then."""
    turns = [Turn((user(), call("A"))), Turn((user("wait"), result("A"))), Turn((user(),))]
    fitted = fit(turns, 99, counter=WORDS, repair=True, read=read_list, write=write)
    said = [[message["role"] for message in turn.said] for turn in fitted.messages]
    assert said == [["user", "assistant"], ["tool", "user"], ["user"]]
    assert (fitted.positions, fitted.changed) == ([0, 1, 2], [1])
    apart = [Turn((call("A"),)), Turn((user(),)), Turn((user("wait"), result("A"), user())), Turn((user(),))]
    fitted = fit(apart, 99, counter=WORDS, repair=True, read=read_list, write=write)
    assert [[message["role"] for message in turn.said] for turn in fitted.messages] == [
        ["assistant"],
        ["tool"],
        ["user"],
        ["user", "user"],
        ["user"],
    ]
    assert (fitted.positions, fitted.changed) == ([0, 2, 1, 2, 3], [1, 3])


def test_pins_are_objects() -> None:
    """By position, or by a function of the object, which reads none."""
    turns = [Turn(tuple(talk(line))) for line in ("u2 a2", "u9 a9", "u1")]
    for pin in ([0], lambda turn, at: turn is turns[0]):
        fitted = fit(turns, 6, counter=WORDS, pin=pin, read=read_list, write=write)
        assert fitted.messages == [turns[0], turns[2]]


def test_a_callback_sees_messages_and_runs_once() -> None:
    """What it takes out is a message of an object; the rest of the object is written."""
    seen: list[int] = []

    def trim(context: Any) -> None:
        seen.append(len(context.messages))
        context.remove(1)

    turns = [Turn(tuple(talk("u1 a1"))), Turn(tuple(talk("u1 a1 u1")))]
    fitted = fit(turns, 99, counter=WORDS, on_trim=trim, read=read_list, write=write)
    assert seen == [5]
    assert [len(turn.said) for turn in fitted.messages] == [1, 3]
    assert fitted.changed == [0]


def test_it_can_be_awaited() -> None:
    """`afit` with a counter that answers later gives the same."""

    async def count(messages: list[Any]) -> int:
        return WORDS.count(messages)

    turns = [Turn(tuple(talk(line))) for line in ("u9 a2", "u2 a1", "u1")]
    for read in (read_list, lambda turn: turn.said[0]):
        fitted = asyncio.run(afit(turns, 5, counter=count, read=read, write=write))
        assert fitted.messages == fit(turns, 5, counter=WORDS, read=read, write=write).messages


def test_it_survives_copying() -> None:
    """A copy has the objects and where they were."""
    turns = [Turn((one,)) for one in talk("u9 a2 u1")]
    fitted = fit(turns, 4, counter=WORDS, read=read_each, write=write)
    for twin in (copy.copy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert [turn.said for turn in twin.messages] == [turns[2].said]
        assert (twin.positions, twin.changed, len(twin.evicted)) == ([2], [], 2)
        assert repr(twin) == repr(fitted)
    assert fitted.positions_in("history") == [2]


@pytest.mark.parametrize(
    ("how", "words_of_it"),
    [
        ({"read": read_each}, "read= and write= must be passed together"),
        ({"write": write}, "read is None"),
        ({"read": lambda: 1, "write": write}, r"read is called with \(object\)"),
        ({"read": read_each, "write": lambda one: one}, r"write is called with \(object, messages\)"),
    ],
)
def test_what_is_no_reader_is_refused(how: dict[str, Any], words_of_it: str) -> None:
    """One without the other, and functions that cannot be called so."""
    with pytest.raises(ConfigurationError, match=words_of_it):
        fit([Turn((user(),))], 9, counter=WORDS, **how)


def test_what_a_reader_gives_must_be_messages() -> None:
    """The error says of which object; what the reader raises itself comes out with a note."""
    turns = [Turn((user(),)), Turn(("text",))]
    with pytest.raises(FormatError, match=r"objects\[1\]: what read= returned is not a message"):
        fit(turns, 9, counter=WORDS, read=read_each, write=write)
    with pytest.raises(FormatError, match=r"objects\[1\]: what read= returned is not a message"):
        fit(turns, 9, counter=WORDS, read=read_list, write=write)
    with pytest.raises(IndexError) as caught:
        fit([Turn(())], 9, counter=WORDS, read=read_each, write=write)
    assert caught.value.__notes__ == ["raised by read= for objects[0]"]
    with pytest.raises(ConfigurationError, match="not a mapping"):
        fit({"messages": turns}, 9, counter=WORDS, read=read_each, write=write)  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="messages"):
        fit(None, 9, counter=WORDS, read=read_each, write=write)  # type: ignore[call-overload]


def test_single_messages_now_and_lists_later_are_refused() -> None:
    """What was decided took every older object for one message."""

    def read(turn: Turn) -> Any:
        return turn.said[0] if len(turn.said) == 1 else list(turn.said)

    talked = talk(" ".join(["u9 a9"] * 9))
    turns = [Turn((user(),)), Turn(tuple(talk("u1 a1"))), *(Turn((one,)) for one in talked)]
    fitted = fit(turns, 30, counter=WORDS, format="openai_chat", read=read, write=write)
    with pytest.raises(FormatError, match=r"objects\[1\] reads as a list, but newer objects"):
        list(fitted.report.messages)
    counted = Counted(read)
    assert len(fit(turns, 999, counter=WORDS, read=counted, write=write).messages) == len(turns)
    assert len(counted.of) == len(turns)


@given(conversations(), st.integers(1, 60))
def test_the_very_objects_come_out(messages: list[Any], limit: int) -> None:
    """Whatever the conversation: the one object for the one message, or a copy that says it is changed."""
    turns = [Turn((one,)) for one in messages]
    made = outcome(lambda: fit(turns, limit, counter=WORDS, read=read_each, write=write))
    for at, (turn, was) in enumerate(zip(made.messages, made.positions, strict=True)):
        assert (turn is turns[was]) == (at not in made.changed)


def test_a_long_text_is_cut_in_a_copy() -> None:
    """The object keeps what it said, and its copy says less."""
    turns = [Turn((user(words(90)),)), Turn((user("hi"),))]
    fitted = fit(turns, 20, counter=WORDS, strategy="truncate_text", read=read_each, write=write)
    assert fitted.changed == [0]
    assert len(turns[0].said[0]["content"]) > len(fitted.messages[0].said[0]["content"])


def test_what_is_no_message_is_named_by_its_object_each_time() -> None:
    """Also by the fit that finds it in a cache, alone or in a list."""
    for reading in (5, [user("hi"), 5]):
        read: ReadCache[Turn, Any] = ReadCache(lambda turn, reading=reading: reading)
        turns = [Turn((user("hi"),))]
        for _ in range(2):
            with pytest.raises(FormatError, match=r"objects\[0\]: what read= returned is not a message"):
                fit(turns, 20, counter=WORDS, read=read, write=write)


def test_a_cache_serves_conversations_that_take_turns() -> None:
    """Each is counted as it is, whichever was fitted before."""
    read: ReadCache[Turn, Any] = ReadCache(read_each)
    short, long = ([Turn((user(words(count)),)) for _ in range(3)] for count in (1, 5))
    for _ in range(2):
        for turns, tokens in ((short, 3), (long, 15), (long[:2], 10)):
            fitted = fit(turns, 40, counter=WORDS, read=read, write=write)
            assert fitted.report.tokens_after == tokens


class _Counts:
    """A counter of single messages that writes them as JSON, and may walk back by itself."""

    def count(self, messages: list[Any]) -> int:
        return sum(map(self.count_message, messages))

    def count_message(self, message: Any) -> int:
        return len(json.dumps(message)) // 4

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None]
    ) -> int:
        while stop > start and room_tokens >= 0:
            stop -= 1
            sizes[stop] = self.count_message(messages[stop])
            room_tokens -= sizes[stop] or 0
        return stop


class _CountsLater:
    """The same, awaited."""

    async def count_message(self, message: Any) -> int:
        return len(json.dumps(message)) // 4

    async def fixed_tokens(self, *_: Any, **__: Any) -> int:
        return 0


async def _later(messages: list[Any]) -> int:
    return len(json.dumps(messages)) // 4


@pytest.mark.parametrize(
    "counter",
    [
        lambda messages: len(str(messages)) // 4,
        lambda messages: sum(len(repr(message)) for message in messages) // 4,
        lambda messages: len(json.dumps(messages)) // 4,
        _Counts(),
        _CountsLater(),
        _later,
    ],
    ids=["str", "repr", "json", "walks", "awaited", "awaited list"],
)
def test_a_counter_that_looks_at_a_message_as_text_sees_the_message(counter: Any) -> None:
    """It saw `<Unread object at 0x…>`: 450 tokens were said of 3,750."""
    turns = [Turn((user("word " * 100),)) for _ in range(30)]
    given: dict[str, Any] = {"format": "openai_chat", "counter": counter, "read": read_each, "write": write}
    later = isinstance(counter, _CountsLater) or counter is _later
    fitted = asyncio.run(afit(turns, 500, **given)) if later else fit(turns, 500, **given)
    sent = [turn.said[0] for turn in fitted.messages]
    assert 2 <= len(sent) <= 4
    assert len(json.dumps(sent)) // 4 <= 500 < len(json.dumps([*sent, sent[0]])) // 4
