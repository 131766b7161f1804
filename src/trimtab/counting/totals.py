"""Counts that go by the total of the latest bill: what a session does, for who sends whole conversations.

A `UsageBaseline` shares each bill out among its messages, which takes as long as ten fits of them. Here a
bill moves two numbers: a factor for every message, and what was billed beside all that is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

from trimtab.counting.base import AdditiveCounter, counter_name
from trimtab.counting.baseline import NOTHING_LEARNED, Factor, FactorCounter, Learned, nearest
from trimtab.counting.sizes import Fixed, known_fixed_count
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, Prices

_EVEN = Factor(1, 1)


class TotalBaseline(FactorCounter):
    """A counter that gives for a request that was billed what was billed.

    It never changes: `with_bill` returns another, so that a fit asks one and the same to its end.

    Args:
        counter: What estimates.
    """

    def __init__(self, counter: AdditiveCounter, /) -> None:
        super().__init__(counter, _EVEN)
        self.name = counter_name(counter)
        self.bills = 0
        """How many were taken in."""
        self._bill_tokens = self._counted_tokens = 0
        """The latest bill, and what the counter inside gives for its request."""
        self._learned: Learned = NOTHING_LEARNED
        self._unseen_tokens = 0
        """What is billed beside the messages and is not counted; below zero: what is counted too much."""
        self._held_tokens = 0
        """What the server puts before the messages by itself, where it said how much that is."""

    @property
    def estimates(self) -> bool:
        """Whether anything here may be off: a tokenizer that is the model's own is not."""
        return not self._counter.exact

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter for another wire form."""
        return self._with_counter(self._counter.with_format(format))

    def charge_as(self, format: str | Format, /) -> Self:
        """Return the same counter for messages sent in another wire form."""
        return self._with_counter(self._counter.charge_as(format))

    # -- plain data

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as plain data."""
        return {
            "counter": counter_name(self._counter),
            "bills": self.bills,
            "bill": self._bill_tokens,
            "counted": self._counted_tokens,
            "unseen": self._unseen_tokens,
            "factor": [*self._factor],
            "learned": self._learned.to_dict(),
        }

    def with_data(self, data: Mapping[str, Any], /) -> Self:
        """Return the counter that learned what data says.

        Args:
            data: What `to_dict` returned of one that counts as this one does.

        Raises:
            ConfigurationError: It is of another counter, or is no such data.
        """
        twin = copy(self)
        try:
            billed, counted = data["factor"]
            numbers = data["bills"], data["bill"], data["counted"], data["unseen"], billed, counted
            twin.bills, twin._bill_tokens, twin._counted_tokens, twin._unseen_tokens = numbers[:4]
            twin._learned, name = Learned.from_dict(data["learned"]), data["counter"]
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"what a counter learned cannot be read: {error!r:.200}") from error
        if any(type(one) is not int for one in numbers) or min(*numbers[:3], billed - 1, counted - 1) < 0:
            raise ConfigurationError(f"what a counter learned must be whole numbers, not {data!r:.200}")
        if name != counter_name(self._counter):
            raise ConfigurationError(f"it was learned for the counter {name!r:.80}, not for this one")
        twin._factor = Factor(billed, counted)
        twin.name = f"{name}, calibrated" if twin.bills else self.name
        return twin

    # -- counting

    def count_text(self, text: str, /) -> int:
        """Count a bare text, by what was learned."""
        return self._correct(self._counter.count_text(text))

    def count_message(self, message: Any, /) -> int:
        """Count a message, by what was learned."""
        return self._correct(self._counter.count_message(message))

    @property
    def prices(self) -> Prices | None:
        """What plain messages cost: as the counter inside says, times the factor."""
        prices, (times, by) = self._counter.prices, self._factor
        return prices if prices is None or times == by else replace(prices, scale=(times, by))

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Return what the bill leaves beside the messages; what changed since is estimated."""
        counted = self.fixed_counted(system, tools, has_system=has_system, extra=extra)
        return max(0, self._factor.of(counted) + self._unseen_tokens) + self._held_tokens

    def fixed_counted(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Return what the counter inside gives for what stands beside the messages."""
        return known_fixed_count(self._counter, Fixed(system, tools, extra), has_system).tokens

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be above the count of a whole request."""
        tokens = max(0, tokens - self._held_tokens)
        inside = self._counter.margin_tokens(tokens)
        return self._learned.margin_of_request(tokens, self._bill_tokens, inside)

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be below the count of a whole request."""
        tokens = max(0, tokens - self._held_tokens)
        inside = self._counter.over_margin_tokens(tokens)
        return self._learned.margin_of_request(tokens, self._bill_tokens, inside)

    # -- what the provider said

    def with_held(self, tokens: int, /) -> Self:
        """Return the same counter for requests to which a server adds what it holds; bills are without it."""
        if tokens == self._held_tokens:
            return self
        twin = copy(self)
        twin._held_tokens = tokens
        return twin

    def as_factor(self) -> Self | None:
        """Return the counter for whom the latest bill was the price of what was counted, with nothing beside.

        None: nothing was billed beside it, or no price explains so much.
        """
        counted, billed = self._counted_tokens, self._bill_tokens
        if self._unseen_tokens <= 0 or not self._learned.believable(counted, billed):
            return None
        twin = copy(self)
        twin._factor, twin._unseen_tokens = Factor(billed, counted), 0
        return twin

    def plain_count(self, of: int, /, *, fixed_counted: int) -> int:
        """Return what the counter inside gives for a request.

        Args:
            of: What this counter gives for it, without what the server holds.
            fixed_counted: As for `with_bill`.
        """
        return self._messages_counted(of, fixed_counted) + fixed_counted

    def _messages_counted(self, of: int, fixed_counted: int) -> int:
        times, by = self._factor
        fixed = max(0, self._factor.of(fixed_counted) + self._unseen_tokens)
        return nearest(max(0, of - fixed) * by, times)

    def with_bill(self, tokens: int, /, *, of: int, fixed_counted: int, goes_on: bool) -> Self:
        """Return the counter that a bill leaves.

        Args:
            tokens: What was billed for a request.
            of: What this counter gives for that.
            fixed_counted: What the counter inside gives for what stands beside its messages.
            goes_on: Whether it holds what was billed before, and what is newer.
        """
        messages = self._messages_counted(of, fixed_counted)
        counted, learned = messages + fixed_counted, self._learned
        if not self._bill_tokens:
            learned = learned.with_first_report(counted, tokens, messages_tokens=messages)
        elif goes_on:
            learned = learned.with_deviation(max(0, of - self._bill_tokens), abs(tokens - of))
            learned = learned.with_report(counted - self._counted_tokens, tokens - self._bill_tokens)
        # What leaves frees no more than was billed for all.
        factor = learned.factor if learned.factor.of(messages) <= tokens else Factor(tokens, messages)
        twin = copy(self)
        twin.bills = self.bills + 1
        twin._bill_tokens, twin._counted_tokens, twin._learned, twin._factor = (
            tokens,
            counted,
            learned,
            factor,
        )
        twin._unseen_tokens = tokens - factor.of(messages) - factor.of(fixed_counted)
        twin.name = f"{counter_name(self._counter)}, calibrated"
        return twin
