"""What was settled for the one block of `fit`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimtab._fitting.portion import Decision, said_of
from trimtab._fitting.prepare import BLOCK, Work
from trimtab._fitting.settlement import Marks
from trimtab._shared.checks import move_to_source
from trimtab.budget import Budget
from trimtab.counting.sizes import Shares, Sizes
from trimtab.errors import BudgetExceededError, CountingError, FormatError
from trimtab.formats import Format, Request

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["FitOutcome"]


@dataclass(slots=True, kw_only=True)
class FitOutcome(Decision[Work]):
    """What `fit` decided for one budget, and how to decide again."""

    budget: Budget

    @property
    def fits(self) -> bool:
        """False if what must stay passes the budget."""
        return self.settled.fits

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        return self.settled.tokens

    @property
    def model(self) -> str | None:
        """The model it was asked for."""
        return self.portion.ask.model

    @property
    def counter(self) -> Any:
        """What counts."""
        return self.portion.counter

    @property
    def stable(self) -> int:
        """Messages in front of every cut: what opens the turn that this one cuts into is not among them."""
        known, history, settled = self.portion.ask.stable, self.portion.history, self.settled
        if known is not None:
            return known
        if not settled.cut:
            return history.head
        before = settled.before
        at = min((one.at for one in settled.insertions), default=settled.cut)
        count = bisect_left(before, at)
        user = history.user_at_or_before(settled.cut - 1)
        while (
            user is not None and count and before[count - 1] >= user and before[count - 1] not in history.pins
        ):
            count -= 1
        return count

    @property
    def source(self) -> Sequence[Any]:
        """The caller's messages."""
        return self.portion.source

    @property
    def given(self) -> Sequence[Any]:
        """The same, where objects of an SDK were read into dicts: the objects."""
        work = self.portion
        return work.source if work.origin is not None else work.history.originals_from(work.lead)

    @property
    def spans(self) -> dict[str, range]:
        """The one block."""
        return {BLOCK: range(len(self.portion.source))}

    @property
    def format(self) -> Format:
        """The wire form."""
        return self.portion.format

    @property
    def body(self) -> Request:
        """What was asked for, as a request."""
        return self.portion.body_of_request

    def messages(self) -> list[Any]:
        """Put the output together."""
        return self.settled.assemble(self.request)

    def tokens_before(self) -> int | None:
        """Return the tokens of the request as it came in; None where that is not known."""
        from trimtab._fitting.reporting import tokens_before_of

        return tokens_before_of(self.portion, self)

    def report(self, marks: Marks, /) -> Report:
        """Make the report, with marks that were set on the output."""
        from trimtab._fitting.reporting import report_of  # not above: many fits are never reported

        self.portion.note_repair()
        return marks.charge(report_of(self, marks))

    def tables(self) -> list[Sizes]:
        """List the tables of its sizes."""
        return [self.portion.source_sizes, self.portion.sizes]

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        work = self.portion
        if isinstance(work.source_sizes, Shares):
            lead = work.history.originals[: work.lead]
            work.source_sizes.whole([*lead, *work.source])
            return
        for sizes in (work.source_sizes, work.sizes):
            try:
                sizes.count_each()
            except (CountingError, FormatError) as error:
                if sizes is work.sizes:
                    move_to_source(error, lead=work.lead, origin=work.origin)
                raise

    def budget_error(self) -> BudgetExceededError:
        """Make the error for what does not fit."""
        work, settled, limit = self.portion, self.settled, self.budget.input_tokens
        needed = settled.tokens if settled.needed_tokens is None else settled.needed_tokens
        beside = work.sizes.fixed_tokens(work.history.leads_system)
        heaviest = self.heaviest()
        error = BudgetExceededError(
            f"block {BLOCK!r} does not fit: at least {needed:,} tokens are needed and {limit:,} are there,"
            f" {needed - limit:,} too few (strategy {work.strategy.name}, {beside:,} of them beside the"
            f" messages).{said_of(heaviest)} Raise the budget, pin less, or shorten it, system text or"
            " tools.",
            needed_tokens=needed,
            limit_tokens=limit,
            block=BLOCK,
            heaviest=heaviest,
        )
        return settled.explain(error)
