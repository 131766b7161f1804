"""Pruning: of what neither views, facts, rules nor the newest decisions need, only its place remains.

An event says from which version on the log is whole, and what older events stay. From then on everybody goes
by it, whatever of the rest is still there: it is removed page by page, while others go on to write. Another
event says that it is done, so that who is killed in between leaves no more than work for the next order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from trimtab._shared.checks import check_whole
from trimtab.budget import MOST_TOKENS
from trimtab.errors import (
    ConfigurationError,
    CorruptSessionError,
    PrunedError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.report.text import in_runs
from trimtab.session.core import Core, new_event_id
from trimtab.session.effects import Steps
from trimtab.session.facts import standing_facts
from trimtab.session.history import end_id, is_ended
from trimtab.session.log import (
    Pages,
    Span,
    UnitsBack,
    event_at,
    oldest_messages,
    recount_waiting,
    runs_near,
    state_of,
)
from trimtab.session.redact import without_text
from trimtab.session.state import State
from trimtab.session.undo import InForce
from trimtab.session.working_set import WorkingSet
from trimtab.stores import AppendRequest, Event, LoadRequest
from trimtab.stores.rows import PRUNED, missing_event, to_row

FIRST_EVENTS = 16
"""Events of the first page that is rewritten: how large they are is not known yet."""

READ_EVENTS = 256
"""Events of a page whose states are read, at the most: each is several times as large as its JSON."""

MOST_EVENTS = 500
"""Events of a page at the most."""

PAGE_BYTES = 2_000_000
"""Size of a page to aim for, in bytes of JSON."""

ASKED_IDS = 200
"""Ids that are looked up with one request."""

ATTEMPTS = 50
"""How often a write is repeated while other writers are faster."""

MOST_KEPT = MOST_TOKENS
"""The largest number in a log. No session has as many decisions, so more means the same."""

_LEFT = len('{"data":{},"state":{}}')
"""Bytes that remain of a pruned event's data and state."""

Run = tuple[int, int]
"""The first and the last version of a run of events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What an order to prune a session did, in numbers; no content.

    Two orders at once may both remove an event, and then both count it.

    Args:
        version: Version of the event that says so; 0: nothing of the log was ever pruned.
        events: How many events were removed: of each, only its place remains.
        messages: How many of them were messages.
        bytes: How many bytes of data and state they had, as JSON.
        kept: How many events of the session are still whole.
        oldest: The oldest version that can be shown, and on which a decision can be undone; 0: all can.
        not_erased: Why files may still hold bytes of what is gone; None: they hold none.

    Example:
        >>> Pruning(version=120, events=80, oldest=101).to_dict()["events"]
        80
    """

    version: int = 0
    """Version of the event that says so; 0: nothing of the log was ever pruned."""
    events: int = 0
    """How many events were removed: of each, only its place remains."""
    messages: int = 0
    """How many of them were messages."""
    bytes: int = 0
    """How many bytes of data and state they had, as JSON."""
    kept: int = 0
    """How many events of the session are still whole."""
    oldest: int = 0
    """The oldest version that can be shown, and on which a decision can be undone; 0: all can."""
    not_erased: str | None = None
    """Why files may still hold bytes of what is gone; None: they hold none."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


class Plan(NamedTuple):
    """What stays of a log."""

    before: int
    """From this version on everything does."""
    oldest: int
    """The oldest version that can be shown."""
    kept: list[list[int]]
    """Runs of older events that stay, too."""
    emptied: list[list[int]]
    """Runs of older facts of which the rank is needed, but no text."""

    @classmethod
    def in_data(cls, data: Mapping[str, Any], /) -> Plan:
        """Read it from the event that says so."""
        return cls(*(data[name] for name in cls._fields))

    def removes_as(self, other: Plan, /) -> bool:
        """Tell whether another removes the same."""
        return (self.before, self.kept, self.emptied) == (other.before, other.kept, other.emptied)

    @property
    def older(self) -> int:
        """How many of the older events stay."""
        return sum(last - first + 1 for first, last in (*self.kept, *self.emptied))


@dataclass(slots=True)
class _Page:
    """Events that are removed with one append."""

    old: list[Event] = field(default_factory=list)
    new: list[Event] = field(default_factory=list)
    """What is written in their place."""
    parts: list[Run] = field(default_factory=list)
    """What is to be looked through then."""
    bytes: int = 0
    """How many bytes fewer they have then."""

    def count(self, kind: str | None = None) -> int:
        """Return how many of them, or of their messages, are removed."""
        pairs = zip(self.old, self.new, strict=True)
        return sum(new.kind == PRUNED and kind in (None, old.kind) for old, new in pairs)


@dataclass(slots=True, kw_only=True)
class PruneOrder:
    """An order to prune, and how far it is: a retry goes on from there, and counts nothing twice."""

    keep: int
    made: str
    """Id of the event that says so."""
    plan: Plan | None = None
    """None: not known yet."""
    parts: list[Run] = field(default_factory=list)
    """What is still to be looked through, oldest first."""
    again: list[Run] = field(default_factory=list)
    """What is looked through again at the end: a rotation that read it before may have written it back."""
    page: _Page | None = None
    """What is being removed; None: it is not read yet."""
    said: Event | None = None
    """The event that says so; None: it is not written yet."""
    at: int = 0
    """Version of the session, as far as this order knows."""
    size: int = FIRST_EVENTS
    """Events of the next page."""
    events: int = 0
    messages: int = 0
    bytes: int = 0
    is_erased: bool = False
    """Whether the files are clean."""

    @classmethod
    def of(cls, keep: int) -> PruneOrder:
        """Check the argument."""
        return cls(keep=min(check_whole("keep", keep, least=0), MOST_KEPT), made=new_event_id())

    def begin(self, plan: Plan, parts: Iterable[Run]) -> None:
        """Go by a plan."""
        self.plan, self.parts = plan, [(first, last) for first, last in parts if first <= last]
        self.again = [*runs_near(sorted(plan.emptied))]
        self.size, self.page = FIRST_EVENTS, None
        self.events = self.messages = self.bytes = 0

    def note(self, said: Event) -> None:
        """Note the event that says so."""
        self.said, self.at = said, max(self.at, said.version)

    def take_page(self) -> None:
        """Count what was removed, and go on behind it."""
        page, self.page = self.page, None
        if page is not None:
            self.parts, self.bytes = page.parts, self.bytes + page.bytes
            self.events += page.count()
            self.messages += page.count("message")

    def receipt(self, not_erased: str | None = None) -> Pruning:
        """Say what was done."""
        plan, said = self.plan, self.said
        if plan is None:
            return Pruning()
        kept = self.at - plan.before + 1 + plan.older
        if said is None:
            return Pruning(kept=kept, oldest=plan.oldest)
        return Pruning(
            version=said.version,
            events=self.events,
            messages=self.messages,
            bytes=self.bytes,
            kept=kept,
            oldest=plan.oldest,
            not_erased=not_erased,
        )

    def failure_receipt(self, error: StoreUnavailableError) -> Pruning:
        """Say what was done where the store failed at last: an error, unless only the files are left."""
        if self.said is None or self.parts or self.again or self.is_erased:
            raise error
        return self.receipt(str(error))


def go_on(core: Core, order: PruneOrder) -> Steps[Pruning | None]:
    """Do the next step of an order; None: there are more."""
    if order.said is None:
        if not (yield from _begin(core, order)):
            return order.receipt()
    elif order.parts:
        yield from _prune_page(core, order)
    elif order.again:
        order.parts, order.again = order.again, []
    else:
        return (yield from _end(core, order))
    return None


def _begin(core: Core, order: PruneOrder) -> Steps[bool]:
    """Plan, and say so in the log with the first page, at once; False if there is nothing to do."""
    for _ in range(ATTEMPTS):
        done = yield from core.known_event(order.made)
        if done is not None:  # the answer was lost: what was planned then is in force
            order.note(done)
            order.take_page()
            return True
        working_set = yield from core.ready()
        if not working_set.version:
            return False
        try:
            return (yield from _begin_at(core, working_set, order))
        except VersionConflictError:
            yield from core.again()
    raise VersionConflictError(
        f"session {core.session!r}: other writers were faster {ATTEMPTS} times, and nothing was pruned."
        " Repeat the call",
        session=core.session,
    )


def _begin_at(core: Core, working_set: WorkingSet, order: PruneOrder) -> Steps[bool]:
    state, order.at = working_set.state, working_set.version
    plan = yield from plan_for(core, working_set, order.keep)
    last = (yield from event_at(core.session, state.pruned, "pruning")) if state.pruned else None
    known = None if last is None else Plan.in_data(last.data)
    is_done = last is None or (yield from is_ended(core, last))
    if last is not None and known is not None and not is_done and plan.removes_as(known):
        order.begin(known, [(1, known.before - 1)])
        order.note(last)
        return True
    if known is None or not is_done:
        order.begin(plan, [(1, plan.before - 1)])
    else:
        older = runs_near(sorted([*known.kept, *known.emptied]))
        order.begin(plan, [*older, (known.before, plan.before - 1)])
    page = order.page = yield from _next_page(core, order, until_found=True)
    if not page.new and is_done:
        order.plan = (known or plan)._replace(oldest=state.oldest)
        order.said = last
        return False
    order.note((yield from _say(core, working_set, order, plan, page)))
    order.take_page()
    yield from core.reread(working_set)
    return True


def _say(core: Core, working_set: WorkingSet, order: PruneOrder, plan: Plan, page: _Page) -> Steps[Event]:
    """Write from which version on the log is whole, and at once the first page of what is removed."""
    version, before = core.next_version(working_set), working_set.state
    made = before.with_pruning(whole=plan.before, oldest=plan.oldest, pruned=version)
    working_set.state = yield from recount_waiting(core.session, before, made, reader=working_set.reader)
    data = {"keep": order.keep, **plan._asdict()}
    try:
        said = yield from core.write(
            working_set, "pruning", data, rewrites=page.new, id=order.made, erase=False
        )
    except PrunedError:
        raise
    except ConfigurationError as error:
        if (yield from core.known_event(order.made)) is not None:
            raise  # somebody else took the id
        raise _cannot_prune(core, f"The store said: {error}") from error
    kept = yield from _still_there(core, page)
    if kept is not None:
        yield from _put_back(core, working_set, order, said, before, page)
        raise _cannot_prune(core, f"Event {kept.version} is still of the kind {kept.kind!r} there")
    return said


def _still_there(core: Core, page: _Page) -> Steps[Event | None]:
    """Read back one event that is pruned now; return what it was if the store says that it is not."""
    pairs = zip(page.old, page.new, strict=True)
    old = next((old for old, new in pairs if new.kind == PRUNED), None)
    if old is None:
        return None
    try:
        found = yield from event_at(core.session, old.version)
    except CorruptSessionError:  # its kind without its data
        return old
    return None if found.kind == PRUNED else old


def _cannot_prune(core: Core, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"session {core.session!r} cannot be pruned in this store, and all that it says is there as before:"
        " a rewrite must be able to change the kind of an event to 'pruned'. See Store.append;"
        f" trimtab.testing.check_store checks it. {why}"
    )


def _put_back(
    core: Core, working_set: WorkingSet, order: PruneOrder, said: Event, before: State, page: _Page
) -> Steps[None]:
    """Write what a store did not prune, but changed, as it was; and that nothing was pruned."""
    order.at, options = said.version, working_set.state.options
    working_set.state = before if options == before.options else before.with_options(options)
    data = {"of": said.version, "events": 0, "messages": 0, "bytes": 0}
    try:
        yield from core.write(working_set, "erased", data, rewrites=page.old, id=end_id(said), erase=False)
    except VersionConflictError:  # somebody goes on from what was said: it holds, but no text is lost
        yield from _rewrite(core, order, page.old, erase=False)
    yield from core.again()


# -- what is removed


def _next_page(core: Core, order: PruneOrder, *, until_found: bool = False) -> Steps[_Page]:
    """Read on until a page is full, or, unless something must be found, once.

    Of small parts many are read for one page, so that what goes is written with few appends.
    """
    page, done = _Page(parts=list(order.parts)), False
    while page.parts and not done:
        limit, before = max(1, order.size - len(page.new)), page.bytes
        read = yield from _read_on(core, order.plan, page, limit)
        is_full = 2 * len(page.new) >= order.size or page.bytes > PAGE_BYTES
        done = is_full or (read == limit and not (until_found and not page.new))
        fit = read * PAGE_BYTES // max(1, page.bytes - before)
        order.size = max(1, min(MOST_EVENTS, 2 * order.size, fit))
    return page


def _read_on(core: Core, plan: Plan | None, page: _Page, limit: int) -> Steps[int]:
    """Read events of the next part; return how many there were."""
    if plan is None:
        raise RuntimeError("the order was not planned")
    first, last = page.parts[0]
    events: list[Event] = yield LoadRequest(
        session=core.session, after=first - 1, before=last + 1, limit=limit
    )
    if not events or events[0].version != first:
        raise missing_event(core.session, first)
    behind = events[-1].version
    kept, emptied = (_within(runs, first, behind) for runs in (plan.kept, plan.emptied))
    for old in events:
        if old.kind == PRUNED or old.version in kept or old.version >= plan.before:
            continue
        new = _only_rank(old) if old.version in emptied else _only_place(old)
        if new != old:
            page.old.append(old)
            page.new.append(new)
            left = _LEFT if new.kind == PRUNED else len(to_row(new).body)
            page.bytes += len(to_row(old).body) - left
    page.parts[:1] = [(behind + 1, last)] if behind < last else []
    return len(events)


def _within(runs: Sequence[Sequence[int]], first: int, last: int) -> set[int]:
    """List the versions of runs that are between two."""
    near = ((max(one, first), min(other, last)) for one, other in runs if one <= last and other >= first)
    return {version for one, other in near for version in range(one, other + 1)}


def _only_place(event: Event) -> Event:
    return replace(event, kind=PRUNED, data={}, state={})


def _only_rank(event: Event) -> Event:
    """Take the text out of a fact in whose place another stands; what it is ranked by stays."""
    if event.kind != "fact":
        return event
    bare = without_text(event)
    return replace(bare, data={**bare.data, "sources": []})


def _prune_page(core: Core, order: PruneOrder) -> Steps[None]:
    for attempt in range(1, ATTEMPTS + 1):
        if order.page is None:
            order.page = yield from _next_page(core, order)
        try:
            if order.page.new:
                yield from _rewrite(core, order, order.page.new, erase=False)
        except VersionConflictError:  # another order removed some of these
            order.page = None
            if attempt == ATTEMPTS:
                raise
            continue
        order.take_page()
        return


def _rewrite(core: Core, order: PruneOrder, rewrites: Sequence[Event], *, erase: bool) -> Steps[None]:
    """Write events in the place of those stored, at whatever version the session is."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            yield AppendRequest(
                session=core.session, expected_version=order.at, events=(), rewrites=rewrites, erase=erase
            )
            return
        except VersionConflictError:
            newest: list[Event] = yield LoadRequest(session=core.session, limit=1, newest_first=True)
            if not newest or newest[0].version == order.at or attempt == ATTEMPTS:
                raise
            order.at = newest[0].version


def _end(core: Core, order: PruneOrder) -> Steps[Pruning]:
    """Have the files cleaned, and say in the log that it is done."""
    said, plan = order.said, order.plan
    if said is None or plan is None:
        raise RuntimeError("the order was not begun")
    if not order.is_erased:
        gone = yield from _one_gone(core, plan)
        if gone is not None:
            yield from _rewrite(core, order, [gone], erase=True)
        order.is_erased = True
    data = {"of": said.version, "events": order.events, "messages": order.messages, "bytes": order.bytes}
    for attempt in range(1, ATTEMPTS + 1):
        if (yield from core.known_event(end_id(said))) is not None:
            break
        try:
            yield from core.write((yield from core.ready()), "erased", data, id=end_id(said))
            break
        except VersionConflictError:
            if attempt == ATTEMPTS:
                raise
            yield from core.again()
        except ConfigurationError:  # the id is taken where another order said the same just now
            if (yield from core.known_event(end_id(said))) is None:
                raise
    order.at = (yield from core.ready()).version
    core.announce("pruned", version=said.version, messages=order.messages)
    return order.receipt()


def _one_gone(core: Core, plan: Plan) -> Steps[Event | None]:
    """Find an event that is as an order leaves it: to write it again has the files cleaned."""
    if plan.emptied:
        found = yield from event_at(core.session, plan.emptied[0][0])
        return found if found.kind == PRUNED else _only_rank(found)
    pages = Pages(core.session, after=0, before=plan.before, newest_first=True)
    while events := (yield from pages.next()):
        gone = next((event for event in events if event.kind == PRUNED), None)
        if gone is not None:
            return gone
    return None


# -- what stays


@dataclass(slots=True)
class _Needs:
    """What the states of a part of the log name of older events, and how far back their views reach."""

    stand: int
    """The oldest of these states."""
    named: set[int] = field(default_factory=set)
    """Versions of events."""
    ids: set[str] = field(default_factory=set)
    """Ids of others: messages with rules, and facts of the best."""
    registers: set[int] = field(default_factory=set)
    recollections: set[int] = field(default_factory=set)
    batches: set[Run] = field(default_factory=set)
    unread: set[int] = field(default_factory=set)
    live: int = 0
    cut: int = 0
    read: int = 0
    room_tokens: int = 0

    def take(self, event: Event, state: State, *, before: int) -> None:
        """Note what the state of an event names from before a version; of an old one, the newest messages."""
        named = [state.user, state.turn, state.last, state.kept]
        if 0 < state.recollection < before:
            self.recollections.add(state.recollection)
        if event.kind == "recalled":
            named += (version for unit in event.data["units"] for version in unit)
        if event.version >= self.stand:
            named += _named_in(state)
            self._reach(state)
            self._take_said(event)
            if 0 < state.rules < before:
                self.registers.add(state.rules)
            if 0 < state.facts.batch[1] <= self.stand:
                self.batches.add(state.facts.batch)
            self.unread.update(state.facts.unread)
        self.named.update(version for version in named if 0 < version < before)

    def _reach(self, state: State) -> None:
        first = not self.live
        self.live = state.live if first else min(self.live, state.live)
        self.cut = state.cut if first else min(self.cut, state.cut)
        self.read = state.facts.read if first else min(self.read, state.facts.read)
        self.room_tokens = max(self.room_tokens, state.room_tokens, state.budget_tokens)

    def _take_said(self, event: Event) -> None:
        """Note what an event names itself."""
        self.ids.update(one for entry in event.data.get("register", ()) for one, _ in entry["said"])
        if event.kind == "facts":
            self.ids.update(event.data.get("best", ()))


def _named_in(state: State) -> Iterator[int]:
    """List the versions of events that a state names and somebody reads."""
    yield from (state.options, state.anchors, state.host_rules, state.rules, state.switched)
    yield from (state.summary, state.anchor_summary, state.recollection)
    yield from state.pins
    for members in (*state.beside, *state.left, *(members for members, _ in state.waiting)):
        yield from members


def plan_for(core: Core, working_set: WorkingSet, keep: int) -> Steps[Plan]:
    """Say what stays of a log so that a number of its newest decisions can be undone."""
    state, session = working_set.state, core.session
    stand = yield from _oldest_stand(core, working_set, keep)
    needs = _Needs(stand)
    yield from _read_states(core, working_set, needs, stand, working_set.version, before=stand + 1)
    whole = yield from _first_whole(core, working_set, needs)
    if whole <= 1:
        return Plan(1, 0, [], [])
    yield from _read_states(core, working_set, needs, whole - 1, stand - 1, before=whole)
    yield from _read_named(core, needs)
    if _extracts(core):
        for first in needs.unread:
            span = Span(first, first + 1, ends=state.cut)
            found, _ = yield from oldest_messages(session, state, span, working_set.reader, limit_tokens=0)
            needs.named.update(event.version for events in found.values() for event in events)
    kept, emptied = {*needs.named, whole - 1}, set[int]()
    for batch in needs.batches:
        standing = yield from standing_facts(session, batch, before=whole)
        needs.ids |= standing.named
        kept |= standing.kept
        emptied |= standing.emptied
    for event in (yield from _by_ids(core, needs.ids)):
        if event.kind != PRUNED:
            (emptied if event.kind == "fact" else kept).add(event.version)
    older = [{version for version in some if version < whole} for some in (kept, emptied - kept)]
    return Plan(whole, stand, *([list(run) for run in in_runs(some)] for some in older))


def _extracts(core: Core) -> bool:
    """Tell whether the session has a fact extractor, here or where it was made."""
    return core.in_force.fact_extractor is not None or "fact_extractor" in core.missing


def _oldest_stand(core: Core, working_set: WorkingSet, keep: int) -> Steps[int]:
    """Find the version before the oldest decision that is kept; the newest version if none is."""
    in_force, found, left = InForce(), working_set.version + 1, keep
    after = working_set.state.oldest
    pages = Pages(
        core.session, after=after, before=working_set.version + 1, newest_first=True, largest=READ_EVENTS
    )
    while left and not in_force.ended and (events := (yield from pages.next())):
        for event in in_force.among(events):
            found, left = event.version, left - 1
            if not left:
                break
    stand = found - 1
    while True:  # undo goes on to the summary before one that lost its text
        state = state_of((yield from event_at(core.session, stand)), core.session)
        summary = (yield from event_at(core.session, state.summary)) if state.summary else None
        if summary is None or not summary.data.get("stale") or state.summary - 1 <= after:
            return stand
        stand = state.summary - 1


def _read_states(
    core: Core, working_set: WorkingSet, needs: _Needs, first: int, last: int, *, before: int
) -> Steps[None]:
    """Note what the states between two versions need."""
    whole = working_set.state.whole
    after = max(0, first - 1)
    pages = Pages(core.session, after=after, before=last + 1, newest_first=False, largest=READ_EVENTS)
    while events := (yield from pages.next()):
        for event in events:
            if event.kind != PRUNED:
                needs.take(event, state_of(event, core.session).reaching_to(whole), before=before)


def _first_whole(core: Core, working_set: WorkingSet, needs: _Needs) -> Steps[int]:
    """Say from which version on everything stays: what is recent, in view, or waits for who will read it."""
    whole = min(needs.stand + 1, needs.live)
    if core.in_force.summarizer is None and "summarizer" not in core.missing:
        whole = min(needs.stand + 1, needs.cut, (yield from _first_waiting(core, working_set, needs)))
    if _extracts(core):
        whole = min(whole, max(1, needs.read))
    return max(whole, working_set.state.whole)


def _first_waiting(core: Core, working_set: WorkingSet, needs: _Needs) -> Steps[int]:
    """Say from which version on what waits may be in a view: it takes no more than the room of one."""
    state = state_of((yield from event_at(core.session, needs.stand)), core.session)
    state, left = state.reaching_to(working_set.state.whole), needs.room_tokens
    back = UnitsBack(core.session, state, version=needs.stand, reader=working_set.reader)
    while (units := (yield from back.next())) is not None:
        for unit in units:
            if state.live <= unit.first < state.cut:
                left -= unit.tokens
                if left < 0:
                    return unit.first + 1
    return state.live


def _read_named(core: Core, needs: _Needs) -> Steps[None]:
    """Read what is named by events that states name: of rules, and of what was recalled."""
    for version in needs.registers:
        event = yield from event_at(core.session, version)
        needs.named.add(version)
        needs.ids.update(one for entry in event.data.get("register", ()) for one, _ in entry["said"])
    for version in needs.recollections:
        event = yield from event_at(core.session, version, "recalled")
        needs.named.add(version)
        needs.named.update(one for unit in event.data["units"] for one in unit)


def _by_ids(core: Core, ids: Iterable[str]) -> Steps[list[Event]]:
    """Read events by their ids; without their content, which may be large."""
    found, asked = list[Event](), sorted(ids)
    for at in range(0, len(asked), ASKED_IDS):
        events: list[Event] = yield LoadRequest(session=core.session, ids=tuple(asked[at : at + ASKED_IDS]))
        found += [replace(event, data={}, state={}) for event in events]
    return found
