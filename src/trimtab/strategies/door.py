"""The door of strategies: what is given as `strategy=`, made into what is asked."""

from __future__ import annotations

from typing import Any, TypeAlias

from trimtab.strategies.base import Strategy, as_strategy

__all__ = ["StrategyLike", "strategy_given"]

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
