"""A Claude that thinks in an agent of LangChain's: what is left of a long turn begins with its thinking."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from tests.judge.server import provider
from trimtab import Fitted
from trimtab.integrations.langchain import TrimMiddleware

THOUGHTS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Hm, let me see.", "signature": "EqQBCgIYAhIM"},
    {"type": "redacted_thinking", "data": "EqQBCgIYAhIM"},
]


@tool
def look(place: int) -> str:
    """Look at a place."""
    return "sunny"


def _turn(thought: dict[str, Any], steps: int = 12) -> list[BaseMessage]:
    """Write a turn that thinks once and then calls a tool again and again."""
    said: list[BaseMessage] = [HumanMessage("Look around.")]
    for at in range(steps):
        call = {"type": "tool_use", "id": f"t{at}", "name": "look", "input": {"place": at}}
        made = {"id": f"t{at}", "name": "look", "args": {"place": at}}
        blocks: list[Any] = [thought, call] if not at else [call]
        said += [AIMessage(blocks, tool_calls=[made]), ToolMessage("sunny " * 60, tool_call_id=f"t{at}")]
    return said


@pytest.mark.parametrize("thought", THOUGHTS, ids=lambda one: one["type"])
@pytest.mark.parametrize("options", [{}, {"steady": True}, {"strategy": "agent"}, {"persist": True}])
def test_the_thinking_that_opens_a_turn_stays_beside_the_cut(
    thought: dict[str, Any], options: dict[str, Any]
) -> None:
    """The judge refuses a turn that begins otherwise, as the provider does."""
    seen: list[Fitted[Any]] = []
    with provider() as served:
        model: Any = ChatAnthropic(
            model_name="claude-sonnet-4-6",
            base_url=served.address,
            api_key="none",  # type: ignore[arg-type]
            max_retries=0,
            max_tokens_to_sample=3_000,
            thinking={"type": "enabled", "budget_tokens": 1_024},
            timeout=None,
            stop=None,
        )
        trim = TrimMiddleware(1_300, on_fitted=seen.append, **options)
        agent: Any = create_agent(model, [look], middleware=[trim])
        agent.invoke({"messages": _turn(thought)})
    [fitted] = seen
    assert 5 < len(fitted.messages) < len(_turn(thought))
    [(_, body)] = served.bodies
    assert body["messages"][1]["content"][0] == thought
    assert fitted.messages[-1].content == "sunny " * 60
