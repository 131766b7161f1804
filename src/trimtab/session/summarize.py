"""When a summary is due, and of what it is to be written (SPEC E6, E7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.log import oldest_waiting
from trimtab.session.messages import LiveUnit
from trimtab.session.plain import copied
from trimtab.session.state import State
from trimtab.session.summary import Job
from trimtab.session.working_set import Scene
from trimtab.session.zones import limits_of

__all__ = ["early_job", "is_due", "messages_of", "waiting_job"]


def is_due(core: Core, state: State) -> bool:
    """Tell whether so much waits that a summary is to be written (SPEC E6, E7)."""
    options = core.in_force
    if options.summarizer is None or state.pending_tokens < max(1, state.retry_tokens):
        return False
    limits = limits_of(options, state.room_tokens)
    if state.pending_tokens >= limits.threshold_tokens:
        return True
    return (
        state.pending_messages >= limits.threshold_messages
        and 2 * state.pending_tokens >= limits.threshold_tokens
    )


def waiting_job(core: Core, scene: Scene) -> Steps[Job | None]:
    """Make the job of summarizing what waits: the oldest of it, one budget's worth at most."""
    state = scene.state
    units: list[LiveUnit] = []
    tokens = 0
    if scene.hidden:
        waiting = yield from oldest_waiting(
            core.session, state, sizer=scene.sizer, limit_tokens=state.room_tokens
        )
    else:
        waiting = list(scene.shown.values())
    for unit in waiting:
        if units and tokens + unit.tokens > state.room_tokens:
            break
        units.append(unit)
        tokens += unit.tokens
    return job_of(core, scene, units) if units else None


def early_job(core: Core, scene: Scene) -> Steps[Job | None]:
    """Make the job of a background summary: what waits, or what will have to leave next."""
    options, state = core.in_force, scene.state
    if options.summarizer is None:
        return None
    if is_due(core, state):
        return (yield from waiting_job(core, scene))
    limits = limits_of(options, state.room_tokens)
    if state.pending_messages or state.failures:
        return None  # it waits for more
    if scene.total_tokens + limits.threshold_tokens <= state.room_tokens:
        return None
    units: list[LiveUnit] = []
    tokens = 0
    for unit in scene.recent.values():
        if tokens >= limits.threshold_tokens:
            return job_of(core, scene, units)
        if not scene.exempt(unit):
            units.append(unit)
            tokens += unit.tokens
    return None


def job_of(core: Core, scene: Scene, units: Sequence[LiveUnit]) -> Job:
    """Write down what is to be summarized, and in place of what."""
    options, state = core.in_force, scene.state
    limits = limits_of(options, state.room_tokens)
    cap = limits.max_summary_tokens
    anchored = options.summary_mode == "anchored" and not scene.anchors
    becomes_anchor = anchored and scene.anchor_summary is None
    if becomes_anchor:
        cap = min(cap, limits.max_anchor_tokens)
    elif options.summary_mode == "anchored":
        cap -= scene.anchor_tokens
    summary = scene.summary
    return Job(
        units=tuple(unit.versions for unit in units),
        messages=messages_of(units),
        unit_tokens=tuple(unit.tokens for unit in units),
        existing=None if summary is None else summary.text,
        existing_tokens=scene.summary_tokens,
        covered_before=0 if summary is None else summary.messages,
        becomes_anchor=becomes_anchor,
        cap_tokens=cap,
        base=state.summary,
        epoch=state.epoch,
    )


def messages_of(units: Sequence[LiveUnit]) -> list[dict[str, Any]]:
    """Copy the messages of units, in the order of the log."""
    members = {version: message for unit in units for version, message in unit.members.items()}
    return [copied(members[version]) for version in sorted(members)]
