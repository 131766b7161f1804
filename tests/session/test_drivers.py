"""What runs a session: one operation at a time in both colours, cancelled, called back, forked."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.test_background import SECONDS, Gate, begun, in_background
from tests.session.test_summarizers import WORDS, AsyncSummarizer, texts
from trimtab import ConfigurationError, Session
from trimtab.errors import CorruptSessionError
from trimtab.stores import Appended, AppendRequest, Event, LoadRequest, MemoryStore, SQLiteStore
from trimtab.summaries import SummaryRequest


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run on an event loop; a test that hangs fails."""

    async def guarded() -> None:
        async with asyncio.timeout(SECONDS):
            await main

    asyncio.run(guarded())


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Start a thread that does not keep the tests from ending."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def joined(*threads: threading.Thread) -> None:
    """Wait for threads; a test that hangs fails."""
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def contents(session: Session) -> list[Any]:
    """List what was said."""
    return [event.message["content"] for event in session.history()]


class Held(MemoryStore):
    """Keeps an append, or its answer, until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.asked = threading.Event()
        self.let = threading.Event()

    def append(self, request: AppendRequest, /) -> Appended:
        """Store, and answer when it is let."""
        done = super().append(request)
        if self.holds:
            self.holds = False
            self.asked.set()
            assert self.let.wait(SECONDS)
        return done


async def until(event: threading.Event) -> None:
    """Await what another thread sets."""
    assert await asyncio.to_thread(event.wait, SECONDS)


async def turned() -> None:
    """Let every task go as far as it can without other threads."""
    for _ in range(20):
        await asyncio.sleep(0)


# Cancelled


WAITS: dict[str, Callable[[Session], Coroutine[Any, Any, Any]]] = {
    "adrain": lambda session: session.adrain(),
    "aclose": lambda session: session.aclose(),
    "asnapshot": lambda session: session.asnapshot(),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
@pytest.mark.parametrize("by", ["task", "thread"])
def test_waiting_for_the_background_can_be_cancelled(
    wait: Callable[[Session], Coroutine[Any, Any, Any]], by: str
) -> None:
    """The caller's cancellation is the caller's; the summary is written nevertheless."""

    async def main() -> None:
        gate = Gate()
        session = in_background(gate)
        for text in texts(10):
            await session.aadd(user(text)) if by == "task" else session.add(user(text))
        await until(gate.began)
        waiting = asyncio.create_task(wait(session))
        await turned()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await wait(session)
        gate.let.set()
        await session.adrain()
        assert session.summary == "in the background"

    run(main())


def test_a_cancelled_task_of_a_summarizer_is_its_failure() -> None:
    """Nobody cancelled the add: it returns, and the session goes on; the add that is cancelled is."""

    async def main() -> None:
        async def lost(request: SummaryRequest) -> str:
            inner = asyncio.create_task(asyncio.Event().wait())
            inner.cancel()
            await inner
            return "never"

        session = Session(100, counter=WORDS, summarizer=AsyncSummarizer(lost), must_keep=None)
        for text in texts(12):
            await session.aadd(user(text))
        assert session.status().failures == 1
        assert "CancelledError" in str(session.status().last_failure)
        assert len([event async for event in session.ahistory()]) == 12

    run(main())


def read_with(change: Callable[[], object], *, at: int, session: Session, name: str) -> tuple[Any, int]:
    """Read a property, and have another thread change the session after so many steps of the reading."""
    steps = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal steps
        if Path(frame.f_code.co_filename).name not in ("working_set.py", "messages.py", "view.py"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == at:
                joined(in_thread(change))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return getattr(session, name), steps
    finally:
        sys.settrace(before)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["total_message_count", "recent_message_count", "token_breakdown"])
@pytest.mark.parametrize("what", [result("A", "1"), user(words(60)), assistant(words(9))], ids=str)
def test_a_property_may_be_read_while_another_thread_changes_the_session(name: str, what: Any) -> None:
    """Whatever is added at whichever step: a result joins the last unit, and the others make some leave."""
    at, steps = 0, 1
    while at < steps:
        at += 1
        session = Session(100, counter=WORDS, system="sys")
        session.extend([user(words(20)), user(words(20)), user("a"), call("A")])
        found, steps = read_with(lambda one=session: one.add(what), at=at, session=session, name=name)
        assert found
    assert at > 50


def test_a_cancelled_add_knows_what_was_stored() -> None:
    """The store goes on with it; the next add does not conflict with it."""

    async def main() -> None:
        store = Held()
        session = Session(200, counter=WORDS, id="s", store=store)
        await session.aadd(user("one"))
        store.holds = True
        adding = asyncio.create_task(session.aadd(user("two")))
        await until(store.asked)
        adding.cancel()
        await turned()
        assert not adding.done()
        store.let.set()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert session.version == 3
        await session.aadd(user("three"))
        assert contents(session) == ["one", "two", "three"]

    run(main())


def test_a_timeout_around_an_add_is_one() -> None:
    """Also where the store fails after it."""

    class Broken(Held):
        def append(self, request: AppendRequest, /) -> Appended:
            super().append(request)
            raise OSError("gone")

    async def end(limit: asyncio.Timeout, store: Held) -> None:
        await until(store.asked)
        limit.reschedule(0.0)
        await turned()
        store.let.set()

    async def add(session: Session, store: Held) -> None:
        async with asyncio.timeout(None) as limit:
            ending = asyncio.create_task(end(limit, store))
            await session.aadd(user("one"))
        await ending

    async def main(store: Held) -> None:
        session = Session(200, counter=WORDS, id="s", store=store)
        store.holds = True
        with pytest.raises(TimeoutError):
            await add(session, store)
        assert contents(session) == ["one"]

    run(main(Held()))
    run(main(Broken()))


def test_an_operation_cut_off_in_the_middle_is_read_again() -> None:
    """Cancelled while its summary is being written: what was decided on the way is not kept."""

    async def main() -> None:
        began = asyncio.Event()

        async def answer(request: SummaryRequest) -> str:
            began.set()
            await asyncio.Event().wait()
            return "never"

        session = Session(100, counter=WORDS, summarizer=AsyncSummarizer(answer), must_keep=None)

        async def add() -> None:
            for text in texts(20):
                await session.aadd(user(text))

        adding = asyncio.create_task(add())
        await began.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        before = await session.astatus()
        await session.arefresh()
        assert await session.astatus() == before == session.status()

    run(main())


def test_a_cancelled_add_asks_for_no_summary_any_more() -> None:
    """It is stored, and what was due is due at the next one."""

    async def main() -> None:
        store = Held()
        asked: list[Any] = []

        def summarize(messages: Any) -> str:
            asked.append(messages)
            return "sum"

        session = Session(100, counter=WORDS, summarizer=summarize, must_keep=None, id="s", store=store)
        await session.aextend([user(text) for text in texts(10)])
        store.holds = True
        adding = asyncio.create_task(session.aadd(user(texts(11)[10])))
        await until(store.asked)
        adding.cancel()
        await turned()
        store.let.set()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert asked == []
        assert contents(session) == texts(11)
        await session.aadd(user(texts(12)[11]))
        assert len(asked) == 1

    run(main())


# One at a time


def test_a_cancelled_wait_for_the_turn_leaves_it_free() -> None:
    """Whether it was cancelled in line or just when its turn came."""

    async def main() -> None:
        store = Held()
        session = Session(200, counter=WORDS, id="s", store=store)
        store.holds = True
        first = asyncio.create_task(session.aadd(user("one")))
        await until(store.asked)
        in_line, next_one = (asyncio.create_task(session.aadd(user(name))) for name in ("two", "three"))
        await turned()
        in_line.cancel()
        store.let.set()
        first.add_done_callback(lambda _: next_one.cancel())
        await first
        for one in (in_line, next_one):
            with pytest.raises(asyncio.CancelledError):
                await one
        await session.aadd(user("four"))
        assert contents(session) == ["one", "four"]

    run(main())


def test_an_interrupted_wait_for_the_turn_leaves_it_free() -> None:
    """As by Ctrl+C."""
    store = Held()
    session = Session(200, counter=WORDS, id="s", store=store)
    store.holds = True
    other = in_thread(lambda: session.add(user("one")))
    assert store.asked.wait(SECONDS)

    def interrupt() -> None:
        while not session._runner._lock._waiting:
            threading.Event().wait(0.001)
        session._runner._lock._waiting[0].granted.set_exception(KeyboardInterrupt())

    in_thread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.add(user("two"))
    store.let.set()
    joined(other)
    session.add(user("three"))
    assert contents(session) == ["one", "three"]


def test_threads_and_event_loops_take_turns_on_one_object() -> None:
    """No conflict with oneself, nothing lost, nothing counted twice."""
    store = MemoryStore()
    session = Session(
        100, counter=WORDS, summarizer=lambda messages: "sum", must_keep=None, store=store, id="s"
    )
    begin = threading.Barrier(4)
    failed: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> Callable[[], None]:
        def guard() -> None:
            begin.wait(SECONDS)
            try:
                work()
            except BaseException as error:
                failed.append(error)
                raise

        return guard

    async def write() -> None:
        async def some(name: str) -> None:
            for at in range(15):
                await session.aadd(user(f"{name} {at}"))

        await asyncio.gather(some("a"), some("b"))

    def write_at_once() -> None:
        for at in range(30):
            session.add(user(f"c {at}"))

    loops = [in_thread(guarded(lambda: asyncio.run(write()))) for _ in range(2)]
    joined(*loops, *(in_thread(guarded(write_at_once)) for _ in range(2)))
    assert failed == []
    assert len(contents(session)) == 120
    before = session.status().to_dict()
    session.refresh()
    assert session.status().to_dict() == before


def test_a_sync_call_beside_a_task_of_the_same_loop_is_refused() -> None:
    """It could only wait for ever; nothing is stored, and properties still answer."""

    async def main() -> None:
        store = Held()
        session = Session(200, counter=WORDS, id="s", store=store)
        await session.aadd(user("one"))
        store.holds = True
        adding = asyncio.create_task(session.aadd(user("two")))
        await until(store.asked)
        assert session.budget_tokens == session.status().budget_tokens == 200
        with pytest.raises(ConfigurationError, match="await"):
            session.add(user("three"))
        store.let.set()
        await adding
        session.add(user("four"))
        assert contents(session) == ["one", "two", "four"]

    run(main())


def test_a_loop_that_stands_still_is_passed_over() -> None:
    """A task of it was in line first; its own sync call, and those of others, go before."""

    async def main() -> None:
        store = Held()
        session = Session(200, counter=WORDS, id="s", store=store)
        store.holds = True
        other = in_thread(lambda: session.add(user("one")))
        await until(store.asked)
        in_line = asyncio.create_task(session.aadd(user("three")))
        await turned()
        here = threading.get_ident()

        def let() -> None:
            while here not in session._runner._lock._still:
                threading.Event().wait(0.001)
            store.let.set()

        in_thread(let)
        session.add(user("two"))
        await in_line
        joined(other)
        assert contents(session) == ["one", "two", "three"]

    run(main())


def test_history_lets_others_in_between_its_pages() -> None:
    """Read half, then another task writes."""

    async def main() -> None:
        session = Session(200, counter=WORDS)
        await session.aextend([user("one"), user("two")])
        pages = session.ahistory()
        first = await anext(pages)
        await asyncio.create_task(session.aadd(user("three")))
        session.add(user("four"))
        rest = [event async for event in pages]
        assert [event.message["content"] for event in [first, *rest]] == ["one", "two"]

    run(main())


def test_both_drains_wait_for_both() -> None:
    """For a thread of `add` from asyncio, for a task of `aadd` from another thread."""

    async def main() -> None:
        for by in ("task", "thread"):
            gate = Gate()
            session = in_background(gate)
            for text in texts(10):
                await session.aadd(user(text)) if by == "task" else session.add(user(text))
            await until(gate.began)
            drained = [asyncio.create_task(asyncio.to_thread(session.drain)) for _ in range(2)]
            drained.append(asyncio.create_task(session.adrain()))
            await turned()
            assert not any(one.done() for one in drained)
            gate.let.set()
            await asyncio.gather(*drained)
            assert session.summary == "in the background"

    run(main())


def test_drain_refuses_to_wait_for_its_own_event_loop() -> None:
    """The task could not go on; for a thread it waits, in a notebook for example."""

    async def main() -> None:
        gate = Gate()
        session = in_background(gate)
        for text in texts(10):
            await session.aadd(user(text))
        await until(gate.began)
        with pytest.raises(ConfigurationError, match="adrain"):
            session.drain()
        gate.let.set()
        await session.adrain()
        gate = Gate()
        session = begun(gate)
        gate.let.set()
        session.drain()
        assert session.summary == "in the background"

    run(main())


def test_a_summary_of_a_closed_event_loop_is_no_longer_written() -> None:
    """Its task ends with it; the next add begins another."""
    asked: list[SummaryRequest] = []

    async def answer(request: SummaryRequest) -> str:
        asked.append(request)
        await asyncio.Event().wait()
        return "never"

    session = in_background(AsyncSummarizer(answer))

    async def add() -> None:
        for text in texts(10):
            await session.aadd(user(text))
        await turned()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(add())
    with pytest.raises(ConfigurationError, match="adrain"):
        session.drain()
    unfinished = asyncio.all_tasks(loop)
    loop.close()
    session.drain()
    assert len(asked) == len(unfinished) == 1
    run(add())
    session.drain()
    assert len(asked) == 2


# Called back


def test_a_hook_of_an_async_operation_may_use_the_session() -> None:
    """It is inside of the operation."""
    seen: list[int] = []

    async def main() -> None:
        def evicted(messages: Any, reason: str) -> None:
            if len(seen) < 3:
                session.add(user("from the hook"))
            seen.append(session.status().version)

        session = Session(100, counter=WORDS, hooks={"on_evict": evicted})
        for text in texts(30):
            await session.aadd(user(text))
        assert session.hook_errors == 0
        assert contents(session).count("from the hook") == 3
        before = session.status().to_dict()
        await session.arefresh()
        assert session.status().to_dict() == before

    run(main())
    assert len(seen) > 3


def test_a_hook_may_run_an_event_loop_of_its_own() -> None:
    """What runs in it is inside of the operation, too."""

    def evicted(messages: Any, reason: str) -> None:
        asyncio.run(session.arecall("w1"))

    session = Session(100, counter=WORDS, hooks={"on_evict": evicted})
    for text in texts(15):
        session.add(user(text))
    assert session.hook_errors == 0


def test_a_hook_does_not_wait_for_the_background() -> None:
    """What writes there may wait for the hook."""
    told: list[str] = []

    def exceeded(total: int, budget: int) -> None:
        try:
            session.drain()
        except ConfigurationError as error:
            told.append(str(error))

    gate = Gate()
    session = begun(gate, hooks={"on_budget_exceeded": exceeded})
    session.extend([user(text) for text in texts(10)])
    gate.let.set()
    session.drain()
    assert told
    assert "adrain" in told[0]


def test_what_writes_in_the_background_does_not_wait_for_itself() -> None:
    """Neither the summarizer nor a hook it leads to; it may read and write."""
    told: list[str] = []

    def summarize(messages: Any) -> str:
        session.drain()
        asyncio.run(session.adrain())
        session.add(user("from the summarizer"))
        told.append(f"{len(session.recall('nothing'))}")
        return "sum"

    session = in_background(summarize, hooks={"on_summarize": lambda *_: session.close()})
    for text in texts(10):
        session.add(user(text))
        session.drain()
    assert told
    assert session.hook_errors == 0
    assert session.summary == "sum"


CALLS_BACK: dict[str, Callable[[Session], Any]] = {
    "add": lambda session: session.add(user("again")),
    "recall": lambda session: session.recall("w1"),
    "refresh": lambda session: session.refresh(),
    "drain": lambda session: session.drain(),
    "another-loop": lambda session: asyncio.run(session.aadd(user("again"))),
}


@pytest.mark.parametrize("seconds", [None, SECONDS])
@pytest.mark.parametrize("back", CALLS_BACK.values(), ids=CALLS_BACK.keys())
def test_a_summarizer_that_calls_its_session_is_refused(
    back: Callable[[Session], Any], seconds: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    """No storm, no endless wait: a failed summary whose reason says what to do."""
    session = Session(
        100,
        counter=WORDS,
        summarizer=lambda messages: back(session),
        must_keep=None,
        summary_timeout_seconds=seconds,
    )
    with caplog.at_level(logging.CRITICAL):
        for text in texts(12):
            session.add(user(text))
    assert session.status().failures == 1
    assert "Session.open" in (session.status().last_failure or "")
    assert contents(session) == texts(12)


@pytest.mark.parametrize("back", ["await", "task", "thread", "drain"])
def test_an_async_summarizer_that_calls_its_session_is_refused(
    back: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also by a task it starts, and by a thread."""

    async def answer(request: SummaryRequest) -> str:
        if back == "await":
            await session.aadd(user("again"))
        elif back == "task":
            await asyncio.create_task(session.aadd(user("again")))
        elif back == "drain":
            await session.adrain()
        else:
            await asyncio.to_thread(session.recall, "w1")
        return "sum"

    session = Session(100, counter=WORDS, summarizer=AsyncSummarizer(answer), must_keep=None)

    async def main() -> None:
        for text in texts(12):
            await session.aadd(user(text))

    with caplog.at_level(logging.CRITICAL):
        run(main())
    assert session.status().failures == 1
    assert "Session.open" in (session.status().last_failure or "")
    assert contents(session) == texts(12)


def test_another_object_on_the_session_may_be_used_by_the_summarizer() -> None:
    """As the error says."""
    found: list[Event] = []

    def summarize(messages: Any) -> str:
        other = Session.open(session.store, session.id, counter=WORDS, summarizer=summarize)
        found.extend(other.history())
        return "sum"

    session = Session(100, counter=WORDS, summarizer=summarize, must_keep=None)
    for text in texts(12):
        session.add(user(text))
    assert found
    assert session.summary == "sum"


# Threads that do not start, processes that fork


def test_an_add_whose_background_has_no_thread_is_stored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next one tries again."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    gate = Gate()
    gate.let.set()
    session = in_background(gate)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(threading.Thread, "start", refuse)
        for text in texts(11):
            session.add(user(text))
        session.drain()
    assert "can't start new thread" in caplog.text
    session.add(user("one more"))
    session.drain()
    assert session.summary == "in the background"


class Failing(MemoryStore):
    """Cannot be read while it is told so."""

    fails = False

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read, or fail."""
        if self.fails:
            raise CorruptSessionError("a row is missing")
        return super().load(request)


def test_a_store_that_fails_beside_the_conversation_stops_nothing() -> None:
    """It is tried again with the next add."""
    store = Failing()
    asked: list[Any] = []

    def summarize(messages: Any) -> str:
        store.fails = not asked
        asked.append(messages)
        return "sum"

    session = in_background(summarize, store=store)
    session.extend([user(text) for text in texts(10)])
    session.drain()
    store.fails = False
    session.add(user("one more"))
    session.drain()
    assert session.summary == "sum"


def test_a_store_that_fails_before_the_background_begins_stops_nothing() -> None:
    """What was added is stored; the next add begins it."""
    store = Failing()

    told: list[str] = []

    def evicted(messages: Any, reason: str) -> None:
        store.fails = reason == "truncation" and reason not in told
        told.append(reason)

    session = in_background(lambda messages: "sum", store=store, hooks={"on_evict": evicted})
    session.extend([user(text) for text in texts(30)])
    assert store.fails
    store.fails = False
    assert contents(session) == texts(30)
    session.add(user("one more"))
    session.drain()
    assert session.summary == "sum"


def in_child(work: Callable[[], bool]) -> bool:
    """Tell what a forked process finds; one that hangs is ended."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    ended = threading.Event()
    answer: list[int] = []

    def wait() -> None:
        answer.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        ended.set()

    in_thread(wait)
    if not ended.wait(SECONDS):
        os.kill(child, 9)
    assert ended.wait(SECONDS)
    return answer == [0]


forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@forking
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_summarizes_although_its_parent_was_at_it() -> None:
    """The thread stayed behind."""
    gate = Gate()
    session = begun(gate)

    def work() -> bool:
        session.drain()
        gate.let.set()
        for text in texts(20):
            session.add(user(text))
        session.drain()
        return session.summary == "in the background"

    assert in_child(work)
    gate.let.set()
    session.drain()


@forking
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_goes_on_although_an_operation_was_underway() -> None:
    """Of another thread, which stayed behind; and inside of a hook that forked."""
    store = Held()
    session = Session(200, counter=WORDS, id="s", store=store)
    session.add(user("one"))
    store.holds = True
    other = in_thread(lambda: session.add(user("two")))
    assert store.asked.wait(SECONDS)
    assert in_child(lambda: session.messages()[0] == user("one") and session.add(user("x")).version > 1)
    store.let.set()
    joined(other)


@forking
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_hook_may_fork() -> None:
    """The operation goes on in both."""
    found: list[bool] = []

    def exceeded(total: int, budget: int) -> None:
        found.append(in_child(lambda: session.status().budget_tokens == 100))

    session = Session(100, counter=WORDS, hooks={"on_budget_exceeded": exceeded})
    for text in texts(11):
        session.add(user(text))
    assert found == [True]
    assert session.hook_errors == 0


# Properties


class Counted(SQLiteStore):
    """Counts what is read."""

    loads = 0

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Count, and read."""
        self.loads += 1
        return super().load(request)


PROPERTIES = [
    "version",
    "summary",
    "anchors",
    "budget_tokens",
    "token_count",
    "token_breakdown",
    "recent_message_count",
    "total_message_count",
    "missing",
]


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_does_not_hold_up_an_event_loop(name: str, tmp_path: Path) -> None:
    """It says what to await; afterwards it answers, and without a loop it reads."""
    with Counted(tmp_path / "s.db") as store:
        Session(200, counter=WORDS, store=store, id="s").add(user("one"))
        expected = getattr(Session.open(store, "s", counter=WORDS), name)

        async def main() -> None:
            session = Session.open(store, "s", counter=WORDS)
            before = store.loads
            with pytest.raises(ConfigurationError, match="arefresh"):
                getattr(session, name)
            assert store.loads == before
            assert (await session.astatus()).version == 2
            assert getattr(session, name) == expected

        run(main())


def test_in_memory_properties_read_under_an_event_loop() -> None:
    """Nobody is held up."""
    store = MemoryStore()
    Session(200, counter=WORDS, store=store, id="s").add(user("one"))

    async def main() -> None:
        assert Session.open(store, "s", counter=WORDS).version == 2

    run(main())


def test_in_a_notebook_sync_calls_go_on(tmp_path: Path) -> None:
    """A loop runs there, and nobody else uses it."""
    with SQLiteStore(tmp_path / "s.db") as store:

        async def main() -> None:
            session = Session(200, counter=WORDS, store=store, id="s")
            session.add(user("one"))
            assert session.token_count == 1
            later = Session.open(store, "s", counter=WORDS)
            assert later.status().version == 2
            assert later.version == 2

        run(main())


def test_without_asyncio_it_is_said_what_to_call() -> None:
    """As in trio: what awaits there has no loop of asyncio."""
    session = Session(200, counter=WORDS)
    with pytest.raises(ConfigurationError, match=r"trio\.to_thread"):
        session.aadd(user("hello")).send(None)
    assert session.add(user("hello")).version
