"""What stays within a budget: room is offered, strategies say what leaves, and the rest is a settlement.

`fit` is one block with a head, which has all the room. The blocks of a `Context` share it (`fold.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from trimtab._fitting.breakpoints import with_breakpoints
from trimtab._fitting.portion import Portion
from trimtab._fitting.prepare import Work
from trimtab._fitting.request import refuse_faults
from trimtab._fitting.settlement import AnyOutcome, FitOutcome, Settlement
from trimtab._fitting.stale import fill_room, first_change, stale_note, without_stale
from trimtab._shared.checks import move_to_source
from trimtab._shared.steps import Steps, drive
from trimtab.budget import Budget, within
from trimtab.conversation import History
from trimtab.conversation.pairing import is_paired
from trimtab.conversation.units import Span
from trimtab.counting.margin import known_margin, margin_of, unsure_of
from trimtab.counting.sizes import Shares, Sizes
from trimtab.errors import CountingError, FormatError, StrategyContractError
from trimtab.formats import mapping_of
from trimtab.strategies.base import EvictionRequest, Strategy, landmarks, reads_newest, shrinks, waits
from trimtab.strategies.cuts import count_back, near_cut
from trimtab.strategies.runner import Settled, steps

if TYPE_CHECKING:
    from trimtab._fitting.layout import Composition
    from trimtab.report import Violation

__all__ = ["ask_portion", "counted_back", "fresh_of", "give_way", "need_tokens", "settle", "settle_fit"]

L = TypeVar("L", bound="Work | Composition")
"""A request laid out: the one block of `fit`, or the blocks of a `Context`."""

Within: TypeAlias = "Callable[[L, Budget | None], Steps[AnyOutcome]]"
"""Settles what stays within a budget that has a number for a margin; yields what it needs from outside.

Without a budget all of it stays but what passes a cap in tokens.
"""

Answer: TypeAlias = tuple[EvictionRequest, Settled]
"""What a strategy was asked, and what stays by its answer."""


def settle_fit(work: Work, /) -> Steps[Settlement]:
    """Settle what stays of the messages of `fit`; see `settle`."""
    return settle(work, _settle_history if work.ask.compact is None else _settle_compact)


def settle(layout: L, within: Within[L], /) -> Steps[Settlement]:
    """Settle what stays within the budget that was asked for, with marks for a prompt cache if they were.

    Args:
        layout: What was asked for.
        within: Settles it for a budget.
    """
    outcome = yield from _settle(layout, within, layout.asked)
    settlement = Settlement.of(outcome, partial(_settle_again, layout, within))
    return settlement if layout.mark is None else with_breakpoints(settlement, layout.mark)


def _settle_again(layout: L, within: Within[L], budget: Budget) -> AnyOutcome:
    """Settle for another budget; callbacks hold, and no summarizer is asked."""
    return drive(_settle(layout, within, budget), planned=True)


def _settle(layout: L, within: Within[L], budget: Budget | None) -> Steps[AnyOutcome]:
    if budget is not None and budget.margin == "auto":
        return _hold_margin(layout, within, budget)
    return within(layout, budget)


def _hold_margin(layout: L, settle_within: Within[L], budget: Budget) -> Steps[AnyOutcome]:
    """Settle so that the margin holds for what stays: what nobody can know of it is known once it is settled.

    With the tools' part of it first; if what stays has more that nobody can know, again with that, and
    then with all there is in the input, of which what stays can only be a part.
    """
    counter, tools, format = layout.counter, layout.tools, layout.format
    made = yield from settle_within(layout, within(budget, counter, tools))
    if known_margin(counter, 0) is None or counter.unsure_tokens(None) is None:
        return made
    room_tokens = replace(budget, margin=0).input_tokens

    def unsure_in(messages: Iterable[Any]) -> int:
        pieces = [format.pieces(mapping_of(message)) for message in messages]
        return unsure_of(counter, tools, pieces) or 0

    for widest in (False, True):
        if not made.fits:
            return made  # and with less room it would not either
        unsure_tokens = unsure_in(made.output())
        if made.tokens + margin_of(counter, made.tokens) + unsure_tokens <= room_tokens:
            return made
        if widest:
            unsure_tokens = unsure_in(layout.everything)
        made = yield from settle_within(layout, budget.resolved(counter, unsure_tokens=unsure_tokens))
    return made


# One block.


def _settle_compact(work: Work, budget: Budget | None) -> Steps[FitOutcome]:
    """Settle with results written otherwise, for what turns out to be there."""
    # not above: loaded by who asks for it
    from trimtab._fitting.compaction import ALL, settle_compact

    compact = work.ask.compact
    return (
        yield from settle_compact(
            lambda windows: _settle_history(work.written_for(compact, windows.get(work.name, ALL)), budget),
            lambda made: [made],
            [(work, compact)],
            (type(work.strategy), budget),
        )
    )


def _settle_history(work: Work, budget: Budget | None) -> Steps[FitOutcome]:
    """Settle what stays of the one block of `fit`.

    Raises:
        StrategyContractError: The strategy broke its contract.
    """
    history, bound = work.history, work.history.thinking.bound
    try:
        budget = Budget(max(1, _whole_tokens(work))) if budget is None else budget
        limit, fresh = budget.input_tokens, partial(fresh_of, work, known=work.ask.stale)
        need = need_tokens(work, limit)
        if need <= limit:
            request = EvictionRequest(history, work.sizes, limit_tokens=limit, block=work.name)
            settled = Settled(cut=0, tokens=need)
            settled = fresh(request, settled) if bound else settled
        else:
            ask = partial(ask_portion, work, always=limit, cut_newest=work.ask.cut_newest)
            request, settled = yield from give_way(work, limit, ask, fresh)
        if work.unmended and not settled.fits:
            return (yield from _settle_history(work.mended_first, budget))
        if work.unmended and not work.is_sound(settled.cut, settled.before):
            return (yield from _settle_history(work.mended_further(settled.cut), budget))
        history.look_over(settled.cut, also=settled.before)
    except (CountingError, FormatError) as error:
        move_to_source(error, lead=work.lead, origin=work.origin)
        raise
    if bound and (stale := sum(why == "bound_thinking" for why in settled.reasons.values())):
        settled.notes = (*settled.notes, stale_note(stale))
    outcome = FitOutcome(portion=work, settled=settled, request=request, budget=budget)
    if work.ask.repair and outcome.fits and (refused := work.refusals(outcome.messages())):
        if work.unmended:
            return (yield from _settle_history(work.mended_further(settled.cut), budget))
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


def need_tokens(portion: Portion, room_tokens: int) -> int:
    """Return the size of a portion; counted only until it passes the room, unless all of it must stay."""
    history, sizes = portion.history, portion.sizes
    if not portion.whole and sizes.additive and counted_back(history, sizes, room_tokens) > history.head:
        return room_tokens + 1
    return _whole_tokens(portion)


def _whole_tokens(portion: Portion) -> int:
    """Count all there is of a portion, and what is charged beside it."""
    history, sizes = portion.history, portion.sizes
    if isinstance(sizes, Shares):
        history.look_over(0)  # a black box reads all there is
        return sizes.whole(history.originals)
    sizes.count_each()
    return sizes.fixed_tokens(history.leads_system) + sizes.total(0, history.count)


def counted_back(history: History, sizes: Sizes, limit_tokens: int) -> int:
    """Count back until the limit is passed.

    A counter that fails on a message of which nobody knows what it is, fails because of that.
    """
    try:
        return count_back(history, sizes, limit_tokens)
    except CountingError as error:
        if error.index is not None:
            history.look_over(error.index)
        raise


def fresh_of(
    portion: Portion, request: EvictionRequest, settled: Settled, *, known: Collection[int] = ()
) -> Settled:
    """Return what stays of a portion without thinking that went stale by what was evicted of itself."""
    return without_stale(portion, request, settled, start=first_change(portion, settled), known=known)


def give_way(
    portion: Portion,
    limit_tokens: int,
    ask: Callable[[int], Steps[Answer]],
    fresh: Callable[[EvictionRequest, Settled], Settled],
) -> Steps[Answer]:
    """Ask what stays of a portion; where thinking is bound, what goes stale makes room for more."""
    if not portion.history.thinking.bound:
        return ask(limit_tokens)

    def within(room_tokens: int) -> Steps[Answer]:
        # A strategy is asked only about what does not fit: one that counts back takes that for granted, and
        # would let go of the oldest message where, of a larger room, all may stay.
        need = need_tokens(portion, room_tokens) if room_tokens > limit_tokens else room_tokens + 1
        if need > room_tokens:
            return (yield from ask(room_tokens))
        request = EvictionRequest(
            portion.history, portion.sizes, limit_tokens=room_tokens, block=portion.name
        )
        return request, Settled(cut=0, tokens=need)

    return fill_room(portion, within, fresh, limit_tokens=limit_tokens)


def ask_portion(
    portion: Portion,
    limit_tokens: int,
    *,
    always: int,
    led: bool = False,
    question: Callable[[], str] | None = None,
    cut_newest: bool = False,
) -> Steps[Answer]:
    """Ask its strategy what stays of a portion; yields what it needs from outside.

    It is asked of the units near the cut and at the end alone, as long as it asks for no others. That holds
    if it promised to read no others, or stopped on its way back; else it is asked again, of all there are.

    Args:
        portion: What it is asked about.
        limit_tokens: What that may come to.
        always: The limit that is the same from call to call.
        led: Whether something in front of it surely may come first.
        question: Finds what the user wrote last, where that may stand in another portion.
        cut_newest: Whether the newest unit is cut where the strategy leaves too little room for it.
    """
    strategy, history, sizes = portion.strategy, portion.history, portion.sizes
    make = partial(
        EvictionRequest,
        history,
        sizes,
        limit_tokens=limit_tokens,
        constant_limit_tokens=always,
        block=portion.name,
        led=led,
        question=question,
    )
    if sizes.additive and not waits(strategy):
        counted = counted_back(history, sizes, limit_tokens)
        near = partial(_near, strategy, history, sizes, limit_tokens, always, counted)
        request = make(near=near, reads_newest=reads_newest(strategy, history))
        try:
            settled = yield from steps(strategy, request, cut_newest=cut_newest)
            if _is_sure(request, settled):
                return request, settled
        except StrategyContractError:
            if not request.is_near and request.is_sure(lambda _: True):
                raise
    request = make()  # also: how much it takes at least is told by all there is
    settled = yield from steps(strategy, request, cut_newest=cut_newest)
    return request, settled


def _near(
    strategy: Strategy,
    history: History,
    sizes: Sizes,
    limit_tokens: int,
    always: int,
    counted: int,
) -> tuple[list[Span] | None, int, bool]:
    """Tell apart what is near the cut for a strategy."""
    return near_cut(
        history,
        sizes,
        limit_tokens=limit_tokens,
        counted=counted,
        also=landmarks(strategy, history),
        shrinks=shrinks(strategy, history, sizes, limit_tokens=always),
    )


def _is_sure(request: EvictionRequest, settled: Settled) -> bool:
    """Tell whether an answer is that to all units, though it may have been asked of those near the cut."""
    if request.is_near and not (settled.fits and (not settled.edits or _is_newest_sure(request, settled))):
        return False
    if request.is_near and not request.reads_newest and not _is_run(request, settled):
        return False
    return request.is_sure(settled.keeps)


def _is_newest_sure(request: EvictionRequest, settled: Settled) -> bool:
    """Tell whether what was cut of the newest unit is of no other: near a cut, ids are not looked at."""
    history, newest = request.history, request.told[-1][0]
    cut = any(index >= newest for index in settled.edits)
    return not cut or is_paired(history.format, history.messages[newest:])


def _is_run(request: EvictionRequest, settled: Settled) -> bool:
    """Tell whether what stays is all from one message on, as it was, beside what must stay and opens that."""
    if settled.edits or settled.partial or settled.insertions:
        return False
    stay = {index for span in request.told if span[2] != "free" for index in range(span[0], span[1])}
    beside = [index for index in settled.before if index not in stay]
    return not beside or beside == [request.history.user_at_or_before(settled.cut)]
