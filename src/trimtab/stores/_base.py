"""What every store promises: the `Store` protocol, its requests, and how an event is written down.

A store keeps one log of events a session, and nothing else. Versions count the events of a session
from 1 without a gap; the version of a session is that of its newest event, 0 if it has none.

Three rules hold for every store:

* `append` is one atomic step. It is given the version it builds on; if another writer was faster it
  changes nothing and raises `VersionConflictError` with both versions.
* `append` is idempotent by the id of its first event. Asked again after a lost answer it stores nothing
  twice, and says so.
* What was acknowledged is there when the store is opened again.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from trimtab.errors import ConfigurationError, CorruptSessionError, VersionConflictError

__all__ = ["AppendRequest", "Appended", "Event", "LoadRequest", "SearchRequest", "Store"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of a session's log: a message, or something that was decided."""

    id: str
    """Unique in its session."""
    kind: str
    """What it is: "message", "summary", "evicted"…; `trimtab.session` says which there are."""
    time: float
    """When it was made, in seconds since 1970 (UTC)."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What it says, as plain data."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """Where the session stands after it: small, whatever the length of the log."""
    version: int = 0
    """Its place in the log, from 1; 0 while it is not stored."""

    @property
    def message(self) -> Any:
        """The message of a "message" event; None for every other."""
        return self.data.get("message")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRequest:
    """What a store is asked to add, in one atomic step."""

    session: str
    expected_version: int
    """The version this was decided on."""
    events: Sequence[Event]
    """What to add, at least one; the store gives them the versions after the expected one, in order."""
    rewrites: Sequence[Event] = ()
    """Stored events whose data is replaced, by version; id, kind and time stay. For redaction only."""

    def __post_init__(self) -> None:
        if not self.events:
            raise ConfigurationError(f"session {self.session!r}: nothing to append")

    def numbered(self) -> list[Event]:
        """Return the events with the versions they get."""
        first = self.expected_version + 1
        return [replace(event, version=first + at) for at, event in enumerate(self.events)]


class Appended(NamedTuple):
    """What a store answers to an append."""

    version: int
    """The version of the session now."""
    duplicate: bool = False
    """True if the first event was stored before, and with it the others: nothing was added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Which events of a session to read; by default all of them, oldest first."""

    session: str
    after: int = 0
    """Only versions above this."""
    before: int | None = None
    """Only versions below this."""
    limit: int | None = None
    """At most so many."""
    newest_first: bool = False
    """Begin with the newest."""
    ids: tuple[str, ...] | None = None
    """Only events with these ids."""

    def __post_init__(self) -> None:
        if self.limit is not None:
            _check_limit(self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to look for among the messages of a session."""

    session: str
    terms: tuple[str, ...]
    """Words to find, as `query_terms` makes them of a text; a message with any of them is found."""
    limit: int
    """At most so many."""

    def __post_init__(self) -> None:
        _check_limit(self.limit)


def _check_limit(limit: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ConfigurationError(f"limit is a whole number of events, 0 or more, not {limit!r:.80}")


@runtime_checkable
class Store(Protocol):
    """Keeps the logs of sessions.

    `trimtab.testing.check_store` runs the contract on a store of your own.

    Every method has a form for asyncio, prefixed `a`. Failures of the driver that may pass are
    `StoreUnavailableError`, and asking again is safe; what cannot be read is `CorruptSessionError`.
    """

    def append(self, request: AppendRequest, /) -> Appended:
        """Add events in one step.

        Raises:
            VersionConflictError: The session is no longer at the version expected; nothing was changed.
            ConfigurationError: An id is taken by another event.
            StoreUnavailableError: It is not known to be stored; ask again.
        """
        ...

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read events.

        Raises:
            CorruptSessionError: A row is missing, was changed by hand or cannot be read.
            StoreUnavailableError: Ask again.
        """
        ...

    def search(self, request: SearchRequest, /) -> list[Event]:
        """Find messages with any of the terms.

        Those with more of the terms come first, newer before older where they have as many.
        """
        ...

    def delete(self, session: str, /) -> None:
        """Remove a session; no byte of it is left where the store keeps its data."""
        ...

    def sessions(self) -> list[str]:
        """List the names of all sessions, sorted."""
        ...

    def close(self) -> None:
        """Give back connections; a store may be closed twice."""
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

    async def adelete(self, session: str, /) -> None:
        """Remove a session; see `delete`."""
        ...

    async def asessions(self) -> list[str]:
        """List the names of all sessions; see `sessions`."""
        ...

    async def aclose(self) -> None:
        """Give back connections; see `close`."""
        ...


class ThreadedStore(ABC):
    """Gives a store that answers at once its forms for asyncio: each call runs in a thread."""

    @abstractmethod
    def append(self, request: AppendRequest, /) -> Appended:
        """Add events in one step; see `Store.append`."""

    @abstractmethod
    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read events; see `Store.load`."""

    @abstractmethod
    def search(self, request: SearchRequest, /) -> list[Event]:
        """Find messages with any of the terms; see `Store.search`."""

    @abstractmethod
    def delete(self, session: str, /) -> None:
        """Remove a session; see `Store.delete`."""

    @abstractmethod
    def sessions(self) -> list[str]:
        """List the names of all sessions, sorted."""

    @abstractmethod
    def close(self) -> None:
        """Give back connections; see `Store.close`."""

    async def aappend(self, request: AppendRequest, /) -> Appended:
        """Add events in one step; see `Store.append`."""
        return await _in_thread(self.append, request)

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        """Read events; see `Store.load`."""
        return await _in_thread(self.load, request)

    async def asearch(self, request: SearchRequest, /) -> list[Event]:
        """Find messages with any of the terms; see `Store.search`."""
        return await _in_thread(self.search, request)

    async def adelete(self, session: str, /) -> None:
        """Remove a session; see `Store.delete`."""
        await _in_thread(self.delete, session)

    async def asessions(self) -> list[str]:
        """List the names of all sessions; see `Store.sessions`."""
        return await _in_thread(self.sessions)

    async def aclose(self) -> None:
        """Give back connections; see `Store.close`."""
        await _in_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _in_thread(call: Callable[..., T], *arguments: Any) -> T:
    import asyncio  # takes longer to import than all of trimtab.stores

    return await asyncio.to_thread(call, *arguments)


class Row(NamedTuple):
    """An event as it is written: five columns and a seal over them."""

    version: int
    id: str
    kind: str
    time: float
    body: str
    """Data and state as compact ASCII JSON, which every database keeps as it is."""
    seal: str
    """Digest over the other columns: a row edited by hand does not match it."""


def to_row(event: Event, /) -> Row:
    """Write an event down.

    Raises:
        ConfigurationError: It holds something that is no plain data.
    """
    try:
        body = json.dumps(
            {"data": event.data, "state": event.state},
            separators=(",", ":"),
            ensure_ascii=True,
            allow_nan=False,
        )
        time = float(event.time)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"event {event.id!r} is not plain data: {error}") from error
    if not math.isfinite(time):
        raise ConfigurationError(f"event {event.id!r} was made at {time}: a time is in seconds since 1970")
    return Row(event.version, event.id, event.kind, time, body, _seal(event, body))


def to_rows(request: AppendRequest, /) -> tuple[list[Row], list[Row]]:
    """Write down what a request adds, numbered, and what it rewrites.

    Every store calls this before anything else, so that what one refuses all refuse.

    Raises:
        ConfigurationError: A name or id is no usable text, an id stands twice, a rewrite is of no stored
            version, or data is not plain.
    """
    check_session_name(request.session)
    if isinstance(request.expected_version, bool) or request.expected_version < 0:
        raise ConfigurationError(f"a version is 0 or more, not {request.expected_version!r}")
    for event in (*request.events, *request.rewrites):
        for name, value in (("id", event.id), ("kind", event.kind)):
            if not _is_name(value):
                raise ConfigurationError(f"an event's {name} is {_NAME}, not {value!r:.80}")
    ids = [event.id for event in request.events]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise ConfigurationError(f"event id {twice!r} stands twice in one append")
    for event in request.rewrites:
        if not 1 <= event.version <= request.expected_version:
            raise ConfigurationError(
                f"event {event.id!r} of version {event.version} is not stored: append it"
            )
    return [to_row(event) for event in request.numbered()], [to_row(event) for event in request.rewrites]


def from_row(row: Sequence[Any], /, *, session: str) -> Event:
    """Read an event.

    Raises:
        CorruptSessionError: It was changed after it was written.
    """
    version, event_id, kind, time, body, seal = row
    try:
        parsed = json.loads(body)
        event = Event(
            id=event_id,
            kind=kind,
            time=float(time),
            data=parsed["data"],
            state=parsed["state"],
            version=int(version),
        )
        whole = _seal(event, body) == seal
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _corrupt(session, version, f"cannot be read ({type(error).__name__})") from error
    if not whole:
        raise _corrupt(session, version, "does not match its seal: it was changed after it was written")
    return event


def _seal(event: Event, body: str) -> str:
    line = "\n".join((str(event.version), event.id, event.kind, repr(float(event.time)), body))
    return hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _corrupt(session: str, version: Any, what: str) -> CorruptSessionError:
    return CorruptSessionError(
        f"session {session!r}: event {version} {what}. Restore the store from a backup, or copy what is"
        " before it with copy_session(…, before=…)",
        session=session,
        version=version if isinstance(version, int) else None,
    )


def without_gaps(events: list[Event], request: LoadRequest, /, *, version: int | None = None) -> list[Event]:
    """Check that the events read in order are all that were asked for.

    Args:
        events: What was read.
        request: What was asked.
        version: The version of the session by a record of its own, read at the same moment; None if there
            is none, and then a missing end is not noticed.

    Raises:
        CorruptSessionError: One is missing.
    """
    if request.ids is not None:
        return events
    last = max((event.version for event in events), default=0) if version is None else version
    if request.before is not None:
        last = min(last, request.before - 1)
    expected = range(max(request.after, 0) + 1, last + 1)
    if request.newest_first:
        expected = expected[::-1]
    if request.limit is not None:
        expected = expected[: request.limit]
    for at, wanted in enumerate(expected):
        if at >= len(events) or events[at].version != wanted:
            raise _corrupt(request.session, wanted, "is missing")
    return events


def conflict(request: AppendRequest, actual_version: int, /) -> VersionConflictError:
    """Make the error of a writer that came too late."""
    return VersionConflictError(
        f"session {request.session!r} is at version {actual_version} and this write was decided on version"
        f" {request.expected_version}: another writer was faster, and nothing was changed. Read it again and"
        " repeat, or let trimtab.stores.Retry do it",
        session=request.session,
        expected_version=request.expected_version,
        actual_version=actual_version,
    )


def same_event(request: AppendRequest, stored: Event, /, *, version: int) -> Appended:
    """Tell what to answer where the first event's id is stored already.

    Args:
        request: What was asked.
        stored: The event with that id.
        version: The version of the session now.

    Raises:
        ConfigurationError: The id is taken by something else.
    """
    first = request.events[0]
    if (stored.kind, _plain(stored.data)) != (first.kind, _plain(first.data)):
        raise id_taken(request, first.id)
    return Appended(version, duplicate=True)


def _plain(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def id_taken(request: AppendRequest, event_id: str, /) -> ConfigurationError:
    """Make the error of an id that another event has."""
    return ConfigurationError(
        f"session {request.session!r}: event id {event_id!r} is taken by another event. Ids are given"
        " once; a retry repeats the very same events"
    )


def not_stored(request: AppendRequest, version: int, /) -> ConfigurationError:
    """Make the error of a rewrite whose version holds no event with its id, kind and time."""
    return ConfigurationError(
        f"session {request.session!r}: version {version} holds another event than the rewrite says. A rewrite"
        " replaces data; id, kind and time are those of the stored event"
    )


_NAME = "a text of 1 to 512 characters without NUL and lone surrogates"


def check_session_name(name: object, /) -> str:
    """Return the name of a session.

    Raises:
        ConfigurationError: It is not a text of 1 to 512 characters without NUL and lone surrogates.
    """
    if not _is_name(name):
        raise ConfigurationError(f"a session's id is {_NAME}, not {name!r:.80}")
    return str(name)


def storable_ids(ids: Sequence[str], /) -> list[str]:
    """Return those of the ids asked for that an event can have; others are found nowhere."""
    return [one for one in dict.fromkeys(ids) if _is_name(one)]


def _is_name(name: object) -> bool:
    if not isinstance(name, str) or not 1 <= len(name) <= 512 or "\0" in name:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
