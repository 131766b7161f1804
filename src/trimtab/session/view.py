"""The view: what a session shows at a version, as messages that fit (SPEC E1, E3)."""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab._fitting.fit_plan import deciding
from trimtab._fitting.fitted import Fitted, fitted_for
from trimtab._fitting.prepare import prepare
from trimtab._fitting.request import Ask
from trimtab.budget import Budget
from trimtab.report.lines import counted
from trimtab.session.messages import LiveUnit
from trimtab.session.options import Options
from trimtab.session.plain import copied
from trimtab.session.working_set import Scene
from trimtab.strategies.summarizer import drive

__all__ = ["fitted_view"]


class Listed(NamedTuple):
    """A view before it is fitted."""

    messages: list[dict[str, Any]]
    leading: int
    """Messages at the front that stay: system text, anchors, summary."""
    pins: list[int]
    latest_user: int | None


def fitted_view(scene: Scene, notes: tuple[str, ...]) -> Fitted[Any]:
    """Put the view together.

    What is in view was chosen to fit, so that mostly nothing is left to do; what must stay and is too large
    is shortened here, or refused (SPEC A4).

    Raises:
        BudgetExceededError: What must stay does not fit.
    """
    options = scene.sizer.options
    listed = listed_view(scene)
    if scene.summary is not None and not scene.shows_summary:
        notes = (*notes, "The summary is left out: what must stay takes its room.")
    limit = scene.view_limit_tokens
    if options.context is not None:  # which charges what stands beside the messages itself
        limit += scene.sizer.framing_tokens()
    work = prepare(
        Ask(
            messages=listed.messages,
            budget=_budget_of(options, max(1, limit)),
            model=options.model,
            counter=options.tokens_by,
            format=options.reader,
            system=scene.sizer.system_apart,
            tools=options.tools if options.context is None else None,
            strategy=None,
            pin=listed.pins,
            pending_calls=(*_open_calls(scene), *options.pending_calls),
            on_trim=options.on_trim,
            repair=False,
            leading=listed.leading,
            latest_user=listed.latest_user,
            notes=(*_notes(scene), *notes),
        )
    )
    return fitted_for(drive(deciding(work, work.budget)))


def _budget_of(options: Options, limit_tokens: int) -> Budget:
    """Return the budget as it was given, for the report; the limit alone where another is in force."""
    given = options.resolved
    return Budget(limit_tokens) if given is None or given.input_tokens != limit_tokens else given


def listed_view(scene: Scene) -> Listed:
    """List the messages of a view, in order."""
    state = scene.state
    front = permanent_messages(scene)
    summary = [copied(scene.summary.message)] if scene.summary and scene.shows_summary else []
    units = scene.in_view()
    waiting = [unit for unit in units if unit.first in scene.shown]
    recent = [unit for unit in units if unit.first not in scene.shown]
    pending_first = scene.sizer.options.pending_first
    if not pending_first:
        front.extend(summary)
    members = _members(waiting) + _members(recent) if pending_first else _members(units)
    messages = [copied(message) for _, message in members]
    if pending_first and summary:
        at = sum(len(unit.members) for unit in waiting)
        messages[at:at] = summary
        members[at:at] = [(0, summary[0])]
    leading, pins, user = len(front), [], None
    for index, (version, _) in enumerate(members, leading):
        if version in state.pins or version == 0:
            pins.append(index)
        if version == state.user and version:
            user = index
    return Listed(front + messages, leading, pins, user)


def permanent_messages(scene: Scene) -> list[dict[str, Any]]:
    """List what is always there: system text and anchors."""
    system = scene.sizer.system_message()
    messages = [] if system is None else [system]
    messages.extend(copied(scene.anchors))
    if scene.anchor_summary is not None:
        messages.append(copied(scene.anchor_summary.message))
    return messages


def _open_calls(scene: Scene) -> tuple[str, ...]:
    """List the calls whose results can still come, where a view does not show it: text stands behind them."""
    turn = scene.recent.get(scene.state.turn)
    if turn is None or scene.state.last in turn.members:
        return ()
    return tuple(one for members, ids in scene.state.waiting if members[0] == turn.first for one in ids)


def _members(units: list[LiveUnit]) -> list[tuple[int, dict[str, Any]]]:
    return sorted(((v, message) for unit in units for v, message in unit.members.items()), key=_version)


def _version(member: tuple[int, dict[str, Any]]) -> int:
    return member[0]


def _notes(scene: Scene) -> tuple[str, ...]:
    """Say what of the conversation is not in view, and why."""
    state, notes = scene.state, []
    if scene.summary is not None:
        notes.append(f"A summary stands for {counted(scene.summary.messages, 'message')}.")
    misplaced = sum(
        len(unit.members)
        for units in (scene.shown, scene.recent)
        for first, unit in units.items()
        if first in scene.misplaced
    )
    if hidden := scene.hidden_messages - misplaced:
        notes.append(f"Without room in view, but in the log: {counted(hidden, 'message')}.")
        waiting = state.pending_messages - sum(len(unit.members) for unit in scene.shown.values())
        if waiting and scene.sizer.options.summarizer is not None:
            notes.append(f"{counted(waiting, 'message')} of these wait for a summary: summarize() writes it.")
    if misplaced:
        notes.append(f"Not in view, since they may not stand first there: {counted(misplaced, 'message')}.")
    units = scene.in_view()
    as_text, escaped = sum(unit.as_text for unit in units), sum(unit.escaped for unit in units)
    if as_text:
        notes.append(f"Shown as text, since its call is no longer there: {counted(as_text, 'result')}.")
    if escaped:
        notes.append(f"Escaped, since it looks like trimtab's mark: text in {counted(escaped, 'message')}.")
    if state.failures:
        notes.append(
            f"Summaries that failed one after the other: {state.failures:,}. The next is asked for when"
            f" {state.retry_tokens:,} tokens wait ({state.pending_tokens:,} do)."
        )
    if state.usage_tokens:
        notes.append(
            f"Calibrated by reported usage: {state.usage_counted:,} tokens as counted here were"
            f" {state.usage_tokens:,} by the provider's count, so that the budget of"
            f" {state.budget_tokens:,} is {state.room_tokens:,} here."
        )
    return tuple(notes)
