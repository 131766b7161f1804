"""What people do without trimtab, as policies that a replay plays: messages in, the messages to send out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import peers
from conversations import Messages

Trim = Callable[[Messages], Messages]


def policies(budget: int, count: Callable[[Messages], int], *, litellm: bool) -> dict[str, Trim]:
    """Name them; those of libraries that are not installed are left out.

    Args:
        budget: Room in tokens.
        count: Counts a whole request.
        litellm: Whether LiteLLM is played, too: it takes minutes.
    """
    named: dict[str, Trim] = {
        "drop the oldest message": lambda messages: newest(messages, budget, budget, count),
        "cut to half, message by message": lambda messages: newest(messages, budget, budget // 2, count),
    }
    if peers.missing("langchain-core", "langchain_core") is None:
        named["LangChain, recommended"] = _langchain(budget, peers.langchain_trim)
        named["LangChain, defaults"] = _langchain(budget, peers.langchain_trim_by_default)
    if litellm and peers.missing("litellm", "litellm") is None:
        named["LiteLLM"] = lambda messages: peers.litellm_trim(messages, budget)
    return named


def newest(messages: Messages, budget: int, target: int, count: Callable[[Messages], int]) -> Messages:
    """Once over the budget, keep system text and the newest messages up to a target, pairs or no pairs."""
    if count(messages) <= budget:
        return messages
    lead = [one for one in messages[:1] if one["role"] == "system"]
    rest = messages[len(lead) :]
    low, high = 0, len(rest)
    while low < high:
        middle = (low + high) // 2
        if count([*lead, *rest[middle:]]) <= target:
            high = middle
        else:
            low = middle + 1
    return [*lead, *rest[low:]]


def _langchain(budget: int, trim: Callable[..., list[Any]]) -> Trim:
    converted: dict[int, Any] = {}
    counter = peers.langchain_counter()

    def play(messages: Messages) -> Messages:
        new = [one for one in messages if id(one) not in converted]
        converted.update(zip(map(id, new), peers.langchain_messages(new), strict=True))
        whole = [converted[id(one)] for one in messages]
        for index, one in enumerate(whole):
            one.id = str(index)
        return peers.originals(trim(whole, budget, counter), messages)

    return play
