"""Strategies of somebody's own, as docs/strategies.md has them, for tests and the bench."""

from __future__ import annotations

from trimtab import SlidingWindow
from trimtab.conversation import History
from trimtab.strategies import EvictionRequest, EvictionResult


class Unchanged(SlidingWindow):
    """A class derived from a strategy, which changes nothing."""


class FromNewest:
    """A strategy that walks back from the newest unit, and stops."""

    name = "from_newest"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep what fits from the newest unit back."""
        room, taken = request.room_tokens, set()
        for unit in request.newest_first():
            if not request.stays(unit):
                room -= request.size(unit)
                if room < 0:
                    break
            taken.add(id(unit))
        kept = [unit for unit in request.units if id(unit) in taken or request.stays(unit)]
        return EvictionResult(kept=kept, fits=request.fits(kept))


class HoldsOld(SlidingWindow):
    """A window beside which an old message stays, which it tells of as a landmark and holds."""

    def landmarks(self, history: History, /) -> tuple[int, ...]:
        """The fifth message, wherever the cut falls."""
        return (min(4, history.count - 1),) if history.count else ()

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Hold it, and cut."""
        return super().evict(request.hold(self.landmarks(request.history)))
