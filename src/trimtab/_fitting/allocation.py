"""Sharing the input room among blocks: one fold, highest rank first (SPEC D5).

What must stay is set aside, then floors; then each block in turn is offered what remains beside those, up
to its need and its cap, and what it does not use goes on to the next. `allocate` runs the fold on
numbers alone; a `Context` runs the same with strategies that answer what they really used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, groupby
from typing import Literal, NamedTuple

from trimtab.errors import BudgetExceededError, ConfigurationError

__all__ = ["Allocation", "Claim", "Offer", "Ties", "allocate", "check_ties", "offers"]

Ties = Literal["newest", "first"]
"""Which of two blocks of one rank gets its room first: the one added later or first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one block needs of the room, in tokens.

    Args:
        name: The block's name; each name occurs once.
        need_tokens: Its size if nothing is evicted.
        rank: Blocks of a higher rank get their room first.
        must_tokens: Smallest size of what cannot be evicted; reserved before anything else, whatever the cap.
        floor_tokens: Tokens to reserve for it if the floors of all blocks fit; never more than its need.
        cap_tokens: The most it may take, even when everything would fit; None: no cap.
        share: Weight among blocks of its rank; if one block of the rank has a share, None counts as 1.
        once: True: the room that remains in the end is not offered to it, because its strategy would ask a
            model again.
    """

    name: str
    need_tokens: int
    rank: float = 0
    must_tokens: int = 0
    floor_tokens: int = 0
    cap_tokens: int | None = None
    share: float | None = None
    once: bool = False

    @property
    def most_tokens(self) -> int:
        """The largest possible offer: its need, or its cap."""
        return self.need_tokens if self.cap_tokens is None else min(self.need_tokens, self.cap_tokens)


class Offer(NamedTuple):
    """The limit offered to one block; the answer is how much of it the block used.

    Args:
        at: Index of its claim.
        limit_tokens: Maximum number of tokens it may use.
        room_tokens: Remaining room for it, before its need and its cap apply.
    """

    at: int
    """Index of its claim."""
    limit_tokens: int
    room_tokens: int
    """Remaining room for it, before its need and its cap apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """How the room was shared.

    Args:
        limits: The last offer to each block in tokens, by name, in the order of the claims.
        used: Tokens each block used; the same as the offer if there were only numbers.
        floors_ignored: True if the floors together exceeded the room without what must be kept.
        unused_tokens: Room that no block took.
    """

    limits: Mapping[str, int]
    """The last offer to each block in tokens, by name, in the order of the claims."""
    used: Mapping[str, int]
    """Tokens each block used; the same as the offer if there were only numbers."""
    floors_ignored: bool
    """True if the floors together exceeded the room without what must be kept."""
    unused_tokens: int
    """Room that no block took."""


def allocate(claims: Iterable[Claim], room_tokens: int, *, ties: Ties = "newest") -> Allocation:
    """Share the input room among blocks that use their whole offer.

    Limits add up to at most the room; if everything fits, each is the block's need or its cap.

    Args:
        claims: Claims in the order the blocks were added; names are unique.
        room_tokens: The input room, less what is charged in addition to the blocks.
        ties: Which of two blocks of one rank gets its room first: the one added last, or the one added first.

    Raises:
        BudgetExceededError: What must be kept exceeds the room, or its block's cap.
        ConfigurationError: Two claims have one name, a number is negative, or `ties` is not one of its
            values.

    Complexity: O(n log n) in claims; in a rank with shares, O(n²) at worst.

    Source: seeds/000 (ratios, floors, fallback), seeds/001 (tiers); shares as CSS flexbox divides.

    Example:
        >>> allocate([Claim(name="history", need_tokens=900), Claim(name="question", need_tokens=30, rank=9)],
        ...     500).limits
        {'history': 470, 'question': 30}
    """
    claims = tuple(claims)
    _check(claims, room_tokens)
    fold = offers(claims, room_tokens, ties=check_ties(ties))
    try:
        offer = next(fold)
        while True:
            offer = fold.send(offer.limit_tokens)
    except StopIteration as done:
        allocation: Allocation = done.value
        return allocation


def check_ties(ties: object, /) -> Ties:
    """Return one of the words for equal ranks.

    Raises:
        ConfigurationError: It is none of them.
    """
    if ties not in ("newest", "first"):
        raise ConfigurationError(f"ties must be 'newest' or 'first', not {ties!r}", argument="ties")
    return "first" if ties == "first" else "newest"


def _check(claims: Sequence[Claim], room_tokens: int) -> None:
    names = [claim.name for claim in claims]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigurationError(f"two claims are named {twice!r}")
    for claim in claims:
        numbers = (claim.need_tokens, claim.must_tokens, claim.floor_tokens, claim.cap_tokens or 0)
        if min(numbers) < 0:
            raise ConfigurationError(f"claim {claim.name!r} has a negative number of tokens: {claim!r}")
    if room_tokens < 0:
        raise ConfigurationError(f"room_tokens must be >= 0, not {room_tokens!r}", argument="room_tokens")


def offers(claims: Sequence[Claim], room_tokens: int, *, ties: Ties) -> Generator[Offer, int, Allocation]:
    """Offer the room, block by block; the answer to each offer is the tokens used.

    A block may get a second, higher offer if reserved room was not used by others.

    Args:
        claims: One claim for each block.
        room_tokens: Input room in tokens.
        ties: Which of two blocks of one rank gives way: "newest" keeps the block added later, "first" the
            block added first.

    Raises:
        BudgetExceededError: What must be kept exceeds the room, or its block's cap.
    """
    order = _order(claims, ties)
    held, floors_ignored = _reserve(claims, order, room_tokens)
    most = [max(claim.most_tokens, claim.must_tokens) for claim in claims]
    limits, used = [0] * len(claims), [0] * len(claims)
    left = room_tokens - sum(held)
    for _, group in groupby(order, key=lambda at: claims[at].rank):
        members = list(group)
        parts = _parts(
            claims, members, least=held, most=most, room_tokens=left + sum(held[m] for m in members)
        )
        over = 0  # what members that were served did not take of their parts
        for at in members:
            room = left + held[at] if parts is None else parts[at] + over
            limits[at] = min(most[at], room)
            used[at] = yield Offer(at, limits[at], room)
            left += held[at] - used[at]
            over += parts[at] - used[at] if parts is not None else 0
    for at in order:
        room = used[at] + left
        limit = min(most[at], room)
        if limit > limits[at] and not claims[at].once:
            limits[at], left = limit, room
            used[at] = yield Offer(at, limit, room)
            left -= used[at]
    return Allocation(
        limits={claim.name: limits[at] for at, claim in enumerate(claims)},
        used={claim.name: used[at] for at, claim in enumerate(claims)},
        floors_ignored=floors_ignored,
        unused_tokens=left,
    )


def _order(claims: Sequence[Claim], ties: Ties) -> list[int]:
    """Return the places of the claims in the order they are served."""
    sign = -1 if ties == "newest" else 1
    return sorted(range(len(claims)), key=lambda at: (-claims[at].rank, sign * at))


class _Held(NamedTuple):
    """What is held back for each block until its turn."""

    tokens: list[int]
    floors_ignored: bool


def _reserve(claims: Sequence[Claim], order: Sequence[int], room_tokens: int) -> _Held:
    """Return what is held back for each block, and whether floors had to be ignored for it."""
    must = [claim.must_tokens for claim in claims]
    for at in order:
        cap = claims[at].cap_tokens
        if cap is not None and must[at] > cap:
            raise _budget_error(claims[at].name, must[at], cap, "its cap")
    if sum(must) > room_tokens:
        over = next(at for at, total in zip(order, _totals(must, order), strict=True) if total > room_tokens)
        raise _budget_error(claims[over].name, sum(must), room_tokens, "the room of all blocks")
    floors = [max(must[at], min(claim.floor_tokens, claim.most_tokens)) for at, claim in enumerate(claims)]
    ignored = sum(floors) > room_tokens
    return _Held(must if ignored else floors, ignored)


def _totals(tokens: Sequence[int], order: Sequence[int]) -> list[int]:
    return list(accumulate(tokens[at] for at in order))


def _budget_error(name: str, needed_tokens: int, limit_tokens: int, what: str) -> BudgetExceededError:
    return BudgetExceededError(
        f"block {name!r} does not fit: what must be kept takes {needed_tokens:,} tokens and {what} is"
        f" {limit_tokens:,}, {needed_tokens - limit_tokens:,} too few. Raise the budget or the cap, pin"
        " less, or shorten system text.",
        needed_tokens=needed_tokens,
        limit_tokens=limit_tokens,
        block=name,
    )


def _parts(
    claims: Sequence[Claim],
    members: Sequence[int],
    *,
    least: Sequence[int],
    most: Sequence[int],
    room_tokens: int,
) -> dict[int, int] | None:
    """Divide the room of one rank by weight, each part between its bounds; None if nobody has a share.

    Parts whose bound is passed are fixed at it, and the rest is divided anew, as flexbox does. Whole
    tokens go to the largest remainders, among equal ones to who is served first.
    """
    if all(claims[at].share is None for at in members):
        return None
    weights = {at: Fraction(claims[at].share or 1) for at in members}
    fixed: dict[int, int] = {}
    while True:
        free = [at for at in members if at not in fixed]
        room, whole = room_tokens - sum(fixed.values()), sum(weights[at] for at in free)
        exact = {at: room * weights[at] / whole for at in free}
        low = [at for at in free if exact[at] < least[at]]
        high = [at for at in free if exact[at] > most[at]]
        if not low and not high:
            break
        missing = sum((least[at] - exact[at] for at in low), start=Fraction(0))
        beyond = sum((exact[at] - most[at] for at in high), start=Fraction(0))
        fixed.update({at: least[at] for at in low} if missing >= beyond else {})
        fixed.update({at: most[at] for at in high} if beyond >= missing else {})
    parts = {at: int(exact[at]) for at in free}
    rest = max(0, int(room) - sum(parts.values())) if free else 0
    for at in sorted(free, key=lambda at: parts[at] - exact[at])[:rest]:
        parts[at] += 1
    return {**fixed, **parts}
