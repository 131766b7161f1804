"""A factor learned from what a provider reported, and how far it may be off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, NamedTuple

from trimtab.errors import ConfigurationError

__all__ = ["NOTHING_LEARNED", "Factor", "Learned"]

# All of these were chosen on half of the recorded calls (by hash), 2026-11-22: pi_coding_sessions and the
# conversations of golden_usage that go on. Between half and twice of each the median error moves by less
# than 0.5 % of the new part; the table of `make accuracy` is of the other half.
_PRIOR_TOKENS = 200
"""How much the counter itself is believed: as if it had been right about so many tokens."""
_MOST_TOKENS = 1_024
"""What one report weighs at most, so that one long file does not decide alone."""
_FADES = (31, 32)
"""What is left of the weight of older reports after each new one: a conversation changes its kind of text."""
_WIDEST = 4
"""What is more than so many times off is no matter of a factor: something else came in or went."""
_UNITS = 1_000
"""Deviations are kept in thousandths."""
_KEPT = 16
"""Deviations remembered."""
_LEAST_TOKENS, _PARTS = 16, 10
"""What a new part is off by if all is well: framing that nobody tells of, and a tenth."""
_COLD, _SAFETY = 2_000, (5, 4)
"""How many times that is allowed for before anything is known, and above the worst seen since."""
_MOST = 9_000
"""Allowed for at most: a margin grows slower than what it is of, or a budget had no largest count."""


class Factor(NamedTuple):
    """How many tokens a provider bills for those that were counted."""

    reported_tokens: int
    counted_tokens: int

    def of(self, tokens: int, /) -> int:
        """Multiply, rounded up.

        Example:
            >>> Factor(11, 9).of(10)
            13
        """
        return -(-tokens * self.reported_tokens // self.counted_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What reports of one model in one conversation have taught."""

    counted_tokens: int = 0
    """Tokens the counter gave for what was new, older reports faded."""
    reported_tokens: int = 0
    """What the provider said of the same."""
    deviations: tuple[int, ...] = ()
    """How far off the latest predictions were, in thousandths of what is usual."""

    @property
    def factor(self) -> Factor:
        """What an estimate is multiplied with."""
        return Factor(_PRIOR_TOKENS + self.reported_tokens, _PRIOR_TOKENS + self.counted_tokens)

    def believable(self, counted_tokens: int, reported_tokens: int, /) -> bool:
        """Tell whether a factor can be behind two numbers."""
        return counted_tokens <= _WIDEST * reported_tokens and reported_tokens <= _WIDEST * counted_tokens

    def with_report(self, counted_tokens: int, reported_tokens: int, /) -> Learned:
        """Take in what a provider said of something the counter had counted."""
        if counted_tokens <= 0 or not self.believable(counted_tokens, reported_tokens):
            return self
        weight = min(counted_tokens, _MOST_TOKENS)
        return replace(
            self,
            counted_tokens=_part(self.counted_tokens, _FADES) + weight,
            reported_tokens=_part(self.reported_tokens, _FADES) + weight * reported_tokens // counted_tokens,
        )

    def with_first_report(
        self, counted_tokens: int, reported_tokens: int, *, messages_tokens: int
    ) -> Learned:
        """Take in the first bill of a conversation, which may hold what nobody counted.

        It weighs as much as its messages do: tools and system text say little of other texts.

        Of one that is higher a factor is believed by half (its root), the rest may be an unseen prompt: were
        that taken for a factor, messages that leave would seem to free more than they do; were a factor
        taken for a prompt, nothing that leaves would seem to free enough.
        """
        if not self.believable(counted_tokens, reported_tokens):
            return self
        believed = min(reported_tokens, isqrt(counted_tokens * reported_tokens))
        return self.with_report(messages_tokens, messages_tokens * believed // max(1, counted_tokens))

    def with_deviation(self, part_tokens: int, off_tokens: int, /) -> Learned:
        """Take in how far off a prediction of a new part was."""
        seen = (*self.deviations, _UNITS * off_tokens // _usual(part_tokens))
        return replace(self, deviations=seen[-_KEPT:])

    def margin_tokens(self, part_tokens: int, /) -> int:
        """Return how far off the next prediction of a part may be."""
        worst = max(_UNITS, _part(max(self.deviations), _SAFETY)) if self.deviations else _COLD
        return -(-_usual(part_tokens) * min(worst, _MOST) // _UNITS)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data."""
        return {
            "counted_tokens": self.counted_tokens,
            "reported_tokens": self.reported_tokens,
            "deviations": list(self.deviations),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Learned:
        """Read plain data.

        Raises:
            ConfigurationError: It is none that `to_dict` wrote.
        """
        try:
            found = cls(
                counted_tokens=data["counted_tokens"],
                reported_tokens=data["reported_tokens"],
                deviations=tuple(data["deviations"]),
            )
            numbers = (found.counted_tokens, found.reported_tokens, *found.deviations)
        except (KeyError, TypeError) as error:
            raise ConfigurationError(f"what was learned from usage cannot be read: {error}") from error
        if any(type(number) is not int or number < 0 for number in numbers):
            raise ConfigurationError(f"what was learned from usage is whole numbers, not {data!r:.80}")
        return found


NOTHING_LEARNED = Learned()


def _part(tokens: int, part: tuple[int, int]) -> int:
    return tokens * part[0] // part[1]


def _usual(part_tokens: int) -> int:
    return _LEAST_TOKENS + part_tokens // _PARTS
