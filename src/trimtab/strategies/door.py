"""The door of strategies: what is given as `strategy=`, made into what is asked."""

from __future__ import annotations

import reprlib
from typing import Any, TypeAlias

from trimtab._shared.checks import number_of
from trimtab.errors import ConfigurationError
from trimtab.strategies.base import Strategy, as_strategy
from trimtab.strategies.cascade import Cascade
from trimtab.strategies.clamp_results import ClampResults
from trimtab.strategies.sliding_window import SlidingWindow
from trimtab.strategies.truncate_text import TruncateText

__all__ = [
    "DEFAULT_STRATEGY",
    "LARGE",
    "STEADY_RATIO",
    "StrategyLike",
    "check_steady",
    "ratio_of",
    "steady_strategy",
    "strategy_given",
]

LARGE = ClampResults(max_ratio=0.25, above_ratio=0.5, texts="too_large", keep_newest=True)
"""One result larger than half of the room would cost nearly all the rest of the conversation."""


def _default(target_ratio: float = 1.0, /) -> Strategy:
    return Cascade(LARGE, SlidingWindow(target_ratio=target_ratio), TruncateText())


DEFAULT_STRATEGY = _default()
"""Whole units, oldest first, once none is as large as that; the newest is cut when nothing else can leave."""

STEADY_RATIO = 0.5
"""What a cut leaves with `steady=True`: at 0.5 prompts cost a fifth less than at 0.7."""

_STEADY_STRATEGY = _default(STEADY_RATIO)
"""The default in strides; made once, since it is asked for at each call of a chat."""

StrategyLike: TypeAlias = Strategy | str
"""What `strategy=` may be: a strategy, or a name that `create_strategy` knows, such as "agent" or "drop"."""


def check_steady(value: Any, /) -> bool | float:
    """Return what `steady=` asks for: strides or none, or the share of the room that a cut leaves.

    Raises:
        ConfigurationError: It is neither True, False, nor a number above 0 and below 1.
    """
    if value is True or value is False:
        return bool(value)
    number = number_of(value)
    if number is None or not 0 < number < 1:
        raise ConfigurationError(
            "steady must be True, False, or the share of the room that a cut keeps, above 0 and below 1,"
            f" not {reprlib.repr(value)}",
            argument="steady",
        )
    return float(number)


def ratio_of(steady: float, /) -> float:
    """Return what a cut leaves of the room; True: `STEADY_RATIO`."""
    return STEADY_RATIO if steady is True else steady


def steady_strategy(steady: float, /) -> Strategy:
    """Return the default in strides, of which each leaves a share of the room."""
    return _STEADY_STRATEGY if steady is True else _default(steady)


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
