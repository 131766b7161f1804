"""`TrimMiddleware(retry_overflow=True)`: what is refused is sent once more, otherwise, streamed or not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_framework import Agent, Content, Message, tool
from agent_framework.anthropic import AnthropicClient
from agent_framework.exceptions import ChatClientException
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.integrations.refusing import LIMIT_TOKENS, THINKING, WORDS, Refusing, hold_left_out, refusing
from tests.judge.server import provider
from trimtab import Fitted
from trimtab.integrations.agent_framework import TrimMiddleware

BUDGET = 50_000


def _talk() -> list[Message]:
    said = [
        Message(role, [f"{turn}: " + "It is sunny in Utrecht. " * 20])
        for turn in range(30)
        for role in ("user", "assistant")
    ]
    return [*said, Message("user", ["And now?"])]


def _openai(served: Refusing) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none", max_retries=0)


def _claude(served: Refusing, model: str = "claude-sonnet-4-6") -> Any:
    client: Any = AsyncAnthropic(base_url=served.address, api_key="none", max_retries=0)
    return AnthropicClient(model=model, anthropic_client=client)


CLIENTS: dict[str, Any] = {
    "openai": lambda served: OpenAIChatCompletionClient(model="gpt-4o", async_client=_openai(served)),
    "openai, responses": lambda served: OpenAIChatClient(model="gpt-4o", async_client=_openai(served)),
    "anthropic": _claude,
}


async def _ask(agent: Any, messages: list[Message], *, stream: bool, **options: Any) -> Any:
    if not stream:
        return await agent.run(messages, **options)
    answer = agent.run(messages, stream=True, **options)
    updates = [one async for one in answer]
    assert updates
    return await answer.get_final_response()


@pytest.mark.parametrize("who", CLIENTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_every_way_to_ask_is_sent_once_more(who: str, stream: bool) -> None:
    """What is sent then is not refused, the answer is whole, and later calls know of it."""
    seen: list[Fitted[Any]] = []
    limit_tokens = 5_000 if who == "openai, responses" else LIMIT_TOKENS

    async def run(served: Refusing) -> Any:
        trim = TrimMiddleware(BUDGET, retry_overflow=True, on_fitted=seen.append)
        agent = Agent(CLIENTS[who](served), "Be brief.", middleware=[trim])
        options: dict[str, Any] = {"store": False} if who == "openai, responses" else {}
        answer = await _ask(agent, _talk(), stream=stream, options=options)
        assert (len(served.bodies), served.refused, len(seen)) == (2, 1, 2)
        more = [*_talk(), Message("assistant", ["Yes."]), Message("user", ["Sure?"])]
        await _ask(agent, more, stream=stream, options=options)
        return answer

    with refusing(WORDS[who], limit_tokens=limit_tokens) as served:
        answer = asyncio.run(run(served))
    assert answer.text
    assert (len(served.bodies), served.refused) == (3, 1)
    assert seen[1].report.notes[-1].startswith("Sent once more, shorter")


def test_a_stream_that_begins_with_the_error_is_sent_once_more() -> None:
    """Nobody has seen an update of it; the answer is that of the second."""

    class Place(BaseModel):
        name: str

    async def run(served: Refusing) -> Any:
        agent = Agent(_claude(served), middleware=[TrimMiddleware(BUDGET, retry_overflow=True)])
        return await _ask(agent, _talk(), stream=True, options={"response_format": Place})

    with refusing(WORDS["anthropic"], in_stream=True) as served:
        assert asyncio.run(run(served)).text
    assert (len(served.bodies), served.refused) == (2, 1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("retries", "calls"), [(True, 2), (False, 1)])
def test_the_second_refusal_is_the_callers(retries: bool, calls: int, stream: bool) -> None:
    """There is no third request, and by default no second."""

    async def run(served: Refusing) -> Any:
        agent = Agent(CLIENTS["openai"](served), middleware=[TrimMiddleware(BUDGET, retry_overflow=retries)])
        return await _ask(agent, _talk(), stream=stream)

    with refusing(WORDS["openai"], refuses=lambda _: True) as served:
        with pytest.raises(ChatClientException, match="maximum context length") as raised:
            asyncio.run(run(served))
        assert len(served.bodies) == calls
    notes = getattr(raised.value, "__notes__", [])
    assert any("sent this call twice" in note for note in notes) is retries


def _thought(text: str, signature: str) -> Message:
    thinking = Content.from_text_reasoning(text="Hm.", protected_data=signature)
    return Message("assistant", [thinking, Content.from_text(text)])


def test_thinking_of_another_conversation_is_left_out_now_and_later() -> None:
    """What the model thought since stays."""
    seen: list[Fitted[Any]] = []
    talk = [Message("user", ["Where?"]), _thought("In Utrecht.", "EqQBold"), Message("user", ["Really?"])]
    more = [_thought("Yes.", "EqQBnew"), Message("user", ["Sure?"])]

    async def run(served: Refusing) -> None:
        trim = TrimMiddleware(BUDGET, retry_overflow=True, on_fitted=seen.append)
        agent = Agent(_claude(served, "claude-opus-5-5"), middleware=[trim])
        await agent.run(talk)
        await agent.run([*talk, *more])

    with refusing(THINKING, refuses=lambda body: "EqQBold" in str(body)) as served:
        asyncio.run(run(served))
    hold_left_out(served, seen[2])


def test_the_thinking_that_opens_a_turn_stays_beside_the_cut() -> None:
    """A Claude thinks once and then calls a tool again and again: the judge takes what is left of it."""

    @tool(approval_mode="never_require")
    def look() -> str:
        """Look around."""
        return "sunny"

    said = [Message("user", ["Look around."])]
    for at in range(12):
        call = Content.from_function_call(f"t{at}", "look", arguments={})
        thinking = [Content.from_text_reasoning(text="Hm.", protected_data="EqQB")] if not at else []
        said.append(Message("assistant", [*thinking, call]))
        said.append(Message("tool", [Content.from_function_result(f"t{at}", result="sunny " * 60)]))

    async def run(served: Any) -> None:
        agent = Agent(_claude(served), tools=[look], middleware=[TrimMiddleware(1_300)])
        options: Any = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "max_tokens": 3_000}
        await agent.run(said, options=options)

    with provider() as served:
        asyncio.run(run(served))
    [(_, body)] = served.bodies
    assert 5 < len(body["messages"]) < len(said)
    assert body["messages"][1]["content"][0]["type"] == "thinking"
