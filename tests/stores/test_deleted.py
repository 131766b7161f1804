"""What was deleted does not come back: writers who still mean a deleted session change nothing (SPEC E12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests import servers
from tests.builders import user, words
from tests.stores.served import Served
from tests.stores.stores import Place
from trimtab import Session
from trimtab.errors import SessionDeletedError, VersionConflictError
from trimtab.stores import (
    Appended,
    AppendRequest,
    Event,
    LoadRequest,
    MemoryStore,
    Retry,
    copy_session,
)
from trimtab.summaries import SummaryRequest
from trimtab.testing import WordCounter

WORDS = WordCounter()
SECONDS = 30
"""Longest wait for another thread; a test that reaches it fails."""


class Gate:
    """A summarizer that begins when it is asked, and answers when it is let."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let = threading.Event()

    def summarize(self, request: SummaryRequest) -> str:
        """Repeat what was said."""
        self.began.set()
        assert self.let.wait(SECONDS)
        return "secret of the deleted session"


def begun(store: Any, text: str, count: int, **options: Any) -> Session:
    """Begin session "s" with so many messages of ten words."""
    session = Session(100, counter=WORDS, store=store, id="s", **options)
    for at in range(count):
        session.add(user(f"{text} {at} {words(8)}"))
    return session


def replaced(store: Any, count: int = 2, **options: Any) -> tuple[Session, Session]:
    """Delete a session behind the back of its writer, and begin another one of its name and version."""
    late = begun(store, "old", count, **options)
    other = Session.open(store, "s", counter=WORDS)
    other.delete()
    return late, begun(store, "new", count)


def said(store: Any) -> list[str]:
    """What the log says, as text."""
    return [repr(dict(event.data)) for event in store.load(LoadRequest(session="s"))]


def test_a_summary_of_a_deleted_session_is_not_written_into_the_next(place: Place) -> None:
    """It is in flight while the session is deleted and begun anew, at the very same version."""
    store, gate = place.make(), Gate()
    late = begun(store, "old", 10, summarizer=gate, background=True)
    assert gate.began.wait(SECONDS)
    Session.open(store, "s", counter=WORDS, summarizer=gate).delete()
    new = begun(store, "new", 10)
    gate.let.set()
    late.drain()
    assert new.refresh() == 11
    assert new.summary is None
    assert not [text for text in said(store) if "secret" in text or "'old " in text]
    new.delete()
    store.close()


def test_a_late_message_is_refused_at_an_equal_version(place: Place) -> None:
    """The log it does not belong to stays as it was, and can be read on."""
    store = place.make()
    late, new = replaced(store)
    before = said(store)
    with pytest.raises(SessionDeletedError) as caught:
        late.add(user("late"))
    assert caught.value.session == "s"
    assert said(store) == before
    new.add(user("next"))
    assert [event.message["content"][:3] for event in new.history()] == ["new", "new", "nex"]
    new.delete()
    store.close()


def test_a_late_message_is_refused_in_asyncio(place: Place) -> None:
    """The same through the forms for asyncio."""

    async def run() -> None:
        store = place.make()
        late = Session(100, counter=WORDS, store=store, id="s")
        await late.aadd(user("old"))
        await Session.open(store, "s", counter=WORDS).adelete()
        new = Session(100, counter=WORDS, store=store, id="s")
        await new.aadd(user("new"))
        with pytest.raises(SessionDeletedError):
            await late.aadd(user("late"))
        with pytest.raises(SessionDeletedError):
            await late.adelete()
        with pytest.raises(SessionDeletedError):
            await late.afork()
        assert await new.arefresh() == 2
        await new.adelete()
        await store.aclose()

    asyncio.run(run())


OPERATIONS: dict[str, Callable[[Session], object]] = {
    "add": lambda session: session.add(user("late")),
    "extend": lambda session: session.extend([user("late"), user("later")]),
    "set_budget": lambda session: session.set_budget(150),
    "set_anchors": lambda session: session.set_anchors([user("a")]),
    "clear": lambda session: session.clear(),
    "undo": lambda session: session.undo(),
    "delete": lambda session: session.delete(),
    "recall": lambda session: session.recall("new"),
    "fork": lambda session: session.fork(id="other"),
    "fork_at": lambda session: session.fork(1, id="other"),
    "history": lambda session: list(session.history()),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_a_session_object_means_the_session_it_knows(operation: Callable[[Session], object]) -> None:
    """Each time it is asked, also with a retry, until it is told to read what is there now."""
    store = MemoryStore()
    late, new = replaced(store, retry=Retry(attempts=3, first_seconds=0.0))
    before = said(store)
    for _ in range(2):
        with pytest.raises(SessionDeletedError):
            operation(late)
    assert said(store) == before
    assert late.refresh() == new.version
    assert [event.message["content"][:3] for event in late.history()] == ["new", "new"]
    late.add(user("and on"))
    assert new.refresh() == late.version


def test_a_session_that_is_gone_is_not_begun_by_a_late_writer() -> None:
    """Nobody has its name: the late writer is told, and by refresh() begins anew knowingly."""
    store = MemoryStore()
    late = begun(store, "old", 2)
    Session.open(store, "s", counter=WORDS).delete()
    for _ in range(2):
        with pytest.raises(SessionDeletedError):
            late.add(user("late"))
    assert store.sessions() == []
    late.delete()  # it is deleted: nothing to do
    late.add(user("anew"))
    assert [event.message["content"] for event in late.history()] == ["anew"]


def test_who_deletes_a_session_may_go_on_under_its_name() -> None:
    """What was deleted by the same object is no surprise to it."""
    store = MemoryStore()
    session = begun(store, "old", 3)
    session.delete()
    session.add(user("anew"))
    assert [event.message["content"] for event in session.history()] == ["anew"]


def test_usage_of_a_view_of_the_deleted_session_is_not_taken_for_the_next() -> None:
    """After refresh() no view of the new session was given yet."""
    store = MemoryStore()
    late, _ = replaced(store)
    late.messages()
    late.refresh()
    with pytest.raises(ValueError, match="no view"):
        late.record_usage({"input_tokens": 40})


def test_usage_of_a_view_from_before_the_first_message_counts() -> None:
    """A session that is begun meanwhile is the one the view was of."""
    session = Session(100, counter=WORDS, system="Be brief.")
    session.messages()
    session.add(user("hello"))
    session.record_usage({"input_tokens": 40})
    assert session.history(kinds=("usage",))


class Restarted(MemoryStore):
    """Deletes a session and begins it anew, just before so many appends."""

    def __init__(self, before_append: int) -> None:
        super().__init__()
        self.left = before_append

    def append(self, request: AppendRequest, /) -> Appended:
        """Add events, unless the session was exchanged."""
        self.left -= 1
        if self.left == 0:
            count = request.expected_version
            self.delete(request.session)
            others = [Event(id=f"other {at}", kind="note", time=0.0) for at in range(count)]
            super().append(AppendRequest(session=request.session, expected_version=0, events=others))
        return super().append(request)


def test_a_copy_does_not_go_on_in_another_session_of_the_name() -> None:
    """The target was deleted and begun anew between two pages, at the same version."""
    source, target = MemoryStore(), Restarted(before_append=2)
    events = [Event(id=f"e{at}", kind="note", time=0.0, data={"at": at}) for at in range(6)]
    source.append(AppendRequest(session="s", expected_version=0, events=events))
    with pytest.raises(SessionDeletedError):
        copy_session(source, target, "s", page_events=3)
    assert [event.id for event in target.load(LoadRequest(session="s"))] == [f"other {at}" for at in range(3)]


def test_who_says_no_incarnation_is_told_of_versions_only() -> None:
    """Requests as they were written for trimtab 0.1 mean whichever session is there."""
    store = MemoryStore()
    begun(store, "old", 2)
    late = AppendRequest(session="s", expected_version=2, events=[Event(id="late", kind="note", time=0.0)])
    with pytest.raises(VersionConflictError):
        store.append(late)


def test_sessions_that_an_older_trimtab_kept_in_redis_are_known_apart(on_redis: Served) -> None:
    """They have no incarnation of their own, and are known by their first event."""
    store = on_redis.make(scrub_on_delete=False)
    late = begun(store, "old", 2)
    assert isinstance(on_redis.server, servers.RedisServer)
    with on_redis.server.client() as client:
        assert client.hdel("trimtab:session:s", "n") == 1
    late.refresh()
    late.add(user("goes on"))
    assert len(said(store)) == 4
    reader = Session.open(store, "s", counter=WORDS)
    assert reader.version == 4
    reader.delete()
    new = begun(store, "new", 3)
    before = said(store)
    with pytest.raises(SessionDeletedError):
        late.add(user("late"))
    assert said(store) == before
    new.delete()
    store.close()


class Restless(MemoryStore):
    """Another worker deletes the session and begins it anew between two requests of whoever reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.deletions = 0
        """How many are still to come."""

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Answer, and then be changed."""
        found = super().load(request)
        if self.deletions and found and request.limit == 1:
            self.deletions -= 1
            self.delete(request.session)
            source = MemoryStore()
            begun(source, f"anew {self.deletions}", 3)
            events = [*source.load(LoadRequest(session="s"))]
            self.append(AppendRequest(session="s", expected_version=0, events=events))
        return found


def test_refresh_after_a_deletion_reads_what_is_there_though_it_is_deleted_meanwhile() -> None:
    """It is what the error says to call: it does not raise the same."""
    store = Restless()
    session = begun(store, "old", 3)
    store.deletions = 5
    session.refresh()
    assert store.deletions == 0
    assert "anew 0" in str(session.messages())
    session.add(user("on"))


def test_refresh_gives_up_on_one_that_never_rests() -> None:
    """With the error that says why."""
    store = Restless()
    session = begun(store, "old", 3)
    store.deletions = 1_000
    with pytest.raises(SessionDeletedError):
        session.refresh()
    assert 0 < store.deletions < 1_000
