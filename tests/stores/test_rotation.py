"""Rotation of keys: killed at any call of a store, beside writers, with the old key gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.stores import orders
from tests.stores.counted import count_requests, rewrites_in
from tests.stores.crash import FORKS
from tests.stores.rings import ALL, BOTH, FIRST, NEW, OLD, SECOND, THIRD
from tests.stores.served import add, contents, event, load
from tests.stores.stores import Place, params
from tests.stores.writer import KEYS, turn_keys
from trimtab import Session
from trimtab.errors import EncryptionKeyError, StoreUnavailableError, VersionConflictError
from trimtab.relevance import question_terms
from trimtab.stores import (
    AppendRequest,
    EncryptedStore,
    KeyRing,
    LoadRequest,
    MemoryStore,
    Receipt,
    Retry,
    RotationReceipt,
    SearchRequest,
    SQLiteStore,
    Store,
    encrypted,
)


class Killed(BaseException):
    """The process ends here."""


class Killer(MemoryStore):
    """A store whose process is killed before or after the nth call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.last: float = float("inf")
        self.before: Callable[[AppendRequest], None] = lambda request: None

    def _count(self) -> None:
        self.calls += 1
        if self.calls >= self.last:
            raise Killed

    def append(self, request: AppendRequest, /) -> Any:
        """Be killed before it, or after it."""
        self._count()
        self.before(request)
        answer = super().append(request)
        self._count()
        return answer

    def load(self, request: LoadRequest, /) -> Any:
        """Be killed before it."""
        self._count()
        return super().load(request)

    def delete(self, *names: Any, **options: Any) -> Receipt:
        """Be killed before it, or after it."""
        self._count()
        answer = super().delete(*names, **options)
        self._count()
        return answer


def _fill(inner: Store, *sessions: str, events: int = 3, ring: KeyRing = OLD) -> dict[str, list[str]]:
    store = encrypted(inner, ring)
    for session in sessions:
        add(store, 0, [event(f"heron {at} of {session}") for at in range(events)], session=session)
    return {session: contents(load(store, session)) for session in sessions}


def _search(store: EncryptedStore, session: str, text: str) -> list[str]:
    terms = question_terms(text)
    return contents(store.search(SearchRequest(session=session, terms=terms, limit=1)))


def test_every_session_is_rewritten_and_the_old_key_can_go(plain_place: Place) -> None:
    """On every store; nothing else of it changes, and search finds what it found."""
    with plain_place.make() as store:
        said = _fill(store, "a", "b", events=230)
        before = {name: load(encrypted(store, OLD), name) for name in said}
        receipt = encrypted(store, BOTH).rotate()
        told = (receipt.key, receipt.sessions, receipt.renewed, receipt.events, receipt.complete)
        assert told == ("two", 2, 2, 460, True)
        new = encrypted(store, NEW)
        assert {name: load(new, name) for name in said} == before
        assert _search(new, "a", "heron 7") == ["heron 7 of a"]
        assert encrypted(store, BOTH).rotate() == RotationReceipt(key="two", sessions=2)
        with pytest.raises(EncryptionKeyError, match="no key 'two'"):
            load(encrypted(store, OLD), "a")


@pytest.mark.parametrize(
    "shared_place", params("sqlite-encrypted", "postgres-encrypted", "redis-encrypted"), indirect=True
)
def test_keys_of_no_session_go_in_one_order(shared_place: Place) -> None:
    """However many; the files are written anew once for them and for all that was rotated."""
    store = orders.open_with(str(shared_place.url), orders.BOTH)
    assert isinstance(store, EncryptedStore)
    inner = store.keeps_labels_in
    with closing(store):
        _fill(inner, "a", "b", *(f"c{at}" for at in range(120)), events=1, ring=KEYS)
        gone = [name for name in inner.sessions(prefix="trimtab:key:") if not _is_of(inner, name, "a", "b")]
        for name in gone:
            (row,) = load(inner, name)
            old = replace(row, data={**row.data, "made": 1.0})
            request = AppendRequest(session=name, expected_version=1, events=(), rewrites=[old], erase=False)
            inner.append(request)
        inner.delete_many([f"c{at}" for at in range(120)])  # type: ignore[attr-defined]
        said = count_requests(store)
        receipt = store.rotate()
        assert (receipt.removed, receipt.renewed, receipt.complete) == (120, 2, True)
        assert len(rewrites_in(said)) == (3 if "postgresql" in str(shared_place.url) else 1)
        assert sorted(set(inner.sessions()) & {"a", "b", *gone}) == ["a", "b"]


def _is_of(inner: Store, record: str, *sessions: str) -> bool:
    return load(inner, record)[0].data["session"] in sessions


def test_a_rotation_that_is_killed_anywhere_goes_on() -> None:
    """At each call: all can be read and found in between, and the next one ends it."""
    kills = 0
    for last in range(1, 200):
        inner = Killer()
        said = _fill(inner, "a", "b", events=3)
        inner.calls, inner.last = 0, last
        ended = True
        try:
            encrypted(inner, BOTH).rotate()
        except Killed:
            ended = False
            kills += 1
        inner.last = float("inf")
        store = encrypted(inner, BOTH)
        for name, texts in said.items():
            assert contents(load(store, name)) == texts, last
            assert _search(store, name, "heron 2") == [texts[2]], last
        if ended:
            break
        assert store.rotate().complete
        for name, texts in said.items():
            assert contents(load(encrypted(inner, NEW), name)) == texts
            generations = {row.data["key"].partition(".")[2] for row in load(inner, name)}
            assert generations == {"2"}, last
    assert kills > 15


def test_a_session_that_is_begun_dropped_or_deleted_is_never_half() -> None:
    """Killed at each call: what is there can be read, or is told to be forgotten; the next call ends it."""
    for end in ("append", "drop_key", "delete"):
        for last in range(1, 60):
            inner = Killer()
            said = _fill(inner, "s") if end != "append" else {"s": ["heron"]}
            store = encrypted(inner, OLD)
            request = AppendRequest(session="s", expected_version=0, events=[event("heron", id="e")])
            argument = request if end == "append" else "s"
            inner.calls, inner.last = 0, last
            ended = True
            try:
                getattr(store, end)(argument)
            except Killed:
                ended = False
            inner.last = float("inf")
            again = encrypted(inner, OLD)
            try:
                assert contents(load(again)) in ([], said["s"])
            except EncryptionKeyError:
                assert end != "append"
            if ended:
                break
            if end == "append":
                again.append(request)
                assert contents(load(again)) == said["s"]
            else:
                getattr(again, end)("s")
                again.delete("s")
                assert again.sessions() == []
        assert ended


def test_a_writer_goes_on_and_ends_under_the_new_key() -> None:
    """A session that was open before, and an append that was underway when the key was changed."""
    inner = Killer()
    _fill(inner, "s")
    writer = encrypted(inner, BOTH)
    load(writer)

    def turn(request: AppendRequest) -> None:
        inner.before = lambda request: None
        assert encrypted(inner, BOTH).rotate().complete

    inner.before = turn
    add(writer, 3, [event("meanwhile")])
    add(writer, 4, [event("afterwards")])
    assert {row.data["key"].partition(".")[2] for row in load(inner)} == {"2"}
    new = encrypted(inner, NEW)
    assert contents(load(new))[3:] == ["meanwhile", "afterwards"]
    assert _search(new, "s", "meanwhile") == ["meanwhile"]


def test_a_redaction_that_is_underway_ends_under_the_new_key() -> None:
    """What it overwrites is older than what it adds."""
    inner = Killer()
    _fill(inner, "s")
    writer = encrypted(inner, BOTH)
    stored = load(writer, limit=1)[0]

    def turn(request: AppendRequest) -> None:
        inner.before = lambda request: None
        assert encrypted(inner, BOTH).rotate().complete

    inner.before = turn
    new = replace(stored, data={"message": {"content": "redacted"}})
    writer.append(AppendRequest(session="s", expected_version=3, events=[event("done")], rewrites=[new]))
    assert {row.data["key"].partition(".")[2] for row in load(inner)} == {"2"}
    assert contents(load(encrypted(inner, NEW))) == ["redacted", "heron 1 of s", "heron 2 of s", "done"]


def test_a_redaction_beside_a_rotation_stays() -> None:
    """The rotation read the text before, and writes it after: it is refused, and reads again."""
    inner = Killer()
    _fill(inner, "s")
    writer = encrypted(inner, BOTH)

    def redact(request: AppendRequest) -> None:
        if request.events or request.session != "s":
            return
        inner.before = lambda request: None
        stored = load(writer, limit=1)[0]
        new = replace(stored, data={"message": {"content": "redacted"}})
        writer.append(AppendRequest(session="s", expected_version=3, events=[event("done")], rewrites=[new]))

    inner.before = redact
    receipt = encrypted(inner, BOTH).rotate()
    assert (receipt.complete, receipt.events) == (True, 2)  # one was encrypted anew already
    assert contents(load(encrypted(inner, NEW))) == ["redacted", "heron 1 of s", "heron 2 of s", "done"]


def test_threads_write_while_keys_are_turned() -> None:
    """Nothing is lost, and at the end nothing needs an old key."""
    inner = MemoryStore()
    rings = [BOTH, ALL]
    _fill(inner, "s", ring=OLD)

    def write(name: str) -> None:
        store = encrypted(inner, rings[1])
        session = [event(f"{name} {at}", id=f"{name} {at}") for at in range(20)]
        for one in session:

            def attempt(one: Any = one) -> None:
                newest = load(store, limit=1, newest_first=True)
                add(store, newest[0].version, [one])

            Retry(attempts=500, first_seconds=0.001, max_seconds=0.01).call(attempt)

    threads = [Thread(target=write, args=(name,)) for name in "xyz"]
    for one in threads:
        one.start()
    receipts = [encrypted(inner, ring).rotate() for ring in (rings[0], rings[1], rings[0], rings[1])]
    for one in threads:
        one.join()
    receipts.append(encrypted(inner, rings[1]).rotate())
    assert receipts[-1].complete
    texts = contents(load(encrypted(inner, KeyRing({"three": THIRD}))))
    assert sorted(texts[3:]) == sorted(f"{name} {at}" for name in "xyz" for at in range(20))


def test_what_cannot_be_rotated_is_told_and_the_rest_goes_on() -> None:
    """A key that is not in the ring is named; a writer that is always faster, a store that is away."""
    inner = Killer()
    _fill(inner, "a", ring=KeyRing({"lost": THIRD}))
    _fill(inner, "b", "c")
    receipt = encrypted(inner, BOTH).rotate()
    assert (receipt.sessions, receipt.renewed, list(receipt.left)) == (3, 2, ["a"])
    assert "no key 'lost'" in receipt.left["a"]
    assert not receipt.complete

    inner = Killer()
    _fill(inner, "s")

    def refuse(request: AppendRequest) -> None:
        if not request.events:
            raise VersionConflictError("faster")

    inner.before = refuse
    assert encrypted(inner, BOTH).rotate().left == {"s": "faster"}

    def fail(request: AppendRequest) -> None:
        raise StoreUnavailableError("away")

    inner.before = fail
    assert encrypted(inner, BOTH).rotate().left == {"s": "away"}
    inner.before = lambda request: None
    assert encrypted(inner, BOTH).rotate().complete
    assert len(load(encrypted(inner, NEW))) == 3


def test_a_session_that_is_deleted_meanwhile_is_not_left() -> None:
    """Nor is the one that has its name since."""
    inner = Killer()
    _fill(inner, "s")

    def delete(request: AppendRequest) -> None:
        if not request.events:
            inner.before = lambda request: None
            encrypted(inner, BOTH).delete("s")
            _fill(inner, "s", ring=BOTH)

    inner.before = delete
    assert encrypted(inner, BOTH).rotate().left == {}
    assert len(load(encrypted(inner, NEW))) == 3


def test_files_are_cleaned_once_for_all_sessions() -> None:
    """Not for each page: a file is written anew as a whole."""
    inner = Killer()
    _fill(inner, *"abc", events=3)
    erased: list[bool] = []
    inner.before = lambda request: erased.append(request.erase)
    calls: list[str] = []
    delete = inner.delete
    inner.delete = lambda name, **more: (calls.append(name), delete(name, **more))[1]  # type: ignore[method-assign]
    encrypted(inner, BOTH).rotate()
    assert erased == [False] * 6
    assert len(calls) == 1


def test_a_session_of_trimtab_goes_on_over_a_rotation() -> None:
    """Its view, its log and what it recalls are the same."""
    inner = MemoryStore()
    session = Session(100, store=encrypted(inner, BOTH), id="s")
    old = Session(100, store=encrypted(inner, OLD), id="s")
    for at in range(12):
        old.add({"role": "user", "content": f"The heron number {at} stands in the river."})
    view = old.messages()
    encrypted(inner, BOTH).rotate()
    assert session.messages() == view
    session.add({"role": "user", "content": "And an otter."})
    assert session.recall("number 3")[0].message["content"].startswith("The heron number 3")
    assert session.messages()[-1]["content"] == "And an otter."


@pytest.mark.long
def test_a_process_that_is_killed_while_it_rotates_loses_nothing(tmp_path: Path) -> None:
    """At every third step, before and after transactions: the next one goes on from there."""
    path, kills = tmp_path / "chats.db", 0
    secrets = {"one": FIRST, "two": SECOND}
    with SQLiteStore(path) as inner:
        said = _fill(inner, "a", "b", events=210)
    currents = cycle(("two", "one"))
    for calls in range(1, 400, 3):
        current = next(currents)
        process = FORKS.Process(target=turn_keys, args=(str(path), secrets, current, calls))
        process.start()
        process.join()
        kills += process.exitcode == -9
        assert process.exitcode in (0, -9)
        with encrypted(SQLiteStore(path), KeyRing(secrets, current=current)) as store:
            assert {name: contents(load(store, name)) for name in said} == said, calls
            if process.exitcode == 0:
                break
            assert store.rotate().complete
        with encrypted(SQLiteStore(path), KeyRing({current: secrets[current]})) as store:
            assert {name: contents(load(store, name)) for name in said} == said, calls
            assert _search(store, "a", "heron 77") == [said["a"][77]]
    assert kills > 15


class Overtaken(MemoryStore):
    """A store in which something else is done before the second look at a key record."""

    def __init__(self, meanwhile: Callable[[Store], object]) -> None:
        super().__init__()
        self.meanwhile: Callable[[Store], object] | None = meanwhile
        self.looks = -1
        """Looks at a key record; they are counted from 0."""

    def load(self, request: LoadRequest, /) -> Any:
        """Read, or be overtaken first."""
        self.looks += self.looks >= 0 and request.session.startswith("trimtab:key:")
        if self.looks == 2 and (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            meanwhile(self)
        return super().load(request)


def test_a_rotation_that_another_overtakes_at_the_key_replaces_no_secret() -> None:
    """It looked at the record before, and writes after: what the other rewrote has to be readable."""
    inner = Overtaken(lambda store: encrypted(store, ALL).rotate())
    said = _fill(inner, "a")
    inner.looks = 0
    encrypted(inner, KeyRing({"one": FIRST, "two": SECOND, "three": THIRD}, current="two")).rotate()
    assert inner.meanwhile is None
    assert contents(load(encrypted(inner, ALL), "a")) == said["a"]
