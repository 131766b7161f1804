"""What the user sets: budget, anchors, pins, a new beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.counting.baseline import Usage, usage_of
from trimtab.errors import ConfigurationError
from trimtab.session.add import eviction, make_room
from trimtab.session.core import Core, ViewGiven, id_of
from trimtab.session.effects import Delete, Steps
from trimtab.session.log import living_unit, opener_of, read_scene
from trimtab.session.messages import LiveUnit
from trimtab.session.options import check_anchor, session_budget
from trimtab.session.plain import plain_message
from trimtab.session.state import State
from trimtab.session.summarize import CATCH_UP
from trimtab.session.working_set import Scene
from trimtab.stores import Event

__all__ = ["clearing", "deleting", "pinning", "recording_usage", "setting_anchors", "setting_budget"]


def setting_budget(core: Core, budget: Any) -> Steps[None]:
    """Change the budget; a smaller one evicts at once, a larger one shows again what was out of view."""
    scene = yield from core.ready()
    options = core.in_force
    resolved = session_budget(budget, options.tokens_by, options.tools)
    tokens = resolved.input_tokens
    if options.context is not None:
        raise ConfigurationError(
            "the budget of this session is its Context's: open the session with another Context, or change"
            " the other blocks of session.context"
        )
    core.scene = None  # until everything is written
    seen = scene.seen()
    scene.state = replace(scene.state, budget_tokens=tokens, epoch=scene.state.epoch + 1)
    scene.require_room()
    yield from ordered(core, scene, "budget", {"budget_tokens": tokens}, seen=seen)
    options.resolved = resolved


def setting_anchors(core: Core, messages: Sequence[Any]) -> Steps[None]:
    """Replace the anchors."""
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise ConfigurationError(f"anchors is a list of messages, not {messages!r:.80}")
    plain = [plain_message(message) for message in messages]
    scene = yield from core.ready()
    for at, message in enumerate(plain):
        scene.sizer.read(message)
        check_anchor(scene.sizer.format, message, at)
    version = core.next_version(scene)
    core.scene = None  # until everything is written
    seen = scene.seen()
    scene.anchors = plain
    scene.state = replace(scene.state, anchors=version, epoch=scene.state.epoch + 1)
    scene.measure()
    scene.require_anchor_room()
    scene.require_room()
    yield from ordered(core, scene, "anchors", {"anchors": plain}, seen=seen)


def ordered(
    core: Core, scene: Scene, kind: str, data: Mapping[str, Any], *, seen: Mapping[int, LiveUnit]
) -> Steps[None]:
    """Write an order down, and make the room it asks for."""
    events = core.first_events(scene)
    events.append(core.event(scene, kind, data))
    total, exceeded = scene.state.expected_tokens(scene.total_tokens), scene.over
    evicted = scene.cut() if exceeded else []
    if evicted:
        events.append(eviction(core, scene, evicted))
    yield from core.append(scene, events)
    if exceeded:
        core.tell("on_budget_exceeded", total, scene.state.budget_tokens)
    yield from make_room(core, scene, evicted, exceeded=exceeded, summaries=CATCH_UP, seen=seen)


def clearing(core: Core) -> Steps[None]:
    """Begin anew: nothing said so far is in view; anchors return to those given."""
    scene = yield from core.ready()
    version = core.next_version(scene)
    state = State(
        budget_tokens=scene.state.budget_tokens,
        options=scene.state.options,
        newest_summary=scene.state.newest_summary,
        live=version + 1,
        cut=version + 1,
        epoch=scene.state.epoch + 1,
        usage_tokens=scene.state.usage_tokens,
        usage_counted=scene.state.usage_counted,
        learned_reported=scene.state.learned_reported,
        learned_counted=scene.state.learned_counted,
    )
    begun = Scene(sizer=scene.sizer, state=state, version=version, anchors=list(core.in_force.anchors))
    begun.measure()
    begun.require_room()
    if begun.anchors != scene.anchors:
        begun.require_anchor_room()
    scene.state = state
    yield from core.write(scene, "cleared", {})
    core.scene = yield from read_scene(core.session, scene.version, scene.state, core.in_force)


def pinning(core: Core, given: Event | str, *, pinned: bool) -> Steps[None]:
    """Keep a message in every view, or no longer."""
    event_id = id_of(given)
    event = yield from core.message_event(event_id)
    scene = yield from core.ready()
    state, version, seen = scene.state, event.version, scene.seen()
    if not pinned:
        if version not in state.pins:
            return
        scene.state = replace(state, pins=tuple(one for one in state.pins if one != version))
        yield from core.write(scene, "unpinned", {"event": event_id})
        yield from make_room(core, scene, seen=seen)
        return
    if version in state.pins:
        return
    first = event.data.get("joins", version)
    unit = yield from living_unit(core.session, scene, first)
    if unit is None:
        raise ConfigurationError(
            f"event {event_id!r} is not in reach any more: a summary stands for it, or the session was"
            " cleared. undo() the summary first"
        )
    if first not in scene.recent:
        scene.bring_back(unit)
    if core.in_force.reader.rules.ordered and not scene.sizer.leads(unit):
        opener = yield from opener_of(core.session, scene, first)
        if opener is not None and opener.first not in scene.recent:
            scene.bring_back(opener)
    scene.state = replace(scene.state, pins=tuple(sorted((*state.pins, version))))
    yield from core.write(scene, "pinned", {"event": event_id})
    yield from make_room(core, scene, seen=seen)


def deleting(core: Core) -> Steps[None]:
    """Remove the session from its store."""
    yield Delete(core.session, core.incarnation())
    core.release()
    core.scene, core.job = None, None
    if not core.begins:
        core.options = None


# What the provider reported for a view: from then on the session keeps its budget by that (SPEC A1).


def recording_usage(core: Core, usage: Any) -> Steps[None]:
    """Take in what was reported for the view given last, and keep the budget by it from now on."""
    reported = usage_of(usage)
    scene = yield from core.ready()
    given = core.view_given
    if core.in_force.context is not None:
        raise ConfigurationError(
            "the budget of this session is its Context's, which other blocks share, and a report does not say"
            " which of them was larger than counted: give the Context's Budget a margin instead"
        )
    if given is None:
        raise ConfigurationError(
            f"session {core.session!r} has given no view that usage could be of: call messages() or fit() on"
            " this object before the model is asked, and record_usage() after"
        )
    core.scene = None  # until everything is written
    seen = scene.seen()
    data = {
        "input_tokens": reported.input_tokens,
        "answer_tokens": reported.answer_tokens,
        "counted_tokens": given.counted_tokens,
        "view": given.version,
    }
    _learn(scene, given, reported)
    yield from ordered(core, scene, "usage", data, seen=seen)
    core.view_given = None  # it is reported once


def _learn(scene: Scene, given: ViewGiven, reported: Usage) -> None:
    """Begin from the report, and learn from it if its view goes on from that of the report before."""
    state, learned = scene.state, scene.state.learned
    if not state.usage_tokens:
        learned = learned.with_first_report(
            given.counted_tokens,
            reported.input_tokens,
            messages_tokens=max(0, given.counted_tokens - scene.permanent_tokens),
        )
    elif state.usage_first == given.first:
        learned = learned.with_report(
            given.counted_tokens - state.usage_counted, reported.input_tokens - state.usage_tokens
        )
    answer = _answer_counted(scene, given)
    known = bool(answer and reported.answer_tokens)
    scene.state = replace(
        state,
        usage_tokens=reported.input_tokens + ((reported.answer_tokens or 0) if known else 0),
        usage_counted=given.counted_tokens + (answer if known else 0),
        usage_first=given.first,
        learned_reported=learned.reported_tokens,
        learned_counted=learned.counted_tokens,
    )


def _answer_counted(scene: Scene, given: ViewGiven) -> int:
    """Return the counted size of the answer, if it was added already; 0 if not, or if counts are exact."""
    if getattr(scene.sizer.options.tokens_by, "exact", False):
        return 0  # a tokenizer that is right needs no report, which counts without framing
    since = {
        version: message
        for unit in scene.in_view()
        for version, message in unit.members.items()
        if version > given.version
    }
    message = since[min(since)] if since else None
    if message is None or scene.sizer.read(message).kind != "assistant":
        return 0
    return scene.sizer.tokens(message)
