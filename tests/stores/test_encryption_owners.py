"""Whose encrypted sessions are: lists, exports and orders about many, and where their keys go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stores.rings import OLD
from tests.stores.served import Served, contents, load, served_postgres, served_redis
from tests.stores.stores import Place, params, placed
from tests.stores.test_owners import pages, put
from trimtab import Session
from trimtab.errors import ConfigurationError, StoreUnavailableError
from trimtab.stores import (
    AppendRequest,
    EncryptedStore,
    Event,
    KmsKeys,
    Labels,
    MemoryStore,
    Receipt,
    SQLiteStore,
    Store,
    copy_session,
    encrypted,
)

TEXT = "zanzibarquoll"


@pytest.fixture(
    params=params("memory-encrypted", "sqlite-encrypted", "postgres-encrypted", "redis-encrypted")
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place of each store, encrypted."""
    with placed(request.param, tmp_path) as made:
        yield made


def _keys(store: EncryptedStore) -> list[str]:
    """List the key records in the store of sessions."""
    return [*store.keeps_labels_in.sessions(prefix="trimtab:key:")]


def test_no_list_and_no_export_shows_a_key(place: Place) -> None:
    """In any order, in pages of any size, whatever names stand beside those of the keys."""
    names = ["a", "trimtab:", "trimtab:key", "trimtab:key;", "trimtab:l", "z"]
    with place.make() as store:  # type: ignore[attr-defined]
        for at, name in enumerate(names):
            put(store, name, time=float(at + 1), metadata={"n": at} if at % 2 else {})
        assert len(_keys(store)) == len(names)
        asked: dict[str, Any]
        for asked, wanted in (
            ({}, names),
            ({"prefix": "trimtab:"}, names[1:5]),
            ({"prefix": "trimtab:key:"}, []),
            ({"used_after": 0.0}, names),
            ({"used_after": 1.5, "used_before": 5.5}, names[1:5]),
            ({"metadata": {"n": 3}}, names[3:4]),
        ):
            assert store.sessions(**asked) == wanted, asked
            for limit in (1, 2, 5, 6, 100):
                found = [*pages(store, limit, **asked)]
                assert [one for page in found for one in page] == wanted, (asked, limit)
                assert len(found) == max(1, -(-len(wanted) // limit)), "no page is empty"
        assert [one.metadata for one in store.sessions()][:2] == [{}, {"n": 1}]
        told = [json.loads(line)["session"] for line in store.export()]
        assert sorted(set(told)) == names
        assert "trimtab:key" not in store.sessions(limit=1)[0].metadata


def test_keys_go_with_the_sessions_of_an_order(place: Place) -> None:
    """Those of what is gone and no other, whoever else reads it; receipts count no key."""
    with place.make() as store, place.make() as other:  # type: ignore[attr-defined]
        for at in range(4):
            put(store, f"a{at}", owner="ada", ttl=5.0 if at < 2 else None)
        put(store, "b", owner="bob")
        put(store, "nobody")
        assert len(other.sessions()) == len(_keys(store)) == 6
        gone = store.expire(now=100.0)
        assert (gone.sessions, gone.messages, gone.keys, len(_keys(store))) == (2, 2, (), 4)
        gone = other.delete(owner="ada")
        assert (gone.sessions, gone.messages, gone.keys, len(_keys(store))) == (2, 2, (), 2)
        assert store.delete("b").sessions == 1
        assert contents(load(store, "nobody")) == ["heron"]
        assert (store.sessions(), len(_keys(store))) == (["nobody"], 1)
        put(store, "a0", owner="ada")
        assert contents(load(other, "a0")) == ["heron"]


def test_a_key_goes_in_the_same_step_whoever_removes_the_session(place: Place) -> None:
    """Also without the ring, so that a process that ends right after it leaves no key."""
    with place.make() as store:  # type: ignore[attr-defined]
        inner = store.keeps_labels_in
        for at in range(120):
            put(store, f"a{at}", owner="ada")
        put(store, "b", owner="bob", ttl=5.0)
        put(store, "c", owner="cy")
        put(store, "d")
        gone = inner.delete(owner="ada")
        assert (gone.sessions, gone.messages, gone.keys) == (120, 120, ())
        gone = inner.expire(now=100.0)
        assert (gone.sessions, gone.messages, gone.keys) == (1, 1, ())
        assert len(_keys(store)) == 2
        assert [contents(load(store, name)) for name in ("c", "d")] == [["heron"], ["heron"]]


def test_a_session_removed_by_name_without_the_ring_leaves_its_key(plain_place: Place) -> None:
    """On every store: a rotation removes the key later."""
    with plain_place.make() as inner:  # type: ignore[attr-defined]
        put(encrypted(inner, OLD), "s")
        gone = inner.delete("s")
        assert (gone.sessions, gone.keys, gone.removed_keys) == (1, (), ())
        assert len(inner.sessions(prefix="trimtab:key:")) == 1


def test_keys_in_a_store_of_their_own_go_after_the_sessions(place: Place) -> None:
    """In one order; the store of sessions says which."""
    with place.make() as made:  # type: ignore[attr-defined]
        keys = MemoryStore()
        store = encrypted(made.keeps_labels_in, OLD, key_store=keys)
        for at in range(3):
            put(store, f"a{at}", owner="ada", ttl=5.0 if at else None)
        put(store, "b")
        assert len(keys.sessions()) == 4
        assert (store.expire(now=100.0).sessions, len(keys.sessions())) == (2, 2)
        assert (store.delete(owner="ada").sessions, len(keys.sessions())) == (1, 1)
        assert contents(load(store, "b")) == ["heron"]


def test_a_copy_of_a_key_beside_the_sessions_is_not_taken_for_the_key(place: Place) -> None:
    """As of before keys were given a store of their own; both go."""
    with place.make() as made:  # type: ignore[attr-defined]
        inner, keys = made.keeps_labels_in, MemoryStore()
        for name, ttl in (("a", None), ("b", 5.0)):
            put(made, name, owner="ada", ttl=ttl)
        for record in _keys(made):
            copy_session(inner, keys, record)
        store = encrypted(inner, OLD, key_store=keys)
        assert (store.expire(now=100.0).keys, len(keys.sessions()), len(_keys(made))) == ((), 1, 1)
        gone = store.delete(owner="ada")
        assert (gone.sessions, gone.keys, gone.removed_keys) == (1, (), ())
        assert (keys.sessions(), _keys(made)) == ([], [])


def test_an_order_leaves_the_secrets_of_other_sessions_unwrapped(plain_place: Place) -> None:
    """A key management service is not asked again for what was not removed; for what is gone it is."""
    asked: list[str] = []

    def unwrap(key: str, wrapped: bytes) -> bytes:
        asked.append(key)
        return bytes(one ^ 1 for one in wrapped)

    kms = KmsKeys("k", wrap=lambda key, secret: bytes(one ^ 1 for one in secret), unwrap=unwrap)
    with plain_place.make() as inner:  # type: ignore[attr-defined]
        store = encrypted(inner, kms)
        for at in range(5):
            put(store, f"s{at}", owner=f"o{at}")
        assert store.delete(owner="o0").sessions == 1
        for at in range(1, 5):
            assert contents(load(store, f"s{at}")) == ["heron"]
        assert asked == []


def test_labels_change_and_the_key_is_still_known(place: Place) -> None:
    """Others are said, and the order after that takes the key along."""
    with place.make() as store:  # type: ignore[attr-defined]
        put(store, "s")
        put(store, "s", at=1, owner="ada")
        put(store, "s", at=2, owner="bob", metadata={"n": 1})
        assert store.sessions(owner="bob")[0].metadata == {"n": 1}
        assert store.delete(owner="ada") == Receipt()
        assert len(load(store, "s")) == 3
        assert store.delete(owner="bob").messages == 3
        assert _keys(store) == []


def test_a_session_is_opened_listed_and_exported_by_its_owner() -> None:
    """The log says the labels in a ciphertext, the store's index in plain text."""
    store = encrypted(inner := MemoryStore(), OLD)
    session = Session(400, store=store, id="s", owner="ada", metadata={"plan": "free"})
    session.add({"role": "user", "content": TEXT})
    session.label(owner="bob", metadata={"plan": "paid"})
    assert inner.sessions(owner="bob") == ["s"]
    again = Session.open(store, "s")
    assert (again.owner, again.metadata) == ("bob", {"plan": "paid"})
    again.fork(id="t").add({"role": "user", "content": "more"})
    assert store.sessions(owner="bob", metadata={"plan": "paid"}) == ["s", "t"]
    assert any(TEXT in line for line in store.export(owner="bob"))
    assert not any(TEXT in line for line in inner.export())
    store.drop_key("s")
    told = [json.loads(line) for line in store.export(owner="bob")]
    assert "its key" in told[0]["error"]
    assert told[-1]["session"] == "t"
    assert told[-1]["events"] == len(told) - 2
    assert store.delete(owner="bob").sessions == 2
    assert inner.sessions() == []


class _Late(MemoryStore):
    """Something happens between the call of an order and its work."""

    before: Any = None

    def delete(self, *args: Any, **options: Any) -> Receipt:
        if self.before is not None and "owner" in options:
            self.before()
        return super().delete(*args, **options)


def test_who_gets_another_owner_meanwhile_keeps_the_key() -> None:
    """And who is begun anew has the new one."""
    inner = _Late()
    store, other = encrypted(inner, OLD), encrypted(inner, OLD)
    for name in ("moved", "anew", "gone"):
        put(store, name, owner="ada")

    def meanwhile() -> None:
        put(other, "moved", at=1, owner="bob")
        other.delete("anew")
        put(other, "anew", owner="bob", text="crane")

    inner.before = meanwhile
    assert store.delete(owner="ada").sessions == 1
    for one in (store, other, encrypted(inner, OLD)):
        assert contents(load(one, "moved")) == ["heron", "heron"]
        assert contents(load(one, "anew")) == ["crane"]
    assert len(_keys(store)) == 2


class _Stored(MemoryStore):
    """Something happens right after an append."""

    after: Any = None

    def append(self, request: AppendRequest, /) -> Any:
        done = super().append(request)
        if self.after is not None and request.session == "s":
            self.after()
        return done


def test_what_was_stored_before_its_session_was_deleted_is_no_conflict() -> None:
    """Its key went with it, so the writer finds none when it looks again; the receipt counts the event."""
    inner = _Stored()
    store, other = encrypted(inner, OLD), encrypted(inner, OLD)
    put(store, "s", owner="ada")
    receipts: list[Receipt] = []
    inner.after = lambda: receipts.append(other.delete(owner="ada"))
    put(store, "s", at=1)
    assert [one.messages for one in receipts] == [2]
    inner.after = None
    assert load(store, "s") == []


def test_labels_that_were_copied_by_hand_take_no_key() -> None:
    """A key goes with its own session only."""
    store = encrypted(inner := MemoryStore(), OLD)
    put(store, "s", owner="ada")
    (row,) = inner.sessions(owner="ada")
    rows = [replace(one, incarnation="") for one in load(inner, "s")]
    labels = replace(row.labels, owner="bob")
    inner.append(AppendRequest(session="t", expected_version=0, events=rows, labels=labels))
    assert store.delete(owner="bob").sessions == 1
    assert contents(load(store, "s")) == ["heron"]
    with pytest.raises(ConfigurationError, match="keeps its own value") as caught:
        put(store, "u", metadata={"trimtab:key": "x"})
    assert caught.value.argument == "metadata"
    assert (store.sessions(), len(_keys(store))) == (["s"], 1)


def test_no_user_names_the_key_of_another_session(plain_place: Place) -> None:
    """Whatever a user gives as metadata: an order about the user's sessions leaves the key there."""
    with plain_place.make() as inner:  # type: ignore[attr-defined]
        store = encrypted(inner, OLD)
        put(store, "theirs", owner="ada")
        (row,) = inner.sessions(owner="ada")
        id = row.metadata["trimtab:key"].partition(".")[0]
        forged = {"trimtab:key": f"{id}.{hashlib.blake2b(b'mine', digest_size=8).hexdigest()}"}
        mine = Session(400, store=inner, id="mine", owner="eve")
        mine.add({"role": "user", "content": "x"})
        options = {"owner": "eve", "metadata": forged, "ttl": None}
        event = Event(id="r1", kind="options", time=1.0, data={"options": options})
        calls: list[Any] = [
            lambda: mine.label(metadata=forged),
            lambda: Session(400, store=inner, id="m", owner="eve", metadata=forged),
            lambda: inner.append(AppendRequest(session="m", expected_version=0, events=[event])),
            lambda: Session(400, owner="eve", metadata={"trimtab:x": 1}),
        ]
        for call in calls:
            with pytest.raises(ConfigurationError, match="names that begin with 'trimtab:'") as caught:
                call()
            assert caught.value.argument == "metadata"
        assert inner.delete(owner="eve").sessions == 1
        assert contents(load(store, "theirs")) == ["heron"]


class _Keys(MemoryStore):
    """A store of keys that is not always there."""

    is_there = True

    def delete_many(self, names: Any, /) -> Receipt:
        if not self.is_there:
            raise StoreUnavailableError("the store of keys does not answer")
        return super().delete_many(names)


def test_keys_that_cannot_be_removed_are_told() -> None:
    """The sessions are gone; what begins under their names is another."""
    store = encrypted(inner := MemoryStore(), OLD, key_store=(keys := _Keys()))
    put(store, "s", owner="ada")
    put(store, "t", ttl=1.0)
    keys.is_there = False
    gone = store.delete(owner="ada")
    assert (gone.sessions, "does not answer" in (gone.not_erased or "")) == (1, True)
    put(store, "s", owner="ada", text="crane")
    assert contents(load(store, "s")) == ["crane"]
    keys.is_there = True
    assert store.expire(now=100.0) == Receipt(sessions=1, messages=1, bytes=gone.bytes)
    assert store.delete(owner="ada").not_erased is None
    assert (inner.sessions(), len(keys.sessions())) == ([], 1)


class _Before(MemoryStore):
    """A store of before stores knew owners."""

    def sessions(self) -> list[str]:  # type: ignore[override]
        return [*map(str, super().sessions())]

    def delete(self, session: str, /, *, incarnation: str | None = None) -> None:  # type: ignore[override]
        super().delete(session, incarnation=incarnation)


def test_a_store_that_knows_no_labels_says_so() -> None:
    """What it can do it does as before; owners are refused, and nothing is dropped in silence."""
    store = encrypted(_Before(), OLD)
    put(store, "s")
    assert store.sessions() == ["s"]
    calls: list[Any] = [
        lambda: store.sessions(owner="ada"),
        lambda: store.delete(owner="ada"),
        lambda: store.expire(),
        lambda: store.export(),
        lambda: Session(400, store=store, id="t", owner="ada").add({"role": "user", "content": "x"}),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="does not know owner="):
            call()
    assert store.delete("s") == Receipt()
    assert store.sessions() == []


def _plant(store: Store) -> None:
    for name in ("one", "two", "three"):
        session = Session(400, store=store, id=name, owner="ada", ttl=60.0 if name == "one" else None)
        session.extend([{"role": "user", "content": f"{TEXT} {at}"} for at in range(9)])
    (one,) = store.sessions(prefix="one")
    assert store.expire(now=one.used + 61.0).sessions == 1
    assert store.delete(owner="ada").sessions == 2


def test_sqlite_has_nothing_of_what_an_order_removed(tmp_path: Path) -> None:
    """No text, no ciphertext, and no key, in any file."""
    path = tmp_path / "a.db"
    store = encrypted(SQLiteStore(path), OLD)
    _plant(store)
    for one in tmp_path.iterdir():
        found = [
            word for word in (TEXT, "trimtab.sealed", "trimtab:key:") if word.encode() in one.read_bytes()
        ]
        assert found == [], one
    assert store.keeps_labels_in.sessions() == []
    store.close()


@pytest.mark.server
@pytest.mark.parametrize("make", [served_postgres, served_redis], ids=["postgres", "redis"])
def test_servers_have_nothing_of_what_an_order_removed(make: Any) -> None:
    """No text in any file, and no session and no key in the store."""
    with make() as served:
        assert isinstance(served, Served)
        store = encrypted(served.make(), OLD)
        _plant(store)
        assert store.keeps_labels_in.sessions() == []
        served.at_rest()
        files = [one for one in served.server.data.rglob("*") if one.is_file()]
        assert not any(TEXT.encode() in one.read_bytes() for one in files)
        store.close()


def test_labels_of_the_most_entries_have_room_for_the_key() -> None:
    """The key's own entry is not counted."""
    store = encrypted(MemoryStore(), OLD)
    most = {str(at): at for at in range(64)}
    put(store, "s", metadata=most)
    assert store.sessions()[0].metadata == most
    with pytest.raises(ConfigurationError, match="at most 64"):
        Labels(metadata={**most, "more": 1})


class _Half(MemoryStore):
    """An order to remove key records ends in its middle."""

    def delete_many(self, names: Any, /) -> Receipt:
        super().delete_many(sorted(names)[:-1])
        raise StoreUnavailableError("the store does not answer")


def test_a_rotation_that_fails_in_the_middle_counts_the_keys_that_are_gone() -> None:
    """The next one removes the rest."""
    inner = _Half()
    store = encrypted(inner, OLD)
    put(store, "s")
    (record,) = _keys(store)
    (row,) = load(inner, record)
    for at in range(5):
        old = replace(row, data={**row.data, "session": f"gone {at}", "made": 1.0}, version=0, incarnation="")
        inner.append(AppendRequest(session=f"trimtab:key:{at:016x}", expected_version=0, events=[old]))
    assert (store.rotate().removed, len(_keys(store))) == (4, 2)
