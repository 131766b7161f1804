"""`TrimHook` with each of its options."""

from __future__ import annotations

from functools import partial
from typing import Any

from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator

from tests.integrations.haystack.test_haystack import play
from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score
from trimtab.integrations.haystack import TrimHook


def _by(generator: Any, loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    return play(loop, TrimHook(budget, model="gpt-4o", **options), generator=generator)


WAYS = {
    "chat": Way(partial(_by, OpenAIChatGenerator), refuses_marks=""),
    "responses": Way(
        partial(_by, OpenAIResponsesChatGenerator, charge_as="openai_responses"), refuses_marks=""
    ),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"persist": {"persist": True}}
)
