"""How much of what is asked much later the facts hold, with an extractor that needs no model (issue 13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

import pytest

from tests.planted import CHINESE, ENGLISH, Language, Planted, planted
from trimtab import EstimateCounter, Session
from trimtab.summaries import Fact, FactRequest

_SENTENCE = re.compile(r"[^.!?。！？]+[.!?。！？]?")
_TELLING = re.compile(r"\d|\b[A-Z]{2,}|(?<=[a-z,] )[A-Z][a-z]+")
"""A number, an abbreviation, or a word with a capital inside a sentence: a name, in English."""


class TellingSentences:
    """Takes the sentences with a name or a number, each once; questions tell nothing.

    Each once, since the small talk here is made of a few sentences and comes again word for word, as a user's
    does not: it would be confirmed more often than what is asked for.
    """

    def __init__(self, number_weight: float) -> None:
        self.number_weight = number_weight
        self.said = set[str]()

    def extract(self, request: FactRequest) -> list[Fact]:
        """Return the sentences in order."""
        found = list[Fact]()
        for message, id in zip(request.messages, request.ids, strict=True):
            for sentence in map(str.strip, _SENTENCE.findall(message["content"])):
                if (
                    _TELLING.search(sentence)
                    and not sentence.endswith(("?", "？"))
                    and sentence not in self.said
                ):
                    self.said.add(sentence)
                    weight = self.number_weight if re.search(r"\d", sentence) else 1
                    found.append(Fact(text=sentence, sources=[id], weight=weight))
        return found


def shares(
    language: Language, max_fact_ratio: float, *, seed: int = 7, number_weight: float = 1
) -> Sequence[float]:
    """Return how much of the evidence is in view as messages, as facts, and in the facts of the log."""
    said: Planted = planted(language, seed=seed)
    count = EstimateCounter().count
    budget = count(said.messages) // 5
    session = Session(
        budget,
        counter=EstimateCounter(),
        fact_extractor=TellingSentences(number_weight),
        max_fact_tokens=int(max_fact_ratio * budget),
    )
    events = [session.add(message) for message in said.messages]
    view = session.messages()
    assert count(view) <= budget
    wanted = {events[at].id for _, at in said.questions}
    shown = {event.id for event in events if event.message in view}
    facts = {source for fact in session.facts for source in fact.sources}
    kept = {source for fact in session.history(kinds=("fact",)) for source in fact.data["sources"]}
    return [len(wanted & ids) / len(wanted) for ids in (shown, shown | facts, shown | kept)]


@pytest.mark.parametrize(("language", "least"), [(ENGLISH, 0.8), (CHINESE, 0.35)], ids=["en", "zh"])
def test_facts_hold_evidence_that_left_the_view(language: Language, least: float) -> None:
    """Half as much again as the messages in view at the same budget; in the log, what the extractor finds."""
    messages, with_facts, in_log = shares(language, 0.1)
    assert with_facts >= 1.5 * messages > 0
    assert in_log >= least


def test_weights_hold_more_evidence_than_none() -> None:
    """Where numbers weigh more than names, twice as much as the messages at a cap of 0.1."""
    messages, with_weights, _ = shares(ENGLISH, 0.1, number_weight=2)
    _, without, _ = shares(ENGLISH, 0.1)
    assert with_weights >= 2 * messages
    assert with_weights > without


def test_more_room_for_facts_holds_more() -> None:
    """With 0.3 of the budget three fifths are in view, where the messages are a sixth."""
    three = [shares(ENGLISH, 0.3, seed=seed) for seed in (7, 8, 9)]
    messages, with_facts, _ = (fmean(column) for column in zip(*three, strict=True))
    assert messages < 0.2
    assert with_facts > 0.6
