"""Reading a session from its log, only as much as requested."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from trimtab.errors import CorruptSessionError
from trimtab.formats import Dict
from trimtab.formats.origin import Origins, sort_origins
from trimtab.report import SummaryCheck
from trimtab.report.text import in_runs
from trimtab.session.effects import Steps
from trimtab.session.facts import read_facts
from trimtab.session.messages import MessageReader, SessionUnit, Summary
from trimtab.session.options import Options
from trimtab.session.pops import Gone, WayBack, gone_since
from trimtab.session.recollection import RecalledUnit, Recollection, origins_of, unit_text
from trimtab.session.rules import read_rules
from trimtab.session.schema import CHECKED_NAMES, check_kinds, check_state, prune_error
from trimtab.session.state import Members, State
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event, LoadRequest
from trimtab.stores.rows import PRUNED

FIRST_PAGE = 64
LARGEST_PAGE = 1024


class Pages:
    """Events in pages that grow, from one end of a part of the log to the other."""

    def __init__(
        self, session: str, *, after: int, before: int, newest_first: bool, largest: int = LARGEST_PAGE
    ) -> None:
        self._session, self._largest = session, largest
        self._after, self._before = after, before
        self._newest_first = newest_first
        self._size = FIRST_PAGE

    def next(self) -> Steps[list[Event]]:
        """Read the next page; empty at the end."""
        if self._before - self._after <= 1:
            return []
        events: list[Event] = yield LoadRequest(
            session=self._session,
            after=self._after,
            before=self._before,
            limit=self._size,
            newest_first=self._newest_first,
        )
        self._size = min(self._largest, self._size * 2)
        if not events or events[0].version != (self._before - 1 if self._newest_first else self._after + 1):
            missing = self._before - 1 if self._newest_first else self._after + 1
            raise CorruptSessionError(
                f"session {self._session!r}: event {missing} is missing",
                session=self._session,
                version=missing,
            )
        if self._newest_first:
            self._before = events[-1].version
        else:
            self._after = events[-1].version
        return events


class Kept:
    """What of a log stays, whatever of the rest is still there: all from a version on, and older runs.

    Of the older facts in whose place others stand, only those without text.
    """

    def __init__(
        self,
        session: str,
        whole: int,
        runs: Sequence[Sequence[int]],
        emptied: Sequence[Sequence[int]] = (),
    ) -> None:
        self._session, self._whole = session, whole
        self._runs = sorted((first, last) for first, last in runs)
        self._emptied = sorted((first, last) for first, last in emptied)

    def has(self, event: Event) -> bool:
        """Tell whether an event stays."""
        if event.kind == PRUNED:
            return False
        if event.version >= self._whole:
            return True
        is_emptied = event.data.get("text") == "" and _is_in(self._emptied, event.version)
        return is_emptied or _is_in(self._runs, event.version)

    def pages(self, *, after: int, before: int, newest_first: bool = False) -> PagesBetween:
        """Read what stays between two versions."""
        older = runs_near(sorted([*self._runs, *self._emptied]))
        spans = [
            (max(first, after + 1), min(last, before - 1))
            for first, last in [*older, (self._whole, before - 1)]
        ]
        parts = [
            Pages(self._session, after=first - 1, before=last + 1, newest_first=newest_first)
            for first, last in (reversed(spans) if newest_first else spans)
            if first <= last
        ]
        return PagesBetween(self, parts)


def _is_in(runs: Sequence[Sequence[int]], version: int) -> bool:
    at = bisect_right(runs, version, key=itemgetter(0)) - 1
    return at >= 0 and version <= runs[at][1]


def kept_of(session: str, state: State) -> Steps[Kept]:
    """Read what of a log stays; in a copy from before an order, all that is still there."""
    if state.whole > 1 and state.pruned:
        data = (yield from event_at(session, state.pruned, "pruning")).data
        return Kept(session, state.whole, data["kept"], data["emptied"])
    return all_there(session, state)


def all_there(session: str, state: State) -> Kept:
    """Return all that is still in a log, also what an interrupted order has yet to remove."""
    return Kept(session, state.whole, [(1, state.whole - 1)] if state.whole > 1 else ())


class PagesBetween:
    """The events that stay in some parts of the log, page by page."""

    def __init__(self, kept: Kept, parts: Iterable[Pages]) -> None:
        self._kept, self._parts = kept, list(parts)

    def next(self) -> Steps[list[Event]]:
        """Read the next page; empty at the end."""
        while self._parts:
            page = yield from self._parts[0].next()
            if not page:
                del self._parts[0]
            elif there := [event for event in page if self._kept.has(event)]:
                return there
        return []


def require_there(events: Iterable[Event], state: State, session: str, /) -> None:
    """Refuse to go on where something of what a state has waiting or recent was pruned."""
    gone = next((event for event in events if event.kind == PRUNED and event.version >= state.live), None)
    if gone is not None:
        raise prune_error(gone, session)


def event_at(session: str, version: int, kind: str | None = None) -> Steps[Event]:
    """Read one event; see `events_at`."""
    return (yield from events_at(session, (version,), kind))[version]


def events_at(session: str, versions: Iterable[int], kind: str | None = None) -> Steps[dict[int, Event]]:
    """Read events by their versions; consecutive ones with one request.

    Args:
        session: Its name.
        versions: Their versions.
        kind: What each is; None: whatever it is.
    """
    found: dict[int, Event] = {}
    for first, last in in_runs(versions):
        events: list[Event] = yield LoadRequest(session=session, after=first - 1, before=last + 1)
        found.update((event.version, event) for event in events)
        missing = next((version for version in range(first, last + 1) if version not in found), None)
        if missing is not None:
            raise CorruptSessionError(
                f"session {session!r}: event {missing} is missing", session=session, version=missing
            )
    check_kinds(found.values(), kind, session)
    return found


def state_of(event: Event, session: str) -> State:
    """Read the state in an event."""
    check_state(event, session)
    return State.from_dict(event.state)


def read_working_set(session: str, version: int, state: State, options: Options) -> Steps[WorkingSet]:
    """Build what a session shows at a version.

    Complexity: reads the events of what is recent or in view, and those between them.
    """
    working_set = WorkingSet(reader=MessageReader(options), state=state, version=version)
    if state.anchors:
        working_set.anchors = list((yield from event_at(session, state.anchors, "anchors")).data["anchors"])
    else:
        working_set.anchors = list(options.anchors)
    working_set.host_rules = list(options.rules)
    if state.host_rules:
        working_set.host_rules = list((yield from event_at(session, state.host_rules, "rules")).data["host"])
    working_set.rules = yield from read_rules(session, state.rules, working_set.reader)
    if state.summary:
        working_set.summary = yield from _read_summary(session, state.summary, working_set.reader)
    if state.anchor_summary:
        working_set.anchor_summary = yield from _read_summary(
            session, state.anchor_summary, working_set.reader
        )
    working_set.facts = yield from read_facts(session, state, working_set.reader)
    working_set.measure()
    yield from _read_messages(session, working_set)
    if state.recollection and working_set.recall_share:
        working_set.recollection = yield from _read_recollection(session, state, working_set.reader)
    working_set.truncate()
    return working_set


def _check_of(data: Mapping[str, Any]) -> SummaryCheck | None:
    """Read what became of the values that a summary must keep; None: it was not checked."""
    checked = data.get("checked")
    return None if checked is None else SummaryCheck(**{name: checked[name] for name in CHECKED_NAMES})


def _read_summary(session: str, version: int, reader: MessageReader) -> Steps[Summary]:
    event = yield from event_at(session, version, "summary")
    text, messages = event.data["text"], event.data["messages"]
    origins = frozenset(sort_origins(event.data.get("origins", ())))
    message = reader.summary_message(text, messages, origins)
    return Summary(
        version=event.version,
        text=text,
        messages=messages,
        origins=origins,
        message=message,
        tokens=reader.tokens(message),
        checked=_check_of(event.data),
    )


def _read_recollection(session: str, state: State, reader: MessageReader) -> Steps[Recollection]:
    """Read what was recalled, without messages that were redacted or pruned."""
    data = (yield from event_at(session, state.recollection, "recalled")).data
    versions = {version for members in data["units"] for version in members}
    told = yield from events_at(session, versions)
    check_kinds((event for event in told.values() if event.kind != PRUNED), "message", session)
    gone = yield from gone_since(session, state, state.recollection)
    units = list[RecalledUnit]()
    for members in data["units"]:
        events = [told[version] for version in members]
        if not any(one.kind == PRUNED or one.data.get("redacted") or one.version in gone for one in events):
            units.append(RecalledUnit(tuple(members), unit_text(reader, events), origins_of(reader, events)))
    return Recollection(before=data["before"], units=tuple(units), error=data.get("error"))


def _explicit(state: State) -> set[int]:
    """List the messages whose units a state names, because no other rule finds them."""
    return {version for members in (*state.beside, *state.left) for version in members}


def _messages(
    events: Iterable[Event], apart: Collection[int] = (), gone: Container[int] = ()
) -> Iterator[tuple[int, Event]]:
    """List the events of messages that are not apart or gone, each behind the first message of its unit."""
    for event in events:
        if event.kind == "message" and event.version not in apart and event.version not in gone:
            yield event.data.get("joins", event.version), event


class UnitsBack:
    """The units that are recent or wait, page by page from the newest back; not those `beside` the cut."""

    def __init__(self, session: str, state: State, *, version: int, reader: MessageReader) -> None:
        self._session, self._reader, self._state = session, reader, state
        self._pages = Pages(session, after=state.live - 1, before=version + 1, newest_first=True)
        self._back, self._explicit = WayBack(), _explicit(state)
        self._left = sorted(state.left)
        self._results: dict[int, list[Event]] = {}
        self._ended = False

    def next(self) -> Steps[list[SessionUnit] | None]:
        """Read the units that begin in the next page, the newest first; None at the end."""
        if self._ended:
            return None
        events = yield from self._pages.next()
        require_there(events, self._state, self._session)
        self._ended = not events
        units = list[SessionUnit]()
        for first, event in _messages(self._back.there(events), self._explicit):
            if first != event.version:
                self._results.setdefault(first, []).append(event)
            else:
                units.append(_unit([event, *reversed(self._results.pop(first, ()))], self._reader))
        border = events[-1].version if events else 0
        while self._left and self._left[-1][0] > border:
            units.append((yield from read_unit(self._session, self._left.pop(), self._reader)))
        return sorted(units, key=attrgetter("first"), reverse=True)


def _read_messages(session: str, working_set: WorkingSet) -> Steps[None]:
    """Read the recent units, and then those that wait, newest first, as far as they fit."""
    state, reader = working_set.state, working_set.reader
    for members in state.beside:
        unit = yield from read_unit(session, members, reader)
        working_set.recent[unit.first] = unit
    shown: list[SessionUnit] = []
    back = UnitsBack(session, state, version=working_set.version, reader=reader)
    while not working_set.hidden and (units := (yield from back.next())) is not None:
        working_set.recent.update((unit.first, unit) for unit in units if unit.first >= state.cut)
        shown += _take_into_view(working_set, (unit for unit in units if unit.first < state.cut))
    working_set.shown = {unit.first: unit for unit in reversed(shown)}
    working_set.recent = dict(sorted(working_set.recent.items()))
    # What is recent was just counted: a sum that went wrong in the log lets no view pass its budget.
    working_set.state = state.with_recent(
        (unit.versions, unit.tokens) for unit in working_set.recent.values()
    )


def _take_into_view(working_set: WorkingSet, waiting: Iterable[SessionUnit]) -> Iterator[SessionUnit]:
    """Take waiting units into view, newest first, until one finds no room."""
    for unit in waiting:
        if working_set.hidden:
            return
        if unit.first < working_set.state.view:
            working_set.hidden, working_set.hidden_tokens = unit.first, unit.tokens
            return
        working_set.shown_tokens += unit.tokens
        if working_set.over:
            working_set.shown_tokens -= unit.tokens
            working_set.hidden, working_set.hidden_tokens = unit.first, unit.tokens
        else:
            yield unit


def newest_hidden(session: str, working_set: WorkingSet, *, limit_tokens: int) -> Steps[list[SessionUnit]]:
    """Read the units that wait and are not in view, newest first, until one exceeds a limit.

    Complexity: reads them, and what is younger.
    """
    state, found, left_tokens = working_set.state, list[SessionUnit](), limit_tokens
    back = UnitsBack(session, state, version=working_set.version, reader=working_set.reader)
    while working_set.hidden and (units := (yield from back.next())) is not None:
        for unit in units:
            if unit.first >= state.cut or unit.first in working_set.shown:
                continue
            left_tokens -= unit.tokens
            if left_tokens < 0:
                return found
            found.append(unit)
    return found


def _unit(events: list[Event], reader: MessageReader) -> SessionUnit:
    unit = SessionUnit(events[0].version)
    for event in events:
        shown = reader.show(event.data, event.id)
        unit.take(event.version, shown, reader.lasting_tokens(shown.message))
    return unit


def read_unit(
    session: str, members: Members, reader: MessageReader, *, instead: Mapping[int, Event] | None = None
) -> Steps[SessionUnit]:
    """Read a unit whose messages are known."""
    new = {} if instead is None else instead
    old = yield from events_at(session, set(members).difference(new), "message")
    return _unit([new.get(version) or old[version] for version in members], reader)


def live_units(
    session: str,
    state: State,
    *,
    start: int = 1,
    stop: int,
    reader: MessageReader,
) -> Steps[list[SessionUnit]]:
    """Read the units that are not summarized and begin from `start` on and before `stop`, oldest first."""
    units: list[SessionUnit] = []
    for members in (*state.beside, *state.left):
        if start <= members[0] < stop:
            units.append((yield from read_unit(session, members, reader)))
    span = Span(max(start, state.live), stop, ends=state.cut)
    found, _ = yield from oldest_messages(session, state, span, reader, apart=_explicit(state))
    units.extend(_unit(events, reader) for events in found.values())
    return sorted(units, key=attrgetter("first"))


class Span(NamedTuple):
    """A part of the log."""

    start: int
    """Version of the first message that may begin a unit."""
    stop: int
    """The version after the last one that may."""
    ends: int
    """The version after the last one that may be of such a unit and stands behind the span."""


def _waits(events: list[Event], reader: MessageReader) -> bool:
    return bool(reader.open_calls(reader.show(event.data, event.id).message for event in events))


def living_unit(session: str, working_set: WorkingSet, first: int) -> Steps[SessionUnit | None]:
    """Find the unit that begins with a message, in view or not; None if a summary replaces it."""
    known = working_set.recent.get(first) or working_set.shown.get(first)
    if known is not None:
        return known
    units = yield from live_units(
        session, working_set.state, start=first, stop=first + 1, reader=working_set.reader
    )
    return units[0] if units else None


def opener_of(session: str, working_set: WorkingSet, first: int) -> Steps[SessionUnit | None]:
    """Find the unit that opens the turn of a message: the user's nearest one that may come first."""
    pages = Pages(session, after=working_set.state.live - 1, before=first, newest_first=True)
    back = WayBack()
    while events := (yield from pages.next()):
        for begins, event in _messages(back.there(events)):
            if working_set.reader.read(event.message).kind != "user":
                continue
            unit = yield from living_unit(session, working_set, begins)
            if unit is not None and working_set.reader.leads(unit):
                return unit
    return None


def oldest_waiting(
    session: str, state: State, *, reader: MessageReader, limit_tokens: int
) -> Steps[list[SessionUnit]]:
    """Read the units that wait, oldest first, until they pass a limit; no further than that.

    A unit is given with all its messages: while a call has no result yet, reading goes on.
    """
    span = Span(state.live, state.cut, ends=state.cut)
    found, border = yield from oldest_messages(
        session, state, span, reader, limit_tokens=limit_tokens, apart=_explicit(state)
    )
    units = [_unit(events, reader) for events in found.values()]
    for members in state.left:
        if members[0] < border:
            units.append((yield from read_unit(session, members, reader)))
    return sorted(units, key=attrgetter("first"))


def oldest_messages(
    session: str,
    state: State,
    span: Span,
    reader: MessageReader,
    *,
    limit_tokens: float = inf,
    apart: Collection[int] = (),
    instead: Mapping[int, Event] | None = None,
) -> Steps[tuple[dict[int, list[Event]], int]]:
    """Read the messages of the units that begin in a part of the log, until they pass a limit.

    Those that the state names `apart` are left out; `instead` are events by version that are about to be
    written in the place of those stored. What is bound to a unit stands directly behind it, and a unit that
    waits has all its results before the cut.

    Returns:
        The messages of each unit by its first, oldest first, and the version up to which all are there.
    """
    found: dict[int, list[Event]] = {}
    unanswered: set[int] = set()
    left_tokens, border = limit_tokens, 0
    gone = yield from gone_since(session, state, span.start)
    new = {} if instead is None else instead
    before = max(span.stop, span.ends) if span.start < span.stop else span.start
    pages = Pages(session, after=span.start - 1, before=before, newest_first=False)
    while not border and (events := (yield from pages.next())):
        require_there(events, state, session)
        for first, event in _messages(events, apart, gone):
            over = left_tokens < 0 or event.version >= span.stop
            if first == event.version and over and not unanswered:
                border = first
                break
            if first == event.version < span.stop:
                found[first] = []
            elif first not in found:
                continue  # its call is summarized already
            event = new.get(event.version, event)
            found[first].append(event)
            unanswered.discard(first)
            if _waits(found[first], reader):
                unanswered.add(first)
            if limit_tokens < inf:
                left_tokens -= reader.lasting_tokens(reader.show(event.data, event.id).message)
    return found, min(border or span.stop, span.stop)


def summarized_messages(
    session: str, version: int, *, reader: MessageReader, limit_tokens: int
) -> Steps[dict[int, tuple[Dict, Origins]]]:
    """Read what a summary and those it goes on from stand for, the newest first, until it passes a limit.

    Returns:
        The messages by version, as a view would show them, with their origins. What each of the summaries
        covered is there whole or not at all: it ends where something was pruned.
    """
    found: dict[int, tuple[Dict, Origins]] = {}
    left_tokens = limit_tokens
    while version and left_tokens > 0:
        summary = yield from event_at(session, version)
        if summary.kind == PRUNED:
            break
        check_kinds([summary], "summary", session)
        covered = {member for members in summary.data["covers"] for member in members}
        there: dict[int, tuple[Dict, Origins]] = {}
        for start, stop in runs_near(in_runs(covered)):
            pages = Pages(session, after=start - 1, before=stop + 1, newest_first=False)
            while events := (yield from pages.next()):
                for _, event in _messages(events):
                    if event.version in covered:
                        shown = reader.show(event.data, event.id)
                        there[event.version] = shown.message, shown.origins
                        left_tokens -= reader.tokens(shown.message)
        if len(there) < len(covered):
            break
        found |= there
        version = summary.data["previous"]
    return found


def runs_near(runs: Iterable[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Join runs of versions, ascending, unless there is a page of other events between two of them."""
    first, last = 0, 0
    for start, end in runs:
        if first and start - last > FIRST_PAGE:
            yield first, last
            first = 0
        first, last = first or start, max(last, end)
    if first:
        yield first, last


def recount(session: str, state: State, *, version: int, reader: MessageReader) -> Steps[State]:
    """Add up again what is recent and what waits, with another counter."""
    units = yield from live_units(session, state, stop=version + 1, reader=reader)
    return state.with_counts_of((unit.versions, unit.tokens) for unit in units)


def recount_waiting(session: str, before: State, state: State, *, reader: MessageReader) -> Steps[State]:
    """Add up again what waits, if some of what waited before was pruned."""
    if state.live == before.live:
        return state
    units = yield from live_units(session, state, stop=state.cut, reader=reader)
    waiting = [unit for unit in units if state.place(unit.first) == "pending"]
    return state.with_pending(
        tokens=sum(unit.tokens for unit in waiting), messages=sum(len(unit.members) for unit in waiting)
    )


def recount_moved(
    session: str,
    before: State,
    after: State,
    *,
    version: int,
    reader: MessageReader,
    instead: Mapping[int, Event],
) -> Steps[State]:
    """Say what is recent and what waits in a state that was made of `before` and has its counts.

    `instead` is as for `oldest_messages`.

    Complexity: reads the units that are elsewhere than they were, and no others.
    """
    named = {members[0]: members for state in (before, after) for members in (*state.beside, *state.left)}
    for first, members in named.items():
        if before.place(first) != after.place(first):
            unit = yield from read_unit(session, members, reader, instead=instead)
            after = _move(after, unit, before)
    apart = _explicit(before) | _explicit(after)
    borders = sorted({before.live, after.live, before.cut, after.cut})
    for start, stop in pairwise(borders):
        place = after.place_by_version(start)
        if before.place_by_version(start) == place:
            continue
        # A unit that waits has all its messages before the cut; of a recent one they may come at any time.
        ends = version + 1 if place == "recent" else max(before.cut, after.cut)
        span = Span(start, stop, ends)
        found, _ = yield from oldest_messages(session, after, span, reader, apart=apart, instead=instead)
        for events in found.values():
            after = _move(after, _unit(events, reader), before)
    return after


def recount_rewritten(
    state: State, old: Sequence[Event], new: Sequence[Event], reader: MessageReader, *, gone: Gone
) -> State:
    """Recount what is recent and what waits after messages changed."""
    for event, instead in zip(old, new, strict=True):
        if event.version in gone:
            continue
        place = state.place(event.data.get("joins", event.version))
        tokens = [reader.lasting_tokens(reader.show(one.data, one.id).message) for one in (event, instead)]
        state = state.plus(place, tokens=tokens[1] - tokens[0], messages=0)
    return state


def _move(state: State, unit: SessionUnit, before: State) -> State:
    """Take a unit from where it was, and add it where it is."""
    messages = len(unit.members)
    less = state.plus(before.place(unit.first), tokens=-unit.tokens, messages=-messages)
    return less.plus(state.place(unit.first), tokens=unit.tokens, messages=messages)
