"""OpenAI's client with a budget and without one: it has no way of its own to keep requests small."""

from __future__ import annotations

from typing import Any

from tests.integrations.openai.play import play_chat, play_responses
from tests.integrations.upstream import BUDGET_TOKENS

POLICIES: dict[str, Any] = {
    "`with_budget(client, 4_000)`, Chat Completions": lambda loop: play_chat(loop, BUDGET_TOKENS),
    "`with_budget(client, 4_000)`, Responses": lambda loop: play_responses(loop, BUDGET_TOKENS),
    "OpenAI: the bare client, Chat Completions": lambda loop: play_chat(loop, 0),
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop with what is compared."""
    return POLICIES[name](loop)[0]
