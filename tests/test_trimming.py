"""`on_trim`: what a callback sees, and what leaves when it says so."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import places, result, talk, user
from tests.test_fitting import Picky
from trimtab import Budget, BudgetExceededError, ConfigurationError, afit, fit, validate
from trimtab.context import TrimContext
from trimtab.errors import CountingError, InvalidHistoryError
from trimtab.testing import WordCounter

WORDS = WordCounter()


def run(line: str, callback: Callable[[TrimContext], object], budget: Any = 99, **options: Any) -> list[int]:
    """Fit with a callback, and say which messages came out."""
    messages = talk(line)
    return places(fit(messages, budget, counter=WORDS, on_trim=callback, **options).messages, messages)


@pytest.mark.parametrize(
    ("seqs", "expected"),
    [
        (None, [0, 1, 2, 3, 4, 5]),
        ([], [0, 1, 2, 3, 4, 5]),
        (1, [0, 2, 3, 4, 5]),
        (0, [1, 2, 3, 4, 5]),
        (5, [0, 1, 2, 3, 4]),
        ([1, 4], [0, 2, 3, 5]),
        ([2], [0, 1, 4, 5]),
        (3, [0, 1, 4, 5]),
        ([2, 3], [0, 1, 4, 5]),
        ([99, -1, 6], [0, 1, 2, 3, 4, 5]),
        (range(6), []),
        (iter([4, 4]), [0, 1, 2, 3, 5]),
    ],
)
def test_a_callback_removes_messages_by_number(seqs: Any, expected: list[int]) -> None:
    """With their units; pinned ones too; unknown numbers are ignored (SPEC D9)."""
    assert run("s1 u1 cA rA1 a1 u1", lambda context: context.remove(seqs)) == expected


@pytest.mark.parametrize("name", ["budget", "limit_tokens", "messages", "total_tokens"])
def test_what_a_callback_reads_cannot_be_set(name: str) -> None:
    """It would change nothing; the error says what does."""
    with pytest.raises(ConfigurationError, match=rf"{name} of a TrimContext .*remove\(seq\)"):
        run("u1 a1 u1", lambda context: setattr(context, name, 5))


def without_budget(line: str, callback: Callable[[TrimContext], object], **options: Any) -> Any:
    """Fit without a budget, at once and awaited, which give the same."""
    messages = talk(line)
    found = fit(messages, counter=WORDS, on_trim=callback, **options)
    awaited = asyncio.run(afit(messages, counter=WORDS, on_trim=callback, **options))
    assert awaited.messages == found.messages
    assert awaited.report.to_dict() == found.report.to_dict()
    return found


def test_without_a_budget_the_callback_alone_decides() -> None:
    """SPEC D9, G: its budget is None and its limit none that is reached; nothing else leaves."""
    seen: list[Any] = []

    def callback(context: TrimContext) -> None:
        seen.append((context.budget, context.limit_tokens, context.total_tokens))
        context.remove(2)

    found = without_budget("s1 u2 cA rA1 a3 u4", callback)
    assert [message["role"] for message in found.messages] == ["system", "user", "assistant", "user"]
    assert seen == [(None, sys.maxsize, 11 + 2)] * 2  # name and arguments of the call are two words
    assert found.report.tokens_after == 10
    assert "No budget was given: evicted is what on_trim removed, and nothing else." in found.report.notes
    assert found.at(7).report.tokens_after <= 7


def words_and_one(messages: list[Any]) -> int:
    """A black box: nobody sees that one of it is of the list."""
    return sum(len(message["content"].split()) for message in messages) + 1


@pytest.mark.parametrize("count", [words_and_one, WORDS.count])
def test_without_a_budget_any_counter_will_do(count: Any) -> None:
    """A black box too, awaited too; the callback runs once, and the total is counted."""
    messages = talk("u2 a3 u4")
    calls: list[int] = []

    def callback(context: TrimContext) -> None:
        calls.append(context.total_tokens)
        context.remove(1)

    async def later(listed: list[Any]) -> int:
        return int(count(listed))

    found = fit(messages, counter=count, on_trim=callback, system="be brief")
    awaited = asyncio.run(afit(messages, counter=later, on_trim=callback, system="be brief"))
    assert places(found.messages[1:], messages) == places(awaited.messages[1:], messages) == [0, 2]
    assert len(calls) == 2
    assert found.report.remaining_tokens == awaited.report.remaining_tokens == 0


def test_without_a_budget_nothing_may_be_left() -> None:
    """Then nothing comes out."""
    assert without_budget("s1 u2 a3", lambda context: context.remove(range(9))).messages == []
    assert without_budget("s1 u2 a3", lambda context: None).messages == talk("s1 u2 a3")


def test_a_models_window_is_a_budget() -> None:
    """A callback without budget= goes by it, as fit does; without a callback there has to be one."""
    seen: list[Any] = []
    fit(talk("u1"), model="gpt-4o", counter=WORDS, on_trim=lambda context: seen.append(context.budget))
    assert seen[0].window == 128_000
    with pytest.raises(ConfigurationError, match="pass budget="):
        fit(talk("u1"), counter=WORDS)


def test_removing_acts_at_once_and_numbers_do_not_shift() -> None:
    """What is gone is gone from the context, and its totals."""
    seen: list[Any] = []

    def callback(context: TrimContext) -> None:
        seen.append((context.total_tokens, [element.seq for element in context.message_elements]))
        assert context.remove(1).remove([3]) is context
        seen.append((context.total_tokens, [element.seq for element in context.message_elements]))
        assert [message["content"] for message in context.messages] == ["w", "w w w"]

    assert run("s1 u2 a3 u4", callback) == [0, 2]
    assert seen == [(10, [0, 1, 2, 3]), (4, [0, 2])]


def test_an_open_call_stays() -> None:
    """Its result can still come; an answered one goes, and so does one nobody will answer."""
    assert run("u1 cA", lambda context: context.remove([0, 1])) == [1]
    assert run("u1 cA rA1", lambda context: context.remove(1)) == [0]
    assert run("u1 cA u1", lambda context: context.remove(1)) == [0, 2]
    assert run("u1 cA u1", lambda context: context.remove(1), pending_calls=["A"]) == [0, 1, 2]


def test_the_report_says_who_asked_and_what_went_along() -> None:
    """`callback` for the message named, `unit_of_removed` for the rest of its unit."""
    messages = talk("u1 cA,B rA1 rB2 u1")
    fitted = fit(messages, 99, counter=WORDS, on_trim=lambda context: context.remove([2]))
    assert [row.reason for row in fitted.report.messages] == [
        *(None, "unit_of_removed", "callback", "unit_of_removed", None)
    ]
    both = fit(messages, 99, counter=WORDS, on_trim=lambda context: context.remove(2).remove(3))
    assert [row.reason for row in both.report.messages][1:4] == ["unit_of_removed", "callback", "callback"]
    assert both.report.blocks[0].actions == ("removed_by_callback",)


def test_an_element_reads_as_a_mapping_and_as_attributes() -> None:
    """Its message is the caller's own; its role is the message's."""
    messages = talk("d2 u3 cA rA4")

    def callback(context: TrimContext) -> None:
        element = context.message_elements[3]
        assert element.message is messages[3]
        assert dict(element) == {"seq": 3, "message": messages[3], "tokens": 4, "role": "tool"}
        assert (element.seq, element["tokens"], len(element)) == (3, 4, 4)
        assert [each.role for each in context.message_elements] == ["developer", "user", "assistant", "tool"]
        with pytest.raises(KeyError):
            element["text"]

    assert run("u1", lambda context: None) == [0]
    fit(messages, 99, counter=WORDS, on_trim=callback)


def test_system_text_given_apart_is_not_the_callbacks() -> None:
    """Its numbers are those of the caller's list; the leading message is not among them."""
    messages = talk("u2 a3 u4")

    def callback(context: TrimContext) -> None:
        assert [(each.seq, each.tokens, each.role) for each in context.message_elements] == [
            *((0, 2, "user"), (1, 3, "assistant"), (2, 4, "user"))
        ]
        assert context.messages == messages
        context.remove([0, -1])

    fitted = fit(messages, 99, counter=WORDS, system="one two", on_trim=callback)
    assert fitted.messages == [{"role": "system", "content": "one two"}, *messages[1:]]
    assert [row.reason for row in fitted.report.messages] == ["callback", None, None]


def test_numbers_are_those_of_the_list_that_was_given_also_after_a_repair() -> None:
    """What the repair took has no number any more; system text in front has none at all."""
    messages = [result("Z"), user("one"), user("two"), user("three")]

    def callback(context: TrimContext) -> None:
        assert [each.seq for each in context.message_elements] == [1, 2, 3]
        context.remove([0, 2])

    fitted = fit(messages, 99, counter=WORDS, system="be", repair=True, on_trim=callback)
    assert fitted.messages[1:] == [messages[1], messages[3]]
    assert [row.reason for row in fitted.report.messages] == ["repair", None, "callback", None]


def test_a_message_without_a_role_says_what_it_is() -> None:
    """Wherever it stands behind system text; then the repair raises, and names it as the caller does."""
    roles: list[str] = []
    messages = [{"content": "x"}, user("q")]
    assert [one.rule for one in validate(messages)] == ["missing_role"]
    with pytest.raises(InvalidHistoryError, match=r"messages\[0\]\.role: the message has no role") as caught:
        fit(
            messages,
            99,
            repair=True,
            counter=WORDS,
            system="be",
            on_trim=lambda context: roles.extend(each.role for each in context.message_elements),
        )
    assert caught.value.index == 0
    assert roles == ["other", "user"]


def test_an_element_is_no_number() -> None:
    """Who removes elements is told to write `seq`."""
    with pytest.raises(ConfigurationError, match=r"element\.seq"):
        run("u1 u1", lambda context: context.remove(context.message_elements[0]))  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigurationError, match=r"element\.seq"):
        run("u1 u1", lambda context: context.remove(context.message_elements))  # type: ignore[arg-type]  # the same


def test_the_context_tells_the_budget_and_the_limit() -> None:
    """The limit is the input room."""
    budget = Budget(50, output_reserve=8)

    def callback(context: TrimContext) -> None:
        assert context.budget is budget
        assert context.limit_tokens == 42

    run("u1", callback, budget)


def test_what_a_callback_leaves_is_fitted_and_pins_follow() -> None:
    """Positions of pins are translated; what is gone cannot hold anything."""
    assert run("u5 a4 u3 a2 u1", lambda context: context.remove(0), 10, pin=[1]) == [1, 2, 3, 4]
    assert run("u5 a4 u3 a2 u1", lambda context: context.remove(0), 5, pin=[1]) == [1, 4]
    assert run("u5 a4 u3 a2 u1", lambda context: context.remove([0, 1]), 5, pin=[1]) == [4]
    with pytest.raises(BudgetExceededError):
        run("u5 a4 u3 a2 u1", lambda context: context.remove(0), 4, pin=[1])


def test_a_pending_call_is_still_one_after_the_callback() -> None:
    """It stays, though it is old and hardly anything fits."""
    line, gone = "u1 cA u1 u1 a5", lambda context: context.remove(0)
    assert run(line, gone, 8) == [2, 3, 4]
    assert run(line, gone, 8, pending_calls=["A"]) == [1, 3, 4]


def test_an_exception_goes_on_with_a_note() -> None:
    """It names the block."""

    def callback(context: TrimContext) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        run("u1", callback)
    assert caught.value.__notes__ == ["raised by on_trim of block 'history'"]


def test_a_size_that_cannot_be_counted_is_of_the_callers_message() -> None:
    """Its number is that of the list that was given, behind system text and a repair alike."""
    messages = [result("Z"), user("one"), user(5), user("three")]
    for options, number in (({"system": "be"}, 2), ({"system": "be", "repair": True}, 2), ({}, 2)):
        with pytest.raises(CountingError, match=rf"message {number}\b") as caught:
            fit(messages, 99, counter=Picky(), on_trim=lambda context: context.total_tokens, **options)
        assert caught.value.index == number


def test_objects_stay_objects_for_a_black_box_after_a_callback() -> None:
    """The counter reads plain dicts of them; what comes out is the caller's own."""

    class Said:
        def __init__(self, content: str) -> None:
            self.content = content

        def model_dump(self, **options: object) -> dict[str, str]:
            return {"role": "user", "content": self.content}

    def chars(messages: list[Any]) -> int:
        return sum(len(message["content"]) for message in messages)

    said = [Said("one"), Said("three")]
    fitted = fit(said, 99, counter=chars, on_trim=lambda ctx: ctx.remove(0))
    assert fitted.messages == said[1:]
    report = fitted.count_all()
    assert (report.tokens_before, report.tokens_after) == (8, 5)
