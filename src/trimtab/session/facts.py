"""Current facts: the best of them, as far as they fit their cap (SPEC E13).

A fact is an event. Those of one answer stand one behind the other, and one event more behind them puts them
in force, so that a log that ends between them has none of them. That event names the answer before it, and
one further back, so that whether an answer is in force is known without reading those between.

A fact that is told again is written again, in the place of the old one, and so is one that changed: what a
fact is ranked by is in its own event, and never changes. So an answer can name the best facts before it, and
what is shown is known from these and the answers since then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from trimtab.errors import CorruptSessionError
from trimtab.formats import Dict
from trimtab.formats.origin import least, sort_origins
from trimtab.session.effects import Steps
from trimtab.session.messages import MessageReader
from trimtab.session.schema import check_kinds
from trimtab.session.state import State
from trimtab.session.zones import limits_of
from trimtab.stores import Event, LoadRequest, SearchRequest
from trimtab.stores.rows import PRUNED
from trimtab.stores.search import MAX_POSTINGS, supersedes_mark
from trimtab.strategies.fact_extractor import Fact

ANSWERS = 8
"""Every so many answers the best facts before one are named in it: most answers read to show facts."""

LEAST_RESERVE = 32
"""Facts out of view that are named with those in view, at the least: some take the place of those that a
redaction or a correction takes out."""

RESERVE_PART = 4
"""With many facts in view, the part of their number that is named besides (a quarter)."""


class KnownFact(NamedTuple):
    """A fact in force."""

    version: int
    """Of its event."""
    id: str
    """Of its event."""
    fact: Fact
    place: int
    """Version of the event that said it first, or that said first what it corrects: its age."""

    @property
    def worth(self) -> tuple[float, int]:
        """What it is ranked by before its age; the lowest comes first."""
        return -self.fact.weight, -self.fact.confirmations

    @property
    def age(self) -> tuple[int, int]:
        """Its place among others by age; the lowest is the oldest."""
        return self.place, self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a view."""

    known: tuple[KnownFact, ...]
    """Oldest first."""
    message: Dict
    tokens: int


class BestFacts(NamedTuple):
    """The facts in force that rank above all others."""

    facts: list[KnownFact]
    """The best first."""
    is_complete: bool
    """Whether there are no others."""


class FactChain:
    """The facts in force, answer by answer, from the newest back."""

    def __init__(self, session: str, state: State, *, instead: Mapping[int, Event] | None = None) -> None:
        self._session = session
        self._at: Sequence[int] = state.facts.batch
        self._instead = {} if instead is None else instead
        self._superseded: set[int] = set()
        self.first = 0
        """Version of the first event of the answer read last."""
        self.best: Sequence[str] | None = None
        """Ids of the best facts before the answer read last, the best first; None: it names none."""
        self.names_all = False
        """Whether there were no others."""
        self.stale = 0
        """Facts found so far whose source was redacted while they were current."""

    def next(self) -> Steps[list[KnownFact] | None]:
        """Read the facts of the next older answer that are in force, the newest first; None at the end."""
        first, last = self._at
        if not last:
            return None
        events = yield from answer_at(self._session, first, last)
        self.first, data = first, events[-1].data
        self._at, self.best, self.names_all = data["previous"], data.get("best"), not data.get("more")
        found: list[KnownFact] = []
        for event in reversed(events[:-1]):
            if event.kind == PRUNED:
                continue  # a newer one stands in its place
            now = self._instead.get(event.version, event)
            if event.version not in self._superseded:
                if now.data.get("stale"):
                    self.stale += 1
                else:
                    found.append(known_fact(now))
            self._superseded.add(now.data["supersedes"])
        return found

    def read_best(self) -> Steps[list[KnownFact]]:
        """Read the facts that the answer read last names as the best before it, in force or not, in order."""
        ids = tuple(self.best or ())
        events: list[Event] = yield LoadRequest(session=self._session, ids=ids)
        by_id = {event.id: event for event in events}
        missing = next((one for one in ids if one not in by_id), None)
        if missing is not None:
            raise CorruptSessionError(
                f"session {self._session!r}: the fact {missing} is missing", session=self._session
            )
        check_kinds(events, "fact", self._session)
        return [known_fact(by_id[one]) for one in ids]

    def has(self, known: KnownFact, /) -> bool:
        """Tell whether a fact that was in force before the answers read so far still is."""
        return known.version not in self._superseded and bool(known.fact.text)


def known_fact(event: Event, /) -> KnownFact:
    """Return the fact of an event, as one in force."""
    return KnownFact(event.version, event.id, fact_in(event.data), event.data.get("since", event.version))


def fact_in(data: Mapping[str, Any], /) -> Fact:
    """Return the fact in the data of an event."""
    origin = least(sort_origins([data["origin"]])) if isinstance(data.get("origin"), str) else None
    return Fact(
        text=data["text"],
        sources=data["sources"],
        weight=data.get("weight", 1.0),
        kind=data.get("kind"),
        origin=origin,
        confirmations=data.get("confirmations", 0),
    )


def answer_at(session: str, first: int, last: int) -> Steps[list[Event]]:
    """Read the events of an answer, or the last of them; facts in whose place others stand may be pruned."""
    events: list[Event] = yield LoadRequest(session=session, after=first - 1, before=last + 1)
    if len(events) == last - first + 1:
        check_kinds(events[-1:], "facts", session)
    else:
        raise CorruptSessionError(
            f"session {session!r}: there are no facts at event {last}", session=session, version=last
        )
    return events


def _links(session: str, last: int) -> Steps[Mapping[str, Any]]:
    """Read what the last event of an answer says of those before it; 0: there is none."""
    if not last:
        return {"depth": 0, "previous": (0, 0), "jump": (0, 0)}
    return (yield from answer_at(session, last, last))[0].data


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


def best_facts(
    session: str, state: State, suffices: Callable[[Sequence[KnownFact]], bool]
) -> Steps[BestFacts]:
    """Read the best facts in force: as many as suffice, or all.

    Complexity: reads up to eight answers, and the facts that the last of them names. Only where these do not
    suffice, as after a much larger cap, or where none of the answers names any, all answers.
    """
    chain, found = FactChain(session, state), list[KnownFact]()
    while chain.best is None and (answer := (yield from chain.next())) is not None:
        found += answer
    if chain.best is not None:
        named = yield from chain.read_best()
        known = [*found, *filter(chain.has, named)]
        if chain.names_all:
            return BestFacts(by_rank(known), is_complete=True)
        above = _above_others(known, named, chain.first)
        if suffices(above):
            return BestFacts(above, is_complete=False)
        while (answer := (yield from chain.next())) is not None:
            found += answer
    return BestFacts(by_rank(found), is_complete=True)


def by_rank(facts: Iterable[KnownFact]) -> list[KnownFact]:
    """Sort facts, the best first; of equal ones the oldest and the newest take turns."""
    best = list[KnownFact]()
    in_order = sorted(facts, key=lambda one: (one.worth, one.age))
    for _, group in groupby(in_order, key=lambda one: one.worth):
        equal = list(group)
        half = len(equal) // 2
        oldest, newest = equal[: len(equal) - half], equal[::-1][:half]
        best += _take_turns(oldest, newest)
    return best


def _take_turns(oldest: Sequence[KnownFact], newest: Sequence[KnownFact]) -> list[KnownFact]:
    """List one of each, the oldest first, while there is one whose turn it is."""
    pairs = [one for pair in zip(oldest, newest, strict=False) for one in pair]
    return [*pairs, *oldest[len(newest) :][:1]]


def _above_others(known: Collection[KnownFact], named: Sequence[KnownFact], before: int) -> list[KnownFact]:
    """List those of the known facts that rank above all others, the best first.

    Args:
        known: Facts in force: of those older than a version, some of the named ones; of the newer ones, all.
        named: The best of the older ones, the best first.
        before: The version.
    """
    if not named:
        return []
    worth = named[-1].worth
    turns = [one for one in named if one.worth == worth]
    oldest, newest = turns[::2], turns[1::2]
    # Those of this worth that were not named are between these two.
    low, high = oldest[-1].place, newest[-1].place if newest else before
    equal = sorted((one for one in known if one.worth == worth), key=lambda one: one.age)
    return [
        *by_rank(one for one in known if one.worth < worth),
        *_take_turns(
            [one for one in equal if one.place <= low],
            [one for one in reversed(equal) if one.place >= high],
        ),
    ]


def names_of_best(session: str, state: State, *, depth: int, shown: int) -> Steps[dict[str, Any]]:
    """Say what an answer has to say of the best facts before it; most say nothing.

    Args:
        session: Its name.
        state: The state before the answer.
        depth: Which answer of those in force it is.
        shown: Facts in view.
    """
    if depth % ANSWERS:
        return {}
    reserve = max(LEAST_RESERVE, shown // RESERVE_PART)
    best = yield from best_facts(session, state, lambda facts: len(facts) >= shown + reserve // 2)
    named = best.facts[: shown + reserve]
    more = len(named) < len(best.facts) or not best.is_complete
    return {"best": [one.id for one in named], **({"more": True} if more else {})}


def read_facts(session: str, state: State, reader: MessageReader) -> Steps[Facts | None]:
    """Read the best facts that fit their cap; None if there are none.

    The first that has no room ends it, so that no fact in view ranks below one that is not; but one that is
    larger than the whole cap does not hold up those behind it. They are written oldest first, whatever their
    rank: what stays in view stays in its order.
    """
    cap = limits_of(reader.options, state.budget_tokens).max_fact_tokens

    def size(facts: Iterable[KnownFact]) -> int:
        return reader.tokens(reader.facts_message([one.fact for one in facts]))

    frame, sizes = size([]) if state.facts.batch[1] else cap, dict[int, int]()
    room = cap - frame
    if room <= 0:
        return None

    def fitting(facts: Sequence[KnownFact]) -> tuple[list[KnownFact], bool]:
        """Take the first that fit; say whether another had no room."""
        kept, unused = list[KnownFact](), room
        for one in facts:
            if one.version not in sizes:
                sizes[one.version] = size([one]) - frame
            tokens = sizes[one.version]
            if unused < tokens <= room:
                return kept, True
            if tokens <= room:
                kept.append(one)
                unused -= tokens
        return kept, False

    kept, _ = fitting((yield from best_facts(session, state, lambda facts: fitting(facts)[1])).facts)
    in_order = sorted(kept, key=lambda one: one.age)
    while kept and size(in_order) > cap:  # sizes do not quite add up
        in_order.remove(kept.pop())
    if not kept:
        return None
    message = reader.facts_message([one.fact for one in in_order])
    return Facts(known=tuple(in_order), message=message, tokens=reader.tokens(message))


class Standing(NamedTuple):
    """What of the answers in force a state needs, by version."""

    kept: set[int]
    """Facts in force, those that lost their text while they were, and the last event of each answer."""
    emptied: set[int]
    """Facts in whose place others stand, of which only the rank is needed."""
    named: set[str]
    """Ids of facts that the newest list of the best names."""


def standing_facts(session: str, batch: Sequence[int], *, before: int) -> Steps[Standing]:
    """Say which facts the views of a state need, and may not be pruned.

    To know the best facts, answers are read back to the newest that names those before it: by what it names,
    and by all facts since, whether others stand in their place or not. Of these no text is needed.

    Args:
        session: Its name.
        batch: The newest answer in force.
        before: Only facts older than this version are of interest.
    """
    standing, superseded, is_ranked = Standing(set(), set(), set()), set[int](), False
    first, last = batch
    while last:
        events = yield from answer_at(session, first, last)
        data = events[-1].data
        if last < before:
            standing.kept.add(last)
        for event in reversed(events[:-1]):
            if event.kind == PRUNED:
                continue
            there = event.version in superseded
            superseded.add(event.data["supersedes"])
            if event.version < before and not (there and is_ranked):
                (standing.emptied if there else standing.kept).add(event.version)
        if not is_ranked and "best" in data:
            is_ranked = True
            standing.named.update(data["best"])
        first, last = data["previous"]
    if not is_ranked:
        standing.emptied.clear()
    return standing


def recount_facts(session: str, state: State, instead: Mapping[int, Event] | None = None) -> Steps[State]:
    """Count the facts in force, where some became stale since a state was written.

    `instead` are events by version that are about to be written in the place of those stored.
    """
    chain, count = FactChain(session, state, instead=instead), 0
    while (known := (yield from chain.next())) is not None:
        count += len(known)
    return state.with_facts(state.facts.with_counts(count, chain.stale))
