"""What `fit` decides for one budget; it may decide again for another (`Fitted.at`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from trimtab._fitting.breakpoints import with_breakpoints
from trimtab._fitting.portion import Decision, ask, said_of
from trimtab._fitting.prepare import BLOCK, Work
from trimtab._fitting.request import hold_margin, refuse_faults
from trimtab._fitting.settlement import Marks, Settlement
from trimtab._fitting.stale import fill_room, first_change, stale_note, without_stale
from trimtab._shared.checks import move_to_source
from trimtab._shared.steps import Steps
from trimtab.budget import Budget
from trimtab.conversation import History
from trimtab.counting.sizes import Shares, Sizes
from trimtab.errors import BudgetExceededError, CountingError, FormatError
from trimtab.formats import Format, Request
from trimtab.strategies.base import EvictionRequest
from trimtab.strategies.cuts import count_back
from trimtab.strategies.runner import Settled
from trimtab.strategies.summarizer import drive

if TYPE_CHECKING:
    from trimtab.report import Report, Violation

__all__ = ["FitOutcome", "settle_fit"]


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


def _settle_margin(work: Work, budget: Budget | None) -> Steps[FitOutcome]:
    """Settle what stays within a budget, whatever its margin; yields what it needs from outside.

    Without a budget the room is what is there, so that all of it stays.

    Raises:
        StrategyContractError: The strategy broke its contract.
    """
    if budget is None:
        budget = Budget(max(1, _whole(work)))
    return hold_margin(
        budget,
        work.counter,
        work.tools,
        work.format,
        decide=lambda resolved: _settle_within(work, resolved),
        decided=lambda outcome: (outcome.fits, outcome.tokens, outcome.messages),
        everything=lambda: work.history.originals,
    )


def settle_fit(work: Work, budget: Budget | None) -> Steps[Settlement]:
    """Settle what stays, and mark it for the provider's prompt cache where that is asked for."""
    outcome = yield from _settle_margin(work, budget)
    return with_breakpoints(Settlement.of(outcome, partial(_settle_again, work)), work.ask.breakpoints)


def _settle_again(work: Work, budget: Budget) -> FitOutcome:
    """Settle for another budget; callbacks hold, and no summarizer is asked."""
    return drive(_settle_margin(work, budget), planned=True)


def _settle_within(work: Work, budget: Budget) -> Steps[FitOutcome]:
    history, sizes, limit = work.history, work.sizes, budget.input_tokens
    try:
        counted = _counted_back(history, sizes, limit)
        total = _total_if_known(history, sizes, counted)
        if total is not None and total <= limit:
            request = EvictionRequest(history, sizes, limit_tokens=limit, block=BLOCK)
            settled = _fresh(work, request, Settled(cut=0, tokens=total))
        else:
            request, settled = yield from _settle(work, limit_tokens=limit, counted=counted)
        if work.unmended and not (settled.fits and history.is_sound(settled.cut, settled.before)):
            return (yield from _settle_within(work.mended_first, budget))
        history.look_over(settled.cut, also=settled.before)
    except (CountingError, FormatError) as error:
        move_to_source(error, lead=work.lead, origin=work.origin)
        raise
    outcome = FitOutcome(portion=work, settled=settled, request=request, budget=budget)
    if work.ask.repair and outcome.fits and (refused := work.refusals(outcome.messages())):
        if work.unmended:
            return (yield from _settle_within(work.mended_first, budget))
        refuse_faults(_as_given(refused, outcome.positions()), mended=True)
    return outcome


def _as_given(violations: Iterable[Violation], positions: Sequence[int | None]) -> Iterator[Violation]:
    """Name messages of the output by their positions in the input: whoever is told has nothing else."""
    for one in violations:
        place = None if one.index is None or one.index >= len(positions) else positions[one.index]
        if place is None:
            yield one
            continue
        said = one.message.removeprefix(f"messages[{one.index}]")
        yield replace(one, index=place, message=f"messages[{place}]{said}")


def _settle(work: Work, *, limit_tokens: int, counted: int | None) -> Steps[tuple[EvictionRequest, Settled]]:
    """Ask the strategy; what goes stale makes room for more."""

    def within(tokens: int) -> Steps[tuple[EvictionRequest, Settled]]:
        again = tokens != limit_tokens
        return ask(
            work.strategy,
            work,
            limit_tokens=tokens,
            constant_limit_tokens=limit_tokens if again else None,
            counted=_counted_back(work.history, work.sizes, tokens) if again else counted,
            cut_newest=work.ask.cut_newest,
        )

    return fill_room(work, within, partial(_fresh, work), limit_tokens=limit_tokens, strategy=work.strategy)


def _fresh(work: Work, request: EvictionRequest, settled: Settled) -> Settled:
    """Return what stays without thinking that went stale."""
    if not work.history.thinking.bound:
        return settled
    made = without_stale(work, request, settled, start=first_change(work, settled), known=work.ask.stale)
    if made is settled:
        return settled
    made.notes = (*made.notes, stale_note(sum(why == "bound_thinking" for why in made.reasons.values())))
    return made


def _counted_back(history: History, sizes: Sizes, limit_tokens: int) -> int | None:
    """Count back until the limit is passed; None for a black box, which reads all there is.

    A counter that fails on a message of which nobody knows what it is, fails because of that.
    """
    if not sizes.additive:
        history.look_over(0)
        return None
    try:
        return count_back(history, sizes, limit_tokens)
    except CountingError as error:
        if error.index is not None:
            history.look_over(error.index)
        raise


def _whole(work: Work) -> int:
    """Count everything there is."""
    sizes = work.sizes
    try:
        if isinstance(sizes, Shares):
            return sizes.whole(work.history.originals)
        sizes.count_each()
        return sizes.fixed_tokens(work.history.leads_system) + sizes.total(0, len(work.history))
    except (CountingError, FormatError) as error:
        move_to_source(error, lead=work.lead, origin=work.origin)
        raise


def _total_if_known(history: History, sizes: Sizes, counted: int | None) -> int | None:
    """Return the size of the whole, if counting reached its beginning."""
    if isinstance(sizes, Shares):
        return sizes.whole(history.originals)
    if counted is None or counted > history.head:
        return None
    return sizes.fixed_tokens(history.leads_system) + sizes.total(0, len(history))
