"""Answers of counters are checked wherever they come from, and failures say which message it was."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.builders import user
from trimtab import fit
from trimtab.counting import (
    AdditiveCounter,
    CharCounter,
    EstimateCounter,
    FixedCounter,
    counter_for,
    counter_from_text,
)
from trimtab.errors import CountingError, FormatError
from trimtab.formats import get_format

CHAT = [user("a"), user("bad"), user("c")]
ANSWERS = [1.5, -3, True, "3", None]


class Odd(AdditiveCounter):
    """A subclass of a user's that answers as it is told about "bad"."""

    __slots__ = ("_say",)

    def __init__(self, say: Callable[[], Any]) -> None:
        self._format = get_format("openai_chat")
        self.name, self.exact, self._say = "odd", True, say

    def count_message(self, message: Any, /) -> Any:
        """Count 1."""
        return self._say() if message["content"] == "bad" else 1


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(
    "ask", [lambda c: fit(CHAT, 99, counter=c), lambda c: c.count(CHAT)], ids=["fit", "count"]
)
def test_an_additive_counter_is_checked(ask: Callable[[Any], Any], answer: Any) -> None:
    """The error names counter and message, and has the answer."""
    with pytest.raises(
        CountingError, match=r"odd returned .* for message 1; a count must be an integer"
    ) as caught:
        ask(Odd(lambda: answer))
    assert (caught.value.counter, caught.value.index, caught.value.answer) == ("odd", 1, answer)


@pytest.mark.parametrize("error", [RuntimeError("no"), TypeError("no"), KeyError("no")])
@pytest.mark.parametrize(
    "ask", [lambda c: fit(CHAT, 99, counter=c), lambda c: c.count(CHAT)], ids=["fit", "count"]
)
def test_what_an_additive_counter_raises_is_a_counting_error(
    ask: Callable[[Any], Any], error: Exception
) -> None:
    """With its place and its cause."""

    def fail() -> int:
        raise error

    with pytest.raises(CountingError, match="odd failed on message 1") as caught:
        ask(Odd(fail))
    assert caught.value.index == 1
    assert caught.value.__cause__ is error


class Back:
    """A counter of a user's that counts back by itself."""

    name = "back"

    def __init__(self, fill: Callable[[list[Any]], Any]) -> None:
        self.fill = fill

    def count(self, messages: Any) -> int:
        """Count 1 each."""
        return len(messages)

    def count_message(self, message: Any) -> int:
        """Count 1."""
        return 1

    def count_back(self, messages: Any, start: int, stop: int, room_tokens: int, sizes: list[Any], /) -> Any:
        """Fill in what it was told to."""
        sizes[start:stop] = [1] * (stop - start)
        return self.fill(sizes)


def setting(index: int, size: Any) -> Callable[[list[Any]], Any]:
    """Make a `count_back` that says it counted all, and fills in one size of its own."""

    def fill(sizes: list[Any]) -> int:
        sizes[index] = size
        return 0

    return fill


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_counting_back_fills_in_is_checked(answer: Any) -> None:
    """Every size of the range it says it counted, None among them."""
    with pytest.raises(CountingError, match=r"back returned .* for message 0") as caught:
        fit(CHAT, 99, counter=Back(setting(0, answer)))
    assert (caught.value.index, caught.value.answer) == (0, answer)


@pytest.mark.parametrize("low", [-1, 4, 1.0, None, True])
def test_where_counting_back_stopped_is_checked(low: Any) -> None:
    """A position in the range it was asked for."""
    with pytest.raises(CountingError, match="back"):
        fit(CHAT, 99, counter=Back(lambda sizes: low))


def test_what_counting_back_raises_is_a_counting_error() -> None:
    """With its cause; sizes that are right are taken."""
    with pytest.raises(CountingError, match="back failed on a request: ZeroDivisionError") as caught:
        fit(CHAT, 99, counter=Back(lambda sizes: 1 // 0))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert fit(CHAT, 99, counter=Back(setting(0, 5))).report.tokens_after == 5 + 1 + 1


async def later(*_: Any) -> int:
    """Count, but not now."""
    return 3


class AsyncCall:
    """A callable object whose call is asynchronous."""

    async def __call__(self, messages: Any) -> int:
        """Count, but not now."""
        return 3


class AsyncMessage:
    """A counter whose single messages are counted asynchronously."""

    def count(self, messages: Any) -> int:
        """Count 3."""
        return 3

    async def count_message(self, message: Any) -> int:
        """Count, but not now."""
        return 3


@pytest.fixture
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()


@pytest.mark.few(1)
@pytest.mark.usefixtures("_no_warnings")
@pytest.mark.parametrize(
    "counter",
    [
        AsyncMessage(),
        lambda messages: later(messages),
        counter_from_text(lambda text: later(text)),  # type: ignore[arg-type,return-value]  # wrong on purpose
        Odd(later),
        Back(later),
    ],
    ids=["message", "returned", "text", "additive", "back"],
)
def test_an_answer_that_is_still_to_come_is_refused(
    counter: Any, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """In words that say so; and Python does not warn of a coroutine that was never awaited."""
    with pytest.raises(CountingError, match="is async"):
        fit(CHAT, 99, counter=counter)
    gc.collect()
    assert "never awaited" not in capsys.readouterr().err
    assert not recwarn.list


def nested() -> Any:
    """Make a value that is nested deeper than can be written."""
    value: Any = "end"
    for _ in range(100_000):
        value = [value]
    return value


def circle() -> Any:
    """Make a value that contains itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize("make_value", [nested, circle])
@pytest.mark.parametrize(
    "counter",
    [
        counter_for("gpt-4o"),
        EstimateCounter(),
        CharCounter(),
        FixedCounter(1),
        counter_from_text(lambda text: len(text.split())),
    ],
    ids=["exact", "estimate", "characters", "fixed", "function"],
)
def test_a_message_that_cannot_be_written_is_named_by_its_index(
    counter: Any, make_value: Callable[[], Any]
) -> None:
    """By `fit` and by the counter itself."""
    odd = {"role": "assistant", "content": "x", "odd": make_value()}
    for ask in (
        lambda: fit([user("a"), odd, user("b")], 99, counter=counter),
        lambda: counter.count([user("a"), odd]),
    ):
        with pytest.raises(FormatError, match=r"^messages\[1\]: ") as caught:
            ask()
        assert caught.value.path == "messages[1]"


def test_a_black_box_too_is_told_which_message_cannot_be_written() -> None:
    """Where its total has to be shared among messages."""
    chat = [user("a"), {"role": "assistant", "content": "x", "odd": circle()}]
    with pytest.raises(FormatError, match=r"^messages\[1\]: "):
        fit(
            chat,
            9,
            counter=lambda messages: len(messages) * 2,
            on_trim=lambda context: context.remove(
                [one.seq for one in context.message_elements if one.tokens > 9]
            ),
        )
