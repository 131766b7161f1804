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
    """A conversation that fits: messages to send, and a report of what was evicted.

    A copy (`pickle`, `copy`) has everything that can be read, but not counter, strategy and callbacks: `at`
    and `count_all` of a copy raise ConfigurationError. Pickling builds the report.

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
        """Write the report as an HTML page; see `Report.to_html`.

        Args:
            include_text: Whether to show the text of messages that have their own line, if it is available.
            title: Heading of the page.
            source: Origin of the messages, such as a file name, shown in the head of the page.
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
        raise TypeError(f"a Fitted is not a list: write fitted.messages{_BESIDE}")

    def __getitem__(self, key: Any, /) -> NoReturn:
        """Refuse: it is no list, it has one.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"a Fitted is not a list: write fitted.messages[{key!r:.20}]{_BESIDE}")

    if not TYPE_CHECKING:  # or a checker would take any name for one

        def __getattr__(self, name: str) -> NoReturn:
            """Say what a name that is often looked for is called here."""
            instead = _INSTEAD.get(name)
            raise AttributeError(
                f"a Fitted has no {name!r}" + ("" if instead is None else f": write fitted.{instead}")
            )

    @property
    def system(self) -> Any:
        """System text to send separately from the messages: a text, or a list of parts.

        None if there is none, or if it became the first message.
        """
        return self._settled.system

    @property
    def tools(self) -> Any:
        """Tool schemas as given; None if there are none."""
        return self._settled.tools

    @property
    def request(self) -> Any:
        """The messages in the form of the input: a copy of the request body, or the list."""
        return self._settled.request_of(list(self.messages))

    @property
    def evicted(self) -> list[M]:
        """The evicted messages, in order: the caller's own objects.

        A message that was evicted only in part is not among them.
        """
        return list(self._settled.evicted)

    @property
    def positions(self) -> list[int | None]:
        """The index in the input of each message; None if trimtab inserted the message.

        The input is the list that was passed, or the list in the body. In a `Context` it is the messages of
        all blocks in the order of the request (see `positions_in`). For a view of a session it is what the
        session listed. The rows of `report.messages` have the same index. Inserted messages are summaries,
        notes about evicted messages, system text that became a message, and joined documents. If a message
        was passed twice, each has its own index. A message whose parts a repair put in several places is
        listed once for each place.
        """
        return list(self._settled.positions)

    def positions_in(self, block: str, /) -> list[int | None]:
        """The index of each message in the list passed for a block; None for others.

        Args:
            block: Name of the block; "history" in `fit`.

        Raises:
            UnknownNameError: No block with messages has this name; the block of `fit` is "history".
        """
        spans = self._settled.spans
        if block not in spans:
            there = ", ".join(spans) or "none"
            raise unknown_name(f"no block with messages is named {block!r}; there are: {there}", block, spans)
        span = spans[block]
        return [None if at is None or at not in span else at - span.start for at in self.positions]

    @property
    def changed(self) -> list[int]:
        """The indices of the `messages` that trimtab changed.

        These are shallow copies of the objects in the input, with another text, part, role or mark. Inserted
        messages are not among them, nor messages that only moved.
        """
        return list(self._settled.changed)

    @property
    def tokens_before(self) -> int | None:
        """Tokens of the whole request before the fit; builds no report.

        None if the fit did not need to know it; `count_all` counts it.
        """
        return self._settled.tokens_before if self._report is None else self._report.tokens_before

    @property
    def tokens_after(self) -> int:
        """Tokens of the whole request after the fit; builds no report."""
        return self._settled.tokens

    @property
    def report(self) -> Report:
        """What was kept and evicted, why, and the tokens before and after."""
        if self._report is None:
            self._report = self._settled.report()
        return self._report

    @property
    def settlement(self) -> Settlement:
        """What the engine decided.

        For adapters and pages: its names may change between versions.

        Raises:
            ConfigurationError: This is a copy, which has no counter.
        """
        return self._settlement("settlement")

    def _settlement(self, wanted: str) -> Settlement:
        settled = self._settled
        if isinstance(settled, SettlementCopy):
            raise ConfigurationError(
                f"{wanted} needs the counter, which a copied or pickled Fitted does not have: call fit again"
            )
        return settled

    def at(self, budget: BudgetLike, /) -> Fitted[M]:
        """Fit the same input to another budget, using all known sizes again.

        Callbacks are not called again; their decisions still apply. No summarizer is called: the cap of its
        summary is reserved, and the report says `planned`.

        Args:
            budget: As for `fit`.

        Raises:
            BudgetExceededError: What must be kept does not fit this budget.
            ConfigurationError: The budget is a bare number above the model's window, as for `fit`.
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
            BudgetExceededError: What must be kept does not fit this budget.
            ConfigurationError: The budget is a bare number above the model's window, as for `fit`.
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
        """Count what the fit did not need to count.

        Returns the report without unknown numbers.

        Raises:
            CountingError: The counter failed on a message the fit did not need.
            FormatError: The entry is not a message.
        """
        _at_once(self._settlement("count_all()").outcome.count_all, "acount_all")
        self._report = None
        return self.report

    async def acount_all(self) -> Report:
        """Count what the fit did not need, with an async counter; see `count_all`.

        Raises:
            CountingError: The counter failed on a message the fit did not need.
            FormatError: The entry is not a message.
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
