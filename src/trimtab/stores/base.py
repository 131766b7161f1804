"""What every store promises: requests, the `Store` protocol, what stores have in common, and `Retry`.

A store keeps one log of events a session, and nothing else. Versions count the events of a session
from 1 without a gap; the version of a session is that of its newest event, 0 if it has none.

Four rules hold for every store:

* `append` is one atomic step. It is given the version it builds on; if another writer was faster it
  changes nothing and raises `VersionConflictError` with both versions.
* `append` is idempotent by the id of its first event. Asked again after a lost answer it stores nothing
  twice, and says so.
* What was acknowledged is there when the store is opened again.
* A session has an incarnation: a text that the store makes when its first event is stored, and never again.
  Every event read says it, and every request may say which one it means. Where that one was deleted the
  request changes nothing, reads nothing, and raises `SessionDeletedError`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeVar, runtime_checkable

from trimtab._shared.checks import check_whole
from trimtab._shared.steps import Steps, arun, run
from trimtab.errors import ConfigurationError, CopyError, StoreUnavailableError, VersionConflictError

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
        rewrites: New data of stored events, by version; their id, kind and time do not change. For redaction
            and new keys only.
        incarnation: Which of the sessions with this name it is based on (its events say); None: the current
            one.
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
    """New data of stored events, by version; their id, kind and time do not change. For redaction and new
    keys only.
    """
    incarnation: str | None = None
    """Which of the sessions with this name it is based on (its events say); None: the current one."""
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

    def delete(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Remove a session; no byte of it remains where the store keeps its data.

        Args:
            session: Its name.
            incarnation: Which of the sessions with that name; None: the current one.

        Raises:
            SessionDeletedError: Another session has its name now; it is not changed.
        """
        ...

    def sessions(self) -> list[str]:
        """List the names of all sessions, sorted."""
        ...

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

    async def adelete(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Remove a session; see `delete`."""
        ...

    async def asessions(self) -> list[str]:
        """List the names of all sessions; see `sessions`."""
        ...

    async def aclose(self) -> None:
        """Close connections; see `close`."""
        ...


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


class ThreadedStore(ClosedStore):
    """Adds asyncio forms to a synchronous store: each call runs in a thread."""

    async def aappend(self, request: AppendRequest, /) -> Appended:
        return await _in_thread(self.append, request)

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        return await _in_thread(self.load, request)

    async def asearch(self, request: SearchRequest, /) -> list[Event]:
        return await _in_thread(self.search, request)

    async def adelete(self, session: str, /, *, incarnation: str | None = None) -> None:
        await _in_thread(partial(self.delete, session, incarnation=incarnation))

    async def asessions(self) -> list[str]:
        return await _in_thread(self.sessions)

    async def aclose(self) -> None:
        await _in_thread(self.close)


async def _in_thread(call: Callable[..., T], *arguments: Any) -> T:
    import asyncio  # takes longer to import than all of trimtab.stores

    return await asyncio.to_thread(call, *arguments)


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
