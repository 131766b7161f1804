"""The one size formula and the one bare tokenizer that every contender gets.

Chat Completions of the gpt-4o family, text content only, no tool schemas (research: billed usage).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import toktok
except ImportError as error:
    raise SystemExit("the bench needs toktok-rs: make bench, or see bench/README.md") from error

Count = Callable[[str], int]

ENCODING = toktok._encoding("o200k_base")
COUNT: Count = ENCODING.count
"""The fastest bare form of toktok-rs, one text a call. Private there, hence the pin in constraints.txt."""

REQUEST_TOKENS = 3
"""Once a request."""
MESSAGE_TOKENS = 4
"""A message: 3, and 1 for its role."""
NAME_TOKENS = 1
"""A named message that is not a tool message, besides the tokens of the name."""
CALL_TOKENS = 5
"""A call, besides its function name twice and its arguments."""
PARALLEL_TOKENS = 17
"""A message with two or more calls, once."""


def message_tokens(message: dict[str, Any], count: Count) -> int:
    """Return the size of one message, as someone who wants it exact and fast would write it."""
    tokens = MESSAGE_TOKENS
    content = message["content"]
    if content:
        tokens += count(content)
    calls = message.get("tool_calls")
    if calls:
        for call in calls:
            function = call["function"]
            tokens += CALL_TOKENS + 2 * count(function["name"]) + count(function["arguments"])
        if len(calls) > 1:
            tokens += PARALLEL_TOKENS
    if "name" in message and message["role"] != "tool":
        tokens += NAME_TOKENS + count(message["name"])
    return tokens
