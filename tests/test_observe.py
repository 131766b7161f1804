"""`trimtab.observe`: who looks on sees every fit and every decision of a session, and disturbs neither."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import trimtab
from trimtab import BudgetExceededError, ConfigurationError, Context, Fitted, Session, fit, observe
from trimtab.counting import FixedCounter
from trimtab.errors import SummaryError
from trimtab.summaries import Fact
from trimtab.telemetry import FIT_SOURCES, SESSION_EVENTS, FitEvent, SessionEvent, TelemetryEvent

TEN = FixedCounter(per_message=10)


def talk(count: int) -> list[dict[str, Any]]:
    """Give messages of the user that say their number."""
    return [{"role": "user", "content": f"fact {number}"} for number in range(count)]


@pytest.fixture
def seen() -> Iterator[list[Any]]:
    """Give what an observer is told during a test."""
    told: list[Any] = []
    with observe(told.append):
        yield told


def fits(seen: list[Any]) -> list[FitEvent]:
    """List the fits among what was told."""
    return [event for event in seen if isinstance(event, FitEvent)]


def decisions(seen: list[Any], *kinds: str) -> list[SessionEvent]:
    """List what sessions decided; of some kinds, or all."""
    return [event for event in seen if isinstance(event, SessionEvent) and (not kinds or event.kind in kinds)]


def a_session(**options: Any) -> Session:
    """Make a session with room for ten messages of ten tokens, and nine in it."""
    session = Session(100, counter=TEN, **options)
    session.extend(talk(9))
    return session


# -- fits


def as_message(text: str) -> dict[str, Any]:
    """Read an object that is a text."""
    return {"role": "user", "content": text}


FITTED = fit(talk(9), 50, counter=TEN)
CONTEXT = Context(50, counter=TEN).add("history", talk(9))

FITS: dict[str, tuple[str, Callable[[], Fitted[Any]]]] = {
    "fit": ("fit", lambda: fit(talk(9), 50, counter=TEN)),
    "fit of objects": (
        "fit",
        lambda: fit(["a", "b"], 50, counter=TEN, read=as_message, write=lambda text, _: text),
    ),
    "Context.fit": ("context", CONTEXT.fit),
    "Fitted.at": ("at", lambda: FITTED.at(20)),
    "Session.fit": ("session", lambda: a_session(id="ada").fit()),
    "Session.fit at a version": ("session", lambda: a_session(id="ada").fit(at=3)),
    "Session.fit in a Context": (
        "session",
        lambda: a_session_in_context().fit(),
    ),
}

AWAITED: dict[str, tuple[str, Callable[[], Awaitable[Fitted[Any]]]]] = {
    "afit": ("fit", lambda: trimtab.afit(talk(9), 50, counter=TEN)),
    "Context.afit": ("context", CONTEXT.afit),
    "Fitted.aat": ("at", lambda: FITTED.aat(20)),
    "Session.afit": ("session", lambda: a_session(id="ada").afit()),
}


def a_session_in_context() -> Session:
    """Make a session whose history is a block of a Context."""
    session = Session(context=Context(100, counter=TEN).add("notes", talk(2)), id="ada")
    session.extend(talk(3))
    return session


@pytest.mark.parametrize("name", FITS)
def test_every_fit_is_seen_once(name: str, seen: list[Any]) -> None:
    """With what came of it, and what made it; a view's own Context is no second fit."""
    source, make = FITS[name]
    fitted = make()
    assert [(one.source, one.fits, one.fitted is fitted) for one in fits(seen)] == [(source, True, True)]
    assert fits(seen)[0].session == ("ada" if source == "session" else None)


@pytest.mark.parametrize("name", AWAITED)
def test_every_fit_that_is_awaited_is_seen_once(name: str, seen: list[Any]) -> None:
    """As the others are."""
    source, make = AWAITED[name]

    async def program() -> Fitted[Any]:
        return await make()

    fitted = asyncio.run(program())
    assert [(one.source, one.fits, one.fitted is fitted) for one in fits(seen)] == [(source, True, True)]


def test_the_sources_are_those_listed() -> None:
    """Each in the table above, and none beside them."""
    assert {source for source, _ in (*FITS.values(), *AWAITED.values())} == set(FIT_SOURCES)


def test_a_fit_that_does_not_fit_is_seen_with_its_attempt(seen: list[Any]) -> None:
    """And raised as if nobody looked on."""
    with pytest.raises(BudgetExceededError) as raised:
        fit([{"role": "system", "content": "x"}, *talk(2)], 5, counter=TEN)
    assert [(one.fits, one.fitted is raised.value.attempt) for one in fits(seen)] == [(False, True)]


def test_a_fit_says_whether_anything_is_missing_from_what_is_sent(seen: list[Any]) -> None:
    """Of a session also what left before: its view itself loses nothing."""
    fit(talk(3), 50, counter=TEN, system="Be brief.")
    fit(talk(9), 50, counter=TEN)
    session = a_session()
    session.messages()
    session.extend(talk(9))
    session.messages()
    session.fit(at=5)
    assert [event.compacted for event in fits(seen)] == [False, True, False, True, False]
    assert [event.hides for event in fits(seen)] == [False, False, False, True, False]


def test_a_fit_that_ends_in_another_error_is_none(seen: list[Any]) -> None:
    """There is nothing to show."""
    with pytest.raises(ConfigurationError):
        fit(talk(2), -1, counter=TEN)
    assert seen == []


# -- how long it took


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def read(self) -> float:
        """Say what time it is."""
        return self.seconds


class SlowCounter(trimtab.counting.AdditiveCounter):
    """Ten tokens a message, and half a second."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls = 0

    def count_message(self, message: Any, /) -> int:
        """Take the time it takes."""
        self.clock.seconds += 0.5
        self.calls += 1
        return 10


@pytest.mark.parametrize("awaited", [False, True])
def test_the_time_of_counting_is_measured_apart(awaited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second a message in the counter, two in a callback that does something else."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock.read)
    counter, told = SlowCounter(clock), list[TelemetryEvent]()

    async def count(messages: list[Any]) -> int:
        return sum(counter.count_message(message) for message in messages if message["role"])

    def wait(_: Any) -> None:
        clock.seconds += 2

    asyncio.run(trimtab.afit(talk(1), 30, counter=count))  # asks once what kind of function it is
    counter.calls = 0
    with observe(told.append):
        if awaited:
            asyncio.run(trimtab.afit(talk(9), 30, counter=count))
        else:
            fit(talk(9), 30, counter=counter, on_trim=wait)
    (event,) = fits(told)
    assert counter.calls > 3
    assert event.count_seconds == counter.calls / 2
    assert event.seconds == counter.calls / 2 + (0 if awaited else 2)


def test_a_black_box_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of a whole list, too."""
    clock, calls = Clock(), list[int]()
    monkeypatch.setattr(time, "perf_counter", clock.read)

    def count(messages: list[Any]) -> int:
        clock.seconds += 0.5
        calls.append(len(messages))
        return sum(10 for message in messages if message["role"])

    told: list[TelemetryEvent] = []
    with observe(told.append):
        fit(talk(9), 30, counter=count)
        (event,) = fits(told)
    assert len(calls) > 2
    assert 0 < event.count_seconds <= len(calls) / 2


LOADS = """
import sys, time
clock = [0.0]
time.perf_counter = lambda: clock[0]
class Slow:
    def find_spec(self, name, path=None, target=None):
        clock[0] += 2 * (name == "toktok")
sys.meta_path.insert(0, Slow())
from trimtab import fit, observe
told = []
with observe(told.append):
    for _ in range(2):
        fit([{"role": "user", "content": "hi"}], 50, model="gpt-4o")
print([(event.seconds, event.count_seconds) for event in told])
"""


def test_loading_a_tokenizer_is_a_part_of_counting() -> None:
    """Two seconds in a process that has not counted yet, where the package is looked for; then none."""
    pytest.importorskip("toktok")
    run = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=True)
    assert run.stdout == "[(2.0, 2.0), (0.0, 0.0)]\n"


def test_a_view_within_a_context_measures_what_all_its_blocks_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second a message, whichever block it is of; nothing else takes time."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock.read)
    counter = SlowCounter(clock)
    session = Session(context=Context(100, counter=counter).add("notes", talk(2)), id="ada")
    session.extend(talk(3))
    counter.calls, told = 0, list[TelemetryEvent]()
    with observe(told.append):
        session.fit()
    (event,) = fits(told)
    assert counter.calls >= 2
    assert event.count_seconds == event.seconds == counter.calls / 2


# -- callbacks


def test_several_callbacks_are_called_in_order_until_each_is_removed() -> None:
    """One that was given twice is two; to remove one again is no error."""
    told: list[str] = []
    first, second = observe(lambda _: told.append("first")), observe(lambda _: told.append("second"))
    fit(talk(1), 50, counter=TEN)
    first.remove()
    first.remove()
    fit(talk(1), 50, counter=TEN)
    second.remove()
    fit(talk(1), 50, counter=TEN)
    assert told == ["first", "second", "second"]
    assert repr(first).endswith(", removed>")


def test_nobody_is_told_of_what_a_callback_does() -> None:
    """Else one that tries another budget would be called for that fit, and so on; two of them, in turns."""
    told: list[tuple[str, int]] = []

    def ask(name: str) -> Callable[[TelemetryEvent], None]:
        def note(event: TelemetryEvent) -> None:
            assert isinstance(event, FitEvent)
            assert event.source == "fit"
            told.append((name, len(event.fitted.at(90).messages)))

        return note

    with observe(ask("a")), observe(ask("b")):
        fit(talk(9), 50, counter=TEN)
        assert told == [("a", 9), ("b", 9)]
        fit(talk(9), 50, counter=TEN)
    assert len(told) == 4


def test_a_task_that_a_callback_begins_is_seen() -> None:
    """It works when the callback has ended."""
    told: list[TelemetryEvent] = []
    tasks: list[asyncio.Task[Any]] = []

    def note(event: TelemetryEvent) -> None:
        told.append(event)
        if len(told) == 1:
            tasks.append(asyncio.ensure_future(trimtab.afit(talk(9), 20, counter=TEN)))

    async def main() -> None:
        with observe(note):
            fit(talk(9), 50, counter=TEN)
            await tasks[0]

    asyncio.run(main())
    assert [event.fitted.report.tokens_after for event in fits(told)] == [50, 20]


def test_a_callback_that_raises_breaks_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Its words, which may be those of a message, are in the traceback alone, which is at DEBUG."""

    def fail(event: object) -> None:
        raise ValueError("secret")

    told: list[object] = []
    caplog.set_level(logging.DEBUG, logger="trimtab.telemetry")
    with observe(fail), observe(told.append):
        fitted = [fit(talk(9), 50, counter=TEN) for _ in range(3)]
    assert [len(one.messages) for one in fitted] == [5, 5, 5]
    assert len(told) == 3
    warning, debug = caplog.records
    assert (warning.levelname, warning.name) == ("WARNING", "trimtab.telemetry")
    assert "ValueError" in warning.getMessage()
    assert "secret" not in warning.getMessage()
    assert warning.exc_info is None
    assert debug.levelname == "DEBUG"
    assert debug.exc_info is not None
    assert debug.exc_info[0] is ValueError


def test_an_interrupt_in_a_callback_stops_the_program() -> None:
    """It is no failure of the observer's."""

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with observe(interrupt), pytest.raises(KeyboardInterrupt):
        fit(talk(1), 50, counter=TEN)


async def _async(event: object) -> None:
    """Take an event, later."""


class _AsyncObject:
    async def __call__(self, event: object) -> None:
        """Take an event, later."""


@pytest.mark.parametrize("wrong", [_async, _AsyncObject(), None, "print"])
def test_what_cannot_be_called_at_once_is_refused(wrong: Any) -> None:
    """Nobody would await it."""
    with pytest.raises(ConfigurationError, match="observe"):
        observe(wrong)


def test_threads_come_and_go_while_others_fit() -> None:
    """Every fit is seen by who was there all the time; none is lost and none is doubled."""
    told: list[object] = []

    def work() -> None:
        for _ in range(50):
            with observe(lambda _: None):
                fit(talk(2), 50, counter=TEN)

    with observe(told.append):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(told) == 400
    fit(talk(1), 50, counter=TEN)
    assert len(told) == 400


def test_a_callback_sees_the_context_of_the_task_that_fits() -> None:
    """So that a span, or the id of a request, is that of the task."""
    request: ContextVar[int] = ContextVar("request")
    told: set[tuple[int, int]] = set()

    async def serve(number: int) -> None:
        request.set(number)
        await asyncio.sleep(0)
        await trimtab.afit(talk(number), 500, counter=TEN)

    async def program() -> None:
        await asyncio.gather(*map(serve, range(1, 9)))

    def look(event: TelemetryEvent) -> None:
        assert isinstance(event, FitEvent)
        told.add((request.get(), len(event.fitted.messages)))

    with observe(look):
        asyncio.run(program())
    assert told == {(number, number) for number in range(1, 9)}


# -- what a session decides


def test_an_eviction_and_its_summary_are_seen_in_their_order(seen: list[Any]) -> None:
    """With how many messages each is about, where the log says so, and what it cost."""
    session = Session(100, counter=TEN, summarizer=lambda messages: "short", id="ada")
    session.extend(talk(10))
    assert decisions(seen) == []
    session.add(talk(1)[0])
    kinds = [event.kind for event in decisions(seen)]
    assert kinds == ["evicted", "exceeded", "asked", "summary"]
    evicted, exceeded, asked, summary = decisions(seen)
    logged = {event.version: event for event in session.history(kinds=None)}
    covers = logged[summary.version or 0].data["covers"]
    assert logged[evicted.version or 0].kind == "evicted"
    assert logged[summary.version or 0].kind == "summary"
    assert summary.messages == asked.messages == sum(map(len, covers))
    assert exceeded.tokens == 110
    assert summary.tokens == 10
    assert summary.seconds is not None
    assert {event.session for event in decisions(seen)} == {"ada"}


def test_a_summarizer_that_fails_is_seen(seen: list[Any]) -> None:
    """And what finds no room because of it."""

    def fail(messages: object) -> str:
        raise RuntimeError("secret")

    session = Session(100, counter=TEN, summarizer=fail)
    session.extend(talk(30))
    failed = decisions(seen, "failed")
    assert {(one.of, one.error) for one in failed} == {("summary", session.status().last_failure)}
    assert "RuntimeError" in str(failed[0].error)
    hidden = sum(one.messages for one in decisions(seen, "hidden"))
    assert hidden == session.status().hidden_messages > 0


def test_facts_are_seen(seen: list[Any]) -> None:
    """The question, and how many were found."""
    session = Session(100, counter=TEN, fact_extractor=lambda messages: [Fact(text="Ada likes tea.")])
    session.extend(talk(40))
    assert {one.of for one in decisions(seen, "asked")} == {"facts"}
    assert [one.facts for one in decisions(seen, "facts")].count(1) == 1
    status = session.status()
    assert sum(one.facts for one in decisions(seen, "facts")) == status.facts + status.hidden_facts


def test_a_fact_extractor_that_fails_is_seen(seen: list[Any]) -> None:
    """With what was to be read."""

    def fail(messages: object) -> list[Fact]:
        raise RuntimeError

    Session(100, counter=TEN, fact_extractor=fail).extend(talk(40))
    assert {(one.of, one.messages > 0) for one in decisions(seen, "failed")} == {("facts", True)}


def test_orders_are_seen(seen: list[Any]) -> None:
    """Each with the version of its event in the log, but for the last: then there is no log."""
    session = Session(120, counter=TEN)
    first = session.extend(talk(12))[0]
    session.pin(first)
    session.unpin(first)
    session.set_anchors([{"role": "system", "content": "anchor"}])
    session.set_budget(100)
    session.undo()
    session.pop()
    session.redact(first)
    session.messages()
    session.record_usage(55)
    session.clear()
    orders = [event for event in decisions(seen) if event.kind not in ("evicted", "exceeded", "hidden")]
    kinds = ["pinned", "unpinned", "anchors", "budget", "undone", "popped", "redacted", "usage", "cleared"]
    assert [event.kind for event in orders] == kinds
    logged = {event.version: event.kind for event in session.history(kinds=None)}
    assert [logged[event.version or 0] for event in orders] == kinds
    session.delete()
    assert [(event.kind, event.version) for event in decisions(seen)][-1] == ("deleted", None)


def test_what_is_recalled_is_seen(seen: list[Any]) -> None:
    """How many messages are shown again."""
    session = Session(100, counter=TEN, recall_ratio=0.5)
    session.add({"role": "user", "content": "My cat is called Minerva."})
    session.extend(talk(30))
    session.add({"role": "user", "content": "What is my cat called, Minerva?"})
    recalled = decisions(seen, "recalled")[-1]
    assert recalled.messages == session.status().recalled_messages > 0
    assert recalled.error is None


def test_a_ranker_is_seen(seen: list[Any]) -> None:
    """When it is asked, and when it fails."""

    def fail(query: str, texts: Sequence[Any]) -> list[float]:
        raise RuntimeError

    session = Session(100, counter=TEN, recall_ratio=0.5, ranker=fail)
    session.add({"role": "user", "content": "My cat is called Minerva."})
    session.extend(talk(30))
    session.add({"role": "user", "content": "What is my cat called, Minerva?"})
    assert {one.of for one in decisions(seen, "asked", "failed")} == {"recall"}
    assert decisions(seen, "recalled")[-1].error == decisions(seen, "failed")[-1].error is not None


def test_a_summary_that_comes_too_late_is_seen(seen: list[Any]) -> None:
    """The session was cleared while it was written."""
    asked, cleared = threading.Event(), threading.Event()

    def summarize(messages: object) -> str:
        asked.set()
        cleared.wait()
        return "late"

    session = Session(100, counter=TEN, summarizer=summarize, background=True)
    session.extend(talk(12))
    asked.wait()
    session.clear()
    cleared.set()
    session.drain()
    assert [(one.of, one.kind) for one in decisions(seen, "stale", "summary")] == [("summary", "stale")]


def test_an_observer_may_read_the_session_it_is_told_of() -> None:
    """It is called by who holds the session's turn."""
    numbers: list[int] = []
    session = Session(100, counter=TEN)
    with observe(lambda event: numbers.append(session.status().view_tokens)):
        session.extend(talk(12))
    assert numbers
    assert max(numbers) <= 100


def test_the_kinds_are_those_listed() -> None:
    """A kind that is new is explained where people look."""
    doc = SessionEvent.__doc__ or ""
    assert [kind for kind in SESSION_EVENTS if f'"{kind}"' not in doc] == []


# -- at no cost


PACKAGE = str(Path(trimtab.__file__).parent)
THEIRS = ("observers.py", "observation.py", "telemetry.py")
"""Where what serves observers stands."""


def calls_of(work: Callable[[], object]) -> list[tuple[str, str]]:
    """List the functions of trimtab that are entered, as (file, name)."""
    entered: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return entered


WORK: dict[str, Callable[[], object]] = {
    "fit": lambda: fit(talk(50), 100, counter=TEN),
    "at": lambda: FITTED.at(20),
    "context": lambda: Context(100, counter=TEN).add("history", talk(50)).fit(),
    "session": lambda: a_session().messages(),
}


@pytest.mark.parametrize("name", WORK)
def test_without_observers_nothing_of_theirs_is_called(name: str) -> None:
    """No function of their modules is entered; and when they left there are as many calls as before."""
    work = WORK[name]
    work()  # what is imported or remembered the first time
    before = calls_of(work)
    with observe(lambda _: None):
        observed = calls_of(work)
    assert {file for file, _ in observed}.intersection(THEIRS), "the test sees nothing"
    assert [call for call in before if call[0] in THEIRS] == []
    assert calls_of(work) == before


# -- logs

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\nERROR root: all is lost\r<script>alert(1)</script>"


def test_what_a_summarizer_says_cannot_steer_a_terminal_or_forge_a_line(
    caplog: pytest.LogCaptureFixture, seen: list[Any]
) -> None:
    """Its own error is passed on, as one printable line that is not long; and so it is to observers."""

    def fail(messages: object) -> str:
        raise SummaryError(HOSTILE + "x" * 5_000_000)

    session = Session(100, counter=TEN, summarizer=fail)
    session.extend(talk(12))
    lines = [record.getMessage() for record in caplog.records]
    assert any("owned" in line for line in lines)
    errors = [event.error or "" for event in decisions(seen, "failed")]
    assert errors
    for said in (*lines, *errors):
        assert said.isprintable()
        assert len(said) < 1_200


def test_a_summarizer_that_fails_leaves_its_traceback_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """The line at WARNING names the class alone."""

    def fail(messages: object) -> str:
        raise RuntimeError("secret")

    caplog.set_level(logging.DEBUG, logger="trimtab")
    Session(100, counter=TEN, summarizer=fail).extend(talk(12))
    told = {(record.name, record.levelname) for record in caplog.records}
    assert told == {("trimtab.summaries", "DEBUG"), ("trimtab.session", "WARNING")}
    for record in caplog.records:
        assert "secret" not in record.getMessage()
        if record.levelname == "DEBUG":
            assert record.exc_info is not None
            assert str(record.exc_info[1]) == "secret"


def test_a_fact_extractor_that_fails_leaves_its_traceback_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """As a summarizer does."""

    def fail(messages: object) -> list[Fact]:
        raise RuntimeError("secret")

    caplog.set_level(logging.DEBUG, logger="trimtab")
    Session(100, counter=TEN, fact_extractor=fail).extend(talk(40))
    assert {record.name for record in caplog.records if record.levelname == "DEBUG"} == {"trimtab.summaries"}


def test_the_loggers_are_those_of_the_documents() -> None:
    """A logger nobody knows of cannot be set."""
    sources = [path.read_text(encoding="utf-8") for path in Path(PACKAGE).rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"\"(trimtab\.[a-z]+)\"", text)}
    page = (Path(__file__).parents[1] / "docs" / "guides" / "telemetry.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(trimtab\.[a-z]+)` \|", page, re.MULTILINE))
    loggers = {name for name in named if any(f'getLogger("{name}")' in text for text in sources)}
    assert loggers | {"trimtab.telemetry"} == documented
