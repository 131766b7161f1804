"""Loops played with Anthropic's own client: what a user's program does around it, and nothing else."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import anthropic

from tests.integrations.loops import IMAGE, SYSTEM, LookError, Loop, Question
from tests.integrations.upstream import Score, upstream
from trimtab.integrations.anthropic import with_budget

MODEL = "claude-sonnet-4-5"
BUDGET_TOKENS = 6_000
"""For the loops that have 4,000 elsewhere: Claude charges half as much again for the same."""
CHARGES = (MODEL, 0.85)
"""Nobody here has Claude's tokenizer: the count errs high, by as much as it does for many texts."""
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Look at a place.",
    "input_schema": {"type": "object", "properties": {"place": {"type": "integer"}}, "required": ["place"]},
}


def client_of(served: Any, **options: Any) -> anthropic.Anthropic:
    """Make a client of this machine's server: no key, no proxy."""
    http = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.Anthropic(api_key="none", base_url=served.address, http_client=http, **options)


def async_client_of(served: Any, **options: Any) -> anthropic.AsyncAnthropic:
    """Make the async one."""
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    return anthropic.AsyncAnthropic(api_key="none", base_url=served.address, http_client=http, **options)


def result_of(loop: Loop, call: Any) -> dict[str, Any]:
    """Run the tool; what it raises is its result."""
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id}
    try:
        return {**result, "content": loop.look(call.input["place"])}
    except LookError as error:
        return {**result, "content": str(error), "is_error": True}


def play(
    loop: Loop,
    budget: Any,
    *,
    bills: bool = True,
    model: str = MODEL,
    extra: Any = None,
    through: Any = None,
    **options: Any,
) -> tuple[Score, list[Any]]:
    """Play a loop; returns the score and the program's own messages.

    Args:
        budget: What `with_budget` is given; 0: the bare client.
        through: Serves the address of another server, which is asked in its place.
        extra: What else each call is given.
    """
    with ExitStack() as stack:
        served = stack.enter_context(
            upstream(loop, budget_tokens=BUDGET_TOKENS, bills=bills, charges=CHARGES)
        )
        asked = served if through is None else through(served.address)
        bare = stack.enter_context(closing(client_of(asked)))
        client = with_budget(bare, budget, **options) if budget else bare
        said: list[Any] = []
        for question in loop.questions:
            said.append({"role": "user", "content": _asked(question)})
            while True:
                answer = client.messages.create(
                    model=model,
                    max_tokens=1_000,
                    system=SYSTEM,
                    messages=said,
                    tools=[LOOK],
                    **(extra or {}),
                )
                said.append({"role": "assistant", "content": answer.content})
                calls = [block for block in answer.content if block.type == "tool_use"]
                if not calls:
                    break
                said.append({"role": "user", "content": [result_of(loop, call) for call in calls]})
        return served.score, said


def _asked(question: Question) -> Any:
    mark = {"cache_control": {"type": "ephemeral"}} if question.is_marked else {}
    if not (question.has_image or mark):
        return question.text
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE.partition(",")[2]}
    image = [{"type": "image", "source": source}] if question.has_image else []
    return [*image, {"type": "text", "text": question.text, **mark}]
