"""What an observer is told: of a fit, and of what a session decides; and a fit that is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

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
    "TelemetryEvent",
    "observe",
]

FitSource = Literal["fit", "context", "session", "at"]
"""What made a fit: `fit`, `Context.fit`, the view of a session, or `Fitted.at`; each with its async twin."""

FIT_SOURCES: tuple[FitSource, ...] = get_args(FitSource)
"""Every source there is."""

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
    "cleared",
    "pinned",
    "unpinned",
    "budget",
    "anchors",
    "usage",
    "deleted",
]
"""What a session decided or did; a closed list, explained at `SessionEvent`."""

SESSION_EVENTS: tuple[SessionEventKind, ...] = get_args(SessionEventKind)
"""Every kind there is."""

Answer = Literal["summary", "facts", "recall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitEvent:
    """A fit that came to its end, within the budget or not.

    It holds the caller's messages, as `Fitted` does: an observer that writes them down says so to its users.
    Reading `fitted.report` counts nothing; it takes the time to make it.

    Args:
        fitted: What the fit gave; of one that does not fit the nearest attempt.
        source: What made it: "fit", "context", "session" (a view) or "at" (another budget, tried).
        fits: False where a `BudgetExceededError` is raised.
        session: Id of the session whose view it is; None for all else.
        seconds: From the call to its end, with what was waited for.
        count_seconds: Of these, in the counter, with what it waited for; the first time also the loading of
            its tokenizer. Where reading and counting are one pass, reading is in it. What a strategy counts
            of a text that it cuts is not, nor the question by which a function that is new is found to count
            lists.
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
        """True if what is sent is not all there was; of a session also what went earlier."""
        return self.hides or self.fitted.report.compacted


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """Something a session decided or did, in numbers; no text of the conversation.

    Args:
        session: Id of the session.
        kind: What happened. "evicted": messages are no longer recent and wait; "hidden": messages went out of
            the view, and nothing stands for them; "exceeded": the view passed its budget. "asked": a
            summarizer, fact extractor or ranker is asked; "summary" and "facts": what it said is in force;
            "recalled": what was said earlier is shown again; "failed": it did not answer; "stale": its answer
            came too late and was dropped. "undone", "redacted", "popped", "cleared", "pinned", "unpinned",
            "budget", "anchors", "usage", "deleted": what the caller ordered was done.
        of: Of "asked", "failed" and "stale": the answer that is meant, "summary", "facts" or "recall".
        version: Of the event in the log that says so, from 1; None where the log has none.
        messages: How many messages it is about.
        facts: Of "facts": how many were found.
        tokens: Of "exceeded" the view, of "budget" the new one, of "usage" what the provider reported for
            the input, of "summary" its size; None for all else.
        seconds: Of "summary": how long it took, all questions together; None for all else.
        error: Of "failed", and of "recalled" where the ranker failed: why, in the words of the log.
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
"""What an observer is called with."""


def observe(callback: Callable[[TelemetryEvent], object], /) -> Observer:
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
            f"observe takes a function that is called at once, and {name_of(callback)} is async: nobody"
            " would await it. Pass a function that puts the event into a queue"
        )
    return observers.add(callback)


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
