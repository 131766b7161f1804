"""What `prune` removes, what it keeps, and what is said of both."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.builders import assistant, call, result, user
from trimtab import ConfigurationError, Session, observe
from trimtab.errors import PrunedError, UnknownNameError
from trimtab.session import Pruning
from trimtab.stores import LoadRequest, MemoryStore, Retry, SQLiteStore, Store, copy_session
from trimtab.summaries import Fact, FactRequest


def _words(messages: list[Any]) -> int:
    return sum(len(str(one.get("content")).split()) for one in messages)


def _session(store: Store | None = None, **options: Any) -> Session:
    made = {"summarizer": lambda messages: f"about {len(messages)}", "summarize_threshold_tokens": 20}
    return Session(
        100, store=MemoryStore() if store is None else store, id="s", counter=_words, **(made | options)
    )


def _say(session: Session, count: int, text: str = "message number {}") -> None:
    for at in range(count):
        session.add((user, assistant)[at % 2](text.format(at)))


def _said(session: Session) -> str:
    """All text that is in the store."""
    return str(session.store.load(LoadRequest(session=session.id)))


class _Extractor:
    """Finds one fact in each answer, in the place of the one before if it is told so."""

    def __init__(self, *, corrects: bool) -> None:
        self.corrects, self.count = corrects, 0

    def extract(self, request: FactRequest) -> list[Fact]:
        """Say which messages were read."""
        self.count += 1
        old = request.known[-1].text if self.corrects and request.known else None
        return [Fact(text=f"fact{self.count}", sources=request.ids[:1], supersedes=old)]


def test_nothing_is_pruned_where_all_is_needed() -> None:
    """A new session, one without decisions, and one with no more of them than are kept: no event either."""
    session = _session()
    assert session.prune() == Pruning()
    _say(session, 8)
    assert session.prune() == Pruning(kept=9)
    _say(session, 60)
    version = session.version
    assert session.prune(keep=1_000).events == 0
    assert session.version == version


@pytest.mark.parametrize("keep", [-1, 1.5, True, "3", None])
def test_keep_is_a_whole_number(keep: Any) -> None:
    """Of at least 0."""
    with pytest.raises(ConfigurationError, match="keep"):
        _session().prune(keep=keep)


def test_facts_in_whose_place_others_stand_are_gone() -> None:
    """Also where the ranking of the best needs them: then without their text."""
    for answers in (4, 45):
        session = _session(fact_extractor=_Extractor(corrects=True), summarizer=None)
        while len([*session.history(kinds=("facts",))]) < answers:
            _say(session, 4)
        facts, status = session.facts, session.status()
        assert len(facts) == 1
        assert session.prune(keep=0).events > 0
        texts = [event.data["text"] for event in session.history(kinds=("fact",))]
        assert texts[-1] == facts[0].text
        assert len([*filter(None, texts)]) <= 4  # the newest, which are younger than what is in view
        assert ("" in texts) == (answers > 8)
        assert session.facts == _session(session.store, fact_extractor=None, summarizer=None).facts == facts
        assert session.status().stale_facts == status.stale_facts == 0
        assert session.recall("fact1", 50) == []


def test_what_was_undone_popped_redacted_or_cleared_is_gone() -> None:
    """Below what is kept; and what is in view of it stays."""
    session = _session()
    pinned = session.add(user("pinnedword"))
    session.pin(pinned)
    session.add(user("poppedword"))
    session.pop()
    _say(session, 70, "earlyword {}")
    session.undo()
    _say(session, 80, "lateword {}")
    assert "poppedword" in _said(session)
    session.prune(keep=1)
    assert "poppedword" not in _said(session)
    assert "earlyword" not in _said(session)
    assert session.messages()[1] == user("pinnedword")
    session.clear()
    session.add(user("afresh"))
    session.prune(keep=0)
    assert "lateword" not in _said(session)
    assert "pinnedword" not in _said(session)
    assert session.messages() == [user("afresh")]
    assert session.prune(keep=0).events == 0
    session.clear()
    assert "pruned" not in [event.kind for event in session.history(kinds=None)]


def test_a_rule_stays_with_the_message_that_says_it() -> None:
    """Word for word, and what replaced it as well."""
    session = _session(find_rules="auto")
    session.add(user("Never deploy on Fridays."))
    _say(session, 90)
    rules = [rule.to_dict() for rule in session.rules]
    assert session.prune(keep=0).messages > 50
    assert [rule.to_dict() for rule in _session(session.store, find_rules="auto").rules] == rules
    session.drop_rule(session.rules[0].id)
    assert "Fridays" not in str([rule.text for rule in session.rules])


def test_a_pinned_call_stays_with_its_result() -> None:
    """Which is not pinned itself."""
    session = _session()
    _, pinned, _ = session.extend([user("go"), call("old"), result("old", "resultword")])
    session.pin(pinned)
    _say(session, 90)
    view = session.messages()
    assert "resultword" in str(view)
    session.prune(keep=0)
    assert session.messages() == _session(session.store).messages() == view


def test_kept_messages_can_still_be_redacted() -> None:
    """The summary that repeats one is mended: what it covers is gone, and cannot be summarized again."""
    session = _session(summarizer=lambda messages: "they said swordfish and more")
    pinned = session.add(user("swordfish is the word"))
    session.pin(pinned)
    _say(session, 90)
    session.prune(keep=0)
    done = session.redact(pinned)
    assert [event.id for event in done] == [pinned.id]
    assert not done.stale
    assert "swordfish" not in str(session.messages())
    assert "swordfish" not in _said(session)


def test_a_result_that_is_kept_can_be_read() -> None:
    """Of a call in view by its id; one that was pruned is unknown."""
    session = _session()
    session.extend([user("go"), call("old"), result("old", "old result")])
    _say(session, 60)
    session.extend([user("go"), call("new"), result("new", "new result")])
    session.prune(keep=0)
    assert "new result" in session.read_result("new")
    with pytest.raises(UnknownNameError):
        session.read_result("old")


def test_messages_can_be_popped_down_to_the_border() -> None:
    """Then it is said that what was before is gone; nothing was taken off by that."""
    session = _session()
    _say(session, 90)
    kept = session.prune(keep=0).kept
    popped = 0

    def pop() -> int:
        try:
            return int(session.pop() is not None)
        except PrunedError:
            return 0

    while pop():
        popped += 1
    with pytest.raises(PrunedError):
        session.pop()
    assert 0 < popped < kept
    assert session.messages() == _session(session.store).messages()


def test_views_since_the_oldest_decision_can_be_shown_and_compared() -> None:
    """And forked; a fork knows what is gone, and can be pruned itself."""
    session = _session()
    _say(session, 90)
    views = {at: session.view_at(at) for at in range(1, session.version + 1)}
    oldest = session.prune(keep=3).oldest
    assert oldest > 10
    for at, view in views.items():
        if at >= oldest:
            assert session.view_at(at) == view
            assert session.fork(at=at).messages() == view
        else:
            with pytest.raises(PrunedError):
                session.view_at(at)
    fork = session.fork(at=oldest + 1)
    with pytest.raises(PrunedError, match="version 2 was pruned; the oldest"):
        fork.view_at(2)
    _say(fork, 90)
    assert fork.prune(keep=0).events > 0
    assert fork.messages() == Session.open(fork.store, fork.id, counter=_words, allow_missing=True).messages()


def test_of_what_waited_only_what_stays_is_counted() -> None:
    """In a fork, too, from before the order; the message before the border stays, but waits no more."""
    session = _session(summarizer=None)
    _say(session, 90)
    waited = session.status().pending_messages
    fork = session.fork(at=session.prune(keep=0).oldest)
    for one in (session, fork):
        kept, status = [*one.history()], one.status()
        assert len(kept) - 1 <= status.pending_messages + status.recent_messages <= len(kept) < waited
        assert status.pending_tokens == 3 * status.pending_messages > 0


def test_history_leaves_out_what_was_pruned() -> None:
    """What is older and stays is in it."""
    session = _session()
    pinned = session.add(user("pinned"))
    session.pin(pinned)
    _say(session, 90)
    receipt = session.prune(keep=0)
    events = list(session.history(kinds=None))
    assert len(events) == receipt.kept
    assert events[0].kind == "options"
    assert pinned.id in [event.id for event in events]
    assert [event.kind for event in events][-2:] == ["pruning", "erased"]
    assert [*session.history(after=1, before=4, kinds=None)] == [
        event for event in events if 1 < event.version < 4
    ]


def test_an_object_that_read_before_goes_on() -> None:
    """It adds; what it needs of what is gone is a conflict, and then said."""
    store = MemoryStore()
    session, other = _session(store), _session(store, retry=Retry())
    _say(session, 90)
    seen = other.messages()
    oldest = session.prune(keep=0).oldest
    assert other.messages() == seen
    with pytest.raises(PrunedError):
        other.undo()
    assert other.add(user("late")).version == session.refresh() > oldest


def test_a_summary_that_is_being_written_meanwhile_is_used() -> None:
    """What waits stays for it."""
    session = _session(background=True)
    _say(session, 90)
    session.prune(keep=0)
    session.drain()
    assert session.messages() == _session(session.store).messages()
    assert session.status().stale_summaries == 0


def test_it_does_the_same_with_asyncio_and_tells_who_looks_on() -> None:
    """One event in numbers."""
    seen: list[Any] = []

    async def prune() -> Pruning:
        session = _session()
        for at in range(90):
            await session.aadd(user(f"message {at}"))
        with observe(seen.append):
            return await session.aprune(keep=1)

    receipt = asyncio.run(prune())
    plain = _session()
    for at in range(90):
        plain.add(user(f"message {at}"))
    same = plain.prune(keep=1)
    assert {**receipt.to_dict(), "bytes": 0} == {**same.to_dict(), "bytes": 0}
    told = [event for event in seen if event.kind == "pruned"]
    assert [(one.version, one.messages) for one in told] == [(receipt.version, receipt.messages)]


def test_a_copy_of_a_part_is_never_silently_shorter() -> None:
    """A copy from before the event that says what is gone: it raises where something is missing."""
    store, target = MemoryStore(), MemoryStore()
    session = _session(store, summarizer=None)
    _say(session, 120)
    receipt = session.prune(keep=0)
    copy_session(store, target, "s", before=receipt.version)
    with pytest.raises(PrunedError):
        Session.open(target, "s", counter=_words, allow_missing=True).set_budget(5_000)


def _traced(messages: int, path: Path) -> tuple[int, Pruning]:
    with SQLiteStore(path) as store:
        session = _session(store)
        session.set_budget(1_000)
        for at in range(0, messages, 20):
            session.extend([user(f"message number {at + one} " * 10) for one in range(20)])
        decisions = len([*session.history(kinds=("summary", "evicted"))])
        tracemalloc.start()
        try:
            receipt = session.prune(keep=decisions // 10)
            return tracemalloc.get_traced_memory()[1], receipt
        finally:
            tracemalloc.stop()


@pytest.mark.long
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Four times the messages, pruned to a tenth: not half more memory."""
    small, _ = _traced(4_000, tmp_path / "small.db")
    large, receipt = _traced(16_000, tmp_path / "large.db")
    assert receipt.events > 14_000
    assert large < 1.5 * small
