"""When facts are due and from which messages, the request for them, and their use (SPEC E13, E7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trimtab.errors import SummaryError, VersionConflictError
from trimtab.formats import Dict, OriginName
from trimtab.formats.origin import UNKNOWN, Origins, least
from trimtab.session.core import Core, warn
from trimtab.session.effects import Steps, ask_facts
from trimtab.session.facts import KnownFact, facts_in_force, known_fact, names_of_best, next_links
from trimtab.session.log import Span, oldest_messages
from trimtab.session.plain import copy_plain
from trimtab.session.pops import gone_since
from trimtab.session.state import State
from trimtab.session.working_set import WorkingSet
from trimtab.session.zones import limits_of
from trimtab.stores import Event, LoadRequest, SearchRequest
from trimtab.stores.search import fact_key, text_mark
from trimtab.strategies.fact_extractor import MAX_FACTS, Fact, FactRequest

MAX_FACT_CHARS = 500
"""A longer fact is cut: it is a line, and one must not take the room of all others."""

MAX_KIND_CHARS = 40
"""A longer kind is cut: it is a word or two."""

_MOST_OF_ONE_TEXT = 16
"""Facts of one text that are looked at, to see whether it is in force: others were superseded or undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactJob:
    """Messages to be read for facts."""

    ids: tuple[str, ...]
    """Of the events of the messages."""
    messages: list[Dict]
    """As a view shows them, in order."""
    origins: tuple[Origins, ...]
    """The origins of each message."""
    known: tuple[KnownFact, ...]
    units: frozenset[int]
    """First messages of their units."""
    in_view: frozenset[int]
    """First messages of the units among them that are still in view, and are read later."""
    until: int
    """Version up to which everything out of view is then read."""
    base: State
    """The version of the session at the decision."""

    @property
    def request(self) -> FactRequest:
        """The request to the extractor."""
        return FactRequest(
            messages=self.messages, ids=self.ids, known=[one.fact for one in self.known], max_facts=MAX_FACTS
        )


class Finding(NamedTuple):
    """A fact of an answer."""

    fact: Fact
    old: KnownFact | None = None
    """The fact in whose place it stands."""
    is_again: bool = False
    """Whether it says what the old one says."""


@dataclass(slots=True)
class Weighed:
    """What is out of view unread, as far as it was counted."""

    after: State
    """The state it was counted in first."""
    until: int
    tokens: int = 0
    messages: int = 0


def left_until(working_set: WorkingSet) -> int:
    """Return the version before which every unit is out of view, but for those that are in it."""
    return max(working_set.state.live, working_set.hidden + 1)


def is_in_view(working_set: WorkingSet, first: int) -> bool:
    """Tell whether a unit is in view: it is recent, or waits and is shown."""
    return first in working_set.recent or first in working_set.shown


def fact_job(core: Core, working_set: WorkingSet, *, due: bool = True) -> Steps[FactJob | None]:
    """Make the job of reading what is out of view: the oldest of it, one budget's worth at most.

    Args:
        due: Only where enough of it is out of view (SPEC E6, E7).
    """
    state = working_set.state
    late = [
        one
        for one in state.facts.unread
        if not is_in_view(working_set, one) and one < left_until(working_set)
    ]
    if core.in_force.fact_extractor is None or (left_until(working_set) <= state.facts.read and not late):
        return None
    if due and not (yield from _is_due(core, working_set)):
        return None
    reader, groups = working_set.reader, dict[int, list[Event]]()
    for first in late:
        span = Span(first, first + 1, ends=state.cut)
        groups.update((yield from oldest_messages(core.session, state, span, reader, limit_tokens=0))[0])
    span = Span(max(1, state.facts.read), left_until(working_set), ends=state.cut)
    found, until = yield from oldest_messages(
        core.session, state, span, reader, limit_tokens=state.room_tokens
    )
    groups.update(found)
    in_view = frozenset(first for first in groups if is_in_view(working_set, first))
    units = frozenset(groups) - in_view
    if not units:
        return None
    events = sorted((event for first in units for event in groups[first]), key=lambda event: event.version)
    return FactJob(
        ids=tuple(event.id for event in events),
        messages=[copy_plain(reader.show(event.data, event.id).message) for event in events],
        origins=tuple(reader.origins(event.data) for event in events),
        known=() if working_set.facts is None else working_set.facts.known,
        units=units,
        in_view=in_view,
        until=until,
        base=state,
    )


def _weigh(core: Core, working_set: WorkingSet) -> Steps[Weighed]:
    """Count one more budget's worth of unread messages out of view; counted ones are not read again."""
    state, reader = working_set.state, working_set.reader
    until = left_until(working_set)
    known: Weighed | None = core.weighed
    if known is None or not _same_facts(known.after, state) or known.until > until:
        known = core.weighed = Weighed(state, max(1, state.facts.read))
    span = Span(known.until, until, ends=state.cut)
    if span.start < span.stop:
        found, _ = yield from oldest_messages(
            core.session, state, span, reader, limit_tokens=state.room_tokens
        )
        for first, events in found.items():
            if not is_in_view(working_set, first):
                known.messages += len(events)
                known.tokens += sum(
                    reader.lasting_tokens(reader.show(one.data, one.id).message) for one in events
                )
            known.until = first + 1
        known.until = until if not found else known.until
    return known


def _same_facts(one: State, other: State) -> bool:
    """Tell whether the same was read in two states, and nothing was taken back or redacted between."""
    return (one.facts.batch, one.facts.read, one.epoch) == (
        other.facts.batch,
        other.facts.read,
        other.epoch,
    )


def _is_due(core: Core, working_set: WorkingSet) -> Steps[bool]:
    """Tell whether enough is out of view unread (SPEC E6), and since the last failure (E7)."""
    state = working_set.state
    if state.fact_wait_tokens:
        return False
    limits, more = limits_of(core.in_force, state.room_tokens), True
    while more:
        weighed = yield from _weigh(core, working_set)
        many = weighed.messages >= limits.threshold_messages
        if weighed.tokens and weighed.tokens * (2 if many else 1) >= limits.threshold_tokens:
            return True
        more = weighed.until < left_until(working_set)
    return False


def extract_if_due(core: Core, *, times: int) -> Steps[None]:
    """Extract facts from messages out of view while there are enough, up to a number of times."""
    for _ in range(times):
        if core.working_set is None:
            return
        job = yield from fact_job(core, core.working_set)
        if job is None or not (yield from conclude_facts(core, job, (yield from try_extract(core, job)))):
            return


def extract_waiting(core: Core) -> Steps[None]:
    """Extract facts from all messages out of view, due or not; a failure is reported and ends it."""
    while (job := (yield from fact_job(core, (yield from core.ready()), due=False))) is not None:
        if not (yield from conclude_facts(core, job, (yield from try_extract(core, job)))):
            return


def try_extract(core: Core, job: FactJob) -> Steps[list[Fact] | SummaryError]:
    """Ask for facts, or say why there are none."""
    core.announce("asked", of="facts", messages=len(job.messages))
    options = core.in_force
    try:
        found: list[Fact] = yield ask_facts(
            options.fact_extractor, job.request, options.summary_timeout_seconds
        )
    except SummaryError as error:
        return error
    return found


def conclude_facts(core: Core, job: FactJob, found: list[Fact] | SummaryError) -> Steps[bool]:
    """Apply the answer to a question; True if messages were read. A failure loses nothing (SPEC E7)."""
    if isinstance(found, SummaryError):
        core.last_fact_failure = why = str(found)
        core.announce("failed", of="facts", messages=len(job.messages), error=why)
        warn(core.session, "no facts", why)
        try:
            yield from _remember_failure(core, job, why)
        finally:
            core.tell("on_error", found)
        return False
    return (yield from _put_in_force(core, job, found))


def _remember_failure(core: Core, job: FactJob, why: str) -> Steps[None]:
    while True:
        working_set = yield from core.ready()
        state = working_set.state
        if not _same_facts(state, job.base):
            return
        threshold = limits_of(core.in_force, state.room_tokens).threshold_tokens
        # As for summaries: 1, 2, 4… thresholds more, and never less than what was asked about.
        asked = sum(map(working_set.reader.tokens, job.messages))
        more = max(threshold * 2 ** min(state.facts.failures, 40), asked)
        working_set.state = state.with_fact_failure(more)
        try:
            yield from core.write(
                working_set, "failed", {"why": why, "messages": len(job.messages), "of": "facts"}
            )
        except VersionConflictError:
            continue
        return


def _put_in_force(core: Core, job: FactJob, found: Sequence[Fact]) -> Steps[bool]:
    """Write facts if their source messages have not changed; otherwise drop them."""
    for attempt in range(20):
        working_set = (yield from core.again()) if attempt else (yield from core.ready())
        if not (yield from _still_holds(core, working_set, job)):
            break
        usable = usable_facts(found, job, working_set)
        facts = yield from _with_hidden(core, working_set, usable)
        links = yield from _links(core, working_set)
        events = _fact_events(core, working_set, job, facts, links)
        try:
            yield from core.append(working_set, events)
        except VersionConflictError:
            continue
        new = [one.fact for one in facts if not one.is_again]
        core.announce("facts", version=working_set.version, messages=len(job.messages), facts=len(new))
        core.last_fact_failure = core.weighed = None
        try:
            yield from core.reread(working_set)
        finally:
            if new:
                core.tell("on_facts", copy_plain(job.messages), new)
        return True
    core.drop_answer("facts", messages=len(job.messages))
    return False


def _still_holds(core: Core, working_set: WorkingSet, job: FactJob) -> Steps[bool]:
    """Tell whether the messages still wait to be read, and have the same text."""
    state, base = working_set.state, job.base
    if (state.facts.batch, state.facts.read) != (base.facts.batch, base.facts.read):
        return False
    if state.epoch == base.epoch:
        return True
    gone = yield from gone_since(core.session, state, base.popped + 1)
    events: list[Event] = yield LoadRequest(session=core.session, ids=job.ids)
    now = {event.id: event for event in events}
    show = working_set.reader.show
    return all(
        one in now and now[one].version not in gone and show(now[one].data, one).message == message
        for one, message in zip(job.ids, job.messages, strict=True)
    )


def _links(core: Core, working_set: WorkingSet) -> Steps[dict[str, object]]:
    """Say what the last event of an answer has to say of those before it, and of the best facts in them."""
    state, shown = working_set.state, working_set.facts
    links = yield from next_links(core.session, state.facts.batch)
    count = 0 if shown is None else len(shown.known)
    best = yield from names_of_best(core.session, state, depth=links["depth"], shown=count)
    return {**links, **best}


def usable_facts(found: Sequence[Fact], job: FactJob, working_set: WorkingSet) -> list[Finding]:
    """List the facts of an answer, each as a line, with the one in view that it confirms or supersedes.

    A fact that names none of the messages comes from all of them, and one that supersedes another from the
    sources of that one, too: what is redacted then is in no fact that holds on.
    """
    now = () if working_set.facts is None else working_set.facts.known
    in_view = {fact_key(one.fact.text): one for one in now}
    known = {fact_key(one.fact.text): one for one in job.known} | in_view
    found = found[:MAX_FACTS]
    changed = {fact_key(_line(fact.supersedes)) for fact in found if fact.supersedes is not None}
    made: list[Finding] = []
    said, replaceable = set[str](), dict(known)
    for fact in found:
        text = _line(fact.text)
        key = fact_key(text)
        if not text or key in said:
            continue
        said.add(key)
        if key in known:
            if key in in_view and key not in changed:
                made.append(_again(fact, in_view[key]))
            continue
        old = None if fact.supersedes is None else replaceable.pop(fact_key(_line(fact.supersedes)), None)
        sources = [one for one in dict.fromkeys(fact.sources) if one in job.ids] or list(job.ids)
        if old is not None:
            sources = list(dict.fromkeys((*old.fact.sources, *sources)))
        made.append(Finding(_fact_of(fact, text, sources, job, old), old))
    return made


def _again(fact: Fact, old: KnownFact) -> Finding:
    """Confirm a fact: it keeps its words and sources, and is worth no less than before."""
    again = replace(
        old.fact,
        weight=max(fact.weight, old.fact.weight),
        kind=old.fact.kind or _kind(fact.kind),
        confirmations=old.fact.confirmations + 1,
    )
    return Finding(again, old, is_again=True)


def _fact_of(fact: Fact, text: str, sources: Sequence[str], job: FactJob, old: KnownFact | None) -> Fact:
    """Make a fact with the origin of its sources that has the lowest authority (SPEC E14)."""
    said = dict(zip(job.ids, job.origins, strict=True))
    origins = frozenset[OriginName]().union(*(said.get(one, ()) for one in sources))
    if old is not None:
        # Nobody noted of an older one whose words it is: nothing is known to stand for them.
        before: Origins = UNKNOWN if old.fact.origin is None else frozenset((old.fact.origin,))
        origins |= before
    return Fact(
        text=text,
        sources=sources,
        supersedes=None if old is None else old.fact.text,
        weight=fact.weight,
        kind=_kind(fact.kind),
        origin=least(origins),
    )


def _with_hidden(core: Core, working_set: WorkingSet, facts: Sequence[Finding]) -> Steps[list[Finding]]:
    """Find which facts only say again what one in force says that is out of view.

    One that supersedes another does not: that one would hold on else.
    """
    terms = tuple(text_mark(one.fact.text) for one in facts if one.old is None)
    if not terms:
        return list(facts)
    same: list[Event] = yield SearchRequest(
        session=core.session, terms=terms, limit=_MOST_OF_ONE_TEXT * len(terms)
    )
    force = yield from facts_in_force(core.session, working_set.state, same)
    in_order = sorted(same, key=lambda event: event.version)
    hidden = {fact_key(one.data["text"]): known_fact(one) for one in in_order if one.version in force}

    def confirm(one: Finding) -> Finding:
        old = None if one.old is not None else hidden.get(fact_key(one.fact.text))
        return one if old is None else _again(one.fact, old)

    return list(map(confirm, facts))


def _line(text: str) -> str:
    """Return a text as one line that any store can keep, at most as long as a fact may be."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= MAX_FACT_CHARS else line[: MAX_FACT_CHARS - 1] + "…"


def _kind(kind: str | None) -> str | None:
    """Return a kind as a short line; None for an empty one."""
    return None if kind is None else _line(kind)[:MAX_KIND_CHARS].rstrip() or None


def _fact_data(one: Finding) -> dict[str, object]:
    """Write down a fact; what most have the same is left out."""
    fact, old = one.fact, one.old
    data: dict[str, object] = {
        "text": fact.text,
        "sources": fact.sources,
        "origin": fact.origin,
        "supersedes": 0 if old is None else old.version,
    }
    if fact.weight != 1.0:
        data["weight"] = fact.weight
    if fact.kind is not None:
        data["kind"] = fact.kind
    if fact.confirmations:
        data["confirmations"] = fact.confirmations
    if old is not None:
        data["since"] = old.place
    return data


def _fact_events(
    core: Core,
    working_set: WorkingSet,
    job: FactJob,
    facts: Sequence[Finding],
    links: Mapping[str, object],
) -> list[Event]:
    """Make an event for each fact, and a last one that puts them in force."""
    made, before = core.first_events(working_set), working_set.state
    first = working_set.version + len(made) + 1
    superseded = {one.old.version for one in facts if one.old is not None}
    for at, one in enumerate(facts):
        data = {**_fact_data(one), "older": working_set.state.facts.newest, "at": at}
        working_set.state = working_set.state.with_facts(working_set.state.facts.with_new(first + at))
        made.append(core.event(working_set, "fact", data))
    found = working_set.state.facts.with_reading(
        (first, first + len(facts)) if facts else None,
        known=before.facts.known + len(facts) - len(superseded),
        until=max(before.facts.read, job.until),
        read=job.units,
        unread=job.in_view,
    )
    working_set.state = working_set.state.with_facts(found)
    again = sum(one.is_again for one in facts)
    counts = {"facts": len(facts) - again, "messages": len(job.messages)}
    counts |= {"confirmations": again} if again else {}
    made.append(core.event(working_set, "facts", {**counts, **links}))
    return made
