"""Undo: taking back decisions (SPEC E11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trimtab.errors import (
    EVENT,
    PrunedError,
    UnknownNameError,
    phrase,
)
from trimtab.session.change import call_back_newest
from trimtab.session.core import Core, id_of
from trimtab.session.effects import Steps
from trimtab.session.facts import answer_at, recount_facts
from trimtab.session.log import (
    Pages,
    event_at,
    live_units,
    opener_of,
    read_working_set,
    recount_moved,
    state_of,
)
from trimtab.session.pops import Gone, gone_since
from trimtab.session.schema import check_kinds
from trimtab.session.state import Members, State
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event, LoadRequest
from trimtab.stores.rows import PRUNED

DECISIONS = frozenset({"summary", "evicted", "facts"})
"""Kinds of events that `undo` takes back."""

RETRACTIONS = frozenset({"undone", "redacted", "popped"})
"""Kinds of events that take decisions back, from a version on."""


def undo_decision(core: Core, given: Event | str | None, *, made: str) -> Steps[Event]:
    """Take back a summary, facts or an eviction, and those after it.

    `made` is the id of the event that says so: asked again after a lost answer, it takes back nothing more.
    """
    event_id = None if given is None else id_of(given)
    done = yield from core.known_event(made)
    if done is not None:
        return (yield from event_at(core.session, done.data["version"]))
    if event_id is not None:
        yield from core.known_event(event_id)
    working_set = yield from core.ready()
    target = yield from find_decision(core, working_set, event_id)
    state = yield from state_without(core, working_set, target.version)
    before = state_of((yield from event_at(core.session, target.version - 1)), core.session)
    # Of the facts of then some may have been redacted since.
    working_set.state = yield from recount_facts(
        core.session, state.with_facts(state.facts.as_of(before.facts))
    )
    yield from call_back_newest(core, working_set)
    yield from core.write(working_set, "undone", {"event": target.id, "version": target.version}, id=made)
    yield from core.reread(working_set)
    return target


def state_without(
    core: Core, working_set: WorkingSet, version: int, rewritten: Mapping[int, Event] | None = None
) -> Steps[State]:
    """Return the state without the decisions from a version on; messages, pins and budget stay."""
    instead = {} if rewritten is None else rewritten
    before = state_of((yield from event_at(core.session, version - 1)), core.session)
    while before.summary:
        summary = yield from event_at(core.session, before.summary, "summary")
        if not instead.get(before.summary, summary).data.get("stale"):
            break
        version = before.summary
        before = state_of((yield from event_at(core.session, version - 1)), core.session)
    state = working_set.state
    before = before.reaching_to(state.whole)
    gone = yield from gone_since(core.session, state, version)
    pinned = [
        members
        for members in state.beside
        if not set(members).isdisjoint(state.pins) or members[0] in working_set.openers
    ]
    late = yield from units_with_late_results(core, working_set, before, gone, after=version)
    made = state.without_decisions(
        before,
        back=(*pinned, *late),
        waiting=(yield from waiting_under_summaries(core, working_set, after=version)),
    ).without_members(gone)
    if working_set.reader.format.rules.ordered:
        made = yield from with_openers(core, working_set, made)
    return (
        yield from recount_moved(
            core.session, state, made, version=working_set.version, reader=working_set.reader, instead=instead
        )
    )


def with_openers(core: Core, working_set: WorkingSet, state: State) -> Steps[State]:
    """Make recent what opens the turn of a pinned message: a summary stood for it when that was pinned."""
    then = yield from read_working_set(core.session, working_set.version, state, core.in_force)
    for unit in list(then.recent.values()):
        if then.exempt(unit) and not then.reader.leads(unit):
            opener = yield from opener_of(core.session, then, unit.first)
            if opener is not None and opener.first not in then.recent:
                then.bring_back(opener)
    return state.with_places(then.state)


def units_with_late_results(
    core: Core, working_set: WorkingSet, before: State, gone: Gone, *, after: int
) -> Steps[list[Members]]:
    """List the units that were older than the cut and got a result since: they are recent from then on."""
    late: dict[int, list[int]] = {}
    pages = Pages(core.session, after=after, before=working_set.version + 1, newest_first=False)
    while events := (yield from pages.next()):
        for event in events:
            first = event.data.get("joins", event.version)
            if event.kind == "message" and first < before.cut and event.version not in gone:
                late.setdefault(first, []).append(event.version)
    if not late:
        return []
    units = yield from live_units(core.session, before, stop=max(late) + 1, reader=working_set.reader)
    whole = {unit.first: {*unit.versions, *late[unit.first]} for unit in units if unit.first in late}
    return [tuple(sorted(members)) for members in whole.values()]


def waiting_under_summaries(
    core: Core, working_set: WorkingSet, *, after: int
) -> Steps[dict[int, tuple[Members, tuple[str, ...]]]]:
    """Find the units that waited for results until a summary behind a version covered them.

    They are there again without it, and their results may still come.
    """
    found: dict[int, tuple[Members, tuple[str, ...]]] = {}
    last = yield from event_at(core.session, after)
    pages = Pages(core.session, after=after, before=working_set.version + 1, newest_first=False)
    while events := (yield from pages.next()):
        for event in events:
            if event.kind == "summary":
                covered = {members[0] for members in event.data["covers"]}
                rows = state_of(last, core.session).waiting
                found.update((row[0][0], row) for row in rows if row[0][0] in covered)
            elif event.kind in RETRACTIONS:  # what they are without is known by that state
                for members, _ in state_of(event, core.session).waiting:
                    found.pop(members[0], None)
            last = event
    return found


def find_decision(core: Core, working_set: WorkingSet, event_id: str | None) -> Steps[Event]:
    """Find the decision to take back: the named one, or the newest current one."""
    in_force = InForce()
    state = working_set.state
    pages = Pages(core.session, after=state.oldest, before=working_set.version + 1, newest_first=True)
    while not in_force.ended and (events := (yield from pages.next())):
        for event in in_force.among(events):
            if event_id in (None, event.id):
                return event
    if state.oldest and not in_force.ended:
        raise PrunedError(
            f"session {core.session!r} has {_no_decision(event_id)} since version {state.oldest:,}, and what"
            " was decided before that cannot be undone: the log was pruned",
            name=event_id or "",
            session=core.session,
            oldest=state.oldest,
        )
    hint = () if event_id is None else ("; ", EVENT)
    raise UnknownNameError(
        phrase(f"session {core.session!r} has {_no_decision(event_id)} to undo", *hint), name=event_id or ""
    )


def _no_decision(event_id: str | None) -> str:
    return "no current summary, facts or eviction" if event_id is None else f"no such decision {event_id!r}"


class InForce:
    """Tells which decisions were not taken back, while a log is read from its newest event on."""

    def __init__(self) -> None:
        self._undone: int | None = None
        """The oldest version from which on decisions are taken back."""
        self._oldest = 0
        """The oldest version on which a decision can be undone; what is older was pruned."""
        self.ended = False
        """Whether nothing older is current."""

    def among(self, events: Iterable[Event], /) -> Iterator[Event]:
        """Return the current decisions among the next events, newest first."""
        for event in events:
            if event.kind in ("cleared", "abridged", PRUNED) or event.version <= self._oldest:
                self.ended = True
                return
            if event.kind == "pruning":
                self._oldest = max(self._oldest, event.data["oldest"])
            if event.kind in RETRACTIONS:
                version = event.data["version"]
                self._undone = version if self._undone is None else min(self._undone, version)
            elif _decides(event) and (self._undone is None or event.version < self._undone):
                yield event


def _decides(event: Event) -> bool:
    """Tell whether there is something to take back; where no facts were found there is nothing."""
    data = event.data
    return event.kind in DECISIONS and bool(data.get("facts", True) or data.get("confirmations"))


def summaries_over(core: Core, working_set: WorkingSet, versions: set[int]) -> Steps[dict[int, Event]]:
    """Find every summary that covers one of these messages, or builds on one that does."""
    found: dict[int, Event] = {}
    for event in (yield from summaries_since(core, working_set, min(versions))):
        covers = {version for members in event.data["covers"] for version in members}
        if event.data["previous"] in found or not covers.isdisjoint(versions):
            found[event.version] = event
    return found


def summaries_since(core: Core, working_set: WorkingSet, after: int) -> Steps[list[Event]]:
    """Read every summary newer than a version, current or not, oldest first; of pruned parts the current."""
    newest_first, state = list[Event](), working_set.state
    version, floor = state.newest_summary, max(after, state.whole - 1)
    while version > floor:
        newest_first.append((yield from event_at(core.session, version, "summary")))
        version = newest_first[-1].data.get("older", -1)  # each says which was before it
    if version < 0:  # of older logs every event is looked at
        before = newest_first[-1].version if newest_first else working_set.version + 1
        pages = Pages(core.session, after=floor, before=before, newest_first=True)
        while events := (yield from pages.next()):
            newest_first += [event for event in events if event.kind == "summary"]
    older = (yield from _older_summaries(core, state, after)) if after < floor else {}
    return [*(older[version] for version in sorted(older)), *newest_first[::-1]]


def _older_summaries(core: Core, state: State, after: int) -> Steps[dict[int, Event]]:
    """Read the summaries that a state stands on, from before the log is whole, and newer than a version."""
    found = dict[int, Event]()
    for version in (state.anchor_summary, state.summary):
        while version > after and version not in found:
            event = yield from event_at(core.session, version)
            if event.kind == PRUNED:
                break
            found[version], version = event, event.data["previous"]
    return {version: event for version, event in found.items() if version < state.whole}


def facts_of(core: Core, working_set: WorkingSet, targets: Sequence[Event]) -> Steps[list[Event]]:
    """Find every fact that comes from one of these messages, current or not."""
    after, ids = min(event.version for event in targets), {event.id for event in targets}
    facts = yield from facts_since(core, working_set, after)
    return [event for event in facts if not ids.isdisjoint(event.data["sources"])]


def facts_since(core: Core, working_set: WorkingSet, after: int) -> Steps[list[Event]]:
    """Read every fact newer than a version, current or not; of pruned parts the current."""
    state = working_set.state
    version, found, floor = state.facts.newest, list[Event](), max(after, state.whole - 1)
    while version > floor:  # a fact is younger than what it comes from; each says which was before it
        newest = yield from event_at(core.session, version, "fact")
        batch: list[Event] = yield LoadRequest(
            session=core.session, after=version - newest.data["at"] - 1, before=version + 1
        )
        newer = [event for event in batch if event.version > floor]
        check_kinds(newer, "fact", core.session)
        found += newer
        version = batch[0].data.get("older", 0)
    if after < floor:
        found += yield from _older_facts(core, state, after)
    return found


def _older_facts(core: Core, state: State, after: int) -> Steps[list[Event]]:
    """Read the facts of answers in force, older than where the log is whole, and newer than a version."""
    found = list[Event]()
    first, last = state.facts.batch
    while last > after:
        events = yield from answer_at(core.session, first, last)
        found += [one for one in events if one.kind == "fact" and after < one.version < state.whole]
        first, last = events[-1].data["previous"]
    return found


def first_stale(core: Core, working_set: WorkingSet, stale: set[int]) -> Steps[int | None]:
    """Return the oldest stale summary among those in force stand on; None if none does."""
    state, first = working_set.state, None
    version = state.anchor_summary if state.anchor_summary in stale else state.summary
    while version in stale:
        first = version
        version = (yield from event_at(core.session, version, "summary")).data["previous"]
    return first
