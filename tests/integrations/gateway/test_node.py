"""Clients for Node through a gateway, all from npm: loops of hundreds of calls, every second one streamed."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.gateways import gateway
from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, Calls, LookError, Loop
from tests.integrations.upstream import BUDGET_TOKENS, Score, hold, upstream
from tests.npm import node_program

PACKAGES = (
    "openai@6.49.0",  # 7 and its like need Node 22
    "@anthropic-ai/sdk@1.14.0",
    "@google/genai@1.52.0",
    "ai@6.0.326",
    "@ai-sdk/openai@3.0.141",
    "@ai-sdk/anthropic@3.0.140",
    "@ai-sdk/google@3.0.141",
    "zod@4.1.13",
)
SCRIPT = Path(__file__).with_name("loops.mjs")
USUAL: dict[str, Any] = {"budget_tokens": BUDGET_TOKENS}
CLAUDE: dict[str, Any] = {"budget_tokens": 6_000, "charges": ("claude-sonnet-4-5", 0.85)}
"""As for its client for Python, where it says why."""
CLIENTS: dict[str, dict[str, Any]] = {
    "chat": USUAL,
    "responses": USUAL,
    "messages": CLAUDE,
    "content": USUAL,
    "ai chat": USUAL,
    "ai responses": USUAL,
    "ai messages": CLAUDE,
    "ai content": USUAL,
}


def play(client: str, loop: Loop, folder: Path) -> Score:
    """Play a loop with a client that knows the address of a gateway, and nothing else of it."""
    given = CLIENTS[client]
    with ExitStack() as stack:
        behind = stack.enter_context(upstream(loop, bills=True, **given))
        front = stack.enter_context(gateway(behind.address, budgets={"*": str(given["budget_tokens"])}))
        done = subprocess.run(
            [*node_program(folder, SCRIPT, PACKAGES), client, front.address],
            input=json.dumps(told_of(loop)),
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"came": loop.model_calls}
    return behind.score


def told_of(loop: Loop) -> dict[str, Any]:
    """Write what a program for Node needs of a loop: what users ask, and what the tool says."""
    places = [
        place
        for question in loop.questions
        for step in question.steps
        if isinstance(step, Calls)
        for place in step.places
    ]
    questions = [{"text": one.text, "has_image": one.has_image} for one in loop.questions]
    answers = {place: _answer(loop, place) for place in places}
    return {"system": SYSTEM, "image": IMAGE, "questions": questions, "answers": answers}


def _answer(loop: Loop, place: int) -> dict[str, Any]:
    try:
        return {"text": loop.look(place), "error": False}
    except LookError as error:
        return {"text": str(error), "error": True}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_small_loop_of_a_client_for_node_is_valid_and_within_the_budget(
    client: str, tmp_path: Path
) -> None:
    """Up to its twelfth question, when not all of it has room any more."""
    short = replace(LOOPS[0], questions=LOOPS[0].questions[:12])
    score = play(client, short, tmp_path)
    assert (score.invalid, score.over, score.blind) == ([], [], [])
    assert score.requests == short.model_calls
    assert score.fills


@pytest.mark.long
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_loop_of_a_client_for_node_is_as_good_as_with_an_adapter(
    client: str, loop: Loop, tmp_path: Path
) -> None:
    """Valid, within the budget, nothing new out of sight; the budget used, the prefix kept."""
    hold(play(client, loop, tmp_path), loop)
