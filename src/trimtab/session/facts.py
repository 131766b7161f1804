"""Current facts: read from the newest back, as far as they fit their cap (SPEC E13).

A fact is an event. Those of one answer stand one behind the other, and one event more behind them puts them
in force, so that a log that ends between them has none of them. That event names the answer before it, and
one further back, so that whether an answer is in force is known without reading those between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trimtab.errors import CorruptSessionError
from trimtab.formats import Dict
from trimtab.formats.origin import least, sort_origins
from trimtab.session.effects import Steps
from trimtab.session.messages import MessageReader
from trimtab.session.state import State
from trimtab.session.zones import limits_of
from trimtab.stores import Event, LoadRequest, SearchRequest
from trimtab.stores.search import MAX_POSTINGS, supersedes_mark
from trimtab.strategies.fact_extractor import Fact


class KnownFact(NamedTuple):
    """A fact in force."""

    version: int
    """Of its event."""
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a view."""

    known: tuple[KnownFact, ...]
    """Oldest first."""
    message: Dict
    tokens: int


class FactChain:
    """The facts in force, answer by answer, from the newest back."""

    def __init__(self, session: str, state: State, *, instead: Mapping[int, Event] | None = None) -> None:
        self._session = session
        self._at: Sequence[int] = state.facts.batch
        self._instead = {} if instead is None else instead
        self._superseded: set[int] = set()
        self.stale = 0
        """Facts found so far whose source was redacted while they were current."""

    def next(self) -> Steps[list[KnownFact] | None]:
        """Read the facts of the next older answer that are in force, the newest first; None at the end."""
        first, last = self._at
        if not last:
            return None
        events = yield from _answer(self._session, first, last)
        self._at = events[-1].data["previous"]
        found: list[KnownFact] = []
        for event in reversed(events[:-1]):
            data = self._instead.get(event.version, event).data
            if event.version not in self._superseded:
                if data.get("stale"):
                    self.stale += 1
                else:
                    found.append(KnownFact(event.version, fact_of(data)))
            self._superseded.add(data["supersedes"])
        return found


def fact_of(data: Mapping[str, Any], /) -> Fact:
    """Return the fact of an event."""
    origin = least(sort_origins([data["origin"]])) if isinstance(data.get("origin"), str) else None
    return Fact(text=data["text"], sources=data["sources"], origin=origin)


def _answer(session: str, first: int, last: int) -> Steps[list[Event]]:
    """Read the events of an answer, or the last of them."""
    events: list[Event] = yield LoadRequest(session=session, after=first - 1, before=last + 1)
    if len(events) != last - first + 1 or events[-1].kind != "facts":
        raise CorruptSessionError(
            f"session {session!r}: there are no facts at event {last}", session=session, version=last
        )
    return events


def _links(session: str, last: int) -> Steps[Mapping[str, Any]]:
    """Read what the last event of an answer says of those before it; 0: there is none."""
    if not last:
        return {"depth": 0, "previous": (0, 0), "jump": (0, 0)}
    return (yield from _answer(session, last, last))[0].data


def next_links(session: str, previous: Sequence[int]) -> Steps[dict[str, Any]]:
    """Say what the last event of an answer has to say of those before it.

    The jump goes to one further back, such that from any answer any older one is a few jumps away, by the
    logarithm of how many there are: two jumps of one length become one that is as long as both.
    """
    before = yield from _links(session, previous[1])
    middle = yield from _links(session, before["jump"][1])
    far = yield from _links(session, middle["jump"][1])
    even = before["depth"] - middle["depth"] == middle["depth"] - far["depth"]
    jump = middle["jump"] if even else previous
    return {"previous": list(previous), "depth": before["depth"] + 1, "jump": list(jump)}


def facts_in_force(session: str, state: State, events: Iterable[Event]) -> Steps[set[int]]:
    """Return which of some events are facts in force.

    Complexity: one search for the facts in whose place others were put, and a few events for each.
    """
    listed = {event.version for event in events if event.kind == "fact" and not event.data.get("stale")}
    if not listed:
        return listed
    terms = tuple(supersedes_mark(version) for version in sorted(listed))
    found: list[Event] = yield SearchRequest(session=session, terms=terms, limit=MAX_POSTINGS * len(terms))
    newer = {one.version: one.data["supersedes"] for one in found if one.kind == "fact"}
    answered = yield from _in_answers(session, state, listed | newer.keys())
    return listed & answered - {old for version, old in newer.items() if version in answered}


def _in_answers(session: str, state: State, versions: Collection[int]) -> Steps[set[int]]:
    """Return which of these versions belong to answers that were not taken back."""
    (first, last), found = state.facts.batch, set[int]()
    for version in sorted(versions, reverse=True):
        while first > version:
            links = yield from _links(session, last)
            first, last = links["jump"] if links["jump"][1] > version else links["previous"]
        if version < last:
            found.add(version)
    return found


def read_facts(session: str, state: State, reader: MessageReader) -> Steps[Facts | None]:
    """Read the newest facts that fit their cap; None if there are none.

    Complexity: reads the answers they come from, and no others.
    """
    cap = limits_of(reader.options, state.budget_tokens).max_fact_tokens
    chain, kept = FactChain(session, state), list[KnownFact]()

    def size(facts: Sequence[KnownFact]) -> int:
        return reader.tokens(reader.facts_message([one.fact for one in facts]))

    frame = size([]) if state.facts.batch[1] else cap
    left, full = cap - frame, cap <= frame
    while not full and (found := (yield from chain.next())) is not None:
        for one in found:
            tokens = size([one]) - frame
            full = tokens > left and bool(kept)  # one that never fits does not hold up those before it
            if full:
                break
            if tokens <= left:
                kept.append(one)
                left -= tokens
    while kept and size(kept[::-1]) > cap:  # sizes do not quite add up
        kept.pop()
    if not kept:
        return None
    known = tuple(reversed(kept))
    message = reader.facts_message([one.fact for one in known])
    return Facts(known=known, message=message, tokens=reader.tokens(message))


def recount_facts(session: str, state: State, instead: Mapping[int, Event] | None = None) -> Steps[State]:
    """Count the facts in force, where some became stale since a state was written.

    `instead` are events by version that are about to be written in the place of those stored.
    """
    chain, count = FactChain(session, state, instead=instead), 0
    while (known := (yield from chain.next())) is not None:
        count += len(known)
    return state.with_facts(state.facts.with_counts(count, chain.stale))
