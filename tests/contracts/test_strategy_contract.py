"""`check_strategy` over every strategy there is."""

from __future__ import annotations

import pytest

from tests.builders import without_address
from tests.properties.cases import DEFAULT, GAPS, MINIMUMS, OTHERS, STRIDES, SUMMARIES, WINDOWS
from tests.sizes import sizes
from trimtab import Drop, SlidingWindow, strategies
from trimtab.strategies import Cascade, Cheapest, Strategy
from trimtab.testing import WordCounter, check_strategy, conversations

WASTEFUL = (*STRIDES, *MINIMUMS, Drop())
"""Those that take more at once on purpose; turns leave whole."""


def _is_thrifty(strategy: Strategy) -> bool:
    if strategy in (*SUMMARIES, *GAPS):  # room is set aside for the summary, or for lines
        return False
    if isinstance(strategy, Cascade):
        return all(map(_is_thrifty, strategy.steps))
    if isinstance(strategy, Cheapest):
        return False
    return strategy not in WASTEFUL and not (isinstance(strategy, SlidingWindow) and strategy.keep_turns)


@pytest.mark.few(9)
@sizes(6, 60)
@pytest.mark.parametrize(
    "strategy", [*WINDOWS, *STRIDES[::3], *MINIMUMS, *OTHERS, *GAPS, *SUMMARIES], ids=without_address
)
def test_every_strategy_keeps_the_contract(strategy: Strategy, size: int) -> None:
    """Within the limit, whole units, in order, nothing pinned, input unchanged, deterministic."""
    check_strategy(strategy, samples=conversations(size, seed=3), thrifty=_is_thrifty(strategy))


@pytest.mark.parametrize("strategy", [SlidingWindow(), DEFAULT], ids=without_address)
def test_the_contract_holds_for_valid_conversations_too(strategy: Strategy) -> None:
    """With valid samples the way that reads only the end is taken."""
    check_strategy(strategy, samples=conversations(20, seed=4, valid=True), counters=[WordCounter()])


def test_no_strategy_is_forgotten() -> None:
    """Every class of `trimtab.strategies` that evicts is run here."""
    there = {name for name in strategies.__all__ if hasattr(getattr(strategies, name), "evict")}
    tried = {type(strategy).__name__ for strategy in (*WINDOWS, *STRIDES, *MINIMUMS, *OTHERS, *SUMMARIES)}
    assert there - {"Strategy"} == tried
