"""Loops played with Google's own client: what a user's program does around it, and nothing else."""

from __future__ import annotations

import base64
from contextlib import ExitStack, closing
from typing import Any

from google import genai
from google.genai import types

from tests.integrations.loops import IMAGE, SYSTEM, LookError, Loop, Question
from tests.integrations.upstream import Score, upstream
from trimtab.integrations.google_genai import with_budget

MODEL = "gemini-2.5-flash"
LOOK = types.FunctionDeclaration(
    name="look",
    description="Look at a place.",
    parameters_json_schema={
        "type": "object",
        "properties": {"place": {"type": "integer"}},
        "required": ["place"],
    },
)


def client_of(served: Any) -> genai.Client:
    """Make a client of this machine's server: no key, no proxy."""
    options = types.HttpOptions(
        base_url=served.address, client_args={"trust_env": False}, async_client_args={"trust_env": False}
    )
    return genai.Client(api_key="none", vertexai=False, http_options=options)


def talk_of(turns: int) -> Any:
    """Write a conversation of so many turns and a question."""
    said: list[types.Content] = []
    for turn in range(turns):
        said += [
            types.Content(role="user", parts=[types.Part(text=f"question {turn}")]),
            types.Content(role="model", parts=[types.Part(text="It is sunny. " * 20)]),
        ]
    return [*said, types.Content(role="user", parts=[types.Part(text="And now?")])]


def config_of(**options: Any) -> types.GenerateContentConfig:
    """Say what stands beside the contents; the program runs the tool itself."""
    return types.GenerateContentConfig(
        system_instruction=SYSTEM,
        tools=[types.Tool(function_declarations=[LOOK])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        **options,
    )


def result_of(loop: Loop, call: types.FunctionCall) -> types.Part:
    """Run the tool; what it raises is its result."""
    place = (call.args or {})["place"]
    try:
        said = {"output": loop.look(place)}
    except LookError as error:
        said = {"error": str(error)}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name="look", response=said))


def play(
    loop: Loop, budget: Any, *, bills: bool = True, model: str = MODEL, through: Any = None, **options: Any
) -> tuple[Score, list[Any]]:
    """Play a loop; returns the score and the program's own contents.

    Args:
        budget: What `with_budget` is given; 0: the bare client.
        through: Serves the address of another server, which is asked in its place.
    """
    with ExitStack() as stack:
        served = stack.enter_context(upstream(loop, bills=bills))
        asked = served if through is None else through(served.address)
        bare = stack.enter_context(closing(client_of(asked)))
        client = with_budget(bare, budget, **options) if budget else bare
        said: list[Any] = []
        for question in loop.questions:
            said.append(types.Content(role="user", parts=_asked(question)))
            while True:
                answer = client.models.generate_content(model=model, contents=said, config=config_of())
                said.append(answer.candidates[0].content)
                calls = answer.function_calls or []
                if not calls:
                    break
                said.append(types.Content(role="user", parts=[result_of(loop, call) for call in calls]))
        return served.score, said


def _asked(question: Question) -> list[types.Part]:
    text = types.Part(text=question.text)
    if not question.has_image:
        return [text]
    data = base64.b64decode(IMAGE.partition(",")[2])
    return [text, types.Part.from_bytes(data=data, mime_type="image/png")]
