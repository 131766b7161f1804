"""Encrypted stores: what is bound, what each key is for, and what who has no key is told."""

from __future__ import annotations

import asyncio
import json
import pickle
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stores.rings import BOTH, FIRST, OLD, SECOND
from tests.stores.served import add, contents, event, load
from trimtab import Session
from trimtab.errors import (
    ConfigurationError,
    CopyError,
    CorruptSessionError,
    EncryptionKeyError,
    KeyDroppedError,
    MissingExtraError,
    SessionDeletedError,
)
from trimtab.relevance import question_terms
from trimtab.stores import (
    AppendRequest,
    EncryptedStore,
    Event,
    KeyRing,
    KmsKeys,
    LoadRequest,
    MemoryStore,
    SearchRequest,
    SQLiteStore,
    acopy_session,
    copy_session,
    encrypted,
)


def _rows(store: MemoryStore, session: str = "s") -> list[Event]:
    return store.load(LoadRequest(session=session))


def _put(store: MemoryStore, session: str, *rows: Event) -> None:
    """Write rows as somebody can who has the store and no key."""
    version = len(_rows(store, session))
    store.append(AppendRequest(session=session, expected_version=version, events=(), rewrites=rows))


def _search(store: EncryptedStore, text: str, session: str = "s") -> list[str]:
    request = SearchRequest(session=session, terms=question_terms(text), limit=9)
    return contents(store.search(request))


def test_a_store_of_keys_holds_no_text_and_no_session_of_its_own() -> None:
    """Nothing of a text, its terms or a secret is in the rows, in `repr` or in the list of sessions."""
    inner = MemoryStore()
    store = encrypted(inner, OLD)
    add(store, 0, [event("a heron in Zanzibar"), event("an otter")])
    stored = json.dumps([[one.data for one in _rows(inner, name)] for name in inner.sessions()])
    for word in ("heron", "Zanzibar", "otter", "content", "first secret"):
        assert word.lower() not in (stored + repr(store) + repr(OLD)).lower()
    assert store.sessions() == ["s"]
    assert len(inner.sessions()) == 2
    assert _search(store, "herons")[0] == "a heron in Zanzibar"


def test_equal_texts_look_different_in_each_session_and_at_each_place() -> None:
    """Neither a ciphertext nor a hash of a term is in two sessions."""
    inner = MemoryStore()
    store = encrypted(inner, OLD)
    for session in ("a", "b"):
        add(store, 0, [event("the very same words", id=f"e{at}") for at in range(2)], session=session)
    a, b = _rows(inner, "a"), _rows(inner, "b")
    assert len({one.data["trimtab.sealed"] for one in (*a, *b)}) == 4
    assert not a[0].data["terms"].keys() & b[0].data["terms"].keys()


@pytest.mark.parametrize("words", [1, 7, 15, 16, 17, 40])
def test_sizes_are_those_of_a_step(words: int) -> None:
    """Of the body, of the text, of its terms and of how often these occur."""
    inner = MemoryStore()
    add(encrypted(inner, OLD), 0, [event(" ".join(f"word{at % 9}x{at}" for at in range(words)))])
    data = _rows(inner)[0].data
    assert data["chars"] % 16 == len(data["terms"]) % 16 == sum(data["terms"].values()) % 16 == 0
    short, long = MemoryStore(), MemoryStore()
    add(encrypted(short, OLD), 0, [event("no", id="e")])
    add(encrypted(long, OLD), 0, [event("not at all", id="e")])
    sizes = [len(_rows(one)[0].data["trimtab.sealed"]) for one in (short, long)]
    assert sizes[0] == sizes[1]


def _edit(key: str, change: Callable[[Any], Any]) -> Callable[[list[Event]], Event]:
    return lambda rows: replace(rows[1], data={**rows[1].data, key: change(rows[1].data[key])})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda rows: replace(rows[1], data=rows[0].data), id="of another place"),
        pytest.param(_edit("trimtab.sealed", lambda text: text[:-8] + "AAAAAAA="), id="ciphertext"),
        pytest.param(_edit("trimtab.sealed", lambda text: "?"), id="no base64"),
        pytest.param(_edit("trimtab.sealed", lambda text: None), id="no text"),
        pytest.param(_edit("terms", lambda terms: dict(list(terms.items())[1:])), id="a term less"),
        pytest.param(_edit("terms", lambda terms: 5), id="no terms"),
        pytest.param(_edit("chars", lambda chars: chars + 16), id="length"),
        pytest.param(lambda rows: replace(rows[1], data={"message": {"content": "in plain"}}), id="plain"),
    ],
)
def test_a_row_that_was_changed_is_an_error_that_names_it(change: Callable[[list[Event]], Event]) -> None:
    """By a load, by ids, and by a search; never left out, and never with a byte of it in the words."""
    inner = MemoryStore()
    store = encrypted(inner, OLD)
    add(store, 0, [event("a heron", id=f"e{at}") for at in range(3)])
    _put(inner, "s", change(_rows(inner)))
    for call in (
        lambda: load(store),
        lambda: load(store, ids=("e1",)),
        lambda: load(store, after=1, limit=1),
    ):
        with pytest.raises(CorruptSessionError, match="event 2") as caught:
            call()
        assert (caught.value.session, caught.value.version) == ("s", 2)
        assert "heron" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert contents(load(store, before=2)) == ["a heron"]


def test_rows_of_another_session_are_an_error() -> None:
    """Though its key is known as well."""
    inner = MemoryStore()
    store = encrypted(inner, OLD)
    for session in ("a", "b"):
        add(store, 0, [event(f"of {session}", id="e")], session=session)
    _put(inner, "a", replace(_rows(inner, "b")[0], time=_rows(inner, "a")[0].time))
    with pytest.raises(EncryptionKeyError, match="a key of another session"):
        load(store, "a")
    assert contents(load(store, "b")) == ["of b"]


def test_who_opens_a_store_in_the_wrong_way_is_told() -> None:
    """An encrypted session without keys, a plain one with them."""
    inner = MemoryStore()
    store = encrypted(inner, OLD)
    Session(1_000, store=store, id="safe").add({"role": "user", "content": "hello"})
    Session(1_000, store=inner, id="plain").add({"role": "user", "content": "hello"})
    with pytest.raises(EncryptionKeyError, match="is encrypted: open its store with its keys"):
        Session.open(inner, "safe").messages()
    with pytest.raises(CorruptSessionError, match="is not encrypted"):
        Session.open(store, "plain").messages()
    with pytest.raises(ConfigurationError, match="names that begin with 'trimtab:key:'"):
        load(store, "trimtab:key:mine")
    for wrong, words in (((store, OLD), "encrypted already"), ((inner, b"key"), "must be a KeyRing")):
        with pytest.raises(ConfigurationError, match=words):
            encrypted(*wrong)  # type: ignore[arg-type]


def test_a_key_that_is_not_in_the_ring_is_named() -> None:
    """And so is one whose secret is another; neither says that a text cannot be decrypted."""
    inner = MemoryStore()
    add(encrypted(inner, OLD), 0)
    for ring, words in (
        (KeyRing({"two": SECOND}), "the key ring has no key 'one', only two"),
        (KeyRing({"one": SECOND}), "the key 'one' of the ring is not the one that was called so"),
    ):
        with pytest.raises(EncryptionKeyError, match=words) as caught:
            load(encrypted(inner, ring))
        assert (caught.value.session, caught.value.key) == ("s", "one")
        with pytest.raises(EncryptionKeyError):
            add(encrypted(inner, ring), 1)
    keys = MemoryStore()
    add(encrypted(inner, OLD, key_store=keys), 0, session="apart")
    assert len(keys.sessions()) == 1
    with pytest.raises(EncryptionKeyError, match="is not in the store of keys"):
        load(encrypted(inner, OLD), "apart")


def test_who_drops_a_key_forgets_one_session() -> None:
    """Every handle is told so, nothing is written to it any more, and its name can be used again."""
    inner = MemoryStore()
    store, other = encrypted(inner, OLD), encrypted(inner, OLD)
    for session in ("s", "t"):
        add(store, 0, [event("a heron")], session=session)
        assert contents(load(other, session)) == ["a heron"]
    store.drop_key("s")
    asked = SearchRequest(session="s", terms=("heron",), limit=1)
    for one in (store, other, encrypted(inner, OLD)):
        for call in (
            lambda one=one: load(one),
            lambda one=one: add(one, 1),
            lambda one=one: one.search(asked),
        ):
            with pytest.raises(KeyDroppedError, match="session 's': its key"):
                call()
    assert len(_rows(inner)) == 1
    kept = [row.data for name in inner.sessions() for row in _rows(inner, name) if "wrapped" in row.data]
    assert [one["session"] for one in kept] == ["t"]
    assert contents(load(other, "t")) == ["a heron"]
    receipt = store.rotate()
    assert (receipt.complete, receipt.dropped, receipt.left) == (True, 1, {})
    store.drop_key("s")
    store.delete("s")
    assert load(other) == []
    add(other, 0, [event("an otter")])
    assert contents(load(store)) == ["an otter"]
    with pytest.raises(ConfigurationError, match="there is no session 'nobody'"):
        store.drop_key("nobody")


def test_nothing_of_a_key_remains_that_was_dropped(tmp_path: Path) -> None:
    """In the file and beside it; nor of the key of a session that was deleted, or rotated."""
    path = tmp_path / "chats.db"
    store = encrypted(SQLiteStore(path), OLD)
    both = encrypted(SQLiteStore(path), BOTH)
    for session, end in (("a", store.drop_key), ("b", store.delete), ("c", lambda _: both.rotate())):
        add(store, 0, session=session)
        with closing(sqlite3.connect(path)) as connection:
            sql = "SELECT body FROM trimtab_events WHERE kind = 'key' AND body LIKE ?"
            ((body,),) = connection.execute(sql, (f'%"session":"{session}"%',)).fetchall()
        wrapped = json.loads(body)["data"]["wrapped"].encode()
        assert any(wrapped in one.read_bytes() for one in tmp_path.iterdir())
        end(session)
        assert not any(wrapped in one.read_bytes() for one in tmp_path.iterdir())
    both.close()
    store.close()


def test_who_deletes_late_takes_no_key_of_the_next_session() -> None:
    """Each session of a name has a key of its own."""
    inner = MemoryStore()
    store, other = encrypted(inner, OLD), encrypted(inner, OLD)
    first = add(store, 0).incarnation
    add(other, 1)
    store.delete("s")
    assert add(other, 0, [event("the next")]).version == 1
    with pytest.raises(SessionDeletedError):
        store.delete("s", incarnation=first)
    with pytest.raises(SessionDeletedError):
        store.drop_key("s", incarnation=first)
    assert contents(load(store)) == ["the next"]
    store.delete("s")
    assert inner.sessions() == []


def test_a_request_that_is_repeated_is_the_same_under_another_key() -> None:
    """Also at another version: its ciphertext is another then."""
    inner = MemoryStore()
    store = encrypted(inner, OLD)
    request = AppendRequest(session="s", expected_version=0, events=[event("a heron", id="e1")])
    begun = store.append(request)
    assert store.append(request) == (1, True, begun.incarnation)
    assert store.append(replace(request, expected_version=1)).duplicate
    rotated = encrypted(inner, BOTH)
    assert rotated.rotate().events == 1
    assert rotated.append(request) == (1, True, begun.incarnation)
    other = replace(request, events=[event("another", id="e1")])
    with pytest.raises(ConfigurationError, match="is taken by another event") as caught:
        rotated.append(other)
    assert "heron" not in str(caught.value)
    assert len(inner.sessions()) == 2


def test_a_copy_in_plain_text_is_asked_for_in_words() -> None:
    """By `copy_session`, in asyncio, and by a fork into another store."""
    store, plain = encrypted(MemoryStore(), OLD), MemoryStore()
    session = Session(1_000, store=store, id="s")
    session.add({"role": "user", "content": "hello"})
    for call in (
        lambda: copy_session(store, plain, "s"),
        lambda: asyncio.run(acopy_session(store, plain, "s")),
        lambda: session.fork(store=plain),
    ):
        with pytest.raises(ConfigurationError, match="Pass the target as encrypted"):
            call()
    assert plain.sessions() == []
    target = encrypted(MemoryStore(), BOTH)
    assert copy_session(store, target, "s") == copy_session(store, plain, "s", decrypt=True) == 2
    assert load(target) == load(store) == load(plain)


class _Service:
    """A key management service that turns bytes around, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def wrap(self, key: str, secret: bytes) -> bytes:
        self.asked.append(f"wrap {key}")
        return key.encode() + secret[::-1]

    def unwrap(self, key: str, wrapped: bytes) -> bytes:
        self.asked.append(f"unwrap {key}")
        return wrapped.removeprefix(key.encode())[::-1]

    async def awrap(self, key: str, secret: bytes) -> bytes:
        await asyncio.sleep(0)
        return self.wrap(key, secret)

    async def aunwrap(self, key: str, wrapped: bytes) -> bytes:
        await asyncio.sleep(0)
        return self.unwrap(key, wrapped)


def test_a_key_service_is_asked_once_a_session() -> None:
    """By each process that reads it, and again by a rotation."""
    inner, service = MemoryStore(), _Service()
    store = encrypted(inner, KmsKeys("k1", wrap=service.wrap, unwrap=service.unwrap))
    add(store, 0)
    for version in (1, 2, 3):
        add(store, version)
        load(store)
    assert service.asked == ["wrap k1"]
    fresh = encrypted(inner, KmsKeys("k2", wrap=service.wrap, unwrap=service.unwrap))
    assert len(load(fresh)) == len(load(fresh)) == 4
    assert fresh.rotate().renewed == 1
    assert len(load(fresh)) == 4
    assert service.asked == ["wrap k1", "unwrap k1", "wrap k2"]


def test_a_key_service_may_be_async() -> None:
    """Forms for asyncio await it; the others say that they cannot."""
    inner, service = MemoryStore(), _Service()
    keys = KmsKeys("k1", wrap=service.awrap, unwrap=service.aunwrap)
    request = AppendRequest(session="s", expected_version=0, events=[event("a heron")])

    async def talk() -> list[str]:
        store = encrypted(inner, keys)
        await store.aappend(request)
        return contents(await encrypted(inner, keys).aload(LoadRequest(session="s")))

    with pytest.raises(ConfigurationError, match="call the forms for asyncio"):
        encrypted(inner, keys).append(request)
    assert asyncio.run(talk()) == ["a heron"]

    async def turn() -> tuple[int, bool]:
        store = encrypted(inner, KmsKeys("k2", wrap=service.awrap, unwrap=service.aunwrap))
        receipt = await store.arotate()
        await store.adrop_key("s")
        with pytest.raises(KeyDroppedError):
            await store.aload(LoadRequest(session="s"))
        await store.ascrub()
        await store.adelete("s")
        assert await store.asessions() == []
        await store.aclose()
        return receipt.events, receipt.complete

    assert asyncio.run(turn()) == (1, True)


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda key, secret: secret + b"!", "wrap must return the secret encrypted"),
        (lambda key, secret: "text", "wrap must return the secret encrypted"),
    ],
)
def test_a_key_service_that_encrypts_nothing_is_refused(wrap: Any, words: str) -> None:
    """Nothing is written."""
    inner = MemoryStore()
    with pytest.raises(ConfigurationError, match=words):
        add(encrypted(inner, KmsKeys("k", wrap=wrap, unwrap=wrap)), 0)
    assert inner.sessions() == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KeyRing({}), "at least one secret"),
        (lambda: KeyRing({"a": b"secret"}), "at least 32 random bytes, as bytes or base64, not 6 bytes"),
        (lambda: KeyRing({"a": "secret?"}), "key 'a' is not base64"),
        (lambda: KeyRing({"a": 5}), "not int"),  # type: ignore[dict-item]
        (lambda: KeyRing({"a b": FIRST}), "1 to 64 letters"),
        (lambda: KeyRing({"a": FIRST, "b": SECOND}), "pass current="),
        (lambda: KeyRing({"a": FIRST}, current="c"), "current must be one of a"),
        (lambda: KmsKeys("", wrap=len, unwrap=len), "the id of a key"),  # type: ignore[arg-type]
        (lambda: KmsKeys("k", wrap=None, unwrap=None), "must be functions"),  # type: ignore[arg-type]
        (lambda: KeyRing.read("secret secret"), "env:VARIABLE or file:PATH"),
        (lambda: KeyRing.read("env:TRIMTAB_NO_RING"), "must have a line ID:BASE64"),
        (lambda: KeyRing.read("file:/nowhere/keys"), "cannot be read: No such file"),
    ],
)
def test_keys_that_are_none_are_refused_without_being_shown(make: Callable[[], Any], words: str) -> None:
    """Before anything is encrypted with them."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        make()
    assert "secret?" not in str(caught.value)
    assert "secret secret" not in str(caught.value)


def test_a_key_ring_is_read_from_a_file_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first key is current; comments are none."""
    text = "# ours\ntwo:" + "c2Vjb25k" * 6 + "\none:" + "Zmlyc3Rf" * 6 + "\n"
    (tmp_path / "keys").write_text(text, encoding="utf-8")
    monkeypatch.setenv("OLD", text.partition("\n")[2].replace("\n", " "))
    for place in (f"file:{tmp_path / 'keys'}", "env:OLD"):
        ring = KeyRing.read(place)
        assert (ring.current, ring.ids, repr(ring)) == (
            "two",
            ("two", "one"),
            "KeyRing(two, one, current='two')",
        )
    monkeypatch.setenv("OLD", text + text)
    with pytest.raises(ConfigurationError, match="each id once"):
        KeyRing.read("env:OLD")
    (tmp_path / "keys").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="is not text in UTF-8"):
        KeyRing.read(f"file:{tmp_path / 'keys'}")


def test_the_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the store is made, not at its first use."""
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trimtab\[encrypt\]'"):
        encrypted(MemoryStore(), OLD)


def test_neither_keys_nor_a_store_can_be_copied() -> None:
    """A pickle would have the secrets."""
    for one in (OLD, encrypted(MemoryStore(), OLD)):
        with pytest.raises(CopyError):
            pickle.dumps(one)


def test_a_damaged_session_can_be_deleted_with_its_key() -> None:
    """By what another row says of the key."""
    inner = MemoryStore()
    store = encrypted(inner, OLD)
    add(store, 0, 2)
    _put(inner, "s", replace(_rows(inner)[1], data={}))
    store.delete("s")
    assert inner.sessions() == []
