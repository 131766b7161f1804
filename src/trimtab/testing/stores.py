"""`check_store`: use a store as sessions do, and hold it to its contract."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

from trimtab.errors import ConfigurationError, CorruptSessionError, SessionDeletedError, VersionConflictError
from trimtab.relevance import question_terms
from trimtab.stores import (
    Appended,
    AppendRequest,
    Event,
    Found,
    Labels,
    LoadRequest,
    Retry,
    SearchRequest,
    Store,
)
from trimtab.stores.base import encrypts, missing_methods
from trimtab.stores.newest import NewestLoader
from trimtab.stores.search import NEIGHBOR_REACHES
from trimtab.testing.errors import ContractBroken, ask, fail

E = TypeVar("E", bound=Exception)

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
    kind), `versions` (from 1, without gaps), `conflict` (carries both versions, changes nothing),
    `incarnation` (what was deleted does not come back), `idempotent` (a repeated request stores nothing
    twice), `ids`, `refuses` (what is not a request), `atomic`, `rewrites`, `paging`, `plain_data` (no object
    shared), `texts` (NUL, surrogates, a megabyte…), `isolation` (sessions do not touch), `search`, `delete`,
    `sessions`, `newest` (if it has `load_newest`), `owners` (lists, exports, deletes and expires by labels),
    `handles` (two handles on one place see each other), `asynchronous` (async forms do the same), `threads`,
    `tasks`, `damage`, `close`.

    The place may contain other sessions; those made here have their own names and are deleted at the end.

    Args:
        make_store: Makes a new handle on the same place each time, or returns the same store if its sessions
            are in the object. Every handle is closed.
        damage: Changes the stored data of (session, version) without the store; None: not checked.

    Raises:
        ContractBroken: A rule is broken; the error has the rule and what happened.

    Example:
        >>> from trimtab.stores import MemoryStore
        >>> store = MemoryStore()
        >>> check_store(lambda: store)
    """
    store = _new_store(make_store)
    check = _Check(store, f"check-{uuid.uuid4().hex[:12]}-")
    try:
        check.run()
        _check_handles(check, make_store)
        check_threads(check)
        with ThreadPoolExecutor(1) as pool:  # the caller may be inside of an event loop
            pool.submit(asyncio.run, _async_part(check, make_store)).result()
        if damage is not None:
            check.check_damage(damage)
    finally:
        check.clean()
    for _ in range(2):
        ask(store.close, "close", "closing twice")


def _new_store(make_store: Callable[[], Store]) -> Store:
    store = make_store()
    if not isinstance(cast("Any", store), Store):
        fail("answers", f"{type(store).__name__} lacks a method of Store{missing_methods(store)}")
    return store


# How a store is asked.


def note(text: str = "", *, id: str | None = None) -> Event:
    """Make an event that is no message."""
    return Event(id=id or uuid.uuid4().hex, kind="note", time=1.25, data={"text": text})


def append_request(session: str, version: int, events: list[Event], **more: Any) -> AppendRequest:
    """Ask for events to be added to a session at a version."""
    return AppendRequest(session=session, expected_version=version, events=events, **more)


def entry(message: Any) -> Event:
    """Make an event of a message."""
    return Event(id=uuid.uuid4().hex, kind="message", time=1.25, data={"message": message})


def refusal(call: Callable[[], object], kind: type[E], rule: str, what: str = "") -> E:
    """Insist that a call raises an error of a kind, and return it."""
    try:
        answer = call()
    except kind as error:
        return error
    except Exception as error:
        wanted = f"{rule}: {what!r:.80} raised {type(error).__name__}, not {kind.__name__}: {error!s:.200}"
        raise ContractBroken(wanted, rule=rule) from error
    return fail(rule, f"{what!r:.80} answered {answer!r:.80}, where {kind.__name__} is due")


@dataclass(frozen=True, slots=True)
class _Check:
    """One run of the contract over one store, and the names of the sessions made in it."""

    store: Store
    prefix: str
    made: list[str] = field(default_factory=list)

    @property
    def has_steps(self) -> bool:
        """Whether the store counts lengths of texts in steps, as one that encrypts them."""
        return encrypts(self.store)

    def wide(self, text: str) -> str:
        """Return a text, which is so long where lengths have steps that a character more is a step more."""
        return text.ljust(_STEP_CHARS * len(text)) if self.has_steps else text

    def new_session(self, name: str = "") -> str:
        """Return a name nobody has used."""
        self.made.append(f"{self.prefix}{len(self.made)}-{name}")
        return self.made[-1]

    def fill_session(self, count: int) -> str:
        """Make a session of so many events."""
        session = self.new_session()
        self.append(session, 0, count)
        return session

    def append(self, session: str, expected: int, count: int, *, first_id: str | None = None) -> Appended:
        """Add so many events; none is no request at all."""
        if not count:
            return Appended(expected)
        events = [note(f"event {expected + at}", id=None if at else first_id) for at in range(count)]
        return self.store.append(append_request(session, expected, events))

    def refuse(self, request: AppendRequest, kind: type[E], rule: str, what: str = "") -> E:
        """Insist that an append raises an error of a kind, and return it."""
        return refusal(partial(self.store.append, request), kind, rule, what)

    def load(self, session: str) -> list[Event]:
        """Read a whole session."""
        return self.store.load(LoadRequest(session=session))

    def query(self, session: str, text: str, *, limit: int = 50) -> SearchRequest:
        """Ask for the messages with any term of a text."""
        return SearchRequest(session=session, terms=question_terms(text), limit=limit)

    def search(self, session: str, text: str, versions: list[int], *, limit: int = 50) -> None:
        """Insist on the versions that a search finds, the best first."""
        found = [event.version for event in self.store.search(self.query(session, text, limit=limit))]
        self.equal("search", found, versions, f"a search for {text!r}, the best {limit}")

    def equal(self, rule: str, got: object, wanted: object, claim: str) -> None:
        """Insist on an answer."""
        if got != wanted:
            fail(rule, f"{claim}: got {got!r:.300}, wanted {wanted!r:.300}")

    def clean(self) -> None:
        """Delete every session that was made."""
        for session in self.made:
            self.store.delete(session)

    def run(self) -> None:
        for check in (
            *(self.check_versions, self.check_conflict, self.check_idempotence, self.check_ids),
            *(self.check_refusals, self.check_rewrites, self.check_paging, self.check_plain_data),
            *(self.check_texts, self.check_isolation, partial(check_search, self), self.check_delete),
            *(partial(check_incarnations, self), self.check_sessions, partial(check_newest, self)),
            partial(check_owners, self),
        ):
            check()

    def check_versions(self) -> None:
        session = self.new_session()
        self.equal("answers", self.load(session), [], "a session nobody wrote to has no events")
        for expected, count in ((0, 1), (1, 3), (4, 1)):
            answer = self.append(session, expected, count)
            self.equal("answers", answer[:2], (expected + count, False), "an append answers its version")
        versions = [event.version for event in self.load(session)]
        self.equal("versions", versions, [1, 2, 3, 4, 5], "versions count from 1 without gap")

    def check_conflict(self) -> None:
        session = self.fill_session(3)
        before = self.load(session)
        for expected in (0, 2, 4, 99):
            request = append_request(session, expected, [note(), note()])
            error = self.refuse(request, VersionConflictError, "conflict")
            carried = (error.session, error.expected_version, error.actual_version)
            self.equal("conflict", carried, (session, expected, 3), "a conflict carries both versions")
            self.equal("conflict", self.load(session), before, "a conflict changes nothing")

    def check_idempotence(self) -> None:
        session = self.new_session()
        batch = [note(), note(), note()]
        first = append_request(session, 0, batch)
        self.store.append(first)
        stored = self.load(session)
        for moved in (0, 2):
            self.append(session, 3, moved)
            answer = self.store.append(first)[:2]
            self.equal("idempotent", answer, (3 + moved, True), "a repeated append says so")
            self.equal("idempotent", self.load(session)[:3], stored, "a repeated append changes nothing")
            self.equal("idempotent", len(self.load(session)), 3 + moved, "a repeated append adds nothing")

    def check_ids(self) -> None:
        session = self.fill_session(2)
        taken = self.load(session)[1].id
        before = self.load(session)
        other = Event(id=taken, kind="note", time=5.0, data={"text": "another"})
        for events in ([other], [note(), other], [note(), note(), other]):
            request = append_request(session, 2, events)
            self.refuse(request, ConfigurationError, "ids")
            claim = "an append that is refused adds none of its events"
            self.equal("atomic", self.load(session), before, claim)
        version = self.append(self.new_session(), 0, 1, first_id=taken).version
        self.equal("ids", version, 1, "ids are a session's own")

    def check_refusals(self) -> None:
        session, twice = self.fill_session(1), note()
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
            request = append_request(session, 1, events)
            self.refuse(request, ConfigurationError, "refuses", what)
        for name in ("", "a\0b", "\ud800", "x" * 513):
            load = partial(self.store.load, LoadRequest(session=name))
            refusal(load, ConfigurationError, "refuses", name)
            refusal(partial(self.store.delete, name), ConfigurationError, "refuses", name)
        self.equal("refuses", len(self.load(session)), 1, "what is refused is not stored")

    def check_rewrites(self) -> None:
        session = self.fill_session(4)
        before = self.load(session)
        new = replace(before[1], data={"text": "rewritten"}, state={"small": True})
        request = append_request(session, 4, [note()], rewrites=[new])
        stale = replace(request, expected_version=3)
        self.refuse(stale, VersionConflictError, "rewrites")
        for other in ({"id": "nobody"}, {"version": 3}, {"time": -1.0}, {"kind": "other"}):
            wrong = replace(new, **cast("Any", other))
            bad = replace(request, rewrites=[wrong])
            self.refuse(bad, ConfigurationError, "rewrites", "of another event")
        self.equal("atomic", self.load(session), before, "a rewrite that is refused changes nothing")
        self.equal("rewrites", self.store.append(request).version, 5, "a rewrite comes with an event")
        expected = [before[0], new, before[2], before[3]]
        self.equal("rewrites", self.load(session)[:4], expected, "data and state are replaced, nothing else")
        self.equal("rewrites", self.store.append(request).duplicate, True, "a rewrite can be asked again")
        self.equal("rewrites", self.load(session)[:4], expected, "a rewrite asked again changes nothing")
        newer = replace(new, data={"text": "rewritten once more"})
        self.store.append(replace(request, expected_version=5, events=[note()], rewrites=[newer]))
        self.store.append(request)
        claim = "asked again later, it does not undo a newer one"
        self.equal("rewrites", self.load(session)[1], newer, claim)
        alone = append_request(session, 6, [], rewrites=[new])
        self.refuse(replace(alone, expected_version=5), VersionConflictError, "rewrites")
        self.equal("rewrites", self.store.append(alone)[:2], (6, False), "a rewrite alone keeps the version")
        self.equal("rewrites", self.load(session)[:4], expected, "a rewrite may come alone")
        self.check_pruning(session, expected)

    def check_pruning(self, session: str, before: list[Event]) -> None:
        pruned = [replace(event, kind="pruned", data={}, state={}) for event in before[:2]]
        order = append_request(session, 6, [], rewrites=pruned)
        other = replace(order, rewrites=[replace(pruned[0], id="nobody")])
        self.refuse(other, ConfigurationError, "rewrites", "of another event")
        self.equal("atomic", self.load(session)[:4], before, "what is refused prunes nothing")
        for _ in range(2):
            claim = "what is pruned keeps its version, id and time"
            self.equal("rewrites", self.store.append(order)[:2], (6, False), "a rewrite may prune events")
            self.equal("rewrites", self.load(session)[:4], [*pruned, *before[2:]], claim)
        late = replace(order, rewrites=[before[0]])
        self.refuse(late, VersionConflictError, "rewrites", "of a pruned event")
        repeated = append_request(session, 6, [before[1]])
        self.refuse(repeated, ConfigurationError, "ids", "of a pruned event")
        self.equal("rewrites", self.load(session)[:4], [*pruned, *before[2:]], "a pruned event stays so")

    def check_paging(self) -> None:
        session = self.fill_session(7)
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
        state = {"deep": {"list": [1, 2.5, None, True]}}
        event = Event(id="mine", kind="note", time=1.5, data=data, state=state)
        self.store.append(append_request(session, 0, [event]))
        data["text"].append("changed later")
        got = self.load(session)[0]
        self.equal("plain_data", got.data, {"text": ["mine"]}, "what the caller changes later is not stored")
        self.equal("plain_data", got.state, event.state, "state comes back equal")
        columns = (got.time, got.kind, got.id, got.version)
        self.equal("plain_data", columns, (1.5, "note", "mine", 1), "columns come back")
        cast("dict[str, Any]", got.data)["text"].append("by a reader")
        again = self.load(session)[0].data
        self.equal("plain_data", again, {"text": ["mine"]}, "a reader changes its own copy")

    def check_texts(self) -> None:
        session = self.new_session("名前 'quoted\" %_\\ 👩")
        sent = [entry({"role": "user", "content": text, text[:50]: what}) for what, text in _TEXTS.items()]
        for at, event in enumerate(sent):
            self.store.append(append_request(session, at, [event]))
        for what, event, got in zip(_TEXTS, sent, self.load(session), strict=True):
            if got.data != event.data:
                fail("texts", f"{what} did not come back as it was")

    def check_isolation(self) -> None:
        one, other = self.new_session("s"), self.new_session("s%")
        self.append(one, 0, 2)
        self.append(other, 0, 3)
        counts = [len(self.load(one)), len(self.load(other))]
        self.equal("isolation", counts, [2, 3], "each has its own events")
        self.store.delete(other)
        self.equal("isolation", len(self.load(one)), 2, "deleting one leaves the other")

    def check_delete(self) -> None:
        session = self.fill_session(3)
        self.store.delete(session)
        self.equal("delete", self.load(session), [], "a deleted session has no events")
        self.store.delete(session)
        self.equal("delete", self.append(session, 0, 1).version, 1, "its name can be used again")
        self.equal("delete", len(self.load(session)), 1, "and nothing of the old is there")

    def check_sessions(self) -> None:
        made = sorted(self.fill_session(1) for _ in range(3))
        names = self.store.sessions()
        self.equal("sessions", names, sorted(names), "names are sorted")
        self.equal("sessions", [name for name in names if name in made], made, "every session is listed")
        self.store.delete(made[1])
        self.equal("sessions", made[1] in self.store.sessions(), False, "a deleted one is not")

    def check_damage(self, damage: Callable[[str, int], None]) -> None:
        session = self.fill_session(3)
        damage(session, 2)
        error = refusal(lambda: self.load(session), CorruptSessionError, "damage")
        self.equal("damage", (error.session, error.version), (session, 2), "the error names the event")
        rest = self.store.load(LoadRequest(session=session, before=2))
        self.equal("damage", [event.version for event in rest], [1], "what is before it can be read")
        whole = self.fill_session(2)
        damage(session, 3)
        if isinstance(self.store, NewestLoader):
            newest = self.store.load_newest([session, whole])
            told = isinstance(newest.get(session), CorruptSessionError)
            self.equal("damage", told, True, "load_newest returns the error of a damaged event")
            self.equal("damage", newest.get(whole), self.load(whole)[-1], "and the others' events")


def _check_handles(check: _Check, make_store: Callable[[], Store]) -> None:
    session = check.fill_session(2)
    other = _new_store(make_store)
    try:
        events = other.load(LoadRequest(session=session))
        check.equal("handles", events, check.load(session), "another handle reads what was written")
        other.append(append_request(session, 2, [note()]))
        check.equal("handles", len(check.load(session)), 3, "the first sees what another handle wrote")
        late = append_request(session, 2, [note()])
        check.refuse(late, VersionConflictError, "handles")
    finally:
        if other is not check.store:
            other.close()
    check.equal("handles", len(check.load(session)), 3, "closing another handle takes nothing away")


async def _async_part(check: _Check, make_store: Callable[[], Store]) -> None:
    store = _new_store(make_store)
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
    request = append_request(session, 0, [message])
    check.equal("asynchronous", (await store.aappend(request))[:2], (1, False), "aappend stores")
    check.equal("asynchronous", (await store.aappend(request))[:2], (1, True), "aappend knows a repeated one")
    loaded = await store.aload(LoadRequest(session=session))
    check.equal("asynchronous", loaded, check.load(session), "aload reads")
    found = await store.asearch(check.query(session, "otter"))
    check.equal("asynchronous", found, check.load(session), "asearch finds")
    check.equal("asynchronous", session in await store.asessions(), True, "asessions lists")
    if isinstance(store, NewestLoader):
        newest = await store.aload_newest([session])
        check.equal("asynchronous", dict(newest), {session: loaded[0]}, "aload_newest reads")
    stale = append_request(session, 0, [note()])
    try:
        await store.aappend(stale)
    except VersionConflictError as error:
        check.equal("asynchronous", error.actual_version, 1, "the conflict carries the version")
    else:
        fail("asynchronous", "a stale aappend was stored")
    await store.adelete(session)
    check.equal("asynchronous", await store.aload(LoadRequest(session=session)), [], "adelete removes")


# `Store.search`.


_STEP_CHARS = 64
_PICTURE = {"url": "data:image/png;base64,heronheron"}


def _messages(check: _Check) -> list[dict[str, Any]]:
    """Make the messages that are looked for."""
    wide, gap = check.wide, " " * 1_700 if check.has_steps else ""
    call = {"name": "find_heron", "arguments": f'{{"place": "r\\u00edo{gap}"}}'}
    return [
        {"role": "user", "content": wide("The heron stands in the river")},
        {"role": "user", "content": [{"type": "text", "text": wide("A HERON, and an otter")}]},
        {"role": "assistant", "tool_calls": [{"id": "otter", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "c1", "content": wide("北京今天天气晴朗")},
        {"role": "user", "content": wide("上海的天气 and the river otter")},
        {"role": "assistant", "content": wide("Straße, naïve, ﬁne, १२ नमस्ते")},
        {"role": "user", "content": [{"type": "image_url", "image_url": _PICTURE}]},
    ]


_QUERIES: tuple[tuple[str, list[int]], ...] = (
    ("heron", [2, 3, 1]),
    ("Herons!", [2, 3, 1]),
    ("otter", [2, 5]),
    ("otter river", [5, 2, 1]),
    ("天气", [4, 5]),
    ("北京", [4]),
    ("京北", []),
    ("晴", [4]),
    ("北京天气", [4, 5]),
    ("STRASSE", [6]),
    ("fine", [6]),
    ("नमस्ते", [6]),
    ("find_heron", [3, 2, 1]),
    ("río", [3]),
    ("user", []),
    ("c1", []),
    ("png", []),
    ("her", []),
    ("nowhere", []),
    ("", []),
    ('"heron" * OR', [2, 3, 1]),
)
"""What is asked, and the messages found, by BM25: of texts with the same words the shorter first."""

_APART = NEIGHBOR_REACHES[-1] + 1
"""So many versions lie between one message and the next, that none is found for what stands beside it."""

_BOOKKEEPING = ("usage", "recalled", "evicted", "fact")
"""Kinds of events that stand between a question and its answer, and are none."""


def check_search(check: _Check) -> None:
    """Ask for what is there and what is not, in a short session and at the end of a long one."""
    for before in (0, 700):
        session = check.new_session()
        others = [entry({"content": check.wide(f"filler number {at}")}) for at in range(before)]
        apart: list[Event] = []
        for message in _messages(check):
            apart += [note("heron"), note("天气"), *(note() for _ in range(_APART - 3)), entry(message)]
        check.store.append(append_request(session, 0, [*others, *apart, note("heron otter 天气")]))
        for text, places in _QUERIES:
            check.search(session, text, [before + _APART * place for place in places])
        _check_limits(check, session, before)
        _check_growth(check, session, before)
    other = check.fill_session(1)
    check.search(other, "heron", [])
    check.search(check.new_session(), "heron", [])
    _check_relevance(check)
    _check_neighbors(check)
    _check_common_words(check)


def _check_common_words(check: _Check) -> None:
    """One message has two words that very many have one by one: it is found, or what is left out is told."""
    session = check.new_session()
    texts = ["The heron and the otter", *("Heron by the long river", "Otter by the long river") * 1_001]
    check.store.append(append_request(session, 0, [entry({"content": one}) for one in texts]))
    found = check.store.search(check.query(session, "heron otter", limit=1))
    if not isinstance(found, Found) or found.complete is not False:
        check.equal(
            "search", [event.version for event in found], [1], "a search that does not say what it left out"
        )


def _check_neighbors(check: _Check) -> None:
    """What stands beside a hit is counted in messages: what else is written between two is no step."""
    session = check.new_session()
    texts = ("long ago", "hello", "Where does the heron sleep?", "In the reeds.", "Thanks", "bye")
    events: list[Event] = []
    for text in texts:
        events += [
            entry({"content": check.wide(text)}),
            *(replace(note("reeds"), kind=kind) for kind in _BOOKKEEPING),
        ]
    check.store.append(append_request(session, 0, events))
    found = [1 + (1 + len(_BOOKKEEPING)) * place for place in (2, 3, 1, 4, 0)]
    check.search(session, "heron", found)
    check.search(session, "heron", found[:2], limit=2)


def _check_relevance(check: _Check) -> None:
    """Rare words, often said words and short texts count more; what stands beside a hit is found with it."""
    session = check.new_session()
    texts = (
        "kite",
        "one two",
        "three",
        "The heron, a heron and no kite",
        "A heron, a crane and no kite",
        "four",
        "The kite, over a lake and a long way off, behind the hill",
        "five six seven",
    )
    said = [*(f"filler number {at}" for at in range(300)), *texts]
    check.store.append(append_request(session, 0, [entry({"content": check.wide(one)}) for one in said]))
    found = [304, 305, 303, 306, 302, 307]
    check.search(session, "Where are herons?", found)
    check.search(session, "herons", found[:3], limit=3)
    short_counts = [305, 301, 306, 304, 302, 300, 303, 307, 299, 308]
    long_counts = [301, 305, 302, 300, 306, 304, 303, 299, 307, 308]  # no text is below the floor of BM25
    check.search(session, "crane kite", long_counts if check.has_steps else short_counts)


def _check_limits(check: _Check, session: str, before: int) -> None:
    best = [before + _APART * place for place in (2, 3, 1)]
    for limit in (0, 1, 2):
        check.search(session, "heron", best[:limit], limit=limit)
    found = check.store.search(check.query(session, "heron", limit=1))
    check.equal("search", found, [check.load(session)[best[0] - 1]], "an event found is the event stored")
    terms = ("Heron", "her on", "\ud800", "a\0b", "", "heron", "heron")
    odd = check.store.search(SearchRequest(session=session, terms=terms, limit=9))
    check.equal("search", [event.version for event in odd], best, "terms nobody can have")


def _check_growth(check: _Check, session: str, before: int) -> None:
    """What was added since is found; what was rewritten is found by its new text only."""
    version = before + _APART * len(_messages(check)) + 1
    late = [*(note() for _ in range(_APART)), entry({"content": "late heron"})]
    check.store.append(append_request(session, version, late))
    version += len(late)
    check.search(session, "late", [version])
    stored = check.load(session)[before + _APART - 1]
    new = replace(stored, data={"message": {"role": "user", "content": "withdrawn"}})
    check.store.append(append_request(session, version, [note()], rewrites=[new]))
    check.search(session, "stands", [])
    check.search(session, "withdrawn", [before + _APART])
    for word, gone in (("once", "withdrawn"), ("twice", "once")):
        new = replace(stored, data={"message": {"role": "user", "content": word}})
        check.store.append(append_request(session, version + 1, [], rewrites=[new]))
        check.search(session, gone, [])
        check.search(session, word, [before + _APART])
    check.search(session, "heron", [version, before + 2 * _APART, before + 3 * _APART])
    pruned = [
        replace(check.load(session)[at - 1], kind="pruned", data={}, state={})
        for at in (before + _APART, version)
    ]
    check.store.append(append_request(session, version + 1, [], rewrites=pruned))
    check.search(session, "twice", [])
    check.search(session, "late", [])
    check.search(session, "heron", [before + 2 * _APART, before + 3 * _APART])


# What was deleted: who still means it changes nothing and reads nothing.


_RULE = "incarnation"


def _requests(session: str, deleted: str, versions: int, again: Event) -> list[AppendRequest]:
    """Write what somebody may still ask for who read a session of so many events before it was deleted."""
    base = append_request(session, versions, [entry({"content": "late"})], incarnation=deleted)
    return [
        base,
        append_request(session, versions - 1, [note()], incarnation=deleted),
        append_request(session, versions, [again], incarnation=deleted),
        append_request(session, versions, [note()], rewrites=[again], incarnation=deleted),
    ]


def check_incarnations(check: _Check) -> None:
    """Delete a session, begin it anew with the very same events, and ask for the one that was deleted."""
    session = check.new_session()
    messages = [entry({"content": f"a heron {at}"}) for at in range(3)]
    begin = append_request(session, 0, messages)
    first = check.store.append(begin).incarnation
    _check_named(check, session, first)
    if check.store.append(begin).incarnation != first:
        fail(_RULE, "a repeated append says another incarnation than the first")
    own = append_request(session, 3, [note()], incarnation=first)
    check.equal(_RULE, check.store.append(own)[:2], (4, False), "who means the one that is there may add")
    newest = check.load(session)[0]

    check.store.delete(session, incarnation=first)
    check.store.delete(session, incarnation=first)  # as after an answer that was lost
    _check_refused(check, session, first, _requests(session, first, 4, newest))
    check.equal(_RULE, check.load(session), [], "a late writer begins no session")

    again = append_request(session, 0, [*messages, note()])
    second = check.store.append(again).incarnation
    if second == first:
        fail(_RULE, f"a session that was deleted and begun anew has the incarnation it had, {first!r:.80}")
    _check_named(check, session, second)
    stored = check.load(session)
    _check_refused(check, session, first, _requests(session, first, 4, stored[0]))
    late = partial(check.store.delete, session, incarnation=first)
    refusal(late, SessionDeletedError, _RULE, "a late deletion")
    check.equal(_RULE, check.load(session), stored, "a late writer changes nothing of what is there now")
    check.store.delete(session, incarnation=second)
    check.equal(_RULE, check.load(session), [], "who means the one that is there may delete it")


def _check_named(check: _Check, session: str, incarnation: str) -> None:
    if not incarnation:
        fail(_RULE, "an append answers no incarnation")
    newest = LoadRequest(session=session, limit=1, newest_first=True, incarnation=incarnation)
    one = LoadRequest(session=session, ids=(check.load(session)[0].id,), incarnation=incarnation)
    query = check.query(session, "heron")
    asked = SearchRequest(session=session, terms=query.terms, limit=9, incarnation=incarnation)
    reads = {
        "load": check.store.load(newest),
        "load by ids": check.store.load(one),
        "search": check.store.search(asked),
    }
    for what, events in reads.items():
        said = {event.incarnation for event in events}
        check.equal(_RULE, said, {incarnation}, f"events of {what} say the incarnation that append answered")


def _check_refused(check: _Check, session: str, deleted: str, appends: list[AppendRequest]) -> None:
    for request in appends:
        error = check.refuse(request, SessionDeletedError, _RULE, "a late append")
        check.equal(_RULE, error.session, session, "the error names the session")
    terms = check.query(session, "heron").terms
    reads = (
        LoadRequest(session=session, incarnation=deleted),
        LoadRequest(session=session, limit=1, newest_first=True, incarnation=deleted),
        LoadRequest(session=session, ids=("nobody",), incarnation=deleted),
    )
    for read in reads:
        refusal(partial(check.store.load, read), SessionDeletedError, _RULE, "a late load")
    search = SearchRequest(session=session, terms=terms, limit=9, incarnation=deleted)
    refusal(partial(check.store.search, search), SessionDeletedError, _RULE, "a late search")


async def acheck_incarnations(check: _Check, store: Store) -> None:
    """Ask for a session that was deleted, in the forms for asyncio."""
    session = check.new_session()
    begin = append_request(session, 0, [entry({"content": "a heron"})])
    deleted = (await store.aappend(begin)).incarnation
    await store.adelete(session, incarnation=deleted)
    await store.aappend(append_request(session, 0, [note()]))
    late = append_request(session, 1, [note()], incarnation=deleted)
    search = SearchRequest(session=session, terms=("heron",), limit=9, incarnation=deleted)
    for what, call in (
        ("aappend", partial(store.aappend, late)),
        ("aload", partial(store.aload, LoadRequest(session=session, incarnation=deleted))),
        ("asearch", partial(store.asearch, search)),
        ("adelete", partial(store.adelete, session, incarnation=deleted)),
    ):
        try:
            await call()
        except SessionDeletedError:
            continue
        fail(_RULE, f"{what} answered, though the session it meant was deleted")
    check.equal(_RULE, len(check.load(session)), 1, "a late task changes nothing of what is there now")


# Many writers at once.


_WRITERS = 8
_EACH = 5
_PATIENT = Retry(attempts=500, first_seconds=0.002, max_seconds=0.1)


def check_newest(check: _Check) -> None:
    """Newest events of many sessions, where a store reads them at once."""
    if not isinstance(check.store, NewestLoader):
        return
    names = [check.fill_session(count) for count in (1, 3)]
    deleted = check.fill_session(2)
    check.store.delete(deleted)
    newest = check.store.load_newest([*names, deleted, check.new_session()])
    wanted = {name: check.load(name)[-1] for name in names}
    check.equal("newest", dict(newest), wanted, "load_newest reads newest events")
    read = [event.incarnation for event in map(newest.get, names) if isinstance(event, Event)]
    check.equal("newest", read, [event.incarnation for event in wanted.values()], "and says of which session")
    check.equal("newest", dict(check.store.load_newest([])), {}, "nothing is read of no session")


def check_owners(check: _Check) -> None:
    """Lists by labels, in pages; export, expiry and deletion of what is an owner's."""
    owner, store = check.new_session(), check.store
    names = sorted(check.new_session() for _ in range(5))
    for at, name in enumerate(names):
        events = [replace(entry({"content": "text"}), time=10.0 * at)]
        labels = Labels(owner=owner, metadata={"even": at % 2 == 0, "at": at}, ttl=100.0 if at < 2 else None)
        store.append(append_request(name, 0, events, labels=labels))
    pages, after = list[list[str]](), None
    while not pages or after is not None:
        page = store.sessions(owner=owner, limit=2, after=after)
        pages, after = [*pages, [*page]], page.next
    check.equal("owners", pages, [names[:2], names[2:4], names[4:]], "pages are in the order of names")
    listed = store.sessions(owner=owner, metadata={"even": True})
    check.equal("owners", listed, names[::2], "metadata is a condition")
    check.equal("owners", store.sessions(owner=owner, metadata={"even": 1}), [], "True is not 1")
    check.equal("owners", store.sessions(owner=owner, prefix=names[3]), [names[3]], "a prefix is a condition")
    check.equal("owners", store.sessions(owner=owner, prefix="%"), [], "a prefix is no pattern")
    used = store.sessions(owner=owner, used_after=0.0, used_before=40.0)
    check.equal("owners", used, names[1:4], "times are conditions, and both ends are outside")
    check.equal("owners", [one.used for one in used], [10.0, 20.0, 30.0], "an entry says when it was used")
    lines = [*store.export(owner=owner)]
    check.equal("owners", len(lines), 10, "an export has a line for each event, and one for each session")
    rest = store.export(owner=owner, after=json.loads(lines[3])["at"])
    check.equal("owners", [*rest], lines[4:], "an export goes on behind a line")
    stale = append_request(names[0], 5, [note()], labels=Labels(owner="another"))
    check.refuse(stale, VersionConflictError, "owners")
    check.equal("owners", store.sessions(owner=owner), names, "labels of a refused append are not stored")
    store.append(append_request(names[1], 1, [replace(note(), time=50.0)]))
    gone = store.expire(now=100.0)
    check.equal("owners", (gone.sessions, gone.messages), (1, 1), "what was used again lives on")
    check.equal("owners", store.sessions(owner=owner), names[1:], "what has ended is gone")
    gone = store.delete(owner=owner)
    check.equal("owners", (gone.sessions, gone.messages, gone.left), (4, 4, {}), "the receipt says all")
    check.equal("owners", store.sessions(owner=owner), [], "a deleted owner has no sessions")
    check.equal("owners", check.load(names[3]), [], "and their events are gone")


def check_threads(check: _Check) -> None:
    """Append from many threads to one session through one handle; all of it is there, once, in order."""
    session = check.new_session()

    def write(writer: int) -> None:
        for at in range(_EACH):
            event = note(f"{writer}/{at}")

            def attempt(event: Any = event) -> None:
                newest = check.store.load(LoadRequest(session=session, limit=1, newest_first=True))
                version = newest[0].version if newest else 0
                check.store.append(append_request(session, version, [event]))

            _PATIENT.call(attempt)

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(_WRITERS)))
    _check_whole(check, session, "threads")


async def check_tasks(check: _Check, store: Store) -> None:
    """Append from many tasks to one session, and from as many to one each."""
    session = check.new_session()

    async def write(writer: int) -> None:
        for at in range(_EACH):
            event = note(f"{writer}/{at}")

            async def attempt(event: Any = event) -> None:
                newest = await store.aload(LoadRequest(session=session, limit=1, newest_first=True))
                version = newest[0].version if newest else 0
                await store.aappend(append_request(session, version, [event]))

            await _PATIENT.acall(attempt)

    await asyncio.gather(*map(write, range(_WRITERS)))
    _check_whole(check, session, "tasks")
    own = [check.new_session() for _ in range(_WRITERS)]
    await asyncio.gather(*(store.aappend(append_request(one, 0, [note(), note()])) for one in own))
    check.equal("tasks", [len(check.load(one)) for one in own], [2] * _WRITERS, "each task has its session")


def _check_whole(check: _Check, session: str, rule: str) -> None:
    events = check.load(session)
    check.equal(rule, [event.version for event in events], list(range(1, _WRITERS * _EACH + 1)), "no gap")
    texts = [str(event.data["text"]) for event in events]
    wanted = sorted(f"{writer}/{at}" for writer in range(_WRITERS) for at in range(_EACH))
    check.equal(rule, sorted(texts), wanted, "nothing is lost or stored twice")
    for writer in range(_WRITERS):
        own = [text for text in texts if text.startswith(f"{writer}/")]
        check.equal(rule, own, sorted(own), "each writer's events stand in its order")
