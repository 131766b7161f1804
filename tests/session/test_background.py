"""Summaries in the background: `add` never waits, a swap is whole, what is stale is dropped."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import user, words
from tests.session.test_summarizers import WORDS, AsyncSummarizer, Summarizer, texts
from trimtab import Session
from trimtab.stores import MemoryStore
from trimtab.summaries import SummaryRequest

SECONDS = 30
"""Longest wait for another thread; a test that reaches it fails."""


class Gate:
    """A summarizer that begins when it is asked, and answers when it is let."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let = threading.Event()
        self.requests: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest) -> str:
        """Wait."""
        self.requests.append(request)
        self.began.set()
        assert self.let.wait(SECONDS)
        return "in the background"


def in_background(summarizer: Any, **options: Any) -> Session:
    """Open a session with a threshold of 10 tokens of 100."""
    return Session(100, counter=WORDS, summarizer=summarizer, must_keep=None, background=True, **options)


def begun(summarizer: Gate, **options: Any) -> Session:
    """Open a session that is summarizing: nine messages of ten tokens leave less than the threshold."""
    session = in_background(summarizer, **options)
    for text in texts(10):
        session.add(user(text))
    assert summarizer.began.wait(SECONDS)
    return session


def test_add_does_not_wait_and_the_swap_is_whole() -> None:
    """It begins before the budget is passed; until it is done the view is as without it."""
    gate = Gate()
    session = begun(gate)
    assert session.status().pending_messages == 0  # nothing was evicted yet
    for text in texts(30)[10:]:
        session.add(user(text))
        assert session.summary is None
        assert WORDS.count(session.messages()) <= 100
    gate.let.set()
    session.drain()
    assert session.summary == "in the background"
    covered = [message["content"] for message in gate.requests[0].messages]
    assert covered == texts(30)[: len(covered)]
    view = [message["content"] for message in session.messages()]
    assert view[0].startswith(f'<summary of="{len(covered)} message')
    assert not set(view) & set(covered)
    assert [event.message["content"] for event in session.history()] == texts(30)


def test_only_one_is_written_at_a_time() -> None:
    """However much is added meanwhile."""
    gate = Gate()
    session = begun(gate)
    for _ in range(50):
        session.add(user(words(10)))
    assert len(gate.requests) == 1
    gate.let.set()
    session.close()
    assert len(gate.requests) == 1


def another_writer(session: Session) -> None:
    """Another writer clears the session."""
    Session.open(session.store, session.id, counter=WORDS, summarizer=lambda messages: "other").clear()


def first_id(session: Session) -> str:
    """Id of the first message."""
    return next(iter(session.history())).id


STALE: dict[str, Callable[[Session], object]] = {
    "clear": lambda session: session.clear(),
    "redact": lambda session: session.redact([first_id(session)]),
    "pin": lambda session: session.pin(first_id(session)),
    "set_budget": lambda session: session.set_budget(200),
    "set_anchors": lambda session: session.set_anchors([user("a")]),
    "another writer": another_writer,
    "delete": lambda session: session.delete(),
}


@pytest.mark.parametrize("change", STALE.values(), ids=STALE.keys())
def test_a_stale_summary_is_dropped(change: Callable[[Session], object]) -> None:
    """What it covers, or what it was to fit, is not as it was."""
    gate = Gate()
    session = begun(gate)
    change(session)
    gate.let.set()
    session.drain()
    session.refresh() if change is not STALE["delete"] else None
    assert session.summary is None
    assert [event.kind for event in session.history(kinds=("summary",))] == []


def test_a_summary_is_dropped_after_undo() -> None:
    """The eviction it was written for is no more."""
    gate = Gate()
    session = in_background(gate)
    session.extend([user(text) for text in texts(12)])
    assert gate.began.wait(SECONDS)
    session.undo()
    gate.let.set()
    session.drain()
    assert session.summary is None
    assert session.status().stale_summaries == 1


def test_a_summary_stands_although_another_writer_added() -> None:
    """What it covers is as it was."""
    gate = Gate()
    session = begun(gate)
    slower = Gate()  # it summarizes in the background, too
    other = Session.open(session.store, session.id, counter=WORDS, summarizer=slower)
    other.add(user("from elsewhere"))
    gate.let.set()
    session.drain()
    slower.let.set()
    other.drain()
    session.refresh()
    assert session.summary == "in the background"
    assert session.messages()[-1] == user("from elsewhere")
    other.refresh()
    assert other.messages() == session.messages()


def test_a_failure_in_the_background_is_remembered(caplog: pytest.LogCaptureFixture) -> None:
    """E7: no storm there either; each message is stored."""

    def fails(request: SummaryRequest) -> str:
        raise ConnectionError

    summarizer = Summarizer(fails)
    session = in_background(summarizer)
    with caplog.at_level(logging.CRITICAL):
        for text in texts(500):
            session.add(user(text))
            session.drain()
    assert 2 <= len(summarizer.requests) <= 10
    assert session.status().failures == len(summarizer.requests)
    assert len(list(session.history())) == 500
    summarizer.answer = lambda request: "fine"
    while session.summary is None:
        session.add(user(words(10)))
        session.drain()
    assert session.status().failures == 0


def test_an_async_summarizer_serves_a_sync_session() -> None:
    """In the background it may be awaited."""

    async def answer(request: SummaryRequest) -> str:
        return "awaited"

    session = in_background(AsyncSummarizer(answer))
    for text in texts(10):
        session.add(user(text))
    session.drain()
    assert session.summary == "awaited"


def test_on_asyncio_add_does_not_wait_either() -> None:
    """The same on a loop, for both kinds of summarizer."""

    async def run() -> None:
        began, let = asyncio.Event(), asyncio.Event()

        async def answer(request: SummaryRequest) -> str:
            began.set()
            await let.wait()
            return "in the background"

        session = in_background(AsyncSummarizer(answer))
        for text in texts(10):
            await session.aadd(user(text))
        await began.wait()
        for text in texts(30)[10:]:
            await session.aadd(user(text))
        assert session.summary is None
        let.set()
        await session.adrain()
        assert session.summary == "in the background"
        assert WORDS.count(await session.amessages()) <= 100

    asyncio.run(run())


def test_on_asyncio_a_stale_summary_is_dropped() -> None:
    """Cleared while it is written."""

    async def run() -> None:
        began, let = asyncio.Event(), asyncio.Event()

        async def answer(request: SummaryRequest) -> str:
            began.set()
            await let.wait()
            return "stale"

        session = in_background(AsyncSummarizer(answer))
        for text in texts(10):
            await session.aadd(user(text))
        await began.wait()
        await session.aclear()
        let.set()
        await session.aclose()
        assert session.summary is None
        assert await session.arefresh() == 12

    asyncio.run(run())


def test_a_snapshot_waits_for_the_background() -> None:
    """E10: what is restored has the summary."""
    gate = Gate()
    session = begun(gate)
    gate.let.set()
    data = session.snapshot()
    restored = Session.restore(data, counter=WORDS, summarizer=gate)
    assert restored.summary == "in the background"
    assert restored.messages() == session.messages()


def test_sessions_of_one_store_are_written_side_by_side() -> None:
    """A shared store, many threads, one session each; everything is there."""
    store = MemoryStore()

    def write(name: str) -> None:
        session = Session(
            100,
            counter=WORDS,
            summarizer=lambda messages: "sum",
            must_keep=None,
            background=True,
            store=store,
            id=name,
        )
        for text in texts(40):
            session.add(user(text))
        session.close()

    threads = [threading.Thread(target=write, args=(f"s{at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in store.sessions():
        session = Session.open(store, name, counter=WORDS, summarizer=lambda messages: "sum")
        assert [event.message["content"] for event in session.history()] == texts(40)
        assert WORDS.count(session.messages()) <= 100


def test_a_summary_of_what_an_undo_brought_back_is_not_put_in_force() -> None:
    """What it was of is recent again: the text that comes then is dropped."""
    gate = Gate()
    session = in_background(gate)
    for text in texts(12):
        session.add(user(text))
    assert gate.began.wait(SECONDS)
    assert session.undo().kind == "evicted"
    gate.let.set()
    session.drain()
    assert session.summary is None
    assert session.status().stale_summaries == 1
