"""A settlement: what stays of a request within one budget, and how it is shown.

`fit` and `Context.fit` decide, each in its own way. What they decided is one value from there on: marks for a
prompt cache and the objects of a framework are functions from one settlement to another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trimtab._fitting.portion import Decision, leads_system, said_of
from trimtab._fitting.prepare import BLOCK, Work
from trimtab._fitting.shown_rules import ShownRules
from trimtab._shared.checks import move_to_source
from trimtab.budget import Budget
from trimtab.counting.awaited import CountsNeeded
from trimtab.counting.sizes import Shares, Sizes
from trimtab.errors import BudgetExceededError, CountingError, FormatError
from trimtab.formats import Format, Request

if TYPE_CHECKING:
    from trimtab._fitting.objects import Written
    from trimtab._fitting.outcome import Outcome
    from trimtab._fitting.reporting import Tally
    from trimtab.report import Reason, Report, RuleCounts, SummaryCheck, Violation

__all__ = ["NO_MARKS", "FitOutcome", "Marks", "Settlement", "SettlementCopy"]

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

    def tally(self) -> Tally:
        """Add up what became of the messages; what the fit did not need is counted, where that can be.

        A tenth of the work of a report with its rows, for who writes a line of each request.
        """
        with suppress(CountingError, CountsNeeded, FormatError):  # of what is not sent: nobody needs its size
            self.outcome.count_all()
        return self.outcome.tally(self.marks)

    def reasons(self, places: Iterable[int]) -> Iterator[Reason | None]:
        """Give why messages went or changed, one after the other; None: it stays as it was.

        A small part of a report, for who looks at a few.

        Args:
            places: The indices of messages in `given`.
        """
        return self.outcome.reasons(self.marks, places)

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
            return self._with_rules(history.head)
        before = settled.before
        at = min((one.at for one in settled.insertions), default=settled.cut)
        count = bisect_left(before, at)
        user = history.user_at_or_before(settled.cut - 1)
        while (
            user is not None and count and before[count - 1] >= user and before[count - 1] not in history.pins
        ):
            count -= 1
        return self._with_rules(count)

    def _with_rules(self, front: int) -> int:
        """Count the host's rules among so many messages at the front, if they stand there."""
        rules = self.portion.rules
        return front + int(rules is not None and rules.at(self.messages()) <= front)

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
        messages, rules = self.settled.assemble(self.request), self.portion.rules
        return messages if rules is None else rules.insert(messages)

    def positions(self) -> list[int | None]:
        """List the position of each message that comes out; None: trimtab put it in."""
        found, rules = Decision.positions(self), self.portion.rules
        if rules is not None:
            found.insert(rules.place(self.settled.assemble(self.request)), self.rules_place)
        return found

    @property
    def rules(self) -> ShownRules | None:
        """Rules of the host."""
        return self.portion.rules

    @property
    def rules_tokens(self) -> int:
        """What the host's rules have of the total; a black box's is shared with the caller's messages."""
        portion, settled, rules = self.portion, self.settled, self.portion.rules
        if rules is None:
            return portion.ask.rules_tokens
        if not isinstance(portion.sizes, Shares):
            return portion.sizes.shown_tokens
        put_in = {id(one.message) for one in settled.insertions}
        own = [one for one in settled.assemble(self.request) if id(one) not in put_in]
        tokens = max(0, settled.tokens - sum(settled.inserted_tokens))
        return portion.sizes.split([rules.message, *own], tokens)[0]

    # What the report asks of an outcome: this one is a block, and what stands beside it, too.

    is_one_list = True
    lead_count = 0
    """Messages in front of the block; its own lead is in it."""
    fixed_tokens = None
    floors_ignored = False
    notes = ()
    cap_tokens = None
    rank = 0.0
    floor_tokens = floor_missed_tokens = freed_tokens = mark_tokens = 0

    @property
    def decisions(self) -> list[FitOutcome]:
        """What was settled for each block."""
        return [self]

    @property
    def request_sizes(self) -> Sizes:
        """The table that knows what is beside the messages."""
        return self.portion.sizes

    @property
    def tools(self) -> Any:
        """Tool schemas."""
        return self.portion.tools

    @property
    def given_body(self) -> Request | None:
        """The request body that was given."""
        return self.portion.body

    @property
    def asked_notes(self) -> tuple[str, ...]:
        """What is to be said whatever is decided."""
        return self.portion.notes

    @property
    def asked_checks(self) -> tuple[SummaryCheck, ...]:
        """What became of the values of summaries among the messages."""
        return self.portion.ask.checked

    @property
    def asked_rules(self) -> RuleCounts | None:
        """Rules of the session that the messages are of."""
        return self.portion.ask.rule_counts

    @property
    def limit_tokens(self) -> int:
        """What all of it had to keep to."""
        return self.budget.input_tokens

    offered_tokens = limit_tokens

    @property
    def is_black_box(self) -> bool:
        """True if the counter tells the size of whole lists only."""
        return isinstance(self.portion.sizes, Shares)

    @property
    def is_counted_whole(self) -> bool:
        """True if what the provider does not read was counted all the same."""
        return self.portion.ask.sizes is not None or not self.portion.sizes.additive

    @property
    def whole_tokens(self) -> int | None:
        """What a black box said of all that was given."""
        sizes = self.portion.source_sizes
        return sizes.whole_tokens if isinstance(sizes, Shares) else None

    @property
    def leads_system(self) -> bool:
        """True if the request begins with a system message."""
        return leads_system(self.format, self.messages())

    @property
    def given_fixed_tokens(self) -> int:
        """What stood beside the messages of the request as it was given."""
        return self.portion.sizes.fixed_tokens(leads_system(self.format, self.portion.given))

    def beside_tokens(self, lead_tokens: int) -> int:
        """Return what was settled with the block and is none of it; its lead costs so much."""
        fixed_tokens, sizes = self.portion.sizes.fixed_tokens(self.leads_system), self.portion.sizes
        return max(0, fixed_tokens - sizes.shown_tokens) + lead_tokens

    def lead_sizes(self) -> list[int]:
        """List the sizes of messages before all blocks."""
        return []

    def output(self) -> list[Any]:
        """Put the output together."""
        return self.messages()

    def entries(self) -> list[Any]:
        """Put together what came out of the block."""
        return self.settled.assemble(self.request)

    def mark_places(self) -> frozenset[int]:
        """List where the mark of a block stands: `fit` has none."""
        return frozenset()

    def blocks_dropped(self) -> tuple[str, ...]:
        """List the blocks that were dropped whole."""
        return ()

    def units_across(self) -> dict[int, int]:
        """Map messages of units that span blocks to the first message of the unit."""
        return {}

    def violations(self) -> list[Violation]:
        """List what the provider would refuse of the input."""
        return self.portion.violations()

    def notes_of_report(self) -> list[str]:
        """List what a reader should know beside what was said on the way."""
        from trimtab._fitting.notes import notes_of_fit

        return notes_of_fit(self.portion, self.messages())

    def tokens_before(self) -> int | None:
        """Return the tokens of the request as it came in; None where that is not known."""
        from trimtab._fitting.reporting import tokens_before_of

        return tokens_before_of(self)

    def report(self, marks: Marks, /) -> Report:
        """Make the report, with marks that were set on the output."""
        from trimtab._fitting.reporting import report_of  # not above: many fits are never reported

        self.portion.note_repair()
        self._note_written()
        return marks.charge(report_of(self, marks))

    def tally(self, marks: Marks, /) -> Tally:
        """Add up what the report says of messages."""
        from trimtab._fitting.reporting import tally_of

        self.portion.note_repair()
        return tally_of(self, marks)

    def reasons(self, marks: Marks, places: Iterable[int], /) -> Iterator[Reason | None]:
        """Give why messages went or changed."""
        from trimtab._fitting.reporting import reasons_of

        self.portion.note_repair()
        return reasons_of(self, marks, places)

    def _note_written(self, *, ask: bool = False) -> None:
        """Note what results are written as, and what that saves; `ask` a counter that has to be awaited."""
        if self.portion.written is not None:
            from trimtab._fitting.compaction import note_written  # not above: loaded by who asks for it

            note_written([self], ask=ask)

    def tables(self) -> list[Sizes]:
        """List the tables of its sizes."""
        return [self.portion.source_sizes, self.portion.sizes]

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        work = self.portion
        self._note_written(ask=True)
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
        rules = "" if work.rules is None else work.rules.sentence(work.sizes.shown_tokens)
        error = BudgetExceededError(
            f"block {BLOCK!r} does not fit: at least {needed:,} tokens are needed and {limit:,} are"
            f" available, {needed - limit:,} too few (strategy {work.strategy.name}, {beside:,} of them"
            f" outside the messages).{said_of(heaviest)}{rules} Raise the budget, pin less, or shorten it,"
            " system text or tools.",
            needed_tokens=needed,
            limit_tokens=limit,
            block=BLOCK,
            heaviest=heaviest,
        )
        return settled.explain(error)
