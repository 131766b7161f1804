"""`Session`: a conversation of any length in a log, with a view that always fits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from trimtab._fitting.callbacks import OnTrim
from trimtab._fitting.fitted import Fitted
from trimtab._shared.checks import check_flag
from trimtab._shared.docstrings import args_of
from trimtab._shared.options import UNSET, Unset, amakes, makes, takes
from trimtab.budget import BudgetLike
from trimtab.compact import CompactLike
from trimtab.context import Context
from trimtab.counting import CounterLike
from trimtab.formats import Format, OriginName
from trimtab.relevance.ranker import RankerLike
from trimtab.results import LineRange, ResultTool
from trimtab.session.add import add_messages, check_messages
from trimtab.session.change import (
    begin_anew,
    calibrate,
    change_budget,
    cut_view,
    delete_session,
    replace_anchors,
    set_pin,
)
from trimtab.session.change_rules import add_rule, drop_rule
from trimtab.session.core import Core, new_event_id
from trimtab.session.history import log_pages, message_whole
from trimtab.session.hooks import HooksLike
from trimtab.session.labels import Labelled, fork_bounds
from trimtab.session.options import (
    FindRulesLike,
    RestoreArguments,
    SessionArguments,
    SessionOptions,
    function_name,
    given_in,
    refuse_set,
)
from trimtab.session.plain import copy_plain
from trimtab.session.pop import pop_message
from trimtab.session.read_result import read_from_log, tool_of
from trimtab.session.recall import RecallTool
from trimtab.session.recollect import recall_messages
from trimtab.session.redact import Redaction, WhereLike, redact_messages
from trimtab.session.rule_record import SessionRule
from trimtab.session.runner import Runner
from trimtab.session.snapshot import read_snapshot, snapshot_of
from trimtab.session.summarize import CATCH_UP, most_for, summarize_waiting
from trimtab.session.switch import Asked, SwitchPlan, plan_switch, switch_model
from trimtab.session.undo import undo_decision
from trimtab.session.view import (
    Origin,
    SessionStatus,
    ViewDiff,
    diff_views,
    fit_view,
    origins_of,
    status_fragment,
    status_of,
)
from trimtab.session.working_set import WorkingSet
from trimtab.session.zones import TokenBreakdown, Zones
from trimtab.stores import Event, Found, Retry, Store, StoreLike
from trimtab.stores.copy import acopy_events, copy_events
from trimtab.strategies.fact_extractor import Fact, FactExtractorLike
from trimtab.strategies.must_keep import MustKeepLike
from trimtab.strategies.summarizer import SummarizerLike


@args_of(SessionOptions)
class Session(Labelled):
    """A conversation in an append-only log, and a view of it that always fits.

    Creating a session reads and writes nothing. Every added message is kept.
    The model sees a view: system text, anchors, a running summary, and the
    newest messages that fit. When the budget is exceeded, the oldest recent
    messages become waiting messages; when enough of them wait, a summarizer
    replaces them by a summary.

    Every method that reads or writes has a form for asyncio, prefixed `a`:
    `await session.aadd(...)`. Properties have no such form: in asyncio, await
    `arefresh()` or another method once before you read the first property.

    One object may be used by several threads and event loops: its operations
    run one after the other. Hooks may call it; its summarizer may not, unless
    it runs in the background.

    If the store has a session with that id, it is continued, and only the
    arguments given here change: an option that is left out (`UNSET`) keeps the
    value in the log. None is a value: `system=None` removes the system text. No
    log can store a function: pass summarizer, counter and context again each
    time, or None to remove them. In a new session, an option that is left out
    has its default.

    Args:
        store: Where to keep the log: a Store, the path of a SQLite file, or a
            URL, as for `open_store`. None: in memory.
        id: Name of the session in the store. None: a new one, in memory only.
        retry: How to continue after a conflict with another writer, or while a
            store is unavailable. None: not.
        allow_missing: Whether to open a session without the functions it was
            made with.

    Raises:
        ConfigurationError: An option is out of range, or two contradict each
            other.
        BudgetExceededError: System text, tools and anchors alone exceed the
            budget.

    Example:
        >>> from trimtab.counting import FixedCounter
        >>> counter = FixedCounter(per_message=20)
        >>> session = Session(100, system="Be brief.", counter=counter)
        >>> for n in range(9):
        ...     message = {"role": "user", "content": f"question {n}"}
        ...     event = session.add(message)
        >>> [message["content"] for message in session.messages()]
        ['Be brief.', 'question 6', 'question 7', 'question 8']
        >>> len(list(session.history()))
        9
    """

    @takes(SessionArguments)  # SPEC E2 fixes the options
    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        store: StoreLike | None = None,
        id: str | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
        **options: Any,
    ) -> None:
        given = given_in({"budget": budget, **options}, "Session.__init__")
        self._runner = Runner(
            given, begins=True, store=store, id=id, retry=retry, allow_missing=allow_missing
        )
        begun = self._runner.core.in_force
        if begun.budget_tokens and (store is None or id is None):  # else its log may say more, or less
            Core(self.id, given, begins=True, allow_missing=True).begin()  # refuses what leaves no room

    @classmethod
    def open(
        cls,
        store: StoreLike,
        id: str,
        *,
        summarizer: SummarizerLike | None = None,
        fact_extractor: FactExtractorLike | None = None,
        must_keep: MustKeepLike = None,
        find_rules: FindRulesLike | None = None,
        compact: CompactLike = None,
        counter: CounterLike | None = None,
        hooks: HooksLike | None = None,
        context: Context | None = None,
        on_trim: OnTrim | None = None,
        ranker: RankerLike | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
    ) -> Self:
        """Open a stored session with the options it was made with.

        Args:
            store: The store.
            id: The session's name in the store.
            summarizer: The function it was made with; a log stores none.
            fact_extractor: The same.
            must_keep: The same, if it is a function.
            find_rules: The same.
            compact: The same, if it has kinds.
            counter: The same.
            hooks: The same.
            context: The same.
            on_trim: The same.
            ranker: The same.
            retry: As for `Session`.
            allow_missing: Whether to go on without these: no summary is
                written, and tokens are estimated.

        Raises:
            ConfigurationError: A function is missing; raised at first use.
            UnknownNameError: There is no such session; raised at first use.
        """
        functions = {
            "summarizer": summarizer,
            "fact_extractor": fact_extractor,
            "must_keep": must_keep,
            "find_rules": find_rules,
            "compact": compact,
            "counter": counter,
            "hooks": hooks,
            "context": context,
            "on_trim": on_trim,
            "ranker": ranker,
        }
        given = {name: one for name, one in functions.items() if one is not None}
        runner = Runner(given, begins=False, store=store, id=id, retry=retry, allow_missing=allow_missing)
        return cls._of(runner)

    @classmethod
    def _of(cls, runner: Runner) -> Self:
        session = cls.__new__(cls)
        session._runner = runner
        return session

    def fork(self, at: int | None = None, *, id: str | None = None, store: StoreLike | None = None) -> Self:
        """Start a second conversation from a version of this one.

        Args:
            at: The version; None: the newest.
            id: Name of the new session; None: a new one.
            store: Where to keep it; None: in the same store.

        Raises:
            ConfigurationError: It would be this session itself: `id` is its
                own, in the same store.
            SessionDeletedError: This session was deleted meanwhile, and another
                may have its name.
        """
        target, name = self._runner.fork_target(id, store)
        at = self._runner.run(Core.known_version, at)
        if at:
            copied = self._runner.run(fork_bounds, at)
            copy_events(self.store, target, self.id, to=name, **copied)
        return self._of(self._runner.fork(target, name, at=at))

    async def afork(
        self, at: int | None = None, *, id: str | None = None, store: StoreLike | None = None
    ) -> Self:
        """Start a second conversation; see `fork`."""
        target, name = self._runner.fork_target(id, store)
        at = await self._runner.arun(Core.known_version, at)
        if at:
            copied = await self._runner.arun(fork_bounds, at)
            await acopy_events(self.store, target, self.id, to=name, **copied)
        return self._of(self._runner.fork(target, name, at=at))

    def snapshot(self, *, history: bool = True) -> dict[str, Any]:
        """Return the session as plain data, for `Session.restore`.

        Args:
            history: The whole log, which is as long as the conversation. False:
                only the view and what is needed to go on (options, anchors, the
                summary, and messages that are recent, in view, or waiting for a
                summary), as long as the budget allows. Messages that were
                already out of view are then missing: they cannot be shown
                again, found by `recall` or restored by `undo`.

        Complexity: reads the events it writes.
        """
        check_flag("history", history)
        self.drain()
        return self._runner.run(snapshot_of, history=history)

    async def asnapshot(self, *, history: bool = True) -> dict[str, Any]:
        """Return the session as plain data; see `snapshot`."""
        check_flag("history", history)
        await self.adrain()
        return await self._runner.arun(snapshot_of, history=history)

    @classmethod
    @makes(RestoreArguments)
    def restore(
        cls,
        data: Mapping[str, Any],
        *,
        store: StoreLike | None = None,
        id: str | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
        **options: Any,
    ) -> Self:
        """Make a session from a snapshot; it goes on as the original would.

        Args:
            data: What `snapshot` returned.
            store: Where to keep it; None: in memory. If the store has a session
                with that id, it must be the beginning of this one.
            id: Its name; None: its previous name.
            retry: As for `Session`.
            allow_missing: As for `open`.
            options: Options of `Session`: the functions again, and options to
                change.

        Raises:
            CorruptSessionError: The data is not a snapshot, is of another
                version, or was changed after it was taken.
            ConfigurationError: A function it was made with is missing, or an
                option is out of range.
        """
        runner, source, last = read_snapshot(
            data, options, store=store, id=id, retry=retry, allow_missing=allow_missing
        )
        if source is not None:
            copy_events(source, runner.store, runner.id, behind=last)
        runner.run(Core.refresh)
        return cls._of(runner)

    @classmethod
    @amakes(RestoreArguments)
    async def arestore(
        cls,
        data: Mapping[str, Any],
        *,
        store: StoreLike | None = None,
        id: str | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
        **options: Any,
    ) -> Self:
        """Make a session from a snapshot; see `restore`."""
        runner, source, last = read_snapshot(
            data, options, store=store, id=id, retry=retry, allow_missing=allow_missing
        )
        if source is not None:
            await acopy_events(source, runner.store, runner.id, behind=last)
        await runner.arun(Core.refresh)
        return cls._of(runner)

    @property
    def id(self) -> str:
        """Its name in the store."""
        return self._runner.id

    @property
    def store(self) -> Store:
        """Where its log is kept."""
        return self._runner.store

    @property
    def version(self) -> int:
        """The number of events in its log, as far as this object knows.

        Raises:
            ConfigurationError: Nothing was read yet, and an event loop runs in
                this thread; applies to every property that describes the state
                of the session.
        """
        return self._now.version

    @property
    def hook_errors(self) -> int:
        """How many hooks have failed; each was logged."""
        return self._runner.core.hook_errors

    @property
    def missing(self) -> dict[str, str]:
        """Functions it was opened without, by kind; see `allow_missing`."""
        self._runner.working_set()
        return {kind: function_name(kind, what) for kind, what in self._runner.core.missing.items()}

    @property
    def _now(self) -> WorkingSet:
        return self._runner.working_set()

    @property
    def context(self) -> Context | None:
        """The context that has this session; its other blocks may be changed."""
        options = self._runner.core.options
        return self._runner.core.given.get("context") if options is None else options.context

    @property
    def format(self) -> Format:
        """The wire form of its messages."""
        core = self._runner.core
        if core.options is None:
            self._runner.working_set()
        return core.in_force.wire_format

    @property
    def system(self) -> Any:
        """System text to send separately from the messages; None if none."""
        return copy_plain(self._now.reader.system_apart)

    @property
    def summary(self) -> str | None:
        """The text of the current summary; None if there is none."""
        summary = self._now.summary
        return None if summary is None else summary.text

    @property
    def facts(self) -> list[Fact]:
        """The facts in view, oldest first; `status` counts those without room."""
        now = self._now
        return [] if now.facts is None or not now.shows_facts else [one.fact for one in now.facts.known]

    @property
    def rules(self) -> list[SessionRule]:
        """The host's rules, then those that were found, in the order said.

        Those found are at most 128 that hold, and the newest 16 of the orders
        and of the replaced rules; `status` counts those that hold beyond them.
        """
        return self._now.listed_rules()

    @property
    def anchors(self) -> list[dict[str, Any]]:
        """The current anchors, including those written by a summarizer."""
        now = self._now
        written = [] if now.anchor_summary is None else [now.anchor_summary.message]
        return [copy_plain(message) for message in (*now.anchors, *written)]

    @property
    def budget_tokens(self) -> int:
        """The current budget for input tokens."""
        return self._now.state.budget_tokens

    @property
    def token_count(self) -> int:
        """Tokens of the view."""
        return self._now.breakdown.total

    @property
    def token_breakdown(self) -> TokenBreakdown:
        """Tokens of the view, by zone."""
        return self._now.breakdown

    @property
    def recent_message_count(self) -> int:
        """Unchanged messages in view; `status()` counts all others."""
        return self._now.messages

    @property
    def total_message_count(self) -> int:
        """Messages in view, including system text, anchors, facts and summary."""
        return self._now.total_messages

    def allocate_zones(self) -> Zones:
        """Return how the budget is currently shared."""
        return self._now.zones

    def status(self) -> SessionStatus:
        """Return the state of the session in numbers."""
        return status_of(self._runner.working_set(may_block=True), self._runner.core)

    async def astatus(self) -> SessionStatus:
        """Return the state of the session in numbers; see `status`."""
        return status_of(await self._runner.arun(Core.ready), self._runner.core)

    def messages(self) -> list[Any]:
        """Return the view, ready to send: it fits, and is as valid as the
        messages that were added.

        Changing a message of a view does not change later views. Unchanged
        messages are shared between views.

        Raises:
            BudgetExceededError: What must be kept does not fit, even at its
                shortest.
        """
        return self.fit().messages

    async def amessages(self) -> list[Any]:
        """Return the view; see `messages`."""
        return (await self.afit()).messages

    def fit(self, *, at: int | None = None, budget: BudgetLike | None = None) -> Fitted[Any]:
        """Return the view with its report.

        Args:
            at: A version of the log: the view at that time. None: the current
                view.
            budget: A budget: the view that `set_budget` would lead to without a
                summary; nothing is written. None: the session's own.
        """
        return self._runner.run(fit_view, at, budget)

    async def afit(self, *, at: int | None = None, budget: BudgetLike | None = None) -> Fitted[Any]:
        """Return the view with its report; see `fit`."""
        return await self._runner.arun(fit_view, at, budget)

    def origins(self, *, at: int | None = None, budget: BudgetLike | None = None) -> list[Origin]:
        """Say what each row of the report of `fit` shows.

        In a Context these are the rows of its block "history".

        Args:
            at: As for `fit`.
            budget: As for `fit`.
        """
        return self._runner.run(origins_of, at, budget)

    async def aorigins(self, *, at: int | None = None, budget: BudgetLike | None = None) -> list[Origin]:
        """Say what each message of a view shows; see `origins`."""
        return await self._runner.arun(origins_of, at, budget)

    def view_at(self, version: int, /) -> list[Any]:
        """Return the view as it was at a version of the log.

        Redacted messages have their redacted text.

        Args:
            version: From 0 to the newest.

        Raises:
            ConfigurationError: There is no such version.
        """
        return self.fit(at=version).messages

    async def aview_at(self, version: int, /) -> list[Any]:
        """Return the view as it was at a version; see `view_at`."""
        return (await self.afit(at=version)).messages

    def diff(self, a: int, b: int, /) -> ViewDiff:
        """Return the differences of two views: messages and summaries.

        Args:
            a: Version of the first view.
            b: Version of the second one.
        """
        return self._runner.run(diff_views, a, b)

    async def adiff(self, a: int, b: int, /) -> ViewDiff:
        """Return the differences of two views; see `diff`."""
        return await self._runner.arun(diff_views, a, b)

    def history(
        self, *, after: int = 0, before: int | None = None, kinds: Collection[str] | None = ("message",)
    ) -> Iterator[Event]:
        """Read the log, oldest first: every message and decision.

        Args:
            after: Only versions above this.
            before: Only versions below this.
            kinds: Kinds of events; None: all, including decisions.
        """
        pages = self._runner.run(log_pages, after, before)
        while events := self._runner.run(lambda _: pages.next()):
            yield from (event for event in events if kinds is None or event.kind in kinds)

    async def ahistory(
        self, *, after: int = 0, before: int | None = None, kinds: Collection[str] | None = ("message",)
    ) -> AsyncIterator[Event]:
        """Read the log; see `history`."""
        pages = await self._runner.arun(log_pages, after, before)
        while events := await self._runner.arun(lambda _: pages.next()):
            for event in events:
                if kinds is None or event.kind in kinds:
                    yield event

    def recall(self, query: str, /, limit: int = 5) -> Found:
        """Find messages and facts that are not in view.

        Returns those with the best scores of the `ranker` (its errors become a
        RankerError), or otherwise those with the most words of the query; of
        equal ones the newer come first. A query that is the id of a message
        finds that message, in view or not, unless `max_result_ratio` is None.

        The list says how far the search went: `complete` is False if very many
        messages have the words of the query and not all were read; from version
        `since` on, all were read. Rare words reach further back.

        Args:
            query: Words to look for, or the id of a message.
            limit: Maximum number of events.
        """
        return self._runner.run(recall_messages, query, limit)

    async def arecall(self, query: str, /, limit: int = 5) -> Found:
        """Find messages that are no longer in view; see `recall`."""
        return await self._runner.arun(recall_messages, query, limit)

    def view_of(self, event: Event | str, /) -> dict[str, Any]:
        """Return a whole message, as a view with enough room would show it.

        Args:
            event: What `add` or `recall` returned, or its id: if
                `max_result_ratio` cut a result, the marker in the view has the
                id.

        Raises:
            UnknownNameError: There is no message with that id.
        """
        return self._runner.run(message_whole, event)

    async def aview_of(self, event: Event | str, /) -> dict[str, Any]:
        """Return a whole message; see `view_of`."""
        return await self._runner.arun(message_whole, event)

    def recall_tool(self, *, limit: int = 5, max_tokens: int | None = None) -> RecallTool:
        """Make a tool for an agent: a schema, and the function that answers its
        calls.

        Args:
            limit: Maximum number of messages in an answer.
            max_tokens: Size to which its texts are cut; None: they are not cut.
        """
        return RecallTool(self, limit=limit, max_tokens=max_tokens)

    def read_result(
        self, call_id: str, /, *, lines: LineRange = None, around: str | None = None, max_tokens: int = 1_000
    ) -> str:
        """Read part of a tool result, in view or not; see `trimtab.results`.

        Args:
            call_id: Id of the call, or of a message: see the marker.
            lines: The lines to read, as "120-188"; None: from the beginning.
            around: A word or a few that stand in the result.
            max_tokens: Maximum size; never more than a view shows whole.
        """
        return self._runner.run(read_from_log, call_id, lines, around, max_tokens)

    async def aread_result(
        self, call_id: str, /, *, lines: LineRange = None, around: str | None = None, max_tokens: int = 1_000
    ) -> str:
        """Read part of a tool result; see `read_result`."""
        return await self._runner.arun(read_from_log, call_id, lines, around, max_tokens)

    def result_tool(self, *, max_tokens: int = 1_000) -> ResultTool:
        """Make `read_result` a tool for an agent.

        Args:
            max_tokens: Maximum size of an answer; at least 100.
        """
        return tool_of(self, max_tokens)

    def refresh(self) -> int:
        """Read what other writers may have added; return the version."""
        return self._runner.run(Core.refresh).version

    async def arefresh(self) -> int:
        """Read the state of the session; see `refresh`."""
        return (await self._runner.arun(Core.refresh)).version

    def add(self, message: Any, /, *, id: str | None = None, origin: OriginName | None = None) -> Event:
        """Add a message: it is stored first, and never refused for its size.

        Args:
            message: A mapping, or an object with `model_dump()`; a deep copy is
                kept.
            id: Its id in the log; adding the same message again with the same
                id stores it once.
            origin: Origin of its words, if lower than its role: "document" for
                text that a user passes on. Text made from the message names
                this origin, and never becomes system text. None: decided by the
                wire form.

        Returns:
            The event that was stored, with its id and version.

        Raises:
            FormatError: The argument is not a message, or is not plain data.
            ConfigurationError: `origin` would raise the message above its role.
            VersionConflictError: Another writer was faster; nothing was stored.
                See `retry=`.
            StoreUnavailableError: The store may not have stored it; add it
                again with the same id.
        """
        return self.extend([message], ids=[id], origins=[origin])[0]

    async def aadd(
        self, message: Any, /, *, id: str | None = None, origin: OriginName | None = None
    ) -> Event:
        """Add a message; see `add`."""
        return (await self.aextend([message], ids=[id], origins=[origin]))[0]

    def extend(
        self,
        messages: Sequence[Any],
        /,
        *,
        ids: Sequence[str | None] | None = None,
        origins: Sequence[OriginName | None] | None = None,
    ) -> list[Event]:
        """Add messages in one step: all of them are stored, or none.

        Args:
            messages: As for `add`, in order.
            ids: An id for each, or None to make one; None: all are made.
            origins: The origin of each, or None, as for `add`; None: decided by
                the wire form.
        """
        self._runner.check_summarizer()
        self._runner.check_ranker()
        given = check_messages(messages, ids, origins)
        return self._runner.run_ahead(most_for(given[0]), add_messages, *given)

    async def aextend(
        self,
        messages: Sequence[Any],
        /,
        *,
        ids: Sequence[str | None] | None = None,
        origins: Sequence[OriginName | None] | None = None,
    ) -> list[Event]:
        """Add messages in one step; see `extend`."""
        given = check_messages(messages, ids, origins)
        return await self._runner.arun_ahead(most_for(given[0]), add_messages, *given)

    def pop(self) -> Event | None:
        """Remove the newest message and return its event; None if there is
        none.

        The log keeps it. Views no longer show it, no current summary or fact
        repeats it, and `recall` does not find it. A call whose result was
        removed is open again.

        Raises:
            VersionConflictError: Another writer was faster; with `retry=`, the
                then newest message is removed.
            StoreUnavailableError: The store may not have stored the removal.
        """
        return self._runner.run(pop_message, made=new_event_id())

    async def apop(self) -> Event | None:
        """Remove the newest message; see `pop`."""
        return await self._runner.arun(pop_message, made=new_event_id())

    def set_budget(self, budget: BudgetLike, /) -> None:
        """Change the budget.

        If a smaller budget evicts much, up to 64 summaries are written;
        `status().hidden_messages` counts the rest, and `summarize` summarizes
        it. A smaller budget passed when the session is opened takes effect with
        the first `add` that needs room.

        Args:
            budget: Tokens, or a `Budget`.

        Raises:
            ConfigurationError: It is below 100.
            BudgetExceededError: What is always shown exceeds it; nothing was
                changed.
        """
        self._runner.check_summarizer()
        self._runner.run_ahead(CATCH_UP, change_budget, budget)

    async def aset_budget(self, budget: BudgetLike, /) -> None:
        """Change the budget; see `set_budget`."""
        await self._runner.arun_ahead(CATCH_UP, change_budget, budget)

    def plan(
        self,
        model: str | None = None,
        *,
        budget: BudgetLike | None = None,
        counter: CounterLike | Unset | None = UNSET,
    ) -> SwitchPlan:
        """Say what `switch` would do: nothing is written, and no summarizer is
        called.

        Args:
            model: As for `switch`.
            budget: As for `switch`.
            counter: As for `switch`.
        """
        return self._runner.run(plan_switch, Asked(model, budget, counter))

    async def aplan(
        self,
        model: str | None = None,
        *,
        budget: BudgetLike | None = None,
        counter: CounterLike | Unset | None = UNSET,
    ) -> SwitchPlan:
        """Say what `switch` would do; see `plan`."""
        return await self._runner.arun(plan_switch, Asked(model, budget, counter))

    def switch(
        self,
        model: str | None = None,
        *,
        budget: BudgetLike | None = None,
        counter: CounterLike | Unset | None = UNSET,
    ) -> SwitchPlan:
        """Go on with another model or budget, and write the summaries it needs.

        After it, every message is in view or in a summary, if the session has a
        summarizer. The wire form stays the same. The switch is stored first,
        and each summary by itself: after an interruption, the same call writes
        those that are missing.

        Args:
            model: The model to go on with. None: the same.
            budget: The budget. None: the current one, but at most what the
                model takes; if the current one is the whole window of the
                current model, the whole window.
            counter: What counts tokens from now on. Left out: the counter that
                was passed to the session, or otherwise the model's own. None:
                the model's own.

        Returns:
            The plan, with the number of summaries that were written.

        Raises:
            BudgetExceededError: What must stay does not fit; nothing was
                changed.
            SummaryError: The summarizer failed. The session has switched, and
                the remaining messages go on waiting.
            ConfigurationError: Neither model nor budget is passed, the window
                of the model is not known and no budget is passed, or the
                session has a Context.
        """
        self._runner.check_summarizer(sync_in_background=True)
        self.drain()
        return self._runner.run(switch_model, Asked(model, budget, counter))

    async def aswitch(
        self,
        model: str | None = None,
        *,
        budget: BudgetLike | None = None,
        counter: CounterLike | Unset | None = UNSET,
    ) -> SwitchPlan:
        """Go on with another model or budget; see `switch`."""
        await self.adrain()
        return await self._runner.arun(switch_model, Asked(model, budget, counter))

    def cut(self) -> int:
        """Cut the view as if over budget; return how many messages were
        evicted.

        Use it if a request has content besides the view that the session does
        not know of. `undo` takes back the newest decision first: facts, then a
        summary of the evicted messages, if there are any, and then the cut.
        `undo` of the cut's own event, of kind "evicted", takes back all of
        these. If nothing may be evicted, nothing is written.

        Raises:
            VersionConflictError: Another writer was faster; nothing was cut.
                See `retry=`.
            StoreUnavailableError: The store may not have stored the cut.
        """
        self._runner.check_summarizer()
        return self._runner.run_ahead(1, cut_view)

    async def acut(self) -> int:
        """Cut the view now; see `cut`."""
        return await self._runner.arun_ahead(1, cut_view)

    def summarize(self) -> int:
        """Summarize everything that waits for a summary now, due or not.

        These are the messages that are no longer recent; see
        `status().pending_messages`. One call of the summarizer gets at most one
        budget's worth of messages, so a long backlog takes several calls. With
        a fact extractor, everything out of view is read for facts.

        Returns:
            How many messages were not summarized before and are now.

        Raises:
            ConfigurationError: The session has no summarizer and no fact
                extractor, or an async one.
            SummaryError: The summarizer failed; the remaining messages go on
                waiting.
        """
        self._runner.check_summarizer(sync_in_background=True)
        self.drain()
        return self._runner.run(summarize_waiting)

    async def asummarize(self) -> int:
        """Summarize everything that waits, now; see `summarize`."""
        await self.adrain()
        return await self._runner.arun(summarize_waiting)

    def record_usage(self, usage: Any, /) -> None:
        """Record the usage that the provider reported for the last view.

        From then on the budget is checked with it.

        Call it once after each answer, best when the answer is added: then the
        answer's reported size is known, too. Newer messages are estimated,
        times a factor learned from this session's reports. It is an event of
        the log, so a session that is opened again, forked or restored goes on
        from it.

        Args:
            usage: The returned usage, in the shape of Chat Completions,
                Responses, Anthropic or Gemini; the response that holds it; or
                the input tokens as a number.

        Raises:
            ConfigurationError: The argument is not usage, this object has
                returned no view since the last report, or the session has a
                Context.
        """
        self._runner.check_summarizer()
        self._runner.run_ahead(CATCH_UP, calibrate, usage)

    async def arecord_usage(self, usage: Any, /) -> None:
        """Record the usage that the provider reported; see `record_usage`."""
        await self._runner.arun_ahead(CATCH_UP, calibrate, usage)

    def set_anchors(self, messages: Sequence[Any], /) -> None:
        """Replace the anchors.

        Args:
            messages: Messages for every view, after the system text.

        Raises:
            BudgetExceededError: They exceed their cap, or leave no room;
                nothing was changed.
        """
        self._runner.check_summarizer()
        self._runner.run(replace_anchors, messages)

    async def aset_anchors(self, messages: Sequence[Any], /) -> None:
        """Replace the anchors; see `set_anchors`."""
        await self._runner.arun(replace_anchors, messages)

    def add_rule(self, text: str, /) -> SessionRule:
        """Add a rule of the host: shown always, word for word.

        If a message said this text, too, it is shown once, among the host's
        rules, and a `pop` of that message does not take it back.

        Args:
            text: The rule.

        Raises:
            BudgetExceededError: It leaves no room; nothing was changed.
        """
        self._runner.check_summarizer()
        return self._runner.run(add_rule, text)

    async def aadd_rule(self, text: str, /) -> SessionRule:
        """Add a rule of the host; see `add_rule`."""
        return await self._runner.arun(add_rule, text)

    def drop_rule(self, id: str, /) -> SessionRule:
        """Have a rule hold no longer; return it.

        What it replaced does not come back. The message that says it stays.

        Args:
            id: Its id, from `rules`.

        Raises:
            UnknownNameError: There is no such rule.
        """
        self._runner.check_summarizer()
        return self._runner.run(drop_rule, id, made=new_event_id())

    async def adrop_rule(self, id: str, /) -> SessionRule:
        """Have a rule hold no longer; see `drop_rule`."""
        return await self._runner.arun(drop_rule, id, made=new_event_id())

    def clear(self) -> None:
        """Start over with an empty view; the log is kept.

        Anchors and the host's rules return to the initial ones, rules that were
        found hold no longer, and the budget stays as it is.

        Raises:
            BudgetExceededError: The initial anchors exceed their cap, or leave
                no room; nothing was changed.
        """
        self._runner.run(begin_anew)

    async def aclear(self) -> None:
        """Start over; see `clear`."""
        await self._runner.arun(begin_anew)

    def pin(self, event: Event | str, /) -> None:
        """Keep a message, and the rest of its unit, in every view.

        Args:
            event: What `add` returned, or its id.

        Raises:
            UnknownNameError: There is no message with that id.
            ConfigurationError: A summary replaced it; or the argument is
                neither an event nor an id.

        Complexity: O(1) in the log; reads the unit of the message.
        """
        self._runner.run(set_pin, event, pinned=True)

    async def apin(self, event: Event | str, /) -> None:
        """Keep a message in every view; see `pin`."""
        await self._runner.arun(set_pin, event, pinned=True)

    def unpin(self, event: Event | str, /) -> None:
        """Allow a pinned message to be evicted again.

        Args:
            event: The event of the message, or its id.
        """
        self._runner.run(set_pin, event, pinned=False)

    async def aunpin(self, event: Event | str, /) -> None:
        """Allow a pinned message to be evicted again; see `unpin`."""
        await self._runner.arun(set_pin, event, pinned=False)

    def undo(self, event: Event | str | None = None, /) -> Event:
        """Take back a summary, facts or an eviction, and everything after it.

        Messages stay.

        Args:
            event: The event, or its id. None: the newest current one.

        Raises:
            UnknownNameError: There is none.

        Complexity: reads the log back to that event, and the messages that
        undo moves to another part of the session.
        """
        return self._runner.run(undo_decision, event, made=new_event_id())

    async def aundo(self, event: Event | str | None = None, /) -> Event:
        """Take back a summary or an eviction; see `undo`."""
        return await self._runner.arun(undo_decision, event, made=new_event_id())

    def redact(
        self, events: Sequence[Event | str] | Event | str | None = None, /, *, where: WhereLike | None = None
    ) -> Redaction:
        r"""Overwrite the text of messages, in the log too, and copies of it.

        A message keeps its author, and the calls it makes or answers. Facts
        that come from it lose their text. A summary is kept unless it repeats
        words that no other message says: these words are overwritten, or the
        summary is written again. At most four summaries are written again.

        Args:
            events: What `add` returned, or ids; one or a list of them.
            where: In place of `events`: a regular expression to search for in
                each message of the log, or a function of its event.

        Returns:
            The messages after the change, and a receipt: `to_dict()` lists
            messages, summaries and facts by id and version.

        Raises:
            UnknownNameError: There is no message with that id, or `where` finds
                none; nothing was changed.
            ConfigurationError: `where` is neither a regular expression nor a
                function, matches an empty text, or is given with `events`.

        Complexity: reads the messages, and the summaries and facts written
        after the oldest of them; with `where`, the whole log.

        Example:
            >>> session = Session(1_000)
            >>> event = session.add({"role": "user", "content": "PIN: 4711"})
            >>> done = session.redact(where=r"\bPIN\b")
            >>> [session.messages(), done.to_dict()["messages"][0]["version"]]
            [[{'role': 'user', 'content': '[redacted]'}], 2]
        """
        return self._runner.run(redact_messages, events, where, made=new_event_id())

    async def aredact(
        self, events: Sequence[Event | str] | Event | str | None = None, /, *, where: WhereLike | None = None
    ) -> Redaction:
        """Overwrite the text of messages; see `redact`."""
        return await self._runner.arun(redact_messages, events, where, made=new_event_id())

    def delete(self) -> None:
        """Remove the session and every byte of it from its store.

        Each store says what this means for its files.
        """
        self._runner.run(delete_session)

    async def adelete(self) -> None:
        """Remove the session from the store; see `delete`."""
        await self._runner.arun(delete_session)

    def drain(self) -> None:
        """Wait until no summary is being written in the background.

        They may be written by a thread, after `add`, or by a task, after
        `aadd`. A thread or task that writes a summary, and the hooks it calls,
        do not wait for themselves.

        Raises:
            ConfigurationError: The call would wait for its own thread: in a
                hook, or for a task of the same event loop. Await `adrain`
                there.
        """
        self._runner.drain()

    async def adrain(self) -> None:
        """Wait until no summary is being written in the background; see `drain`."""
        await self._runner.adrain()

    def close(self) -> None:
        """Wait for a summary in the background; the store stays open for others."""
        self.drain()

    async def aclose(self) -> None:
        """Wait for a summary in the background; see `close`."""
        await self.adrain()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        """Name it, its store and budget, and what is in view; no content."""
        return f"<Session {self.id!r} in {self.store!r}: {self._runner.describe()}>"

    def _repr_html_(self) -> str:
        """Show the state of the session in a notebook, as far as it was read. No content."""
        about = f"{self._runner.describe()}, in {repr(self.store).strip('<>')}"
        return status_fragment(f"Session {self.id}", about, self._runner.core)

    if not TYPE_CHECKING:  # a type checker that sees it would take any name for one that can be set

        def __setattr__(self, name: str, value: object) -> None:
            """Refuse an option or a property: it would have no effect."""
            if not name.startswith("_"):
                refuse_set(Session, type(self), name)
            object.__setattr__(self, name, value)
