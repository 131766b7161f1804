"""Pydantic AI's own ways to keep a request small, and ours, on the same loops."""

from __future__ import annotations

from typing import Any

from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from tests.integrations.pydantic_ai.test_pydantic_ai import play
from tests.integrations.upstream import BUDGET_TOKENS
from trimtab.integrations.pydantic_ai import TrimCapability


def _newest(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Keep the last five, as its documentation begins."""
    return messages[-5:] if len(messages) > 5 else messages


def _pairs(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Keep the first and the last twelve, and more where a result would lose its call, as it recommends."""
    start = max(1, len(messages) - 12)
    while start > 1 and _answers(messages[start]):
        start -= 1
    return [*messages[:1], *messages[start:]]


def _answers(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(one, ToolReturnPart) for one in message.parts)


POLICIES: dict[str, Any] = {
    "`TrimCapability(4_000)`": lambda: TrimCapability(BUDGET_TOKENS),
    "the same, `persist=True`": lambda: TrimCapability(BUDGET_TOKENS, persist=True),
    "Pydantic AI: no capability": lambda: None,
    "Pydantic AI: `ProcessHistory`, the last 5": lambda: ProcessHistory(_newest),
    "Pydantic AI: `ProcessHistory`, first and last 12, pairs kept": lambda: ProcessHistory(_pairs),
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop; what a framework raises ends it, and the score is of the requests until then."""
    made = POLICIES[name]()
    return play(loop, *([] if made is None else [made]))[0]
