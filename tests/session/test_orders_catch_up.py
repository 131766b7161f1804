"""What puts many messages out of view has them summarized and read for facts at once (SPEC E6, E13)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.builders import Message, assistant, user, words
from tests.session.test_summarizers import WORDS
from trimtab import Session
from trimtab.summaries import Fact, FactRequest


class Readers:
    """A summarizer and a fact extractor that note what they were given."""

    def __init__(self) -> None:
        self.summarized: list[str] = []
        self.read: list[str] = []
        self.calls = 0

    def summarize(self, messages: list[Any], existing: str | None) -> str:
        """Write a summary of constant length."""
        self.calls += 1
        self.summarized += [message["content"] for message in messages]
        return f"so far {words(10)}"

    def extract(self, request: FactRequest) -> list[Fact]:
        """Find one fact in whatever it is given."""
        self.read += [message["content"] for message in request.messages]
        return [Fact(text=f"read {len(self.read)}", sources=[request.ids[-1]])]


def talk(count: int) -> list[Message]:
    """Messages of about twenty words, each its own."""
    return [(assistant if at % 2 else user)(f"{at} {words(19)}") for at in range(count)]


def session_with(readers: Readers, budget: int, **options: Any) -> Session:
    """A session whose every message that leaves is given to both."""
    return Session(
        budget, counter=WORDS, summarizer=readers.summarize, fact_extractor=readers.extract, **options
    )


def check_all_there(session: Session, readers: Readers, said: list[Message]) -> None:
    """Each message is in view, or in a summary; what left was read for facts but for less than is due."""
    status = session.status()
    assert status.hidden_messages == 0
    shown = {message["content"] for message in session.messages()}
    gone = [message["content"] for message in said if message["content"] not in shown]
    assert readers.summarized == gone
    assert readers.read == gone[: len(readers.read)]
    unread = len(gone) - len(readers.read)
    assert unread * 20 < 0.3 * status.budget_tokens


@pytest.mark.parametrize(("before", "after", "count"), [(20_000, 1_000, 400), (20_000, 300, 400)])
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_a_budget_far_down_leaves_nothing_between(before: int, after: int, count: int, ratio: float) -> None:
    """It was 60 of 400 that were neither in view nor summarized, beside a room half empty."""
    readers, said = Readers(), talk(count)
    session = session_with(readers, before, target_ratio=ratio)
    for message in said:
        session.add(message)
    session.set_budget(after)
    check_all_there(session, readers, said)


def test_many_messages_at_once_leave_nothing_between() -> None:
    """An import of another conversation is one call of `extend`."""
    readers, said = Readers(), talk(400)
    session = session_with(readers, 400)
    session.extend(said)
    check_all_there(session, readers, said)
    assert readers.calls > 8


def test_the_same_awaited_and_in_the_background() -> None:
    """Two colours, one algorithm."""

    async def run() -> None:
        for background in (False, True):
            readers, said = Readers(), talk(200)
            session = session_with(readers, 400, background=background)
            await session.aextend(said)
            await session.aclose()
            check_all_there(session, readers, said)

    asyncio.run(run())


def test_an_import_under_a_smaller_budget_catches_up_with_the_first_message() -> None:
    """What a snapshot had in view and the new budget has not."""
    readers, said = Readers(), talk(200)
    session = session_with(readers, 20_000)
    session.extend(said)
    other = Session.restore(
        session.snapshot(),
        budget=300,
        counter=WORDS,
        summarizer=readers.summarize,
        fact_extractor=readers.extract,
    )
    more = user(f"more {words(19)}")
    other.add(more)
    check_all_there(other, readers, [*said, more])


def test_what_is_beyond_the_bound_is_told() -> None:
    """A call is not held up without end; the report says what to write."""
    readers, said = Readers(), talk(1_200)
    session = session_with(readers, 300)
    session.extend(said)
    status = session.status()
    assert readers.calls == 64
    assert 0 < status.hidden_messages < 600
    notes = " ".join(session.fit().report.notes)
    assert "wait for a summary: summarize() writes it" in notes
    session.summarize()
    assert session.status().hidden_messages == 0


def test_one_message_asks_for_one_summary() -> None:
    """Who adds a message waits for one call of a model."""
    readers = Readers()
    session = session_with(readers, 300)
    session.extend(talk(1_200))
    calls = readers.calls
    session.add(user(words(19)))
    assert readers.calls <= calls + 1
