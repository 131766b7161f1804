"""How an event is written down and read back, and the rules of an append: once, for every store."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from trimtab._shared.checks import check_whole
from trimtab.errors import ConfigurationError, CorruptSessionError, SessionDeletedError, VersionConflictError
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest
from trimtab.stores.labels import is_text

PRUNED = "pruned"
"""The kind of an event of which only its place remains: version, id and time; it stays so."""


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
    """Write an event down."""
    try:
        body = json.dumps(
            {"data": event.data, "state": event.state},
            separators=(",", ":"),
            ensure_ascii=True,
            allow_nan=False,
        )
        time = float(event.time)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigurationError(f"event {event.id!r} is not plain data: {error}") from error
    if not math.isfinite(time):
        raise ConfigurationError(
            f"event {event.id!r} has the time {time}: a time must be in seconds since 1970"
        )
    return Row(event.version, event.id, event.kind, time, body, _seal(event, body))


def to_rows(request: AppendRequest, /) -> tuple[list[Row], list[Row]]:
    """Write down what a request adds, numbered, and what it rewrites.

    Every store calls this before anything else, so that what one refuses all refuse.

    Raises:
        ConfigurationError: A name or id is no usable text, an id stands twice, a rewrite is of no stored
            version, or data is not plain.
    """
    check_session_name(request.session)
    check_whole("expected_version", request.expected_version, least=0)
    for event in (*request.events, *request.rewrites):
        for name, value in (("id", event.id), ("kind", event.kind)):
            if not is_name(value):
                raise ConfigurationError(f"an event's {name} must be {_NAME}, not {value!r:.80}")
    ids = [event.id for event in request.events]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise ConfigurationError(f"event id {twice!r} occurs twice in one append")
    for event in request.rewrites:
        if not 1 <= event.version <= request.expected_version:
            raise ConfigurationError(
                f"event {event.id!r} of version {event.version} is not stored yet: append it"
            )
    return [to_row(event) for event in request.numbered()], [to_row(event) for event in request.rewrites]


def from_row(row: Sequence[Any], /, *, session: str, incarnation: str = "") -> Event:
    """Read an event of a session, and of which one of that name."""
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
            incarnation=incarnation,
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


def without_gaps(events: list[Event], request: LoadRequest, /, *, version: int) -> list[Event]:
    """Return the events that were read as they were asked for, if none of them is missing.

    Args:
        events: What was read: in the order asked for, or, of ids, those that have one of them.
        request: What was asked.
        version: The version of the session by a record of its own, read at the same moment.
    """
    if request.ids is not None:
        before = math.inf if request.before is None else request.before
        found = [event for event in events if request.after < event.version < before]
        return sorted(found, key=attrgetter("version"), reverse=request.newest_first)[: request.limit]
    last = version if request.before is None else min(version, request.before - 1)
    expected = range(max(request.after, 0) + 1, last + 1)
    if request.newest_first:
        expected = expected[::-1]
    if request.limit is not None:
        expected = expected[: request.limit]
    for at, wanted in enumerate(expected):
        if at >= len(events) or events[at].version != wanted:
            raise missing_event(request.session, wanted)
    return events


def missing_event(session: str, version: int, /) -> CorruptSessionError:
    """Make the error of an event that must be there and is not."""
    return _corrupt(session, version, "is missing")


def event_beyond(session: str, version: int, /, *, at: int) -> CorruptSessionError:
    """Make the error of an event behind the version that a session says it is at."""
    return CorruptSessionError(
        f"session {session!r} is at version {version}, but has an event {at}: it was changed by hand."
        " Restore the store from a backup",
        session=session,
        version=at,
    )


def conflict(request: AppendRequest, actual_version: int, /) -> VersionConflictError:
    """Make the error of a writer that came too late."""
    return VersionConflictError(
        f"session {request.session!r} is at version {actual_version}, but this write is based on version"
        f" {request.expected_version}: another writer was faster, and nothing was changed. Read it again"
        " and repeat, or use trimtab.stores.Retry",
        session=request.session,
        expected_version=request.expected_version,
        actual_version=actual_version,
    )


def new_incarnation() -> str:
    """Make the incarnation of a session that begins now."""
    return secrets.token_hex(8)


def check_incarnation(session: str, wanted: str | None, actual: str | None, /) -> None:
    """Refuse to go on with another session of that name than was meant (None: any), or with none."""
    if wanted is None or wanted == actual:
        return
    now = "there is no session of that name now" if actual is None else "another session has its name now"
    raise SessionDeletedError(
        f"session {session!r} was deleted since it was read, and {now}: nothing was changed. To continue"
        " with the current session, refresh() the Session or open it again",
        session=session,
    )


def same_event(request: AppendRequest, stored: Event, /, *, version: int) -> Appended:
    """Tell what to answer where the first event's id is stored already; it may be taken by something else."""
    first = request.events[0]
    if (stored.kind, _plain(stored.data)) != (first.kind, _plain(first.data)):
        raise id_taken(request, first.id)
    return Appended(version, duplicate=True, incarnation=stored.incarnation)


def _plain(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def id_taken(request: AppendRequest, event_id: str, /) -> ConfigurationError:
    """Make the error of an id that another event has."""
    return ConfigurationError(
        f"session {request.session!r}: event id {event_id!r} is taken by another event. An id is used once;"
        " a retry repeats the same events"
    )


def may_replace(row: Row, stored: Row, /) -> bool:
    """Tell whether a rewrite is of the event that is stored: its kind may only change to "pruned"."""
    same = (row.version, row.id, row.time) == (stored.version, stored.id, stored.time)
    return same and row.kind in (stored.kind, PRUNED)


def not_stored(
    request: AppendRequest, version: int, /, *, kind: str | None
) -> ConfigurationError | VersionConflictError:
    """Make the error of a rewrite that is of no stored event.

    Args:
        request: The request.
        version: Of the rewrite.
        kind: Of the event that stands there; None: there is none, or it was not read.
    """
    if kind == PRUNED:  # whoever rewrites read it before: a rotation, or a redaction
        return VersionConflictError(
            f"session {request.session!r}: event {version} was pruned since it was read, and nothing was"
            " changed. Read it again and repeat",
            session=request.session,
            expected_version=request.expected_version,
            actual_version=request.expected_version,
        )
    return ConfigurationError(
        f"session {request.session!r}: version {version} is not the event in the rewrite. A rewrite"
        " replaces only data; id and time must be those of the stored event, and so must its kind, which may"
        " only change to 'pruned'"
    )


_NAME = "a text of 1 to 512 characters without NUL and lone surrogates"


def check_session_name(name: object, /, *, what: str = "a session's id") -> str:
    """Return the name of a session, or of `what` else has to be one, if it can be."""
    if not is_name(name):
        raise ConfigurationError(f"{what} must be {_NAME}, not {name!r:.80}")
    return str(name)


def storable_ids(ids: Sequence[str], /) -> list[str]:
    """Return those of the ids asked for that an event can have; others are found nowhere."""
    return [one for one in dict.fromkeys(ids) if is_name(one)]


def is_name(name: object, /) -> bool:
    """Tell whether an event or a session can be called that."""
    return is_text(name)
