"""What an order to prune says and asks of a store: true receipts, few requests, and nothing spoiled."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import user
from tests.stores.served import load
from trimtab import Session
from trimtab.errors import ConfigurationError, StoreUnavailableError
from trimtab.stores import AppendRequest, LoadRequest, MemoryStore, Retry, Store
from trimtab.summaries import Fact, FactRequest


def _words(messages: list[Any]) -> int:
    return sum(len(str(one["content"]).split()) for one in messages)


def _summarize(messages: list[Any]) -> str:
    return f"{len(messages)} so far"


class _Extractor:
    """Finds a fact in each message; the newest answer corrects a few of before."""

    def extract(self, request: FactRequest) -> list[Fact]:
        """Say which messages were read."""
        found = [Fact(text=f"planted {one['content'].split()[1]}") for one in request.messages]
        return [
            *found,
            *(Fact(text=f"corrected {one.text}", supersedes=one.text) for one in request.known[:3]),
        ]


def _session(store: Store, **more: Any) -> Session:
    options = {"summarizer": _summarize, "summarize_threshold_tokens": 20, "counter": _words}
    return Session(200, store=store, id="s", **(options | more))


def _say(session: Session, count: int, *, first: int = 0) -> None:
    for at in range(first, first + count):
        session.add(user(f"hello number{at} about zebra{at} crossing the road"))


def _whole(store: Store, name: str = "s") -> int:
    """How many events are not pruned."""
    return sum(event.kind != "pruned" for event in store.load(LoadRequest(session=name)))


@pytest.mark.parametrize("keep", [1 << 53, sys.maxsize, 10**40])
def test_no_number_of_decisions_is_too_large(keep: int) -> None:
    """More than there are means all; others can read what is written of it."""
    store = MemoryStore()
    session = _session(store)
    _say(session, 60)
    session.clear()
    session.add(user("afresh"))
    assert session.prune(keep=keep).messages == 60
    assert _session(store).messages() == [user("afresh")]
    assert _session(store).add(user("more")).version == session.refresh()


class _KeepingKinds(MemoryStore):
    """A store that was written when rewrites only replaced data: it writes these, and no other column."""

    between: Callable[[], object] | None = None

    def append(self, request: AppendRequest, /) -> Any:
        """Take data and state of a rewrite."""
        if request.rewrites:
            kinds = {event.version: event.kind for event in load(self)}
            rewrites = [replace(event, kind=kinds[event.version]) for event in request.rewrites]
            request = replace(request, rewrites=rewrites)
        answer = super().append(request)
        if request.rewrites and self.between is not None:
            call, self.between = self.between, None
            call()
        return answer


def test_a_store_that_keeps_kinds_loses_nothing() -> None:
    """All is there as before, can be read by everybody, and is undone as before."""
    store = _KeepingKinds()
    session = _session(store)
    _say(session, 120)
    before, view = load(store), session.messages()
    old = session.view_at(40)
    with pytest.raises(ConfigurationError, match=r"cannot be pruned in this store.*check_store checks it"):
        session.prune(keep=0)
    now = load(store)
    assert now[: len(before)] == before
    assert [event.kind for event in now[len(before) :]] == ["pruning", "erased"]
    for one in (session, _session(store)):
        assert one.messages() == view
        assert one.view_at(40) == old
        assert [event.version for event in one.recall("zebra3")] != []
    assert Session.restore(session.snapshot(history=True), counter=_words, summarizer=_summarize)


def test_a_store_that_keeps_kinds_loses_nothing_where_others_write_meanwhile() -> None:
    """They go on from what was said: text and views are there."""
    store = _KeepingKinds()
    session, other = _session(store), _session(store)
    _say(session, 120)
    before = load(store)
    store.between = lambda: other.add(user("meanwhile"))
    with pytest.raises(ConfigurationError, match="cannot be pruned in this store"):
        session.prune(keep=0)
    assert load(store)[: len(before)] == before
    assert session.messages() == _session(store).messages()
    assert session.messages()[-1] == user("meanwhile")


def test_receipts_say_how_much_is_whole_then() -> None:
    """After the first order, after another with little or nothing to do, and in a fork."""
    store = MemoryStore()
    session = _session(store)
    pinned = session.add(user("pinned"))
    session.pin(pinned)
    _say(session, 120)
    assert session.prune(keep=2).kept == _whole(store)
    _say(session, 3, first=120)
    last = session.prune(keep=50)
    assert (last.events, last.kept) == (0, _whole(store))
    fork = session.fork(at=last.oldest)
    for _ in range(2):
        assert fork.prune(keep=50).kept == _whole(store, fork.id) > 20
    _say(session, 40, first=123)
    receipt = session.prune(keep=0)
    assert receipt.events > 0
    assert receipt.kept == _whole(store)


class _Failing(MemoryStore):
    """A store that does not answer a few times, before or after it did what was asked."""

    before = after = 0
    erases = False

    def append(self, request: AppendRequest, /) -> Any:
        """Fail with a rewrite."""
        meant = bool(request.rewrites) and request.erase == self.erases
        if meant and self.before:
            self.before -= 1
            raise StoreUnavailableError("connection reset by peer")
        answer = super().append(request)
        if meant and self.after:
            self.after -= 1
            raise StoreUnavailableError("connection reset by peer")
        return answer


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_outage_at_the_end_is_repeated(when: str) -> None:
    """The files are cleaned then; where every attempt fails, the receipt says why they are not."""
    store = _Failing()
    session = _session(store, retry=Retry(attempts=4, first_seconds=0.001))
    _say(session, 120)
    store.erases = True
    setattr(store, when, 3)
    receipt = session.prune(keep=0)
    assert receipt.not_erased is None
    assert (receipt.kept, receipt.events) == (_whole(store), len(load(store)) - _whole(store))
    assert load(store)[-1].kind == "erased"
    _say(session, 40, first=120)
    setattr(store, when, 4)
    receipt = session.prune(keep=0)
    assert receipt.not_erased == "connection reset by peer"
    assert receipt.events > 0
    setattr(store, when, 4)
    assert asyncio.run(session.aprune(keep=0)).not_erased == "connection reset by peer"
    assert asyncio.run(session.aprune(keep=0)).not_erased is None


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_outage_of_any_page_counts_nothing_twice(when: str) -> None:
    """Whether the page was written or not."""
    store = _Failing()
    session = _session(store, retry=Retry(attempts=9, first_seconds=0.001))
    _say(session, 240)
    setattr(store, when, 5)
    log = load(store)
    receipt = session.prune(keep=0)
    gone = [event.version for event in load(store) if event.kind == "pruned"]
    assert receipt.events == len(gone) > 100
    assert receipt.messages == sum(log[version - 1].kind == "message" for version in gone)
    _say(session, 80, first=240)
    setattr(store, when, 1_000)
    with pytest.raises(StoreUnavailableError):
        session.prune(keep=0)


class _Counting(MemoryStore):
    """A store that counts what it is asked."""

    loads = appends = 0

    def load(self, request: LoadRequest, /) -> Any:
        """Count it."""
        self.loads += 1
        return super().load(request)

    def append(self, request: AppendRequest, /) -> Any:
        """Count it."""
        self.appends += 1
        return super().append(request)


def test_an_order_asks_once_for_what_stands_near() -> None:
    """However many facts are between: one request an answer to walk them, and few beside."""
    store = _Counting()
    session = _session(store, fact_extractor=_Extractor())
    _say(session, 400)
    session.prune(keep=1)
    data = next(event.data for event in reversed(load(store)) if event.kind == "pruning")
    runs = len(data["kept"]) + len(data["emptied"])
    assert runs > 40
    store.loads = store.appends = 0
    assert session.prune(keep=1).events == 0
    assert store.appends == 0
    assert store.loads < runs + 30
    session.clear()
    store.loads = store.appends = 0
    assert session.prune(keep=0).events > runs
    assert store.appends < 10


def test_an_order_writes_at_once_what_stands_far_apart() -> None:
    """One page of it, not one for each."""
    store = _Counting()
    session = _session(store)
    for first in range(0, 900, 75):
        session.pin(session.add(user("pinned")))
        _say(session, 75, first=first)
    session.prune(keep=0)
    session.clear()
    store.appends = 0
    assert session.prune(keep=0).events > 12
    assert store.appends < 6


class _Between(MemoryStore):
    """A store where somebody does something before or after an append of an order."""

    before: Callable[[AppendRequest], object] | None = None
    after: Callable[[AppendRequest], object] | None = None

    def append(self, request: AppendRequest, /) -> Any:
        """Call whom it was told, once at a time."""
        call, self.before = self.before, None
        if call is not None and call(request) is None:
            self.before = call
        answer = super().append(request)
        call, self.after = self.after, None
        if call is not None and call(request) is None:
            self.after = call
        return answer


def test_two_orders_that_end_at_once_both_say_so() -> None:
    """The log says it once."""
    store = _Between()
    session, other = _session(store), _session(store)
    _say(session, 120)
    receipts = []

    def end(request: AppendRequest) -> object:
        if not any(event.kind == "erased" for event in request.events):
            return None
        receipts.append(other.prune(keep=0))
        return receipts

    store.before = end
    receipts.append(session.prune(keep=0))
    assert [event.kind for event in load(store)].count("erased") == 1
    assert {receipt.version for receipt in receipts} == {session.version - 1}
    assert [receipt.events for receipt in receipts] == [0, len(load(store)) - _whole(store)]


def test_a_fact_that_a_rotation_writes_back_is_emptied_again() -> None:
    """At the end of the order; and by the next one, if it came later still."""
    store = _Between()
    session = _session(store, fact_extractor=_Extractor())
    _say(session, 350)
    log = {event.version: event for event in load(store)}
    old: list[Any] = []

    def write_back() -> None:
        store.append(AppendRequest(session="s", expected_version=len(load(store)), events=(), rewrites=old))

    def rotate(request: AppendRequest) -> object:
        old.extend(log[one.version] for one in request.rewrites if one.kind == "fact")
        if len(old) < 2:
            return None
        write_back()
        return old

    def texts() -> list[str]:
        now = load(store)
        return [str(now[event.version - 1].data["text"]) for event in old]

    store.after = rotate
    session.prune(keep=1)
    assert texts() == [""] * len(old)
    assert len(old) > 1
    write_back()
    assert all(texts())
    receipt = session.prune(keep=1)
    assert (receipt.events, receipt.bytes > 0) == (0, True)
    assert texts() == [""] * len(old)
