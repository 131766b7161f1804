"""A provider's prompt cache, as its pricing describes it, while calls go by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from trimtab.models import CachePricing, Charge
from trimtab.replay.record import Messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request, as a cache sees it."""

    messages: Messages
    beside: object
    """System text and tools, which stand before the messages."""
    tokens: int
    prefix_tokens: Callable[[int], int]
    """Tokens of what stands beside the messages and of so many of these."""
    leading: int = 0
    """System messages that stand first: a place where a prefix is stored."""
    marks: tuple[int, ...] | None = None
    """How many messages stand before each mark, where they are known; None: the usual ones."""
    blocks: Callable[[int, int], int] = lambda start, stop: stop - start
    """Blocks of the messages from one up to another."""
    time: float | None = None
    cold: bool | None = None


class Reading(NamedTuple):
    """What a cache did for one request."""

    shared_messages: int
    """Messages it has in common with the request before, from the first on."""
    shared_tokens: int
    charge: Charge
    is_cold: bool
    """Whether what was stored had expired."""


class PromptCache:
    """What earlier calls have stored of one conversation.

    A prefix ends behind a whole message. Where only marked places are stored, they are taken to be marked
    behind each request's last message, behind the leading system messages (with two marks or more), and where
    earlier requests ended (with three or more). Marks that a policy sets are gone by as they are.
    """

    def __init__(self, pricing: CachePricing) -> None:
        self._pricing = pricing
        self._before: Sent | None = None
        self._ends: list[int] = []
        """How many messages of the request before each stored prefix holds."""

    def serve(self, sent: Sent) -> Reading:
        """Say what of a request is served, and store it."""
        before, marks = self._before, self._pricing.max_breakpoints
        shared = None if before is None else count_shared(before, sent)
        idle = None
        if before is not None and before.time is not None and sent.time is not None:
            idle = sent.time - before.time
        cold = before is not None and (
            self._pricing.is_cold(idle) if sent.cold is None else sent.cold
        )  # fmt: skip
        stored = ends = [] if shared is None or cold else [end for end in self._ends if end <= shared]
        if marks is not None and sent.marks is not None:
            ends = [end for end in ends if _is_near(end, sent.marks, sent)]
        reusable = shared if marks is None and not cold else max(ends, default=None)
        charge = self._pricing.charge(
            sent.tokens, reusable_tokens=0 if reusable is None else sent.prefix_tokens(reusable)
        )
        kept = ends if marks is None or marks > 2 else []
        head = [sent.leading] if marks is None or marks > 1 else []
        here = [*kept, *head, len(sent.messages)] if sent.marks is None else [*stored, *sent.marks]
        self._before, self._ends = sent, here
        shared_tokens = 0 if shared is None else sent.prefix_tokens(shared)
        return Reading(shared or 0, shared_tokens, charge, cold)


LOOKBACK_BLOCKS = 20
"""How far back from a mark Anthropic looks for a prefix that was stored before."""


def _is_near(end: int, marks: tuple[int, ...], sent: Sent) -> bool:
    """Tell whether a stored prefix is found from one of the marks."""
    return any(end <= mark and sent.blocks(end, mark) <= LOOKBACK_BLOCKS for mark in marks)


def count_shared(before: Sent, after: Sent, /) -> int | None:
    """Count the messages two requests begin with alike; None where they differ before the first."""
    if before.beside != after.beside:
        return None
    count = 0
    for one, other in zip(before.messages, after.messages, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count
