"""What was there before a fit is counted where a report is printed, unless that costs much."""

from __future__ import annotations

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
