"""A settlement: what stays of a request within one budget, and how it is shown.

`fit` and `Context.fit` decide, each in its own way. What they decided is one value from there on: marks for a
prompt cache and the objects of a framework are functions from one settlement to another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trimtab.budget import Budget
from trimtab.formats import Request

if TYPE_CHECKING:
    from trimtab._fitting.objects import Written
    from trimtab._fitting.outcome import Outcome
    from trimtab._fitting.settle_fit import FitOutcome
    from trimtab.report import Report

__all__ = ["NO_MARKS", "Marks", "Settlement", "SettlementCopy"]

AnyOutcome: TypeAlias = "FitOutcome | Outcome"
"""What was settled, by `fit` or by a `Context`."""

View: TypeAlias = "Callable[[Settlement], Settlement]"
"""Shows a settlement otherwise: with marks, or as objects."""


class Marks(NamedTuple):
    """Marks for the provider's prompt cache that were set on an output."""

    places: tuple[int, ...] | None = None
    """How many messages stand before each mark, ascending; 0: it is on system text or tools. None: no marks
    were asked for."""
    at: frozenset[int] = frozenset()
    """The caller's messages that carry one, by their rows."""
    tokens: int = 0
    """What all of them cost."""
    notes: tuple[str, ...] = ()
    """What a reader should know of them."""
    body: Request | None = None
    """What stands beside the messages, where that is marked, too."""

    def charge(self, report: Report) -> Report:
        """Return a report with what they cost, which is beside the messages."""
        if not self.tokens and not self.notes:
            return report
        return replace(
            report,
            notes=(*report.notes, *self.notes),
            tokens_after=report.tokens_after + self.tokens,
            fixed_tokens=report.fixed_tokens + self.tokens,
        )


NO_MARKS = Marks()


@dataclass(slots=True, kw_only=True)
class Settlement:
    """What stays of a request within one budget, as it is shown."""

    outcome: AnyOutcome
    """What was settled, about wire messages and without marks."""
    again: Callable[[Budget], AnyOutcome]
    """Settles for another budget; no summarizer is asked."""
    messages: list[Any]
    """The output, with marks, and as objects where those were given."""
    marks: Marks = NO_MARKS
    written: Written | None = None
    """The objects that were given, and where those of the output were; None for wire messages."""
    mark: View | None = None
    """Sets the marks."""
    write: View | None = None
    """Writes the objects."""

    @classmethod
    def of(cls, outcome: AnyOutcome, again: Callable[[Budget], AnyOutcome], /) -> Settlement:
        """Show an outcome as it is."""
        return cls(outcome=outcome, again=again, messages=outcome.messages())

    def show(self, *views: View | None) -> Settlement:
        """Show it otherwise, in turn."""
        made = self
        for view in views:
            made = made if view is None else view(made)
        return made

    def at(self, budget: Budget, /) -> Settlement:
        """Settle for another budget, and show that in the same way; no summarizer is asked."""
        return Settlement.of(self.again(budget), self.again).show(self.mark, self.write)

    def without_marks(self) -> Settlement:
        """Show it without marks."""
        return self if self.mark is None else Settlement.of(self.outcome, self.again).show(self.write)

    @property
    def tokens(self) -> int:
        """Tokens of the whole request, marks included."""
        return self.outcome.tokens + self.marks.tokens

    @property
    def tokens_before(self) -> int | None:
        """Tokens of the whole request as it came in; None where that is not known."""
        return self.outcome.tokens_before()

    @property
    def limit_tokens(self) -> int:
        """The input room it was settled for."""
        return self.outcome.budget.input_tokens

    @property
    def total_message_count(self) -> int:
        """Messages of the input, or objects."""
        return len(self.outcome.source) if self.written is None else len(self.given)

    @property
    def given(self) -> Sequence[Any]:
        """What the caller gave for each row of the report: messages, or objects."""
        return self.outcome.given if self.written is None else self.written.given

    @property
    def spans(self) -> Mapping[str, range]:
        """Where in `given` the messages of each block stand."""
        return self.outcome.spans if self.written is None else self.written.spans(self.outcome.spans)

    @property
    def positions(self) -> list[int | None]:
        """For each message of the output its place in `given`; None: trimtab put it in."""
        return self.outcome.positions() if self.written is None else list(self.written.places)

    @property
    def evicted(self) -> list[Any]:
        """List what of `given` is not in the output, not even a part of it."""
        stay = self.outcome.stays()
        if self.written is not None:
            stay = self.written.stays(stay)
        return [one for at, one in enumerate(self.given) if at not in stay]

    @property
    def changed(self) -> list[int]:
        """Which of the output, by index, is another object than was given."""
        given, pairs = self.given, enumerate(zip(self.messages, self.positions, strict=True))
        return [at for at, (message, was) in pairs if was is not None and message is not given[was]]

    @property
    def system(self) -> Any:
        """System text to send beside the messages."""
        return self._body.system

    @property
    def tools(self) -> Any:
        """Tool schemas."""
        return self._body.tools

    @property
    def _body(self) -> Request:
        return self.outcome.body if self.marks.body is None else self.marks.body

    def request_of(self, messages: list[Any], /) -> Any:
        """Return messages in the form the input had: in a copy of the request body, or as a list."""
        return self.outcome.format.write_request(self._body, messages)

    def report(self) -> Report:
        """Make the report."""
        return self.outcome.report(self.marks)

    def copy(self, report: Report, messages: list[Any]) -> SettlementCopy:
        """Return what can be read of it, without counter, strategy and callbacks."""
        return SettlementCopy(
            messages=messages,
            system=self.system,
            tools=self.tools,
            request=self.request_of(messages),
            made_report=report,
            evicted=self.evicted,
            positions=self.positions,
            changed=self.changed,
            spans=dict(self.spans),
        )


@dataclass(slots=True, kw_only=True)
class SettlementCopy:
    """What can be read of a settlement that was copied or pickled; nobody can settle it again."""

    messages: list[Any]
    system: Any
    tools: Any
    request: Any
    made_report: Report
    evicted: list[Any]
    positions: list[int | None]
    changed: list[int]
    spans: dict[str, range]

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        return self.made_report.tokens_after

    @property
    def tokens_before(self) -> int | None:
        """Tokens of the whole request as it came in; None where that is not known."""
        return self.made_report.tokens_before

    @property
    def limit_tokens(self) -> int:
        """The input room it was settled for."""
        return self.made_report.input_tokens

    @property
    def total_message_count(self) -> int:
        """Messages of the input."""
        return self.made_report.total_message_count

    def request_of(self, messages: list[Any], /) -> Any:
        """Return the request as it was."""
        return self.request

    def report(self) -> Report:
        """Return the report as it was made."""
        return self.made_report

    def copy(self, report: Report, messages: list[Any]) -> SettlementCopy:
        """Return the same."""
        return replace(self, made_report=report, messages=messages)
