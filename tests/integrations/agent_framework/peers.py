"""Agent Framework's own ways to keep a request small, and ours: rows of its page in docs/integrations."""

from __future__ import annotations

from typing import Any

from agent_framework import (
    CharacterEstimatorTokenizer,
    ContextWindowCompactionStrategy,
    SelectiveToolCallCompactionStrategy,
    SlidingWindowStrategy,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
)

from tests.integrations.agent_framework.test_agent_framework import (
    Made,
    Scripted,
    middleware,
    play,
    strategy,
)
from tests.integrations.upstream import BUDGET_TOKENS


def _own(made: Any) -> Made:
    return lambda look: {"compaction_strategy": made}


def _composed() -> TokenBudgetComposedStrategy:
    """Compose what the framework's guide composes."""
    return TokenBudgetComposedStrategy(
        token_budget=BUDGET_TOKENS,
        tokenizer=CharacterEstimatorTokenizer(),
        strategies=[
            SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=1),
            SummarizationStrategy(client=Scripted(), target_count=4, threshold=2),
            SlidingWindowStrategy(keep_last_groups=20),
        ],
    )


POLICIES: dict[str, Any] = {
    "`TrimMiddleware(4_000, name=…)`": middleware,
    "`TrimStrategy(4_000, name=…, …)`": strategy,
    "the same, `persist=True`, for a run and its session": lambda: strategy(persist=True),
    "Agent Framework: no strategy": lambda: lambda look: {},
    "Agent Framework: `ContextWindowCompactionStrategy`": lambda: _own(
        ContextWindowCompactionStrategy(max_context_window_tokens=BUDGET_TOKENS, max_output_tokens=0)
    ),
    "Agent Framework: `SlidingWindowStrategy(keep_last_groups=20)`": lambda: _own(
        SlidingWindowStrategy(keep_last_groups=20)
    ),
    "Agent Framework: `TokenBudgetComposedStrategy`, as its guide has it": lambda: _own(_composed()),
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop with what is compared."""
    return play(loop, POLICIES[name]())[0]
