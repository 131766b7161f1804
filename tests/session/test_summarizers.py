"""Whatever a summarizer does: nothing is lost, the view fits, it is not asked again and again (E6, E7)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.builders import user, words
from trimtab import ConfigurationError, Session
from trimtab.errors import SummaryError
from trimtab.stores import MemoryStore
from trimtab.summaries import SummaryRequest
from trimtab.testing import WordCounter

WORDS = WordCounter()

MAX_ASKED = 32
"""Summarizers that are not async and that one event loop waits for at once."""

Answer = Callable[[SummaryRequest], Any]


class Summarizer:
    """Answers as a function says, and notes what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest) -> Any:
        """Answer."""
        self.requests.append(request)
        return self.answer(request)


class AsyncSummarizer(Summarizer):
    """The same, awaited."""

    async def summarize(self, request: SummaryRequest) -> Any:
        """Answer."""
        self.requests.append(request)
        answer = self.answer(request)
        return await answer if asyncio.iscoroutine(answer) else answer


def raises(error: BaseException) -> Answer:
    """Raise it each time."""

    def answer(request: SummaryRequest) -> Any:
        raise error

    return answer


def nothing(request: SummaryRequest) -> Any:
    """Answer None."""


def said(session: Session) -> list[str]:
    """Everything in the log."""
    return [event.message["content"] for event in session.history()]


def texts(count: int, size: int = 10) -> list[str]:
    """Write different messages of one size."""
    return [f"number{at} {words(size - 1)}" for at in range(count)]


def one_session(summarizer: Any, **options: Any) -> Session:
    """Open a session whose threshold is 10 tokens of 100, and that evicts no more than it must."""
    given = {"summarize_threshold_messages": 99, "target_ratio": 1.0, **options}
    return Session(100, counter=WORDS, summarizer=summarizer, must_keep=None, **given)


USELESS: dict[str, Answer] = {
    "raises": raises(ConnectionError("away")),
    "empty": lambda request: "",
    "space": lambda request: " \n\t ",
    "none": nothing,
    "number": lambda request: 7,
    "dict": lambda request: {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]},
    "list": lambda request: ["a", "b"],
    "bytes": lambda request: b"a summary",
}


@pytest.mark.few(3)
@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.parametrize("answer", USELESS.values(), ids=USELESS.keys())
def test_a_useless_answer_loses_nothing_and_causes_no_storm(answer: Answer, colour: str) -> None:
    """E7: at most one call for each doubling of what waits, over 500 adds; then it recovers."""
    waiting_at: list[int] = []
    works = False

    def answered(request: SummaryRequest) -> Any:
        waiting_at.append(session.status().pending_tokens)
        return "all of it" if works else answer(request)

    summarizer = Summarizer(answered)
    session = one_session(summarizer)
    everything = texts(500)

    async def add_all() -> None:
        for text in everything:
            await session.aadd(user(text))

    if colour == "sync":
        for text in everything:
            session.add(user(text))
    else:
        asyncio.run(add_all())
    assert said(session) == everything
    assert session.summary is None
    assert session.status().failures == len(waiting_at) >= 2
    assert all(2 * before <= after for before, after in pairwise(waiting_at))
    assert WORDS.count(session.messages()) <= 100
    works = True
    while session.summary is None:
        session.add(user(words(10)))
    assert session.status().failures == 0
    assert session.status().pending_tokens < 10_000


def test_what_waited_through_an_outage_is_summarized_in_pieces() -> None:
    """No call is given more than one budget's worth; each message is given once, in order."""
    works = False

    def answer(request: SummaryRequest) -> str:
        if not works:
            raise ConnectionError
        given.extend(message["content"] for message in request.messages)
        sizes.append(WORDS.count(list(request.messages)))
        return "so far"

    given: list[str] = []
    sizes: list[int] = []
    session = one_session(Summarizer(answer))
    everything = texts(300)
    for text in everything:
        session.add(user(text))
    works = True
    while session.status().pending_tokens > 100 or not given:
        everything.append(f"then{len(everything)} {words(9)}")
        session.add(user(everything[-1]))
    assert max(sizes) <= 100
    assert given == everything[: len(given)]
    assert session.status().summarized_messages == len(given)


def test_a_unit_larger_than_the_budget_is_given_alone() -> None:
    """Or it would wait for ever."""
    summarizer = Summarizer(lambda request: "big")
    session = one_session(summarizer)
    for text in [words(150), *texts(3, 30)]:
        session.add(user(text))
    assert len(summarizer.requests[0].messages) == 1
    assert session.summary == "big"


@pytest.mark.parametrize("colour", ["sync", "async", "async summarizer"])
def test_one_that_hangs_is_left_to_itself(colour: str) -> None:
    """The session goes on; what it answers too late is ignored."""
    go_on, answered = threading.Event(), threading.Event()

    def late(request: SummaryRequest) -> str:
        go_on.wait(30)
        answered.set()
        return "too late"

    async def never(request: SummaryRequest) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    summarizer = AsyncSummarizer(never) if colour == "async summarizer" else Summarizer(late)
    session = one_session(summarizer, summary_timeout_seconds=0.01)

    async def add_all() -> None:
        for text in texts(14):
            await session.aadd(user(text))

    try:
        if colour == "sync":
            for text in texts(14):
                session.add(user(text))
        else:
            asyncio.run(add_all())
    finally:
        go_on.set()
    if colour != "async summarizer":
        assert answered.wait(30)
    session.refresh()
    assert session.summary is None
    assert session.status().failures >= 1
    assert "0.01 seconds" in str(session.status().last_failure)
    assert said(session) == texts(14)


def test_a_text_100_times_too_long_is_asked_for_again_and_cut_at_a_sentence() -> None:
    """E6: each time aiming at 0.75 of its room, at most five times; every round is told."""
    told: list[tuple[str, str]] = []
    sentence = "He said no. "
    summarizer = Summarizer(lambda request: sentence * 1_000)
    session = one_session(
        summarizer, max_summary_tokens=20, hooks={"on_summary_compressed": lambda *pair: told.append(pair)}
    )
    for text in texts(11):
        session.add(user(text))
    room = 20 - 5  # five words of the mark
    assert [request.max_tokens for request in summarizer.requests] == [room, *[room * 3 // 4] * 5]
    assert len(told) == 5
    assert session.summary == (sentence * 5).strip()
    assert session.token_breakdown.summary == 20
    assert summarizer.requests[1].messages[0]["content"] == (sentence * 1_000).strip()
    assert summarizer.requests[1].existing is None


def test_a_shorter_text_is_taken_as_soon_as_it_fits() -> None:
    """The hook is given what was too long, and what came instead."""
    told: list[tuple[str, str]] = []
    answers = [words(40), words(30), words(15), words(3)]
    session = one_session(
        Summarizer(lambda request: answers.pop(0)),
        max_summary_tokens=20,
        hooks={"on_summary_compressed": lambda *pair: told.append(pair)},
    )
    for text in texts(11):
        session.add(user(text))
    assert told == [(words(40), words(30)), (words(30), words(15))]
    assert session.summary == words(15)
    assert answers == [words(3)]


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_rounds_are_limited(rounds: int) -> None:
    """Each answer longer than the one before; in the end the last one is cut."""
    answers = [f"{at} {words(30 + at)}" for at in range(10)]
    summarizer = Summarizer(lambda request: answers[len(summarizer.requests) - 1])
    session = one_session(summarizer, max_summary_tokens=20, max_summary_rounds=rounds)
    for text in texts(11):
        session.add(user(text))
    assert len(summarizer.requests) == 1 + rounds
    assert str(session.summary).startswith(f"{rounds} ")
    assert session.token_breakdown.summary <= 20


def test_one_that_fails_when_asked_again_is_cut() -> None:
    """What it wrote first is better than nothing."""
    answers: list[Any] = ["Yes. " * 50, None]
    session = one_session(Summarizer(lambda request: answers.pop(0)), max_summary_tokens=20)
    for text in texts(11):
        session.add(user(text))
    assert session.summary == ("Yes. " * 15).strip()


def test_a_summary_is_smaller_than_what_it_replaces() -> None:
    """E6: also where its cap is larger."""
    summarizer = Summarizer(lambda request: words(60))
    session = one_session(summarizer, max_summary_tokens=90, min_recent_tokens=75)
    for text in texts(11):
        session.add(user(text))
    assert [event.kind for event in session.history(kinds=("summary",))] == ["summary"]
    covered = 10 * session.status().summarized_messages
    assert session.token_breakdown.summary < covered


def test_one_without_room_for_a_word_is_not_asked() -> None:
    """The mark alone takes all of it: a failure that says what to change."""
    summarizer = Summarizer(lambda request: "a")
    session = one_session(summarizer, max_summary_tokens=5)
    for text in texts(11):
        session.add(user(text))
    assert summarizer.requests == []
    assert "max_summary_tokens" in str(session.status().last_failure)


def test_a_second_summary_goes_on_from_the_first() -> None:
    """Incremental: the text so far is given; messages once each."""
    summarizer = Summarizer(lambda request: f"part {len(summarizer.requests)}")
    session = one_session(summarizer)
    everything = texts(40)
    for text in everything:
        session.add(user(text))
    existing = [request.existing for request in summarizer.requests]
    assert existing == [None, *(f"part {at}" for at in range(1, len(existing)))]
    given = [message["content"] for request in summarizer.requests for message in request.messages]
    assert given == everything[: len(given)]


def test_an_async_one_in_a_sync_session_is_refused_before_anything_is_stored() -> None:
    """The error says what to call; also in a session opened from a store."""
    session = one_session(AsyncSummarizer(lambda request: "a"))
    for call in (
        lambda: session.add(user("a")),
        lambda: session.set_budget(200),
        lambda: session.set_anchors([]),
    ):
        with pytest.raises(ConfigurationError, match=r"aadd\("):
            call()
    asyncio.run(session.aadd(user("a")))
    again = Session.open(session.store, session.id, counter=WORDS, summarizer=AsyncSummarizer(lambda _: "a"))
    with pytest.raises(ConfigurationError, match=r"aadd\("):
        again.add(user("b"))
    assert said(session) == ["a"]


def test_one_that_turns_out_to_be_async_is_a_failed_summary() -> None:
    """Nothing of it shows before it is called: the message is stored by then, and stays."""

    async def later(messages: Any) -> str:
        return "late"

    session = one_session(lambda messages: later(messages))
    for text in texts(11):
        session.add(user(text))
    assert said(session) == texts(11)
    assert "async" in str(session.status().last_failure)
    assert session.status().failures == 1


def test_a_keyboard_interrupt_passes_through() -> None:
    """What was added is stored; the session goes on."""
    summarizer = Summarizer(raises(KeyboardInterrupt()))
    session = one_session(summarizer)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  # which add it is does not matter
        for text in texts(11):
            session.add(user(text))
    stored = said(session)
    assert stored == texts(len(stored))
    assert session.status().failures == 0
    summarizer.answer = lambda request: "fine"
    session.add(user(words(10)))
    assert session.summary == "fine"
    assert WORDS.count(session.messages()) <= 100


def test_a_cancelled_add_is_stored_and_the_session_goes_on() -> None:
    """Cancellation reaches the summarizer."""
    reached = asyncio.Event()

    async def waits(request: SummaryRequest) -> str:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    summarizer = AsyncSummarizer(waits)
    session = one_session(summarizer)

    async def run() -> None:
        for text in texts(9):
            await session.aadd(user(text))
        task = asyncio.create_task(session.aextend([user(words(10)), user(words(10))]))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        summarizer.answer = lambda request: "fine"
        await session.aadd(user(words(10)))

    asyncio.run(run())
    assert session.summary == "fine"
    assert len(said(session)) == 12


def test_a_counter_that_refuses_the_summary_is_a_failed_summary() -> None:
    """The message is stored; the next attempt waits."""

    class Picky(WordCounter):
        def count_message(self, message: Any, /) -> int:
            if "POISON" in str(message):
                raise ValueError("no")
            return super().count_message(message)

    summarizer = Summarizer(lambda request: "POISON")
    session = Session(100, counter=Picky(), summarizer=summarizer, must_keep=None)
    for text in texts(30):
        session.add(user(text))
    assert said(session) == texts(30)
    assert len(summarizer.requests) == session.status().failures <= 5


def test_a_message_is_given_as_it_is_shown_and_as_a_copy() -> None:
    """Who changes what it was given changes nothing."""

    def spoil(request: SummaryRequest) -> str:
        for message in request.messages:
            message["content"] = "spoiled"
        return "fine"

    session = one_session(Summarizer(spoil))
    for text in texts(12):
        session.add(user(text))
    assert said(session) == texts(12)
    assert "spoiled" not in str(session.messages())


def cut_down(
    budget: int, answer: Answer = lambda request: "sum", *, count: int = 300
) -> tuple[Session, Summarizer]:
    """Say ten tokens so many times in a session that holds them, and cut the budget down."""
    summarizer = Summarizer(answer)
    session = Session(20 * count, counter=WORDS, summarizer=summarizer, must_keep=None)
    session.extend([user(text) for text in texts(count)])
    assert summarizer.requests == []
    session.set_budget(budget)
    return session, summarizer


def test_a_budget_cut_far_down_is_caught_up_with() -> None:
    """What left is summarized in as many calls as that takes, none of them given more than a budget."""
    session, summarizer = cut_down(500)
    status = session.status()
    assert (status.hidden_messages, status.pending_messages) == (0, 0)
    assert status.summarized_messages + status.recent_messages == 300
    assert len(summarizer.requests) == 6
    assert all(10 * len(request.messages) <= 500 for request in summarizer.requests)
    assert session.fit().report.tokens_after <= 500


def test_catching_up_asks_64_times_and_says_what_is_left() -> None:
    """14,900 tokens and more wait, and 64 calls take 200 each; summarize() takes the rest, however little."""
    session, summarizer = cut_down(200, count=1_500)
    assert len(summarizer.requests) == 64
    status = session.status()
    assert status.summarized_messages == 1_280
    assert status.hidden_messages > 100
    note = f"{status.hidden_messages} messages of these wait for a summary: summarize() writes it."
    assert note in session.fit().report.notes
    assert session.summarize() == status.pending_messages
    after = session.status()
    assert (after.hidden_messages, after.pending_messages) == (0, 0)
    assert after.summarized_messages == 1_280 + status.pending_messages
    assert session.summarize() == 0


def test_a_summary_on_demand_takes_what_is_not_due() -> None:
    """One message waits; its ten tokens are no threshold."""
    summarizer = Summarizer(lambda request: "sum")
    session = one_session(summarizer, summarize_threshold_tokens=90, summarize_threshold_messages=50)
    for text in texts(11):
        session.add(user(text))
    waiting = session.status().pending_messages
    assert (waiting > 0, summarizer.requests) == (True, [])
    assert session.summarize() == waiting
    assert (len(summarizer.requests), session.summary) == (1, "sum")
    assert session.status().pending_messages == 0


def test_a_summary_on_demand_that_fails_says_so_and_loses_nothing() -> None:
    """What it had done before stays; what waits goes on waiting."""
    answers: list[Any] = ["sum"] * 65

    def answer(request: SummaryRequest) -> Any:
        return answers.pop() if answers else None

    session, _ = cut_down(200, answer, count=1_500)
    waiting = session.status().pending_messages
    with pytest.raises(SummaryError, match="returned NoneType"):
        session.summarize()
    status = session.status()
    assert status.pending_messages == waiting - 20
    assert (status.failures, status.summarized_messages) == (1, 1_300)


def test_a_summary_on_demand_needs_a_summarizer_that_can_be_asked() -> None:
    """None is an error, and an async one is awaited, in the background too."""
    with pytest.raises(ConfigurationError, match="pass summarizer="):
        Session(100, counter=WORDS).summarize()
    for background in (False, True):
        session = one_session(AsyncSummarizer(lambda request: "sum"), background=background)
        with pytest.raises(ConfigurationError, match=r"asummarize\("):
            session.summarize()

    async def main() -> None:
        session = one_session(AsyncSummarizer(lambda request: "sum"), summarize_threshold_tokens=90)
        for text in texts(11):
            await session.aadd(user(text))
        waiting = session.status().pending_messages
        assert await session.asummarize() == waiting > 0

    asyncio.run(main())


def test_what_waits_is_caught_up_with_in_the_background() -> None:
    """As beside the order itself: 64 summaries, one after the other."""
    summarizer = Summarizer(lambda request: "sum")
    with Session(20_000, counter=WORDS, summarizer=summarizer, must_keep=None, background=True) as session:
        session.extend([user(text) for text in texts(1_500)])
        session.set_budget(200)
    assert len(summarizer.requests) == 64
    assert session.status().summarized_messages == 1_280


def reopened(summarizer: Summarizer, *, before: Summarizer | None, budget: int, **options: Any) -> Session:
    """Say 6,000 tokens in a session of 10,000, and open it again with another budget."""
    store = MemoryStore()
    first = Session(10_000, counter=WORDS, summarizer=before, must_keep=None, store=store, id="talk")
    first.extend([user(text) for text in texts(600)])
    return Session(
        budget, counter=WORDS, summarizer=summarizer, must_keep=None, store=store, id="talk", **options
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("given_before", [False, True])
def test_a_budget_cut_down_at_opening_is_caught_up_with(background: bool, given_before: bool) -> None:
    """The first add asks for as many summaries of 300 tokens as it takes; the next for one at most."""
    summarizer = Summarizer(lambda request: "sum")
    before = summarizer if given_before else None
    session = reopened(summarizer, before=before, budget=300, background=background)
    with session:
        session.messages()
        assert summarizer.requests == []
        session.add(user("one more"))
    assert len(summarizer.requests) == 20
    assert session.status().summarized_messages == 590
    with session:
        for text in texts(30):
            session.add(user(text))
    assert len(summarizer.requests) in (21, 22)


def test_a_budget_cut_down_at_opening_is_caught_up_with_after_aadd() -> None:
    """In a task as in a thread."""
    summarizer = AsyncSummarizer(lambda request: "sum")

    async def main() -> Session:
        before = Summarizer(lambda request: "sum")
        session = reopened(summarizer, before=before, budget=300, background=True)
        async with session:
            await session.aadd(user("one more"))
        return session

    assert asyncio.run(main()).status().summarized_messages == 590
    assert len(summarizer.requests) == 20


def test_what_fits_at_opening_is_no_order_to_catch_up() -> None:
    """6,000 tokens fit 6,000: what is added later is summarized by one call for each add."""
    summarizer = Summarizer(lambda request: "sum")
    session = reopened(summarizer, before=summarizer, budget=6_000)
    assert session.status().hidden_messages == 0
    for calls in (1, 2):
        session.add(user(words(5_000)))
        assert len(summarizer.requests) == calls


@pytest.mark.few(1)
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_summaries_that_are_too_long_do_not_multiply_the_calls(rounds: int) -> None:
    """Each call is paid for by half a threshold of new tokens, those for shorter texts included."""
    summarizer = Summarizer(lambda request: words(200))
    session = one_session(summarizer, max_summary_rounds=rounds)
    said_tokens = 0
    for text in texts(600):
        session.add(user(text))
        said_tokens += 10
        assert len(summarizer.requests) <= said_tokens / 5 + rounds
    assert len(summarizer.requests) > 600
    assert len(list(session.history(kinds=("summary",)))) > 100


def test_a_shorter_text_is_paid_for_and_no_more() -> None:
    """Two calls are two halves of the threshold of 40: the next comes when 40 wait, not at 30."""
    summarizer = Summarizer(lambda request: words(200))
    session = one_session(
        summarizer, max_summary_rounds=1, summarize_threshold_tokens=40, summarize_threshold_messages=1
    )
    waited = []
    for text in texts(60):
        session.add(user(text))
        waited.append(session.status().pending_tokens)
        assert session.status().retry_tokens in (0, 40)
    first, *others = [len(request.messages) for request in summarizer.requests[::2]]
    assert first >= 2
    assert set(others) == {4}
    assert max(waited) == 30


class Crowded:
    """A summarizer that is not async and waits in the middle of its answer; counts how many do at once."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.inside = 0
        self.most = 0
        self.full = threading.Event()
        self._lock = threading.Lock()

    def summarize(self, request: SummaryRequest) -> str:
        """Wait until it is let."""
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            if self.inside == MAX_ASKED:
                self.full.set()
        assert self.let.wait(30)
        with self._lock:
            self.inside -= 1
        return "short"


def test_slow_summarizers_hold_up_no_store_of_the_event_loop() -> None:
    """More sessions than the loop has threads wait for a model; another one goes on, and all of them end."""

    async def crowd() -> None:
        slow, store = Crowded(), MemoryStore()
        sessions = [
            Session(100, counter=WORDS, store=store, summarizer=slow, must_keep=None, id=f"s{at}")
            for at in range(MAX_ASKED + 8)
        ]
        messages = [user(words(10)) for _ in range(14)]
        adding = [asyncio.create_task(one.aextend(messages)) for one in sessions]
        while not slow.full.is_set():
            await asyncio.sleep(0)
        quick = Session(100, counter=WORDS, store=store, id="quick")
        for _ in range(20):
            await quick.aadd(user("at once"))
        assert not any(task.done() for task in adding)
        slow.let.set()
        await asyncio.gather(*adding)
        assert slow.most == MAX_ASKED
        assert [one.summary for one in sessions] == ["short"] * len(sessions)

    asyncio.run(asyncio.wait_for(crowd(), 60))


def test_each_failure_doubles_what_has_to_wait_however_little_waits() -> None:
    """Four messages of ten tokens wait at a threshold of 30: 40 + 30, + 60, + 120, + 240 (E7)."""

    def away(messages: Any) -> str:
        raise ConnectionError

    session = Session(
        100,
        counter=WORDS,
        summarizer=away,
        must_keep=None,
        summarize_threshold_tokens=30,
        summarize_threshold_messages=99,
        target_ratio=1.0,
    )
    for text in texts(11):
        session.add(user(text))
    grown = [session.status().retry_tokens]
    for _ in range(3):
        with pytest.raises(SummaryError):
            session.summarize()
        grown.append(session.status().retry_tokens)
    assert session.status().pending_tokens == 40
    assert grown == [2 * 40, 40 + 60, 40 + 120, 40 + 240]  # never less than twice what waits
