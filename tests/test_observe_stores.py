"""`trimtab.observe(…, stores=True)`: each request of a session to its store, in numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trimtab import Session, observe
from trimtab.counting import FixedCounter
from trimtab.errors import StoreUnavailableError, VersionConflictError
from trimtab.stores import Appended, AppendRequest, LoadRequest, MemoryStore, Retry, SQLiteStore
from trimtab.telemetry import SessionEvent, StoreEvent

TEN = FixedCounter(per_message=10)
HELLO = {"role": "user", "content": "secret hello"}
NO_WAIT = Retry(first_seconds=0, max_seconds=0)


@pytest.fixture
def seen() -> Iterator[list[StoreEvent]]:
    """Give the requests that are told of during a test."""
    told: list[StoreEvent] = []

    def note(event: object) -> None:
        if isinstance(event, StoreEvent):
            told.append(event)

    with observe(note, stores=True):
        yield told


def asked(seen: list[StoreEvent]) -> list[tuple[str, str, int, bool]]:
    """List what was asked, how it ended, how many messages it wrote, and whether it began anew."""
    return [(event.request, event.outcome, event.messages, event.again) for event in seen]


class Lame(MemoryStore):
    """A store that cannot be reached for some appends."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self._failures = failures

    def append(self, request: AppendRequest, /) -> Appended:
        """Write events, or fail."""
        self._failures -= 1
        if self._failures >= 0:
            raise StoreUnavailableError("away")
        return super().append(request)


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_a_session_opens_once_and_its_appends_say_how_much_they_wrote(
    place: str, tmp_path: Path, seen: list[StoreEvent]
) -> None:
    """Another object of the same session opens it anew."""
    store = MemoryStore() if place == "memory" else SQLiteStore(tmp_path / "chats.db")
    session = Session(1_000, counter=TEN, store=store, id="ada")
    session.extend([HELLO] * 3)
    session.add(HELLO)
    session.recall("hello")
    assert asked(seen)[0] == ("open", "done", 0, False)
    assert [one for one in asked(seen) if one[0] in ("append", "search")] == [
        ("append", "done", 3, False),
        ("append", "done", 1, False),
        ("search", "done", 0, False),
    ]
    Session.open(store, "ada", counter=TEN).messages()
    assert [event.request for event in seen].count("open") == 2
    session.delete()
    assert asked(seen)[-1] == ("delete", "done", 0, False)
    assert {(event.session, event.store) for event in seen} == {("ada", type(store).__name__)}
    assert all(event.seconds >= 0 for event in seen)
    assert "secret" not in repr(seen)


class Unlisted(MemoryStore):
    """A store of a user's that was written before stores knew labels."""

    def sessions(self) -> Any:  # type: ignore[override]
        """List names."""
        return [str(one) for one in super().sessions()]


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(("kind", "lists"), [(MemoryStore, ["list"]), (Unlisted, [])])
def test_the_labels_of_an_older_session_are_a_request_of_their_own(
    kind: type[MemoryStore], lists: list[str], awaited: bool, seen: list[StoreEvent]
) -> None:
    """Its log says no owner, and the list of sessions may; a store without labels is not asked."""
    source, store = MemoryStore(), kind()
    Session(1_000, counter=TEN, store=source, id="ada").add(HELLO)
    events = source.load(LoadRequest(session="ada"))
    options = {
        name: one
        for name, one in events[0].data["options"].items()
        if name not in ("owner", "metadata", "ttl")
    }
    events[0] = replace(events[0], data={**events[0].data, "options": options})
    store.append(AppendRequest(session="ada", expected_version=0, events=events))
    seen.clear()
    session = Session.open(store, "ada", counter=TEN)
    _ = asyncio.run(session.amessages()) if awaited else session.messages()
    assert [event.request for event in seen if event.request == "list"] == lists
    assert {event.outcome for event in seen} == {"done"}
    assert seen[0].request == "open"


def test_a_conflict_is_told_and_so_is_that_the_operation_begins_anew(seen: list[StoreEvent]) -> None:
    """Another object of the session wrote in between."""
    store = MemoryStore()
    mine = Session(1_000, counter=TEN, store=store, id="ada", retry=NO_WAIT)
    mine.add(HELLO)
    Session.open(store, "ada", counter=TEN).add(HELLO)
    seen.clear()
    mine.add(HELLO)
    appends = [one for one in asked(seen) if one[0] == "append"]
    assert appends == [("append", "conflict", 0, False), ("append", "done", 1, False)]
    after = asked(seen)[asked(seen).index(("append", "conflict", 0, False)) + 1]
    assert after == ("load", "done", 0, True)


def test_without_a_retry_a_conflict_begins_nothing_anew(seen: list[StoreEvent]) -> None:
    """The caller's next call is an operation of its own."""
    store = MemoryStore()
    mine = Session(1_000, counter=TEN, store=store, id="ada", retry=Retry(attempts=1))
    mine.add(HELLO)
    Session.open(store, "ada", counter=TEN).add(HELLO)
    with pytest.raises(VersionConflictError):
        mine.add(HELLO)
    mine.add(HELLO)
    assert not any(event.again for event in seen)


@pytest.mark.parametrize("awaited", [False, True])
def test_a_store_that_is_away_is_told_for_each_attempt(awaited: bool, seen: list[StoreEvent]) -> None:
    """Also where the operation is awaited."""
    session = Session(1_000, counter=TEN, store=Lame(2), id="ada", retry=NO_WAIT)
    if awaited:
        asyncio.run(session.aadd(HELLO))
    else:
        session.add(HELLO)
    outcomes = [event.outcome for event in seen if event.request == "append"]
    assert outcomes == ["unavailable", "unavailable", "done"]
    assert sum(event.again for event in seen) == 2


def test_who_did_not_ask_for_stores_is_told_of_none() -> None:
    """As before: fits, and decisions of sessions."""
    plain: list[Any] = []
    both: list[Any] = []
    with observe(plain.append), observe(both.append, stores=True):
        Session(100, counter=TEN).extend([HELLO] * 12)
    assert plain
    assert not any(isinstance(event, StoreEvent) for event in plain)
    assert [event for event in both if not isinstance(event, StoreEvent)] == plain
    assert any(isinstance(event, SessionEvent) for event in both)


def test_a_callback_that_raises_stops_no_request() -> None:
    """An observer is a guest."""

    def fail(event: object) -> None:
        raise RuntimeError("no")

    with observe(fail, stores=True):
        session = Session(100, counter=TEN, store=MemoryStore(), id="ada")
        session.add(HELLO)
    assert len(session.messages()) == 1
