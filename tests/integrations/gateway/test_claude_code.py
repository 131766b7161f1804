"""Claude Code's own command line through a gateway: it comes with the package claude-agent-sdk."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.gateways import gateway
from tests.integrations.gateway.agents import agents_model, last_words
from tests.integrations.gateway.program import MODEL, TOOL, converse
from tests.integrations.loops import IMAGE, LOOPS, LookError, Loop, Question
from tests.integrations.upstream import Score, hold

BUDGET_TOKENS = 48_000
"""Its system text and tools have 31,000 of them, as long as no bill has said otherwise."""
CHARGES = (MODEL, 0.85)
"""As for the clients: nobody here has Claude's tokenizer, and the count errs high."""


def play(loop: Loop, home: Path) -> Score:
    """Play a loop with Claude Code, its own system text and all of its tools."""

    def look(place: int) -> dict[str, Any]:
        try:
            return {"content": [{"type": "text", "text": loop.look(place)}]}
        except LookError as error:
            return {"content": [{"type": "text", "text": str(error)}], "is_error": True}

    with ExitStack() as stack:
        given: dict[str, Any] = {"budget_tokens": BUDGET_TOKENS, "charges": CHARGES}
        behind = stack.enter_context(agents_model(loop, _put_by_server, **given))
        front = stack.enter_context(gateway(behind.address, budgets={"*": str(BUDGET_TOKENS)}))
        questions = map(_parts, loop.questions)
        answers = asyncio.run(converse(questions, look, address=front.address, home=home))
    assert answers == last_words(loop)
    return behind.score


def _put_by_server(call: dict[str, Any]) -> None:
    call["name"] = TOOL


def _parts(question: Question) -> list[dict[str, Any]]:
    said = [{"type": "text", "text": question.text}]
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE.partition(",")[2]}
    return [{"type": "image", "source": source}, *said] if question.has_image else said


def test_a_small_loop_of_claude_code_is_valid_and_within_the_budget(tmp_path: Path) -> None:
    """Seven questions: a picture, results side by side, and a call that fails."""
    short = replace(LOOPS[0], questions=LOOPS[0].questions[:7])
    score = play(short, tmp_path)
    assert (score.invalid, score.over, score.blind) == ([], [], [])
    assert score.requests == short.model_calls


@pytest.mark.long
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_loop_of_claude_code_is_as_good_as_with_an_adapter(loop: Loop, tmp_path: Path) -> None:
    """Valid, within the budget, nothing new out of sight; the budget used, the prefix kept.

    At any price: a third or more of each request is what the program says of itself.
    """
    hold(play(loop, tmp_path), loop, price=1)
