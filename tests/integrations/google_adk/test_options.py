"""`TrimPlugin` with each of its options, and with each kind of model."""

from __future__ import annotations

from functools import partial
from typing import Any

from google.adk.agents.run_config import RunConfig, StreamingMode

from tests.integrations.google_adk.test_google_adk import claude, gemini, play
from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score
from trimtab.integrations.google_adk import TrimPlugin


def _by(model: Any, loop: Loop, budget: Any, /, *, run: Any = None, **options: Any) -> tuple[Score, Any]:
    return play(loop, [TrimPlugin(budget, **options)], model=model, run=run)


_STREAMED = RunConfig(max_llm_calls=0, streaming_mode=StreamingMode.SSE)

WAYS = {
    "gemini": Way(partial(_by, gemini), refuses_marks=""),
    "gemini, streamed": Way(partial(_by, gemini, run=_STREAMED), refuses_marks=""),
    "claude": Way(partial(_by, claude), refuses_marks=""),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(WAYS)
