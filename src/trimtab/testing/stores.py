"""`check_store`: use a store as sessions do, and hold it to its contract."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, cast

from trimtab.errors import ConfigurationError, CorruptSessionError, VersionConflictError
from trimtab.stores import AppendRequest, Event, LoadRequest, Store
from trimtab.testing.errors import broken
from trimtab.testing.store_asking import Asking, entry, note, refusal
from trimtab.testing.store_crowd import check_tasks, check_threads
from trimtab.testing.store_incarnation import acheck_incarnations, check_incarnations
from trimtab.testing.store_search import check_search

__all__ = ["check_store"]

_TEXTS = {
    "empty": "",
    "NUL": "a\x00b",
    "a lone surrogate": "before \ud800 after",
    "an escaped surrogate": "\\ud800",
    "beyond the BMP": "👩‍👩‍👧 𠮷野家",
    "line separators": "a\u2028b\u0085c\r\nd",
    "combining marks": "e\u0301 é ﬁ",
    "a quote and a backslash": "\"'\\%_",
    "one megabyte": "x" * 1_000_000,
    "one megabyte of Chinese": "天" * 350_000,
}
"""What stores and their wires get wrong."""


def check_store(
    make_store: Callable[[], Store], /, *, damage: Callable[[str, int], None] | None = None
) -> None:
    """Run the contract of `Store` on a store of your own.

    What it checks, by the `rule` of the error: `answers` (every call answers, with values of the right
    kind), `versions` (from 1, without gap), `conflict` (carries both versions, changes nothing),
    `incarnation` (what was deleted does not come back), `idempotent` (asked again, nothing is stored
    twice), `ids`, `refuses` (what is no request), `atomic`, `rewrites`, `paging`, `plain_data` (no object
    shared), `texts` (NUL, surrogates, a megabyte…),
    `isolation` (sessions do not touch), `search`, `delete`, `sessions`, `handles` (two on one place see
    each other), `asynchronous` (async forms do the same), `threads`, `tasks`, `damage`, `close`.

    The place may hold other sessions; those made here have names of their own and are deleted at the end.

    Args:
        make_store: Makes a new handle on the same place each time, or returns the same store where its
            sessions live in the object. Every handle is closed.
        damage: Changes the stored data of (session, version) behind the store's back; None: not checked.

    Raises:
        ContractBroken: With the rule and what happened.

    Example:
        >>> from trimtab.stores import MemoryStore
        >>> store = MemoryStore()
        >>> check_store(lambda: store)
    """
    store = _made(make_store)
    check = _Check(store, prefix=f"check-{uuid.uuid4().hex[:12]}-")
    try:
        check.run()
        _check_handles(check, make_store)
        check_threads(check)
        _check_async(check, make_store)
        if damage is not None:
            check.check_damage(damage)
    finally:
        check.clean()
    _check_close(store)


def _made(make_store: Callable[[], Store]) -> Store:
    store = make_store()
    if not isinstance(cast("Any", store), Store):
        broken("answers", f"{type(store).__name__} lacks a method of Store")
    return store


class _Check(Asking):
    """One run of the contract over one store."""

    def run(self) -> None:
        self.check_versions()
        self.check_conflict()
        self.check_idempotence()
        self.check_ids()
        self.check_refusals()
        self.check_rewrites()
        self.check_paging()
        self.check_plain_data()
        self.check_texts()
        self.check_isolation()
        check_search(self)
        self.check_delete()
        check_incarnations(self)
        self.check_sessions()

    def check_versions(self) -> None:
        session = self.new_session()
        self.equal("answers", self.load(session), [], "a session nobody wrote to has no events")
        for expected, count in ((0, 1), (1, 3), (4, 1)):
            answer = self.append(session, expected, count)
            self.equal("answers", answer[:2], (expected + count, False), "an append answers its version")
        versions = [event.version for event in self.load(session)]
        self.equal("versions", versions, [1, 2, 3, 4, 5], "versions count from 1 without gap")

    def check_conflict(self) -> None:
        session = self.filled(3)
        before = self.load(session)
        for expected in (0, 2, 4, 99):
            request = AppendRequest(session=session, expected_version=expected, events=[note(), note()])
            error = refusal(partial(self.store.append, request), VersionConflictError, "conflict")
            carried = (error.session, error.expected_version, error.actual_version)
            self.equal("conflict", carried, (session, expected, 3), "a conflict carries both versions")
            self.equal("conflict", self.load(session), before, "a conflict changes nothing")

    def check_idempotence(self) -> None:
        session = self.new_session()
        batch = [note(), note(), note()]
        first = AppendRequest(session=session, expected_version=0, events=batch)
        self.store.append(first)
        stored = self.load(session)
        for moved in (0, 2):
            self.append(session, 3, moved)
            answer = self.store.append(first)[:2]
            self.equal("idempotent", answer, (3 + moved, True), "a repeated append says so")
            self.equal("idempotent", self.load(session)[:3], stored, "a repeated append changes nothing")
            self.equal("idempotent", len(self.load(session)), 3 + moved, "a repeated append adds nothing")

    def check_ids(self) -> None:
        session = self.filled(2)
        taken = self.load(session)[1].id
        before = self.load(session)
        other = Event(id=taken, kind="note", time=5.0, data={"text": "another"})
        for events in ([other], [note(), other], [note(), note(), other]):
            request = AppendRequest(session=session, expected_version=2, events=events)
            refusal(partial(self.store.append, request), ConfigurationError, "ids")
            self.equal(
                "atomic", self.load(session), before, "an append that is refused adds none of its events"
            )
        self.equal(
            "ids", self.append(self.new_session(), 0, 1, first_id=taken).version, 1, "ids are a session's own"
        )

    def check_refusals(self) -> None:
        session, twice = self.filled(1), note()
        wrong = {
            "an id twice": [twice, replace(twice, data={"text": "again"})],
            "an id with NUL": [replace(note(), id="a\0b")],
            "an empty id": [replace(note(), id="")],
            "an id with a lone surrogate": [replace(note(), id="\ud800")],
            "an object": [replace(note(), data={"text": object()})],
            "a NaN": [replace(note(), data={"number": float("nan")})],
            "an infinite time": [replace(note(), time=float("inf"))],
        }
        for what, events in wrong.items():
            request = AppendRequest(session=session, expected_version=1, events=events)
            refusal(partial(self.store.append, request), ConfigurationError, "refuses", what)
        for name in ("", "a\0b", "\ud800", "x" * 513):
            refusal(
                partial(self.store.load, LoadRequest(session=name)),
                ConfigurationError,
                "refuses",
                name,
            )
            refusal(partial(self.store.delete, name), ConfigurationError, "refuses", name)
        self.equal("refuses", len(self.load(session)), 1, "what is refused is not stored")

    def check_rewrites(self) -> None:
        session = self.filled(4)
        before = self.load(session)
        new = replace(before[1], data={"text": "rewritten"}, state={"small": True})
        request = AppendRequest(session=session, expected_version=4, events=[note()], rewrites=[new])
        stale = replace(request, expected_version=3)
        refusal(lambda: self.store.append(stale), VersionConflictError, "rewrites")
        for wrong in (
            replace(new, id="nobody"),
            replace(new, version=3),
            replace(new, time=-1.0),
            replace(new, kind="other"),
        ):
            bad = replace(request, rewrites=[wrong])
            refusal(partial(self.store.append, bad), ConfigurationError, "rewrites", "of another event")
        self.equal("atomic", self.load(session), before, "a rewrite that is refused changes nothing")
        self.equal("rewrites", self.store.append(request).version, 5, "a rewrite comes with an event")
        expected = [before[0], new, before[2], before[3]]
        self.equal("rewrites", self.load(session)[:4], expected, "data and state are replaced, nothing else")
        self.equal("rewrites", self.store.append(request).duplicate, True, "a rewrite can be asked again")
        self.equal("rewrites", self.load(session)[:4], expected, "a rewrite asked again changes nothing")
        newer = replace(new, data={"text": "rewritten once more"})
        self.store.append(replace(request, expected_version=5, events=[note()], rewrites=[newer]))
        self.store.append(request)
        self.equal(
            "rewrites", self.load(session)[1], newer, "asked again later, it does not undo a newer one"
        )

    def check_paging(self) -> None:
        session = self.filled(7)
        events = self.load(session)
        ids = tuple(event.id for event in events)
        cases: list[tuple[dict[str, Any], list[int]]] = [
            ({}, [1, 2, 3, 4, 5, 6, 7]),
            ({"newest_first": True}, [7, 6, 5, 4, 3, 2, 1]),
            ({"limit": 3}, [1, 2, 3]),
            ({"limit": 3, "newest_first": True}, [7, 6, 5]),
            ({"limit": 0}, []),
            ({"after": 2, "before": 6}, [3, 4, 5]),
            ({"after": 2, "before": 6, "newest_first": True, "limit": 2}, [5, 4]),
            ({"after": 2, "limit": 2}, [3, 4]),
            ({"before": 4, "newest_first": True, "limit": 99}, [3, 2, 1]),
            ({"after": 7}, []),
            ({"after": 99}, []),
            ({"before": 1}, []),
            ({"before": 99, "after": 5}, [6, 7]),
            ({"after": 5, "before": 3}, []),
            ({"ids": (ids[4], "nobody", ids[1], "\ud800", ids[4])}, [2, 5]),
            ({"ids": (ids[4], ids[1]), "newest_first": True}, [5, 2]),
            ({"ids": ids, "after": 1, "before": 6, "limit": 3}, [2, 3, 4]),
            ({"ids": ()}, []),
        ]
        for asked, versions in cases:
            got = self.store.load(LoadRequest(session=session, **asked))
            self.equal("paging", got, [events[version - 1] for version in versions], f"of 7 events, {asked}")

    def check_plain_data(self) -> None:
        session, data = self.new_session(), {"text": ["mine"]}
        event = Event(
            id="mine", kind="note", time=1.5, data=data, state={"deep": {"list": [1, 2.5, None, True]}}
        )
        self.store.append(AppendRequest(session=session, expected_version=0, events=[event]))
        data["text"].append("changed later")
        got = self.load(session)[0]
        self.equal("plain_data", got.data, {"text": ["mine"]}, "what the caller changes later is not stored")
        self.equal("plain_data", got.state, event.state, "state comes back equal")
        self.equal(
            "plain_data",
            (got.time, got.kind, got.id, got.version),
            (1.5, "note", "mine", 1),
            "columns come back",
        )
        cast("dict[str, Any]", got.data)["text"].append("by a reader")
        self.equal(
            "plain_data", self.load(session)[0].data, {"text": ["mine"]}, "a reader changes its own copy"
        )

    def check_texts(self) -> None:
        session = self.new_session("名前 'quoted\" %_\\ 👩")
        sent = [entry({"role": "user", "content": text, text[:50]: what}) for what, text in _TEXTS.items()]
        for at, event in enumerate(sent):
            self.store.append(AppendRequest(session=session, expected_version=at, events=[event]))
        for what, event, got in zip(_TEXTS, sent, self.load(session), strict=True):
            if got.data != event.data:
                broken("texts", f"{what} did not come back as it was")

    def check_isolation(self) -> None:
        one, other = self.new_session("s"), self.new_session("s%")
        self.append(one, 0, 2)
        self.append(other, 0, 3)
        self.equal(
            "isolation", [len(self.load(one)), len(self.load(other))], [2, 3], "each has its own events"
        )
        self.store.delete(other)
        self.equal("isolation", len(self.load(one)), 2, "deleting one leaves the other")

    def check_delete(self) -> None:
        session = self.filled(3)
        self.store.delete(session)
        self.equal("delete", self.load(session), [], "a deleted session has no events")
        self.store.delete(session)
        self.equal("delete", self.append(session, 0, 1).version, 1, "its name can be used again")
        self.equal("delete", len(self.load(session)), 1, "and nothing of the old is there")

    def check_sessions(self) -> None:
        made = sorted(self.filled(1) for _ in range(3))
        names = self.store.sessions()
        self.equal("sessions", names, sorted(names), "names are sorted")
        self.equal("sessions", [name for name in names if name in made], made, "every session is listed")
        self.store.delete(made[1])
        self.equal("sessions", made[1] in self.store.sessions(), False, "a deleted one is not")

    def check_damage(self, damage: Callable[[str, int], None]) -> None:
        session = self.filled(3)
        damage(session, 2)
        error = refusal(lambda: self.load(session), CorruptSessionError, "damage")
        self.equal("damage", (error.session, error.version), (session, 2), "the error names the event")
        rest = self.store.load(LoadRequest(session=session, before=2))
        self.equal("damage", [event.version for event in rest], [1], "what is before it can be read")


def _check_handles(check: _Check, make_store: Callable[[], Store]) -> None:
    session = check.filled(2)
    other = _made(make_store)
    try:
        events = other.load(LoadRequest(session=session))
        check.equal("handles", events, check.load(session), "another handle reads what was written")
        other.append(AppendRequest(session=session, expected_version=2, events=[note()]))
        check.equal("handles", len(check.load(session)), 3, "the first sees what another handle wrote")
        late = AppendRequest(session=session, expected_version=2, events=[note()])
        refusal(lambda: check.store.append(late), VersionConflictError, "handles")
    finally:
        if other is not check.store:
            other.close()
    check.equal("handles", len(check.load(session)), 3, "closing another handle takes nothing away")


def _check_async(check: _Check, make_store: Callable[[], Store]) -> None:
    """Run the async part in a loop of its own, in a thread, as the caller may be inside a loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _async_part(check, make_store)).result()


async def _async_part(check: _Check, make_store: Callable[[], Store]) -> None:
    store = _made(make_store)
    try:
        await _check_async_forms(check, store)
        await acheck_incarnations(check, store)
        await check_tasks(check, store)
    finally:
        if store is not check.store:
            await store.aclose()
            await store.aclose()


async def _check_async_forms(check: _Check, store: Store) -> None:
    session, message = check.new_session(), entry({"content": "an otter sleeps"})
    request = AppendRequest(session=session, expected_version=0, events=[message])
    check.equal("asynchronous", (await store.aappend(request))[:2], (1, False), "aappend stores")
    check.equal("asynchronous", (await store.aappend(request))[:2], (1, True), "aappend knows a repeated one")
    check.equal(
        "asynchronous", await store.aload(LoadRequest(session=session)), check.load(session), "aload reads"
    )
    found = await store.asearch(check.query(session, "otter"))
    check.equal("asynchronous", found, check.load(session), "asearch finds")
    check.equal("asynchronous", session in await store.asessions(), True, "asessions lists")
    stale = AppendRequest(session=session, expected_version=0, events=[note()])
    try:
        await store.aappend(stale)
    except VersionConflictError as error:
        check.equal("asynchronous", error.actual_version, 1, "the conflict carries the version")
    else:
        broken("asynchronous", "a stale aappend was stored")
    await store.adelete(session)
    check.equal("asynchronous", await store.aload(LoadRequest(session=session)), [], "adelete removes")


def _check_close(store: Store) -> None:
    try:
        store.close()
        store.close()
    except Exception as error:
        from trimtab.testing.errors import ContractBroken

        raise ContractBroken(f"close: closing twice raised {error!r}", rule="close") from error
