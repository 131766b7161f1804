"""Adding messages: first to the log, then room is made (SPEC E3, E4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.errors import (
    ConfigurationError,
    SessionDeletedError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.formats import Dict, OriginName
from trimtab.models import CachePricing
from trimtab.session.core import Core, new_event_id, warn
from trimtab.session.effects import Steps
from trimtab.session.extract import extract_if_due
from trimtab.session.found_rules import take_rules, tell_found
from trimtab.session.log import event_at, read_unit
from trimtab.session.messages import SessionUnit
from trimtab.session.plain import plain_message
from trimtab.session.recollect import recollect
from trimtab.session.state import Members
from trimtab.session.summarize import (
    is_due,
    messages_of,
    most_for,
    most_summaries,
    summarize_if_due,
    tell_gone,
)
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event, LoadRequest
from trimtab.stores.rows import PRUNED, check_session_name


def eviction(core: Core, working_set: WorkingSet, units: Sequence[SessionUnit]) -> Event:
    """Make the event of units that wait from now on."""
    data = {"units": [list(unit.versions) for unit in units], "reason": "budget"}
    return core.event(working_set, "evicted", data)


def make_room(
    core: Core,
    working_set: WorkingSet,
    evicted: Sequence[SessionUnit] = (),
    *,
    summarizes: bool = False,
    summaries: int = 1,
    seen: Mapping[int, SessionUnit],
) -> Steps[None]:
    """Announce what was evicted, summarize and extract facts if due, and hide what has no room.

    All earlier decisions are stored by now: if the store fails here, only a summary is lost.

    Args:
        evicted: Units put aside; some may have been called back since.
        summarizes: Whether to request a summary that is due.
        seen: What was in view before, and what came.
    """
    waiting = {unit.first: unit for unit in evicted if unit.first not in working_set.recent}
    if waiting:
        core.tell("on_evict", messages_of(list(waiting.values())), "budget")
    try:
        if summarizes and not core.in_force.background:
            summaries = most_summaries(core, summaries)
            yield from summarize_if_due(core, summaries=summaries)
        if core.working_set is not None:
            core.working_set.truncate()
            if core.working_set.has_room:
                yield from core.reread(core.working_set)
            if not core.in_force.background:
                yield from extract_if_due(core, times=summaries)
    except (StoreUnavailableError, VersionConflictError, SessionDeletedError) as error:
        core.working_set = None
        warn(core.session, "a summary was put off", error)
    tell_gone(core, seen)


@dataclass(slots=True)
class _Batch:
    """The result of the messages of one call, before it is written."""

    events: list[Event]
    added: list[int] = field(default_factory=list)
    """Places of the events of the messages."""
    exceeded: list[tuple[int, int]] = field(default_factory=list)
    evicted: list[SessionUnit] = field(default_factory=list)
    question: tuple[int, Dict] | None = None
    """The user's latest message that does not answer a call, and its version."""
    seen: dict[int, SessionUnit] = field(default_factory=dict)
    """What was in view when it was cut, and what came since."""
    cuts: bool = False
    """Whether it was cut: the budget was passed, or it cost nothing."""


def check_messages(
    messages: Sequence[Any],
    ids: Sequence[str | None] | None,
    origins: Sequence[OriginName | None] | None,
) -> tuple[list[Any], list[str], list[Any]]:
    """Return the messages of a call of `extend`, and an id and an origin for each."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise ConfigurationError(
            f"extend takes a list of messages, not {messages!r:.80}: write extend([message]), or add(message)"
        )
    if isinstance(ids, str) or (ids is not None and not isinstance(ids, Iterable)):
        raise ConfigurationError(
            f"ids must be a list with an id for each message: write [{ids!r:.80}]", argument="ids"
        )
    listed = list(messages)
    given = [None] * len(listed) if ids is None else list(ids)
    if len(given) != len(listed):
        raise ConfigurationError(f"there are {len(listed)} messages and {len(given)} ids")
    for one in given:
        if one is not None:
            check_session_name(one, what="a message's id")
    named = [new_event_id() if one is None else one for one in given]
    if origins is None:
        return listed, named, [None] * len(listed)
    if isinstance(origins, str) or not isinstance(origins, Sequence) or len(origins) != len(listed):
        raise ConfigurationError(
            f"origins must be a list with an origin or None for each of the {len(listed)} messages, not"
            f" {origins!r:.80}",
            argument="origins",
        )
    return listed, named, list(origins)


def add_messages(
    core: Core, messages: Sequence[Any], ids: Sequence[str], origins: Sequence[Any]
) -> Steps[list[Event]]:
    """Add messages: first to the log, then make room (SPEC E3)."""
    plain = [plain_message(message) for message in messages]
    working_set = yield from core.ready()
    if not plain:
        return []
    for message in plain:
        working_set.reader.check(message)  # what cannot be read is refused before anything is written
    lowered = [*map(working_set.reader.check_origin, plain, origins)]
    batch = _Batch(core.first_events(working_set))
    # Forgotten until everything is written: what fails in between is read from the log, which alone is right.
    core.working_set, core.rules_found = None, []
    for message, event_id, origin in zip(plain, ids, lowered, strict=True):
        data: Dict = {"message": message} if origin is None else {"message": message, "origin": origin}
        yield from add_one(core, working_set, batch, data, event_id)
    try:
        done = yield from core.append(working_set, batch.events)
    except ConfigurationError:  # ids are taken: the store may have these very messages, from a call before
        events = yield from read_stored(core, plain, ids)
        if events is None:
            raise
        return events
    if done.duplicate:
        return (yield from require_stored(core, plain, ids))
    first = done.version - len(batch.events) + 1
    tell_found(core)
    for total, limit in batch.exceeded:
        core.announce("exceeded", tokens=total)
        core.tell("on_budget_exceeded", total, limit)
    # Strides pass the budget seldom: what is due since a summary was cut off does not wait for the next.
    late = not batch.cuts and core.in_force.target_ratio < 1.0 and is_due(core, working_set.state)
    seen = working_set.view() if late else batch.seen
    due = late or batch.cuts
    summaries = most_for(plain)
    yield from make_room(core, working_set, batch.evicted, summarizes=due, summaries=summaries, seen=seen)
    if batch.question is not None:
        yield from recollect(core, *batch.question)
    return [replace(batch.events[at], version=first + at) for at in batch.added]


def add_one(core: Core, working_set: WorkingSet, batch: _Batch, said: Dict, event_id: str) -> Steps[None]:
    """Add one message; older ones become waiting messages if the budget is exceeded."""
    version = working_set.version + len(batch.events) + 1
    strategy = core.in_force.strategy
    cold = strategy is not None and (yield from _is_cold(core, working_set, strategy.pricing))
    data, unit = yield from place_message(
        core, working_set, said, version=version, id=event_id, known=batch.seen
    )
    if working_set.state.user == version and data.keys() == {"message"}:
        batch.question = version, data["message"]
    data |= take_rules(core, working_set, data, version=version, id=event_id)
    batch.added.append(len(batch.events))
    batch.events.append(core.event(working_set, "message", data, id=event_id))
    working_set.said_at = core.clock()
    if batch.cuts:
        batch.seen[unit.first] = unit
    if not working_set.over and not (cold and working_set.total_tokens > working_set.steady_tokens):
        return
    if not batch.cuts:
        batch.seen, batch.cuts = working_set.view(), True
    if working_set.over:
        total = working_set.state.calibration.expected_tokens(working_set.total_tokens)
        batch.exceeded.append((total, working_set.state.budget_tokens))
    batch.evicted.extend(cut_down(core, working_set, batch.events))
    working_set.truncate()


def _is_cold(core: Core, working_set: WorkingSet, pricing: CachePricing) -> Steps[bool]:
    """Tell whether the prompt cache has expired since the latest message."""
    last = working_set.state.last
    if not last:
        return False
    if working_set.said_at is None:
        working_set.said_at = (yield from event_at(core.session, last, "message")).time
    return pricing.is_cold(core.clock() - working_set.said_at)


def cut_down(core: Core, working_set: WorkingSet, events: list[Event]) -> list[SessionUnit]:
    """Move units to waiting, and waiting ones out of view; the newest event has the result."""
    leaving = working_set.cut()
    if leaving:
        events.append(eviction(core, working_set, leaving))
    else:  # the view may be cut all the same
        events[-1] = replace(events[-1], state=working_set.state.to_dict())
    return leaving


def require_stored(core: Core, messages: Sequence[Dict], ids: Sequence[str]) -> Steps[list[Event]]:
    """Read messages that the store already has."""
    events = yield from read_stored(core, messages, ids)
    if events is None:
        raise ConfigurationError(
            f"session {core.session!r} has message {ids[0]!r}, but not all messages passed with it:"
            " nothing was added. A retry repeats the same messages; use new ids for new messages"
        )
    return events


def read_stored(core: Core, messages: Sequence[Dict], ids: Sequence[str]) -> Steps[list[Event] | None]:
    """Read these messages if the log has all of them under these ids; otherwise None.

    What the log says beside them does not count: a result that came twice has no call to answer any more.

    Raises:
        PrunedError: One was stored and pruned since, so that nobody knows whether it is the same.
    """
    events: list[Event] = yield LoadRequest(session=core.session, ids=tuple(ids))
    found = {event.id: event for event in events}
    gone = next((event for event in events if event.kind == PRUNED), None)
    if gone is not None:
        hint = ". If it is the same message, skip it; if not, add it with another id"
        raise (
            yield from core.prune_error(f"message {gone.id!r}, which was stored,", name=gone.id, hint=hint)
        )
    same = all(
        one in found and found[one].message == message for one, message in zip(ids, messages, strict=True)
    )
    return [found[one] for one in ids] if same else None


def place_message(
    core: Core,
    working_set: WorkingSet,
    said: Dict,
    *,
    version: int,
    id: str,
    known: Mapping[int, SessionUnit],
) -> Steps[tuple[Dict, SessionUnit]]:
    """Put a message in its place; return the data for the log, and its unit.

    `said` is the message with what its host says of it; `known` are units that may be out of view and not
    stored yet.
    """
    last = working_set.last_unit
    data = dict(said)
    read = working_set.reader.read(data["message"], behind=() if last is None else last.members.values())
    found = working_set.unit_of(read.answers) if read.answers else None
    if found is not None:
        unit = yield from recent_unit(core, working_set, found[0], known)
    elif read.bound and last is not None:
        unit = last
    else:
        if read.answers:
            data["alone"] = True
        unit = working_set.add_unit(version, data, id)
        working_set.note(version, read, turn=version)
        return data, unit
    data["joins"] = unit.first
    working_set.join(unit, version, data, id)
    working_set.note(version, read, turn=unit.first if read.bound else version)
    return data, unit


def recent_unit(
    core: Core, working_set: WorkingSet, members: Members, known: Mapping[int, SessionUnit]
) -> Steps[SessionUnit]:
    """Find a unit that is not summarized, and make it recent if it was waiting."""
    first = members[0]
    if first in working_set.recent:
        return working_set.recent[first]
    unit = working_set.shown.get(first) or known.get(first)
    if unit is None:
        unit = yield from read_unit(core.session, members, working_set.reader)
    working_set.bring_back(unit)
    return unit
