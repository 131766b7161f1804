"""A summarizer that `reads_all` writes each summary from the log, not from the summary before it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.builders import call, result, user, words
from trimtab import Session
from trimtab.counting import FixedCounter
from trimtab.summaries import ExtractiveSummarizer, SummaryRequest
from trimtab.testing import WordCounter

TEN = FixedCounter(per_message=10)
WORDS = WordCounter()


class FromLog:
    """Wants all messages; notes what it is asked."""

    reads_all = True

    def __init__(self) -> None:
        self.asked: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest) -> str:
        """Say how many messages it saw."""
        self.asked.append(request)
        return f"{len(request.messages)} messages"


class FromLogLater(FromLog):
    """The same, async."""

    async def summarize(self, request: SummaryRequest) -> str:  # type: ignore[override]
        """Answer later."""
        await asyncio.sleep(0)
        return super().summarize(request)


def said(request: SummaryRequest) -> list[str]:
    """List what it was given."""
    return [message["content"] for message in request.messages]


def numbers(count: int, start: int = 0) -> list[str]:
    """Write different texts."""
    return [f"number {at}" for at in range(start, start + count)]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("mode", ["incremental", "rolling"])
def test_each_summary_is_of_everything_it_stands_for(mode: Any, later: bool) -> None:
    """All messages from the first on, in order, and no summary of them beside."""
    summarizer = FromLogLater() if later else FromLog()
    session = Session(200, counter=TEN, summarizer=summarizer, summary_mode=mode)

    async def add_all() -> None:
        for text in numbers(120):
            await session.aadd(user(text))

    if later:
        asyncio.run(add_all())
    else:
        for text in numbers(120):
            session.add(user(text))
    assert len(summarizer.asked) >= 5
    for request in summarizer.asked:
        assert request.existing is None
        assert said(request) == numbers(len(request.messages))
    assert session.status().summarized_messages == len(summarizer.asked[-1].messages)


def test_calls_and_results_are_there_as_they_were_said() -> None:
    """A pinned message is not, until it is let go; then it stands where it was said."""
    summarizer = FromLog()
    session = Session(200, counter=TEN, summarizer=summarizer)
    pinned = session.add(user("pinned"))
    session.pin(pinned)
    for at in range(20):
        session.extend([user(f"q{at}"), call(f"c{at}"), result(f"c{at}", f"r{at}")])
    assert all("pinned" not in said(request) for request in summarizer.asked)
    session.unpin(pinned)
    for at in range(20, 40):
        session.extend([user(f"q{at}"), call(f"c{at}"), result(f"c{at}", f"r{at}")])
    last = summarizer.asked[-1]
    assert last.messages[:4] == [user("pinned"), user("q0"), call("c0"), result("c0", "r0")]
    assert last.existing is None


def test_of_a_long_session_it_is_given_the_newest_and_the_summary_so_far() -> None:
    """Sixteen budgets of what was summarized before."""
    summarizer = FromLog()
    session = Session(100, counter=TEN, summarizer=summarizer)
    for text in numbers(400):
        session.add(user(text))
    last = summarizer.asked[-1]
    assert last.existing is not None
    assert 160 <= len(last.messages) <= 180
    assert said(last) == numbers(len(last.messages), int(said(last)[0].split()[1]))


def test_a_summary_after_an_undo_is_of_what_is_covered_then() -> None:
    """The summary that was taken back is no part of it, and what it covered is given once."""
    summarizer = FromLog()
    session = Session(200, counter=TEN, summarizer=summarizer)
    for text in numbers(80):
        session.add(user(text))
    session.undo()
    for text in numbers(40, 80):
        session.add(user(text))
    last = summarizer.asked[-1]
    assert (said(last), last.existing) == (numbers(len(last.messages)), None)


def test_a_redacted_message_is_given_as_it_is_now() -> None:
    """What was overwritten in the log is in no later summary."""
    summarizer = FromLog()
    session = Session(200, counter=TEN, summarizer=summarizer)
    secret = session.add(user("secret"))
    for text in numbers(60):
        session.add(user(text))
    assert said(summarizer.asked[-1])[0] == "secret"
    session.redact(secret)
    for text in numbers(60, 60):
        session.add(user(text))
    assert said(summarizer.asked[-1])[:2] == ["[redacted]", "number 0"]


def test_without_the_log_the_summary_so_far_goes_on() -> None:
    """A snapshot without history has the summary, and not what it stands for."""
    session = Session(200, counter=TEN, summarizer=FromLog())
    for text in numbers(60):
        session.add(user(text))
    summary = session.summary
    summarizer = FromLog()
    again = Session.restore(session.snapshot(history=False), counter=TEN, summarizer=summarizer)
    for text in numbers(20, 60):
        again.add(user(text))
    assert summarizer.asked[0].existing == summary
    assert "number 0" not in said(summarizer.asked[0])


def test_a_hook_is_told_what_is_new() -> None:
    """`on_summarize` has the messages that left, and the summary that was in force."""
    told: list[Any] = []
    hooks = {"on_summarize": lambda messages, existing, summary, seconds: told.append((messages, existing))}
    session = Session(200, counter=TEN, summarizer=FromLog(), hooks=hooks)
    for text in numbers(60):
        session.add(user(text))
    assert [message["content"] for messages, _ in told for message in messages] == numbers(
        sum(len(messages) for messages, _ in told)
    )
    assert told[1][1] is not None


def test_what_was_said_once_is_found_when_the_talk_comes_back_to_it() -> None:
    """A sentence no summary had taken by then is taken once the conversation makes it tell something."""
    extractive = ExtractiveSummarizer(counter=WORDS)
    assert extractive.reads_all

    class FromItsLast(ExtractiveSummarizer):
        reads_all = False

    summaries = []
    for summarizer in (extractive, FromItsLast(counter=WORDS)):
        session = Session(200, counter=WORDS, summarizer=summarizer)
        session.add(user("The gasket of pump seven is made of viton rubber."))
        for at in range(60):
            session.add(user(f"Kyoto trip plan {at}: hotel near station, budget {at}, garden visit at noon."))
        for at in range(30):
            session.add(user(f"Pump seven leaks at the gasket, viton or rubber {at} {words(4)}?"))
        summaries.append(session.summary or "")
    assert "made of viton" in summaries[0]
    assert "made of viton" not in summaries[1]
