"""`with_budget` of Google's client with each of its options."""

from __future__ import annotations

from typing import Any

from tests.integrations.google_genai.play import play
from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score


def _play(loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    return play(loop, budget, bills=False, **options)


WAYS = {"generate_content": Way(_play)}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"retry_overflow": {"retry_overflow": True}}
)
