"""Taking messages: into the log first, then room is made (SPEC E3, E4)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.errors import (
    ConfigurationError,
    SessionDeletedError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.formats.foreign import check_message
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.log import read_scene, read_unit
from trimtab.session.messages import LiveUnit
from trimtab.session.plain import plain_message
from trimtab.session.state import Members
from trimtab.session.summarize import messages_of, summarize_if_due, tell_gone
from trimtab.session.working_set import Scene
from trimtab.stores import Event, LoadRequest

__all__ = ["adding", "eviction", "make_room"]


# Making room once the budget was passed: evict, summarize, take out of view.


_log = logging.getLogger("trimtab.session")


def eviction(core: Core, scene: Scene, units: Sequence[LiveUnit]) -> Event:
    """Make the event of units that wait from now on."""
    data = {"units": [list(unit.versions) for unit in units], "reason": "budget"}
    return core.event(scene, "evicted", data)


def make_room(
    core: Core,
    scene: Scene,
    evicted: Sequence[LiveUnit] = (),
    *,
    exceeded: bool = False,
    summaries: int = 1,
    seen: Mapping[int, LiveUnit],
) -> Steps[None]:
    """Tell what was evicted, summarize if it is time, and take out of view what has no room.

    What was decided before is stored by now: a store that goes away here costs a summary, and nothing else.

    Args:
        core: The session.
        scene: Where it stands.
        evicted: Units put aside; some may have been called back since.
        exceeded: Whether the budget was passed.
        summaries: How many may be asked for.
        seen: What was in view before, and what came.
    """
    waiting = {unit.first: unit for unit in evicted if unit.first not in scene.recent}
    if waiting:
        core.tell("on_evict", messages_of(list(waiting.values())), "budget")
    try:
        if exceeded and not core.in_force.background:
            yield from summarize_if_due(core, summaries=summaries)
        if core.scene is not None:
            core.scene.truncate()
            yield from _reread_if_room(core)
    except (StoreUnavailableError, VersionConflictError, SessionDeletedError) as error:
        core.scene = None
        _log.warning("session %r: a summary was put off: %s", core.session, error)
    tell_gone(core, seen)


def _reread_if_room(core: Core) -> Steps[None]:
    scene = core.scene
    if scene is not None and scene.has_room:
        core.scene = yield from read_scene(core.session, scene.version, scene.state, core.in_force)


@dataclass(slots=True)
class _Came:
    """What came of the messages of one call, before it is written."""

    events: list[Event]
    added: list[int] = field(default_factory=list)
    """Places of the events of the messages."""
    exceeded: list[tuple[int, int]] = field(default_factory=list)
    evicted: list[LiveUnit] = field(default_factory=list)
    seen: dict[int, LiveUnit] = field(default_factory=dict)
    """What was in view when the budget was passed, and what came since."""


def adding(core: Core, messages: Sequence[Any], ids: Sequence[str]) -> Steps[list[Event]]:
    """Take messages: into the log first, then make room (SPEC E3)."""
    plain = [plain_message(message) for message in messages]
    scene = yield from core.ready()
    if not plain:
        return []
    for message in plain:
        check_message(message, scene.sizer.format.name)
        scene.sizer.read(message)  # what cannot be read is refused before anything is written
    came = _Came(core.first_events(scene))
    core.scene = None  # until everything is written
    for message, event_id in zip(plain, ids, strict=True):
        yield from come(core, scene, came, message, event_id)
    try:
        done = yield from core.append(scene, came.events)
    except ConfigurationError:
        events = yield from stored(core, plain, ids)
        if events is None:
            raise
        return events
    if done.duplicate:
        return (yield from all_stored(core, plain, ids))
    first = done.version - len(came.events) + 1
    for total, limit in came.exceeded:
        core.tell("on_budget_exceeded", total, limit)
    yield from make_room(core, scene, came.evicted, exceeded=bool(came.exceeded), seen=came.seen)
    return [replace(came.events[at], version=first + at) for at in came.added]


def come(core: Core, scene: Scene, came: _Came, message: dict[str, Any], event_id: str) -> Steps[None]:
    """Take one message, and let older ones wait if the budget is passed now."""
    version = scene.version + len(came.events) + 1
    data, unit = yield from take(core, scene, message, version=version, known=came.seen)
    came.added.append(len(came.events))
    came.events.append(core.event(scene, "message", data, id=event_id))
    if came.exceeded:
        came.seen[unit.first] = unit
    if not scene.over:
        return
    if not came.exceeded:
        came.seen = scene.seen()
    total = scene.state.expected_tokens(scene.total_tokens)
    came.exceeded.append((total, scene.state.budget_tokens))
    leaving = scene.cut()
    if leaving:
        came.evicted.extend(leaving)
        came.events.append(eviction(core, scene, leaving))
    scene.truncate()


def all_stored(core: Core, messages: Sequence[dict[str, Any]], ids: Sequence[str]) -> Steps[list[Event]]:
    """Read messages the store has already.

    Raises:
        ConfigurationError: It has the first and not all of them.
    """
    events = yield from stored(core, messages, ids)
    if events is None:
        raise ConfigurationError(
            f"session {core.session!r} has a message of id {ids[0]!r} and not all that were given with it:"
            " nothing was added. A retry repeats the very same messages; give new ones ids of their own"
        )
    return events


def stored(core: Core, messages: Sequence[dict[str, Any]], ids: Sequence[str]) -> Steps[list[Event] | None]:
    """Read these messages if the log has all of them under these ids; None if it has not.

    What the log says beside them does not count: a result that came twice has no call to answer any more.
    """
    events: list[Event] = yield LoadRequest(session=core.session, ids=tuple(ids))
    found = {event.id: event for event in events}
    same = all(
        one in found and found[one].message == message for one, message in zip(ids, messages, strict=True)
    )
    return [found[one] for one in ids] if same else None


def take(
    core: Core, scene: Scene, message: dict[str, Any], *, version: int, known: Mapping[int, LiveUnit]
) -> Steps[tuple[dict[str, Any], LiveUnit]]:
    """Put a message where it belongs; return what the log has to know of it, and its unit.

    `known` are units that may be out of view and not stored yet.
    """
    last = scene.last_unit
    read = scene.sizer.read(message, behind=() if last is None else last.members.values())
    data: dict[str, Any] = {"message": message}
    found = scene.unit_of(read.answers) if read.answers else None
    if found is not None:
        unit = yield from recent_unit(core, scene, found[0], known)
    elif read.bound and last is not None:
        unit = last
    else:
        if read.answers:
            data["alone"] = True
        unit = scene.add_unit(version, data)
        scene.note(version, read, turn=version)
        return data, unit
    data["joins"] = unit.first
    scene.join(unit, version, data)
    scene.note(version, read, turn=unit.first if read.bound else version)
    return data, unit


def recent_unit(core: Core, scene: Scene, members: Members, known: Mapping[int, LiveUnit]) -> Steps[LiveUnit]:
    """Find a unit that is not summarized, and make it recent if it was waiting."""
    first = members[0]
    if first in scene.recent:
        return scene.recent[first]
    unit = scene.shown.get(first) or known.get(first)
    if unit is None:
        unit = yield from read_unit(core.session, members, scene.sizer)
    scene.bring_back(unit)
    return unit
