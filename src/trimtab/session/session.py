"""`Session`: a conversation that goes on for months, kept in a log and always shown so that it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimtab._fitting.callbacks import OnTrim
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.counting import CounterLike
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, SystemLike, ToolSchema
from trimtab.session.add import add_messages
from trimtab.session.change import (
    begin_anew,
    calibrate,
    change_budget,
    delete_session,
    replace_anchors,
    set_pin,
)
from trimtab.session.copies import Copies
from trimtab.session.core import Core, new_event_id
from trimtab.session.effects import Steps, is_async
from trimtab.session.options import UNSET, HooksLike, SummaryMode, Unset, refuse_set
from trimtab.session.summarize import CATCH_UP, summarize_waiting
from trimtab.session.undo import redact_messages, undo_decision
from trimtab.stores import Event, Retry, Store
from trimtab.stores.rows import check_session_name
from trimtab.strategies.summarizer import SummarizerLike

__all__ = ["Session"]


class Session(Copies):
    """A conversation in an append-only log, and a view of it that always fits.

    Everything that is added is kept. What a model is shown is a view: system text, anchors, a running
    summary, and the newest messages that fit. When the budget is passed the oldest messages leave the
    recent ones and wait; when enough of them wait a summarizer writes a summary in their place.

    Every method that reads or writes has a form for asyncio, prefixed `a`: `await session.aadd(...)`.
    Properties have none: in asyncio await `arefresh()`, or any other of these, before the first of them.

    One object may be used by several threads and event loops: its operations run one after the other. Hooks
    may call it; its summarizer may not, unless it works in the background.

    Raises:
        ConfigurationError: An option is out of range, or two contradict each other.
        BudgetExceededError: System text, tools and anchors alone pass the budget.

    Example:
        >>> from trimtab.counting import FixedCounter
        >>> session = Session(budget=100, system="Be brief.", counter=FixedCounter(per_message=20))
        >>> for n in range(9):
        ...     event = session.add({"role": "user", "content": f"question {n}"})
        >>> [message["content"] for message in session.messages()]
        ['Be brief.', 'question 5', 'question 6', 'question 7', 'question 8']
        >>> len(list(session.history()))
        9
    """

    # SPEC E2 fixes the options.
    def __init__(
        self,
        budget: Budget | float | None = None,
        *,
        system: SystemLike | Unset | None = UNSET,
        summarizer: SummarizerLike | Unset | None = UNSET,
        summary_mode: SummaryMode | Unset = UNSET,
        max_summary_tokens: int | Unset | None = UNSET,
        min_recent_tokens: int | Unset | None = UNSET,
        summarize_threshold_tokens: int | Unset | None = UNSET,
        summarize_threshold_messages: int | Unset = UNSET,
        model: str | Unset | None = UNSET,
        counter: CounterLike | Unset | None = UNSET,
        message_overhead: int | Unset = UNSET,
        summary_role: str | Unset = UNSET,
        anchors: Sequence[Any] | Unset = UNSET,
        max_anchor_tokens: int | Unset | None = UNSET,
        max_summary_rounds: int | Unset = UNSET,
        summary_instructions: str | Unset | None = UNSET,
        summary_timeout_seconds: float | Unset | None = UNSET,
        hooks: HooksLike | None = None,
        background: bool | Unset = UNSET,
        pending_first: bool | Unset = UNSET,
        tools: Sequence[ToolSchema] | Unset | None = UNSET,
        format: str | Format = "auto",
        context: Context | Unset | None = UNSET,
        on_trim: OnTrim | None = None,
        store: Store | None = None,
        id: str | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
    ) -> None:
        """Set the session up; nothing is read or written yet.

        A session of that id in the store is gone on with, and only what is given here changes: an option
        that is left out (`UNSET`) stays as its log has it. None is a value: `system=None` takes the system
        text away. No log can keep a function: summarizer, counter and context are given again each time,
        or taken away by None. Where a session begins, an option left out is as it is by default.

        Args:
            budget: Room for the view in tokens, at least 100, or a `Budget`. None: as the log has it; where
                there is no such session yet, the window of the model less its output reserve.
            system: System text; never leaves. By default none.
            summarizer: A function of messages (and of the summary so far), or a `Summarizer`; may be async.
                None, the default: what finds no room is out of view, and stays in the log.
            summary_mode: "incremental", the default: given the new messages and the summary so far.
                "rolling": the summary so far is the first of the messages. "anchored": anchors, or the first
                summary, stay word for word, and the rest rolls.
            max_summary_tokens: Cap of the summary. None, the default: 0.3 of the budget in force, rounded
                down.
            min_recent_tokens: What is kept of recent messages, if that can be. None, the default: 0.3 of the
                budget.
            summarize_threshold_tokens: Waiting tokens from which the summarizer is asked. None, the default:
                0.1 of it.
            summarize_threshold_messages: The same in messages, once they have half those tokens; 6 by
                default.
            model: Name of the model, for its tokenizer.
            counter: What counts tokens; None, the default: the model's own, or an estimate that errs high.
            message_overhead: Tokens charged for each message, where tokens are estimated; 4 by default. An
                error beside `counter` and `model`, which charge their own.
            summary_role: Role of the summary's message: "system", the default, or "user".
            anchors: Messages that stand after the system text and never leave; none by default.
            max_anchor_tokens: Their cap. None, the default: 0.4 of the summary's.
            max_summary_rounds: How often a summary that is too long is asked for again; 5 by default.
            summary_instructions: What the summarizer is told to keep or to leave out.
            summary_timeout_seconds: How long to wait for the summarizer. None, the default: as long as it
                takes.
            hooks: A `SessionHooks`, or a mapping of their names to functions.
            background: Summarize ahead of time, beside the conversation; `add` never waits for it; False by
                default. After `add` that is in a thread, where an async summarizer runs in an event loop of
                its own: its client must not belong to another loop. After `aadd` it is in a task.
            pending_first: Show what waits before the summary; False by default.
            tools: Tool schemas that every request carries; counted.
            format: Name of the wire form of the messages. "auto": the log's; Chat where it begins.
            context: A `Context` the history becomes one block of, the one named "history"; it has the budget.
            on_trim: Called with a `TrimContext` of each view before it is given; what it removes is not in
                that view, and stays in the log. Given again each time, as no log can keep it.
            store: Where the log is kept. None: in memory.
            id: Name of the session in the store. None: a new one.
            retry: How to go on after a conflict with another writer, or while a store is away. None: not.
            allow_missing: Open a session without the functions it was made with.
        """
        options: dict[str, Any] = {
            "system": system,
            "summarizer": summarizer,
            "summary_mode": summary_mode,
            "max_summary_tokens": max_summary_tokens,
            "min_recent_tokens": min_recent_tokens,
            "summarize_threshold_tokens": summarize_threshold_tokens,
            "summarize_threshold_messages": summarize_threshold_messages,
            "model": model,
            "counter": counter,
            "message_overhead": message_overhead,
            "summary_role": summary_role,
            "anchors": anchors,
            "max_anchor_tokens": max_anchor_tokens,
            "max_summary_rounds": max_summary_rounds,
            "summary_instructions": summary_instructions,
            "summary_timeout_seconds": summary_timeout_seconds,
            "background": background,
            "pending_first": pending_first,
            "tools": tools,
            "context": context,
        }
        given = {name: value for name, value in options.items() if value is not UNSET}
        given.update(budget=budget, hooks=hooks, format=format, on_trim=on_trim)
        self._set_up(given, begins=True, store=store, id=id, retry=retry, allow_missing=allow_missing)
        begun = self._core.in_force
        if begun.budget_tokens and (store is None or id is None):  # else its log may say more, or less
            Core(self._id, given, begins=True, allow_missing=True).begin()  # refuses what leaves no room

    def add(self, message: Any, /, *, id: str | None = None) -> Event:
        """Add a message: stored first, and never refused for its size.

        Args:
            message: A mapping, or an object with `model_dump()`; a deep copy is kept.
            id: Its id in the log; adding the same message under the same id again stores nothing twice.

        Returns:
            The event that was stored, with its id and version.

        Raises:
            FormatError: It is no message, or not plain data.
            VersionConflictError: Another writer was faster; nothing was stored. See `retry=`.
            StoreUnavailableError: It is not known to be stored; add it again under the same id.
        """
        return self.extend([message], ids=[id])[0]

    async def aadd(self, message: Any, /, *, id: str | None = None) -> Event:
        """Add a message; see `add`."""
        return (await self.aextend([message], ids=[id]))[0]

    def extend(self, messages: Sequence[Any], /, *, ids: Sequence[str | None] | None = None) -> list[Event]:
        """Add messages in one step: all of them are stored, or none."""
        self._check_summarizer()
        return self._run(self._adding(messages, ids), then_background=1)

    async def aextend(
        self, messages: Sequence[Any], /, *, ids: Sequence[str | None] | None = None
    ) -> list[Event]:
        """Add messages in one step; see `extend`."""
        return await self._arun(self._adding(messages, ids), then_background=1)

    def _adding(
        self, messages: Sequence[Any], ids: Sequence[str | None] | None
    ) -> Callable[[], Steps[list[Event]]]:
        if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
            raise ConfigurationError(
                f"extend takes a list of messages, not {messages!r:.80}: write extend([message]), or"
                " add(message)"
            )
        if isinstance(ids, str) or (ids is not None and not isinstance(ids, Iterable)):
            raise ConfigurationError(f"ids is a list with an id for each message: write [{ids!r:.80}]")
        listed = list(messages)
        given = [None] * len(listed) if ids is None else list(ids)
        if len(given) != len(listed):
            raise ConfigurationError(f"there are {len(listed)} messages and {len(given)} ids")
        for one in given:
            if one is not None:
                check_session_name(one, what="a message's id")
        named = [new_event_id() if one is None else one for one in given]
        return lambda: add_messages(self._core, listed, named)

    def _check_summarizer(self, *, sync_in_background: bool = False) -> None:
        core = self._core
        if core.working_set is None and core.last_working_set is None:  # what was left out, its log says
            self._run(core.ready)
        options = core.in_force
        if options.summarizer is None or (options.background and not sync_in_background):
            return
        if is_async(options.summarizer):
            raise ConfigurationError(
                "the summarizer is async: await aadd(...) instead of calling add(...), or pass"
                " background=True; the same for the other methods, asummarize(...) among them"
            )

    if not TYPE_CHECKING:  # a type checker that sees it would take any name for one that can be set

        def __setattr__(self, name: str, value: object) -> None:
            """Refuse an option or a property: it would be set without effect. Other names are free."""
            if not name.startswith("_"):
                refuse_set(Session, type(self), name)
            object.__setattr__(self, name, value)

    def set_budget(self, budget: Budget | float, /) -> None:
        """Change the budget.

        Where a smaller one makes much leave, up to eight summaries are asked for; `status().hidden_messages`
        says what is left, and `summarize` takes the rest.
        A smaller one given when the session is opened again is caught up with by the
        first `add` that needs room, in as many.

        Raises:
            ConfigurationError: It is below 100.
            BudgetExceededError: What is always shown passes it; nothing was changed.
        """
        self._check_summarizer()
        self._run(lambda: change_budget(self._core, budget), then_background=CATCH_UP)

    async def aset_budget(self, budget: Budget | float, /) -> None:
        """Change the budget; see `set_budget`."""
        await self._arun(lambda: change_budget(self._core, budget), then_background=CATCH_UP)

    def summarize(self) -> int:
        """Have everything that waits for a summary summarized now, due or not.

        That is what left the recent messages; see `status().pending_messages`. A call of the summarizer
        is given one budget's worth at most, so that a long backlog takes several.

        Returns:
            How many messages a summary stands for now that did not before.

        Raises:
            ConfigurationError: The session has no summarizer, or an async one.
            SummaryError: The summarizer failed; what is left goes on waiting.
        """
        self._check_summarizer(sync_in_background=True)
        self.drain()
        return self._run(lambda: summarize_waiting(self._core))

    async def asummarize(self) -> int:
        """Have everything that waits for a summary summarized now; see `summarize`."""
        await self.adrain()
        return await self._arun(lambda: summarize_waiting(self._core))

    def record_usage(self, usage: Any, /) -> None:
        """Take in what the provider reported for the view given last.

        The budget is kept by it from then on.

        Call it once after each answer, best when the answer is added: its reported size is then known, too.
        What is newer is estimated, times a factor learned from this session's own reports. It is an event
        of the log: a session that is opened again, forked or restored goes on from it.

        Args:
            usage: The usage that came back, in the shape of Chat Completions, Responses, Anthropic or Gemini;
                the response that holds it; or the input tokens as a number.

        Raises:
            ConfigurationError: It is no usage, this object has given no view since the last report, or
                the session has a Context.
        """
        self._check_summarizer()
        self._run(lambda: calibrate(self._core, usage), then_background=CATCH_UP)

    async def arecord_usage(self, usage: Any, /) -> None:
        """Take in what the provider reported; see `record_usage`."""
        await self._arun(lambda: calibrate(self._core, usage), then_background=CATCH_UP)

    def set_anchors(self, messages: Sequence[Any], /) -> None:
        """Replace the anchors.

        Raises:
            BudgetExceededError: They pass their cap, or leave no room; nothing was changed.
        """
        self._check_summarizer()
        self._run(lambda: replace_anchors(self._core, messages))

    async def aset_anchors(self, messages: Sequence[Any], /) -> None:
        """Replace the anchors; see `set_anchors`."""
        await self._arun(lambda: replace_anchors(self._core, messages))

    def clear(self) -> None:
        """Begin anew with an empty view; the log stays.

        Anchors return to those given at first, and the budget stays in force.

        Raises:
            BudgetExceededError: The anchors that return pass their cap, or leave no room; nothing was
                changed.
        """
        self._run(lambda: begin_anew(self._core))

    async def aclear(self) -> None:
        """Begin anew; see `clear`."""
        await self._arun(lambda: begin_anew(self._core))

    def pin(self, event: Event | str, /) -> None:
        """Keep a message, and what belongs to it, in every view.

        Args:
            event: What `add` returned, or its id.

        Raises:
            UnknownNameError: There is no message of that id.
            ConfigurationError: A summary stands for it; or it is neither an event nor an id.

        Complexity: O(1) in the log; reads the unit of the message.
        """
        self._run(lambda: set_pin(self._core, event, pinned=True))

    async def apin(self, event: Event | str, /) -> None:
        """Keep a message in every view; see `pin`."""
        await self._arun(lambda: set_pin(self._core, event, pinned=True))

    def unpin(self, event: Event | str, /) -> None:
        """Let a pinned message leave again."""
        self._run(lambda: set_pin(self._core, event, pinned=False))

    async def aunpin(self, event: Event | str, /) -> None:
        """Let a pinned message leave again."""
        await self._arun(lambda: set_pin(self._core, event, pinned=False))

    def undo(self, event: Event | str | None = None, /) -> Event:
        """Take back a summary or an eviction, and every one after it; messages stay.

        Args:
            event: Which, or its id. None: the newest that is in force.

        Raises:
            UnknownNameError: There is none.

        Complexity: reads the log back to what is taken back, and the messages that are elsewhere after it.
        """
        made = new_event_id()
        return self._run(lambda: undo_decision(self._core, event, made=made))

    async def aundo(self, event: Event | str | None = None, /) -> Event:
        """Take back a summary or an eviction; see `undo`."""
        made = new_event_id()
        return await self._arun(lambda: undo_decision(self._core, event, made=made))

    def redact(self, events: Sequence[Event | str] | Event | str, /) -> list[Event]:
        """Overwrite what messages say, in the log too.

        Summaries that cover one of them are marked stale and their text is removed; what they stood for
        waits for a new summary. What stays is who said it, and which calls it makes or answers.

        Args:
            events: What `add` returned, or ids; one or a list of them.

        Raises:
            UnknownNameError: There is no message of that id; nothing was changed.

        Complexity: reads the messages, and the summaries that were written after the oldest of them.
        """
        made = new_event_id()
        return self._run(lambda: redact_messages(self._core, events, made=made))

    async def aredact(self, events: Sequence[Event | str] | Event | str, /) -> list[Event]:
        """Overwrite what messages say; see `redact`."""
        made = new_event_id()
        return await self._arun(lambda: redact_messages(self._core, events, made=made))

    def delete(self) -> None:
        """Remove the session and every byte of it from its store.

        Each store says what that means for its files.
        """
        self._run(lambda: delete_session(self._core))

    async def adelete(self) -> None:
        """Remove the session from the store; see `delete`."""
        await self._arun(lambda: delete_session(self._core))


def _name_as_own(session: type[Session]) -> None:
    """Make what is inherited read as the session's own: Python's TypeErrors name the class of a function."""
    for kind in session.__mro__[1:-1]:
        for name, value in vars(kind).items():
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if not name.startswith("_") and hasattr(function, "__qualname__"):
                function.__qualname__ = f"{session.__qualname__}.{name}"


_name_as_own(Session)
