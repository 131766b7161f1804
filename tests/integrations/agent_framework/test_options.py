"""`TrimMiddleware` and `TrimStrategy` with each of their options, and with each kind of client."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.integrations.agent_framework.test_agent_framework import (
    NAME,
    claude,
    completions,
    play,
    responses,
    strategy,
)
from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score
from trimtab.integrations.agent_framework import TrimMiddleware


def _by(
    client: Any, loop: Loop, budget: Any, /, *, stream: bool = False, **options: Any
) -> tuple[Score, Any]:
    def made(look: Any) -> dict[str, Any]:
        stored = {"default_options": {"store": False}} if client is responses else {}
        return {"middleware": [TrimMiddleware(budget, **options)], **stored}

    return play(loop, made, client=client, stream=stream)


def _by_strategy(loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    return play(loop, strategy(budget, **options))


WAYS = {
    "chat": Way(partial(_by, completions), refuses_marks=""),
    "responses": Way(partial(_by, responses), refuses_marks=""),
    "claude": Way(partial(_by, claude), refuses_marks=""),
    "claude, streamed": Way(partial(_by, claude, stream=True), refuses_marks=""),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"retry_overflow": {"retry_overflow": True}, "name": {"name": NAME}}
)

test_a_strategy_sends_what_is_valid_and_within_the_budget_whatever_is_asked_for = property_of(
    {"strategy": Way(_by_strategy, refuses_marks="")}, {"persist": {"persist": True}}
)
