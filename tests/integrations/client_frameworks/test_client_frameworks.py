"""Frameworks that take the provider's client, given one with a budget: what is sent fits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import instructor
import pytest
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI as LLM
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function
from smolagents import OpenAIModel, ToolCallingAgent, tool

from tests.docs.documents import ROOT, blocks
from tests.integrations.loops import LOOPS, LookError, Loop
from tests.integrations.upstream import BUDGET_TOKENS, Upstream, hold, upstream
from tests.judge.server import Provider, answered, provider, run_alone
from trimtab import counter_for
from trimtab.counting import measure
from trimtab.integrations.openai import with_budget

PAGE = ROOT / "docs" / "integrations" / "client-frameworks.md"
PROGRAMS = [block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.kind == "py"]

ONE = LOOPS[1].questions[0]
LOOP = Loop("agent", (replace(ONE, steps=(*ONE.steps[:60], ONE.steps[-1])),))
"""An agent that answers one question by sixty-one calls of the model."""


class Reply(BaseModel):
    """An answer by a schema."""

    answer: str


def _client(kind: Any, served: Any, **options: Any) -> Any:
    """Make a client of this machine's server with a budget: no key, no second try."""
    client = kind(api_key="k", base_url=f"{served.address}/v1", max_retries=0)
    return with_budget(client, BUDGET_TOKENS, **options)


def look(place: int) -> str:
    """Look at a place.

    Args:
        place: Its number.
    """
    try:
        return LOOP.look(place)
    except LookError as error:
        return str(error)


class Places:
    """The same as a plugin."""

    @kernel_function(name="look", description="Look at a place.")
    def look(self, place: int) -> str:
        """Look at a place."""
        return look(place)


def _agno(served: Upstream, question: str) -> None:
    model = OpenAIChat(id="gpt-4o", client=_client(OpenAI, served))
    Agent(model=model, tools=[look], telemetry=False).run(question)


def _llama_index(served: Upstream, question: str) -> None:
    llm = LLM(model="gpt-4o", api_key="k", async_openai_client=_client(AsyncOpenAI, served))
    agent = FunctionAgent(tools=[look], llm=llm, streaming=False)

    async def ask() -> None:
        await agent.run(question, max_iterations=1_000)

    asyncio.run(ask())


def _semantic_kernel(served: Upstream, question: str) -> None:
    agent = ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="gpt-4o", async_client=_client(AsyncOpenAI, served)),
        name="looker",
        plugins=[Places()],
        function_choice_behavior=FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=1_000),
    )
    asyncio.run(agent.get_response(question))


@pytest.mark.parametrize("play", [_agno, _llama_index, _semantic_kernel], ids=lambda play: play.__name__[1:])
def test_an_agent_sends_what_is_valid_within_the_budget_and_shows_what_matters(
    play: Callable[[Upstream, str], None],
) -> None:
    """Whatever the framework keeps of the turn, and however it asks."""
    with upstream(LOOP) as served:
        play(served, ONE.text)
        hold(served.score, LOOP)


def _said(name: str, arguments: dict[str, Any], number: int) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


class _Asked:
    """Calls `look` a number of times, if there is such a tool; then answers by the tool that takes that."""

    def __init__(self, looks: int = 0) -> None:
        self.sizes: list[int] = []
        self._looks = looks

    def __call__(self, form: str, body: dict[str, Any]) -> dict[str, Any]:
        """Write the answer to a request."""
        tokens = measure(body, counter=counter_for("gpt-4o"), format=form).tokens
        self.sizes.append(tokens)
        number, answer = len(self.sizes), answered(form, str(body["model"]))
        tools = {one["function"]["name"] for one in body.get("tools") or ()} - {"look"}
        choice = answer["choices"][0]
        if number <= self._looks:
            choice["message"] = _said("look", {"place": number}, number)
        elif tools:
            choice["message"] = _said(tools.pop(), {"answer": "ok"}, number)
        choice["finish_reason"] = "tool_calls" if "tool_calls" in choice["message"] else "stop"
        return {
            **answer,
            "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1},
        }


def test_what_smolagents_sends_fits_and_has_the_task_and_the_result_that_just_came() -> None:
    """Its results are texts of the user, so that the task has to be pinned."""
    asked = _Asked(looks=60)
    with provider(asked) as served:
        model = OpenAIModel("gpt-4o", client=_client(OpenAI, served, pin=[1]))
        agent = ToolCallingAgent(tools=[tool(look)], model=model, max_steps=100, verbosity_level=0)
        assert agent.run(ONE.text) == "ok"
        _hold_sent(served, asked.sizes, requests=61)
        for number, (_, body) in enumerate(served.bodies[1:], start=1):
            text = json.dumps(body)
            assert f"[result {number}]" in text
            assert ONE.label in text


def test_what_instructor_sends_fits_with_the_schema_of_the_answer() -> None:
    """A conversation that only grows."""
    asked = _Asked()
    with provider(asked) as served:
        client = instructor.from_openai(_client(OpenAI, served))
        talk: list[Any] = []
        for place in range(60):
            talk.append({"role": "user", "content": LOOP.answer(place)})
            said = client.chat.completions.create(model="gpt-4o", messages=talk, response_model=Reply)
            talk.append({"role": "assistant", "content": said.answer})
            assert talk[-2]["content"] in json.dumps(served.bodies[-1][1])
        _hold_sent(served, asked.sizes, requests=60)
        assert len(talk) == 120


def _hold_sent(served: Provider, sizes: list[int], *, requests: int) -> None:
    """Each request was accepted and is within the budget, which is used."""
    assert len(sizes) == len(served.bodies) == requests
    assert BUDGET_TOKENS / 2 < max(sizes) <= BUDGET_TOKENS
    assert min(sizes[-20:]) > BUDGET_TOKENS * 0.4


@pytest.mark.parametrize("at", range(5))
def test_a_program_of_the_page_sends_a_valid_request_and_prints_the_answer(at: int, tmp_path: Path) -> None:
    """In an empty folder."""
    assert len(PROGRAMS) == 5
    with provider(_Asked()) as served:
        told = run_alone(["-c", PROGRAMS[at]], served, tmp_path)
    assert "ok" in told
    assert len(served.bodies) == 1
