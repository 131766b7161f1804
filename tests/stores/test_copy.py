"""`copy_session` and `open_store`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import user
from tests.stores.stores import Place
from trimtab import ConfigurationError, Session
from trimtab.errors import StoreUnavailableError, UnknownNameError
from trimtab.stores import (
    Appended,
    AppendRequest,
    Event,
    LoadRequest,
    MemoryStore,
    Retry,
    SQLiteStore,
    Store,
    acopy_session,
    copy_session,
    open_store,
)


def _events(count: int) -> list[Event]:
    return [Event(id=f"e{at}", kind="note", time=float(at), data={"at": at}) for at in range(count)]


def _filled(count: int, session: str = "s") -> MemoryStore:
    store = MemoryStore()
    if count:
        store.append(AppendRequest(session=session, expected_version=0, events=_events(count)))
    return store


def _load(store: Store, session: str = "s") -> list[Event]:
    return store.load(LoadRequest(session=session))


def _copy(source: Store, target: Store, *, awaited: bool, **options: Any) -> int:
    if awaited:
        return asyncio.run(acopy_session(source, target, "s", **options))
    return copy_session(source, target, "s", **options)


both = pytest.mark.parametrize("awaited", [False, True], ids=["copy", "acopy"])


class Interrupted(MemoryStore):
    """Loses the connection at an append; `after`: when it was stored already."""

    def __init__(self, fails_at: int, *, after: bool) -> None:
        super().__init__()
        self.appends = 0
        self.fails_at = fails_at
        self.after = after

    def append(self, request: AppendRequest, /) -> Appended:
        """Fail once."""
        self.appends += 1
        if self.appends == self.fails_at and not self.after:
            raise StoreUnavailableError("the line is cut")
        answer = super().append(request)
        if self.appends == self.fails_at:
            raise StoreUnavailableError("the line is cut")
        return answer


@both
def test_a_copy_is_equal_event_for_event(place: Place, awaited: bool) -> None:
    """From and to every store."""
    store = place.make()
    try:
        source = _filled(7)
        assert _copy(source, store, awaited=False, to="t", page_events=3) == 7
        target = MemoryStore()
        assert copy_session(store, target, "t", to="s", page_events=2, decrypt=True) == 7
        assert _load(target) == _load(source)
        assert copy_session(store, store, "t", to="twice") == 7
        assert _load(store, "twice") == _load(source)
    finally:
        store.close()


@both
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("page_events", [1, 2, 100])
def test_a_copy_goes_on_where_one_ended(count: int, page_events: int, awaited: bool) -> None:
    """What is there and equal stays; asked again, a whole copy is left as it is."""
    source = _filled(4)
    for there in range(min(count, 4) + 1):
        target = _filled(there)
        assert _copy(source, target, awaited=awaited, page_events=page_events) == 4 - there
        assert _load(target) == _load(source)
        assert _copy(source, target, awaited=awaited, page_events=page_events) == 0


@both
@pytest.mark.parametrize("after", [False, True], ids=["not-stored", "stored"])
def test_an_interrupted_copy_can_be_repeated(after: bool, awaited: bool) -> None:
    """Whether the last page arrived or not."""
    source, target = _filled(9), Interrupted(3, after=after)
    with pytest.raises(StoreUnavailableError):
        _copy(source, target, awaited=awaited, page_events=2)
    assert _copy(source, target, awaited=awaited, page_events=2) == (3 if after else 5)
    assert _load(target) == _load(source)


def test_a_copy_with_retry_goes_on() -> None:
    """The two fit together."""
    source, target = _filled(9), Interrupted(3, after=True)
    Retry(first_seconds=0.0).call(lambda: copy_session(source, target, "s", page_events=2))
    assert _load(target) == _load(source)


@both
def test_other_events_in_the_target_are_refused(awaited: bool) -> None:
    """Also where only the last differs, and where the target has more."""
    source = _filled(4)
    other = MemoryStore()
    changed = replace(_events(4)[3], data={"at": "other"})
    other.append(AppendRequest(session="s", expected_version=0, events=[*_events(3), changed]))
    with pytest.raises(ConfigurationError, match="version 4"):
        _copy(source, other, awaited=awaited)
    longer = _filled(5)
    for page_events in (1, 4, 100):
        with pytest.raises(ConfigurationError, match="version 5"):
            _copy(source, longer, awaited=awaited, page_events=page_events)
    assert len(_load(longer)) == 5


@both
def test_a_copy_can_end_early(awaited: bool) -> None:
    """Below a version, as where the rest is damaged."""
    source, target = _filled(5), MemoryStore()
    assert _copy(source, target, awaited=awaited, before=4, page_events=2) == 3
    assert _load(target) == _load(source)[:3]
    assert _copy(source, target, awaited=awaited) == 2
    with pytest.raises(ConfigurationError, match="version 4"):
        _copy(source, target, awaited=awaited, before=4)
    assert _copy(source, MemoryStore(), awaited=awaited, before=1) == 0


@both
@pytest.mark.parametrize("options", [{"page_events": 0}, {"page_events": True}, {"to": ""}])
def test_a_copy_of_nothing_is_refused(options: dict[str, Any], awaited: bool) -> None:
    """A name nobody wrote to is a slip of the pen."""
    with pytest.raises(ConfigurationError):
        _copy(_filled(2), MemoryStore(), awaited=awaited, **options)
    with pytest.raises(ConfigurationError, match="no session 's'"):
        _copy(MemoryStore(), MemoryStore(), awaited=awaited)


# -- URLs


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///sessions.db", str(Path.cwd() / "sessions.db")),
        ("sqlite:////var/tmp/a.db", "/var/tmp/a.db"),
        ("SQLite:////var/tmp/a%20b.db", "/var/tmp/a b.db"),
        ("sqlite:///:memory:", ":memory:"),
        ("sessions.db", str(Path.cwd() / "sessions.db")),
        ("/var/tmp/a b.sqlite3", "/var/tmp/a b.sqlite3"),
        (Path("kept"), str(Path.cwd() / "kept")),
    ],
)
def test_a_url_of_sqlite_names_a_file(url: str | Path, path: str) -> None:
    """Relative with three slashes, absolute with four; or the path itself."""
    store = open_store(url)
    assert isinstance(store, SQLiteStore)
    assert store.path == path


def test_memory_is_a_store_of_its_own() -> None:
    """A new one each time."""
    assert isinstance(open_store("memory://"), MemoryStore)
    assert open_store("memory://") is not open_store("memory://")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sessions",
        "sqlite:sessions.db",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/a.db",
        "sqlite:///a.db?mode=ro",
        "memory://a",
    ],
)
def test_a_url_that_names_no_place_is_refused(url: str) -> None:
    """With what to write."""
    with pytest.raises(ConfigurationError, match=r"sqlite:///|memory://"):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "near"), [("postgre://h/db", "postgres"), ("sqlit:///a", "sqlite"), ("mongodb://h", None)]
)
def test_an_unknown_scheme_says_those_spelled_like_it(url: str, near: str | None) -> None:
    """And all there are."""
    with pytest.raises(UnknownNameError, match="memory://") as caught:
        open_store(url)
    assert (near in caught.value.near) if near else caught.value.near == ()


def test_a_url_is_a_text() -> None:
    """Anything else says so."""
    number: Any = 5
    with pytest.raises(ConfigurationError):
        open_store(number)
    with pytest.raises(ConfigurationError, match="store must be a Store"):
        Session(1_000, id="s", store=number)


def test_a_session_takes_the_place_of_a_store_for_it(tmp_path: Path) -> None:
    """A path or a URL, in each of its doors; and under a name, since a new one would never be found again."""
    place = tmp_path / "chats.db"
    session = Session(1_000, id="a", store=str(place))
    session.add(user("hello"))
    for store in (place, str(place), f"sqlite:///{place}"):
        assert Session.open(store, "a").messages() == session.messages()
    assert session.fork(id="b", store=tmp_path / "other").messages() == session.messages()
    assert Session.restore(session.snapshot(), store=tmp_path / "third").id == "a"
    for store in (place, SQLiteStore(place)):
        with pytest.raises(ConfigurationError, match="pass id='…'"):
            Session(1_000, store=store)
    assert Session(1_000, store=SQLiteStore(":memory:")).id
