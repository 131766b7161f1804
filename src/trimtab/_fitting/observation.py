"""What an observer is told: of a fit, and of what a session decides; and a fit that is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

from trimtab._shared import observers
from trimtab._shared.checks import answers_later, name_of
from trimtab._shared.observers import Observer, Watch
from trimtab.errors import BudgetExceededError, ConfigurationError

if TYPE_CHECKING:
    from trimtab._fitting.fitted import Fitted

__all__ = [
    "FIT_SOURCES",
    "SESSION_EVENTS",
    "FitEvent",
    "FitSource",
    "FitWatch",
    "Observer",
    "SessionEvent",
    "SessionEventKind",
    "StoreEvent",
    "TelemetryEvent",
    "observe",
]

FitSource = Literal["fit", "context", "session", "at"]
"""The source of a fit: `fit`, `Context.fit`, the view of a session, or `Fitted.at`; each with its async form.
"""

FIT_SOURCES: tuple[FitSource, ...] = get_args(FitSource)
"""All sources."""

SessionEventKind = Literal[
    "evicted",
    "hidden",
    "exceeded",
    "asked",
    "summary",
    "facts",
    "failed",
    "stale",
    "recalled",
    "undone",
    "redacted",
    "popped",
    "pruned",
    "cleared",
    "pinned",
    "unpinned",
    "budget",
    "switched",
    "anchors",
    "usage",
    "deleted",
]
"""A decision or an action of a session; a closed list, explained at `SessionEvent`."""

SESSION_EVENTS: tuple[SessionEventKind, ...] = get_args(SessionEventKind)
"""All kinds."""

Answer = Literal["summary", "facts", "recall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitEvent:
    """A finished fit, within the budget or not.

    It has the caller's messages, as `Fitted` does: an observer that stores them should tell its users.
    Reading `fitted.report` counts nothing; it takes the time to build the report.

    Args:
        fitted: The result of the fit; if it does not fit, the closest attempt.
        source: Its source: "fit", "context", "session" (a view) or "at" (another budget, tried).
        fits: False if a `BudgetExceededError` is raised.
        session: Id of the session of the view; None for all other sources.
        seconds: Seconds from the call to its end, including waits.
        count_seconds: The part of these in the counter, including waits and, the first time, loading its
            tokenizer. If reading and counting are one pass, reading is included. Counting of a text that a
            strategy cuts is not included, nor the test of whether a new function counts lists.
        hides: True if messages of the session are no longer in its view, summarized or not.

    Example:
        >>> from trimtab import CharCounter, fit, observe
        >>> seen = []
        >>> with observe(seen.append):
        ...     fitted = fit([{"role": "user", "content": "hi"}], 10, counter=CharCounter())
        >>> [(event.source, event.fits, event.fitted is fitted) for event in seen]
        [('fit', True, True)]
    """

    fitted: Fitted[Any]
    source: FitSource
    fits: bool = True
    session: str | None = None
    seconds: float
    count_seconds: float
    hides: bool = False

    @property
    def compacted(self) -> bool:
        """True if not everything is sent; for a session, this includes earlier evictions."""
        return self.hides or self.fitted.report.compacted


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """A decision or an action of a session, in numbers; no text of the conversation.

    Args:
        session: Id of the session.
        kind: What happened. "evicted": messages are no longer recent and wait; "hidden": messages went out of
            the view without a summary; "exceeded": the view exceeded its budget. "asked": a summarizer, fact
            extractor or ranker is called; "summary" and "facts": its answer is in use; "recalled": earlier
            messages are shown again; "failed": it did not answer; "stale": its answer came too late and was
            dropped. "undone", "redacted", "popped", "pruned", "cleared", "pinned", "unpinned",
            "budget", "switched", "anchors", "usage", "deleted": the caller's operation was done.
        of: For "asked", "failed" and "stale": the kind of answer, "summary", "facts" or "recall".
        version: Version of the event in the log, from 1; None if the log has none.
        messages: Number of messages concerned.
        facts: For "facts": the number of facts.
        tokens: For "exceeded" the view, for "budget" and "switched" the new budget, for "usage" the reported
            input, for "summary" its size; None for all other kinds.
        seconds: For "summary": the time of all its calls; None for all other kinds.
        error: For "failed", and for "recalled" if the ranker failed: the reason, as in the log.
    """

    session: str
    kind: SessionEventKind
    of: Answer | None = None
    version: int | None = None
    messages: int = 0
    facts: int = 0
    tokens: int | None = None
    seconds: float | None = None
    error: str | None = None


TelemetryEvent: TypeAlias = FitEvent | SessionEvent
"""The event passed to an observer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEvent:
    """A request of a session to its store, in numbers; no text of the conversation.

    Each is told but those that copy a log, for a fork or a restored snapshot.

    Args:
        session: Id of the session.
        request: What was asked. "open": the first that an object of the session reads; "append", "load" and
            "search": a request of the `Store`; "list": its labels are read from the list of sessions, as its
            log is of an older trimtab; "delete": the session is removed.
        outcome: "done"; "conflict": another writer was faster, and nothing was written; "unavailable": the
            store could not be reached; "failed": for another reason.
        store: Name of the store's class.
        seconds: Seconds until it answered.
        messages: Number of messages that were written; the same message again, after an answer was lost, is
            one more.
        again: True if an operation begins anew with it, after a conflict or while the store could not be
            reached.
    """

    session: str
    request: Literal["open", "append", "load", "search", "list", "delete"]
    outcome: Literal["done", "conflict", "unavailable", "failed"]
    store: str
    seconds: float
    messages: int = 0
    again: bool = False


@overload
def observe(callback: Callable[[TelemetryEvent], object], /) -> Observer: ...
@overload
def observe(callback: Callable[[TelemetryEvent | StoreEvent], object], /, *, stores: bool) -> Observer: ...
def observe(callback: Callable[..., object], /, *, stores: bool = False) -> Observer:
    """Call a function with every fit and every decision of a session.

    This applies to the whole process. The callback is called where the fit is made: in its thread or task,
    with its context variables. A background summary has its own thread or task. The fit waits for the
    callback, and a session is in the middle of an operation, so the callback may read but not change it. It
    may be called from many threads at a time. It may fit, for example by `event.fitted.at(…)`: no callback is
    called for such a fit, which prevents endless recursion. Its exceptions are logged once
    (`trimtab.telemetry`) and stop nothing.

    Several callbacks are called in the order they were added. Without callbacks, a fit does no extra work.

    Args:
        callback: Called with a `FitEvent` or a `SessionEvent`; its return value is ignored.
        stores: Whether it is also called with a `StoreEvent` for each request of a session to its store.

    Returns:
        An `Observer`: `.remove()` or the end of a `with` block stops the calls.

    Raises:
        ConfigurationError: The argument cannot be called, or is async: nothing would await it.

    Example:
        >>> from trimtab import CharCounter, fit, observe
        >>> def watch(event):
        ...     print(type(event).__name__, event.fitted.report.evicted_message_count)
        >>> messages = [{"role": "user", "content": "question"} for _ in range(5)]
        >>> with observe(watch):
        ...     fitted = fit(messages, budget=5, counter=CharCounter())
        FitEvent 3
    """
    if not callable(callback):
        raise ConfigurationError(f"observe takes a function of an event, not {callback!r:.80}")
    if answers_later(callback):
        raise ConfigurationError(
            f"observe takes a synchronous function, and {name_of(callback)} is async: nothing would await"
            " it. Pass a function that puts the event into a queue"
        )
    return observers.add(callback, stores=stores)


class FitWatch(Watch):
    """Measures a fit, and tells who looks on when it ends.

    What was made is put into `fitted` within the `with` block; a `BudgetExceededError` that leaves the block
    brings its attempt.
    """

    __slots__ = ("_session", "_source", "fitted", "hides")

    def __init__(self, source: FitSource, *, session: str | None = None) -> None:
        super().__init__()
        self._source: FitSource = source
        self._session = session
        self.fitted: Any = None
        self.hides = False

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        error = raised[1]
        fitted = error.attempt if isinstance(error, BudgetExceededError) else self.fitted
        if fitted is not None:
            event = FitEvent(
                fitted=fitted,
                source=self._source,
                fits=error is None,
                session=self._session,
                seconds=self.seconds,
                count_seconds=self.count_seconds,
                hides=self.hides,
            )
            observers.tell(event)
