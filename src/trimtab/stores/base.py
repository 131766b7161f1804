"""What every store promises: requests, the `Store` protocol, what stores have in common, and `Retry`.

A store keeps one log of events a session, and nothing else. Versions count the events of a session
from 1 without a gap; the version of a session is that of its newest event, 0 if it has none.

Five rules hold for every store:

* `append` is one atomic step. It is given the version it builds on; if another writer was faster it
  changes nothing and raises `VersionConflictError` with both versions.
* `append` is idempotent by the id of its first event. Asked again after a lost answer it stores nothing
  twice, and says so.
* What was acknowledged is there when the store is opened again.
* A session has labels: its owner, metadata and time to live. They are stored by the append that says them.
* A session has an incarnation: a text that the store makes when its first event is stored, and never again.
  Every event read says it, and every request may say which one it means. Where that one was deleted the
  request changes nothing, reads nothing, and raises `SessionDeletedError`.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeVar, runtime_checkable

from trimtab._shared.checks import check_whole
from trimtab._shared.steps import Steps, arun, run
from trimtab.errors import (
    ConfigurationError,
    CopyError,
    CorruptSessionError,
    EncryptionKeyError,
    SessionDeletedError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.stores.labels import Labels, Receipt, SessionEntry, Sessions, check_owner, is_text, labels_in
from trimtab.stores.lists import EXPIRE_LIMIT

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of a session's log: a message, or a decision.

    Args:
        id: Unique in its session.
        kind: Its kind: "message", "summary", "evicted"…; `trimtab.session` lists them.
        time: When it was made, in seconds since 1970 (UTC).
        data: Its content, as plain data.
        state: The state of the session after it: small, whatever the length of the log.
        version: Its place in the log, from 1; 0 if it is not stored.
        incarnation: Which of the sessions with its name it was read from; empty if it is not stored.
    """

    id: str
    """Unique in its session."""
    kind: str
    """Its kind: "message", "summary", "evicted"…; `trimtab.session` lists them."""
    time: float
    """When it was made, in seconds since 1970 (UTC)."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Its content, as plain data."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The state of the session after it: small, whatever the length of the log."""
    version: int = 0
    """Its place in the log, from 1; 0 if it is not stored."""
    incarnation: str = field(default="", compare=False)
    """Which of the sessions with its name it was read from; empty if it is not stored."""

    @property
    def message(self) -> Any:
        """The message of a "message" event; None for every other event."""
        return self.data.get("message")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRequest:
    """Events to add to a store in one atomic step.

    Args:
        session: Id of the session.
        expected_version: The version on which this is based.
        events: The events to add; the store gives them the versions after the expected one, in order. If
            there are none, the request only rewrites, and the session keeps its version.
        rewrites: New data of stored events, by version. Their id and time do not change; their kind may only
            change to "pruned", and then stays so. For redaction, pruning and new keys only.
        incarnation: Which of the sessions with this name it is based on (its events say); None: the current
            one.
        labels: Whose the session is from now on, its metadata and its time to live. None: what its events
            say, and if they say nothing, what is stored.
        erase: Whether the files are cleaned of rewritten data before the store answers. False: by the next
            request or deletion that cleans them.
    """

    session: str
    expected_version: int
    """The version on which this is based."""
    events: Sequence[Event]
    """The events to add; the store gives them the versions after the expected one, in order. If there are
    none, the request only rewrites, and the session keeps its version.
    """
    rewrites: Sequence[Event] = ()
    """New data of stored events, by version. Their id and time do not change; their kind may only change to
    "pruned", and then stays so. For redaction, pruning and new keys only.
    """
    incarnation: str | None = None
    """Which of the sessions with this name it is based on (its events say); None: the current one."""
    labels: Labels | None = None
    """Whose the session is from now on, its metadata and its time to live. None: what its events say, and if
    they say nothing, what is stored.
    """
    erase: bool = True
    """Whether the files are cleaned of rewritten data before the store answers. False: by the next request or
    deletion that cleans them.
    """

    def __post_init__(self) -> None:
        if not self.events and not self.rewrites:
            raise ConfigurationError(f"session {self.session!r}: no event to append")

    def numbered(self) -> list[Event]:
        """Return the events with their new versions."""
        first = self.expected_version + 1
        return [replace(event, version=first + at) for at, event in enumerate(self.events)]

    def new_labels(self) -> Labels | None:
        """Return the labels that it sets; None: it sets none."""
        return self.labels or labels_in((event.kind, event.data) for event in self.events)

    @property
    def used(self) -> float | None:
        """The time of its newest event, which is that of use; None: it only rewrites."""
        return float(self.events[-1].time) if self.events else None


class Appended(NamedTuple):
    """The answer of a store to an append.

    Args:
        version: The current version of the session.
        duplicate: True if the first event was stored before, and so all of them: nothing was added.
        incarnation: Which of the sessions with this name it was stored in.
    """

    version: int
    """The current version of the session."""
    duplicate: bool = False
    """True if the first event was stored before, and so all of them: nothing was added."""
    incarnation: str = ""
    """Which of the sessions with this name it was stored in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Which events of a session to read; by default all, oldest first.

    Args:
        session: Id of the session.
        after: Only versions above this.
        before: Only versions below this.
        limit: The most to return.
        newest_first: Whether to begin with the newest.
        ids: Only events with these ids.
        incarnation: Which of the sessions with this name to read; None: the current one.
    """

    session: str
    after: int = 0
    """Only versions above this."""
    before: int | None = None
    """Only versions below this."""
    limit: int | None = None
    """The most to return."""
    newest_first: bool = False
    """Whether to begin with the newest."""
    ids: tuple[str, ...] | None = None
    """Only events with these ids."""
    incarnation: str | None = None
    """Which of the sessions with this name to read; None: the current one."""

    def __post_init__(self) -> None:
        if self.limit is not None:
            object.__setattr__(self, "limit", check_whole("limit", self.limit, least=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search among the messages and the facts of a session.

    Args:
        session: Id of the session.
        terms: The terms, from `trimtab.relevance.question_terms`: the search finds messages with any of them,
            and the two nearest messages on either side.
        limit: The most to return.
        incarnation: Which of the sessions with this name to search; None: the current one.
    """

    session: str
    terms: tuple[str, ...]
    """The terms, from `trimtab.relevance.question_terms`: the search finds messages with any of them, and the
    two nearest messages on either side.
    """
    limit: int
    """The most to return."""
    incarnation: str | None = None
    """Which of the sessions with this name to search; None: the current one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", check_whole("limit", self.limit, least=0))


class Found(list[Event]):
    """The events that a search found, best first, and how far the search went.

    Args:
        events: The events that were found.
        since: From this version on, every message with a word of the query was read; of older messages, those
            with a rarer word. 1: all were read; None: the store does not say.

    Example:
        >>> Found([], since=1).complete, Found([], since=15_203).complete
        (True, False)
    """

    __slots__ = ("since",)

    def __init__(self, events: Iterable[Event] = (), /, *, since: int | None = 1) -> None:
        super().__init__(events)
        self.since = since
        """From this version on, every message with a word of the query was read; of older messages, those
        with a rarer word. 1: all were read; None: the store does not say.
        """

    @property
    def complete(self) -> bool | None:
        """Whether every message with a word of the query was read; None: unknown."""
        return None if self.since is None else self.since <= 1


@runtime_checkable
class Store(Protocol):
    """Keeps the logs of sessions.

    `trimtab.testing.check_store` runs the contract on a store of your own.

    Every method has a form for asyncio, prefixed `a`. Temporary failures of the driver are
    `StoreUnavailableError`, and a retry is safe; data that cannot be read is `CorruptSessionError`.
    """

    def append(self, request: AppendRequest, /) -> Appended:
        """Add events in one step.

        Args:
            request: The session, its expected version, and the events.

        Raises:
            VersionConflictError: The session no longer has the expected version; nothing was changed.
            SessionDeletedError: That session was deleted; nothing was changed.
            ConfigurationError: An id is taken by another event.
            StoreUnavailableError: The store may not have stored the events; ask again.
        """
        ...

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read events.

        Args:
            request: The session, and which of its events to read.

        Raises:
            SessionDeletedError: The session was deleted meanwhile.
            CorruptSessionError: A row is missing, was changed by hand or cannot be read.
            StoreUnavailableError: Ask again.
        """
        ...

    def search(self, request: SearchRequest, /) -> list[Event]:
        """Find messages with the terms, and their neighbors, best first.

        The score is BM25 over the texts of the session's messages, as in `trimtab.relevance.Index`: rare
        terms count more, long texts less. A message next to another has at least half of its score, the one
        after that a quarter, and without a term of its own it comes after that message. Other events do not
        count as steps, up to 64 versions, and a fact has no neighbors. Of equal scores, the newer message
        comes first.

        If a term is in more than 1,000 messages, only the newest 1,000 are read; with two or more such terms,
        20,000 in equal shares. The rarity of the term is then that in the versions since the oldest of these.
        A `Found` says how far the search went; for a store that returns a plain list, the session reports
        that as unknown.

        Args:
            request: The session, the terms, and the number of messages.
        """
        ...

    def delete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        """Remove a session, or all of an owner.

        No byte of it remains where the store keeps its data. Of an owner, every session that is there when
        the order begins is removed, each at once or not at all. A `Session` that still writes to one gets a
        `SessionDeletedError`. One that begins meanwhile is a new session, and may remain. It is safe to
        repeat.

        Args:
            session: Its name.
            owner: In place of a name: whose sessions.
            incarnation: Which of the sessions with that name; None: the current one.

        Returns:
            What is gone, and what could not be.

        Raises:
            SessionDeletedError: Another session has its name now; it is not changed.
        """
        ...

    def sessions(
        self,
        *,
        owner: str | None = None,
        prefix: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        used_before: float | None = None,
        used_after: float | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sessions:
        """List sessions that meet every condition.

        An entry is the name of a session, and says what the store knows of it. They are in the order of their
        names. With `used_before` or `used_after` they are in the order of use, the oldest first: a session
        that is used while pages are read moves to the end, so none is left out, and one that was shown may be
        shown again.

        Args:
            owner: Only those of this owner.
            prefix: Only names that begin so.
            metadata: Only those with all these values; 1 and 1.0 are the same, True is neither.
            used_before: Only those whose newest event is older than this, in seconds since 1970.
            used_after: Only those whose newest event is newer than this.
            limit: The most to return; None: all.
            after: The `next` of the page before.

        Example:
            >>> from trimtab.stores import MemoryStore
            >>> store = MemoryStore()
            >>> for name in ("chat-1", "chat-2"):
            ...     event = Event(id="e1", kind="message", time=0.0)
            ...     labels = Labels(owner="ada")
            ...     request = AppendRequest(session=name, expected_version=0, events=[event], labels=labels)
            ...     _ = store.append(request)
            >>> page = store.sessions(owner="ada", limit=1)
            >>> page, store.sessions(owner="ada", limit=1, after=page.next)
            (['chat-1'], ['chat-2'])
        """
        ...

    def expire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        """Remove sessions whose time to live is over since their newest event.

        Several processes may do this at once: each session is counted in one receipt. One that is used
        before it is removed lives on.

        Args:
            now: The time, in seconds since 1970; None: that of this machine.
            limit: The most to remove; `more` of the receipt tells whether there may be others.

        Raises:
            ConfigurationError: The store does not know labels.
        """
        raise without_labels(self, "expire")

    def export(
        self, *, owner: str | None = None, prefix: str | None = None, after: str | None = None
    ) -> Iterator[str]:
        """Write sessions as lines of JSON, event by event.

        The memory it needs has a bound. Each event is a line with its `session`. Behind the last one of a
        session is a line with `events`, their number, and the labels; or with `error` where the session was
        deleted meanwhile, got another owner, or cannot be read further. Every line has `at`: pass that of the
        last line you have as `after` to go on behind it.

        Args:
            owner: Only sessions of this owner.
            prefix: Only sessions whose names begin so.
            after: Go on behind the line with this `at`.

        Raises:
            ConfigurationError: The store does not know labels.
        """
        require_labels(self)
        export = _Export(owner, prefix, after)
        return iter(_lines(export, lambda ask: ask.now(self)))

    def close(self) -> None:
        """Close connections; a store may be closed twice."""
        ...

    async def aappend(self, request: AppendRequest, /) -> Appended:
        """Add events in one step; see `append`."""
        ...

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        """Read events; see `load`."""
        ...

    async def asearch(self, request: SearchRequest, /) -> list[Event]:
        """Find messages; see `search`."""
        ...

    async def adelete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        """Remove a session, or all of an owner; see `delete`."""
        ...

    async def asessions(
        self,
        *,
        owner: str | None = None,
        prefix: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        used_before: float | None = None,
        used_after: float | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sessions:
        """List sessions; see `sessions`."""
        ...

    async def aexpire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        """Remove sessions whose time to live is over; see `expire`."""
        raise without_labels(self, "aexpire")

    def aexport(
        self, *, owner: str | None = None, prefix: str | None = None, after: str | None = None
    ) -> AsyncIterator[str]:
        """Write sessions as lines of JSON; see `export`."""
        require_labels(self)
        return _alines(_Export(owner, prefix, after), self)

    async def aclose(self) -> None:
        """Close connections; see `close`."""
        ...


_METHODS = [name for name in vars(Store) if not name.startswith("_")]


def missing_methods(given: object, /) -> str:
    """Say which methods of `Store` something lacks that has some of them; empty if it has none."""
    has = dir(given)
    lacks = [name for name in _METHODS if name not in has]
    if len(lacks) > len(_METHODS) / 2:
        return ""
    return f": it lacks {', '.join(lacks)}; derive it from trimtab.stores.Store"


@runtime_checkable
class StoreAround(Protocol):
    """A store that keeps its sessions in another, as one that encrypts them."""

    @property
    def keeps_labels_in(self) -> Store: ...


@runtime_checkable
class CipherStore(Protocol):
    """A store that says whether it encrypts; one of a user's may say so, too."""

    @property
    def encrypts(self) -> bool: ...


def encrypts(store: Store, /) -> bool:
    """Tell whether a store keeps its sessions encrypted."""
    return isinstance(store, CipherStore) and store.encrypts


def knows_labels(store: Store, /) -> bool:
    """Tell whether a store can list by labels; one that was written before stores knew them cannot."""
    if isinstance(store, StoreAround):
        store = store.keeps_labels_in
    taken = signature(store.sessions).parameters
    return "owner" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())


def require_labels(store: Store, /) -> None:
    """Refuse a store that would drop labels in silence."""
    if not knows_labels(store):
        raise without_labels(store, "sessions")


def without_labels(store: object, method: str, /) -> ConfigurationError:
    """Make the error of a store that does not know labels."""
    return ConfigurationError(
        f"{type(store).__name__} does not know owner=, metadata= and ttl=: its {method}() is not that"
        " of trimtab.stores.Store. Write expire, aexpire, sessions(owner=, …) and delete(owner=) as `Store`"
        " says, and test them with trimtab.testing.check_store"
    )


class ClosedStore(Store):
    """Closes a store at the end of a `with` or `async with` block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: it holds locks and connections.

        Raises:
            CopyError: Always, with what to write instead.
        """
        raise CopyError(
            f"a {type(self).__name__} has locks and connections, and cannot be copied or pickled: open one"
            " where it is used, for example with open_store('chats.db'); copy_session(store, target, id)"
            " copies a session"
        )


# Sessions as lines.


class _Ask(NamedTuple):
    """A call of a store, for both colours."""

    load: LoadRequest | None = None
    listed: Mapping[str, Any] | None = None

    def now(self, store: Store) -> Any:
        return store.load(self.load) if self.load is not None else store.sessions(**(self.listed or {}))

    async def later(self, store: Store) -> Any:
        if self.load is not None:
            return await store.aload(self.load)
        return await store.asessions(**(self.listed or {}))


_EXPORT_EVENTS = 500
"""Events read at a time."""


class _Export:
    """Sessions that become lines, and how far that is."""

    def __init__(self, owner: str | None, prefix: str | None, after: str | None) -> None:
        if owner is not None:
            check_owner(owner)
        self._asked = {"owner": owner, "prefix": prefix}
        self._entry: SessionEntry | None = None
        self._version = 0
        self._begun = _place_of(after)
        self._after: str | None = None
        self._is_last = False
        self._waiting: list[SessionEntry] = []

    def page(self) -> Steps[list[str] | None]:
        """Write the next lines; None where nothing more is."""
        begun, self._begun = self._begun, None
        if begun is not None:
            return (yield from self._go_on(*begun))
        if self._entry is None and not self._waiting:
            if self._is_last:
                return None
            listed = {**self._asked, "limit": _EXPORT_EVENTS, "after": self._after}
            page: Sessions = yield _Ask(listed=listed)
            self._after, self._is_last, self._waiting = page.next, page.next is None, page[::-1]
            return []
        if self._entry is None:
            self._entry, self._version = self._waiting.pop(), 0
        return (yield from self._events(self._entry))

    def _go_on(self, name: str, version: int | None, incarnation: str) -> Steps[list[str]]:
        """Go on behind a line; a session that was begun anew since then is written from its beginning."""
        self._after = json.dumps([name])
        if version is None:
            return []
        # of whatever owner: what is not theirs any more was not deleted
        there: Sessions = yield _Ask(listed={"prefix": name, "limit": 1})
        entry = there[0] if there and there[0] == name else None
        same = entry is not None and entry.incarnation == incarnation
        if entry is not None and self._asked["owner"] in (None, entry.owner):
            if same:
                self._entry, self._version = entry, version
                return []
            self._waiting = [entry]  # it was begun anew
        gone = SessionEntry(name, incarnation=incarnation)
        return [_line(gone, None, session=name, error=_MOVED if same else _DELETED)]

    def _events(self, entry: SessionEntry) -> Steps[list[str]]:
        name, after, meant = str(entry), self._version, entry.incarnation or None
        request = LoadRequest(session=name, after=after, limit=_EXPORT_EVENTS, incarnation=meant)
        events, error = yield from _readable(request)
        lines = [_line(entry, event.version, session=name, **_columns(event)) for event in events]
        self._version += len(events)
        if error is not None:
            self._entry = None
            lines.append(_line(entry, None, session=name, error=error))
        elif len(events) < _EXPORT_EVENTS:
            self._entry = None
            labels = {"owner": entry.owner, "metadata": entry.metadata, "ttl": entry.ttl}
            lines.append(_line(entry, None, session=name, events=self._version, **labels))
        return lines


_DELETED = "it was deleted while it was exported"
_MOVED = "it got another owner while it was exported"


def _readable(request: LoadRequest) -> Steps[tuple[list[Event], str | None]]:
    """Read events as far as they can be read, and say why the others cannot."""
    try:
        return (yield _Ask(load=request)), None
    except SessionDeletedError:
        return [], _DELETED
    except CorruptSessionError as error:
        events: list[Event] = []
        if request.before is None and (error.version or 0) > request.after + 1:
            events, _ = yield from _readable(replace(request, before=error.version))
        return events, f"it cannot be read: {error}"
    except EncryptionKeyError as error:
        return [], f"it cannot be read: {error}"


def _columns(event: Event) -> dict[str, Any]:
    told = {"version": event.version, "id": event.id, "kind": event.kind, "time": event.time}
    return {**told, "data": event.data, "state": event.state}


def _line(entry: SessionEntry, at_version: int | None, /, **told: Any) -> str:
    """Write a line, and where it stands; it has no newline of its own."""
    at = json.dumps([str(entry), at_version, entry.incarnation])
    return json.dumps({**told, "at": at}, separators=(",", ":"))


def _place_of(after: str | None) -> tuple[str, int | None, str] | None:
    if after is None:
        return None
    try:
        name, version, incarnation = json.loads(after)
        if is_text(name) and isinstance(incarnation, str) and (version is None or type(version) is int):
            return name, version, incarnation
    except (TypeError, ValueError, RecursionError):
        pass
    raise ConfigurationError(
        f"after must be what an exported line has as `at`, not {after!r:.80}", argument="after"
    )


def _lines(export: _Export, answer: Callable[[_Ask], Any]) -> Iterator[str]:
    while (lines := run(export.page(), answer)) is not None:
        yield from lines


async def _alines(export: _Export, store: Store) -> AsyncIterator[str]:
    while (lines := await arun(export.page(), lambda ask: ask.later(store))) is not None:
        for line in lines:
            yield line


async def _sleep(seconds: float) -> None:
    import asyncio  # takes longer to import than all of trimtab.stores

    await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Calls again after a temporary failure, with longer waits each time.

    Temporary failures are `VersionConflictError` and `StoreUnavailableError`; the last one is raised. The
    function must read its input anew each time: after a conflict the old version is stale. Before attempt n +
    1 it waits for a random time, up to the smaller of `first_seconds * 2 ** (n - 1)` and `max_seconds`, so
    writers that collided once do not collide again.

    Args:
        attempts: Maximum number of calls, at least 1. Eight processes that appended to one session without a
            pause needed up to 25 calls on two busy cores. If a store is unavailable, the default waits about
            17 seconds before it raises.
        first_seconds: Maximum first wait.
        max_seconds: Maximum wait between two calls.
        random: Returns the share of the maximum wait to use, from 0 to 1.
        sleep: Waits for a number of seconds, for `call`.
        asleep: Waits for a number of seconds, for `acall`.

    Example:
        >>> Retry(attempts=3).call(lambda: "stored")
        'stored'
    """

    attempts: int = 40
    first_seconds: float = 0.01
    max_seconds: float = 1.0
    random: Callable[[], float] = field(default=random.random, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    asleep: Callable[[float], Awaitable[Any]] = field(default=_sleep, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attempts", check_whole("attempts", self.attempts, least=1))
        if not 0 <= self.first_seconds <= self.max_seconds:
            raise ConfigurationError(
                f"first_seconds must be 0 or more and at most max_seconds, not {self.first_seconds!r} and"
                f" {self.max_seconds!r}",
                argument="first_seconds",
            )

    def call(self, function: Callable[[], T], /) -> T:
        """Call a function until it succeeds.

        Args:
            function: Called without arguments.

        Raises:
            VersionConflictError: The last attempt failed with it; a note gives the number of attempts.
            StoreUnavailableError: The same.
        """
        sleep: Callable[[float], object] = self.sleep
        steps: Steps[T] = self._attempts(function)
        return run(steps, lambda ask: sleep(ask) if isinstance(ask, float) else ask())

    async def acall(self, function: Callable[[], Awaitable[T]], /) -> T:
        """Call an async function until it succeeds; see `call`.

        Args:
            function: Called without arguments.
        """
        steps: Steps[T] = self._attempts(function)
        return await arun(steps, lambda ask: self.asleep(ask) if isinstance(ask, float) else ask())

    def _attempts(self, function: Callable[[], object]) -> Steps[Any]:
        """Yield the function to be called, and between two calls the seconds to wait."""
        for attempt in range(1, self.attempts):
            try:
                return (yield function)
            except (VersionConflictError, StoreUnavailableError):
                # The exponent has an end, or a float would not hold it.
                longest = min(self.max_seconds, self.first_seconds * 2.0 ** min(attempt - 1, 64))
            yield float(self.random() * longest)
        try:
            return (yield function)
        except (VersionConflictError, StoreUnavailableError) as error:
            error.add_note(f"after {self.attempts} attempts")
            raise
