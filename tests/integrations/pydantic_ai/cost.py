"""A model request of a Pydantic AI agent whose capability fits it, without the model."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.integrations.seam import MODEL, Run, bare, calls_of, complete
from trimtab.integrations.pydantic_ai import TrimCapability


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    history = [_message(message) for message in messages]
    model, trim = OpenAIChatModel(MODEL, provider=OpenAIProvider(api_key="none")), TrimCapability(budget)

    async def run() -> object:
        request = ModelRequestContext(
            model=model,
            messages=history,
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        context: Any = None
        return await trim.prepare_model_request(context, request)

    return complete(run), bare(messages, budget)


def _message(message: dict[str, Any]) -> ModelMessage:
    text = message["content"] or ""
    if message["role"] == "assistant":
        said = [TextPart(text)] if text else []
        return ModelResponse([*said, *(ToolCallPart(name, args, i) for i, name, args in calls_of(message))])
    if message["role"] == "tool":
        return ModelRequest([ToolReturnPart("look", text, message["tool_call_id"])])
    return ModelRequest([(SystemPromptPart if message["role"] == "system" else UserPromptPart)(text)])
