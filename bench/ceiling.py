"""The best that cuts could do under a prompt cache, if what is still to come were known.

Every sequence of cuts is weighed by dynamic programming over the calls: price by the rules of the provider,
and a price on room that stays empty, which `at_fill` turns until as much of the budget is used as is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from trimtab.replay import CachePricing

Messages = list[dict[str, Any]]
_HALVINGS = 7


@dataclass(frozen=True, slots=True)
class Course:
    """Where each call is cut, by how many messages it has; calls that fit whole are not among them."""

    cuts: dict[int, int]
    price: float
    fill: float


class Ceiling:
    """All cuts of one conversation in Chat Completions, which begins with one system message or none.

    A cut inside a turn keeps the message of the user that opened it, as the strategies do.

    Args:
        messages: The conversation.
        count: Tokens of a list of messages, which add up but for a fixed part.
        limit: Tokens that a call may have.
        pricing: Prices; any prefix of whole messages is served.
    """

    def __init__(
        self, messages: Messages, count: Callable[[Messages], int], limit: int, pricing: CachePricing
    ) -> None:
        roles = [message["role"] for message in messages]
        base = count([])
        self._messages, self._limit, self._pricing = messages, limit, pricing
        self._sizes = [count([message]) - base for message in messages]
        self._sums = [0, *accumulate(self._sizes)]
        self._head = int(roles[0] == "system")
        self._front = base + self._sums[self._head]
        self._opener = self._openers(roles)
        self._places = [at for at in range(self._head, len(roles)) if roles[at] != "tool"]
        calls = [end for end in range(1, len(roles)) if roles[end] == "assistant" != roles[end - 1]]
        if roles[-1] != "assistant":
            calls.append(len(roles))
        self._calls = [end for end in calls if self.tokens(self._head, end) > limit]

    def _openers(self, roles: Sequence[str]) -> list[int | None]:
        """Say for each place which message of the user stays before a cut there."""
        users = accumulate((at if role == "user" else -1 for at, role in enumerate(roles)), max)
        return [None if user in (-1, at) else user for at, user in enumerate(users)]

    def tokens(self, cut: int, end: int) -> int:
        """Return the tokens of a call of so many messages that is cut there."""
        user = None if cut == self._head else self._opener[cut]
        beside = 0 if user is None else self._sizes[user]
        return self._front + beside + self._sums[end] - self._sums[cut]

    def at_fill(self, fill: float) -> Course:
        """Return the cheapest course that uses at least this share of the limit on the mean."""
        low, high = 0.0, 2.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.course(middle).fill < fill else (low, middle)
        return self.course(high)

    def course(self, room_weight: float) -> Course:
        """Return the course that is best if an empty token of room costs so much at each call."""
        rows: list[dict[int, tuple[float, int]]] = []
        end_before: int | None = None
        for end in self._calls:
            rows.append(dict(self._row(end, end_before, rows[-1] if rows else {}, room_weight)))
            end_before = end
        cut = min(rows[-1], key=lambda at: rows[-1][at][0])
        cuts: dict[int, int] = {}
        for end, row in zip(reversed(self._calls), reversed(rows), strict=True):
            cuts[end] = cut
            cut = row[cut][1]
        tokens = sum(self.tokens(cut, end) for end, cut in cuts.items())
        lost = room_weight * (self._limit * len(cuts) - tokens)
        price = min(value for value, _ in rows[-1].values()) - lost
        return Course(cuts, price, tokens / len(cuts) / self._limit)

    def _row(
        self, end: int, end_before: int | None, before: dict[int, tuple[float, int]], room_weight: float
    ) -> Iterator[tuple[int, tuple[float, int]]]:
        """Give for each cut of a call the least that all so far can have cost, and the cut before."""
        charge, known = self._pricing.charge, list(before)
        least = list(accumulate(((before[at][0], at) for at in known), min))
        places = self._places[: bisect_left(self._places, end)]
        newest = places[-1]
        alone = all(self.tokens(cut, end) > self._limit for cut in places)
        for cut in places:
            sent = self.tokens(cut, end)
            if sent > self._limit and not (alone and cut == newest):
                continue
            lost = room_weight * (self._limit - sent)
            if end_before is None:
                yield cut, (charge(sent).price + lost, cut)
                continue
            older = bisect_left(known, cut)
            found = []
            if older:
                price, at = least[older - 1]
                found.append((price + charge(sent, reusable_tokens=self._front).price, at))
            if cut in before:
                reusable = self.tokens(cut, end_before)
                found.append((before[cut][0] + charge(sent, reusable_tokens=reusable).price, cut))
            if found:
                price, at = min(found)
                yield cut, (price + lost, at)

    def policy(self, course: Course) -> Callable[[Messages], Messages]:
        """Return what replays a course: a function of messages."""

        def choose(messages: Messages) -> Messages:
            cut = course.cuts.get(len(messages))
            if cut is None:
                return messages
            user = None if cut == self._head else self._opener[cut]
            opener: Messages = [] if user is None else [messages[user]]
            return [*messages[: self._head], *opener, *messages[cut:]]

        return choose
