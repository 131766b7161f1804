"""`Fitted`: what `fit` gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trimtab._fitting import Decision, Work, decide, exceeded
from trimtab.budget import Budget

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["Fitted", "fitted_for"]

M = TypeVar("M")


class Fitted(Generic[M]):
    """A conversation that fits: messages ready to send, and the report of what left.

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

    @property
    def system(self) -> Any:
        """System text beside the messages, as given; None if there is none."""
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
        """
        work = self._work
        for sizes in (work.source_sizes, work.sizes):
            for index in range(len(sizes.messages)):
                sizes.of(index)
        self._report = None
        return self.report


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
