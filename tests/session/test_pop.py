"""What was said last is taken off: no view, summary, fact or recall has it, and the log keeps it (E11)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.test_background import Gate, begun
from tests.session.test_facts import Extractor, session_with, texts
from tests.session.test_facts import talk as told
from tests.session.test_recollection import made, recalled
from tests.session.test_summarizers import WORDS
from trimtab import ConfigurationError, Session
from trimtab.stores import Event, MemoryStore, SQLiteStore, Store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Both stores that need no server."""
    if request.param == "memory":
        yield MemoryStore()
        return
    with SQLiteStore(tmp_path / "log.db") as opened:
        yield opened


def session_in(store: Store | None = None, budget: int = 200, **options: Any) -> Session:
    """Open a session of words."""
    return Session(budget, counter=WORDS, id="s", store=store, **options)


def again(session: Session, **functions: Any) -> Session:
    """Open it anew from its store."""
    return Session.open(session.store, session.id, counter=WORDS, **functions)


def popped(session: Session) -> Any:
    """Take off the newest message, and return what it says."""
    event = session.pop()
    return None if event is None else event.message


def test_the_newest_message_is_given_back_and_the_log_keeps_it(store: Store) -> None:
    """By an event of its own; who opens the session anew sees the same."""
    session = session_in(store)
    events = session.extend([user("a"), assistant("b"), user("c")])
    assert session.pop() == events[-1]
    assert session.messages() == again(session).messages() == [user("a"), assistant("b")]
    assert [event.message for event in session.history()] == [user("a"), assistant("b"), user("c")]
    newest = list(session.history(kinds=None))[-1]
    assert (newest.kind, newest.data["event"]) == ("popped", events[-1].id)
    assert session.view_at(events[-1].version) == [user("a"), assistant("b"), user("c")]
    session.add(user("d"))
    assert session.messages() == again(session).messages() == [user("a"), assistant("b"), user("d")]


def test_where_nothing_is_left_there_is_none_and_nothing_is_written(store: Store) -> None:
    """In a session that is new, was taken off to its beginning, or began anew."""
    session = session_in(store)
    assert session.pop() is None
    assert session.version == 0
    session.extend([user("a"), assistant("b")])
    session.clear()
    session.add(user("c"))
    assert popped(session) == user("c")
    version = session.version
    assert session.pop() is None
    assert asyncio.run(again(session).apop()) is None
    assert session.version == version
    assert session.messages() == []


def test_it_may_be_awaited() -> None:
    """Both colours run the same."""
    session = session_in()

    async def run() -> Event | None:
        await session.aextend([user("a"), assistant("b")])
        return await session.apop()

    event = asyncio.run(run())
    assert event is not None
    assert event.message == assistant("b")
    assert session.messages() == [user("a")]


def test_a_call_whose_result_was_taken_off_waits_for_one_again(store: Store) -> None:
    """The other result stays with it, and what comes for it later joins it."""
    session = session_in(store)
    session.extend([user("a"), call("A", "B"), result("A", "one"), result("B", "two")])
    assert popped(session) == result("B", "two")
    session = again(session)
    assert session.messages() == [user("a"), call("A", "B"), result("A", "one")]
    session.add(result("B", "three"))
    assert session.messages()[1:] == [call("A", "B"), result("A", "one"), result("B", "three")]
    for _ in range(3):
        session.pop()
    session.add(result("A", "late"))
    assert "tool_result" in session.messages()[-1]["content"]  # the call is not there any more


def test_a_late_result_taken_off_leaves_its_old_call_waiting(store: Store) -> None:
    """The call left the recent messages long before; the messages between are as they were."""
    session = session_in(store, 100)
    session.extend([user("a"), call("A")])
    session.extend([assistant(words(10)) for _ in range(20)])
    before = session.messages()
    session.add(result("A", "late"))
    assert session.messages() != before
    assert popped(session) == result("A", "late")
    assert session.messages()[-1] == before[-1]
    session = again(session)
    session.add(result("A", "later"))
    assert result("A", "later") in session.messages()


def test_what_was_taken_off_leaves_no_trace_in_what_comes_after(store: Store) -> None:
    """Each message said twice with one taken off between is the talk without it, while nothing left."""
    with_pops, without = session_in(store, 4_000), session_in(None, 4_000)
    for at in range(15):
        said = [user(f"question {at}"), call(f"c{at}"), result(f"c{at}", words(5)), assistant(words(8))]
        for message in said:
            with_pops.extend([message, assistant("wrong")])
            without.add(message)
            assert popped(with_pops) == assistant("wrong")
        assert with_pops.messages() == without.messages()
    assert with_pops.token_breakdown == again(with_pops).token_breakdown == without.token_breakdown
    numbers = [vars_of(session) for session in (with_pops, without)]
    assert numbers[0] == numbers[1]


def vars_of(session: Session) -> dict[str, int]:
    """What a session counts, but for the length of its log."""
    return {name: value for name, value in session.status().to_dict().items() if name != "version"}


def test_the_newest_message_and_the_question_come_back_into_view() -> None:
    """A large answer had pushed them out, and what was cut stays out of a view otherwise."""
    session = session_in(MemoryStore(), 100, target_ratio=0.5)
    session.extend([user(words(8)), *(assistant(f"answer{at} {words(8)}") for at in range(9))])
    session.add(assistant(f"huge {words(85)}"))
    assert "answer8" not in str(session.messages())
    session.pop()
    assert "answer8" in str(session.messages()[-1])
    assert again(session).messages() == session.messages()
    session.add(user("and now?"))
    session.pop()
    assert session.messages()[0] == user(words(8))


def test_a_summary_that_stands_for_it_is_taken_back(store: Store) -> None:
    """What else it stood for waits again; the log has it, and undo goes on before it."""
    functions: dict[str, Any] = {"summarizer": lambda messages: f"about {len(messages)}"}
    session = session_in(store, 100, **functions)
    for at in range(40):
        session.add(assistant(f"said{at} {words(9)}"))
    covered = session.status().summarized_messages
    assert covered > 20
    while session.status().summarized_messages == covered:
        session.pop()
    assert session.status().summarized_messages < covered
    orders = list(session.history(kinds=("popped",)))
    newest = [*session.history()][39 - len(orders)]
    assert session.messages()[-1] == newest.message
    assert again(session, **functions).messages() == session.messages()
    assert session.undo().version < orders[-1].data["version"]  # that of the summary that was taken back
    while session.pop() is not None:
        assert again(session, **functions).messages() == session.messages()
    assert (session.messages(), session.summary) == ([], None)


def test_undo_brings_back_nothing_that_was_taken_off(store: Store) -> None:
    """An eviction is taken back, and the message that caused it is gone."""
    session = session_in(store, 100, target_ratio=1.0)
    session.extend([assistant(f"said{at} {words(9)}") for at in range(9)])
    session.add(assistant(f"last {words(20)}"))
    assert list(session.history(kinds=("evicted",)))
    session.pop()
    session.undo()
    assert session.status().pending_messages == 0
    assert [one["content"].split()[0] for one in session.messages()] == [f"said{at}" for at in range(9)]
    assert again(session).messages() == session.messages()


def test_a_message_that_was_taken_off_is_not_recalled(store: Store) -> None:
    """Not by its words or its id, not by a ranker, and not before or after all began anew."""
    session = session_in(store)
    session.extend([user("zebra one"), assistant("zebra two")])
    event = session.add(user("zebra three"))
    session.pop()
    for one in (session, again(session, ranker=lambda query, documents: [1.0] * len(documents))):
        assert one.recall("zebra") == []
        assert one.recall(event.id) == []
    session.clear()
    assert [one.message["content"] for one in session.recall("zebra")] == ["zebra two", "zebra one"]
    ranked = again(session, ranker=lambda query, documents: [1.0] * len(documents))
    assert [one.message["content"] for one in ranked.recall("zebra")] == ["zebra two", "zebra one"]


def test_many_that_were_taken_off_hide_none_that_was_said() -> None:
    """The index finds the newest first: more is asked of it where those are gone."""
    session = session_in()
    session.add(user("zebra of old"))
    for at in range(30):
        session.add(user(f"zebra number{at}"))
        session.pop()
    session.clear()
    assert [one.message["content"] for one in session.recall("zebra", 2)] == ["zebra of old"]


def test_half_of_a_call_is_recalled_without_the_half_that_was_taken_off() -> None:
    """What a view has as earlier text is what is there."""
    session = session_in(MemoryStore(), 200, recall_ratio=0.4)
    session.extend([user("hi"), call("A"), result("A", "zebra Tom")])
    session.pop()
    session.add(result("A", "zebra Tim"))
    for at in range(30):
        session.extend([user(f"filler{at} {words(8)}"), assistant(words(8))])
    session.add(user("what is the zebra called?"))
    assert "Tim" in str(recalled(session))
    assert "Tom" not in str(recalled(session))


def test_what_was_recalled_for_a_question_leaves_with_it(store: Store) -> None:
    """What was recalled for the one before is there again."""
    session = made(store)
    first = recalled(session)
    session.add(user("what is the zebra called?"))
    before = recalled(session)
    assert "Tom" in before[0]
    session.extend([assistant("Tom."), user("what was in filler3 again?")])
    assert recalled(session) != before
    session.pop()
    assert recalled(session) == recalled(again(session)) == before
    session.pop()
    session.pop()
    assert recalled(session) == recalled(again(session)) == first


def test_facts_of_what_was_taken_off_are_in_no_view() -> None:
    """Nor those in whose place they were put; what is left is read for facts again."""
    extractor = Extractor()
    session = session_with(extractor, summarizer=lambda messages: "short")
    ids = told(session, 0, 60)
    known = {event.id: event for event in session.history(kinds=("fact",))}
    while texts(session):
        there = ids[: len(ids) - len(list(session.history(kinds=("popped",))))]
        sources = {one for fact in session.facts for one in fact.sources}
        assert sources <= set(there)
        assert session.pop() is not None
    assert len(ids) > len(list(session.history(kinds=("popped",)))) > 20
    for fact in known.values():
        assert fact.id not in {one.id for one in session.recall(fact.data["text"], 50)}
    told(session, 100, 160)
    assert "saw thing1" in {event.data["text"] for event in session.history(kinds=("fact",))}
    assert texts(session)


def test_facts_that_are_being_read_from_it_are_dropped() -> None:
    """It is taken off while the extractor reads."""
    store = MemoryStore()

    def meanwhile(request: Any) -> Any:
        other = Session.open(store, "s", counter=WORDS, fact_extractor=Extractor())
        while other.pop() is not None:
            pass
        return Extractor().find(request)

    session = session_with(Extractor(meanwhile), store=store, id="s")
    told(session, 0, 30)
    session.refresh()
    assert texts(session) == []
    assert session.status().stale_summaries >= 1


def test_a_summary_in_the_background_of_what_was_taken_off_is_dropped() -> None:
    """It may repeat it."""
    gate = Gate()
    session = begun(gate)
    while session.pop() is not None:
        pass
    gate.let.set()
    session.drain()
    assert (session.summary, session.messages()) == (None, [])
    assert session.status().stale_summaries == 1


def test_it_can_be_redacted_and_not_pinned(store: Store) -> None:
    """Its words are in the log until then, and the counts are of what is there."""
    session = session_in(store)
    session.extend([user("a"), call("A")])
    event = session.add(result("A", "secret words"))
    session.pop()
    before = session.status().to_dict()
    with pytest.raises(ConfigurationError, match="popped"):
        session.pin(event)
    session.redact(event)
    assert "secret" not in str([one.data for one in session.history(kinds=None)])
    assert vars_of(session) == {name: value for name, value in before.items() if name != "version"}
    assert vars_of(again(session)) == vars_of(session)
    assert session.view_of(event)["content"] == "[redacted]"


def test_a_pin_leaves_with_its_message() -> None:
    """Nothing is held by it any more."""
    session = session_in(MemoryStore(), 100)
    session.add(user("a"))
    session.pin(session.add(assistant("pinned")))
    session.pop()
    session.extend([assistant(words(9)) for _ in range(20)])
    assert "pinned" not in str(session.messages())
    assert session.status().to_dict() == again(session).status().to_dict()


@pytest.mark.parametrize("history", [True, False])
def test_a_restored_session_is_taken_off_down_to_its_beginning(history: bool) -> None:
    """With the log, or with what is needed to go on."""
    session = session_in(MemoryStore(), 4_000)
    said = [user("a"), call("A", "B"), result("A", "one"), result("B", "two"), assistant("b"), user("c")]
    session.extend([*said, user("wrong")])
    session.pop()
    restored = Session.restore(session.snapshot(history=history), counter=WORDS)
    for left in range(len(said), 0, -1):
        assert restored.messages() == said[:left]
        assert popped(restored) == said[left - 1]
    assert restored.pop() is None
    assert session.messages() == said


def test_a_fork_of_before_has_what_was_taken_off_later() -> None:
    """Each log goes by its own events."""
    session = session_in(MemoryStore())
    session.extend([user("a"), user("b")])
    version = session.version
    session.pop()
    session.add(user("c"))
    fork = session.fork(version)
    fork.extend([user("d"), user("e")])
    assert fork.messages() == [user(text) for text in "abde"]
    assert session.messages() == [user("a"), user("c")]


@pytest.mark.long
def test_many_that_were_taken_off_cost_an_event_no_more_than_some() -> None:
    """An event lists some, and names the one with those before; all of them are known to who reads anew."""
    session = session_in(MemoryStore(), 100)
    kept = [assistant(f"kept{at}") for at in range(200)]
    for message in kept:
        session.extend([message, assistant("wrong")])
        session.pop()
    lists = [len(event.data["gone"]) for event in session.history(kinds=("popped",))]
    assert lists == [*range(1, 129), *range(1, 73)]
    other = Session.open(session.store, session.id, counter=lambda messages: 2 * len(messages))
    status = other.status()  # counted anew, from the oldest on
    assert status.recent_messages + status.pending_messages == 200
    for left in range(200, 0, -1):
        assert popped(session) == kept[left - 1]
    assert [*session.history(kinds=("popped",))][-1].data["gone"] == [[2, session.version]]
    assert again(session).messages() == []
    session.add(user("end"))
    assert again(session).messages() == [user("end")]


def test_words_that_wait_again_and_are_the_users_latest_are_not_asked_for_again_and_again() -> None:
    """They are in view (SPEC E3b), and nothing is to be summarized: each add would ask anew, and drop it."""
    asked: list[int] = []

    def summarize(messages: list[Any]) -> str:
        asked.append(len(messages))
        return "about it"

    session = session_in(budget=149, summarizer=summarize, summarize_threshold_messages=1)
    first, *_ = session.extend(
        [user(words(109)), user(words(1)), user(words(135)), user(words(16)), user(words(1))]
    )
    session.add(assistant(words(21)))
    for _ in range(3):
        session.pop()  # the summary over the words of the user that are the latest now is taken back
    session.redact(first)
    before = len(asked)
    for _ in range(2):
        session.add(assistant(words(1)))
        assert len(asked) == before
        assert user(words(135)) in session.messages()
    assert session.status().stale_summaries == 0
