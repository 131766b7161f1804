"""Facts in force: read from the newest back, as far as they fit their cap (SPEC E13).

A fact is an event. Those of one answer stand one behind the other, and one event more behind them puts them
in force, so that a log that ends between them has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trimtab.errors import CorruptSessionError
from trimtab.formats import Dict
from trimtab.session.effects import Steps
from trimtab.session.messages import MessageReader
from trimtab.session.state import State
from trimtab.session.zones import limits_of
from trimtab.stores import Event, LoadRequest
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
        self._at: Sequence[int] = state.facts
        self._instead = {} if instead is None else instead
        self._superseded: set[int] = set()
        self.stale = 0
        """Facts met so far whose source was redacted while they were in force."""

    @property
    def reaches(self) -> int:
        """Version of the newest event that was not read yet; 0: all were."""
        return self._at[1]

    def next(self) -> Steps[list[KnownFact] | None]:
        """Read the facts of the next older answer that are in force, the newest first; None at the end."""
        first, last = self._at
        if not last:
            return None
        events: list[Event] = yield LoadRequest(session=self._session, after=first - 1, before=last + 1)
        if len(events) != last - first + 1 or events[-1].kind != "facts":
            raise CorruptSessionError(
                f"session {self._session!r}: there are no facts at event {last}",
                session=self._session,
                version=last,
            )
        self._at = events[-1].data["previous"]
        found: list[KnownFact] = []
        for event in reversed(events[:-1]):
            data = self._instead.get(event.version, event).data
            if event.version not in self._superseded:
                if data.get("stale"):
                    self.stale += 1
                else:
                    found.append(KnownFact(event.version, Fact(text=data["text"], sources=data["sources"])))
            self._superseded.add(data["supersedes"])
        return found


def read_facts(session: str, state: State, reader: MessageReader) -> Steps[Facts | None]:
    """Read the newest facts that fit their cap; None if there are none.

    Complexity: reads the answers they come from, and no others.
    """
    cap = limits_of(reader.options, state.budget_tokens).max_fact_tokens
    chain, kept = FactChain(session, state), list[KnownFact]()

    def size(facts: Sequence[KnownFact]) -> int:
        return reader.tokens(reader.facts_message([one.fact.text for one in facts]))

    frame = size([]) if state.facts[1] else cap
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
    message = reader.facts_message([one.fact.text for one in known])
    return Facts(known=known, message=message, tokens=reader.tokens(message))


def facts_back_to(
    session: str, state: State, version: int, *, instead: Mapping[int, Event] | None = None
) -> Steps[tuple[set[int], int]]:
    """Read which facts are in force, at least back to a version, and how many met on the way are stale."""
    chain, found = FactChain(session, state, instead=instead), set[int]()
    while chain.reaches > version and (known := (yield from chain.next())) is not None:
        found.update(one.version for one in known)
    return found, chain.stale


def recount_facts(session: str, state: State, instead: Mapping[int, Event] | None = None) -> Steps[State]:
    """Count the facts in force, where some became stale since a state was written.

    `instead` are events by version that are about to be written in the place of those stored.
    """
    found, stale = yield from facts_back_to(session, state, 0, instead=instead)
    return state.with_fact_counts(len(found), stale)
