"""What a session needs from outside, and how to get it, sync or async.

The operations of a session are generators (`trimtab._shared.steps`). They yield what they need: a call of the
store, an answer of the summarizer.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from trimtab._fitting.layout import Policy
from trimtab._shared.steps import Pause
from trimtab.context import afit_policy, fit_policy
from trimtab.errors import ConfigurationError, RankerError, SummaryError
from trimtab.relevance.ranker import RankCall
from trimtab.session.schema import check_events
from trimtab.stores import AppendRequest, Event, LoadRequest, SearchRequest, Sessions, Store
from trimtab.stores.base import knows_labels
from trimtab.strategies.fact_extractor import (
    Fact,
    FactExtractor,
    FactRequest,
    afacts_by,
    extractor_word,
    facts_by,
)
from trimtab.strategies.summarizer import Summarizer, SummaryRequest, asummary_by, summary_by, word_of

T = TypeVar("T")

MAX_ASKED = 32
"""Summarizers that are not async and one event loop waits for at once, each in a thread; others queue."""


Answer = str | list[Fact] | list[float]


class Question(NamedTuple):
    """A question to a summarizer, a fact extractor or a ranker."""

    word: str
    """Who is asked, in errors."""
    is_async: bool
    """Whether the answer has to be awaited."""
    now: Callable[[], Answer]
    """Asks, if the answer is not awaited."""
    later: Callable[[], Awaitable[Answer]]
    timeout_seconds: float | None
    refusal: Callable[[], ConfigurationError] | None = None
    """Of a ranker: makes the error for one that is async where nobody awaits it."""

    def no_answer(self, why: str) -> SummaryError | RankerError:
        """Make the error for a missing answer."""
        return SummaryError(why) if self.refusal is None else RankerError(why)


def ask_summary(summarizer: Summarizer, request: SummaryRequest, timeout_seconds: float | None) -> Question:
    """Make a question to a summarizer."""
    return Question(
        word_of(summarizer),
        is_async(summarizer, "summarize"),
        partial(summary_by, summarizer, request),
        partial(asummary_by, summarizer, request),
        timeout_seconds,
    )


def ask_facts(extractor: FactExtractor, request: FactRequest, timeout_seconds: float | None) -> Question:
    """Make a question to a fact extractor."""
    return Question(
        extractor_word(extractor),
        is_async(extractor, "extract"),
        partial(facts_by, extractor, request),
        partial(afacts_by, extractor, request),
        timeout_seconds,
    )


def ask_scores(call: RankCall, timeout_seconds: float | None) -> Question:
    """Make a question to a ranker."""

    @contextmanager
    def as_ranker_error() -> Generator[None]:
        """Name an exception by its class: its text may quote a message, and this goes into the log."""
        try:
            yield
        except ConfigurationError as error:
            raise RankerError(str(error)) from error  # it says what is wrong with the answer
        except Exception as error:
            raise RankerError(f"{call.word} failed with {type(error).__name__}") from error

    def now() -> list[float]:
        with as_ranker_error():
            return call.now()

    async def later() -> list[float]:
        with as_ranker_error():
            return await call.later()

    return Question(call.word, call.is_async, now, later, timeout_seconds, call.refusal)


class Delete(NamedTuple):
    """The order to remove a session, and which one of its name; None: whichever is there."""

    session: str
    incarnation: str | None


class FitContext(NamedTuple):
    """A request to be fitted, whose blocks may ask a model."""

    policy: Policy


class AskLabels(NamedTuple):
    """A question to the store: which labels it knows a session by; none where it knows no labels."""

    session: str

    def labels_in(self, found: Sessions) -> dict[str, Any]:
        """Read them from a list that begins with the session, if it is there."""
        if not found or found[0] != self.session:
            return {}
        labels = found[0].labels
        return {"owner": labels.owner, "metadata": dict(labels.metadata), "ttl": labels.ttl}


Effect = FitContext | LoadRequest | AppendRequest | SearchRequest | Question | Delete | AskLabels

Steps = Generator[Effect | Pause, Any, T]
"""An algorithm that yields its needs and returns a result; other tasks run while it pauses."""


Asking = Callable[[], AbstractContextManager[None]]
"""A context manager around each question to a summarizer."""


def perform(effect: Effect, store: Store, incarnation: str | None, asking: Asking, /) -> Any:
    """Get what an algorithm needs.

    `incarnation` says which session of its name every request means, None whichever is there; `asking`
    surrounds each question to the summarizer.
    """
    if isinstance(effect, LoadRequest):
        return _sound(store.load(replace(effect, incarnation=incarnation)), effect)
    if isinstance(effect, AppendRequest):
        return store.append(replace(effect, incarnation=incarnation))
    if isinstance(effect, SearchRequest):
        return _sound(store.search(replace(effect, incarnation=incarnation)), effect)
    if isinstance(effect, Delete):
        return store.delete(effect.session, **_which(effect))
    if isinstance(effect, AskLabels):
        return effect.labels_in(store.sessions(prefix=effect.session, limit=1)) if knows_labels(store) else {}
    if isinstance(effect, Question) and effect.is_async and effect.refusal is not None:
        raise effect.refusal()
    with asking():
        return fit_policy(effect.policy) if isinstance(effect, FitContext) else ask(effect)


async def aperform(effect: Effect, store: Store, incarnation: str | None, asking: Asking, /) -> Any:
    """Await what an algorithm needs; see `perform`."""
    if isinstance(effect, LoadRequest):
        return await _asound(await store.aload(replace(effect, incarnation=incarnation)), effect)
    if isinstance(effect, AppendRequest):
        return await store.aappend(replace(effect, incarnation=incarnation))
    if isinstance(effect, SearchRequest):
        return _sound(await store.asearch(replace(effect, incarnation=incarnation)), effect)
    if isinstance(effect, Delete):
        return await store.adelete(effect.session, **_which(effect))
    if isinstance(effect, AskLabels):
        known = knows_labels(store)
        return effect.labels_in(await store.asessions(prefix=effect.session, limit=1)) if known else {}
    with asking():
        return await afit_policy(effect.policy) if isinstance(effect, FitContext) else await aask(effect)


def _sound(events: list[Event], asked: LoadRequest | SearchRequest) -> list[Event]:
    """Return what was read, if a session can have written it."""
    check_events(events, asked.session)
    return events


async def _asound(events: list[Event], asked: LoadRequest) -> list[Event]:
    """Return what was read, as `_sound` does, and let others have their turn between the parts of a page."""
    for at in range(0, len(events), _TURN):
        if at:
            await asyncio.sleep(0)
        check_events(events[at : at + _TURN], asked.session)
    return events


_TURN = 128
"""Number of events to check before other tasks of the event loop run."""


def _which(effect: Delete) -> dict[str, str]:
    """Name the session that is meant; a store that knows no incarnations is not asked for one."""
    return {} if effect.incarnation is None else {"incarnation": effect.incarnation}


def ask(question: Question, /) -> Answer:
    """Ask a summarizer, a fact extractor or a ranker, within its time limit.

    Raises:
        SummaryError: It failed, answered no text, or was too slow; then it goes on by itself.
        RankerError: The same of a ranker.
    """
    seconds = question.timeout_seconds
    if seconds is None:
        return _answer_of(question)
    future = _answer_in_thread(question)
    try:
        return future.result(seconds)
    except TimeoutError:
        raise _too_slow(question) from None


def _answer_in_thread(question: Question) -> Future[Answer]:
    future: Future[Answer] = Future()
    future.set_running_or_notify_cancel()  # who gives up waiting does not take the answer's place away

    def work() -> None:
        try:
            answer = _answer_of(question)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(answer)

    # not of a pool: what hangs must not keep the process from ending
    inside = copy_context().run  # the thread is the summarizer's, too
    threading.Thread(target=inside, args=(work,), name="trimtab-summary", daemon=True).start()
    return future


def _answer_of(question: Question) -> Answer:
    try:
        return question.now()
    except ConfigurationError as error:
        # Only its answer told that it is async, and the message is stored by now.
        raise question.no_answer(
            f"{question.word} is async, and a synchronous call cannot wait for it: await aadd(...) instead"
            " of calling add(...)",
        ) from error


def ask_anyhow(question: Question, /) -> Answer:
    """Ask a summarizer in a thread that has no event loop; it may still be async."""
    return asyncio.run(aask(question)) if question.is_async else ask(question)


async def aask(question: Question, /) -> Answer:
    """Ask a summarizer, a fact extractor or a ranker and await it, within its time limit.

    One that is not async runs in a thread of its own, so that no other task waits for it, and no
    store either, whose calls run in the threads of the event loop. `MAX_ASKED` of an event loop at once.

    Raises:
        SummaryError: It failed, answered no text, or was too slow.
        RankerError: The same of a ranker.
    """
    seconds = question.timeout_seconds
    if not question.is_async:
        slots = _slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MAX_ASKED))
        async with slots:
            try:
                async with asyncio.timeout(seconds):
                    return await asyncio.wrap_future(_answer_in_thread(question))
            except TimeoutError:
                raise _too_slow(question) from None
    try:
        async with asyncio.timeout(seconds):
            return await question.later()
    except TimeoutError:
        raise _too_slow(question) from None


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
"""Those of each event loop."""


def is_async(asked: Any, method: Literal["summarize", "extract"], /) -> bool:
    """Tell whether the answer of a summarizer or fact extractor has to be awaited."""
    known = getattr(asked, "is_async", None)
    return inspect.iscoroutinefunction(getattr(asked, method)) if known is None else known


def _too_slow(question: Question) -> SummaryError | RankerError:
    return question.no_answer(f"{question.word} did not answer within {question.timeout_seconds:g} seconds")
