"""`with_budget` of Anthropic's client with each of its options."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.integrations.anthropic.play import play
from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score

AUTOMATIC = {"extra_body": {"cache_control": {"type": "ephemeral"}}}
"""Asks the API to mark the last block itself."""


def _play(loop: Loop, budget: Any, /, *, extra: Any = None, **options: Any) -> tuple[Score, Any]:
    return play(loop, budget, bills=False, extra=extra, model="claude-sonnet-4-6", **options)


WAYS = {
    "messages": Way(_play, 4, has_marks=True),
    "messages, marked by the API": Way(partial(_play, extra=AUTOMATIC), 4, has_marks=True),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"retry_overflow": {"retry_overflow": True}}
)
