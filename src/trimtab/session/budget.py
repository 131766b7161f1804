"""The budget of a session, with its margin in tokens."""

from __future__ import annotations

from typing import Any

from trimtab._fitting.margins import within
from trimtab.budget import Budget
from trimtab.errors import ConfigurationError

__all__ = ["LEAST_BUDGET", "session_budget"]

LEAST_BUDGET = 100


def session_budget(value: Any, counter: Any, tools: Any = None, /) -> Budget:
    """Return the budget of a session with its margin, as its counter says; None where no margin needs one.

    Raises:
        ConfigurationError: It leaves less than 100, or is no number of tokens.
    """
    budget = within(Budget.of(value), counter, tools)
    tokens = budget.input_tokens
    if tokens < LEAST_BUDGET:
        raise ConfigurationError(f"the budget of a session is at least {LEAST_BUDGET} tokens, not {tokens}")
    return budget
