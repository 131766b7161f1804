"""How much of what is asked much later the facts hold, with an extractor that needs no model (issue 13)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.planted import CHINESE, ENGLISH, Language, Planted, planted
from trimtab import EstimateCounter, Session
from trimtab.summaries import Fact, FactRequest

_SENTENCE = re.compile(r"[^.!?。！？]+[.!?。！？]?")
_TELLING = re.compile(r"\d|\b[A-Z]{2,}|(?<=[a-z,] )[A-Z][a-z]+")
"""A number, an abbreviation, or a word with a capital inside a sentence: a name, in English."""


def telling_sentences(request: FactRequest) -> list[Fact]:
    """Take the sentences with a name or a number, in order; questions tell nothing. Numbers weigh more."""
    return [
        Fact(text=sentence.strip(), sources=[id], weight=2 if re.search(r"\d", sentence) else 1)
        for message, id in zip(request.messages, request.ids, strict=True)
        for sentence in _SENTENCE.findall(message["content"])
        if _TELLING.search(sentence) and not sentence.rstrip().endswith(("?", "？"))
    ]


def shares(language: Language, max_fact_ratio: float) -> Sequence[float]:
    """Return how much of the evidence is in view as messages, as facts, and in the facts of the log."""
    said: Planted = planted(language)
    count = EstimateCounter().count
    budget = count(said.messages) // 5
    session = Session(
        budget,
        counter=EstimateCounter(),
        fact_extractor=telling_sentences,
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
    """Twice as much as the messages in view at the same budget; in the log, what the extractor finds."""
    messages, with_facts, in_log = shares(language, 0.1)
    assert with_facts >= 2 * messages > 0
    assert in_log >= least


def test_more_room_for_facts_holds_more() -> None:
    """With 0.3 of the budget two thirds of the evidence are in view, where the messages are a sixth."""
    messages, with_facts, _ = shares(ENGLISH, 0.3)
    assert messages < 0.2
    assert with_facts > 0.6
