"""trimtab fits an LLM request into a token budget: valid, within it, with a report of what left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab import history
from trimtab._fit import fit
from trimtab._fitting.callbacks import TrimContext
from trimtab._fitting.fitted import Fitted
from trimtab._shared.lazy import later
from trimtab.budget import Budget
from trimtab.counting import (
    CharCounter,
    EstimateCounter,
    counter_for,
    counter_from_text,
)
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError
from trimtab.strategies import Cascade, SlidingWindow, TruncateText

if TYPE_CHECKING:
    from trimtab._fit import afit
    from trimtab._fitting.blocks import Block, Tier
    from trimtab._fitting.observation import observe
    from trimtab.context import Context
    from trimtab.conversation.validity import repair, validate
    from trimtab.report import Report
    from trimtab.session import Session
    from trimtab.strategies import (
        Cheapest,
        ClampResults,
        ClearToolResults,
        Drop,
        DropNewest,
        PriorityBased,
        Relevant,
        Strict,
        Summarize,
        create_strategy,
    )
else:
    # What a first `fit` does not need.
    __getattr__ = later(
        globals(),
        {
            "Block": "trimtab._fitting.blocks",
            "Context": "trimtab.context",
            "Report": "trimtab.report",
            "Session": "trimtab.session",
            "Tier": "trimtab._fitting.blocks",
            "afit": "trimtab._fit",
            "observe": "trimtab._fitting.observation",
            **dict.fromkeys(
                (
                    "Cheapest",
                    "ClampResults",
                    "ClearToolResults",
                    "Drop",
                    "DropNewest",
                    "PriorityBased",
                    "Relevant",
                    "Strict",
                    "Summarize",
                    "create_strategy",
                ),
                "trimtab.strategies",
            ),
            **dict.fromkeys(("repair", "validate"), "trimtab.conversation"),
        },
    )

__version__ = "0.1.0"
"""Version of the package; pyproject.toml reads it from here."""

__all__ = [
    "Block",
    "Budget",
    "BudgetExceededError",
    "Cascade",
    "CharCounter",
    "Cheapest",
    "ClampResults",
    "ClearToolResults",
    "ConfigurationError",
    "Context",
    "ContextError",
    "Drop",
    "DropNewest",
    "EstimateCounter",
    "Fitted",
    "PriorityBased",
    "Relevant",
    "Report",
    "Session",
    "SlidingWindow",
    "Strict",
    "Summarize",
    "Tier",
    "TrimContext",
    "TruncateText",
    "afit",
    "counter_for",
    "counter_from_text",
    "create_strategy",
    "fit",
    "history",
    "observe",
    "repair",
    "validate",
]
