"""How long many things are: their sum, mean and percentiles, of numbers that are all that is kept."""

from __future__ import annotations

from array import array
from math import ceil

__all__ = ["Lengths"]

HUNDREDTHS = (50, 90, 99)
"""The percentiles that are told."""


class Lengths:
    """Numbers of which the mean and percentiles are asked: each is kept, as eight bytes."""

    def __init__(self) -> None:
        self._numbers = array("Q")

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int) -> None:
        """Take one more."""
        self._numbers.append(number)

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(self._numbers)

    def facts(self) -> dict[str, int | float]:
        """Give mean, percentiles and the largest; the percentile is the least that so many do not pass."""
        numbers = sorted(self._numbers)
        count = len(numbers)
        if not count:
            return {}
        found = {f"p{part}": numbers[max(0, ceil(count * part / 100) - 1)] for part in HUNDREDTHS}
        return {"mean": round(sum(numbers) / count, 1), **found, "max": numbers[-1]}

    def sentence(self) -> str:
        """Say the same in a few words."""
        found = self.facts()
        if not found:
            return ""
        return (
            f"{found['mean']:,.0f} on average, half up to {found['p50']:,}, 90 % up to {found['p90']:,},"
            f" the longest {found['max']:,}"
        )
