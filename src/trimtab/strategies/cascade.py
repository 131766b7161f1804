"""`Cascade`: cheap steps first, measured again after each, until it fits."""

from __future__ import annotations

from typing import Any

from trimtab.errors import ConfigurationError
from trimtab.strategies._base import Edit, EvictionRequest, EvictionResult, Strategy, kept_units, merge_edits

__all__ = ["Cascade"]


class Cascade:
    """Run strategies one after another on what the one before left, until it fits.

    Raises:
        ConfigurationError: No strategy is given, or something that is none.

    Example:
        >>> from trimtab import Cascade, ClearToolResults, SlidingWindow
        >>> Cascade(ClearToolResults(keep_results=2), SlidingWindow()).name
        'cascade'
    """

    __slots__ = ("steps",)

    def __init__(self, *steps: Strategy) -> None:
        if not steps:
            raise ConfigurationError("Cascade needs at least one strategy")
        for step in steps:
            if isinstance(step, type) or not callable(getattr(step, "evict", None)):
                raise ConfigurationError(f"Cascade: {step!r} is not a strategy (no evict method)")
        self.steps = steps
        """The strategies, cheapest first."""

    def __repr__(self) -> str:
        return f"Cascade({', '.join(map(repr, self.steps))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cascade) and self.steps == other.steps

    def __hash__(self) -> int:
        return hash(("cascade", self.steps))

    @property
    def name(self) -> str:
        """The word for it in reports and data."""
        return "cascade"

    def to_dict(self) -> dict[str, Any]:
        """Write it as data for `create_strategy`.

        Raises:
            ConfigurationError: A step is of a class that cannot be written as data.
        """
        from trimtab.strategies._data import strategy_data

        return {"kind": self.name, "steps": [strategy_data(step) for step in self.steps]}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Run the steps; the first that fits ends it."""
        result = self.steps[0].evict(request)
        if result.fits:
            return result
        actions = _actions(self.steps[0], result)
        reason = result.reason
        for step in self.steps[1:]:
            left = request.after(result)
            if left.fits(left.units):
                result = _joined(left, EvictionResult(kept=left.units))
                break
            answer = step.evict(left)
            actions = (*actions, *_actions(step, answer))
            result = _joined(left, answer)
            if answer.fits:
                break
        return EvictionResult(
            kept=result.kept,
            edits=result.edits,
            fits=result.fits,
            actions=tuple(dict.fromkeys(actions)),
            reason=reason,
            needed_tokens=result.needed_tokens,
        )


def _actions(step: Strategy, result: EvictionResult) -> tuple[str, ...]:
    return result.actions if result.actions is not None else (step.name,)


def _joined(left: EvictionRequest, answer: EvictionResult) -> EvictionResult:
    """Express a step's answer over the whole request: explicit units, all edits so far."""
    kept = kept_units(left, answer)
    edits = merge_edits(left.edits, {edit.index: edit.texts for edit in answer.edits})
    present = {index for unit in kept for index in unit.indices}
    return EvictionResult(
        kept=kept,
        edits=[Edit(index=i, texts=texts) for i, texts in edits.items() if i in present],
        fits=answer.fits,
        needed_tokens=answer.needed_tokens,
    )
