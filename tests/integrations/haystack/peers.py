"""Haystack's own ways to keep a request small, and ours: rows of docs/integrations/haystack.md."""

from __future__ import annotations

from typing import Any

from haystack.components.generators.chat import MockChatGenerator
from haystack.hooks.compaction import (
    CompactionHook,
    SlidingWindowCompactor,
    SummarizationCompactor,
    ToolResultPruningCompactor,
)

from tests.integrations.haystack.test_haystack import play
from tests.integrations.upstream import BUDGET_TOKENS
from trimtab.integrations.haystack import TrimHook

SUMMARY = "The places that were looked at so far are quiet. " * 8
"""What the model that summarizes says each time: about a hundred tokens."""


def _summarize() -> SummarizationCompactor:
    return SummarizationCompactor(MockChatGenerator(SUMMARY))


POLICIES: dict[str, Any] = {
    "`TrimHook(4_000)`": lambda: TrimHook(BUDGET_TOKENS),
    "the same, `persist=True`": lambda: TrimHook(BUDGET_TOKENS, persist=True),
    "`TrimHook(4_000, steady=0.3)`": lambda: TrimHook(BUDGET_TOKENS, steady=0.3),
    "`TrimHook(2_800, steady=0.3)`, the room that Haystack uses": lambda: TrimHook(2_800, steady=0.3),
    "Haystack: no hook": lambda: None,
    "Haystack: `CompactionHook(SlidingWindowCompactor())`": lambda: _hook(SlidingWindowCompactor()),
    "Haystack: `CompactionHook(SummarizationCompactor(…))`": lambda: _hook(_summarize()),
    "Haystack: `CompactionHook(ToolResultPruningCompactor())`": lambda: _hook(ToolResultPruningCompactor()),
}
"""What is compared, by the words of the table."""


def _hook(compactor: Any) -> CompactionHook:
    """Compact as the hook does by default: from 0.7 of the window on, down to 0.4."""
    return CompactionHook(compactor, context_window=BUDGET_TOKENS)


def score(loop: Any, name: str) -> Any:
    """Play a loop; what a framework raises ends it, and the score is of the requests until then."""
    made = POLICIES[name]()
    return play(loop, *([] if made is None else [made]))[0]
