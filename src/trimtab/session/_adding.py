"""Taking messages: into the log first, then room is made (SPEC E3, E4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trimtab.session._core import Core
from trimtab.session._effects import Steps
from trimtab.session._plain import plain_message
from trimtab.session._reading import (
    read_unit,
)
from trimtab.session._room import eviction, make_room
from trimtab.session._scene import Scene
from trimtab.session._sizer import LiveUnit
from trimtab.session._state import Members
from trimtab.stores import Event, LoadRequest

__all__ = ["adding"]


def adding(core: Core, messages: Sequence[Any], ids: Sequence[str | None]) -> Steps[list[Event]]:
    """Take messages: into the log first, then make room (SPEC E3)."""
    plain = [plain_message(message) for message in messages]
    scene = yield from core.ready()
    for message in plain:
        scene.sizer.read(message)  # what cannot be read is refused before anything is written
    events = core.first_events(scene)
    exceeded: list[tuple[int, int]] = []
    evicted: list[LiveUnit] = []
    seen: dict[int, LiveUnit] = {}
    added: list[int] = []
    core.scene = None  # until everything is written
    for message, event_id in zip(plain, ids, strict=True):
        version = scene.version + len(events) + 1
        data = yield from take(core, scene, message, version=version, seen=seen)
        added.append(len(events))
        events.append(core.event(scene, "message", data, id=event_id))
        if scene.over:
            exceeded.append((scene.total_tokens, scene.state.budget_tokens))
            seen.update(scene.seen())
            leaving = scene.cut()
            if leaving:
                evicted.extend(leaving)
                events.append(eviction(core, scene, leaving))
            scene.truncate()
    done = yield from core.append(scene, events)
    if done.duplicate:
        return (yield from stored(core, ids))
    first = done.version - len(events) + 1
    for total, limit in exceeded:
        core.tell("on_budget_exceeded", total, limit)
    yield from make_room(core, evicted, exceeded=bool(exceeded), seen=seen)
    return [replace(events[at], version=first + at) for at in added]


def stored(core: Core, ids: Sequence[str | None]) -> Steps[list[Event]]:
    wanted = tuple(one for one in ids if one is not None)
    events: list[Event] = yield LoadRequest(session=core.session, ids=wanted)
    return sorted(events, key=lambda event: event.version)


def take(
    core: Core, scene: Scene, message: dict[str, Any], *, version: int, seen: dict[int, LiveUnit]
) -> Steps[dict[str, Any]]:
    """Put a message where it belongs, and say what the log has to know of it.

    `seen` are the units that were in view on the way: some are not stored yet.
    """
    read = scene.sizer.read(message)
    data: dict[str, Any] = {"message": message}
    kind = read.kind
    found = scene.unit_of(read.answers) if read.answers else None
    if found is not None:
        unit = yield from recent_unit(core, scene, found[0], seen)
        data["joins"] = unit.first
        scene.join(unit, version, data, read.answers)
    else:
        if read.answers:
            data["alone"] = True
            kind = "tool"
        scene.add_unit(version, data, read.calls)
    scene.note(version, kind)
    return data


def recent_unit(core: Core, scene: Scene, members: Members, seen: dict[int, LiveUnit]) -> Steps[LiveUnit]:
    """Find a unit that is not summarized, and make it recent if it was waiting."""
    first = members[0]
    if first in scene.recent:
        return scene.recent[first]
    unit = scene.shown.get(first) or seen.get(first)
    if unit is None:
        unit = yield from read_unit(core.session, members, scene.sizer)
    scene.bring_back(unit)
    return unit
