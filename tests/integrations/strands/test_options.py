"""`trim_middleware` and `TrimConversationManager` with each of their options, and with each kind of model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from strands.models import BedrockModel

from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.strands.test_strands import completions, converse, play
from tests.integrations.upstream import Score
from trimtab.integrations.strands import TrimConversationManager, trim_middleware


def _claude(served: Any, *, streaming: bool = False) -> BedrockModel:
    made: Any = converse(served, streaming=streaming)
    made.update_config(model_id="us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    return made


def _by(model: Callable[..., Any], loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    return play(loop, trim_middleware(budget, **options), model=model)


def _managed(model: Callable[..., Any], loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    return play(loop, model=model, conversation_manager=TrimConversationManager(budget, **options))


WAYS = {
    "chat": Way(partial(_by, completions), has_marks=True),
    "converse": Way(partial(_by, _claude), 4, has_marks=True),
    "converse, streamed": Way(partial(_by, partial(_claude, streaming=True)), 4, has_marks=True),
    "manager": Way(partial(_managed, _claude), refuses_marks="", has_marks=True),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(WAYS)
