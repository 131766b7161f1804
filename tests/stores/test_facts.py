"""Facts of a session on every store: written, found, and overwritten with their sources (E13)."""

from __future__ import annotations

from typing import Any

from tests.builders import user, words
from tests.stores.stores import Place
from trimtab import Session
from trimtab.summaries import Fact, FactRequest
from trimtab.testing import WordCounter


def extract(request: FactRequest) -> list[Fact]:
    """Say of each message what its second word is."""
    return [
        Fact(text=f"noted {message['content'].split()[1]}", sources=[id])
        for message, id in zip(request.messages, request.ids, strict=True)
    ]


def opened(store: Any, id: str = "facts") -> Session:
    """Open the session."""
    return Session(200, store=store, id=id, fact_extractor=extract, max_fact_tokens=40, counter=WordCounter())


def test_facts_are_kept_found_and_redacted_on_every_store(place: Place) -> None:
    """By one who opens it again, too; what was redacted is in no event and under no word of the index."""
    with place.make() as store:
        session = opened(store)
        for at in range(40):
            session.add(user(f"about krakynquoll{at} {words(8)}"))
        shown = [fact.text for fact in session.facts]
        first = next(session.history(kinds=("fact",)))
        assert first.data["text"] == "noted krakynquoll0"
        session = opened(store)
        assert [fact.text for fact in session.facts] == shown
        assert first.id in {event.id for event in session.recall("noted krakynquoll0")}
        copy = session.fork(id="copy")
        assert copy.messages() == session.messages()
        for one in (session, copy):
            one.redact(first.data["sources"])
            assert "krakynquoll0" not in str([event.data for event in one.history(kinds=None)])
            assert one.recall("krakynquoll0") == []
            assert one.undo().kind == "facts"
            assert not [event for event in one.recall(shown[-1]) if event.data.get("text") == shown[-1]]
            assert [fact.text for fact in one.facts] != shown
