"""What was there before a fit is counted where a report is printed, unless that costs much."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from trimtab import CharCounter, Context, EstimateCounter, Fitted, counter_for, counter_from_text, fit
from trimtab.counting import AdditiveCounter, FixedCounter
from trimtab.report import Report

HOW = "  before    ? (not counted: fitted.count_all() or `trimtab count` does)"


def talk(count: int, text: str = "question") -> list[dict[str, Any]]:
    """Give messages of the user that say their number."""
    return [{"role": "user", "content": f"{text} {number}"} for number in range(count)]


def before(report: Report) -> str:
    """Return the line that says what was there before."""
    (line,) = (line for line in str(report).splitlines() if line.startswith("  before "))
    return line


def in_context(messages: list[dict[str, Any]], counter: Any) -> Fitted[Any]:
    """Fit messages as a block of a context."""
    return Context(100, counter=counter).add("history", messages).add("question", "now?", priority=9).fit()


OURS = {
    "estimate": EstimateCounter(),
    "chars": CharCounter(),
    "fixed": FixedCounter(per_message=10),
    "gpt-4o": counter_for("gpt-4o"),
    "a function of a text": counter_from_text(lambda text: len(text.split())),
}


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("many", [False, True], ids=["one block", "two blocks"])
def test_what_the_fit_did_not_need_is_counted_when_it_is_printed(name: str, many: bool) -> None:
    """The line has the sum of all messages, and the report itself stays as it was."""
    counter, messages = OURS[name], talk(90)
    fitted = in_context(messages, counter) if many else fit(messages, 100, counter=counter)
    report = fitted.report
    assert report.tokens_before is None
    shown = str(report)
    assert report.tokens_before is None
    whole = fit(messages, 100_000, counter=counter) if not many else None
    expected = fitted.count_all().tokens_before
    assert expected is not None
    if whole is not None:
        assert whole.report.tokens_after == expected
    assert f"  before    {expected:,} tokens" in shown.splitlines()
    assert "?" not in shown.partition("index")[2]
    assert str(fitted.report) == shown


def test_a_counter_of_others_is_not_asked() -> None:
    """It may be a service that costs money: the line says how to ask it."""
    asked: list[object] = []

    class Counting(AdditiveCounter):
        def count_message(self, message: Any, /) -> int:
            """Note that it was asked."""
            asked.append(message)
            return 10

    report = fit(talk(90), 100, counter=Counting()).report
    there = len(asked)
    assert before(report) == HOW
    assert len(asked) == there


@pytest.mark.parametrize(
    "messages", [talk(400, "word " * 200), talk(6_000)], ids=["long texts", "many messages"]
)
def test_a_long_conversation_is_not_counted(messages: list[dict[str, Any]]) -> None:
    """To read a report takes no longer than the fit it is about."""
    report = fit(messages, 1_000, counter=EstimateCounter()).report
    assert before(report) == HOW


def test_a_message_that_cannot_be_counted_spoils_no_report() -> None:
    """The fit never looked at it, and who prints what became of it is not to get an error."""

    def count(text: str) -> int:
        if "poison" in text:
            raise ValueError
        return len(text.split())

    messages = [{"role": "user", "content": "poison"}, *talk(90)]
    report = fit(messages, 100, counter=counter_from_text(count)).report
    assert before(report) == HOW


def test_a_report_that_was_stored_says_how_it_is_counted() -> None:
    """There is no conversation to count."""
    report = fit(talk(90), 100).report
    assert before(Report.from_dict(report.to_dict())) == HOW


def test_data_and_comparing_count_nothing() -> None:
    """A service that writes a report down for each call pays for no count."""
    fitted = fit(talk(90), 100)
    assert fitted.report.to_dict()["tokens_before"] is None
    assert fitted.report == Report.from_dict(fitted.report.to_dict())


def total(messages: list[Any]) -> int:
    """Count all at once, as a black box."""
    return sum(len(message["content"]) for message in messages)


def marked(messages: list[dict[str, Any]]) -> Fitted[Any]:
    """Fit messages of Anthropic's form with marks for its cache."""
    return fit(
        messages, 5_000, counter=CharCounter(), format="anthropic", breakpoints=True, system="Be kind."
    )


ORPHAN = {"role": "tool", "tool_call_id": "a", "content": "lost"}
WAYS: dict[str, Callable[[list[dict[str, Any]]], Fitted[Any]]] = {
    "all fits": lambda messages: fit(messages, 100_000),
    "some left": lambda messages: fit(messages, 100),
    "a black box": lambda messages: fit(messages, 150, counter=total),
    "a black box, all fits": lambda messages: fit(messages, 100_000, counter=total),
    "a repair": lambda messages: fit([ORPHAN, *messages], 100_000, repair=True),
    "marks": marked,
    "a context": lambda messages: in_context(messages, CharCounter()),
    "a context with a black box": lambda messages: in_context(messages, total),
    "another budget": lambda messages: fit(messages, 100_000).at(90),
    "objects": lambda messages: fit(
        [tuple(one.values()) for one in messages],
        200,
        read=lambda one: {"role": one[0], "content": one[1]},
        write=lambda _, made: (made[0]["role"], made[0]["content"]),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [3, 90])
def test_a_fitted_says_the_numbers_of_its_report(way: str, count: int) -> None:
    """Before the report is made, after it, when all is counted, and in a copy."""
    fitted = WAYS[way](talk(count))
    numbers = (fitted.tokens_before, fitted.tokens_after)
    report = fitted.report
    assert numbers == (report.tokens_before, report.tokens_after)
    assert (fitted.tokens_before, fitted.tokens_after) == numbers
    stored = copy(fitted)
    assert (stored.tokens_before, stored.tokens_after) == numbers
    whole = fitted.count_all()
    assert whole.tokens_before is not None
    assert (fitted.tokens_before, fitted.tokens_after) == (whole.tokens_before, whole.tokens_after)
