"""Encrypted stores whose keys are turned, dropped and removed beside other calls, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stores.rings import ALL, BOTH, FIRST, OLD, SECOND, THIRD
from tests.stores.served import add, contents, event, load
from tests.stores.stores import Place
from trimtab.errors import (
    CorruptSessionError,
    EncryptionKeyError,
    KeyDroppedError,
    StoreUnavailableError,
)
from trimtab.relevance import question_terms
from trimtab.stores import (
    Appended,
    AppendRequest,
    Event,
    Found,
    KeyRing,
    KmsKeys,
    LoadRequest,
    MemoryStore,
    Receipt,
    RotationReceipt,
    SearchRequest,
    SQLiteStore,
    Store,
    copy_session,
    encrypted,
)

both = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


def _call(store: Store, method: str, *given: Any, awaited: bool) -> Any:
    """Call a method, or its form for asyncio."""
    if not awaited:
        return getattr(store, method)(*given)

    async def call() -> Any:
        try:
            return await getattr(store, f"a{method}")(*given)
        finally:
            await store.aclose()  # its connections are those of this event loop

    return asyncio.run(call())


def _before(store: Any, method: str, is_it: Callable[[Any], bool], act: Callable[[], object]) -> None:
    """Act once before a call of a store, in both colours, whose request is one of these."""
    calls = {name: getattr(store, name) for name in (method, f"a{method}")}
    acted: list[object] = []

    def look(request: Any) -> None:
        if not acted and is_it(request):
            acted.append(request)
            act()

    def call(request: Any, /) -> Any:
        look(request)
        return calls[method](request)

    async def acall(request: Any, /) -> Any:
        look(request)
        return await calls[f"a{method}"](request)

    setattr(store, method, call)
    setattr(store, f"a{method}", acall)


def _fill(store: Store, ring: KeyRing = OLD, session: str = "s") -> None:
    add(encrypted(store, ring), 0, [event(f"heron {at}") for at in range(3)], session=session)


def _generations(store: Store, session: str = "s") -> list[str]:
    return [row.data["key"].partition(".")[2] for row in load(store, session)]


def _find(store: Store, text: str, *, awaited: bool = False) -> Found:
    request = SearchRequest(session="s", terms=question_terms(text), limit=1)
    found = _call(store, "search", request, awaited=awaited)
    assert isinstance(found, Found)
    return found


def _rotate(place: Place, ring: KeyRing) -> RotationReceipt:
    return encrypted(place.make(), ring).rotate()


def _is_rewrite(request: AppendRequest) -> bool:
    return not request.events


def _is_own(request: Any) -> bool:
    return bool(request.session == "s")


@both
@pytest.mark.parametrize("end", ["delete", "drop_key"])
def test_a_copy_of_rows_takes_no_key_with_it(plain_place: Place, end: str, awaited: bool) -> None:
    """Rows that were copied behind the store's back name the key of another session, which stays."""
    inner = plain_place.make()
    _fill(inner, session="ada")
    rows = load(inner, "ada")
    inner.append(AppendRequest(session="raw", expected_version=0, events=rows))
    with pytest.raises(EncryptionKeyError, match="a key of another session"):
        load(encrypted(inner, OLD), "raw")
    if end == "drop_key":
        with pytest.raises(EncryptionKeyError, match="a key of another session"):
            _call(encrypted(plain_place.make(), OLD), end, "raw", awaited=awaited)
    else:
        _call(encrypted(plain_place.make(), OLD), end, "raw", awaited=awaited)
        assert encrypted(inner, OLD).sessions() == ["ada"]
    assert len(load(encrypted(inner, OLD), "ada")) == 3
    with pytest.raises(EncryptionKeyError, match=r"copy from encrypted\(store, keys\)"):
        copy_session(inner, MemoryStore(), "ada")


@both
def test_a_redaction_that_a_rotation_overtakes_ends_under_the_new_key(
    plain_place: Place, awaited: bool
) -> None:
    """Also the row before its event; and it is found."""
    inner = plain_place.make()
    _fill(inner)
    _before(inner, "append", lambda one: _is_own(one) and one.rewrites, lambda: _rotate(plain_place, BOTH))
    writer = encrypted(inner, BOTH)
    new = replace(load(writer, limit=1)[0], data={"message": {"content": "otter"}})
    request = AppendRequest(session="s", expected_version=3, events=[event("done")], rewrites=[new])
    _call(writer, "append", request, awaited=awaited)
    other = plain_place.make()
    assert _generations(other) == ["2"] * 4
    assert contents(_find(encrypted(other, BOTH), "otter")) == ["otter"]


@both
def test_a_rotation_that_another_overtakes_leaves_nothing_behind(plain_place: Place, awaited: bool) -> None:
    """The slow one wrote rows under a secret that is not the newest any more."""
    inner = plain_place.make()
    _fill(inner)
    fast: list[RotationReceipt] = []
    ring = KeyRing({"one": FIRST, "two": SECOND, "three": THIRD}, current="two")
    _before(inner, "append", _is_rewrite, lambda: fast.append(_rotate(plain_place, ALL)))
    slow = _call(encrypted(inner, ring), "rotate", awaited=awaited)
    assert fast[0].complete
    assert list(slow.left) == ["s"]
    assert "gave it a new key meanwhile, wrapped by 'three'" in slow.left["s"]
    other = plain_place.make()
    assert _generations(other) == ["3"] * 3
    assert contents(_find(encrypted(other, ALL), "heron 1")) == ["heron 1"]


@both
def test_what_a_rotation_without_the_newest_key_wrote_is_found_and_mended(
    plain_place: Place, awaited: bool
) -> None:
    """It cannot mend it itself, and says so; the next one does."""
    inner = plain_place.make()
    _fill(inner)
    _before(inner, "append", _is_rewrite, lambda: _rotate(plain_place, ALL))
    slow = _call(encrypted(inner, BOTH), "rotate", awaited=awaited)
    assert "no key 'three'" in slow.left["s"]
    other = plain_place.make()
    assert _generations(other) == ["2"] * 3
    assert contents(_find(encrypted(other, ALL), "heron 1")) == ["heron 1"]
    receipt = _rotate(plain_place, ALL)
    assert (receipt.complete, receipt.events) == (True, 3)
    assert _generations(other) == ["3"] * 3


@both
def test_a_search_that_a_rotation_overtakes_finds_all(plain_place: Place, awaited: bool) -> None:
    """It asked for hashes that no row has any more."""
    inner = plain_place.make()
    _fill(inner)
    _before(inner, "search", _is_own, lambda: _rotate(plain_place, BOTH))
    found = _find(encrypted(inner, BOTH), "heron 1", awaited=awaited)
    assert (contents(found), found.complete) == (["heron 1"], True)


@both
def test_two_rotations_at_once_are_both_complete(plain_place: Place, awaited: bool) -> None:
    """Each is told what it did, and neither that something is left."""
    inner = plain_place.make()
    _fill(inner)
    other: list[RotationReceipt] = []
    _before(inner, "append", _is_rewrite, lambda: other.append(_rotate(plain_place, BOTH)))
    receipt = _call(encrypted(inner, BOTH), "rotate", awaited=awaited)
    assert receipt.complete
    assert other[0].complete
    assert _generations(plain_place.make()) == ["2"] * 3


@both
def test_who_has_not_the_new_key_yet_is_not_told_that_nothing_was_stored(
    plain_place: Place, awaited: bool
) -> None:
    """What was stored under the older secret is found, and the next rotation encrypts it anew."""
    inner = plain_place.make()
    _fill(inner)
    _before(inner, "append", _is_own, lambda: _rotate(plain_place, BOTH))
    request = AppendRequest(session="s", expected_version=3, events=[event("otter")])
    answer = _call(encrypted(inner, OLD), "append", request, awaited=awaited)
    assert isinstance(answer, Appended)
    assert answer.version == 4
    other = plain_place.make()
    assert _generations(other) == ["2"] * 3 + ["1"]
    assert contents(_find(encrypted(other, BOTH), "otter")) == ["otter"]
    assert _rotate(plain_place, BOTH).events == 1
    assert _generations(other) == ["2"] * 4


def test_a_request_that_is_repeated_after_a_lost_answer_is_mended() -> None:
    """The first was stored under the older secret, and its writer did not see the new one."""
    inner = MemoryStore()
    _fill(inner)
    _before(inner, "append", _is_own, lambda: encrypted(inner, BOTH).rotate())
    request = AppendRequest(session="s", expected_version=3, events=[event("otter", id="e")])
    encrypted(inner, OLD).append(request)
    assert encrypted(inner, BOTH).append(request).duplicate
    assert _generations(inner) == ["2"] * 4


class Dirty(SQLiteStore):
    """A store in a file that stores what it is given, and fails before the file is clean."""

    fails = False

    def append(self, request: AppendRequest, /) -> Any:
        """Fail after it is stored."""
        answer = super().append(replace(request, erase=request.erase and not self.fails))
        if self.fails and request.erase:
            raise StoreUnavailableError("the disk is full")
        return answer

    def delete(self, *names: Any, **options: Any) -> Receipt:
        """Fail before it."""
        if self.fails:
            raise StoreUnavailableError("the disk is full")
        return super().delete(*names, **options)


@both
@pytest.mark.parametrize("end", ["rotate", "drop_key"])
def test_files_are_cleaned_by_the_call_after_one_that_failed(tmp_path: Path, end: str, awaited: bool) -> None:
    """Nothing else is to be done, and still the secret that was wrapped by the old key is in the file."""
    inner = Dirty(tmp_path / "chats.db")
    _fill(inner)
    record = next(name for name in inner.sessions() if name != "s")
    wrapped = load(inner, record)[0].data["wrapped"].encode()
    given = ("s",) if end == "drop_key" else ()

    def is_there() -> bool:
        return any(wrapped in one.read_bytes() for one in tmp_path.iterdir())

    inner.fails = True
    with pytest.raises(StoreUnavailableError):
        getattr(encrypted(inner, BOTH), end)(*given)
    inner.fails = False
    assert is_there()
    store = encrypted(inner, BOTH)
    asked = getattr(store, f"a{end}" if awaited else end)(*given)
    if awaited:
        asyncio.run(_wait_for(asked))
    assert not is_there()
    inner.close()


async def _wait_for(asked: Awaitable[object]) -> None:
    await asked


@both
def test_keys_of_no_session_are_removed_by_a_rotation(plain_place: Place, awaited: bool) -> None:
    """A day after a session was to begin with it; not one that is new, nor one that a session has."""
    inner = plain_place.make()
    _fill(inner)
    record = next(name for name in inner.sessions() if name != "s")
    kept = load(inner, record)[0]
    for at, (session, time) in enumerate([("gone", 1.0), ("s", 1.0), ("soon", kept.data["made"])]):
        orphan = replace(kept, data={**kept.data, "session": session, "made": time}, version=0)
        name = f"trimtab:key:{at:016x}"
        inner.append(AppendRequest(session=name, expected_version=0, events=[orphan]))
    for rows, keys in ((MemoryStore(), plain_place.make()), (plain_place.make(), MemoryStore())):
        assert encrypted(rows, OLD, key_store=keys).rotate().removed == 0
    receipt = _call(encrypted(plain_place.make(), OLD), "rotate", awaited=awaited)
    assert (receipt.sessions, receipt.removed, receipt.complete) == (1, 2, True)
    assert set(plain_place.make().sessions()) == {"s", record, f"trimtab:key:{2:016x}"}
    assert len(load(encrypted(plain_place.make(), OLD))) == 3


@both
def test_a_session_that_is_begun_while_another_is_deleted_keeps_its_rows_and_key(
    plain_place: Place, awaited: bool
) -> None:
    """The deletion asks again, and deletes that one, too, with its key; none stays behind."""
    inner = plain_place.make()
    _fill(inner)
    calls = {name: getattr(inner, name) for name in ("delete", "adelete")}
    begun: list[str] = []

    def begin(name: str) -> None:
        if name == "s" and not begun:
            begun.append(name)
            encrypted(plain_place.make(), OLD).delete("s")
            _fill(plain_place.make())

    def delete(*names: Any, **options: Any) -> Any:
        begin(*names)
        return calls["delete"](*names, **options)

    async def adelete(*names: Any, **options: Any) -> Any:
        begin(*names)
        return await calls["adelete"](*names, **options)

    inner.delete, inner.adelete = delete, adelete  # type: ignore[method-assign]
    _call(encrypted(inner, OLD), "delete", "s", awaited=awaited)
    assert begun
    assert plain_place.make().sessions() == []


class Broken(Exception):
    """What a client of a service raises."""


@both
def test_a_key_service_that_fails_for_one_session_stops_no_other(awaited: bool) -> None:
    """It is told by an error of stores, with the cause; one of the line is to be asked again."""

    def turn(key: str, secret: bytes) -> bytes:
        if key == "gone":
            raise Broken("no such key")
        if key == "far":
            raise ConnectionResetError
        return secret[::-1]

    def wrap(key: str, secret: bytes) -> bytes:
        return secret[::-1]

    inner = MemoryStore()
    for key in ("gone", "far", "k1"):
        add(encrypted(inner, KmsKeys(key, wrap=wrap, unwrap=turn)), 0, session=f"of {key}")
    store = encrypted(inner, KmsKeys("k2", wrap=wrap, unwrap=turn))
    receipt = _call(store, "rotate", awaited=awaited)
    assert (receipt.renewed, sorted(receipt.left)) == (1, ["of far", "of gone"])
    with pytest.raises(EncryptionKeyError, match="failed to unwrap with 'gone': Broken") as caught:
        _call(store, "load", LoadRequest(session="of gone"), awaited=awaited)
    assert (caught.value.session, caught.value.key) == ("of gone", "gone")
    assert isinstance(caught.value.__cause__, Broken)
    with pytest.raises(StoreUnavailableError, match="ConnectionResetError"):
        _call(store, "load", LoadRequest(session="of far"), awaited=awaited)


def test_a_key_service_that_gives_another_secret_spoils_nothing() -> None:
    """Nothing is written with it, and no rotation takes the place of the right one."""

    def turn(key: str, secret: bytes) -> bytearray:
        return bytearray(secret[::-1])

    def spoil(key: str, secret: bytes) -> bytes:
        return bytes(byte ^ 1 for byte in secret)

    inner = MemoryStore()
    right = KmsKeys("k", wrap=turn, unwrap=turn)  # type: ignore[arg-type]
    add(encrypted(inner, right), 0, [event("heron")])
    wrong = encrypted(inner, KmsKeys("k", wrap=turn, unwrap=spoil))  # type: ignore[arg-type]
    for call in (lambda: add(wrong, 1), lambda: load(wrong)):
        with pytest.raises(EncryptionKeyError, match="'k' is not the one it was wrapped with"):
            call()
    later = encrypted(inner, KmsKeys("k2", wrap=turn, unwrap=spoil))  # type: ignore[arg-type]
    assert list(later.rotate().left) == ["s"]
    assert contents(load(encrypted(inner, right))) == ["heron"]


@pytest.mark.parametrize(
    "change", [{"key": "two"}, {"generation": 2}, {"generation": 0}, {"wrapped": ""}, {"older": ""}]
)
def test_a_key_record_that_was_changed_is_told(change: dict[str, Any]) -> None:
    """By every call; and no rotation says that the old key can go."""
    inner = MemoryStore()
    _fill(inner)
    record = next(name for name in inner.sessions() if name != "s")
    row = load(inner, record)[0]
    new = replace(row, data={**row.data, **change})
    inner.append(AppendRequest(session=record, expected_version=1, events=(), rewrites=[new]))
    store = encrypted(inner, BOTH)
    for call in (lambda: load(store), lambda: add(store, 3), lambda: _find(store, "heron")):
        with pytest.raises((EncryptionKeyError, CorruptSessionError)):
            call()
    assert list(store.rotate().left) == ["s"]


@pytest.mark.parametrize("key", ["0" * 16 + "." + "1" * 5_000, "x" * 600 + ".1", "\0.1", "0" * 16 + ".٣"])
def test_a_session_whose_rows_name_no_key_can_be_dropped_or_deleted(key: str) -> None:
    """By the oldest row; and deleted without any."""
    for rows in (1, 2):
        inner = MemoryStore()
        store = encrypted(inner, OLD)
        add(store, 0, 2)
        damaged = [replace(row, data={**row.data, "key": key}) for row in load(inner)[-rows:]]
        inner.append(AppendRequest(session="s", expected_version=2, events=(), rewrites=damaged))
        with pytest.raises(ValueError, match="no longer says with which key"):
            load(store)
        if rows == 1:
            store.drop_key("s")
            with pytest.raises(KeyDroppedError):
                load(store, limit=1)
        store.delete("s")
        assert store.sessions() == []


def test_searches_find_nearly_what_they_find_in_a_plain_store() -> None:
    """Of texts as long as people write them: lengths count in steps."""
    words = [f"w{at}" for at in range(60)]
    texts = [" ".join(words[(at * step) % 59] for at in range(2 + step % 40)) for step in range(1, 241)]
    events: list[Event] = [event(text, id=f"e{at}") for at, text in enumerate(texts)]
    answers = []
    for store in (MemoryStore(), encrypted(MemoryStore(), OLD)):
        add(store, 0, events)
        asked = [SearchRequest(session="s", terms=(words[at], words[at + 7]), limit=5) for at in range(40)]
        answers.append([{one.id for one in store.search(request)} for request in asked])
    alike = sum(len(one & other) for one, other in zip(*answers, strict=True))
    assert alike >= 0.85 * 5 * 40
