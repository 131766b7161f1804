"""Looking at a session: its view, now or then, what two views differ in, and what was said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trimtab._fitting.fitted import Fitted
from trimtab.errors import ConfigurationError
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
from trimtab.session.messages import Sizer
from trimtab.session.state import State
from trimtab.session.status import ViewDiff
from trimtab.session.view import fitted_view
from trimtab.session.working_set import Scene
from trimtab.stores import Event, SearchRequest, query_terms

__all__ = ["diffing", "pages", "recalling", "viewing", "viewing_at"]


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
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ConfigurationError(f"{name} is a version, 0 or more, not {value!r:.80}")
    stop = scene.version + 1 if before is None else min(before, scene.version + 1)
    return Pages(core.session, after=after, before=stop, newest_first=False)


def recalling(core: Core, query: str, limit: int) -> Steps[list[Event]]:
    """Find messages that are not in view."""
    if not isinstance(query, str):
        raise ConfigurationError(f"a query is a text, not {query!r:.80}")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigurationError(f"limit is a whole number of at least 1, not {limit!r:.80}")
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
