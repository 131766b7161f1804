"""A session as plain data, and back (SPEC E10)."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

from trimtab._shared.steps import Pause, in_turns
from trimtab.counting import CharCounter
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    Hint,
    phrase,
)
from trimtab.formats import format_of
from trimtab.formats.structure import Structure
from trimtab.formats.values import short_repr
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.facts import next_links
from trimtab.session.labels import renewal
from trimtab.session.log import Pages, event_at, events_at, newest_hidden, state_of
from trimtab.session.messages import SessionUnit
from trimtab.session.options import Options, as_given, given_in, missing_functions
from trimtab.session.plain import copy_plain, plain_message
from trimtab.session.rules import events_of_rules
from trimtab.session.runner import Runner
from trimtab.session.schema import check_log, check_options
from trimtab.session.state import State
from trimtab.session.working_set import WorkingSet
from trimtab.stores import AppendRequest, Event, MemoryStore, Retry, Store, StoreLike
from trimtab.stores.rows import check_session_name

VERSION = 2
"""Version of the form of a snapshot."""

UNSEALED = 1
"""The form that has no seal yet: it is accepted without a check."""

MOST_BUDGETS = 8
"""How many budgets of waiting messages out of view a snapshot without history keeps."""

TURN = 32
"""Number of events to write before other tasks run, so a log does not block an event loop."""

_COLUMNS = ("version", "id", "kind", "time", "data", "state")


def snapshot_of(core: Core, *, history: bool) -> Steps[dict[str, Any]]:
    """Write the options and events as plain data: every event, or those needed to continue."""
    working_set = yield from core.ready()
    listed, digest = list[dict[str, Any]](), _Digest()
    if history:
        pages = Pages(core.session, after=0, before=working_set.version + 1, newest_first=False)
        while page := (yield from pages.next()):
            yield from _write_down(page, listed, digest)
    elif working_set.version:
        yield from _write_down((yield from short_log(core, working_set)), listed, digest)
    data: dict[str, Any] = {
        "version": VERSION,
        "id": core.session,
        "options": core.options_data(),
        "events": listed,
    }
    return {**data, "seal": digest.over(data)}


def _write_down(events: Sequence[Event], listed: list[dict[str, Any]], digest: _Digest) -> Steps[None]:
    """Write events as plain data, and let other tasks run in between."""

    def write(event: Event) -> None:
        listed.append({name: copy_plain(getattr(event, name)) for name in _COLUMNS})
        digest.take(listed[-1])

    yield from in_turns(write, events, each=TURN)


def short_log(core: Core, working_set: WorkingSet) -> Steps[list[Event]]:
    """Make a log of its own of what is needed to go on: what stays, the summary, and living messages.

    Its last event says where the session stands. In those before it nothing of the conversation is in view,
    so that a view of the past shows no more than what there is.
    """
    made: list[Event] = []
    front = State(budget_tokens=working_set.state.budget_tokens, options=1, newest_summary=0)

    def put(event: Event, state: State) -> int:
        version = len(made) + 1
        made.append(replace(event, version=version, state=state.without_view(version).to_dict()))
        return version

    put(core.event(working_set, "options", {"options": core.options_data()}), front)
    state = working_set.state
    standing: dict[Literal["anchors", "host_rules", "anchor_summary", "summary"], int] = {
        "anchors": state.anchors,
        "host_rules": state.host_rules,
        "anchor_summary": state.anchor_summary,
        "summary": state.summary,
    }
    for name, at in standing.items():
        if at:
            kind = {"anchors": "anchors", "host_rules": "rules"}.get(name, "summary")
            event = yield from event_at(core.session, at, kind)
            if kind == "summary":
                # It names nothing that is not there: what it covers, what it goes on from.
                alone = {**event.data, "covers": [], "previous": 0, "older": front.newest_summary}
                event = replace(event, data=alone)
            front = front.with_standing(name, len(made) + 1)
            put(event, front)
    first = len(made) + 1
    for event in (yield from _facts_alone(core, working_set, first)):
        version = len(made) + 1  # the last of them puts them in force
        is_fact = event.kind == "fact"
        facts = front.facts.with_new(version) if is_fact else front.facts.with_batch(first, version)
        front = front.with_facts(facts)
        put(event, front)
    units = yield from _units_to_keep(core, working_set)
    new: dict[int, int] = {}
    old: dict[int, int] = {}
    for event in (yield from _only_recalled(core, working_set, units)):
        old[event.version] = put(_translate_unit(event, old), front)
    for at, event in enumerate((yield from _messages_of(core, working_set, units)), 1):
        if at % TURN == 0:
            yield Pause(0)
        new[event.version] = len(made) + 1
        put(_translate_unit(event, new), front.with_newest_of(state_of(event, core.session), new))
    for place, event in (yield from _of_messages(core, working_set, made, old | new)):
        front = front.with_standing(place, put(event, front))
    last = core.event(working_set, "abridged", {"of": working_set.version})
    pending = [unit for unit in units if state.place(unit.first) == "pending"]
    then = state.with_versions(new, last=len(made) + 1).with_front_of(front)
    then = then.with_pending(
        tokens=sum(unit.tokens for unit in pending), messages=sum(len(unit.members) for unit in pending)
    )
    made.append(replace(last, version=len(made) + 1, state=then.to_dict()))
    return made


def _translate_unit(event: Event, new: Mapping[int, int]) -> Event:
    """Make a message name the one it belongs to by its new version."""
    if "joins" not in event.data:
        return event
    return replace(event, data={**event.data, "joins": new[event.data["joins"]]})


def _translate_recollection(event: Event, new: Mapping[int, int]) -> Event:
    """Make recalled messages be named by their new versions."""
    units = [[new[version] for version in members] for members in event.data["units"] if members[0] in new]
    before = min((here for there, here in new.items() if there >= event.data["before"]), default=0)
    question = new.get(event.data["question"], 0)
    return replace(event, data={**event.data, "units": units, "before": before, "question": question})


def _only_recalled(core: Core, working_set: WorkingSet, units: Sequence[SessionUnit]) -> Steps[list[Event]]:
    """Read the messages that are in view only as earlier text."""
    kept = {unit.first for unit in units}
    found = () if working_set.recollection is None else working_set.recollection.units
    versions = {version for unit in found if unit.members[0] not in kept for version in unit.members}
    return list((yield from events_at(core.session, versions)).values())


def _facts_alone(core: Core, working_set: WorkingSet, first: int) -> Steps[list[Event]]:
    """Make events of the facts in view, to stand from a version on; they name nothing that is not there."""
    made: list[Event] = []
    known = () if working_set.facts is None else working_set.facts.known
    events = yield from events_at(core.session, (one.version for one in known))
    for one in known:  # oldest first: what each stands in the place of is not there
        event, older = events[one.version], first + len(made) - 1 if made else 0
        alone = {**event.data, "supersedes": 0, "older": older, "at": len(made)}
        alone.pop("since", None)
        made.append(replace(event, data=alone))
    if made:
        links = yield from next_links(core.session, (0, 0))
        data = {"facts": len(made), "messages": 0, **links}
        made.append(core.event(working_set, "facts", data))
    return made


def _of_messages(
    core: Core, working_set: WorkingSet, made: Sequence[Event], new: Mapping[int, int]
) -> Steps[list[tuple[Literal["rules", "recollection"], Event]]]:
    """Make the events that name messages of those made: rules and their register, and what was recalled.

    A rule whose message is not among them stands alone.
    """
    listed = list[tuple[Literal["rules", "recollection"], Event]]()
    if working_set.rules.known or working_set.rules.unlisted:
        messages = {event.id for event in made if event.kind == "message"}
        for event in events_of_rules(working_set.rules, messages, partial(core.event, working_set, "rules")):
            listed.append(("rules", event))
    if working_set.recollection is not None:
        event = yield from event_at(core.session, working_set.state.recollection, "recalled")
        listed.append(("recollection", _translate_recollection(event, new)))
    return listed


def _units_to_keep(core: Core, working_set: WorkingSet) -> Steps[list[SessionUnit]]:
    """List the units that are in view or recent, and the newest of those that wait for a summary.

    A backlog that no summarizer caught up with is not kept whole: it may be the log.
    """
    known = [*working_set.shown.values(), *working_set.recent.values()]
    if core.in_force.summarizer is None and "summarizer" not in core.missing:
        return known
    limit = MOST_BUDGETS * working_set.state.room_tokens
    hidden = yield from newest_hidden(core.session, working_set, limit_tokens=limit)
    return [*hidden, *known]


def _messages_of(core: Core, working_set: WorkingSet, units: Sequence[SessionUnit]) -> Steps[list[Event]]:
    """Read the events of the messages of units, in order."""
    state = working_set.state
    apart = {version for members in (*state.beside, *state.left) for version in members}
    versions = {version for unit in units for version in unit.versions}
    events = list((yield from events_at(core.session, versions & apart)).values())
    others = versions - apart
    pages = Pages(
        core.session,
        after=min(others, default=working_set.version + 1) - 1,
        before=working_set.version + 1,
        newest_first=False,
    )
    while page := (yield from pages.next()):
        events.extend(event for event in page if event.version in others)
    return sorted(events, key=lambda event: event.version)


class _Digest:
    """A checksum over all that a snapshot says: one that was cut off or edited by hand has another.

    Order of keys and `1.0` for `1` do not count: JSON of other languages changes them. It is that of the JSON
    of the whole, and takes events one by one, so that no step of it is as long as the log.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(b'{"events": [', digest_size=16)
        self._between = b""

    def take(self, event: Any) -> None:
        """Add the next event."""
        self._hash.update(self._between + _canonical(event))
        self._between = b", "

    def over(self, data: Mapping[str, Any]) -> str:
        """Return the checksum over the events taken and all else that a snapshot says."""
        rest = {key: value for key, value in data.items() if key != "events"}
        self._hash.update(b"], " + _canonical({**rest, "seal": None})[1:])
        return self._hash.hexdigest()


def seal_of(data: Mapping[str, Any]) -> str:
    """Return the checksum of a snapshot.

    Raises:
        KeyError, TypeError, ValueError, RecursionError: It is none, or not plain data.
    """
    digest = _Digest()
    for event in data["events"]:
        digest.take(event)
    return digest.over(data)


def _canonical(value: Any) -> bytes:
    said = json.loads(json.dumps(value, allow_nan=False), parse_float=_number)
    return json.dumps(said, sort_keys=True).encode()


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def events_from(given: Any, /) -> tuple[str, Any, list[Event]]:
    """Read the name, the options and the events of a snapshot; copies of them."""
    if not isinstance(given, Mapping):
        made = Hint("snapshot", "from snapshot()")
        raise CorruptSessionError(
            phrase("a snapshot must be a mapping, ", made, f", not {short_repr(given)}")
        )
    version = given.get("version")
    if type(version) is not int or version not in (VERSION, UNSEALED):
        raise CorruptSessionError(
            f"the snapshot has version {short_repr(version)}, but this version of trimtab reads version"
            f" {VERSION}: restore it with the version of trimtab that made it"
        )
    try:
        if version == VERSION and given.get("seal") != seal_of(given):
            raise CorruptSessionError(
                "the snapshot does not match its seal: it was changed after it was taken. Take another"
                " snapshot, or pass changes as options of restore()"
            )
        data = json.loads(json.dumps({**given}, allow_nan=False))
        events = [Event(**{name: one[name] for name in _COLUMNS}) for one in data["events"]]
        if not all(type(event.version) is int and event.version == at for at, event in enumerate(events, 1)):
            raise ValueError("its events are not in order")
        name = check_session_name(data["id"])
        check_log(events, name)
        return name, data.get("options"), events
    except CorruptSessionError:
        raise
    except (ConfigurationError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CorruptSessionError(
            f"the snapshot cannot be read ({type(error).__name__}): {error!s:.300}"
        ) from error


class Restored(NamedTuple):
    """A session made of a snapshot."""

    runner: Runner
    source: Store | None
    """The store to copy its log from; None: it is in its place."""
    last: Event | None = None
    """An event of now behind that log, from which on its time to live counts."""


def read_snapshot(
    data: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    store: StoreLike | None,
    id: str | None,
    retry: Retry | None,
    allow_missing: bool,
) -> Restored:
    """Make a session of a snapshot; see `Session.restore`."""
    given = given_in(options, "restore")
    name, last_options, events = events_from(data)
    name = name if id is None else check_session_name(id)
    known = next((event.data.get("options") for event in reversed(events) if event.kind == "options"), None)
    for event in events:
        if event.kind == "options":
            _check_options(event.data["options"], given, f"session {name!r}: event {event.version} (options)")
    _check_options(last_options, given, "the snapshot")
    _check_messages(name, events, given)
    source, last = MemoryStore(), None
    if known is not None and known.get("ttl") is not None:
        last = renewal(events[-1], name, known, time=time.time())
        events.append(last)
    if events:
        source.append(AppendRequest(session=name, expected_version=0, events=events))
    if not events or last_options != known:  # some are not in the log yet
        options_given, given = given, as_given(last_options, given)
        missing = missing_functions(last_options, options_given)
        if missing is not None and not allow_missing:
            raise ConfigurationError(f"the session was made with {missing}: pass it again to restore()")

    def runner_on(kept: StoreLike) -> Runner:
        return Runner(given, begins=not events, store=kept, id=name, retry=retry, allow_missing=allow_missing)

    runner = runner_on(source)
    if store is None:
        return Restored(runner, None)
    if events:
        runner.run(Core.ready)  # what cannot be opened is not copied either
    return Restored(runner_on(store), source if events else None, last)


def _check_options(data: Any, given: Mapping[str, Any], where: str) -> None:
    """Refuse options with which no session can be made."""
    check_options(data, where)
    alone = {"format": given["format"]} if "format" in given else {}
    try:
        Options(**as_given(data, {"counter": CharCounter(), **alone}))
    except (ContextError, TypeError, ValueError) as error:
        raise CorruptSessionError(
            f"{where} has options that no session has: {error!s:.300}. Take the snapshot again"
        ) from error


def _check_messages(session: str, events: Sequence[Event], given: Mapping[str, Any]) -> None:
    """Refuse messages that cannot be read, in the form of the options they came under."""
    form = format_of([], given.get("format") or "auto", None)
    for event in events:
        if event.kind == "options":
            form = format_of([], given.get("format") or event.data["options"]["format"], None)
        messages = [event.message] if event.kind == "message" else event.data.get("anchors", ())
        for message in messages:
            try:
                plain_message(message)
                form.scan([message], 0, 1, Structure(1))
            except ContextError as error:
                raise CorruptSessionError(
                    f"session {session!r}: event {event.version} ({event.kind}) holds a message that cannot"
                    f" be read: {error!s:.300}. Take the snapshot again",
                    session=session,
                    version=event.version,
                ) from error
