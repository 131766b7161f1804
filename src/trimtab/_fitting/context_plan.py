"""What a `Context` decides for one budget; it may decide again for another (`Fitted.at`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

from trimtab._fitting.outcome import Outcome
from trimtab._fitting.settle import settle_blocks
from trimtab._fitting.settlement import Marks
from trimtab.budget import Budget
from trimtab.counting.sizes import Shares
from trimtab.errors import BudgetExceededError, CountingError, FormatError
from trimtab.formats import Format, Request, mapping_of
from trimtab.strategies.drop import Strict
from trimtab.strategies.summarizer import drive

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["ContextPlan"]


@dataclass(slots=True, kw_only=True)
class ContextPlan:
    """An outcome, and how to come to another one."""

    outcome: Outcome

    @property
    def budget(self) -> Budget:
        """The budget it was decided for."""
        return self.outcome.budget

    @property
    def fits(self) -> bool:
        """False if what must stay passes the budget or a cap."""
        return self.outcome.error is None

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        return self.outcome.tokens

    @property
    def model(self) -> str | None:
        """The model it was asked for."""
        return self.outcome.composition.policy.model

    @property
    def counter(self) -> Any:
        """What counts."""
        return self.outcome.composition.counter

    @property
    def stable(self) -> int:
        """Messages of the blocks at the front that do not give way."""
        outcome = self.outcome
        kept = takewhile(
            lambda one: one.portion.whole or isinstance(one.portion.block.gives_way_by, Strict),
            outcome.decisions,
        )
        front = len(outcome.composition.lead) + sum(len(decision.output()) for decision in kept)
        return max(0, front - self._system_count())

    @property
    def source(self) -> list[Any]:
        """The messages of all blocks, in the order of the request."""
        return self.outcome.composition.source

    @property
    def given(self) -> list[Any]:
        """What stands in the blocks: a message written from text is its own."""
        return list(chain.from_iterable(part.given for part in self.outcome.composition.parts))

    @property
    def spans(self) -> dict[str, range]:
        """Where the messages of each block stand."""
        parts = self.outcome.composition.parts
        return {part.name: range(part.start, part.start + len(part.source)) for part in parts}

    @property
    def format(self) -> Format:
        """The wire form."""
        return self.outcome.format

    @property
    def body(self) -> Request:
        """What was asked for, as a request; messages that were lifted are its system text."""
        body, lifted = self.outcome.composition.body, self.outcome.messages()[: self._system_count()]
        given = lifted or (self.format.rules.lifts_system and body.system is not None)
        return replace(body, system=self.format.lift_system(lifted, body.system)) if given else body

    def messages(self) -> list[Any]:
        """Put the output together."""
        return self.outcome.messages()[self._system_count() :]

    def positions(self) -> list[int | None]:
        """List where each message of the output was; one that documents were joined to is trimtab's."""
        found: list[int | None] = [None] * len(self.outcome.composition.lead)
        for decision in self.outcome.decisions:
            own = decision.positions()
            found += own if decision.portion.joint is None else [None] * bool(own)
        return found[self._system_count() :]

    def stays(self) -> set[int]:
        """List where what is in the output was, joined documents included."""
        return set().union(*[decision.stays() for decision in self.outcome.decisions])

    def _system_count(self) -> int:
        """Count the messages at the front whose text goes with the request instead."""
        if not self.format.rules.lifts_system:
            return 0
        kinds = (self.format.kind(mapping_of(message)) for message in self.outcome.messages())
        return sum(1 for _ in takewhile(lambda kind: kind == "system", kinds))

    def tokens_before(self) -> int | None:
        """Return the tokens of the request as it came in; None where that is not known."""
        from trimtab._fitting.reporting import context_tokens_before_of

        return context_tokens_before_of(self.outcome)

    def report(self, marks: Marks, /) -> Report:
        """Make the report, with marks that were set on the output."""
        from trimtab._fitting.reporting import context_report_of  # not above: many fits are never reported

        made = context_report_of(self.outcome, marked=marks.at, recount=lambda: self._counted_report(marks))
        return marks.charge(made)

    def _counted_report(self, marks: Marks) -> Report | None:
        from trimtab._fitting.reporting import is_cheap

        composition = self.outcome.composition
        tables = [sizes for part in composition.parts for sizes in (part.source_sizes, part.sizes)]
        try:
            if not is_cheap(composition.counter, self.format, tables):
                return None
            self.count_all()
        except (CountingError, FormatError):  # of a message the fit never looked at
            return None
        return self.report(marks)

    def at(self, budget: Budget) -> ContextPlan:
        """Decide for another budget; callbacks hold, and no summarizer is asked."""
        return ContextPlan(outcome=drive(settle_blocks(self.outcome.composition, budget), planned=True))

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        if self.outcome.composition.is_black_box:
            self.outcome.composition.whole()
        for part in self.outcome.composition.parts:
            if isinstance(part.source_sizes, Shares):
                part.source_sizes.whole(part.source)
                continue
            for sizes in (part.source_sizes, part.sizes):
                sizes.count_each()

    def budget_error(self) -> BudgetExceededError:
        """Return the error for what does not fit."""
        assert self.outcome.error is not None
        return self.outcome.error
