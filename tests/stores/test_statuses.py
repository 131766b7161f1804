"""`statuses`: where many sessions stand, from one request for many of them, and without opening any."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.stores.counted import count_requests
from tests.stores.stores import Place
from tests.stores.test_labels import Older
from tests.stores.test_owners import put
from tests.stores.writer import KEYS
from trimtab import Session
from trimtab.errors import (
    ConfigurationError,
    CorruptSessionError,
    EncryptionKeyError,
    KeyDroppedError,
    SessionDeletedError,
    UnknownNameError,
)
from trimtab.session import StoredStatus, astatuses, statuses
from trimtab.stores import (
    AppendRequest,
    EncryptedStore,
    Event,
    LoadRequest,
    MemoryStore,
    SQLiteStore,
    Store,
    encrypted,
)
from trimtab.testing import WordCounter

WORDS = WordCounter()
SHARED = (
    "budget_tokens",
    "recent_messages",
    "recent_tokens",
    "pending_messages",
    "pending_tokens",
    "failures",
    "retry_tokens",
    "stale_facts",
    "fact_failures",
)
"""Numbers that `Session.status()` has as well."""


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    """Give a handle on each store in turn."""
    with place.make() as made:  # type: ignore[attr-defined]
        yield made


def fails(_messages: Any) -> str:
    """Write no summary."""
    raise OSError("the model is away")


def short(_messages: Any) -> str:
    """Write a summary."""
    return "all of it"


def begin(store: Store, name: str, messages: int, summarizer: Any = None, **options: Any) -> Session:
    """Make a session of some messages of ten words with the word event."""
    session = Session(120, store=store, id=name, counter=WORDS, summarizer=summarizer, **options)
    for at in range(messages):
        content = f"event {at} " + "word " * 8
        session.add({"role": "assistant" if at % 2 else "user", "content": content})
    return session


def test_the_numbers_are_those_of_each_session(store: Store) -> None:
    """Whether it waits, was summarized, failed to be or lost facts; in the order of the names."""
    made = [
        begin(store, "few", 2, owner="ada", metadata={"plan": "free"}, ttl=1e9),
        begin(store, "many", 30),
        begin(store, "failed", 30, fails),
        begin(store, "summarized", 30, short),
        begin(store, "no facts", 30, fact_extractor=fails),
    ]
    made[1].set_budget(200)
    for names in ([one.id for one in made], [one.id for one in made[::-1]]):
        found = statuses(store, names)
        assert [str(one.session) for one in found] == names
    by_name = {str(one.session): one for one in found}
    for session in made:
        told, whole = by_name[session.id], session.status()
        assert {name: told.to_dict()[name] for name in SHARED} == {
            name: whole.to_dict()[name] for name in SHARED
        }
        assert (told.session.version, told.has_summary) == (whole.version, whole.summarized_messages > 0)
        assert told.known_facts == whole.facts + whole.hidden_facts
        newest = store.load(LoadRequest(session=session.id, limit=1, newest_first=True))[0]
        assert told.session.used == newest.time
    assert by_name["failed"].failures > 0
    assert by_name["no facts"].fact_failures > 0
    assert by_name["many"].pending_messages > 0
    assert by_name["summarized"].has_summary


def in_loop(store: Store, names: list[Any]) -> list[StoredStatus]:
    """Await them, and close the handle."""

    async def ask() -> list[StoredStatus]:
        try:
            return await astatuses(store, names)
        finally:
            await store.aclose()

    return asyncio.run(ask())


def test_a_page_of_a_list_has_labels(store: Store) -> None:
    """Names that are plain texts have none; nothing of what is asked is written."""
    begin(store, "a", 1, owner="ada", metadata={"plan": "free"}, ttl=60.0)
    begin(store, "b", 1, owner="bob")
    before = store.sessions()
    (one,) = statuses(store, store.sessions(owner="ada", limit=10))
    assert one.to_dict() == {
        "id": "a",
        "version": 2,
        "time": before[0].used,
        "owner": "ada",
        "metadata": {"plan": "free"},
        "ttl": 60.0,
        "budget_tokens": 120,
        "recent_messages": 1,
        "recent_tokens": 10,
        "pending_messages": 0,
        "pending_tokens": 0,
        "has_summary": False,
        "failures": 0,
        "retry_tokens": 0,
        "known_facts": 0,
        "stale_facts": 0,
        "fact_failures": 0,
    }
    assert one.session.expires == before[0].used + 60.0
    (plain,) = statuses(store, ["a"])
    assert (plain.session.owner, plain.recent_tokens) == (None, 10)
    assert statuses(store, []) == []
    assert [(one, one.version, one.used) for one in store.sessions()] == [
        (one, one.version, one.used) for one in before
    ]


def test_what_cannot_be_read_is_told_and_ends_no_list(place: Place) -> None:
    """Not there, deleted since it was listed, begun anew, damaged, of another program, without a key."""
    with place.make() as store:  # type: ignore[attr-defined]
        for name in ("a", "again", "damaged", "deleted", "dropped", "z"):
            begin(store, name, 1, owner="ada")
        put(store, "other", owner="ada")
        page = store.sessions(owner="ada")
        store.delete("deleted")
        store.delete("again")
        begin(store, "again", 1, owner="bob")
        wanted: dict[str, type[Exception]] = {
            "again": SessionDeletedError,
            "deleted": SessionDeletedError,
            "nobody": UnknownNameError,
            "other": CorruptSessionError,
        }
        if place.damage is not None:
            place.damage("damaged", 2)
            wanted["damaged"] = CorruptSessionError
        if isinstance(store, EncryptedStore):
            store.drop_key("dropped")
            wanted["dropped"] = KeyDroppedError
        for later in (False, True):
            found = in_loop(store, [*page, "nobody"]) if later else statuses(store, [*page, "nobody"])
            assert {str(one.session): type(one.error) for one in found if one.error} == wanted
            assert [one.recent_messages for one in found if str(one.session) in ("a", "z")] == [1, 1]
            assert "error" in found[-1].to_dict()
        if "damaged" in wanted:
            error = next(one.error for one in found if one.session == "damaged")
            assert isinstance(error, CorruptSessionError)
            assert (error.session, error.version) == ("damaged", 2)


def test_a_newest_event_that_is_missing_is_told(tmp_path: Path) -> None:
    """As where a file was changed by hand."""
    with SQLiteStore(tmp_path / "a.db") as store:
        begin(store, "a", 1)
        begin(store, "b", 1)
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("DELETE FROM trimtab_events WHERE session = 'a' AND version = 2")
        one, other = statuses(store, ["a", "b"])
        assert isinstance(one.error, CorruptSessionError)
        assert one.error.version == 2
        assert other.error is None


def test_it_costs_a_request_for_a_hundred(place: Place) -> None:
    """Statements and commands are counted: of 1,000 sessions, and of their keys."""
    with place.make() as store:  # type: ignore[attr-defined]
        copy_many(store, 1_000)
        page = store.sessions()
        said = count_requests(store)
        assert [one.recent_messages for one in statuses(store, page)] == [1] * 1_000
        asked = [one for one in said if one not in ("BEGIN", "COMMIT")]
        assert len(asked) <= (22 if isinstance(store, EncryptedStore) else 11), asked[:20]


def copy_many(store: Store, count: int) -> None:
    """Put many sessions of one message into a store."""
    source = MemoryStore()
    begin(source, "s", 1)
    events = source.load(LoadRequest(session="s"))
    for at in range(count):
        store.append(AppendRequest(session=f"s{at:04}", expected_version=0, events=events))


class Own(Older):
    """A store of a user's, which knows neither labels nor `load_newest`, and counts what it is asked."""

    load_newest = None  # type: ignore[assignment]
    aload_newest = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[LoadRequest] = []

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Note what is asked."""
        self.asked.append(request)
        return super().load(request)


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_store_of_ones_own_is_asked_once_for_each(is_encrypted: bool) -> None:
    """For one event; where it is encrypted, once more for the key."""
    own = Own()
    store: Store = encrypted(own, KEYS) if is_encrypted else own
    copy_many(store, 20)
    for call in (statuses, lambda *asked: asyncio.run(astatuses(*asked))):
        own.asked.clear()
        names = store.sessions()
        found = call(store, [*names, "nobody"])
        assert [one.recent_messages for one in found] == [1] * 20 + [0]
        assert isinstance(found[-1].error, UnknownNameError)
        assert len(own.asked) == (41 if is_encrypted else 21)
        assert {(one.limit, one.newest_first) for one in own.asked} == {(1, True)}


def test_without_its_keys_each_session_is_said_to_be_encrypted() -> None:
    """By a store that was opened without them."""
    inner = MemoryStore()
    begin(encrypted(inner, KEYS), "a", 1)
    begin(inner, "b", 1)
    one, other = statuses(inner, ["a", "b"])
    assert isinstance(one.error, EncryptionKeyError)
    assert (other.error, other.recent_messages) == (None, 1)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (("chats.db", ["a"]), r"takes a Store, such as open_store"),
        ((MemoryStore(), "a"), r"pass a list of names, such as \['a'\]"),
        ((MemoryStore(), None), r"pass a list of names, such as store.sessions\(limit=100\), not None"),
        ((MemoryStore(), [7]), r"id must be a text"),
        ((encrypted(MemoryStore(), KEYS), ["trimtab:key:1"]), "those of keys"),
    ],
)
def test_what_is_no_store_and_no_name_is_refused(given: tuple[Any, Any], match: str) -> None:
    """In both colours."""
    with pytest.raises(ConfigurationError, match=match):
        statuses(*given)
    with pytest.raises(ConfigurationError, match=match):
        asyncio.run(astatuses(*given))
