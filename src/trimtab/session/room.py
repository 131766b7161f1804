"""Making room once the budget was passed: evict, summarize, take out of view."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from trimtab.errors import SessionDeletedError, StoreUnavailableError, VersionConflictError
from trimtab.session.core import Core
from trimtab.session.cover import summarize_if_due, tell_gone
from trimtab.session.effects import Steps
from trimtab.session.log import read_scene
from trimtab.session.messages import LiveUnit
from trimtab.session.summarize import messages_of
from trimtab.session.working_set import Scene
from trimtab.stores import Event

__all__ = ["eviction", "make_room"]

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
