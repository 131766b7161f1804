"""`Cascade`: cheap steps first, measured again after each, until it fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from trimtab._shared.steps import Steps
from trimtab.conversation import History
from trimtab.conversation.units import unit_of
from trimtab.counting.sizes import Sizes
from trimtab.errors import ConfigurationError
from trimtab.strategies.base import (
    Edit,
    EvictionRequest,
    EvictionResult,
    Reads,
    Strategy,
    as_strategy,
    asks_model,
    clears_results,
    follows_plan,
    has_last_word,
    landmarks,
    reads_newest,
    shrinks,
    strategy_data,
    waits,
)
from trimtab.strategies.cuts import Shrinks
from trimtab.strategies.openers import fit_in_order
from trimtab.strategies.rows import span_stays
from trimtab.strategies.runner import check_step, checked_answer
from trimtab.strategies.summarizer import drive

__all__ = ["Cascade"]


class Cascade:
    """Run strategies in turn, each on the result of the one before, until it fits.

    Later steps may shorten what an earlier step protects by its options, but may not evict it.

    Args:
        steps: The strategies, cheapest first, as separate arguments, not as a list.

    Raises:
        ConfigurationError: No strategy is given, or an argument is not a strategy.

    Example:
        >>> from trimtab import Cascade, ClearToolResults, SlidingWindow
        >>> Cascade(ClearToolResults(keep_results=2), SlidingWindow()).name
        'cascade'
    """

    __slots__ = (
        "_leaves",
        "_makes_small",
        "_skipped",
        "asks_model",
        "clears_results",
        "has_last_word",
        "reads",
        "steps",
    )

    def __init__(self, *steps: Strategy) -> None:
        if not steps:
            raise ConfigurationError("Cascade needs at least one strategy")
        for step in steps:
            as_strategy(step)
        self.steps = steps
        """The strategies, cheapest first, as separate arguments, not as a list."""
        self.asks_model = any(map(asks_model, steps))
        """True if one of the steps asks a model."""
        self.has_last_word = has_last_word(steps[-1])
        """True if nothing is to be tried behind its last step."""
        one_by_one = _one_by_one(steps)
        leaves = next((at for at, step in enumerate(one_by_one) if not clears_results(step)), None)
        self._leaves = None if leaves is None else one_by_one[leaves]
        self._makes_small = one_by_one[: leaves or 0]
        inner = (at for at, step in enumerate(steps) if isinstance(step, Cascade))
        self._skipped = min(leaves or 0, next(inner, len(steps)))
        self.clears_results = bool(leaves)
        """True if the first steps make results smaller before anything is evicted."""
        self.reads: Reads = "newest" if reads_newest(self._leaves) else "all"
        """What the first step that evicts something reads; the others get what it keeps."""

    def __repr__(self) -> str:
        return f"Cascade({', '.join(map(repr, self.steps))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cascade) and self.steps == other.steps

    def __hash__(self) -> int:
        return hash(("cascade", self.steps))

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "cascade"

    def reads_in(self, history: History, /) -> Reads:
        """Say which messages the decision depends on.

        Args:
            history: The conversation.
        """
        return "newest" if reads_newest(self._leaves, history) else "all"

    def landmarks(self, history: History, /) -> set[int]:
        """List the messages a step depends on, however old they are.

        Args:
            history: The conversation.
        """
        return {index for step in self.steps for index in landmarks(step, history)}

    def shrinks(self, history: History, sizes: Sizes, /, *, limit_tokens: int) -> Shrinks | None:
        """Say what the steps may shorten before anything is evicted.

        Args:
            history: The conversation.
            sizes: The sizes of its messages.
            limit_tokens: The limit that is the same for every call.
        """
        found: Shrinks | None = None
        for step in self._makes_small:
            made = shrinks(step, history, sizes, limit_tokens=limit_tokens)
            found = made if found is None or made is None else found.together(made)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`.

        Raises:
            ConfigurationError: A step is of a class that cannot be written as data.
        """
        return {"kind": self.name, "steps": [strategy_data(step) for step in self.steps]}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Run the steps, and stop at the first whose result fits.

        Raises:
            StrategyContractError: A step breaks its contract; the error names it.
        """
        at = 0
        if self._skipped and request.told and request.holds_nothing_large:
            at, request.holds_nothing_large = self._skipped, False
        step, later = self.steps[at], request.later
        if waits(step):
            return drive(self.evicting(request))
        # Mostly one answer is all there is, and a generator for it would cost as much as a check.
        request.later = (*self.steps[at + 1 :], *later)
        answer = self._looked_over(at, step.evict(request), request)
        return answer if answer.fits else drive(self._going_on(request, answer, later, at=at))

    def evicting(self, request: EvictionRequest, /) -> Steps[EvictionResult]:
        """Run the steps; yields the questions that need an answer from outside.

        Args:
            request: As for `evict`.
        """
        later, request.later = request.later, (*self.steps[1:], *request.later)
        answer = yield from self._ask(0, request)
        return answer if answer.fits else (yield from self._going_on(request, answer, later))

    def _going_on(
        self, request: EvictionRequest, answer: EvictionResult, later: tuple[Strategy, ...], *, at: int = 0
    ) -> Steps[EvictionResult]:
        """Run the steps after one whose result does not fit.

        Args:
            request: What that was asked.
            answer: What it answered.
            later: Steps that go on behind these.
            at: Its place among the steps.
        """
        left, reason, actions, notes, cause = (
            request.after(answer),
            answer.reason,
            answer.actions or (),
            answer.notes,
            answer.cause,
        )
        before = request
        for place, step in enumerate(self.steps[at + 1 :], at + 1):
            left.later = (*self.steps[place + 1 :], *later)
            cuts = left.planned_cut > 0 and follows_plan(step)
            known = left is before or left.is_near  # what was measured, or is too much, does not fit
            if not (cuts or known) and (left.fits(left.told_units) or fit_in_order(left, left.told_units)):
                answer = EvictionResult()
                break
            answer = yield from self._ask(place, left)
            actions, notes = (*actions, *(answer.actions or ())), (*notes, *answer.notes)
            cause = answer.cause if cause is None else cause
            if answer.fits and (cut := _as_cut(left, answer)) is not None:
                return replace(cut, actions=tuple(dict.fromkeys(actions)), reason=reason, notes=notes)
            before, left = left, left.after(answer)
            if answer.fits:
                break
        return EvictionResult(
            kept=left.told_units,
            edits=[Edit(index=index, texts=texts) for index, texts in left.edits.items()],
            fits=answer.fits,
            actions=tuple(dict.fromkeys(actions)),
            reason=reason,
            needed_tokens=answer.needed_tokens,
            protected=left.protected,
            insertions=left.insertions,
            notes=notes,
            planned_cut=left.planned_cut,
            cause=cause,
            cannot_lead=answer.cannot_lead,
        )

    def _ask(self, at: int, request: EvictionRequest) -> Steps[EvictionResult]:
        """Ask a step and check its answer."""
        step = self.steps[at]
        answer = (yield from cast("Any", step).evicting(request)) if waits(step) else step.evict(request)
        return self._looked_over(at, answer, request)

    def _looked_over(self, at: int, answer: EvictionResult, request: EvictionRequest) -> EvictionResult:
        """Check an answer, so that the error names the step."""
        step = self.steps[at]
        name = f"{step.name}, step {at + 1} of a cascade,"
        check_step(request, answer := checked_answer(answer, request, name), name)
        return answer if answer.actions is not None else replace(answer, actions=(step.name,))


def _as_cut(request: EvictionRequest, result: EvictionResult) -> EvictionResult | None:
    """Return a cut with what earlier steps edited of what it keeps; None if more than that was done.

    A cut is settled by what stands before it, where units are looked at one by one.
    """
    cut, edits = result.cut, request.edits
    if cut is None or not request.is_whole or request.insertions or not request.additive:
        return None
    if result.edits or result.insertions or request.history.ordered:
        return None
    if edits and any(span[0] < cut < span[1] for span in request.told):
        return None  # what stands behind the cut may leave with its unit, which begins before it
    if any(map(cut.__gt__, edits)):
        if any(span[4] is not None and span[4].parts for span in request.told):
            return None
        also = {unit.first for unit in result.kept}
        before = (span for span in request.told if span[0] < cut)
        beside = [unit_of(span) for span in before if span[0] in also or span_stays(request, span)]
        there = {index for unit in beside for index in unit.indices}
        edits = {index: texts for index, texts in edits.items() if index >= cut or index in there}
    return EvictionResult(
        cut=cut,
        kept=result.kept,
        edits=[Edit(index=index, texts=texts) for index, texts in edits.items()],
        protected=request.protected | result.protected,
        planned_cut=request.planned_cut,
        cannot_lead=result.cannot_lead,
    )


def _one_by_one(steps: Iterable[Strategy]) -> list[Strategy]:
    """List steps, and in place of a Cascade among them its own."""
    listed: list[Strategy] = []
    for step in steps:
        listed += _one_by_one(step.steps) if isinstance(step, Cascade) else [step]
    return listed
