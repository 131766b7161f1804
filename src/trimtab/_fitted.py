"""`Fitted`: what `fit` gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trimtab._arguments import move_to_source
from trimtab._fitting import Decision, Work, decide, exceeded
from trimtab.budget import Budget
from trimtab.counting._sizes import Shares, Sizes
from trimtab.errors import ConfigurationError, CountingError, FormatError

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["Fitted", "fitted_for"]

M = TypeVar("M")


class Fitted(Generic[M]):
    """A conversation that fits: messages ready to send, and the report of what left.

    A copy (`pickle`, `copy`) holds all there is to read, but not counter, strategy and callbacks:
    `at` and `count_all` of a copy are a ConfigurationError. Pickling reads the report.

    Example:
        >>> from trimtab import FixedCounter, fit
        >>> fitted = fit([{"role": "user", "content": "hi"}], budget=10, counter=FixedCounter(per_message=7))
        >>> fitted.report.remaining_tokens, fitted.at(8).report.remaining_tokens
        (3, 1)
    """

    __slots__ = ("_decision", "_report", "_work", "messages")

    def __init__(self, work: Work, decision: Decision) -> None:
        self._work = work
        self._decision = decision
        self._report: Report | None = None
        self.messages: list[M] = decision.settled.assemble(decision.request)
        """What stays, in order: the caller's own objects; edited ones are shallow copies."""

    def __repr__(self) -> str:
        """Say how much stayed."""
        tokens, room = self._decision.settled.tokens, self._decision.budget.input_tokens
        return f"<Fitted {len(self.messages)} of {len(self._work.source)} messages, {tokens}/{room} tokens>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle without counter, strategy and callbacks."""
        return _copy, (self.messages, self.system, self.tools, self.request, self.report)

    @property
    def system(self) -> Any:
        """System text to send beside the messages: a text, or a list of parts.

        None if there is none, or where it became the first of the messages.
        """
        return self._work.request.system

    @property
    def tools(self) -> Any:
        """Tool schemas as given; None if there are none."""
        return self._work.request.tools

    @property
    def request(self) -> Any:
        """The messages in the form the input had: a copy of the request body, or the list."""
        return self._work.format.write_request(self._work.request, list(self.messages))

    @property
    def report(self) -> Report:
        """What was kept, what left, why, and the tokens before and after."""
        if self._report is None:
            from trimtab._reporting import report_of  # not above: many fits are never reported

            self._report = report_of(self._work, self._decision, self.messages)
        return self._report

    def at(self, budget: Budget | int, /) -> Fitted[M]:
        """Fit the same input to another budget; every size already known is used again.

        Raises:
            BudgetExceededError: What must stay does not fit this budget.
        """
        return fitted_for(self._work, Budget.of(budget))

    def count_all(self) -> Report:
        """Count what the fit did not need to.

        Returns the report without unknown numbers.

        Raises:
            CountingError: The counter failed on a message the fit did not need.
            FormatError: Such a message is none.
        """
        work = self._work
        if isinstance(work.source_sizes, Shares):
            work.source_sizes.whole([*work.history.originals[: work.lead], *work.source])
        else:
            for sizes in (work.source_sizes, work.sizes):
                _count_each(work, sizes)
        self._report = None
        return self.report


class CopiedFitted(Fitted[M]):
    """What of a `Fitted` is there after copying or pickling: all there is to read."""

    __slots__ = ("_kept_report", "_request", "_system", "_tools")

    def __init__(self, messages: list[M], report: Report, *, system: Any, tools: Any, request: Any) -> None:
        self.messages = messages
        self._kept_report = report
        self._system = system
        self._tools = tools
        self._request = request

    def __repr__(self) -> str:
        """Say how much stayed."""
        report = self._kept_report
        total, room = report.total_messages, report.input_tokens
        return f"<Fitted {len(self.messages)} of {total} messages, {report.tokens_after}/{room} tokens>"

    @property
    def system(self) -> Any:
        """System text to send beside the messages."""
        return self._system

    @property
    def tools(self) -> Any:
        """Tool schemas as given."""
        return self._tools

    @property
    def request(self) -> Any:
        """The messages in the form the input had."""
        return self._request

    @property
    def report(self) -> Report:
        """What was kept, what left, why, and the tokens before and after."""
        return self._kept_report

    def at(self, budget: Budget | int, /) -> Fitted[M]:
        """Refuse: a copy cannot count.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(
            "at() needs the counter, which a copied or pickled Fitted lacks: call fit again"
        )

    def count_all(self) -> Report:
        """Refuse: a copy cannot count.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("count_all() needs the counter, which a copied or pickled Fitted lacks")


def _count_each(work: Work, sizes: Sizes) -> None:
    try:
        for index in range(len(sizes.messages)):
            sizes.of(index)
    except (CountingError, FormatError) as error:
        if sizes is work.sizes:
            move_to_source(error, lead=work.lead, origin=work.origin)
        raise


def _copy(messages: list[Any], system: Any, tools: Any, request: Any, report: Report) -> CopiedFitted[Any]:
    return CopiedFitted(messages, report, system=system, tools=tools, request=request)


def fitted_for(work: Work, budget: Budget) -> Fitted[Any]:
    """Decide for a budget.

    Raises:
        BudgetExceededError: With the nearest attempt.
    """
    decision = decide(work, budget)
    fitted: Fitted[Any] = Fitted(work, decision)
    if not decision.settled.fits:
        raise exceeded(work, decision).with_attempt(fitted)
    return fitted
