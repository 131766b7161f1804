"""What a provider reported for a view: with it, another counter keeps a budget in the provider's tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from trimtab.budget import MOST_TOKENS
from trimtab.counting.baseline import Factor, Learned


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The report for one view, and what was learned from all reports of the session."""

    tokens: int = 0
    """What the provider reported for the view, and for the answer to it if that is known; 0: nothing."""
    counted_tokens: int = 0
    """The counter's count for the same."""
    first: int = 0
    """Version of the oldest message of that view; 0: it had none."""
    learned: Learned = field(default_factory=Learned)
    """What was learned from reports; older ones count less."""

    def expected_tokens(self, counted_tokens: int, /) -> int:
        """Return the expected bill for a view with this many counted tokens."""
        more = counted_tokens - self.counted_tokens
        if not self.tokens:
            return counted_tokens
        if more >= 0:
            return self.tokens + self.learned.factor.of(more)
        return max(0, self.tokens + self._less.of(more))

    def room_tokens(self, budget_tokens: int, /) -> int:
        """Return a budget in the counter's tokens: the most that is expected to be billed within it."""
        if not self.tokens:
            return budget_tokens
        left = budget_tokens - self.tokens
        billed, counted = self.learned.factor if left >= 0 else self._less
        # In whole numbers, rounded down: each process comes to the same room, and no view is a token over.
        return min(MOST_TOKENS, max(0, self.counted_tokens + left * counted // billed))

    @property
    def _less(self) -> Factor:
        """What leaves frees no more than the average did: something unseen may be behind the rest."""
        factor, average = self.learned.factor, Factor(self.tokens, max(1, self.counted_tokens))
        lower = (
            average.reported_tokens * factor.counted_tokens < factor.reported_tokens * average.counted_tokens
        )
        return average if lower else factor

    def to_dict(self) -> dict[str, Any]:
        """Write the values that differ from the initial ones."""
        return {name: value for name, value in self._as_data().items() if value}

    def _as_data(self) -> dict[str, Any]:
        """Write everything, under the names that a state in a log uses."""
        return {
            "usage_tokens": self.tokens,
            "usage_counted": self.counted_tokens,
            "usage_first": self.first,
            "learned_reported": self.learned.reported_tokens,
            "learned_counted": self.learned.counted_tokens,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Self:
        """Read it from a stored state."""
        return cls(
            tokens=data.get("usage_tokens", 0),
            counted_tokens=data.get("usage_counted", 0),
            first=data.get("usage_first", 0),
            learned=Learned(
                counted_tokens=data.get("learned_counted", 0),
                reported_tokens=data.get("learned_reported", 0),
            ),
        )


NAMES = frozenset(Calibration()._as_data())
"""What a state in a log has of it."""
