"""What several adapters ask of trimtab: sizes of messages, and whose object came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab import Budget, fit

ROOMY = Budget(1_000_000_000)
"""A budget nothing here comes near."""


def counted(messages: Sequence[Any], counter: Any) -> int:
    """Count messages through `fit` and its report."""
    return fit(messages, ROOMY, counter=counter, format="openai_chat").count_all().tokens_after


def places(output: Sequence[Any], source: Sequence[Any]) -> list[int]:
    """Say which of the input's own objects came out."""
    by_identity = {id(message): index for index, message in enumerate(source)}
    return [by_identity[id(message)] for message in output]
