"""Owner, metadata and time to live of sessions on every store: reopened, forked, restored, exported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.stores.stores import Place
from trimtab import Session
from trimtab.errors import ConfigurationError, CorruptSessionError, SessionExpiredError
from trimtab.stores import AppendRequest, Event, Labels, LoadRequest, MemoryStore, Retry, Store, copy_session
from trimtab.testing import ContractBroken, check_store

HELLO = {"role": "user", "content": "hello heron"}


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    """Give a handle on each store in turn."""
    with place.make() as made:  # type: ignore[attr-defined]
        yield made


def old_session(store: Store, name: str, **labels: Any) -> None:
    """Put a session of three events into a store whose last event is of 1970."""
    with MemoryStore() as source:
        session = Session(1_000, store=source, id=name, **labels)
        for _ in range(2):
            session.add(HELLO)
        events = [replace(one, time=float(one.version)) for one in source.load(LoadRequest(session=name))]
    store.append(AppendRequest(session=name, expected_version=0, events=events))


def one_in(store: Store, name: str) -> tuple[str | None, dict[str, Any], float | None]:
    """Return what a list says of a session."""
    (entry,) = store.sessions(prefix=name)
    return entry.owner, entry.metadata, entry.ttl


def test_a_time_to_live_that_is_passed_begins_with_the_next_event(store: Store) -> None:
    """A service that begins to pass one opens its old sessions; what ended by its own is not opened."""
    old_session(store, "s")
    session = Session(1_000, store=store, id="s", ttl=60.0)
    assert session.version == 3
    assert store.expire().sessions == 0
    session.add(HELLO)
    assert one_in(store, "s")[2] == 60.0
    old_session(store, "t", ttl=1e10)
    assert Session(1_000, store=store, id="t", ttl=60.0).version == 3
    old_session(store, "u", ttl=60.0)
    for shorter in ({}, {"ttl": 5.0}, {"ttl": 120.0}):
        with pytest.raises(SessionExpiredError):
            _ = Session(1_000, store=store, id="u", **shorter).version
    assert Session(1_000, store=store, id="u", ttl=1e10).version == 3
    assert store.expire().sessions == 1


def test_a_fork_of_an_old_version_lives(store: Store) -> None:
    """It was used now; and the same order, given twice, goes on."""
    old_session(store, "s", ttl=60.0)
    Session(1_000, store=store, id="s", ttl=None).label(ttl=60.0)
    session = Session.open(store, "s")
    for _ in range(2):
        fork = session.fork(3, id="f")
        assert (fork.version, fork.ttl, len([*fork.history()])) == (4, 60.0, 2)
    assert store.expire().sessions == 0
    fork.add(HELLO)
    assert Session.open(store, "f").version == 5

    async def awaited() -> int:
        fork = await session.afork(2, id="g")
        await fork.arefresh()
        await store.aclose()
        return fork.version

    assert asyncio.run(awaited()) == 3


def test_a_fork_has_the_labels_of_now(store: Store) -> None:
    """Also those that another writer set; from whichever version it begins."""
    session = Session(1_000, store=store, id="s", metadata={"plan": "free"})
    session.add(HELLO)
    before = session.version
    Session.open(store, "s").label(owner="ada", metadata={"plan": True})
    fork = session.fork(before, id="f")
    assert (fork.owner, fork.metadata, fork.version) == ("ada", {"plan": True}, before + 1)
    session.refresh()
    assert session.fork(id="g").version == session.version
    assert store.sessions(owner="ada", metadata={"plan": True}) == ["f", "g", "s"]
    assert store.delete(owner="ada").sessions == 3


def test_a_restored_session_lives(store: Store) -> None:
    """However old the snapshot is; restoring it again changes nothing."""
    with MemoryStore() as source:
        old_session(source, "s", owner="ada", ttl=60.0)
        data = Session(1_000, store=source, id="s", ttl=1e10).snapshot()
    for _ in range(2):
        restored = Session.restore(data, store=store)
        assert store.expire().sessions == 0
        assert len([*restored.history()]) == 2

    async def awaited() -> list[str]:
        await Session.arestore(data, store=store, id="t")
        found = await store.asessions(owner="ada")
        await store.aclose()
        return found

    assert asyncio.run(awaited()) == ["s", "t"]


def test_a_flag_is_no_number(store: Store) -> None:
    """1 and True are one for Python; a list by metadata tells them apart, and so does who changes them."""
    session = Session(1_000, store=store, id="s", metadata={"beta": 1})
    session.add(HELLO)
    session.label(metadata={"beta": True})
    assert store.sessions(metadata={"beta": True}) == ["s"]
    Session(1_000, store=store, id="s", metadata={"beta": 1}).add(HELLO)
    assert store.sessions(metadata={"beta": 1}) == ["s"]


def test_labels_that_were_passed_are_passed_once(store: Store) -> None:
    """An object that goes on leaves what others changed; where its session is gone it begins with them."""
    mine = Session(1_000, store=store, id="s", owner="ada", ttl=60.0, retry=Retry())
    mine.add(HELLO)
    Session(1_000, store=store, id="s").label(owner="bob", ttl=None)
    mine.add(HELLO)
    assert (mine.owner, mine.ttl) == ("bob", None)
    with pytest.raises(ConfigurationError, match=r"label\(owner=…\)"):
        mine.owner = "ada"  # type: ignore[misc]
    assert one_in(store, "s") == ("bob", {}, None)
    store.delete("s")
    mine.refresh()
    mine.add(HELLO)
    assert one_in(store, "s") == ("ada", {}, 60.0)


def test_options_of_an_older_trimtab_take_no_label_away(store: Store) -> None:
    """They say none; what the store knows holds, and is said again with the next options."""
    session = Session(1_000, store=store, id="s", owner="ada", metadata={"plan": "free"}, ttl=60.0)
    session.add(HELLO)
    (first,) = store.load(LoadRequest(session="s", limit=1))
    options = {
        name: one for name, one in first.data["options"].items() if name not in ("owner", "metadata", "ttl")
    }
    (newest,) = store.load(LoadRequest(session="s", limit=1, newest_first=True))
    event = replace(
        newest, id="older", kind="options", data={"options": options}, state={**newest.state, "options": 3}
    )
    store.append(AppendRequest(session="s", expected_version=2, events=[event]))
    again = Session.open(store, "s")
    assert (again.owner, again.metadata, again.ttl) == ("ada", {"plan": "free"}, 60.0)
    again.label(metadata={"plan": "paid"})
    assert one_in(store, "s") == ("ada", {"plan": "paid"}, 60.0)
    assert one_in_fork(again) == "ada"


def one_in_fork(session: Session) -> str | None:
    """Fork a session at the version where its options said no owner."""
    return session.fork(3, id="other").owner


# Exports.


def put(store: Store, name: str, *, at: int = 0, events: int = 1, **labels: Any) -> None:
    """Add events to a session."""
    made = [
        Event(id=f"e{at}-{one}", kind="message", time=1.0, data={"text": "an event"}) for one in range(events)
    ]
    store.append(AppendRequest(session=name, expected_version=at, events=made, labels=Labels(**labels)))


def told(line: str) -> tuple[str, Any]:
    """Return of a line its session, and its version, `error` or `events`."""
    read = json.loads(line)
    return read["session"], read.get("version") or ("error" if "error" in read else "events")


def test_an_export_goes_on_behind_a_session_that_cannot_be_read(place: Place) -> None:
    """What can be read of it is there; and who goes on behind its line gets the next one."""
    if place.damage is None:
        pytest.skip("nothing changes it from outside")
    with place.make() as store:  # type: ignore[attr-defined]
        for name in "abc":
            put(store, name, events=3, owner="ada")
        place.damage("b", 2)
        lines = [*store.export(owner="ada")]
        assert [told(line) for line in lines] == [
            *[("a", 1), ("a", 2), ("a", 3), ("a", "events")],
            *[("b", 1), ("b", "error")],
            *[("c", 1), ("c", 2), ("c", 3), ("c", "events")],
        ]
        assert "cannot be read" in json.loads(lines[5])["error"]
        assert [*store.export(owner="ada", after=json.loads(lines[5])["at"])] == lines[6:]

        async def awaited() -> list[str]:
            found = [line async for line in store.aexport(owner="ada")]
            await store.aclose()
            return found

        assert asyncio.run(awaited()) == lines


def test_an_export_does_not_say_that_what_moved_was_deleted(store: Store) -> None:
    """It has another owner now."""
    put(store, "a", events=2, owner="ada")
    put(store, "b", owner="ada")
    at = json.loads(next(iter(store.export(owner="ada"))))["at"]
    put(store, "a", at=2, owner="bob")
    lines = [*store.export(owner="ada", after=at)]
    assert [told(line) for line in lines] == [("a", "error"), ("b", 1), ("b", "events")]
    assert "another owner" in json.loads(lines[0])["error"]


# What no store can do.


@pytest.mark.parametrize("name", ["used_before", "used_after", "now"])
def test_a_time_beyond_all_numbers_is_refused(store: Store, name: str) -> None:
    """And the largest that is a number is one."""
    put(store, "s", ttl=1.0)
    call = store.expire if name == "now" else store.sessions
    with pytest.raises(ConfigurationError) as caught:
        call(**{name: 10**400})
    assert caught.value.argument == name
    found = call(**{name: 10**30})
    assert found.sessions == 1 if name == "now" else found == (["s"] if name == "used_before" else [])


def test_as_many_as_one_asks_for(store: Store) -> None:
    """Also where no store counts so far."""
    put(store, "s", ttl=1.0)
    for limit in (2**53, 2**63 - 1, 2**70):
        assert store.sessions(limit=limit) == ["s"]
    assert store.expire(now=9.0, limit=2**70).sessions == 1


class Older(MemoryStore):
    """A store of a user that was written before stores knew labels."""

    def sessions(self) -> Any:  # type: ignore[override]
        """List names."""
        return [str(one) for one in super().sessions()]

    expire = Store.expire
    aexpire = Store.aexpire


def test_a_store_without_labels_is_refused_where_they_are_asked_for() -> None:
    """In words that say what to write; without labels sessions are kept in it as ever."""
    store = Older()
    Session(1_000, store=store, id="s").add(HELLO)
    assert Session.open(store, "s").owner is None
    for call in (
        lambda: Session(1_000, store=store, id="s", owner="ada"),
        lambda: Session.open(store, "s").label(ttl=5.0),
        lambda: asyncio.run(Session.open(store, "s").alabel(ttl=5.0)),
        lambda: store.export(owner="ada"),
        lambda: store.aexport(),
        lambda: store.expire(),
        lambda: asyncio.run(store.aexpire()),
    ):
        with pytest.raises(ConfigurationError, match=r"Older does not know .*sessions\(owner=, …\)"):
            call()


def test_who_lacks_a_method_is_told_which() -> None:
    """Where it is given as a store, and where its contract is checked."""
    names = [name for name in vars(Store) if not name.startswith("_") and name not in ("expire", "aexport")]
    duck = type("Duck", (), dict.fromkeys(names, lambda *_, **__: None))()
    with pytest.raises(ConfigurationError, match="lacks expire, aexport"):
        Session(1_000, store=duck, id="s")
    with pytest.raises(ContractBroken, match="lacks expire, aexport"):
        check_store(lambda: duck)


def test_a_copy_of_a_session_has_its_labels(store: Store) -> None:
    """And its times."""
    old_session(store, "s", owner="ada", ttl=60.0)
    copy_session(store, store, "s", to="t")
    assert one_in(store, "t") == ("ada", {}, 60.0)
    assert store.expire().sessions == 2


def test_a_list_says_which_session_it_cannot_read(place: Place) -> None:
    """A damaged label stops no order; it is told where it would be shown."""
    if place.damage_labels is None:
        pytest.skip("nothing changes it from outside")
    with place.make() as store:  # type: ignore[attr-defined]
        for name in "abc":
            put(store, name, owner="ada", metadata={"plan": "free"}, ttl=1.0)
        place.damage_labels("b")
        for asked in ({}, {"owner": "ada"}, {"metadata": {"plan": "free"}}, {"used_before": 9.0}):
            with pytest.raises(CorruptSessionError) as caught:
                store.sessions(**asked)
            assert caught.value.session == "b"
        assert store.sessions(prefix="c") == store.sessions(after='["b"]') == ["c"]
        assert store.expire(now=9.0, limit=1).sessions == 1
        assert store.delete(owner="ada").sessions == 2
        assert store.sessions() == []
        put(store, "b", owner="ada")
        place.damage_labels("b")
        assert store.delete("b").sessions == 1
