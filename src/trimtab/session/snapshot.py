"""A session as plain data, and back (SPEC E10)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from trimtab.errors import ConfigurationError, CorruptSessionError, FormatError
from trimtab.formats.values import shown
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.log import Pages, check_log, event_at, live_units
from trimtab.session.messages import MessageReader, SessionUnit
from trimtab.session.options import (
    FUNCTIONS,
    LEAST_BUDGET,
    SessionOptions,
    as_given,
    missing_functions,
    options_from,
)
from trimtab.session.plain import copy_plain, plain_snapshot
from trimtab.session.runner import Runner
from trimtab.session.state import Members, State
from trimtab.session.view import log_pages
from trimtab.session.working_set import WorkingSet
from trimtab.stores import AppendRequest, Event, MemoryStore, Retry, Store
from trimtab.stores.rows import check_session_name

__all__ = ["read_snapshot", "readable", "snapshot_of"]

VERSION = 1
"""Of the form of a snapshot."""


def snapshot_of(core: Core, *, history: bool) -> Steps[dict[str, Any]]:
    """Write the options and events as plain data: every event, or those that are needed to go on."""
    working_set = yield from core.ready()
    events: list[Event] = []
    if history:
        pages = yield from log_pages(core, 0, None)
        while page := (yield from pages.next()):
            events.extend(page)
    elif working_set.version:
        events = yield from short_log(core, working_set)
    return {
        "version": VERSION,
        "id": core.session,
        "options": copy_plain(core.options_data()),
        "events": [
            {
                "version": event.version,
                "id": event.id,
                "kind": event.kind,
                "time": event.time,
                "data": copy_plain(event.data),
                "state": copy_plain(event.state),
            }
            for event in events
        ],
    }


def short_log(core: Core, working_set: WorkingSet) -> Steps[list[Event]]:
    """Make a log of its own of what is needed to go on: what stays, the summary, and living messages.

    Its last event says where the session stands. In those before it nothing of the conversation is in view,
    so that a view of the past shows no more than what there is.
    """
    made: list[Event] = []
    front = State(budget_tokens=working_set.state.budget_tokens, options=1, newest_summary=0)

    def put(event: Event, state: State) -> int:
        version = len(made) + 1
        then = replace(state, live=version + 1, cut=version + 1)
        made.append(replace(event, version=version, state=then.to_dict()))
        return version

    put(core.event(working_set, "options", {"options": core.options_data()}), front)
    for name in ("anchors", "anchor_summary", "summary"):
        at: int = getattr(working_set.state, name)
        if at:
            event = yield from event_at(core.session, at)
            pointing: dict[str, Any] = {name: len(made) + 1}
            front = replace(front, **pointing)
            if name != "anchors":
                event = _alone(event, older=front.newest_summary)
                front = replace(front, newest_summary=len(made) + 1)
            put(event, front)
    units = yield from _needed(core, working_set)
    new: dict[int, int] = {}
    for event in (yield from _messages_of(core, working_set, units)):
        data = event.data
        if "joins" in data:
            data = {**data, "joins": new[data["joins"]]}
        new[event.version] = put(replace(event, data=data), front)
    last = core.event(working_set, "abridged", {"of": working_set.version})
    then = _translated(working_set.state, new, units, last=len(made) + 1)
    then = replace(
        then,
        options=front.options,
        anchors=front.anchors,
        anchor_summary=front.anchor_summary,
        summary=front.summary,
        newest_summary=front.newest_summary,
    )
    made.append(replace(last, version=len(made) + 1, state=then.to_dict()))
    return made


def _alone(summary: Event, *, older: int) -> Event:
    """Return a summary that names nothing that is not there: what it covers, what it goes on from."""
    return replace(summary, data={**summary.data, "covers": [], "previous": 0, "older": older})


def _needed(core: Core, working_set: WorkingSet) -> Steps[list[SessionUnit]]:
    """List the units that are in view, recent, or wait for a summary."""
    if core.in_force.summarizer is None and "summarizer" not in core.missing:
        return [*working_set.shown.values(), *working_set.recent.values()]
    return (
        yield from live_units(
            core.session, working_set.state, stop=working_set.version + 1, reader=working_set.reader
        )
    )


def _messages_of(core: Core, working_set: WorkingSet, units: Sequence[SessionUnit]) -> Steps[list[Event]]:
    """Read the events of the messages of units, in order."""
    state = working_set.state
    apart = {version for members in (*state.beside, *state.left) for version in members}
    versions = {version for unit in units for version in unit.versions}
    events: list[Event] = []
    for version in sorted(versions & apart):
        events.append((yield from event_at(core.session, version)))
    pages = Pages(
        core.session,
        after=min(versions - apart, default=working_set.version + 1) - 1,
        before=working_set.version + 1,
        newest_first=False,
    )
    while page := (yield from pages.next()):
        events.extend(event for event in page if event.version in versions - apart)
    return sorted(events, key=lambda event: event.version)


def _translated(state: State, new: Mapping[int, int], units: Sequence[SessionUnit], *, last: int) -> State:
    """Return a state that says the same of messages under other versions; `last` is that of its event."""
    waiting = {member for unit in units for member in unit.versions if unit.first < state.cut}
    waiting -= {member for members in state.beside for member in members}
    waiting |= {member for members in state.left for member in members}
    pending = [unit for unit in units if unit.first in waiting]

    def moved(members: Members) -> Members:
        return tuple(new[version] for version in members if version in new)

    def border(version: int) -> int:
        return min((here for there, here in new.items() if there >= version), default=last + 1)

    return replace(
        state,
        live=border(state.live),
        cut=border(state.cut),
        beside=tuple(filter(None, map(moved, state.beside))),
        left=tuple(filter(None, map(moved, state.left))),
        waiting=tuple((moved(members), ids) for members, ids in state.waiting if moved(members)),
        pins=moved(state.pins),
        user=new.get(state.user, 0),
        turn=new.get(state.turn, 0),
        last=new.get(state.last, 0),
        kept=new.get(state.kept, 0),
        usage_first=new.get(state.usage_first, 0),
        pending_tokens=sum(unit.tokens for unit in pending),
        pending_messages=sum(len(unit.members) for unit in pending),
    )


def events_from(given: Any, /) -> tuple[str, Any, list[Event]]:
    """Read the name, the options and the events of a snapshot.

    Raises:
        CorruptSessionError: It is none, or of another version.
    """
    if not isinstance(given, Mapping):
        raise CorruptSessionError(f"a snapshot is a mapping, as snapshot() makes it, not {shown(given)}")
    try:
        data = plain_snapshot(given)
    except FormatError as error:
        raise CorruptSessionError(f"the snapshot cannot be read: {error!s:.300}") from error
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        raise CorruptSessionError(
            f"the snapshot has version {version!r:.80} and this trimtab reads version {VERSION}: restore it"
            " with the trimtab that made it"
        )
    name, listed = data.get("id"), data.get("events")
    if not isinstance(name, str) or not isinstance(listed, list):
        raise CorruptSessionError("the snapshot has no id or no list of events")
    try:
        check_session_name(name)
    except ConfigurationError as error:
        raise CorruptSessionError(f"the snapshot's id is none: {error}") from error
    return name, data.get("options"), [_event(one, at) for at, one in enumerate(listed, 1)]


def _event(value: Any, version: int) -> Event:
    try:
        event = Event(
            id=value["id"],
            kind=value["kind"],
            time=value["time"],
            data=value["data"],
            state=value["state"],
            version=value["version"],
        )
        strings = all(isinstance(one, str) for one in (event.id, event.kind))
        mappings = isinstance(event.data, dict) and isinstance(event.state, dict)
        numbers = type(event.time) in (int, float) and type(event.version) is int
        if not (strings and mappings and numbers) or event.version != version:
            raise ValueError("a value of another kind, or out of order")
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptSessionError(
            f"event {version} of the snapshot cannot be read: {error!r:.300}"
        ) from error
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
    functions = {name: given[name] for name in (*FUNCTIONS, "hooks", "on_trim") if name in given}
    check_log(events, MessageReader(options_from(known, functions)).check)


def options_in(known: Any, given: Mapping[str, Any], *, allow_missing: bool) -> dict[str, Any]:
    """Return everything a session is restored with: what is given, the rest as a snapshot has it.

    Args:
        known: The options of the snapshot.
        given: Those the session is restored with.

    Raises:
        CorruptSessionError: It has no options.
        ConfigurationError: A function the session was made with is missing.
    """
    if not isinstance(known, Mapping):
        raise CorruptSessionError("the snapshot has no events and no options")
    made = as_given(known, given)
    if 0 < known["budget_tokens"] < LEAST_BUDGET:
        raise CorruptSessionError(f"the snapshot has a budget of {known['budget_tokens']} tokens")
    missing = missing_functions(known, given)
    if missing is not None and not allow_missing:
        raise ConfigurationError(f"the session was made with a {missing}: pass it again to restore()")
    return made


class Restored(NamedTuple):
    """A session made of a snapshot."""

    runner: Runner
    source: Store | None
    """Where its log is to be copied from; None: it is where it belongs."""


def read_snapshot(
    data: Mapping[str, Any],
    options: SessionOptions,
    *,
    store: Store | None,
    id: str | None,
    retry: Retry | None,
    allow_missing: bool,
) -> Restored:
    """Make a session of a snapshot; see `Session.restore`."""
    unknown = sorted(options.keys() - SessionOptions.__annotations__)
    if unknown:
        raise TypeError(f"restore() got an unexpected keyword argument {unknown[0]!r}")
    given: dict[str, Any] = {**options}
    name, last_options, events = events_from(data)
    name = name if id is None else check_session_name(id)
    known = next((event.data.get("options") for event in reversed(events) if event.kind == "options"), None)
    source = MemoryStore()
    if events:
        check_events(events, known, given)
        _fill(source, name, events)
    if not events or last_options not in (None, known):
        given = options_in(last_options, given, allow_missing=allow_missing)  # some are not in the log yet
    runner = Runner(
        given,
        begins=not events,
        store=source if store is None else store,
        id=name,
        retry=retry,
        allow_missing=allow_missing,
    )
    return Restored(runner, source if events and store is not None else None)


@contextmanager
def readable() -> Generator[None]:
    """Say of a message that cannot be counted that it is the snapshot's.

    Raises:
        CorruptSessionError: In place of a FormatError.
    """
    try:
        yield
    except FormatError as error:
        raise CorruptSessionError(f"a message of the snapshot cannot be read: {error!s:.300}") from error


def _fill(store: Store, session: str, events: Sequence[Event]) -> None:
    try:
        store.append(AppendRequest(session=session, expected_version=0, events=events))
    except ConfigurationError as error:
        raise CorruptSessionError(f"the snapshot cannot be read: {error!s:.300}") from error
