"""Strands' own ways to keep a request small, and ours: rows of docs/integrations/strands.md."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.models import Model
from strands.models.openai import OpenAIModel

from tests.integrations.loops import WORDS
from tests.integrations.strands.test_strands import Scripted, completions, play
from tests.integrations.upstream import BUDGET_TOKENS, Upstream
from trimtab.integrations.strands import TrimConversationManager, trim_middleware


class Billed(OpenAIModel):
    """The framework's own model with a bill: that of the model on this machine says one token."""

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """Bill what the framework estimates."""
        tokens = await self.count_tokens(messages, tool_specs, system_prompt)
        async for event in super().stream(messages, tool_specs, system_prompt, **kwargs):
            if "metadata" in event:
                event["metadata"]["usage"].update(inputTokens=tokens, totalTokens=tokens + 1)
            yield event


def _billed(served: Upstream) -> Model:
    return completions(served, kind=Billed)


SUMMARY = " ".join(WORDS[at % len(WORDS)] for at in range(100))
"""What the model that summarizes says each time."""


def _managed(made: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (), {"conversation_manager": made}


POLICIES: dict[str, Any] = {
    "`trim_middleware(4_000)`": lambda: ((trim_middleware(BUDGET_TOKENS),), {}),
    "`TrimConversationManager(4_000)`": lambda: _managed(TrimConversationManager(BUDGET_TOKENS)),
    "Strands: `SlidingWindowConversationManager()`, its default": lambda: _managed(
        SlidingWindowConversationManager()
    ),
    "Strands: the same, `per_turn=True`": lambda: _managed(SlidingWindowConversationManager(per_turn=True)),
    'Strands: `context_manager="auto"`': lambda: (
        (),
        {"context_manager": "auto", "aux_model": Scripted(says=SUMMARY)},
    ),
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop with what is compared."""
    handlers, options = POLICIES[name]()
    return play(loop, *handlers, model=_billed, **options)[0]
