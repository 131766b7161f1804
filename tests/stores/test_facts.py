"""Facts of a session on every store: written, found, overwritten with their sources, and killed at (E13)."""

from __future__ import annotations

from itertools import product

import pytest

from tests.builders import user, words
from tests.session.test_facts_fuzz import in_force, ranking
from tests.stores.crash import FORKS, handle
from tests.stores.facts_writer import Death, message, opened, talk
from tests.stores.stores import Place
from trimtab import Session
from trimtab.summaries import Fact, FactRequest


def test_facts_are_kept_found_and_redacted_on_every_store(place: Place) -> None:
    """By one who opens it again, too; what was redacted is in no event and under no word of the index."""
    with place.make() as store:
        session = opened(store)
        for at in range(40):
            session.add(user(f"about krakynquoll{at} {words(8)}"))
        shown = [fact.text for fact in session.facts]
        assert shown[0] == "noted krakynquoll0"
        facts = session.history(kinds=("fact",))
        *_, last = (event for event in facts if event.data["text"] not in shown)
        text = last.data["text"]
        session = opened(store)
        assert [fact.text for fact in session.facts] == shown
        assert last.id in {event.id for event in session.recall(text)}
        copy = session.fork(id="copy")
        assert copy.messages() == session.messages()
        for one in (session, copy):
            one.redact(last.data["sources"])
            assert text.split()[1] not in str([event.data for event in one.history(kinds=None)])
            assert one.recall(text.split()[1]) == []
            one.redact(one.facts[0].sources)
            assert [fact.text for fact in one.facts if fact.text in shown] == shown[1:]
            count = one.status().hidden_facts
            assert one.undo().kind == "facts"
            assert one.status().hidden_facts < count


def test_best_facts_are_named_and_read_on_every_store(place: Place) -> None:
    """Of a log of many answers: by weight, those told again, and those of a fork and of a copy."""

    def find(request: FactRequest) -> list[Fact]:
        at = len(asked)
        asked.append(at)
        return [Fact(text=f"number {at}", weight=1 + at % 3), Fact(text=f"NUMBER {at // 2}.")]

    asked: list[int] = []
    with place.make() as store:
        session = opened(store, "best", find)
        for at in range(120):
            session.add(message(at))
        assert len(asked) > 16
        assert [one for one in session.history(kinds=("facts",)) if one.data.get("best")]
        best = [one.data["text"] for one in ranking(list(session.history(kinds=None)))]
        shown = [fact.text for fact in session.facts]
        assert sorted(shown) == sorted(best[: len(shown)])
        assert session.status().hidden_facts == len(best) - len(shown) > 0
        again = opened(store, "best", find)
        assert again.facts == session.facts
        assert max(fact.confirmations for fact in again.facts) >= 1
        assert session.fork(id="best2").facts == session.facts


def kill_one(place: Place, session: str, death: Death, start: int) -> int:
    """Let a process go on from a message and die; return the first message it did not say it had stored."""
    ours, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=talk, args=(theirs, str(place.url), session, death, start))
    process.start()
    theirs.close()
    said = start - 1
    while True:
        try:
            said = ours.recv()
        except EOFError:
            break
    process.join()
    assert process.exitcode == -9, death
    process.close()
    ours.close()
    return said + 1


def check_log(session: Session, stored: int) -> None:
    """Each message is there once and in order, and each that was read is in one fact, oldest first."""
    events = list(session.history(kinds=None))
    said = [event.id for event in events if event.kind == "message"]
    assert said == [f"m{at}" for at in range(len(said))]
    assert stored <= len(said) <= stored + 1
    sources = [source for event in in_force(events) for source in event.data["sources"]]
    assert sources == said[: len(sources)]


@pytest.mark.long
def test_a_process_killed_at_a_write_loses_no_fact_and_makes_none_twice(shared_place: Place) -> None:
    """Before and behind each kind of write; the next process goes on, and repeats what nobody answered."""
    deaths = [
        Death(kind, is_stored, skips, is_async)
        for skips, is_async, kind, is_stored in product(
            (0, 2), (False, True), ("message", "evicted", "facts", "failed"), (False, True)
        )
    ]
    with handle(shared_place) as store:
        opened(store, "killed").add(message(0), id="m0")
    start = 1
    for death in deaths:
        start = kill_one(shared_place, "killed", death, start)
        shared_place.settle()
        with handle(shared_place) as store:
            check_log(Session.open(store, "killed", allow_missing=True), start)
    with handle(shared_place) as store:
        session = opened(store, "killed")
        session.add(message(start), id=f"m{start}")
        session.summarize()
        check_log(session, start + 1)
        view = [one["content"] for one in session.messages()]
        gone = [event.id for event in session.history() if event.message["content"] not in view]
        facts = in_force(list(session.history(kinds=None)))
        assert [event.data["sources"] for event in facts] == [[id] for id in gone]
        assert session.status().fact_failures == 0
