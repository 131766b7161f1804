"""`TrimCapability` with each of its options, and with each kind of model."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.pydantic_ai.test_pydantic_ai import (
    LIMITS,
    _agent,
    _chat_model,
    _responses_model,
    _said,
    play,
)
from tests.integrations.upstream import Score, Upstream, upstream
from trimtab.integrations.pydantic_ai import TrimCapability


def _claude(served: Upstream) -> AnthropicModel:
    return AnthropicModel(
        "claude-sonnet-4-6", provider=AnthropicProvider(base_url=served.address, api_key="none")
    )


def _either(served: Upstream) -> FallbackModel:
    return FallbackModel(_claude(served), _chat_model(served))


def _by(model: Any, loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    return play(loop, TrimCapability(budget, **options), model=model)


def _streamed(loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    async def run() -> tuple[Score, Any]:
        with upstream(loop) as served:
            made = _agent(_claude(served), loop, [TrimCapability(budget, **options)])
            history: list[ModelMessage] = []
            for question in loop.questions:
                async with made.run_stream(
                    _said(question), message_history=history, usage_limits=LIMITS
                ) as answer:
                    await answer.get_output()
                    history = answer.all_messages()
            return served.score, history

    return asyncio.run(run())


WAYS = {
    "chat": Way(partial(_by, _chat_model), refuses_marks="persist", has_marks=True),
    "responses": Way(partial(_by, _responses_model), refuses_marks="persist", has_marks=True),
    "claude": Way(partial(_by, _claude), 4, refuses_marks="persist", has_marks=True),
    "claude, streamed": Way(_streamed, 4, refuses_marks="persist", has_marks=True),
    "either": Way(partial(_by, _either), 4, refuses_marks="persist", has_marks=True),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"persist": {"persist": True}}
)
