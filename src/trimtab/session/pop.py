"""Removing the newest message of a session; the log keeps it (SPEC E11)."""

from __future__ import annotations

from trimtab.errors import CorruptSessionError
from trimtab.session.change import call_back_newest
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.facts import facts_in_force, recount_facts
from trimtab.session.log import event_at, living_unit, state_of
from trimtab.session.pops import spans_with
from trimtab.session.state import State
from trimtab.session.summarize import tell_gone
from trimtab.session.undo import facts_of, first_stale, state_without, summaries_over
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event


def pop_message(core: Core, *, made: str) -> Steps[Event | None]:
    """Remove the newest message, and what repeats it; None if there is none.

    `made` is the id of the event that says so: asked again after a lost answer, it takes off nothing more.
    """
    done = yield from core.known_event(made)
    if done is not None:
        return (yield from event_at(core.session, done.data["gone"][-1][0]))
    working_set = yield from core.ready()
    version, seen = working_set.state.last, working_set.view()
    if not version:
        return None
    event = yield from event_at(core.session, version, "message")
    first = event.data.get("joins", version)
    before = state_of((yield from event_at(core.session, version - 1)), core.session)
    core.working_set = None  # until it is written
    summary = yield from _uncover(core, working_set, {version, before.user} - {0})
    yield from _take_off(core, working_set, event, first, before)
    span = version, core.next_version(working_set)
    data = yield from spans_with(core.session, working_set.state, span)
    working_set.state = working_set.state.with_pop(span[1])
    order = {"event": event.id, "version": summary or span[1], **data}
    if event.data.get("rules") or event.data.get("beyond"):
        working_set.rules = working_set.rules.without_message(event.id, version, event.data)
        working_set.state = working_set.state.with_rules(span[1])
        order |= working_set.rules.to_data()
    yield from core.write(working_set, "popped", order, id=made)
    yield from core.reread(working_set)
    seen.pop(first, None)
    tell_gone(core, seen)
    return event


def _uncover(core: Core, working_set: WorkingSet, versions: set[int]) -> Steps[int | None]:
    """Take back the summaries over these messages: what is popped, and the user's latest without it.

    Returns:
        The oldest version of a summary; None if none stands for one.
    """
    covered = set[int]()
    for version in versions:
        first = (yield from event_at(core.session, version, "message")).data.get("joins", version)
        if working_set.state.place(first) is None:
            covered.add(version)
    if not covered:
        return None
    summaries = yield from summaries_over(core, working_set, covered)
    oldest = yield from first_stale(core, working_set, set(summaries))
    if oldest is not None:
        working_set.state = yield from state_without(core, working_set, oldest)
    return oldest


def _take_off(core: Core, working_set: WorkingSet, event: Event, first: int, before: State) -> Steps[None]:
    """Forget a message: its calls no longer wait, and calls that it answered wait again."""
    unit = yield from living_unit(core.session, working_set, first)
    if unit is None:
        raise CorruptSessionError(
            f"session {core.session!r}: message {event.version} is the newest, but its place is unknown",
            session=core.session,
            version=event.version,
        )
    rest = unit.without(event.version)
    state = working_set.state.without_message(
        event.version,
        unit.versions,
        ids=working_set.reader.open_calls(rest.members.values()),
        tokens=unit.tokens - rest.tokens,
        before=before,
    )
    if state.recollection > event.version:
        recalled = yield from event_at(core.session, state.recollection, "recalled")
        if recalled.data["question"] >= event.version:
            state = state.with_recollection(before.recollection)
    working_set.state = yield from _without_facts(core, working_set, state, event)
    held = working_set.recent if first in working_set.recent else working_set.shown
    held.pop(first, None)
    if rest.members:
        held[first] = rest
    yield from call_back_newest(core, working_set)


def _without_facts(core: Core, working_set: WorkingSet, state: State, event: Event) -> Steps[State]:
    """Take back the facts that come from a message, and those after them."""
    facts = yield from facts_of(core, working_set, [event])
    while in_force := (yield from facts_in_force(core.session, state, facts)):
        oldest = next(fact for fact in facts if fact.version == min(in_force))
        answer = oldest.version - oldest.data["at"]
        before = state_of((yield from event_at(core.session, answer - 1)), core.session)
        state = yield from recount_facts(core.session, state.with_facts(state.facts.as_of(before.facts)))
    return state
