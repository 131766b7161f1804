"""What stands beside role and text in a plain message, read as fast as can be."""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab.counting._cache import TextCounts

__all__ = ["Prices", "beside_text"]


class Prices(NamedTuple):
    """What plain messages cost beside their text, in tokens."""

    bases: dict[Any, int]
    """Framing of a message by its role."""
    per_call_tokens: int
    name_factor: int
    """How often the name of a call is charged."""
    parallel_tokens: int
    """Once a message with two or more calls."""


def beside_text(message: dict[str, Any], counts: TextCounts, prices: Prices) -> int:
    """Count the plain function calls of a message; the id and name of a result are free.

    Raises:
        KeyError: Something else stands there, or a call is not plain.
        TypeError: The same.
    """
    width = len(message)
    if message["role"] == "tool":
        if "tool_call_id" in message and (width == 3 or (width == 4 and "name" in message)):
            return 0
        raise KeyError
    calls = message["tool_calls"]
    if width != 3 or message["role"] != "assistant" or calls.__class__ is not list or not calls:
        raise KeyError
    _, per_call_tokens, name_factor, tokens = prices
    tokens = tokens if len(calls) > 1 else 0
    for call in calls:
        function = call["function"]
        if len(call) != 3 or len(function) != 2 or "id" not in call or "type" not in call:
            raise KeyError
        tokens += per_call_tokens + counts[function["arguments"]] + name_factor * counts[function["name"]]
    return tokens
