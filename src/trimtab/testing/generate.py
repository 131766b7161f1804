"""Random conversations from a seed: what real histories hold, and what breaks trimmers."""

from __future__ import annotations

from typing import Any

from trimtab.testing.bodies import request_bodies

Message = dict[str, Any]


def conversations(
    count: int = 60, /, *, seed: int = 0, valid: bool = False, max_messages: int = 24
) -> list[list[Message]]:
    """Make conversations in the Chat Completions form, from `request_bodies`.

    The same seed gives the same conversations. They have parallel calls, late, repeated, orphaned and
    reordered results, open and unanswered calls, reused ids, list and null contents, system messages in the
    middle, and text in many scripts with lone surrogates and special tokens.

    Args:
        count: How many.
        seed: Which ones; any whole number.
        valid: Whether to make only conversations that a provider accepts: every result is directly after its
            call, and only the last call may be open.
        max_messages: Approximate maximum number of messages.

    Example:
        >>> samples = conversations(3, seed=7)
        >>> samples == conversations(3, seed=7), len(samples)
        (True, 3)
    """
    bodies = request_bodies(count, seed=seed, valid=valid, max_messages=max_messages)
    return [body["messages"] for body in bodies]
