"""A session as plain data, and back (SPEC E10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimtab.errors import ConfigurationError, CorruptSessionError
from trimtab.session._effects import Steps
from trimtab.session._log import check_log
from trimtab.session._looking import pages as pages_of
from trimtab.session._options import FUNCTIONS, as_given, missing_functions, options_from
from trimtab.session._plain import copied
from trimtab.session._sizer import Sizer
from trimtab.stores import Event

if TYPE_CHECKING:
    from trimtab.session._core import Core

__all__ = ["check_events", "events_from", "options_in", "snapshot_of"]

VERSION = 1
"""Of the form of a snapshot."""


def snapshot_of(core: Core) -> Steps[dict[str, Any]]:
    """Write the options and every event as plain data."""
    yield from core.ready()
    pages = yield from pages_of(core, 0, None)
    events: list[dict[str, Any]] = []
    while page := (yield from pages.next()):
        events.extend(
            {
                "version": event.version,
                "id": event.id,
                "kind": event.kind,
                "time": event.time,
                "data": copied(event.data),
                "state": copied(event.state),
            }
            for event in page
        )
    return {
        "version": VERSION,
        "id": core.session,
        "options": copied(core.options_data()),
        "events": events,
    }


def events_from(data: Any, /) -> tuple[str, list[Event]]:
    """Read the name and the events of a snapshot.

    Raises:
        CorruptSessionError: It is none, or of another version.
    """
    if not isinstance(data, Mapping):
        raise CorruptSessionError(f"a snapshot is a mapping, as snapshot() makes it, not {data!r:.80}")
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        raise CorruptSessionError(
            f"the snapshot has version {version!r:.80} and this trimtab reads version {VERSION}: restore it"
            " with the trimtab that made it"
        )
    name, listed = data.get("id"), data.get("events")
    if not isinstance(name, str) or not isinstance(listed, list):
        raise CorruptSessionError("the snapshot has no id or no list of events")
    return name, [_event(one, at) for at, one in enumerate(listed, 1)]


def _event(value: Any, version: int) -> Event:
    try:
        event = Event(
            id=value["id"],
            kind=value["kind"],
            time=value["time"],
            data=copied(value["data"]),
            state=copied(value["state"]),
            version=value["version"],
        )
        strings = all(isinstance(one, str) for one in (event.id, event.kind))
        mappings = isinstance(event.data, dict) and isinstance(event.state, dict)
        numbers = type(event.time) in (int, float) and type(event.version) is int
        if not (strings and mappings and numbers) or event.version != version:
            raise ValueError("a value of another kind, or out of order")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CorruptSessionError(f"event {version} of the snapshot cannot be read: {error!r}") from error
    return event


def check_events(events: Sequence[Event], known: Any, given: Mapping[str, Any], /) -> None:
    """Check the events of a snapshot, all of them.

    Args:
        events: In order, at least one.
        known: The options in force.
        given: Options the session is restored with; its functions read the messages.

    Raises:
        CorruptSessionError: One does not say what it should.
    """
    if not isinstance(known, Mapping):
        raise CorruptSessionError("the snapshot has events and no options among them")
    functions = {name: given[name] for name in (*FUNCTIONS, "hooks") if name in given}
    check_log(events, Sizer(options_from(known, functions)).read)


def options_in(data: Mapping[str, Any], given: Mapping[str, Any], *, allow_missing: bool) -> dict[str, Any]:
    """Return everything a session is restored with: what is given, the rest as a snapshot has it.

    Raises:
        CorruptSessionError: It has no options.
        ConfigurationError: A function the session was made with is missing.
    """
    known = data.get("options")
    if not isinstance(known, Mapping):
        raise CorruptSessionError("the snapshot has no events and no options")
    made = as_given(known, given)
    missing = missing_functions(known, given)
    if missing is not None and not allow_missing:
        raise ConfigurationError(f"the session was made with a {missing}: pass it again to restore()")
    return made
