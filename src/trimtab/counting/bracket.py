"""The search for the most characters that fit, by sizes that need not be monotone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Bracket"]


@dataclass(slots=True, kw_only=True)
class Bracket:
    """Two numbers of kept code points: `low` fits, `high` does not; sizes in tokens."""

    low: int
    low_tokens: int
    high: int
    high_tokens: int
    stalls: int = 0
    """Steps that did not halve the bracket, less those that did."""

    def close(self, size: Callable[[int], int], *, limit_tokens: int) -> None:
        """Narrow it to two neighbours, asking for the sizes of few numbers between."""
        while self.high - self.low > 1:
            kept_chars = self.probe(limit_tokens)
            self.narrow(kept_chars, size(kept_chars), limit_tokens=limit_tokens)

    def narrow(self, kept_chars: int, tokens: int, *, limit_tokens: int) -> None:
        """Take in that keeping `kept_chars` costs `tokens`."""
        width = self.high - self.low
        if tokens <= limit_tokens:
            self.low, self.low_tokens = kept_chars, tokens
        else:
            self.high, self.high_tokens = kept_chars, tokens
        self.stalls = self.stalls + 1 if (self.high - self.low) * 2 > width + 1 else max(0, self.stalls - 1)

    def probe(self, limit_tokens: int) -> int:
        """Choose the next number of code points to try, strictly between the two."""
        under, over = limit_tokens - self.low_tokens, self.high_tokens - limit_tokens
        if max(under, over) <= _NEAR_TOKENS:
            return (self.low + self.high) // 2
        # From the nearer end to just past the limit, so that the bracket closes around it; farther past it
        # each time that fails, since then the text is not as even as the average takes it to be.
        aim_tokens = min(under, over) + _PAST_TOKENS * _PAST_GROWTH**self.stalls
        chars = max(1, int((self.high - self.low) * min(0.5, aim_tokens / (under + over))))
        return self.low + chars if under <= over else self.high - chars


_NEAR_TOKENS = 3
"""Nearer than this the average says nothing: halving needs fewer counts."""
_PAST_TOKENS, _PAST_GROWTH = 1.5, 8
