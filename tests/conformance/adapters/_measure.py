"""What several adapters ask of trimtab: sizes of messages, a strategy in a block, whose object came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab import Budget, BudgetExceededError, fit
from trimtab.counting._sizes import Fixed, sizes_for
from trimtab.formats import get_format
from trimtab.strategies import EvictionRequest, Strategy
from trimtab.strategies._runner import run
from trimtab.units import History

ROOMY = Budget(1_000_000_000)
"""A budget nothing here comes near."""


def counted(messages: Sequence[Any], counter: Any) -> int:
    """Count messages through `fit` and its report."""
    return fit(messages, ROOMY, counter=counter, format="openai_chat").count_all().tokens_after


def places(output: Sequence[Any], source: Sequence[Any]) -> list[int]:
    """Say which of the input's own objects came out."""
    by_identity = {id(message): index for index, message in enumerate(source)}
    return [by_identity[id(message)] for message in output]


def in_block(
    messages: Sequence[Any], strategy: Strategy, *, limit: int, counter: Any, total: int | None = None
) -> list[int]:
    """Run a strategy over a block of its own, in which nothing but open calls must stay.

    Args:
        messages: The block.
        strategy: Asked only if the block does not fit.
        limit: Tokens it may take; 0 is allowed, unlike for a budget.
        counter: What counts.
        total: Size of the whole, where somebody counted it already.

    Returns:
        The indices that stay.

    Raises:
        BudgetExceededError: The strategy says that this is all it can do.
    """
    history = History(list(messages), format=get_format("openai_chat"), protect=False)
    sizes = sizes_for(counter, history.messages, Fixed(), has_system=False)
    request = EvictionRequest(history, sizes, limit_tokens=limit)
    if (request.total(request.units) if total is None else total) <= limit:
        return list(range(len(messages)))
    settled = run(strategy, request)
    if not settled.fits:
        raise BudgetExceededError("the block does not fit", needed_tokens=settled.tokens, limit_tokens=limit)
    return [*settled.before, *range(settled.cut, len(messages))]
