"""`Fitted`: what `fit` gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from trimtab._fitting.settlement import Settlement, SettlementCopy
from trimtab._shared import observers
from trimtab._shared.checks import unknown_name
from trimtab.budget import Budget, BudgetLike
from trimtab.counting.awaited import CountsNeeded
from trimtab.errors import ConfigurationError

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["Fitted", "fitted_for"]

M = TypeVar("M")
T = TypeVar("T")


_BESIDE = ", fitted.request for the body, or fitted.report.to_dict() for what happened, which JSON can hold"

_INSTEAD = {
    **dict.fromkeys(("tokens", "token_count", "total_tokens"), "report.tokens_after"),
    **dict.fromkeys(("dropped", "removed", "trimmed", "left"), "evicted"),
    **dict.fromkeys(("remaining", "remaining_tokens", "free"), "report.remaining_tokens"),
    **dict.fromkeys(("to_dict", "dict", "model_dump", "json", "to_json"), "report.to_dict()"),
    **dict.fromkeys(("body", "payload"), "request"),
    **dict.fromkeys(("kept", "output", "result", "history"), "messages"),
    **{name: f"report.{name}" for name in ("fits", "notes", "violations", "to_text")},
}
"""What people look for in a `Fitted`, and where it is."""


class Fitted(Generic[M]):
    """A conversation that fits: messages to send, and the report of what was evicted.

    A copy (`pickle`, `copy`) holds all there is to read, but not counter, strategy and callbacks:
    `at` and `count_all` of a copy are a ConfigurationError. Pickling reads the report.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> fitted = fit([{"role": "user", "content": "hi"}], budget=10, counter=FixedCounter(per_message=7))
        >>> fitted.report.remaining_tokens, fitted.at(8).report.remaining_tokens
        (3, 1)
    """

    __slots__ = ("_report", "_settled", "messages")

    def __init__(self, settled: Settlement | SettlementCopy) -> None:
        self._settled = settled
        self._report: Report | None = None
        self.messages: list[M] = list(settled.messages)
        """What stays, in order: the caller's own objects; edited ones are shallow copies."""

    def __repr__(self) -> str:
        """Say how much stayed."""
        settled = self._settled
        count, room = settled.total_message_count, settled.limit_tokens
        return f"<Fitted {len(self.messages)} of {count} messages, {settled.tokens}/{room} tokens>"

    def _repr_html_(self) -> str:
        """Show the report in a notebook; no text of messages."""
        return self.report._repr_html_()

    def to_html(self, *, include_text: bool = False, title: str = "trimtab report", source: str = "") -> str:
        """Write the report as a page of HTML; see `Report.to_html`.

        Args:
            include_text: Show the text of messages that have a line of their own, as far as it is at hand.
            title: Stands over it.
            source: Stands in its head: where the messages came from, as a file.
        """
        return self.report.to_html(include_text=include_text, title=title, source=source)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle without counter, strategy and callbacks."""
        return Fitted, (self._settled.copy(self.report, self.messages),)

    def __iter__(self) -> NoReturn:
        """Refuse: it is no list, it has one.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"a Fitted is no list: write fitted.messages{_BESIDE}")

    def __getitem__(self, key: Any, /) -> NoReturn:
        """Refuse: it is no list, it has one.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"a Fitted is no list: write fitted.messages[{key!r:.20}]{_BESIDE}")

    if not TYPE_CHECKING:  # or a checker would take any name for one

        def __getattr__(self, name: str) -> NoReturn:
            """Say what a name that is often looked for is called here."""
            instead = _INSTEAD.get(name)
            raise AttributeError(
                f"a Fitted has no {name!r}" + ("" if instead is None else f": write fitted.{instead}")
            )

    @property
    def system(self) -> Any:
        """System text to send beside the messages: a text, or a list of parts.

        None if there is none, or where it became the first of the messages.
        """
        return self._settled.system

    @property
    def tools(self) -> Any:
        """Tool schemas as given; None if there are none."""
        return self._settled.tools

    @property
    def request(self) -> Any:
        """The messages in the form the input had: a copy of the request body, or the list."""
        return self._settled.request_of(list(self.messages))

    @property
    def evicted(self) -> list[M]:
        """The messages that were evicted, in their order: the caller's own objects.

        A message of which a part stays is not among them.
        """
        return list(self._settled.evicted)

    @property
    def positions(self) -> list[int | None]:
        """For each of the messages its index in the input; None if trimtab put it in.

        The input is the list that was given or that of the body; in a `Context` it is the messages of all
        blocks in the order of the request (see `positions_in`), and for a view of a session what the session
        listed: the rows of `report.messages` have the same index. Put in are summaries, lines for what was
        evicted, system text that became a message, and what joined documents became. Where a message was
        given twice, each has its own index; one of which a repair put parts in several places is there once
        for each.
        """
        return list(self._settled.positions)

    def positions_in(self, block: str, /) -> list[int | None]:
        """For each message its index in the list given for a block; None for others.

        Args:
            block: Its name; "history" in `fit`.

        Raises:
            UnknownNameError: No block with messages has this name; that of `fit` is "history".
        """
        spans = self._settled.spans
        if block not in spans:
            there = ", ".join(spans) or "none"
            raise unknown_name(f"no block with messages is named {block!r}; there are: {there}", block, spans)
        span = spans[block]
        return [None if at is None or at not in span else at - span.start for at in self.positions]

    @property
    def changed(self) -> list[int]:
        """Which of `messages`, by index, trimtab changed.

        The input has another object in their place: they are shallow copies with a text, a part, a role or
        a mark that differs. What was put in is not among them, nor is what merely moved.
        """
        return list(self._settled.changed)

    @property
    def tokens_before(self) -> int | None:
        """Tokens of the whole request as it came in; no report is made for it.

        None where the fit did not need to know it; `count_all` counts it.
        """
        return self._settled.tokens_before if self._report is None else self._report.tokens_before

    @property
    def tokens_after(self) -> int:
        """Tokens of the whole request as it goes out; no report is made for it."""
        return self._settled.tokens

    @property
    def report(self) -> Report:
        """What was kept, what was evicted, why, and the tokens before and after."""
        if self._report is None:
            self._report = self._settled.report()
        return self._report

    @property
    def settlement(self) -> Settlement:
        """What the engine settled.

        For adapters and pages: names in it may change between versions.

        Raises:
            ConfigurationError: This is a copy, which has no counter.
        """
        return self._settlement("settlement")

    def _settlement(self, wanted: str) -> Settlement:
        settled = self._settled
        if isinstance(settled, SettlementCopy):
            raise ConfigurationError(
                f"{wanted} needs the counter, which a copied or pickled Fitted lacks: call fit again"
            )
        return settled

    def at(self, budget: BudgetLike, /) -> Fitted[M]:
        """Fit the same input to another budget; every size already known is used again.

        Callbacks are not run again, and what they decided holds. No summarizer is asked: the cap of its
        summary stands in for it, and the report says `planned`.

        Args:
            budget: As for `fit`.

        Raises:
            BudgetExceededError: What must stay does not fit this budget.
            ConfigurationError: It is a bare number that passes the model's window, as for `fit`.
        """
        if not observers.active:
            return self._at(budget)
        from trimtab._fitting.observation import FitWatch  # not above: only who is looked at needs it

        with FitWatch("at") as watch:
            fitted = watch.fitted = self._at(budget)
        return fitted

    def _at(self, budget: BudgetLike) -> Fitted[M]:
        settlement = self._settlement("at()")
        return fitted_for(
            _at_once(lambda: settlement.at(Budget.of(budget, model=settlement.outcome.model)), "aat")
        )

    async def aat(self, budget: BudgetLike, /) -> Fitted[M]:
        """Fit the same input to another budget, with an async counter; see `at`.

        Raises:
            BudgetExceededError: What must stay does not fit this budget.
            ConfigurationError: It is a bare number that passes the model's window, as for `fit`.
        """
        if not observers.active:
            return await self._aat(budget)
        from trimtab._fitting.observation import FitWatch

        with FitWatch("at") as watch:
            fitted = watch.fitted = await self._aat(budget)
        return fitted

    async def _aat(self, budget: BudgetLike) -> Fitted[M]:
        from trimtab._shared.steps import rerun

        settlement = self._settlement("aat()")
        return fitted_for(
            await rerun(lambda: settlement.at(Budget.of(budget, model=settlement.outcome.model)))
        )

    def count_all(self) -> Report:
        """Count what the fit did not need to.

        Returns the report without unknown numbers.

        Raises:
            CountingError: The counter failed on a message the fit did not need.
            FormatError: Such a message is none.
        """
        _at_once(self._settlement("count_all()").outcome.count_all, "acount_all")
        self._report = None
        return self.report

    async def acount_all(self) -> Report:
        """Count what the fit did not need to, with an async counter; see `count_all`.

        Raises:
            CountingError: The counter failed on a message the fit did not need.
            FormatError: Such a message is none.
        """
        from trimtab._shared.steps import rerun

        await rerun(self._settlement("acount_all()").outcome.count_all)
        self._report = None
        return self.report


def _at_once(call: Callable[[], T], instead: str) -> T:
    """Call what may need more counts; with an async counter that is an error.

    Raises:
        ConfigurationError: More counts are needed, and the counter is async.
    """
    try:
        return call()
    except CountsNeeded:
        raise ConfigurationError(
            f"the counter is async and more counts are needed: await fitted.{instead}(...)"
        ) from None


def fitted_for(settlement: Settlement) -> Fitted[Any]:
    """Give a settlement back.

    Raises:
        BudgetExceededError: It does not fit; with the nearest attempt.
    """
    fitted: Fitted[Any] = Fitted(settlement)
    if not settlement.outcome.fits:
        raise settlement.outcome.budget_error().with_attempt(fitted)
    return fitted
