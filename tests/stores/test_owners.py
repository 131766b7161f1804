"""Whose sessions are: lists, orders about all of an owner's, and what ends; beyond the contract."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from tests.stores.counted import count_requests, rewrites_in
from tests.stores.orders import open_with
from tests.stores.stores import Place
from trimtab.errors import ConfigurationError, SessionDeletedError, VersionConflictError
from trimtab.stores import (
    AppendRequest,
    Event,
    Labels,
    LoadRequest,
    MemoryStore,
    Receipt,
    SessionEntry,
    Sessions,
    Store,
    copy_session,
)


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    """Give a handle on each store in turn."""
    with place.make() as made:  # type: ignore[attr-defined]
        yield made


def put(
    store: Store, name: str, *, time: float = 1.0, at: int = 0, text: str = "heron", **labels: Any
) -> None:
    """Add a message to a session."""
    event = Event(id=f"e{at}", kind="message", time=time, data={"message": {"content": text}})
    given = Labels(**labels) if labels else None
    store.append(AppendRequest(session=name, expected_version=at, events=[event], labels=given))


def pages(store: Store, limit: int = 2, **asked: Any) -> Iterator[Sessions]:
    """Read a list page by page."""
    after = None
    while True:
        page = store.sessions(limit=limit, after=after, **asked)
        yield page
        after = page.next
        if after is None:
            return


NAMES = ["a", "a%", "a_b", "ab", "a\U0010ffff", "b", "é", "日記", "{a}", "a b", 'a"b', "a\\b", " "]


def test_a_prefix_is_a_text_and_no_pattern(store: Store) -> None:
    """Of every character; names are in the order of their characters on every store."""
    for name in NAMES:
        put(store, name)
    for prefix in ("", "a", "a%", "a_", "a\U0010ffff", "\U0010ffff", "é", "日", "{", "a\\", " ", "%", "_"):
        assert store.sessions(prefix=prefix) == sorted(one for one in NAMES if one.startswith(prefix)), prefix


def test_every_condition_and_its_pages_are_what_python_says(store: Store) -> None:
    """A list with all conditions at random, in pages of any size, against a filter over all."""
    chance = random.Random(39)
    owners, plans = [None, "ada", "bob", "a%"], ["free", "paid", 1, True, 1.5]
    for at in range(60):
        labels: dict[str, Any] = {
            "owner": chance.choice(owners),
            "metadata": {"plan": chance.choice(plans), "n": at % 3},
        }
        put(store, f"{chance.choice('abc')}-{at}", time=float(chance.randrange(8)), **labels)
    every = store.sessions()
    assert len(every) == 60
    for _ in range(60):
        asked: dict[str, Any] = {
            "owner": chance.choice(owners),
            "prefix": chance.choice([None, "a", "b-1"]),
            "metadata": chance.choice([None, {"plan": chance.choice(plans)}, {"n": 1.0, "plan": "free"}]),
            "used_before": chance.choice([None, 3.0, 6.5]),
            "used_after": chance.choice([None, 2.0, 4.5]),
        }
        wanted = [one for one in every if _is_met(one, **asked)]
        if asked["used_before"] is not None or asked["used_after"] is not None:
            wanted.sort(key=lambda one: (one.used, str(one)))
        size = chance.choice([1, 3, 7, 100])
        assert [one for page in pages(store, size, **asked) for one in page] == wanted, asked


def _is_met(
    one: SessionEntry,
    *,
    owner: str | None,
    prefix: str | None,
    metadata: dict[str, Any] | None,
    used_before: float | None,
    used_after: float | None,
) -> bool:
    known = one.metadata
    return (
        owner in (None, one.owner)
        and one.startswith(prefix or "")
        and all(
            name in known and (known[name], known[name] is True) == (value, value is True)
            for name, value in (metadata or {}).items()
        )
        and (used_before is None or one.used < used_before)
        and (used_after is None or one.used > used_after)
    )


def test_pages_hold_while_sessions_are_used_and_deleted(store: Store) -> None:
    """By name each is shown once; by use one that is used again is never left out."""
    names = [f"s{at}" for at in range(7)]
    for name in names:
        put(store, name, owner="ada")
    shown: list[str] = []
    for page in pages(store, owner="ada"):
        shown += page
        if len(shown) == 2:
            put(store, "s1", at=1, time=3.0)
            put(store, "s5", at=1, time=0.5)
        if len(shown) == 4:
            store.delete("s3")  # the last that was shown
    assert shown == names
    seen: list[str] = []
    for page in pages(store, owner="ada", used_after=0.0):
        seen += page
        if len(seen) == 2:
            put(store, "s4", time=9.0, at=1)
    assert set(seen) == {*names} - {"s3"}
    assert seen[-1] == "s4"


def test_labels_stay_until_others_are_said(store: Store) -> None:
    """An append that says none changes none; one that says some replaces all."""
    put(store, "s", owner="ada", metadata={"plan": "free", "n": 1}, ttl=10.0)
    put(store, "s", at=1, time=5.0)
    (one,) = store.sessions(owner="ada", metadata={"plan": "free"})
    assert one.to_dict() == {
        "id": "s",
        "version": 2,
        "time": 5.0,
        "owner": "ada",
        "metadata": {"plan": "free", "n": 1},
        "ttl": 10.0,
    }
    assert one.expires == 15.0
    put(store, "s", at=2, time=6.0, owner="bob", metadata={"n": 1})
    assert store.sessions(owner="ada") == store.sessions(metadata={"plan": "free"}) == []
    (one,) = store.sessions(owner="bob", metadata={"n": 1})
    assert (one.version, one.ttl, one.expires) == (3, None, None)
    assert store.expire(now=1e9) == Receipt()


@pytest.mark.parametrize(
    ("labels", "argument"),
    [
        ({"owner": ""}, "owner"),
        ({"owner": "a\0"}, "owner"),
        ({"owner": "\ud800"}, "owner"),
        ({"owner": "é" * 257}, "owner"),
        ({"owner": 7}, "owner"),
        ({"metadata": ["a"]}, "metadata"),
        ({"metadata": {"a": None}}, "metadata"),
        ({"metadata": {"a": [1]}}, "metadata"),
        ({"metadata": {"a": float("nan")}}, "metadata"),
        ({"metadata": {"a": 2**63}}, "metadata"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
        ({"metadata": {"a": "\0"}}, "metadata"),
        ({"metadata": {"": 1}}, "metadata"),
        ({"metadata": {1: 1}}, "metadata"),
        ({"metadata": {str(at): 1 for at in range(65)}}, "metadata"),
        ({"ttl": 0}, "ttl"),
        ({"ttl": float("inf")}, "ttl"),
        ({"ttl": True}, "ttl"),
    ],
)
def test_labels_that_no_store_can_keep_are_refused(labels: dict[str, Any], argument: str) -> None:
    """The error names the argument."""
    with pytest.raises(ConfigurationError) as caught:
        Labels(**labels)
    assert caught.value.argument == argument


def test_the_largest_labels_are_kept(store: Store) -> None:
    """Of as many bytes as an owner, a name and metadata may have."""
    name, owner = "\U0010ffff" * 512, "\U0010ffff" * 128
    metadata = {f"{at}" + "\U0010ffff" * 500: "\x01" * 512 for at in range(64)}
    put(store, name, owner=owner, metadata=metadata, ttl=1e11)
    (one,) = store.sessions(owner=owner, metadata=metadata, prefix=name)
    assert (one, one.metadata) == (name, metadata)
    assert store.delete(owner=owner).sessions == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"owner": ""},
        {"prefix": 7},
        {"prefix": "\0"},
        {"metadata": {"a": None}},
        {"used_before": "today"},
        {"used_after": float("nan")},
        {"limit": 0},
        {"after": "no token"},
        {"after": "[1.0, 2.0]"},
        {"after": '[1.0, "a"]'},
        {"after": '["a"]', "used_after": 1.0},
    ],
)
def test_a_list_that_cannot_be_is_refused(asked: dict[str, Any]) -> None:
    """The error names the argument; a token of another order is none."""
    with pytest.raises(ConfigurationError) as caught:
        MemoryStore().sessions(**asked)
    assert caught.value.argument in asked


def test_a_name_or_an_owner_is_deleted(store: Store) -> None:
    """Not both, and not neither: that would be all of a store."""
    for name, owner in ((None, None), ("s", "ada"), (None, "")):
        with pytest.raises(ConfigurationError):
            store.delete(name, owner=owner)


def test_who_writes_to_a_deleted_session_is_told(store: Store) -> None:
    """And what begins under its name afterwards is another."""
    put(store, "s", owner="ada")
    (entry,) = store.sessions()
    assert store.delete(owner="ada").sessions == 1
    event = Event(id="late", kind="note", time=1.0)
    late = AppendRequest(session="s", expected_version=1, events=[event], incarnation=entry.incarnation)
    with pytest.raises(SessionDeletedError):
        store.append(late)
    assert store.sessions() == []
    put(store, "s")
    (again,) = store.sessions()
    assert (again.owner, again.incarnation == entry.incarnation) == (None, False)


def test_an_owner_is_deleted_while_others_write(place: Place) -> None:
    """Every session is whole or gone, and the receipts count each once."""
    with place.make() as store:  # type: ignore[attr-defined]
        for at in range(30):
            put(store, f"s{at:02}", owner="ada")

        def write(at: int) -> int:
            try:
                put(store, f"s{at:02}", at=1, time=2.0)
            except VersionConflictError:  # it is gone
                return 0
            return 1

        with ThreadPoolExecutor(4) as pool:
            removals = [pool.submit(store.delete, owner="ada") for _ in range(2)]
            added = sum(pool.map(write, range(30)))
        receipts = [one.result() for one in removals]
        assert sum(one.sessions for one in receipts) == 30
        assert 30 <= sum(one.messages for one in receipts) <= 30 + added
        assert store.sessions() == []
        assert not any(store.load(LoadRequest(session=f"s{at:02}")) for at in range(30))


def test_expiry_takes_each_session_once(place: Place) -> None:
    """However many do it at once, and so many at most."""
    with place.make() as store:  # type: ignore[attr-defined]
        for at in range(25):
            put(store, f"s{at:02}", time=float(at), ttl=10.0)
        first = store.expire(now=29.0, limit=4)
        assert (first.sessions, first.messages, first.more) == (4, 4, True)
        with ThreadPoolExecutor(4) as pool:
            receipts = [one.result() for one in [pool.submit(store.expire, now=29.0) for _ in range(4)]]
        assert sum(one.sessions for one in receipts) == 16
        assert not any(one.more for one in receipts)
        assert store.sessions() == [f"s{at}" for at in range(20, 25)]
        put(store, "s20", at=1, time=40.0)
        assert store.expire(now=49.0).sessions == 4
        assert store.sessions() == ["s20"]


def test_an_export_says_what_was_deleted_under_it(store: Store) -> None:
    """And begins a session anew that was begun anew."""
    for name in ("a", "b"):
        put(store, name, owner="ada")
        put(store, name, at=1)
    lines = store.export(owner="ada")
    first = json.loads(next(lines))
    store.delete("a")
    put(store, "a", owner="ada", text="otter")
    rest = [json.loads(line) for line in store.export(owner="ada", after=first["at"])]
    assert [(line["session"], *sorted({"version", "events", "error"} & set(line))) for line in rest] == [
        ("a", "error"),
        ("a", "version"),
        ("a", "events"),
        ("b", "version"),
        ("b", "version"),
        ("b", "events"),
    ]
    assert rest[1]["data"] == {"message": {"content": "otter"}}
    for after in ("x", "[1]", '["a", "b", "c"]'):
        with pytest.raises(ConfigurationError, match="`at`"):
            store.export(after=after)


def test_a_long_session_is_exported_in_pages(store: Store) -> None:
    """Of which every line is a place to go on."""
    events = [Event(id=f"e{at}", kind="note", time=1.0) for at in range(1_003)]
    store.append(AppendRequest(session="s", expected_version=0, events=events, labels=Labels(owner="ada")))
    lines = [*store.export(owner="ada")]
    assert [json.loads(line).get("version") for line in lines] == [*range(1, 1_004), None]
    for at in (0, 499, 500, 1_002, 1_003):
        assert [*store.export(owner="ada", after=json.loads(lines[at])["at"])] == lines[at + 1 :]


def test_every_form_has_one_for_asyncio(place: Place) -> None:
    """With the same answers."""
    store = place.make()

    async def work() -> None:
        for name in ("a", "b", "c"):
            event = Event(id="e", kind="message", time=1.0)
            labels = Labels(owner="ada", ttl=None if name == "c" else 5.0)
            request = AppendRequest(session=name, expected_version=0, events=[event], labels=labels)
            await store.aappend(request)
        page = await store.asessions(owner="ada", limit=2)
        assert page == ["a", "b"]
        assert await store.asessions(owner="ada", after=page.next) == ["c"]
        assert len([line async for line in store.aexport(owner="ada")]) == 6
        assert (await store.aexpire(now=6.0, limit=1)).sessions == 1
        assert (await store.aexpire(now=6.0)).sessions == 1
        assert (await store.adelete(owner="ada")).sessions == 1
        assert await store.asessions() == []
        await store.aclose()

    asyncio.run(work())
    store.close()


def test_a_copy_of_events_is_what_its_options_say(store: Store) -> None:
    """The owner of a session of trimtab stands in its log, so that every copy has it."""
    options = {"owner": "ada", "metadata": {"plan": "free"}, "ttl": 5}
    events = [Event(id="o", kind="options", time=1.0, data={"options": options})]
    store.append(AppendRequest(session="s", expected_version=0, events=events))
    copy_session(store, store, "s", to="t")
    assert store.sessions(owner="ada", metadata={"plan": "free"}) == ["s", "t"]
    old = Event(id="p", kind="options", time=2.0, data={"options": {"model": None}})  # of an older trimtab
    store.append(AppendRequest(session="s", expected_version=1, events=[old]))
    assert store.sessions(owner="ada") == ["s", "t"]


# What it costs.


def _cost(place: Place, sessions: int, note: Callable[[str, object], None]) -> None:
    with place.make() as store, ThreadPoolExecutor(8) as pool:  # type: ignore[attr-defined]

        def begin(at: int) -> None:
            ttl = 10.0 if at % 10 == 3 else None
            put(store, f"s{at:06}", time=float(at), owner=f"o{at % 10}", ttl=ttl)

        for _ in pool.map(begin, range(sessions)):
            pass
        part = sessions // 10
        for name, call, touched in (
            ("list all", lambda: len(store.sessions()), sessions),
            ("list owner", lambda: len(store.sessions(owner="o1")), part),
            ("list by use", lambda: len(store.sessions(used_before=float(part))), part),
            ("list pages", lambda: len([*pages(store, 100, owner="o2")]) * 100, part),
            ("delete owner", lambda: store.delete(owner="o1").sessions, part),
            ("expire", lambda: store.expire(now=float(sessions + 20), limit=part).sessions, part),
            ("list few", lambda: len(store.sessions(owner="o4", used_before=40.0)), 4),
        ):
            said = count_requests(store)
            assert call() == touched
            note(name, f"{len(said)} of {touched}")
            assert len(said) <= max(1.3 * touched, 10), (name, len(said), touched, said[:20])


def test_orders_cost_what_they_touch(place: Place, record_property: Callable[[str, object], None]) -> None:
    """Statements and commands are counted; of an encrypted store those of its keys, too."""
    _cost(place, 1_000, record_property)


def test_files_are_written_anew_once_an_order(shared_place: Place) -> None:
    """Of however many batches of sessions, with their keys; of PostgreSQL each of the three tables once."""
    url = str(shared_place.url)
    each = 3 if "postgresql" in url else 1
    store = open_with(url)
    with closing(store):
        for at in range(240):
            put(store, f"s{at:03}", time=1.0, owner="ada" if at % 2 else "bob", ttl=None if at % 2 else 5.0)
        orders: list[tuple[Callable[[], Receipt], int]] = [
            (lambda: store.delete(owner="ada"), 120),
            (lambda: store.expire(now=10.0), 120),
            (lambda: store.expire(now=10.0), 0),
        ]
        for order, touched in orders:
            said = count_requests(store)
            receipt = order()
            assert (receipt.sessions, receipt.not_erased) == (touched, None)
            rewrites = rewrites_in(said)
            assert len(rewrites) == (each if touched else 0), rewrites


@pytest.mark.long
def test_orders_cost_what_they_touch_of_many_sessions(
    place: Place, record_property: Callable[[str, object], None]
) -> None:
    """The same of ten times as many; TRIMTAB_TEST_SESSIONS says another number."""
    _cost(place, int(os.environ.get("TRIMTAB_TEST_SESSIONS", "10000")), record_property)
