"""What was settled for each block of a request, and the output it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any

from trimtab._fitting.layout import Composition, Part, faults_of
from trimtab._fitting.portion import Decision
from trimtab._fitting.settlement import Marks
from trimtab._fitting.shown_rules import ShownRules
from trimtab.budget import Budget
from trimtab.conversation.assemble import assemble_one, keep_parts
from trimtab.counting.sizes import Shares, Sizes
from trimtab.errors import BudgetExceededError
from trimtab.formats import Format, Request, mapping_of
from trimtab.strategies.drop import Strict

if TYPE_CHECKING:
    from trimtab._fitting.reporting import Tally
    from trimtab.report import Reason, Report, RuleCounts, SummaryCheck, Violation, WrittenResults

__all__ = ["BlockDecision", "Outcome", "mark_tokens_of"]


@dataclass(slots=True, kw_only=True)
class BlockDecision(Decision[Part]):
    """What was settled for one block."""

    offered_tokens: int
    """What it was offered last: of its need, its cap and the room that remained the least."""
    cap_tokens: int | None = None
    """Its cap; None if it has none."""
    floor_tokens: int = 0
    """Its floor, whether floors are in force or not."""
    room_tokens: int | None = None
    """What remained for it, before its need and its cap applied; None if all that fits was taken as it is."""

    @property
    def limit_tokens(self) -> int:
        """What it had to keep to, whatever its need: its cap, or the room that remained for it."""
        known = [tokens for tokens in (self.cap_tokens, self.room_tokens) if tokens is not None]
        return max(self.offered_tokens, min(known, default=self.offered_tokens))

    floor_missed_tokens: int = 0
    """What it has less than its floor, though floors are in force."""
    freed_tokens: int = 0
    mark_tokens: int = 0
    """What its mark for the provider's cache costs beside `settled.tokens`: with most counters nothing."""
    marked: bool = True
    """False if there was no room for its mark."""
    can_carry: bool = True
    """False if its last message is none that a mark can be put on."""

    @property
    def rank(self) -> float:
        """What is served first has a higher one."""
        return self.portion.block.rank

    @property
    def tokens(self) -> int:
        """What it costs, with its mark."""
        return self.settled.tokens + self.mark_tokens

    def charge_mark(self, limit_tokens: int | None) -> None:
        """Charge for its mark; leave the mark out where the block would pass a limit with it."""
        self.mark_tokens, self.can_carry = 0, True
        if not self.marked:
            return
        for message in self._without_mark()[-1:]:
            with_mark = _mark(self.portion, message)
            self.can_carry = with_mark is not message
            self.mark_tokens = _more(self.portion, with_mark, message)
        if limit_tokens is not None and self.tokens > limit_tokens:
            self.leave_mark()

    def leave_mark(self) -> None:
        """Leave its mark out."""
        self.marked, self.mark_tokens = False, 0

    def entries(self) -> list[Any]:
        """Return what stays of it, document by document where they are joined."""
        return self.settled.assemble(self.request)

    def output(self) -> list[Any]:
        """Return what came out of it; its last message ends a cached prefix where that is asked for."""
        messages = self._without_mark()
        if messages and self.marked and self.portion.block.cache_control is not None:
            messages[-1] = _mark(self.portion, messages[-1])
        return messages

    def mark_places(self) -> frozenset[int]:
        """List where the message stood that carries its mark; none if trimtab put that in."""
        if not self.marked or self.portion.joint is not None:
            return frozenset()
        ends = zip(self.positions()[-1:], self._without_mark()[-1:], strict=True)
        return frozenset(at for at, end in ends if at is not None and _mark(self.portion, end) is not end)

    def _without_mark(self) -> list[Any]:
        return _merge(self.portion, self.entries())

    def take_out(
        self, gone: set[int], *, reason: Reason, parted: Mapping[int, frozenset[int]] | None = None
    ) -> None:
        """Let more messages go, and note what that frees.

        Args:
            gone: Messages that leave.
            reason: Why.
            parted: Messages of which only some parts stay: which.
        """
        portion, settled = self.portion, self.settled
        known, count = portion.sizes.known, portion.history.count
        less = settled.without(gone, count=count, tokens=settled.tokens, reason=reason)
        less.partial = {**less.partial, **(parted or {})}
        if isinstance(portion.sizes, Shares):
            less.tokens = portion.sizes.request_tokens(less.assemble(self.request))
        else:
            less.tokens -= sum(settled.edited_tokens.get(i, known[i] or 0) for i in gone)
            for index, parts in (parted or {}).items():
                message = assemble_one(portion.history, index, parts, less.edits.get(index))
                size = portion.sizes.message(message, index)
                less.tokens -= settled.edited_tokens.get(index, known[index] or 0) - size
                less.edited_tokens = {**less.edited_tokens, index: size}
        self.settled = less
        self.freed_tokens += settled.tokens - less.tokens

    def rows(self) -> Iterator[tuple[int, Any]]:
        """List what stays and what was put in, in order: position in the block, or -1, and message."""
        history, settled = self.portion.history, self.settled
        put_in = list(settled.insertions)
        for index in (*settled.before, *range(settled.cut, history.count)):
            while put_in and put_in[0].at <= index:
                yield -1, put_in.pop(0).message
            message, parts = history.messages[index], settled.partial.get(index)
            yield index, message if parts is None else keep_parts(history, index, message, parts)
        yield from ((-1, one.message) for one in put_in)

    def miss(self, floor_tokens: int) -> None:
        """Note by how much it misses its floor; what another block freed is not missed."""
        self.floor_missed_tokens = max(0, floor_tokens - self.tokens - self.freed_tokens)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What was settled for all blocks and one budget."""

    composition: Composition
    budget: Budget
    decisions: list[BlockDecision]
    """In the order of the request."""
    floors_ignored: bool = False
    error: BudgetExceededError | None = None
    """Why it does not fit; None if it does."""
    notes: list[str] = field(default_factory=list)
    tokens: int = 0
    given_fixed_tokens: int = 0
    """What stood beside the messages of the request as it was given."""
    lead_tokens: int = 0
    """Of a black box's total, what is charged to system text before all blocks."""
    fixed_tokens: int | None = None
    """What a black box says of a request without messages; None for counters that add up."""
    _output: list[Any] | None = None

    @property
    def format(self) -> Format:
        """The wire form."""
        return self.composition.format

    @property
    def leads_system(self) -> bool:
        """True if the request begins with a system message."""
        return bool(self.composition.lead) or any(
            [self.format.kind(mapping_of(message)) == "system" for message in self.output()[:1]]
        )

    @property
    def led_system(self) -> bool:
        """True if what was given began with a system message."""
        given = chain(self.composition.lead, *[part.source for part in self.composition.parts])
        return any([self.format.kind(mapping_of(message)) == "system" for message in islice(given, 1)])

    @property
    def fits(self) -> bool:
        """False if what must stay passes the budget or a cap."""
        return self.error is None

    def forget_output(self) -> None:
        """Put the output together anew when it is asked for."""
        self._output = None

    def output(self) -> list[Any]:
        """Put the output together, with messages whose text goes beside them in the end."""
        if self._output is None:
            blocks = chain.from_iterable([one.output() for one in self.decisions])
            self._output = [*self.composition.lead, *blocks]
            if self.composition.rules is not None:
                self._output = self.composition.rules.insert(self._output)
        return list(self._output)

    @property
    def rules(self) -> ShownRules | None:
        """Rules of the host."""
        return self.composition.rules

    @property
    def rules_tokens(self) -> int:
        """What the host's rules have of the total; of a black box's no more than is none of a block's."""
        tokens = self.composition.request_sizes.shown_tokens
        if not tokens or not self.is_black_box:
            return tokens
        return min(tokens, self.tokens - self.lead_tokens - sum(one.tokens for one in self.decisions))

    @property
    def model(self) -> str | None:
        """The model it was asked for."""
        return self.composition.policy.model

    @property
    def counter(self) -> Any:
        """What counts."""
        return self.composition.counter

    @property
    def stable(self) -> int:
        """Messages of the blocks at the front that do not give way."""
        kept = takewhile(
            lambda one: one.portion.whole or isinstance(one.portion.strategy, Strict),
            self.decisions,
        )
        front = len(self.composition.lead) + sum(len(decision.output()) for decision in kept)
        rules = self.composition.rules
        front += int(rules is not None and rules.at(self.output()) <= front)
        return max(0, front - self._system_count())

    @property
    def source(self) -> list[Any]:
        """The messages of all blocks, in the order of the request."""
        return self.composition.source

    @property
    def given(self) -> list[Any]:
        """What stands in the blocks: a message written from text is its own."""
        return list(chain.from_iterable(part.given for part in self.composition.parts))

    @property
    def spans(self) -> dict[str, range]:
        """Where the messages of each block stand."""
        parts = self.composition.parts
        return {part.name: range(part.start, part.start + len(part.source)) for part in parts}

    @property
    def body(self) -> Request:
        """What was asked for, as a request; messages that were lifted are its system text."""
        body, lifted = self.composition.body, self.output()[: self._system_count()]
        given = lifted or (self.format.rules.lifts_system and body.system is not None)
        return replace(body, system=self.format.lift_system(lifted, body.system)) if given else body

    def messages(self) -> list[Any]:
        """Put the output together."""
        return self.output()[self._system_count() :]

    def positions(self) -> list[int | None]:
        """List where each message of the output was; one that documents were joined to is trimtab's."""
        found: list[int | None] = [None] * len(self.composition.lead)
        for decision in self.decisions:
            own = decision.positions()
            found += own if decision.portion.joint is None else [None] * bool(own)
        rules = self.composition.rules
        if rules is not None:
            stored = (one.rules_place for one in self.decisions)
            place = next((at for at in stored if at is not None), None)
            found.insert(rules.at(self.output()), place)
        return found[self._system_count() :]

    def stays(self) -> set[int]:
        """List where what is in the output was, joined documents included."""
        return set().union(*[decision.stays() for decision in self.decisions])

    def _system_count(self) -> int:
        """Count the messages at the front whose text goes with the request instead."""
        if not self.format.rules.lifts_system:
            return 0
        kinds = (self.format.kind(mapping_of(message)) for message in self.output())
        return sum(1 for _ in takewhile(lambda kind: kind == "system", kinds))

    # What the report asks of an outcome.

    is_one_list = False
    given_body = None
    """The request body that was given: of blocks none is."""

    @property
    def request_sizes(self) -> Sizes:
        """The table that knows what is beside the messages."""
        return self.composition.request_sizes

    @property
    def tools(self) -> Any:
        """Tool schemas."""
        return self.composition.policy.tools

    @property
    def asked_notes(self) -> tuple[str, ...]:
        """What is to be said whatever is decided."""
        return self.composition.notes

    @property
    def asked_checks(self) -> tuple[SummaryCheck, ...]:
        """What became of the values of summaries among the messages."""
        return self.composition.policy.checked

    @property
    def asked_rules(self) -> RuleCounts | None:
        """Rules of the session that the messages are of."""
        return self.composition.policy.rule_counts

    @property
    def lead_count(self) -> int:
        """Messages in front of all blocks."""
        return len(self.composition.lead)

    @property
    def is_black_box(self) -> bool:
        """True if the counter tells the size of whole lists only."""
        return self.composition.is_black_box

    is_counted_whole = is_black_box

    @property
    def whole_tokens(self) -> int | None:
        """What a black box said of all that was given."""
        return self.composition.whole_tokens

    def beside_tokens(self, lead_tokens: int) -> int:
        """Return what was settled with a block and is none of it: nothing, whatever the lead costs."""
        return 0

    def lead_sizes(self) -> list[int]:
        """List the sizes of messages before all blocks."""
        sizes, lead = self.composition.request_sizes, self.composition.lead
        if isinstance(sizes, Shares):
            return sizes.split(lead, self.lead_tokens)
        return [sizes.of(at) for at in range(len(lead))]

    def blocks_dropped(self) -> tuple[str, ...]:
        """List the blocks that were dropped whole."""
        return tuple([one.portion.name for one in self.decisions if not one.output()])

    def units_across(self) -> dict[int, int]:
        """Map messages of units that span blocks to the first message of the unit, as given."""
        composition = self.composition
        units = composition.units_across()
        given: dict[int, int] = {}
        for part, start in zip(composition.parts, composition.starts, strict=True):
            for index in range(part.history.count) if units else ():
                given[start + index] = part.start + part.source_index(index)
        return {given[index]: given[min(unit)] for unit in units for index in unit}

    def violations(self) -> list[Violation]:
        """List what the provider would refuse of the input."""
        return faults_of(self.composition.policy, self.format, self.composition.source)

    def notes_of_report(self) -> list[str]:
        """List what a reader should know beside what was said on the way."""
        from trimtab._fitting.notes import notes_of_context

        return notes_of_context(self)

    def tokens_before(self) -> int | None:
        """Return the tokens of the request as it came in; None where that is not known."""
        from trimtab._fitting.reporting import tokens_before_of

        return tokens_before_of(self)

    def report(self, marks: Marks, /) -> Report:
        """Make the report, with marks that were set on the output."""
        from trimtab._fitting.reporting import report_of  # not above: many fits are never reported

        self._note_written()
        return marks.charge(report_of(self, marks))

    def tally(self, marks: Marks, /) -> Tally:
        """Add up what the report says of messages."""
        from trimtab._fitting.reporting import tally_of

        return tally_of(self, marks)

    def reasons(self, marks: Marks, places: Iterable[int], /) -> Iterator[Reason | None]:
        """Give why messages went or changed."""
        from trimtab._fitting.reporting import reasons_of

        return reasons_of(self, marks, places)

    def _note_written(self, *, ask: bool = False) -> None:
        """Note what results are written as, and what that saves; `ask` a counter that has to be awaited."""
        for decision in self.decisions:
            before = self.composition.policy.results.get(decision.portion.name)
            if before is not None:
                decision.written = _behind(before, decision.portion.start)
        if self.composition.compacts:
            from trimtab._fitting.compaction import note_written  # not above: loaded by who asks for it

            note_written(self.decisions, ask=ask)

    def tables(self) -> list[Sizes]:
        """List the tables of its sizes."""
        return [sizes for part in self.composition.parts for sizes in (part.source_sizes, part.sizes)]

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        self._note_written(ask=True)
        if self.composition.is_black_box:
            self.composition.whole()
        for part in self.composition.parts:
            if isinstance(part.source_sizes, Shares):
                part.source_sizes.whole(part.source)
                continue
            for sizes in (part.source_sizes, part.sizes):
                sizes.count_each()

    def budget_error(self) -> BudgetExceededError:
        """Return the error for what does not fit."""
        assert self.error is not None
        return self.error


def mark_tokens_of(part: Part) -> int:
    """Return what the mark of a block costs that stays as it is."""
    plain = _merge(part, part.history.originals if part.joint else part.history.originals[-1:])
    return _more(part, _mark(part, plain[-1]), plain[-1]) if plain else 0


def _merge(part: Part, messages: list[Any]) -> list[Any]:
    return messages if part.joint is None else part.joint.merge(messages)


def _mark(part: Part, message: Any) -> Any:
    mark = part.block.cache_control
    return message if mark is None else part.history.format.with_cache_control(message, mark)


def _more(part: Part, marked: Any, plain: Any) -> int:
    """Return what a message costs more than another."""
    return 0 if marked is plain else part.sizes.alone(marked) - part.sizes.alone(plain)


def _behind(written: WrittenResults, offset: int) -> WrittenResults:
    """Return what was done to results where other messages stand in front."""
    from trimtab.report import ReferenceRow  # not above: many fits are never reported

    rows = (ReferenceRow(index=one.index + offset, source=one.source + offset) for one in written.references)
    return replace(written, references=tuple(rows))
