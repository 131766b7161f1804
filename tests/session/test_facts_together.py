"""Facts beside what else a view may have: what is recalled, a summary, the blocks of a Context (E13, D)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import assistant, user, words
from tests.session.test_facts import AsyncExtractor, Extractor, boom, in_view, session_with, talk, texts
from trimtab import Context, Session, Strict, validate
from trimtab.stores import MemoryStore, Retry
from trimtab.summaries import Fact, FactRequest
from trimtab.testing import WordCounter

WORDS = WordCounter()

Add = Callable[[Session, Any], None]


def add(session: Session, message: Any) -> None:
    """Add a message."""
    session.add(message)


def add_awaited(session: Session, message: Any) -> None:
    """Add it in an event loop."""
    asyncio.run(session.aadd(message))


BOTH = pytest.mark.parametrize(("put", "made"), [(add, Extractor), (add_awaited, AsyncExtractor)])


@pytest.mark.few(1)
@BOTH
def test_facts_and_what_is_recalled_share_a_view(put: Add, made: type[Extractor]) -> None:
    """Facts at the front, what is recalled in front of the question; each within its own room."""
    session = session_with(made(), 400, recall_ratio=0.3, system="Be kind.")
    put(session, user("my zebra is called Tom"))
    for at in range(60):
        put(session, user(f"about thing{at} {words(8)}"))
    assert "Tom" not in "\n".join(in_view(session))
    put(session, user("what is the zebra called?"))
    view = session.fit()
    contents = [str(one["content"]) for one in view.messages]
    assert contents[1].startswith('<facts by="trimtab">')
    assert contents[-2].startswith("<recalled of=")
    assert "my zebra is called Tom" in contents[-2]
    parts = session.token_breakdown
    assert 0 < parts.facts <= 40
    assert 0 < parts.recalled <= 0.3 * 400
    assert parts.total == WORDS.count(view.messages) == view.report.tokens_after <= 400
    again = Session.open(session.store, session.id, fact_extractor=made(), counter=WORDS)
    assert asyncio.run(again.amessages()) == view.messages
    session.redact([one.id for one in session.history() if "Tom" in str(one.message)])
    assert "Tom" not in "\n".join(in_view(session))
    assert session.facts


def test_what_is_recalled_is_said_by_messages_and_not_by_facts() -> None:
    """A fact out of view takes no place among messages; `recall` has both."""
    told = Extractor(lambda request: [Fact(text=f"zebra note {id}", sources=[id]) for id in request.ids])
    session = session_with(told, 300, recall_ratio=0.3)
    session.add(user("my zebra is called Tom"))
    talk(session, 0, 60)
    session.add(user("what is the zebra called?"))
    (shown,) = [text for text in in_view(session) if text.startswith("<recalled")]
    assert "is called Tom" in shown
    assert "zebra note" not in shown
    assert session.status().hidden_facts > 5
    assert {event.kind for event in session.recall("zebra", 200)} == {"fact", "message"}


def test_what_must_stay_takes_the_room_of_what_was_recalled_first_and_then_of_facts() -> None:
    """Then of the summary; the report says each."""
    session = session_with(
        Extractor(), 300, recall_ratio=0.2, summarizer=lambda messages: words(20), must_keep=None
    )
    session.add(user("my zebra is called Tom"))
    talk(session, 0, 80)
    gone: list[tuple[bool, bool, bool]] = []
    for size in range(100, 290, 5):
        fork = session.fork()
        fork.add(user(f"what is the zebra called? {words(size)}"))
        parts = fork.token_breakdown
        gone.append((parts.recalled == 0, parts.facts == 0, parts.summary == 0))
        assert parts.total == WORDS.count(fork.messages()) <= 300
    assert gone == sorted(gone), "what gave way does not come back with less room"
    assert [*dict.fromkeys(gone)] == [
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, True, True),
    ]


def policy(budget: int = 400) -> Context:
    """System text, a document, the history and a question."""
    context = Context(budget, counter=WORDS)
    context.add("system", "Be brief.", priority=100, strategy=Strict())
    context.add("documents", ["one document of a few words"], priority=60)
    context.add("history", None, priority=50)
    context.add("question", "What now?", priority=95, strategy=Strict())
    return context


@BOTH
def test_in_a_context_facts_stand_at_the_front_of_the_history(put: Add, made: type[Extractor]) -> None:
    """Within its room: the cap is of what the history has, and the whole fits the Context's budget."""
    extractor = made()
    store = MemoryStore()
    session = Session(context=policy(), fact_extractor=extractor, store=store, id="s")
    for at in range(80):
        put(session, user(f"about thing{at} {words(8)}"))
    view = session.fit()
    contents = [str(one["content"]) for one in view.messages]
    assert contents[:2] == ["Be brief.", "one document of a few words"]
    assert contents[2].startswith('<facts by="trimtab">')
    assert contents[-1] == "What now?"
    assert validate(view.messages) == []
    assert WORDS.count(view.messages) == view.report.tokens_after <= 400
    assert 0 < session.token_breakdown.facts <= session.budget_tokens // 10
    assert len(set(extractor.read)) == len(extractor.read) > 20
    again = Session.open(store, "s", context=policy(), fact_extractor=made())
    assert asyncio.run(again.amessages()) == view.messages


@BOTH
def test_a_block_that_grows_shows_fewer_facts_and_one_that_shrinks_more(
    put: Add, made: type[Extractor]
) -> None:
    """The room of the history is what other blocks leave, and so is that of its facts."""
    session = Session(context=policy(600), fact_extractor=made(), store=MemoryStore())
    for at in range(120):
        put(session, user(f"about thing{at} {words(8)}"))
    many = len(texts(session))
    assert session.context is not None
    session.context.replace("documents", [f"document {words(300)}"])
    put(session, user(f"about more {words(8)}"))
    assert WORDS.count(session.messages()) <= 600
    assert 0 < len(texts(session)) < many
    session.context.replace("documents", ["short"])
    put(session, user(f"about less {words(8)}"))
    assert WORDS.count(session.messages()) <= 600
    assert len(texts(session)) >= many


# -- failures


def most_calls(tokens: int, threshold: int) -> int:
    """How often it may be asked about so many tokens that left: each time for twice as many as before."""
    calls, waits = 0, threshold
    while waits <= tokens:
        calls, waits = calls + 1, 2 * waits
    return calls + 1


class AsyncFailing(AsyncExtractor):
    """Fails when it is awaited."""

    async def extract(self, request: FactRequest) -> Any:
        """Fail."""
        await asyncio.sleep(0)
        self.requests.append(request)
        raise ConnectionError("away")


@pytest.mark.few(3)
@pytest.mark.parametrize("made", [lambda: Extractor(boom), AsyncFailing])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"summarizer": lambda messages: "short"},
        {"summarizer": lambda messages: 1 / 0},
        {"recall_ratio": 0.3},
        {"background": True},
        {"retry": Retry()},
    ],
    ids=["alone", "summary", "failing summary", "recall", "background", "retry"],
)
def test_an_outage_brings_no_storm_of_calls(made: Callable[[], Extractor], options: dict[str, Any]) -> None:
    """Whatever else a session does: as many calls as what left can double, and no message is lost."""
    extractor = made()
    session = session_with(extractor, **options)

    async def add_all() -> None:
        for at in range(200):
            await session.aadd(user(f"about thing{at} {words(8)}"))
        await session.aclose()

    asyncio.run(add_all())
    assert 3 <= len(extractor.requests) <= most_calls(200 * 10, 20)
    assert len(list(session.history())) == 200
    assert session.status().fact_failures == len(extractor.requests)


@pytest.mark.long
@pytest.mark.parametrize("in_context", [False, True])
def test_processes_that_begin_anew_ask_no_more_often(in_context: bool) -> None:
    """The distance between attempts is in the log, and not in the object."""
    extractor, store = Extractor(boom), MemoryStore()
    for at in range(200):
        given: dict[str, Any] = (
            {"context": policy(), "fact_extractor": extractor}
            if in_context
            else {"budget": 200, "counter": WORDS, "max_fact_tokens": 40, "fact_extractor": extractor}
        )
        session = Session(store=store, id="s", **given)
        session.extend([user(f"about thing{at} {words(8)}"), assistant(words(8))])
    assert 3 <= len(extractor.requests) <= most_calls(200 * 18, 20)
    found = Extractor()
    given["fact_extractor"] = found
    for at in range(200, 500):
        session = Session(store=store, id="s", **given)
        session.extend([user(f"about thing{at} {words(8)}"), assistant(words(8))])
    assert session.status().fact_failures == 0
    assert found.read == [one.id for one in session.history()][: len(found.read)]
    assert len(found.read) > 500


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_threshold_above_the_budget_is_reached(begins_anew: bool) -> None:
    """Also where each process adds one message: what left is counted in the log, as far as it has to be."""
    extractor, store = Extractor(), MemoryStore()
    given = {"store": store, "id": "s", "summarize_threshold_tokens": 500, "extractor": extractor}
    session = session_with(**given)
    for at in range(120):
        session = session_with(**given) if begins_anew else session
        session.add(user(f"about thing{at} {words(8)}"))
        if not extractor.requests:
            gone = 10 * (at + 1) - sum(map(WORDS.count_message, session.messages()))
            assert gone < 500 + 100, "a cut more than the threshold, and it was not asked"
    assert len(extractor.requests) > 2


def test_orders_that_change_what_is_in_view_bring_no_storm() -> None:
    """Budgets, pins, undo and redaction between the messages of an outage."""
    extractor = Extractor(boom)
    session = session_with(extractor)
    for at in range(200):
        session.add(user(f"about thing{at} {words(8)}"))
        if at % 10 == 9:
            first = next(session.history(after=at // 2))
            session.pin(first)
            session.set_budget(180 + at % 40)
            session.unpin(first)
    assert len(extractor.requests) <= most_calls(200 * 10, 18)
