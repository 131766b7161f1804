"""What a replay costs under a prompt cache: the price model of research/MEASURED.md, written for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

READ, WRITE, LEAST_PREFIX = 0.1, 1.25, 1_024
"""Of the base price of a token, as Anthropic bills it; a shorter prefix is not read."""


def common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Count how many messages two prompts begin alike with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a is not b and a != b), min(len(one), len(other)))


def price(prompts: Sequence[list[Any]], size: Callable[[Any], int]) -> float:
    """Sum up what prompts cost, each read as far as it begins like the one before; the first is not billed.

    Args:
        prompts: What was sent, call by call.
        size: Counts a message.
    """
    total = 0.0
    for before, after in pairwise(prompts):
        tokens = [size(message) for message in after]
        read = sum(tokens[: common(before, after)])
        read = read if read >= LEAST_PREFIX else 0
        total += READ * read + WRITE * (sum(tokens) - read)
    return total
