"""`TrimMiddleware` with each of its options, and with each kind of model."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from tests.integrations.langchain.test_langchain import CONFIG, _said, _tool
from tests.integrations.loops import SYSTEM, Loop, Question
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score, Upstream, upstream
from trimtab.integrations.langchain import TrimMiddleware


def _openai(served: Upstream, **options: Any) -> ChatOpenAI:
    address = f"{served.address}/v1"
    return ChatOpenAI(model="gpt-4o", base_url=address, api_key="none", max_retries=0, **options)


def _claude(served: Upstream, **options: Any) -> ChatAnthropic:
    made: Any = ChatAnthropic
    return made(model="claude-sonnet-4-6", base_url=served.address, api_key="none", max_retries=0, **options)


def _marked(question: Question) -> HumanMessage:
    said = _said(question)
    if not question.is_marked:
        return said
    blocks: Any = said.content if isinstance(said.content, list) else [{"type": "text", "text": said.content}]
    return HumanMessage([*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}])


def _way(model: Any, *, streams: bool = False, marks: bool = False, **settings: Any) -> Any:
    def play(loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
        with upstream(loop) as served:
            agent: Any = create_agent(
                model(served, **settings),
                [_tool(served.loop)],
                system_prompt=SYSTEM,
                middleware=[TrimMiddleware(budget, **options)],
                checkpointer=InMemorySaver(),
            )

            async def stream() -> None:
                for question in loop.questions:
                    async for _ in agent.astream({"messages": [_marked(question)]}, CONFIG):
                        pass

            if streams:
                asyncio.run(stream())
            else:
                for question in loop.questions:
                    said = _marked(question) if marks else _said(question)
                    agent.invoke({"messages": [said]}, CONFIG)
            return served.score, agent.get_state(CONFIG).values["messages"]

    return play


WAYS = {
    "chat": Way(_way(_openai)),
    "responses": Way(_way(_openai, use_responses_api=True)),
    "claude": Way(_way(_claude), most_marks=4),
    "claude, streamed, marked": Way(
        _way(_claude, streams=True, marks=True, streaming=True), 4, has_marks=True
    ),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(
    WAYS, {"persist": {"persist": True}, "retry_overflow": {"retry_overflow": True}}
)
