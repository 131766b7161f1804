"""Recorded requests with our counts of them, and how far these are off."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.billed import Billed, Half, billed
from trimtab.counting import measure
from trimtab.errors import UnknownNameError

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TRIMTAB_DATA", ROOT.parent / "shared" / "data"))
LEAST_TOKENS, PART = 3, 0.02
"""A count is missed if it is farther off than so many tokens, and than so much of the bill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request with its bill and our count of it."""

    request: Billed
    tokens: int
    is_exact: bool
    margin_tokens: int | None
    """How far the bill may be above."""
    over_margin_tokens: int | None
    """And how far below."""
    unknown: tuple[str, ...] = ()
    others: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    """What other counters say, by name."""

    @property
    def apart(self) -> str | None:
        """Why it is no request of the table: its bill includes what it does not hold, or nobody knows."""
        if self.request.apart is None and self.unknown:
            return "named under `unknown`"
        return self.request.apart

    @property
    def off(self) -> int:
        """Tokens above the bill."""
        return self.tokens - self.request.tokens

    @property
    def missed(self) -> bool:
        """Whether the count is farther off than a few tokens or percent."""
        return is_missed(self.tokens, self.request.tokens)

    @property
    def error(self) -> float:
        """How far off, as a part of the bill."""
        return abs(self.off) / self.request.tokens

    @property
    def is_above(self) -> bool:
        """Whether the bill is above count and margin, or there is no margin: a budget may be passed."""
        return self.margin_tokens is None or -self.off > self.margin_tokens

    @property
    def is_below(self) -> bool:
        """Whether the bill is farther below the count than the margin says, or there is none."""
        return self.over_margin_tokens is None or self.off > self.over_margin_tokens

    @property
    def inside(self) -> bool:
        """Whether the bill lies within the margin on both sides."""
        return not self.is_above and not self.is_below


def is_missed(tokens: int | None, billed_tokens: int) -> bool:
    """Tell whether a count is farther off than the table allows; None is."""
    return tokens is None or abs(tokens - billed_tokens) > max(LEAST_TOKENS, PART * billed_tokens)


def cases(half: Half | None, data: Path = DATA) -> tuple[list[Case], dict[str, int]]:
    """Count every request of a half; also how many are of models nobody knows, by name."""
    found: list[Case] = []
    unnamed: dict[str, int] = defaultdict(int)
    for one in billed(data, half):
        try:
            count = measure(one.request, model=one.model, format=one.format)
        except UnknownNameError:
            unnamed[one.model] += 1
            continue
        found.append(
            Case(
                request=one,
                tokens=count.tokens,
                is_exact=count.exact,
                margin_tokens=count.margin_tokens,
                over_margin_tokens=count.over_margin_tokens,
                unknown=count.unknown,
            )
        )
    return found, unnamed
