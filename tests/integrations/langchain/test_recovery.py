"""`TrimMiddleware(retry_overflow=True)`: a call that is refused is sent once more, otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from tests.integrations.refusing import LIMIT_TOKENS, THINKING, WORDS, Refusing, refusing
from trimtab import Context, Fitted
from trimtab.errors import ConfigurationError
from trimtab.integrations.langchain import TrimMiddleware

TALK: list[BaseMessage] = [
    kind(f"{turn}: " + "It is sunny in Utrecht. " * 20, id=f"{kind.__name__}{turn}")
    for turn in range(30)
    for kind in (HumanMessage, AIMessage)
]
ASKED: Any = {"messages": [*TALK, HumanMessage("And now?", id="now")]}
BUDGET = 50_000
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def _gpt(served: Refusing, **options: Any) -> Any:
    return ChatOpenAI(
        model="gpt-4o", base_url=f"{served.address}/v1", api_key="none", max_retries=0, **options
    )


def _claude(served: Refusing, model: str = "claude-sonnet-4-5", **options: Any) -> Any:
    given: dict[str, Any] = {"model_name": model, "base_url": served.address, "api_key": "none"}
    return ChatAnthropic(**given, max_retries=0, max_tokens_to_sample=100, **options)


def _agent(model: Any, budget: Any = BUDGET, **options: Any) -> Any:
    trim = TrimMiddleware(budget, **{"retry_overflow": True, **options})
    return create_agent(model, [], middleware=[trim], checkpointer=InMemorySaver())


def _invoke(agent: Any) -> Any:
    return agent.invoke(ASKED, CONFIG)


def _stream(agent: Any) -> Any:
    return list(agent.stream(ASKED, CONFIG, stream_mode="messages"))


def _ainvoke(agent: Any) -> Any:
    return asyncio.run(agent.ainvoke(ASKED, CONFIG))


def _astream(agent: Any) -> Any:
    async def run() -> Any:
        return [one async for one in agent.astream(ASKED, CONFIG, stream_mode="messages")]

    return asyncio.run(run())


WAYS = [_invoke, _stream, _ainvoke, _astream]
MODELS = {
    "openai": _gpt,
    "openai, responses": lambda served: _gpt(served, use_responses_api=True),
    "anthropic": _claude,
    "vllm": _gpt,
    "ollama": _gpt,
}


@pytest.mark.parametrize("who", MODELS)
@pytest.mark.parametrize("ask", WAYS)
def test_every_way_to_ask_is_sent_once_more(who: str, ask: Any) -> None:
    """What is sent then is not refused, the report says so, and the state is whole."""
    seen: list[Fitted[Any]] = []
    limit_tokens = 5_000 if who == "openai, responses" else LIMIT_TOKENS
    with refusing(WORDS[who], limit_tokens=limit_tokens) as served:
        agent = _agent(MODELS[who](served), on_fitted=seen.append)
        assert ask(agent)
        assert (len(served.bodies), served.refused, len(seen)) == (2, 1, 2)
        assert seen[1].report.notes[-1].startswith("Sent once more, shorter")
        assert len(agent.get_state(CONFIG).values["messages"]) == len(TALK) + 2
        agent.invoke({"messages": [HumanMessage("Sure?", id="sure")]}, CONFIG)
    assert (len(served.bodies), served.refused) == (3, 1), "what was said of the size holds for later calls"


def test_an_error_in_a_stream_is_sent_once_more_before_it_has_begun() -> None:
    """It is raised in the middleware, too."""
    with refusing(WORDS["anthropic"], in_stream=True) as served:
        assert _stream(_agent(_claude(served)))
    assert (len(served.bodies), served.refused) == (2, 1)


def test_the_blocks_of_a_context_have_less_room_then() -> None:
    """The context itself is not changed."""
    context = Context(BUDGET, model="gpt-4o").add("history", [])
    with refusing(WORDS["openai"]) as served:
        assert _invoke(_agent(_gpt(served), context))
        assert (len(served.bodies), served.refused) == (2, 1)
        with pytest.raises(openai.BadRequestError):
            _invoke(_agent(_gpt(served), context, retry_overflow=False))
        assert served.sizes[2] == served.sizes[0]


def test_what_is_kept_is_what_was_sent_then() -> None:
    """With `persist=True` the state loses what the second request left out."""
    with refusing(WORDS["openai"]) as served:
        agent = _agent(_gpt(served), persist=True)
        _invoke(agent)
        kept = agent.get_state(CONFIG).values["messages"]
    assert [one.content for one in kept[:-1]] == [one["content"] for one in served.bodies[1]["messages"]]


def test_the_second_refusal_is_the_callers_and_says_so() -> None:
    """There is no third request."""
    with refusing(WORDS["openai"], refuses=lambda _: True) as served:
        with pytest.raises(openai.BadRequestError, match="maximum context length") as raised:
            _invoke(_agent(_gpt(served)))
        assert len(served.bodies) == 2
    assert any("sent this call twice" in note for note in raised.value.__notes__)


def test_other_errors_and_calls_without_the_option_are_sent_once() -> None:
    """It is off by default."""
    for words, options in [("Rate limit reached", {}), (WORDS["openai"], {"retry_overflow": False})]:
        with refusing(words, refuses=lambda _: True) as served:
            with pytest.raises(openai.BadRequestError):
                _invoke(_agent(_gpt(served), **options))
            assert len(served.bodies) == 1
    with pytest.raises(ConfigurationError, match="retry_overflow"):
        TrimMiddleware(BUDGET, retry_overflow="yes")  # type: ignore[arg-type]


def _thought(text: str, signature: str = "EqQBCgIYAhIM") -> AIMessage:
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "Hm.", "signature": signature},
        {"type": "text", "text": text},
    ]
    return AIMessage(blocks)


@pytest.mark.parametrize("persist", [False, True])
def test_thinking_of_another_conversation_is_left_out_now_and_later(persist: bool) -> None:
    """All that is said stays, and what the model thought since."""
    seen: list[Fitted[Any]] = []
    talk = [HumanMessage("Where?"), _thought("In Utrecht."), HumanMessage("Now?"), _thought("Still.")]
    with refusing(THINKING, refuses=lambda body: "EqQBCgIYAhIM" in str(body)) as served:
        model = _claude(served, "claude-opus-5-5")
        agent = _agent(model, on_fitted=seen.append, persist=persist)
        agent.invoke({"messages": [*talk, HumanMessage("Really?")]}, CONFIG)
        more = [_thought("Yes.", "EqQBnew"), HumanMessage("Sure?")]
        agent.invoke({"messages": more}, CONFIG)
        state = str(agent.get_state(CONFIG).values["messages"])
    assert (len(served.bodies), served.refused) == (3, 1)
    for body in served.bodies[1:]:
        said = [one["content"] for one in body["messages"]]
        assert said[1:5:2] == [
            [{"type": "text", "text": "In Utrecht."}],
            [{"type": "text", "text": "Still."}],
        ]
    assert "EqQBnew" in str(served.bodies[2])
    assert seen[1].report.notes[-1].startswith("Sent once more, without the thinking")
    told = "Without the thinking of 2 messages, which the provider refused"
    assert persist or seen[2].report.notes[-1].startswith(told)
    assert ("EqQBCgIYAhIM" in state) is not persist


def test_thinking_that_is_not_there_cannot_be_left_out() -> None:
    """The error is the caller's."""
    with refusing(THINKING, refuses=lambda _: True) as served:
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
            _invoke(_agent(_claude(served)))
        assert len(served.bodies) == 1
