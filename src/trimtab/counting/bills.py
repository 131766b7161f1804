"""How bills are shared out among the messages that were billed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.counting.learned import NOTHING_LEARNED, Learned

__all__ = ["Bill", "Bills", "bounded"]

_MOST_SIZES = 65_536
"""Messages whose share of a bill is remembered; about 150 bytes each."""

_NARROW = (4, 5)
"""How far shares of earlier bills are moved at most, when a later bill of other messages demands it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bills:
    """What the bills so far say; replaced as a whole, so that no thread sees half of one."""

    model: str | None = None
    total_tokens: int = 0
    """Input of the latest bill and, if known, the answer to it; 0: there is no bill."""
    fixed_tokens: int = 0
    """What the latest bill leaves for what stands beside the messages."""
    fixed_counted: int = 0
    """What the counter gives for the same."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Tokens of messages by content; never changed once it is here."""
    latest: frozenset[str] = frozenset()
    """The messages of the latest bill."""
    learned: Mapping[str, Learned] = field(default_factory=dict)
    """By model; "" where nobody named one."""

    @property
    def of_model(self) -> Learned:
        """What was learned of the model in use."""
        return self.learned.get(self.model or "", NOTHING_LEARNED)


@dataclass(slots=True, kw_only=True)
class Bill:
    """One bill, to be shared out among what was billed."""

    tokens: int
    counted: dict[str, int]
    """Tokens the counter gives for each message, by content."""
    times: dict[str, int]
    """How often each content stands in the request."""
    fixed_counted: int

    def added_to(self, bills: Bills, model: str | None) -> Bills:
        """Share it out: what is new takes what earlier bills leave, the fixed part what is left over."""
        if model != bills.model:
            bills = Bills(model=model, learned=bills.learned)
        learned = bills.of_model
        if not bills.total_tokens:
            part = self._sum(self.counted)
            learned = learned.with_first_report(self.fixed_counted + part, self.tokens, messages_tokens=part)
            sizes = {key: learned.factor.of(size) for key, size in self.counted.items()}
        else:
            learned, sizes = self._after(bills, learned)
        over = self._sum(sizes) - self.tokens
        if over > 0:
            whole = self._sum(sizes)
            sizes = {key: size * self.tokens // whole for key, size in sizes.items()}
        return Bills(
            model=model,
            total_tokens=self.tokens,
            fixed_tokens=self.tokens - self._sum(sizes),
            fixed_counted=self.fixed_counted,
            sizes=bounded({**bills.sizes, **sizes}),
            latest=frozenset(sizes),
            learned={**bills.learned, model or "": learned},
        )

    def _after(self, bills: Bills, learned: Learned) -> tuple[Learned, dict[str, int]]:
        """Share it out where there are earlier bills; learn from it where it goes on from the latest."""
        factor = learned.factor
        known = {key: bills.sizes[key] for key in self.counted if key in bills.sizes}
        new = {key: size for key, size in self.counted.items() if key not in known}
        estimated = {key: factor.of(size) for key, size in new.items()}
        fixed = max(0, bills.fixed_tokens + factor.of(self.fixed_counted - bills.fixed_counted))
        left, counted = self.tokens - fixed - self._sum(known), self._sum(new)
        part = self._sum(estimated)
        goes_on = bills.latest <= self.counted.keys()
        if goes_on:
            learned = learned.with_deviation(part, abs(left - part))
        if goes_on and counted and learned.believable(counted, left):
            shares = {key: size * left // counted for key, size in new.items()}
            return learned.with_report(counted, left), {**known, **shares}
        sizes = {**known, **estimated}
        if goes_on:
            return learned, sizes  # something else came in or went: the fixed part takes it
        return learned, self._moved(sizes, self.tokens - fixed)

    def _moved(self, sizes: dict[str, int], tokens: int) -> dict[str, int]:
        """Move shares towards a sum, not far: what left with other messages may be behind the difference."""
        whole = self._sum(sizes)
        low, high = _NARROW
        to = min(max(tokens, whole * low // high), whole * high // low)
        return {key: size * to // whole for key, size in sizes.items()} if whole else sizes

    def _sum(self, sizes: Mapping[str, int]) -> int:
        return sum(size * self.times[key] for key, size in sizes.items())


def bounded(sizes: dict[str, int]) -> dict[str, int]:
    """Forget what was recorded first, if there is too much."""
    too_many = len(sizes) - _MOST_SIZES
    return dict(list(sizes.items())[too_many:]) if too_many > 0 else sizes
