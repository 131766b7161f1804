"""What a session needs from outside, and how it is got, at once or awaited.

The operations of a session are generators (`trimtab._shared.steps`). They yield what they need: a call of the
store, an answer of the summarizer.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from trimtab.context import Context
from trimtab.errors import ConfigurationError, SummaryError
from trimtab.stores import AppendRequest, LoadRequest, SearchRequest, Store
from trimtab.strategies.summarizer import Summarizer, SummaryRequest, asummary_by, summary_by, word_of

T = TypeVar("T")

MAX_ASKED = 32
"""Summarizers that are not async and one event loop waits for at once, each in a thread; others queue."""


class AskSummary(NamedTuple):
    """A question to a summarizer."""

    summarizer: Summarizer
    request: SummaryRequest
    timeout_seconds: float | None


class Delete(NamedTuple):
    """The order to remove a session, and which one of its name; None: whichever is there."""

    session: str
    incarnation: str | None


class FitContext(NamedTuple):
    """A request to be fitted, whose blocks may ask a model."""

    context: Context


Effect = FitContext | LoadRequest | AppendRequest | SearchRequest | AskSummary | Delete

Steps = Generator[Effect, Any, T]
"""An algorithm on its way to a result."""


Asking = Callable[[], AbstractContextManager[None]]
"""What surrounds a question to a summarizer."""


def perform(effect: Effect, store: Store, incarnation: str | None, asking: Asking, /) -> Any:
    """Get what an algorithm needs.

    `incarnation` says which session of its name every request means, None whichever is there; `asking`
    surrounds each question to the summarizer.
    """
    if isinstance(effect, LoadRequest):
        return store.load(replace(effect, incarnation=incarnation))
    if isinstance(effect, AppendRequest):
        return store.append(replace(effect, incarnation=incarnation))
    if isinstance(effect, SearchRequest):
        return store.search(replace(effect, incarnation=incarnation))
    if isinstance(effect, Delete):
        return store.delete(effect.session, **_which(effect))
    with asking():
        return effect.context.fit() if isinstance(effect, FitContext) else ask(effect)


async def aperform(effect: Effect, store: Store, incarnation: str | None, asking: Asking, /) -> Any:
    """Await what an algorithm needs; see `perform`."""
    if isinstance(effect, LoadRequest):
        return await store.aload(replace(effect, incarnation=incarnation))
    if isinstance(effect, AppendRequest):
        return await store.aappend(replace(effect, incarnation=incarnation))
    if isinstance(effect, SearchRequest):
        return await store.asearch(replace(effect, incarnation=incarnation))
    if isinstance(effect, Delete):
        return await store.adelete(effect.session, **_which(effect))
    with asking():
        return await effect.context.afit() if isinstance(effect, FitContext) else await aask(effect)


def _which(effect: Delete) -> dict[str, str]:
    """Name the session that is meant; a store that knows no incarnations is not asked for one."""
    return {} if effect.incarnation is None else {"incarnation": effect.incarnation}


def ask(question: AskSummary, /) -> str:
    """Ask a summarizer, no longer than its time.

    Raises:
        SummaryError: It failed, answered no text, or was too slow; then it is left to itself.
    """
    seconds = question.timeout_seconds
    if seconds is None:
        return _answer_of(question)
    future = _answer_in_thread(question)
    try:
        return future.result(seconds)
    except TimeoutError:
        raise _too_slow(question) from None


def _answer_in_thread(question: AskSummary) -> Future[str]:
    future: Future[str] = Future()
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


def _answer_of(question: AskSummary) -> str:
    try:
        return summary_by(question.summarizer, question.request)
    except ConfigurationError as error:
        # Only its answer told that it is async, and the message is stored by now.
        raise SummaryError(
            f"{word_of(question.summarizer)} is async, and a session that is not awaited cannot wait for it:"
            " await aadd(...) instead of calling add(...)"
        ) from error


def ask_anyhow(question: AskSummary, /) -> str:
    """Ask a summarizer in a thread that has no event loop; it may be async all the same."""
    return asyncio.run(aask(question)) if is_async(question.summarizer) else ask(question)


async def aask(question: AskSummary, /) -> str:
    """Ask a summarizer and await it, no longer than its time.

    A summarizer that is not async runs in a thread of its own, so that no other task waits for it, and no
    store either, whose calls run in the threads of the event loop. `MAX_ASKED` of an event loop at once.

    Raises:
        SummaryError: It failed, answered no text, or was too slow.
    """
    seconds = question.timeout_seconds
    if not is_async(question.summarizer):
        slots = _slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MAX_ASKED))
        async with slots:
            try:
                async with asyncio.timeout(seconds):
                    return await asyncio.wrap_future(_answer_in_thread(question))
            except TimeoutError:
                raise _too_slow(question) from None
    try:
        async with asyncio.timeout(seconds):
            return await asummary_by(question.summarizer, question.request)
    except TimeoutError:
        raise _too_slow(question) from None


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
"""Those of each event loop."""


def is_async(summarizer: Any, /) -> bool:
    """Tell whether a summarizer's answer has to be awaited."""
    known = getattr(summarizer, "is_async", None)
    return inspect.iscoroutinefunction(summarizer.summarize) if known is None else known


def _too_slow(question: AskSummary) -> SummaryError:
    return SummaryError(
        f"{word_of(question.summarizer)} did not answer within {question.timeout_seconds:g} seconds"
    )
