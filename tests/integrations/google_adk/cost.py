"""A model call of an agent of ADK's whose plugin fits it, without the model."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models import LlmRequest
from google.adk.sessions import InMemorySessionService, Session
from google.genai import types

from tests.integrations.seam import Run, bare, calls_of, complete
from trimtab.integrations.google_adk import TrimPlugin

MODEL = "gemini-2.5-flash"


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    names = {one: name for message in messages for one, name, _ in calls_of(message)}
    said = [_content(message, names) for message in messages if message["role"] != "system"]
    config = types.GenerateContentConfig(
        system_instruction="\n".join(one["content"] for one in messages if one["role"] == "system")
    )
    context = CallbackContext(
        InvocationContext(
            invocation_id="i",
            agent=LlmAgent(name="looker", model=MODEL),
            session=Session(id="s", app_name="app", user_id="u"),
            session_service=InMemorySessionService(),
        )
    )
    trim = TrimPlugin(budget)
    # The framework copies the contents of its events for each request.
    calls = cycle([[*map(_copy, said)] for _ in range(3)])
    request = LlmRequest(model=MODEL, config=config)

    async def run() -> object:
        request.contents = next(calls)
        await trim.before_model_callback(callback_context=context, llm_request=request)
        return request.contents

    wires = [one.model_dump(exclude_none=True) for one in said]
    return complete(run), bare(wires, budget, model=MODEL, format="gemini")


def _content(message: dict[str, Any], names: dict[str, str]) -> types.Content:
    """Write a message as the content of an event; ids that ADK gives calls are not sent to Gemini."""
    text = message["content"] or ""
    if message["role"] == "tool":
        name = names.get(message["tool_call_id"], "look")
        parts = [types.Part.from_function_response(name=name, response={"result": text})]
        return types.Content(role="user", parts=parts)
    calls = [types.Part.from_function_call(name=name, args=args) for _, name, args in calls_of(message)]
    said = [types.Part(text=text)] if text or not calls else []
    return types.Content(role="model" if message["role"] == "assistant" else "user", parts=[*said, *calls])


def _copy(content: types.Content) -> types.Content:
    """Copy a content and its parts, and not what the parts hold."""
    return content.model_copy(update={"parts": [one.model_copy() for one in content.parts or ()]})
