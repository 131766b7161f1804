"""`TrimMiddleware` in an agent of deepagents: what is sent by it and by its sub-agents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from tests.judge.server import Provider, answered, provider
from trimtab import Budget, fit
from trimtab.integrations.langchain import TrimMiddleware

BUDGET_TOKENS = 4_000
PAGES = 12
"""That are read by each agent: three times what fits."""


class Trim(TrimMiddleware):
    """In the place of the agent's own summarization."""

    @property
    def name(self) -> str:
        """That of what it takes the place of."""
        return "SummarizationMiddleware"


@tool
def read_page(page: int) -> str:
    """Read a page of the file."""
    return f"page {page}: " + "the harbour was quiet that night. " * 120


def _answer(form: str, body: dict[str, Any]) -> Any:
    """Have a sub-agent read first, if there is one to ask, and then read all pages."""
    names = [one["function"]["name"] for one in body["tools"]]
    done = [one for one in body["messages"] if one["role"] == "tool"]
    last = done[-1]["content"] if done else ""
    page = int(last.split()[1].strip(":")) + 1 if last.startswith("page ") else 1
    if "task" in names and not done:
        kind = "reader" if "reader: " in json.dumps(body["tools"]) else "general-purpose"
        call = {"name": "task", "arguments": json.dumps({"description": "Read.", "subagent_type": kind})}
    elif page > PAGES:
        return _says(form, body, {"role": "assistant", "content": "It was quiet."})
    else:
        call = {"name": "read_page", "arguments": json.dumps({"page": page})}
    calls = [{"id": f"c{page}_{len(names)}", "type": "function", "function": call}]
    return _says(form, body, {"role": "assistant", "content": None, "tool_calls": calls})


def _says(form: str, body: dict[str, Any], message: dict[str, Any]) -> Any:
    ends = "tool_calls" if "tool_calls" in message else "stop"
    choices = [{"index": 0, "message": message, "finish_reason": ends}]
    return {**answered(form, body["model"]), "choices": choices}


def _play(served: Provider, **options: Any) -> tuple[list[int], list[int]]:
    """Run an agent; returns the tokens of its requests, and of those of its sub-agent."""
    model = ChatOpenAI(model="gpt-4o", base_url=f"{served.address}/v1", api_key="none", max_retries=0)
    agent = create_deep_agent(model, [read_page], **options)
    said = agent.invoke({"messages": [HumanMessage("Was it quiet?")]}, {"recursion_limit": 500})
    assert said["messages"][-1].content == "It was quiet."
    tokens: tuple[list[int], list[int]] = [], []
    for _, body in served.bodies:
        is_sub = all(one["function"]["name"] != "task" for one in body["tools"])
        tokens[is_sub].append(fit(body, Budget(10**6), model="gpt-4o").report.tokens_after)
    assert min(map(len, tokens)) > PAGES
    return tokens


@pytest.mark.parametrize("named", [False, True], ids=["general-purpose", "named"])
def test_every_request_of_an_agent_and_of_its_sub_agent_fits(named: bool) -> None:
    """In the place of the agent's own summarization; one that has a name is given it by itself."""
    trim = Trim(BUDGET_TOKENS)
    reader = {"name": "reader", "description": "Reads.", "system_prompt": "Read.", "middleware": [trim]}
    with provider(_answer) as served:
        own, sub = _play(served, middleware=[trim], subagents=[reader] if named else None)
    assert max(own) <= BUDGET_TOKENS
    assert max(sub) <= BUDGET_TOKENS
    assert min(max(own), max(sub)) > BUDGET_TOKENS / 2


def test_beside_its_own_summarization_the_main_agent_fits_and_a_sub_agent_is_given_its_own() -> None:
    """A middleware that takes no place of deepagents' own is the main agent's alone, as the page says."""
    with provider(_answer) as served:
        own, sub = _play(served, middleware=[TrimMiddleware(BUDGET_TOKENS)])
    assert max(own) <= BUDGET_TOKENS < max(sub)
    spec = {
        "name": "general-purpose",
        "description": "Does what it is told.",
        "system_prompt": "Do it.",
        "middleware": [TrimMiddleware(BUDGET_TOKENS)],
    }
    with provider(_answer) as served:
        own, sub = _play(served, middleware=[TrimMiddleware(BUDGET_TOKENS)], subagents=[spec])
    assert max(own + sub) <= BUDGET_TOKENS
