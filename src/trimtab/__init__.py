"""trimtab fits an LLM request into a token budget: a valid request, and a report of what was evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab._shared.lazy import later

if TYPE_CHECKING:
    from trimtab import history
    from trimtab._fit import afit, fit
    from trimtab._fitting.blocks import Block, Tier
    from trimtab._fitting.callbacks import TrimContext
    from trimtab._fitting.fitted import Fitted
    from trimtab._fitting.observation import observe
    from trimtab.budget import Budget
    from trimtab.context import Context
    from trimtab.conversation.validity import repair, validate
    from trimtab.counting import (
        CharCounter,
        EstimateCounter,
        counter_for,
        counter_from_text,
    )
    from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError
    from trimtab.report import Report
    from trimtab.session import Session
    from trimtab.strategies import (
        Cascade,
        Cheapest,
        ClampResults,
        ClearToolResults,
        Drop,
        DropNewest,
        PriorityBased,
        Relevant,
        SlidingWindow,
        Strict,
        Summarize,
        TruncateText,
        create_strategy,
    )
else:
    # Each is loaded when it is first asked for: a program that may need trimtab pays for what it does need.
    __getattr__ = later(
        globals(),
        {
            "Budget": "trimtab.budget",
            "Context": "trimtab.context",
            "Fitted": "trimtab._fitting.fitted",
            "Report": "trimtab.report",
            "Session": "trimtab.session",
            "TrimContext": "trimtab._fitting.callbacks",
            "observe": "trimtab._fitting.observation",
            **dict.fromkeys(("afit", "fit"), "trimtab._fit"),
            **dict.fromkeys(("Block", "Tier"), "trimtab._fitting.blocks"),
            **dict.fromkeys(
                ("CharCounter", "EstimateCounter", "counter_for", "counter_from_text"), "trimtab.counting"
            ),
            **dict.fromkeys(("BudgetExceededError", "ConfigurationError", "ContextError"), "trimtab.errors"),
            **dict.fromkeys(
                (
                    "Cascade",
                    "Cheapest",
                    "ClampResults",
                    "ClearToolResults",
                    "Drop",
                    "DropNewest",
                    "PriorityBased",
                    "Relevant",
                    "SlidingWindow",
                    "Strict",
                    "Summarize",
                    "TruncateText",
                    "create_strategy",
                ),
                "trimtab.strategies",
            ),
            **dict.fromkeys(("repair", "validate"), "trimtab.conversation"),
        },
    )

__version__ = "0.2.0"
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
