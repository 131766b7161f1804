"""What a strategy answers when it is asked without a fit around it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from trimtab.strategies import EvictionRequest, Strategy


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What stays, and what a request of it costs."""

    kept: Collection[int]
    """Messages that stay, whole: no form here has units that share one."""
    tokens: int
    fits: bool = True
    edits: dict[int, dict[Any, str]] | None = None
    inserted: tuple[Any, ...] = ()
    reason: str = ""
    needed_tokens: int | None = None

    def keeps(self, index: int) -> bool:
        """Tell whether a message stays."""
        return index in self.kept


def answer_of(strategy: Strategy, request: EvictionRequest) -> Answer:
    """Ask a strategy, and read its answer as `EvictionResult` says."""
    result = strategy.evict(request)
    named = {unit.indices for unit in result.kept}
    units = [
        unit
        for unit in request.units
        if unit.indices in named
        or (result.cut is not None and (unit.first >= result.cut or unit.state != "free"))
    ]
    edits: dict[int, dict[Any, str]] = {}
    for edit in result.edits:
        edits.setdefault(edit.index, {}).update(edit.texts)
    return Answer(
        kept=[index for unit in units for index in unit.indices],
        tokens=request.total(units, edits=edits, insertions=result.insertions),
        fits=result.fits,
        edits=edits,
        inserted=tuple((one.at, one.message) for one in result.insertions),
        reason=result.reason,
        needed_tokens=result.needed_tokens,
    )
