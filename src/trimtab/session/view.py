"""The view: what a session shows at a version, as messages that fit (SPEC E1, E3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab._fitting.fit_plan import deciding
from trimtab._fitting.fitted import Fitted, fitted_for
from trimtab._fitting.prepare import prepare
from trimtab._fitting.request import Ask
from trimtab._shared.checks import check_whole
from trimtab.budget import Budget
from trimtab.errors import ConfigurationError
from trimtab.report.text import counted
from trimtab.session.core import Core, ViewGiven
from trimtab.session.effects import FitContext, Steps
from trimtab.session.in_context import NO_ROOM, request_of
from trimtab.session.log import (
    Pages,
    counted_again,
    event_at,
    read_scene,
    state_of,
)
from trimtab.session.messages import LiveUnit, Sizer
from trimtab.session.options import Options
from trimtab.session.plain import copied
from trimtab.session.state import State
from trimtab.session.working_set import Scene
from trimtab.stores import Event, SearchRequest, query_terms
from trimtab.strategies.summarizer import drive

if TYPE_CHECKING:
    pass

__all__ = ["SessionStatus", "ViewDiff", "diffing", "pages", "recalling", "viewing", "viewing_at"]


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


# Numbers about a session, and what two of its views differ in.


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """Where a session stands."""

    version: int
    """Events in its log."""
    budget_tokens: int
    view_tokens: int
    expected_tokens: int
    """What the provider is expected to bill for the view: `view_tokens` until usage was recorded."""
    recent_messages: int
    recent_tokens: int
    pending_messages: int
    """Messages that wait for a summary."""
    pending_tokens: int
    hidden_messages: int
    """Messages that are neither in view nor summarized; `Session.summarize` takes those that wait."""
    summarized_messages: int
    """Messages the summaries in force stand for."""
    failures: int
    """Summaries that failed since the last one that did not."""
    retry_tokens: int
    """Waiting tokens from which the summarizer is asked again.

    0 if it did not fail, and did not have to be asked for a shorter text.
    """
    last_failure: str | None
    """Why the last summary failed, as far as this object knows."""
    stale_summaries: int
    """Summaries this object dropped, since what they covered had changed meanwhile."""
    hook_errors: int

    @classmethod
    def of(cls, scene: Scene, core: Core) -> SessionStatus:
        """Collect the numbers."""
        state = scene.state
        covering = [one for one in (scene.anchor_summary, scene.summary) if one is not None]
        return cls(
            version=scene.version,
            budget_tokens=state.budget_tokens,
            view_tokens=scene.breakdown.total,
            expected_tokens=state.expected_tokens(scene.breakdown.total),
            recent_messages=state.recent_messages,
            recent_tokens=state.recent_tokens,
            pending_messages=state.pending_messages,
            pending_tokens=state.pending_tokens,
            hidden_messages=scene.hidden_messages,
            summarized_messages=sum(one.messages for one in covering),
            failures=state.failures,
            retry_tokens=state.retry_tokens,
            last_failure=core.last_failure,
            stale_summaries=core.stale_summaries,
            hook_errors=core.hook_errors,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDiff:
    """What came into a view and what left it, from one version to another."""

    came: tuple[Event, ...]
    """Messages in the second view only."""
    left: tuple[Event, ...]
    """Messages in the first view only."""
    summary_before: str | None
    summary_after: str | None


# Looking at a session: its view, now or then, what two views differ in, and what was said.


def viewing(core: Core) -> Steps[Fitted[dict[str, Any]]]:
    """Put the view together."""
    scene = yield from core.ready()
    notes = () if core.last_failure is None else (f"The last summary failed: {core.last_failure}.",)
    fitted = yield from _fitted(scene, notes)
    first = min((unit.first for unit in scene.in_view()), default=0)
    counted = fitted.report.tokens_after
    core.view_given = ViewGiven(scene.version, counted, first)
    return fitted


def viewing_at(core: Core, version: int) -> Steps[Fitted[dict[str, Any]]]:
    """Put the view of a version together."""
    return (yield from _fitted((yield from scene_at(core, version)), ()))


def _fitted(scene: Scene, notes: tuple[str, ...]) -> Steps[Fitted[dict[str, Any]]]:
    """Fit the view; as one block among others where the session has a context."""
    options = scene.sizer.options
    if options.context is None:
        return fitted_view(scene, notes)
    if options.room == NO_ROOM:
        yield FitContext(request_of(options, [], ()))  # says which of the other blocks does not fit
    fitted = fitted_view(scene, notes)
    whole: Fitted[dict[str, Any]] = yield FitContext(
        request_of(options, fitted.messages, fitted.report.notes)
    )
    return whole


def scene_at(core: Core, version: int) -> Steps[Scene]:
    """Read where the session stood at a version."""
    yield from core.known_version(version)
    scene = yield from core.ready()
    if version == 0:
        made = Scene(
            sizer=scene.sizer,
            state=State(budget_tokens=scene.state.budget_tokens),
            version=0,
            anchors=list(core.in_force.anchors),
        )
        made.measure()
        return made
    state = state_of((yield from event_at(core.session, version)), core.session)
    known = yield from core.known_options(state.options)
    options = core.options_of(known)
    if options.context is not None:
        # The other blocks are those of now, and so is the room they leave.
        state = replace(state, budget_tokens=min(state.budget_tokens, options.budget_tokens))
    if options.counted_by != known["counted_by"]:
        sizer = Sizer(options)
        state = state.without_usage()
        state = yield from counted_again(core.session, state, version=version, sizer=sizer)
    return (yield from read_scene(core.session, version, state, options))


def diffing(core: Core, a: int, b: int) -> Steps[ViewDiff]:
    """Compare two views."""
    before = yield from scene_at(core, a)
    after = yield from scene_at(core, b)
    old, new = _versions_in(before), _versions_in(after)
    came, left = sorted(new - old), sorted(old - new)
    events: dict[int, Event] = {}
    for version in (*came, *left):
        events[version] = yield from event_at(core.session, version)
    return ViewDiff(
        came=tuple(events[version] for version in came),
        left=tuple(events[version] for version in left),
        summary_before=None if before.summary is None else before.summary.text,
        summary_after=None if after.summary is None else after.summary.text,
    )


def pages(core: Core, after: int, before: int | None) -> Steps[Pages]:
    """Read the log from its beginning."""
    scene = yield from core.ready()
    for name, value in (("after", after), ("before", before)):
        if value is not None:
            check_whole(name, value, least=0)
    stop = scene.version + 1 if before is None else min(before, scene.version + 1)
    return Pages(core.session, after=after, before=stop, newest_first=False)


def recalling(core: Core, query: str, limit: int) -> Steps[list[Event]]:
    """Find messages that are not in view."""
    if not isinstance(query, str):
        raise ConfigurationError(f"a query is a text, not {query!r:.80}")
    check_whole("limit", limit, least=1)
    scene = yield from core.ready()
    terms = query_terms(query)
    if not terms or not scene.version:
        return []
    seen = _versions_in(scene)
    request = SearchRequest(session=core.session, terms=terms, limit=limit + len(seen))
    found: list[Event] = yield request
    return [event for event in found if event.version not in seen][:limit]


def _versions_in(scene: Scene) -> set[int]:
    return {version for unit in scene.in_view() for version in unit.members}
