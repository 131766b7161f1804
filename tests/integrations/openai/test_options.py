"""`with_budget` of OpenAI's client with each of its options."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.integrations.loops import Loop
from tests.integrations.openai.play import play_chat, play_responses
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score


def _by(play: Any, loop: Loop, budget: Any, /, *, model: str = "gpt-4o", **options: Any) -> tuple[Score, Any]:
    return play(loop, budget, bills=False, model=model, **options)


WAYS = {
    "chat": Way(partial(_by, play_chat)),
    "responses": Way(partial(_by, play_responses)),
    "responses, explicit": Way(partial(_by, play_responses, model="gpt-5.6"), 4),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"retry_overflow": {"retry_overflow": True}}
)
