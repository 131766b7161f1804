"""`trim_filter` with each of its options, and with each kind of model."""

from __future__ import annotations

from functools import partial
from typing import Any

from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel

from tests.integrations.loops import Loop
from tests.integrations.openai_agents.test_openai_agents import play
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import UNKNOWN, Score
from trimtab import Session
from trimtab.integrations.openai_agents import TrimSession, trim_filter


def _by(
    loop: Loop, budget: Any, /, *, persist: bool = False, model: str = "gpt-4o", **given: Any
) -> tuple[Score, Any]:
    kind = given.pop("kind", OpenAIResponsesModel)
    made = None
    if persist:
        made = TrimSession(Session(3_000, model="gpt-4o", format="openai_responses"))
    return play(loop, trim_filter(budget, persist=made, **given), model=kind, session=made, name=model)


WAYS = {
    "responses": Way(_by),
    "responses, explicit": Way(partial(_by, model="gpt-5.6"), 4),
    "chat": Way(partial(_by, kind=OpenAIChatCompletionsModel)),
    "chat, unknown": Way(partial(_by, kind=OpenAIChatCompletionsModel, model=UNKNOWN), 4, counts=False),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"persist": {"persist": True}}
)
