"""What a session shows: its view, its numbers, its log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any, cast

from trimtab._fitting.fitted import Fitted
from trimtab.context import Context
from trimtab.errors import ConfigurationError
from trimtab.formats import Format
from trimtab.session.plain import copy_plain
from trimtab.session.recall import RecallTool
from trimtab.session.runner import Driven, running_loop
from trimtab.session.view import (
    SessionStatus,
    ViewDiff,
    diff_views,
    fit_view,
    fit_view_at,
    log_pages,
    recall_messages,
)
from trimtab.session.working_set import WorkingSet
from trimtab.session.zones import TokenBreakdown, Zones, shares
from trimtab.stores import Event, MemoryStore, Store

__all__ = ["Looks"]


class Looks(Driven):
    """Everything that changes nothing.

    Properties tell what this object knows; one that was not used yet reads its store first. In asyncio
    await `arefresh`, or any other method with an `a`, before.
    """

    @property
    def id(self) -> str:
        """Its name in the store."""
        return self._id

    @property
    def store(self) -> Store:
        """Where its log is kept."""
        return self._store

    @property
    def version(self) -> int:
        """The number of events in its log, as far as this object knows.

        Raises:
            ConfigurationError: Nothing was read yet, and an event loop runs in this thread; the same for
                every property that tells where the session stands.
        """
        return self._scene.version

    @property
    def hook_errors(self) -> int:
        """How many hooks have failed; each was logged."""
        return self._core.hook_errors

    @property
    def missing(self) -> dict[str, str]:
        """Functions it was made with and is opened without, by kind; see `allow_missing`."""
        self._known()
        missing = self._core.missing.items()
        return {
            kind: name.removeprefix(f"{kind} ") if isinstance(name, str) else "" for kind, name in missing
        }

    @property
    def _scene(self) -> WorkingSet:
        return self._known()

    def _known(self, *, may_block: bool = False) -> WorkingSet:
        """Return where the session stands, read from the store only where that holds up nobody.

        Raises:
            ConfigurationError: It would hold up an event loop.
        """
        core = self._core
        if core.working_set is not None:
            return core.working_set
        if running_loop() is not None:
            if core.last_working_set is not None and self._lock.others:
                return core.last_working_set  # an operation is underway that this loop may have to go on with
            if not may_block and not isinstance(self._store, MemoryStore):
                raise ConfigurationError(
                    f"session {self._id!r} has to be read from its store, and that would hold up the event"
                    " loop of this thread: `await session.arefresh()` first (or `session.refresh()` where"
                    " nobody else uses the loop, as in a notebook)"
                )
        return self._run(core.ready)

    @property
    def context(self) -> Context | None:
        """The context the history is a block of; its other blocks may be changed."""
        options = self._core.options
        return self._core.given.get("context") if options is None else options.context

    @property
    def format(self) -> Format:
        """The wire form of its messages."""
        core = self._core
        if core.options is None:
            self._known()
        return core.in_force.wire_format

    @property
    def system(self) -> Any:
        """System text to send beside the messages.

        None if there is none, or where it is the first of them.
        """
        return copy_plain(self._scene.reader.system_apart)

    @property
    def summary(self) -> str | None:
        """The text of the summary in force; None if there is none."""
        summary = self._scene.summary
        return None if summary is None else summary.text

    @property
    def anchors(self) -> list[dict[str, Any]]:
        """The anchors in force; those written by a summarizer included."""
        working_set = self._scene
        written = [] if working_set.anchor_summary is None else [working_set.anchor_summary.message]
        return cast("list[dict[str, Any]]", copy_plain([*working_set.anchors, *written]))

    @property
    def budget_tokens(self) -> int:
        """Input tokens in force."""
        return self._scene.state.budget_tokens

    @property
    def token_count(self) -> int:
        """Tokens of what is in view."""
        return self._scene.breakdown.total

    @property
    def token_breakdown(self) -> TokenBreakdown:
        """Tokens of what is in view, by zone."""
        return self._scene.breakdown

    @property
    def recent_message_count(self) -> int:
        """Messages in view as they were said, those that wait for a summary too.

        `status()` counts those that are out of view.
        """
        return sum(len(unit.members) for unit in self._scene.in_view())

    @property
    def total_message_count(self) -> int:
        """Messages in view: the recent, system text, anchors and the summary."""
        working_set = self._scene
        count = sum(len(unit.members) for unit in working_set.in_view()) + len(working_set.anchors)
        put_there = (working_set.reader.system_message(), working_set.anchor_summary)
        return count + working_set.shows_summary + sum(one is not None for one in put_there)

    def allocate_zones(self) -> Zones:
        """Say how the budget is shared now."""
        working_set = self._scene
        return shares(working_set.reader.options, working_set.state.room_tokens, working_set.permanent_tokens)

    def status(self) -> SessionStatus:
        """Say where the session stands, in numbers."""
        return SessionStatus.of(self._known(may_block=True), self._core)

    async def astatus(self) -> SessionStatus:
        """Say where the session stands, in numbers; see `status`."""
        return SessionStatus.of(await self._arun(self._core.ready), self._core)

    def messages(self) -> list[dict[str, Any]]:
        """Return the view, ready to send: it fits, and is as valid as what was added.

        Raises:
            BudgetExceededError: What must stay does not fit even at its shortest.
        """
        return self.fit().messages

    async def amessages(self) -> list[dict[str, Any]]:
        """Return the view; see `messages`."""
        return (await self.afit()).messages

    def fit(self, *, at: int | None = None) -> Fitted[dict[str, Any]]:
        """Return the view with its report.

        Args:
            at: A version of the log: the view as it was then. None: the view now.
        """
        return self._run(lambda: fit_view(self._core) if at is None else fit_view_at(self._core, at))

    async def afit(self, *, at: int | None = None) -> Fitted[dict[str, Any]]:
        """Return the view with its report; see `fit`."""
        return await self._arun(lambda: fit_view(self._core) if at is None else fit_view_at(self._core, at))

    def view_at(self, version: int, /) -> list[dict[str, Any]]:
        """Return the view as it was at a version of the log.

        Redacted messages say what is left of them.

        Raises:
            ConfigurationError: There is no such version.
        """
        return self.fit(at=version).messages

    async def aview_at(self, version: int, /) -> list[dict[str, Any]]:
        """Return the view as it was at a version; see `view_at`."""
        return (await self.afit(at=version)).messages

    def diff(self, a: int, b: int, /) -> ViewDiff:
        """Say what two views differ in: messages that came, that left, summaries."""
        return self._run(lambda: diff_views(self._core, a, b))

    async def adiff(self, a: int, b: int, /) -> ViewDiff:
        """Say what two views differ in; see `diff`."""
        return await self._arun(lambda: diff_views(self._core, a, b))

    def history(
        self, *, after: int = 0, before: int | None = None, kinds: Collection[str] | None = ("message",)
    ) -> Iterator[Event]:
        """Read the log, oldest first: everything that was ever said.

        Args:
            after: Only versions above this.
            before: Only versions below this.
            kinds: Kinds of events; None: all, decisions too.
        """
        pages = self._run(lambda: log_pages(self._core, after, before))
        while events := self._run(pages.next):
            yield from (event for event in events if kinds is None or event.kind in kinds)

    async def ahistory(
        self, *, after: int = 0, before: int | None = None, kinds: Collection[str] | None = ("message",)
    ) -> AsyncIterator[Event]:
        """Read the log; see `history`."""
        pages = await self._arun(lambda: log_pages(self._core, after, before))
        while events := await self._arun(pages.next):
            for event in events:
                if kinds is None or event.kind in kinds:
                    yield event

    def recall(self, query: str, /, limit: int = 5) -> list[Event]:
        """Find messages that are no longer in view.

        Those with more words of the query come first, newer before older where they have as many.
        """
        return self._run(lambda: recall_messages(self._core, query, limit))

    async def arecall(self, query: str, /, limit: int = 5) -> list[Event]:
        """Find messages that are no longer in view; see `recall`."""
        return await self._arun(lambda: recall_messages(self._core, query, limit))

    def recall_tool(self, *, limit: int = 5) -> RecallTool:
        """Make a tool for an agent: a schema, and what answers its calls."""
        return RecallTool(self, limit=limit)

    def refresh(self) -> int:
        """Read where the session stands, and return its version.

        Another worker may have added to it.
        """
        return self._run(self._core.refresh).version

    async def arefresh(self) -> int:
        """Read where the session stands; see `refresh`."""
        return (await self._arun(self._core.refresh)).version
