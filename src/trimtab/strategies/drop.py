"""`Strict`, `Drop` and `DropNewest`: the strategies of a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from trimtab.conversation import Unit
from trimtab.conversation.units import span_of
from trimtab.strategies.base import EvictionRequest, EvictionResult

__all__ = ["Drop", "DropNewest", "Strict"]


@dataclass(frozen=True, slots=True)
class Strict:
    """Raise BudgetExceededError if the block does not fit.

    No other block gives way for it.
    """

    has_last_word: ClassVar[bool] = True
    """`fit` does not cut the newest unit instead."""

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "strict"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        return {"kind": self.name}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep everything and report that it does not fit."""
        return EvictionResult(kept=request.units, fits=False, actions=())


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop all free units of a block if the block does not fit."""

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "drop"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        return {"kind": self.name}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep what must be kept."""
        kept = [unit for unit in request.units if request.stays(unit)]
        return EvictionResult(
            kept=kept, fits=request.fits(kept), actions=("dropped",), reason="block_dropped"
        )


@dataclass(frozen=True, slots=True)
class DropNewest:
    """Drop the newest free units until the rest fits.

    For documents in order of rank, best first.
    """

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "drop_newest"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        return {"kind": self.name}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep as many of the oldest free units as fit with what must be kept."""
        units = list(request.units)
        free = [unit for unit in units if not request.stays(unit)]
        count = _fitting(request, units, free)
        if count is None:
            kept = [unit for unit in units if request.stays(unit)]
            return EvictionResult(kept=kept, fits=False, actions=("evicted",))
        return EvictionResult(kept=_first(request, units, free, count), actions=("evicted",))


def _first(request: EvictionRequest, units: list[Unit], free: list[Unit], count: int) -> list[Unit]:
    gone = set(map(id, free[count:]))
    return [unit for unit in units if id(unit) not in gone]


def _fitting(request: EvictionRequest, units: list[Unit], free: list[Unit]) -> int | None:
    """Return how many free units fit, oldest first; None if not even none."""
    stays = [unit for unit in units if request.stays(unit)]
    if not request.fits(stays):
        return None
    if request.additive:
        there: dict[int, set[int]] = {}
        leading = min([*stays[:1], *free[:1]], key=lambda unit: unit.indices, default=None)
        room = request.limit_tokens - request.costs.fixed_tokens(span_of(leading) if leading else None)
        used = sum(request.costs.unit(unit, there) for unit in stays)
        for count, unit in enumerate(free):
            used += request.costs.unit(unit, there)
            if used > room:
                return count
        return len(free)
    low, high = 0, len(free)
    while low < high:
        middle = (low + high + 1) // 2
        if request.fits(_first(request, units, free, middle)):
            low = middle
        else:
            high = middle - 1
    return low
