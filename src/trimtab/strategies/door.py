"""The door of strategies: what is given as `strategy=`, made into what is asked."""

from __future__ import annotations

from typing import Any, TypeAlias

from trimtab.strategies.base import Strategy, as_strategy
from trimtab.strategies.cascade import Cascade
from trimtab.strategies.clamp_results import ClampResults
from trimtab.strategies.sliding_window import SlidingWindow
from trimtab.strategies.truncate_text import TruncateText

__all__ = ["DEFAULT_STRATEGY", "LARGE", "STEADY_STRATEGY", "StrategyLike", "strategy_given"]

LARGE = ClampResults(max_ratio=0.25, above_ratio=0.5, texts="too_large", keep_newest=True)
"""One result larger than half of the room would cost nearly all the rest of the conversation."""

DEFAULT_STRATEGY: Strategy = Cascade(LARGE, SlidingWindow(), TruncateText())
"""Whole units, oldest first, once none is as large as that; the newest is cut when nothing else can leave."""

STEADY_STRATEGY: Strategy = Cascade(LARGE, SlidingWindow(target_ratio=0.5), TruncateText())
"""The same in strides, for `steady=True`: at 0.5 prompts cost a fifth less than at 0.7."""

StrategyLike: TypeAlias = Strategy | str
"""What `strategy=` takes: a strategy, or a name that `create_strategy` knows, as "agent" or "drop"."""


def strategy_given(value: Any, /) -> Strategy:
    """Return the strategy that was given, or that a name means.

    Raises:
        UnknownNameError: No strategy is called so; says the near ones.
        ConfigurationError: It can not act as a strategy, or its name says too little of it.
    """
    if isinstance(value, str):
        from trimtab.strategies.data import create_strategy  # not above: it brings every strategy

        return create_strategy(value)
    return as_strategy(value)
