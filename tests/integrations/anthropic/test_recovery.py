"""Anthropic's clients with `retry_overflow`: what is refused is sent once more, otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest

from tests.integrations.anthropic.play import MODEL, async_client_of, client_of
from tests.integrations.refusing import LIMIT_TOKENS, THINKING, WORDS, refusing
from trimtab import Fitted
from trimtab.integrations.anthropic import with_budget

pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

TALK: list[Any] = [
    {"role": role, "content": f"{turn}: " + "It is sunny in Utrecht. " * 20}
    for turn in range(30)
    for role in ("user", "assistant")
] + [{"role": "user", "content": "And now?"}]
OK: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "system": "Be brief.", "messages": TALK}
SAID = ["anthropic", "anthropic, with an answer", "bedrock"]
BUDGET = 50_000


def _limit(who: str) -> int:
    return 5_000 if who == "bedrock" else LIMIT_TOKENS


@pytest.mark.parametrize("who", SAID)
@pytest.mark.parametrize("in_stream", [False, True], ids=["status", "first event"])
def test_every_way_to_ask_is_sent_once_more(who: str, in_stream: bool) -> None:
    """Created, streamed, raw and in beta; what is known after the first call is used in the next."""
    asks = [
        lambda client: client.messages.create(**OK),
        lambda client: list(client.messages.create(**OK, stream=True)),
        lambda client: client.messages.with_raw_response.create(**OK).parse(),
        lambda client: client.beta.messages.create(**OK),
        _helper,
    ]
    for ask in asks:
        seen: list[Fitted[Any]] = []
        with refusing(WORDS[who], limit_tokens=_limit(who), in_stream=in_stream) as served:
            client = with_budget(client_of(served), BUDGET, retry_overflow=True, on_fitted=seen.append)
            assert ask(client)
        assert (len(served.bodies), served.refused, len(seen)) == (2, 1, 2)
        whole, sent = served.sizes
        assert whole > served.limit_tokens >= sent > served.limit_tokens // 4
        assert seen[1].report.notes[-1].startswith("Sent once more, shorter")


def _helper(client: Any) -> Any:
    with client.messages.stream(**OK) as stream:
        return stream.get_final_text()


def test_async_clients_are_sent_once_more() -> None:
    """Plain and streamed."""

    async def run(served: Any) -> None:
        async with async_client_of(served) as bare:
            for stream in (False, True):
                client = with_budget(bare, BUDGET, retry_overflow=True)
                said = await client.messages.create(**OK, stream=stream)
                assert not stream or [one async for one in said]

    for in_stream in (False, True):
        with refusing(WORDS["anthropic"], in_stream=in_stream) as served:
            asyncio.run(run(served))
        assert (len(served.bodies), served.refused) == (4, 2)


def _thought(text: str) -> list[Any]:
    return [
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCgIYAhIM"},
        {"type": "text", "text": text},
    ]


THOUGHTFUL: list[Any] = [
    {"role": "user", "content": "Where is it sunny?"},
    {"role": "assistant", "content": _thought("In Utrecht.")},
    {"role": "user", "content": "And now?"},
    {"role": "assistant", "content": _thought("Still in Utrecht.")},
    {"role": "user", "content": "Really?"},
]


def _thinks(body: Any) -> bool:
    return "thinking" in str(body["messages"])


@pytest.mark.parametrize("model", [MODEL, "claude-opus-5-5"])
@pytest.mark.parametrize("words", [THINKING, THINKING.partition(". ")[0]], ids=["bound", "signature"])
def test_thinking_of_another_conversation_is_left_out(words: str, model: str) -> None:
    """All that is said stays; the report says that it was sent twice."""
    seen: list[Fitted[Any]] = []
    ok = {**OK, "model": model, "messages": THOUGHTFUL}
    with refusing(words, refuses=_thinks) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True, on_fitted=seen.append)
        client.messages.create(**ok)
    first, second = (body["messages"] for body in served.bodies)
    assert first == THOUGHTFUL
    assert [one["content"] for one in second[1::2]] == [
        [{"type": "text", "text": "In Utrecht."}],
        [{"type": "text", "text": "Still in Utrecht."}],
    ]
    assert second[::2] == THOUGHTFUL[::2]
    assert seen[-1].report.notes[-1].startswith("Sent once more, without the thinking")


def test_in_a_tool_loop_thinking_is_switched_off_with_it() -> None:
    """A turn that goes on from results has to begin with thinking, where thinking is on."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
    messages = [
        THOUGHTFUL[0],
        {"role": "assistant", "content": [_thought("")[0], call]},
        {"role": "user", "content": [result]},
    ]
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    tools = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]
    with refusing(THINKING, refuses=_thinks) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True)
        client.messages.create(
            model=MODEL, max_tokens=2_000, messages=messages, thinking=thinking, tools=tools
        )
    assert served.bodies[0]["thinking"] == thinking
    assert served.bodies[1]["thinking"] == {"type": "disabled"}
    assert served.bodies[1]["messages"][1]["content"] == [call]


@pytest.mark.parametrize("model", [MODEL, "claude-opus-5-5"])
def test_thinking_that_was_refused_is_not_sent_again(model: str) -> None:
    """A later call leaves it out at once, and keeps what the model thought since."""
    seen: list[Fitted[Any]] = []
    fresh = [
        {"type": "thinking", "thinking": "So.", "signature": "EqQBnew"},
        {"type": "text", "text": "Yes."},
    ]
    later = [*THOUGHTFUL, {"role": "assistant", "content": fresh}, {"role": "user", "content": "Sure?"}]
    with refusing(THINKING, refuses=lambda body: "EqQBCgIYAhIM" in str(body)) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True, on_fitted=seen.append)
        client.messages.create(**{**OK, "model": model, "messages": THOUGHTFUL})
        client.messages.create(**{**OK, "model": model, "messages": later})
    assert (len(served.bodies), served.refused, len(seen)) == (3, 1, 3)
    sent = served.bodies[2]["messages"]
    assert sent[:5] == served.bodies[1]["messages"]
    assert sent[5:] == later[5:]
    assert (
        seen[2].report.notes[-1].startswith("Without the thinking of 2 messages, which the provider refused")
    )


def test_thinking_that_opens_a_tool_loop_is_left_out_of_each_of_its_steps() -> None:
    """It stays switched off as long as the turn goes on, and is on in the next."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
    messages: list[Any] = [
        THOUGHTFUL[0],
        {"role": "assistant", "content": [_thought("")[0], call]},
        {"role": "user", "content": [result]},
    ]
    step = [
        {"role": "assistant", "content": [{**call, "id": "toolu_2"}]},
        {"role": "user", "content": [{**result, "tool_use_id": "toolu_2"}]},
    ]
    done = [{"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Thanks."}]
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    tools = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]
    with refusing(THINKING, refuses=_thinks) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True)
        for talk in (messages, [*messages, *step], [*messages, *step, *done]):
            client.messages.create(
                model=MODEL, max_tokens=2_000, messages=talk, thinking=thinking, tools=tools
            )
    assert served.refused == 1
    assert [body["thinking"]["type"] for body in served.bodies] == [
        *("enabled", "disabled", "disabled", "enabled")
    ]


def test_without_thinking_there_is_nothing_to_leave_out() -> None:
    """The error is the caller's."""
    with refusing(THINKING, refuses=lambda _: True) as served:
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
            with_budget(client_of(served), BUDGET, retry_overflow=True).messages.create(**OK)
        assert len(served.bodies) == 1
