"""Google's client with a budget and without one: it has no way of its own to keep requests small."""

from __future__ import annotations

from typing import Any

from tests.integrations.google_genai.play import play
from tests.integrations.upstream import BUDGET_TOKENS

POLICIES: dict[str, Any] = {
    "`with_budget(client, 4_000)`": lambda loop: play(loop, BUDGET_TOKENS),
    "Google: the bare client": lambda loop: play(loop, 0),
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop with what is compared."""
    return POLICIES[name](loop)[0]
