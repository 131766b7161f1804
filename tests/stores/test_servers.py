"""Stores on servers: lost answers, servers that stop, files after a deletion, processes, event loops."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.servers import Relay, free_port, until
from tests.stores.served import Served, add, contents, event, load
from tests.stores.stores import holders
from trimtab.errors import (
    ConfigurationError,
    CorruptSessionError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.relevance import question_terms
from trimtab.stores import AppendRequest, Labels, Receipt, Retry, SearchRequest, open_store

pytestmark = pytest.mark.server


@pytest.fixture
def relay(served: Served) -> Iterator[Relay]:
    """Stand between the store and its server."""
    with Relay(served.port) as between:
        yield between


def test_an_append_whose_answer_was_lost_is_stored_once(served: Served, relay: Relay) -> None:
    """The server stored it, the connection broke; the same append again answers that it is there."""
    with served.make(port=relay.port, connect_timeout_seconds=2) as store:
        add(store, 0, 3)
        again = AppendRequest(session="s", expected_version=3, events=[event("losemyanswer")])
        relay.lose = b"losemyanswer"
        calls = 0

        def attempt() -> Any:
            nonlocal calls
            calls += 1
            return store.append(again)

        answer = Retry(first_seconds=0.001).call(attempt)
        assert answer[:2] == (4, True)
        assert relay.lost == 1
        assert contents(load(store)) == ["number 0", "number 1", "number 2", "losemyanswer"]


def test_an_awaited_append_whose_answer_was_lost_is_stored_once(served: Served, relay: Relay) -> None:
    """The same in asyncio."""

    async def lost() -> None:
        async with served.make(port=relay.port) as store:
            again = AppendRequest(session="s", expected_version=0, events=[event("losemyanswer")])
            await store.asessions()
            relay.lose = b"losemyanswer"
            answer = await Retry(first_seconds=0.001).acall(lambda: store.aappend(again))
            assert answer[:2] == (1, True)
            assert relay.lost == 1

    asyncio.run(lost())


@pytest.mark.few(2)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_store_goes_on_when_its_server_is_back(served: Served, end: str) -> None:
    """While it is away every call says so; then the same object goes on, and what was acknowledged is there.

    Killed like a crash with fsync, or appendfsync always, nothing acknowledged is lost.
    """
    store = served.make(pool_timeout_seconds=5, connect_timeout_seconds=2)
    add(store, 0, 5)
    asked = [
        lambda: add(store, 5),
        lambda: load(store),
        lambda: store.search(SearchRequest(session="s", terms=("number",), limit=1)),
        lambda: store.delete("s"),
        store.sessions,
        lambda: add(store, 5),
    ]
    getattr(served.server, end)()
    try:
        for call in asked:
            with pytest.raises(StoreUnavailableError, match="It is safe to retry"):
                call()
    finally:
        served.server.start()
    assert Retry(attempts=5).call(lambda: load(store))[-1].version == 5
    assert add(store, 5).version == 6
    assert [one.version for one in load(store)] == [1, 2, 3, 4, 5, 6]
    store.close()


@pytest.mark.long
def test_writers_survive_a_server_that_is_killed_among_them(served: Served) -> None:
    """Four threads append through one handle while the server dies and comes back: all is there, once."""
    store = served.make(connect_timeout_seconds=2)
    acknowledged: list[str] = []
    stop = threading.Event()
    patient = Retry(attempts=200, first_seconds=0.05, max_seconds=0.2)

    def write(name: int) -> None:
        for at in itertools.count():
            request = AppendRequest(
                session=f"s{name}", expected_version=at, events=[event(id=f"{name}-{at}")]
            )
            assert patient.call(lambda request=request: store.append(request)).version == at + 1
            acknowledged.append(f"{name}-{at}")
            if stop.is_set():
                return

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        before = len(acknowledged)
        until(lambda before=before: len(acknowledged) > before + 20, "some appends")
        served.server.kill()
        served.server.start()
    before = len(acknowledged)
    until(lambda: len(acknowledged) > before + 20, "appends after the crash")
    stop.set()
    for thread in threads:
        thread.join()
    stored = [one.id for name in range(4) for one in load(store, f"s{name}")]
    assert sorted(stored) == sorted(acknowledged)
    store.close()


def test_a_port_that_nobody_listens_on_is_unavailable(served: Served) -> None:
    """Nothing is connected before first use, so the store itself can be made."""
    store = served.make(port=free_port())
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1"):
        load(store)
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1"):
        asyncio.run(store.asessions())


@pytest.mark.few(1)
def test_a_server_that_does_not_answer_is_unavailable_in_time(served: Served) -> None:
    """It accepts the connection and says nothing: the limit of time ends it."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = served.make(port=silent.getsockname()[1], connect_timeout_seconds=2)
        if served.name == "redis":
            store = served.make(port=silent.getsockname()[1], command_timeout_seconds=0.2)
        with pytest.raises(StoreUnavailableError):
            load(store)


WRONG = {
    "postgres": {
        "password": (
            "trimtab@",
            "wrong@",
            "password authentication failed.*correct the user and the password",
        ),
        "user": ("postgres:trimtab@", "nobody:x@", "password authentication failed"),
        "database": ("/t", "/absent", "does not exist.*create it"),
    },
    "redis": {
        "password": (":trimtab@", ":wrong@", "correct the user and the password"),
        "database": ("/0", "/99", "number of a database"),
    },
}


@pytest.mark.parametrize("what", ["password", "user", "database"])
def test_what_is_wrong_in_the_url_is_said(served: Served, what: str) -> None:
    """Asking again would not mend it, so it is a ConfigurationError, and it never shows the password."""
    if what not in WRONG[served.name]:
        return
    old, new, said = WRONG[served.name][what]
    with open_store(served.url(None).replace(old, new, 1)) as store:
        for call in (store.sessions, lambda: asyncio.run(store.asessions())):
            with pytest.raises(ConfigurationError, match=said) as raised:
                call()
            assert "trimtab@" not in str(raised.value)


def test_a_deleted_session_leaves_no_byte_in_the_servers_files(served: Served) -> None:
    """Neither of its name, its text, nor of the words it was found by; not in statistics either."""
    secret, kept, large = "krakynquon", "keepmyjumps", "wyvernzimt"
    with served.make() as store:
        name = f"named-{secret}"
        add(store, 0, [event(f"{secret} {at}", id=f"{secret}-{at}") for at in range(200)], session=name)
        add(store, 200, [event(f"{large} " + os.urandom(20_000).hex())], session=name)
        add(store, 0, [event(kept)], session="other")
        assert store.search(SearchRequest(session=name, terms=question_terms(secret), limit=1))
        if served.name == "postgres":
            analyzed = served.url(None).rpartition("/")[2]
            served.server.ask("ANALYZE", database=analyzed)
        assert served.files_with(kept)
        assert served.files_with(secret)
        store.delete(name)
        assert served.files_with(secret) == []
        assert served.files_with(large) == []
        assert contents(load(store, "other")) == [kept]


@pytest.mark.parametrize("awaited", [False, True])
def test_an_expiry_cleans_what_one_before_left(served: Served, awaited: bool) -> None:
    """One that was killed before it had the files rewritten; the next may find nothing to remove."""
    secret = "krakynquon"

    async def expire() -> Receipt:
        async with served.make() as store:
            return await store.aexpire(now=100.0)  # type: ignore[no-any-return]

    with served.make() as store, served.make() as killed:
        add(store, 0, [event(secret)], labels=Labels(ttl=5.0))
        killed.scrub = _interrupt
        with pytest.raises(KeyboardInterrupt):
            killed.expire(now=100.0)
        assert served.files_with(secret)
        with pytest.raises(KeyboardInterrupt):
            killed.expire(now=100.0)
        assert (asyncio.run(expire()) if awaited else store.expire(now=100.0)) == Receipt()
        assert served.files_with(secret) == []


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("awaited", [False, True])
def test_an_expiry_of_nothing_leaves_what_waits_for_the_night(served: Served, awaited: bool) -> None:
    """What handles with `scrub_on_delete=False` removed and rewrote does not make it rewrite files."""
    deleted, redacted = "krakynquon", "wyvernzimt"

    async def expire() -> Receipt:
        async with served.make() as store:
            return await store.aexpire(now=100.0)  # type: ignore[no-any-return]

    with served.make() as store, served.make(scrub_on_delete=False) as app:
        add(app, 0, [event(deleted)], session="d")
        add(app, 0, [event(redacted)])
        app.delete("d")
        add(app, 1, rewrites=[replace(load(app)[0], data={"message": {"content": "redacted"}})])
        assert (asyncio.run(expire()) if awaited else store.expire(now=100.0)) == Receipt()
        assert served.files_with(deleted)
        assert served.files_with(redacted)
        app.scrub()
        assert served.files_with(deleted) == []


def test_redacted_text_leaves_no_byte_in_the_servers_files(served: Served) -> None:
    """What is rewritten is gone from the tables, from the index and from the files."""
    secret = "krakynquon"
    with served.make() as store:
        add(store, 0, [event("before"), event(secret), event("after")])
        assert store.search(SearchRequest(session="s", terms=question_terms(secret), limit=1))
        old = load(store)[1]
        add(store, 3, rewrites=[replace(old, data={"message": {"content": "redacted"}})])
        assert served.files_with(secret) == []
        assert store.search(SearchRequest(session="s", terms=question_terms(secret), limit=1)) == []
        found = store.search(SearchRequest(session="s", terms=("redact",), limit=9))
        assert holders(found, "redact") == [2]
        assert contents(load(store))[:3] == ["before", "redacted", "after"]


def test_the_newest_event_can_be_redacted(served: Served) -> None:
    """Also right after a search, when the index ends with it."""
    with served.make(scrub_on_delete=False) as store:
        add(store, 0, [event("heron"), event("otter")])
        assert store.search(SearchRequest(session="s", terms=("otter",), limit=1))
        old = load(store)[1]
        add(store, 2, rewrites=[replace(old, data={"message": {"content": "redacted"}})])
        for term, versions in (("otter", []), ("redact", [2])):
            found = store.search(SearchRequest(session="s", terms=question_terms(term), limit=9))
            assert holders(found, term) == versions


def test_a_stale_append_is_a_conflict_whatever_its_ids(served: Served) -> None:
    """Neither an id of another session nor a later id of this one makes it anything else."""
    with served.make() as store:
        add(store, 0, [event("mine", id="a"), event(id="b")])
        add(store, 0, [event("theirs", id="c")], session="other")
        for events in ([event("theirs", id="c")], [event(id="d"), event(id="b")]):
            with pytest.raises(VersionConflictError) as raised:
                add(store, 1, events)
            assert (raised.value.expected_version, raised.value.actual_version) == (1, 2)


def test_scrubbing_can_be_left_for_the_night(served: Served) -> None:
    """With `scrub_on_delete=False` neither a redaction nor a deletion costs more; `scrub` does the rest."""
    with served.make(scrub_on_delete=False) as store:
        for secret, night in (
            ("krakynquon", store.scrub),
            ("wyvernzimt", lambda: asyncio.run(_scrub(store))),
        ):
            add(store, 0, [event(secret)])
            add(store, 1, rewrites=[replace(load(store)[0], data={"message": {"content": "redacted"}})])
            assert served.files_with(secret)
            store.delete("s")
            assert load(store) == []
            assert served.files_with(secret)
            night()
            assert served.files_with(secret) == []


async def _scrub(store: Any) -> None:
    await store.ascrub()
    await store.aclose()


def test_the_async_forms_scrub_too(served: Served) -> None:
    """Deletion and redaction, as their sync forms."""

    async def gone() -> None:
        async with served.make() as store:
            await store.aappend(
                AppendRequest(
                    session="s", expected_version=0, events=[event("krakynquon"), event("wyvernzimt")]
                )
            )
            (old,) = await store.asearch(SearchRequest(session="s", terms=("krakynquon",), limit=1))
            new = replace(old, data={"message": {"content": "redacted"}})
            await store.aappend(
                AppendRequest(session="s", expected_version=2, events=[event()], rewrites=[new])
            )
            assert served.files_with("krakynquon") == []
            await store.adelete("s")
            assert served.files_with("wyvernzimt") == []

    asyncio.run(gone())


def test_a_missing_row_is_noticed_wherever_it_stood(served: Served) -> None:
    """The first, one between, or the last, which only the session's own version tells of."""
    with served.make() as store:
        for version in (1, 3, 5):
            add(store, 0, 5)
            _remove_row(served, version)
            for newest_first in (False, True):
                with pytest.raises(CorruptSessionError, match="is missing") as raised:
                    load(store, newest_first=newest_first)
                assert (raised.value.session, raised.value.version) == ("s", version)
            assert len(load(store, before=version)) == version - 1
            store.delete("s")


def _remove_row(served: Served, version: int) -> None:
    if served.name == "redis":
        with served.server.client() as client:
            assert client.hdel("trimtab:session:s", f"e{version}")
    else:
        _ask(served, "DELETE FROM trimtab_events WHERE version = %s", version)


def _ask(served: Served, sql: str, *params: object) -> list[tuple[Any, ...]]:
    database = served.url(None).rpartition("/")[2]
    return served.server.ask(sql, *params, database=database)


def test_an_event_beyond_the_version_is_never_written_over(served: Served) -> None:
    """Somebody set the version back: the store says so instead of going on from there."""
    with served.make() as store:
        add(store, 0, 3)
        if served.name == "redis":
            with served.server.client() as client:
                client.hset("trimtab:session:s", "v", 2)
        else:
            _ask(served, "UPDATE trimtab_sessions SET version = 2")
        with pytest.raises(CorruptSessionError) as raised:
            add(store, 2)
        assert raised.value.version == 3


def test_a_row_moved_to_another_place_is_noticed(served: Served) -> None:
    """Its seal covers its version."""
    with served.make() as store:
        add(store, 0, 3)
        second = load(store)[1].id
        if served.name == "redis":
            with served.server.client() as client:
                client.hset("trimtab:session:s", "e2", client.hget("trimtab:session:s", "e1"))
        else:
            sql = """
                UPDATE trimtab_events e SET body = o.body, seal = o.seal, kind = o.kind, time = o.time
                FROM trimtab_events o WHERE e.version = 2 AND o.version = 1"""
            _ask(served, sql)
        for asked in ({}, {"ids": (second,)}):
            with pytest.raises(CorruptSessionError) as raised:
                load(store, **asked)
            assert raised.value.version == 2


def test_two_event_loops_one_after_another_use_one_store(served: Served) -> None:
    """Connections belong to the loop that opened them."""
    store = served.make()

    async def once(expected: int) -> int:
        appended = await store.aappend(
            AppendRequest(session="s", expected_version=expected, events=[event()])
        )
        await store.aclose()
        return int(appended.version)

    assert [asyncio.run(once(expected)) for expected in range(3)] == [1, 2, 3]
    assert len(load(store)) == 3
    store.close()


FORKS = """
import asyncio, os, sys
from trimtab.stores import AppendRequest, Event, LoadRequest, open_store

store = open_store(sys.argv[1])
def append(session, at):
    event = Event(id=f"e{at}", kind="note", time=1.0)
    return store.append(AppendRequest(session=session, expected_version=at, events=[event])).version
append("parent", 0)
children = []
for number in range(3):
    child = os.fork()
    if not child:
        for at in range(20):
            assert append(f"child-{number}", at) == at + 1
        async def awaited():
            assert len(await store.aload(LoadRequest(session=f"child-{number}"))) == 20
            await store.aclose()
        asyncio.run(awaited())
        os._exit(0)
    children.append(child)
for at in range(1, 20):
    assert append("parent", at) == at + 1
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
assert append("parent", 20) == 21
store.close()
print(len(store.sessions()))
store.close()
"""


def test_a_forked_process_has_connections_of_its_own(served: Served) -> None:
    """Parent and children append at the same time, and neither reads the other's answers."""
    environment = {**os.environ, "PYTHONPATH": str(Path(trimtab.__file__).parents[1])}
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", FORKS, served.url(None)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "4\n", "")


def test_a_cancelled_call_leaks_no_connection(served: Served) -> None:
    """However often and wherever a call is cancelled, the few connections there are stay usable."""

    async def cancelled() -> None:
        async with served.make(max_connections=2, pool_timeout_seconds=5) as store:
            await store.asessions()
            for at in range(60):
                request = AppendRequest(session=f"c{at}", expected_version=0, events=[event("x" * 200_000)])
                task = asyncio.ensure_future(store.aappend(request))
                await asyncio.sleep(at * 0.0001)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            names = [f"after{at}" for at in range(8)]
            answers = await asyncio.gather(
                *(
                    store.aappend(AppendRequest(session=name, expected_version=0, events=[event()]))
                    for name in names
                )
            )
            assert [answer.version for answer in answers] == [1] * 8
            for at in range(60):  # all of it or nothing
                assert len(await store.aload(_whole(f"c{at}"))) in (0, 1)

    asyncio.run(cancelled())


def _whole(session: str) -> Any:
    from trimtab.stores import LoadRequest

    return LoadRequest(session=session)
