"""trimtab fits an LLM request into a token budget: valid, within it, with a report of what left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab import history
from trimtab._later import later
from trimtab.budget import Budget
from trimtab.context import Fitted, fit
from trimtab.counting import (
    CharCounter,
    EstimateCounter,
    FixedCounter,
    counter_for,
    counter_from_text,
)
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError, CountingError
from trimtab.history import evict_messages, message
from trimtab.strategies import Cascade, SlidingWindow, TruncateText
from trimtab.trimming import TrimContext
from trimtab.units import group

if TYPE_CHECKING:
    from trimtab.report import Report
    from trimtab.strategies import (
        ClearToolResults,
        Drop,
        DropNewest,
        PriorityBased,
        Strict,
        create_strategy,
    )
    from trimtab.validity import repair, validate
else:
    # What a first `fit` does not need.
    __getattr__ = later(
        globals(),
        {
            "Report": "trimtab.report",
            **dict.fromkeys(
                ("ClearToolResults", "Drop", "DropNewest", "PriorityBased", "Strict", "create_strategy"),
                "trimtab.strategies",
            ),
            **dict.fromkeys(("repair", "validate"), "trimtab.validity"),
        },
    )

__all__ = [
    "Budget",
    "BudgetExceededError",
    "Cascade",
    "CharCounter",
    "ClearToolResults",
    "ConfigurationError",
    "ContextError",
    "CountingError",
    "Drop",
    "DropNewest",
    "EstimateCounter",
    "Fitted",
    "FixedCounter",
    "PriorityBased",
    "Report",
    "SlidingWindow",
    "Strict",
    "TrimContext",
    "TruncateText",
    "counter_for",
    "counter_from_text",
    "create_strategy",
    "evict_messages",
    "fit",
    "group",
    "history",
    "message",
    "repair",
    "validate",
]
