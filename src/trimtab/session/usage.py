"""What the provider reported for a view: from then on the session keeps its budget by that (SPEC A1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trimtab.counting.usage import Usage, usage_of
from trimtab.errors import ConfigurationError
from trimtab.session.change import ordered
from trimtab.session.core import Core, ViewGiven
from trimtab.session.effects import Steps
from trimtab.session.working_set import Scene

__all__ = ["recording_usage"]


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
