"""What stays of each block within a budget: the fold of `allocation.py`, answered by strategies."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trimtab._composing import Composition, Part
from trimtab._portion import Decision
from trimtab.allocation import Claim, offers
from trimtab.budget import Budget
from trimtab.counting._sizes import Shares
from trimtab.errors import BudgetExceededError
from trimtab.formats import Format, Request
from trimtab.strategies._base import EvictionRequest
from trimtab.strategies._cuts import count_back
from trimtab.strategies._runner import Settled, running
from trimtab.strategies.truncate_text import TruncateText
from trimtab.summaries._base import SummaryCall, drive_planning

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["BlockDecision", "ContextPlan", "settling"]

Steps = Generator[SummaryCall, str | None, "ContextPlan"]

_ROUNDS = 8
"""How often a black box may say that the whole is more than its blocks, before that is an error."""


@dataclass(slots=True, kw_only=True)
class BlockDecision(Decision):
    """What was settled for one block."""

    portion: Part
    limit_tokens: int
    floor_tokens: int = 0
    """Its floor in force; 0 where floors were ignored."""
    freed_tokens: int = 0


@dataclass(slots=True, kw_only=True)
class ContextPlan:
    """What a `Context` decided for one budget, and how to decide again."""

    composition: Composition
    budget: Budget
    decisions: list[BlockDecision]
    """In the order of the request."""
    floors_ignored: bool = False
    error: BudgetExceededError | None = None
    """Why it does not fit; None if it does."""
    notes: list[str] = field(default_factory=list)
    tokens: int = 0
    _messages: list[Any] | None = None

    @property
    def fits(self) -> bool:
        """False if what must stay passes the budget or a cap."""
        return self.error is None

    @property
    def input_messages(self) -> int:
        """Messages of all blocks."""
        return sum(len(part.source) for part in self.composition.parts)

    @property
    def format(self) -> Format:
        """The wire form."""
        return self.composition.format

    @property
    def body(self) -> Request:
        """What was asked for, as a request."""
        return self.composition.body

    @property
    def has_system(self) -> bool:
        """True if the request begins with a system message."""
        return bool(self.composition.lead) or any(
            self.format.kind(message) == "system" for message in self.messages()[:1]
        )

    def messages(self) -> list[Any]:
        """Put the output together."""
        if self._messages is None:
            blocks = (message for one in self.decisions for message in self.of_block(one))
            self._messages = [*self.composition.lead, *blocks]
        return list(self._messages)

    def of_block(self, decision: BlockDecision) -> list[Any]:
        """Return what came out of a block; its last message ends a cached prefix where that is asked for."""
        messages = decision.settled.assemble(decision.request)
        mark = decision.portion.block.cache_control
        if mark is not None and messages:
            messages[-1] = self.format.with_cache_control(messages[-1], mark)
        return messages

    def report(self, messages: list[Any]) -> Report:
        """Make the report of the fit that gave these messages."""
        from trimtab._context_report import report_of  # not above: many fits are never reported

        return report_of(self, messages)

    def at(self, budget: Budget) -> ContextPlan:
        """Decide for another budget; callbacks hold, and no summarizer is asked."""
        return drive_planning(settling(self.composition, budget))

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        for part in self.composition.parts:
            if isinstance(part.source_sizes, Shares):
                part.source_sizes.whole(part.source)
                continue
            for sizes in (part.source_sizes, part.sizes):
                sizes.count_each()

    def exceeded(self) -> BudgetExceededError:
        """Return the error for what does not fit."""
        assert self.error is not None
        return self.error


def settling(composition: Composition, budget: Budget) -> Steps:
    """Settle what stays of each block; yields what it needs from outside.

    A black box may count the whole higher than its blocks; then they get that much less, and once more.
    """
    less = 0
    for _ in range(_ROUNDS):
        plan = yield from _Settlement(composition, budget, less_tokens=less).run()
        over = plan.tokens - budget.input_tokens
        if plan.error is not None or over <= 0:
            return plan
        less += over
    plan.error = _exceeded_by_whole(plan)
    return plan


class _Settlement:
    """One run of the fold."""

    def __init__(self, composition: Composition, budget: Budget, *, less_tokens: int) -> None:
        self._composition = composition
        self._budget = budget
        self._parts = [composition.parts[at] for at in composition.adding]
        self._decided: dict[int, BlockDecision] = {}
        self._beside_tokens = _beside_tokens(composition, has_system=_begins_with_system(composition))
        self._room = budget.input_tokens - self._beside_tokens - less_tokens

    def run(self) -> Steps:
        """Offer the room block by block, and put together what came of it."""
        floors_ignored, error = False, None
        claims = [self._claim(part) for part in self._parts]
        try:
            fold = offers(claims, max(0, self._room), ties=self._composition.ties)
            used: int | None = None
            while True:
                offer = next(fold) if used is None else fold.send(used)
                decision = yield from self._settle(self._parts[offer.at], claims[offer.at], offer.limit_tokens)
                self._decided[offer.at] = decision
                if not decision.settled.fits:
                    error = self._exceeded(decision)
                    break
                used = decision.settled.tokens
        except StopIteration as done:
            floors_ignored = done.value.floors_ignored
        except BudgetExceededError as raised:
            error = self._in_request(raised)
        if error is None and self._room < 0:
            error = self._no_room()
        return self._plan(claims, floors_ignored=floors_ignored, error=error)
