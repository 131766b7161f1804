"""Strategies: what is evicted if a block does not fit. One strategy per module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab._shared.lazy import later
from trimtab.conversation.assemble import Insertion
from trimtab.counting.shorten import CUT_MARKER
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult, Reads, Strategy, strategy_data
from trimtab.strategies.cascade import Cascade
from trimtab.strategies.door import StrategyLike
from trimtab.strategies.sliding_window import SlidingWindow
from trimtab.strategies.truncate_text import TruncateText

if TYPE_CHECKING:
    from trimtab.strategies.cheapest import Cheapest
    from trimtab.strategies.clamp_results import ClampResults
    from trimtab.strategies.clear_tool_results import ClearToolResults
    from trimtab.strategies.data import StrategyKind, create_strategy
    from trimtab.strategies.drop import Drop, DropNewest, Strict
    from trimtab.strategies.priority import PriorityBased
    from trimtab.strategies.relevant import Relevant
    from trimtab.strategies.results import KeepLike
    from trimtab.strategies.scores import Place, Score, default_score
    from trimtab.strategies.summarize import Summarize
else:
    # Not those of `fit`'s default: each costs as much of the import as it takes to make its class.
    _HERE = "trimtab.strategies."
    __getattr__ = later(
        globals(),
        {
            **dict.fromkeys(("StrategyKind", "create_strategy"), _HERE + "data"),
            **dict.fromkeys(("Place", "Score", "default_score"), _HERE + "scores"),
            **dict.fromkeys(("Drop", "DropNewest", "Strict"), _HERE + "drop"),
            "Cheapest": _HERE + "cheapest",
            "KeepLike": _HERE + "results",
            "ClampResults": _HERE + "clamp_results",
            "PriorityBased": _HERE + "priority",
            "Relevant": _HERE + "relevant",
            "ClearToolResults": _HERE + "clear_tool_results",
            "Summarize": _HERE + "summarize",
        },
    )

__all__ = [
    "CUT_MARKER",
    "Cascade",
    "Cheapest",
    "ClampResults",
    "ClearToolResults",
    "Drop",
    "DropNewest",
    "Edit",
    "EvictionRequest",
    "EvictionResult",
    "Insertion",
    "KeepLike",
    "Place",
    "PriorityBased",
    "Reads",
    "Relevant",
    "Score",
    "SlidingWindow",
    "Strategy",
    "StrategyKind",
    "StrategyLike",
    "Strict",
    "Summarize",
    "TruncateText",
    "create_strategy",
    "default_score",
    "strategy_data",
]
