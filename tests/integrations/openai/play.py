"""Loops played with OpenAI's own client: what a user's program does around it, and nothing else."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from typing import Any

import openai

from tests.integrations.loops import IMAGE, SYSTEM, LookError, Loop, Question
from tests.integrations.upstream import Score, Upstream, upstream
from trimtab.integrations.openai import with_budget

MODEL = "gpt-4o"
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Look at a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "integer"}}, "required": ["place"]},
}


def client_of(served: Any, **options: Any) -> openai.OpenAI:
    """Make a client of this machine's server: no key, no proxy."""
    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(api_key="none", base_url=f"{served.address}/v1", http_client=http, **options)


def async_client_of(served: Any, **options: Any) -> openai.AsyncOpenAI:
    """Make the async one."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    return openai.AsyncOpenAI(api_key="none", base_url=f"{served.address}/v1", http_client=http, **options)


def looked(loop: Loop, arguments: str) -> str:
    """Run the tool; what it raises is its result."""
    try:
        return loop.look(json.loads(arguments)["place"])
    except LookError as error:
        return f"error: {error}"


def play_chat(
    loop: Loop,
    budget: Any,
    *,
    bills: bool = True,
    model: str = MODEL,
    extra: Any = None,
    through: Any = None,
    **options: Any,
) -> tuple[Score, list[Any]]:
    """Play a loop with Chat Completions; returns the score and the program's own messages.

    Args:
        budget: What `with_budget` is given; 0: the bare client.
        through: Serves the address of another server, which is asked in its place.
        extra: What else each call is given.
    """
    with ExitStack() as stack:
        served = stack.enter_context(upstream(loop, bills=bills))
        asked = served if through is None else through(served.address)
        bare = stack.enter_context(closing(client_of(asked)))
        client = with_budget(bare, budget, **options) if budget else bare
        said: list[Any] = [{"role": "system", "content": SYSTEM}]
        for question in loop.questions:
            said.append({"role": "user", "content": _asked(question)})
            while True:
                answer = client.chat.completions.create(
                    model=model,
                    messages=said,
                    tools=[{"type": "function", "function": LOOK}],
                    **(extra or {}),
                )
                message = answer.choices[0].message
                said.append(message)
                for call in message.tool_calls or ():
                    text = looked(loop, call.function.arguments)
                    said.append({"role": "tool", "tool_call_id": call.id, "content": text})
                if not message.tool_calls:
                    break
        return served.score, said


def play_responses(
    loop: Loop,
    budget: Any,
    *,
    bills: bool = True,
    model: str = MODEL,
    extra: Any = None,
    through: Any = None,
    **options: Any,
) -> tuple[Score, list[Any]]:
    """Play a loop with Responses, whose items the program sends back."""
    with ExitStack() as stack:
        served = stack.enter_context(upstream(loop, bills=bills))
        asked = served if through is None else through(served.address)
        bare = stack.enter_context(closing(client_of(asked)))
        client = with_budget(bare, budget, **options) if budget else bare
        items: list[Any] = []
        for question in loop.questions:
            items.append({"role": "user", "content": _asked(question, text="input_text")})
            while True:
                answer = client.responses.create(
                    model=model,
                    input=items,
                    instructions=SYSTEM,
                    tools=[{"type": "function", "strict": False, **LOOK}],
                    **(extra or {}),
                )
                items += answer.output
                calls = [item for item in answer.output if item.type == "function_call"]
                for call in calls:
                    output = looked(loop, call.arguments)
                    items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
                if not calls:
                    break
        return served.score, items


def _asked(question: Question, *, text: str = "text") -> Any:
    if not question.has_image:
        return question.text
    image: Any = {"url": IMAGE, "detail": "auto"}
    if text == "text":
        picture = {"type": "image_url", "image_url": image}
    else:
        picture = {"type": "input_image", "image_url": IMAGE, "detail": "auto"}
    return [{"type": text, "text": question.text}, picture]


__all__ = ["Upstream", "async_client_of", "client_of", "play_chat", "play_responses"]
