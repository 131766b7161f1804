"""`TrimHandler(retry_overflow=True)`: what is refused is sent once more, otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import litellm
import pytest

from tests.integrations.refusing import LIMIT_TOKENS, THINKING, WORDS, Refusing, hold_left_out, refusing
from tests.judge.server import provider
from trimtab import Fitted
from trimtab.integrations import litellm as ours
from trimtab.integrations.litellm import TrimHandler, trim_call

TALK: list[Any] = [
    {"role": role, "content": f"{turn}: " + "It is sunny in Utrecht. " * 20}
    for turn in range(30)
    for role in ("user", "assistant")
] + [{"role": "user", "content": "And now?"}]
MORE: list[Any] = [*TALK, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Sure?"}]
BUDGET = 50_000


@pytest.fixture(autouse=True)
def _callbacks() -> Iterator[None]:
    before = [*litellm.callbacks]
    yield
    litellm.callbacks = before


def _handler(**options: Any) -> list[Fitted[Any]]:
    seen: list[Fitted[Any]] = []
    litellm.callbacks = [TrimHandler(BUDGET, **{"retry_overflow": True, "on_fitted": seen.append, **options})]
    return seen


def _gpt(served: Refusing) -> dict[str, Any]:
    return {"model": "openai/gpt-4o", "api_base": f"{served.address}/v1", "api_key": "none"}


def _claude(served: Refusing, model: str = "claude-sonnet-4-5") -> dict[str, Any]:
    return {"model": f"anthropic/{model}", "api_base": served.address, "api_key": "none", "max_tokens": 100}


def _router(served: Refusing, **settings: Any) -> Any:
    groups = [{"model_name": name, "litellm_params": _gpt(served)} for name in ("fast", "again")]
    return litellm.Router(model_list=groups, num_retries=0, **settings)


async def _streamed(given: dict[str, Any], messages: list[Any]) -> Any:
    answer: Any = await ours.acompletion(messages=messages, stream=True, **given)
    return [one async for one in answer]


WAYS: dict[str, Any] = {
    "completion": lambda served, said: ours.completion(messages=said, **_gpt(served)),
    "by position": lambda served, said: ours.completion(
        "openai/gpt-4o", said, api_base=f"{served.address}/v1", api_key="none"
    ),
    "completion, streamed": lambda served, said: list(
        ours.completion(messages=said, stream=True, **_gpt(served))
    ),
    "acompletion": lambda served, said: asyncio.run(ours.acompletion(messages=said, **_gpt(served))),
    "acompletion, streamed": lambda served, said: asyncio.run(_streamed(_gpt(served), said)),
    "a Claude": lambda served, said: asyncio.run(ours.acompletion(messages=said, **_claude(served))),
    "anthropic_messages": lambda served, said: asyncio.run(
        ours.anthropic_messages(messages=said, **_claude(served))
    ),
    "responses": lambda served, said: ours.responses(input=said, **_gpt(served)),
    "aresponses": lambda served, said: asyncio.run(ours.aresponses(input=said, **_gpt(served))),
    "router": lambda served, said: trim_call(_router(served).completion)(model="fast", messages=said),
    "router, async": lambda served, said: asyncio.run(
        trim_call(_router(served).acompletion)(model="fast", messages=said)
    ),
}


def _words(way: str) -> str:
    return WORDS["anthropic"] if way in ("a Claude", "anthropic_messages") else WORDS["openai"]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_ask_is_sent_once_more(way: str) -> None:
    """What is sent then is not refused; what was said of the size is a bill, and holds for later calls."""
    seen = _handler()
    with refusing(_words(way)) as served:
        assert WAYS[way](served, TALK)
        assert (len(served.bodies), served.refused, len(seen)) == (2, 1, 2)
        assert served.sizes[1] <= LIMIT_TOKENS
        assert "calibrated" in seen[1].report.counter
        assert seen[1].report.notes[-1].startswith("Sent once more, shorter")
        assert WAYS[way](served, MORE)
    assert (len(served.bodies), served.refused) == (3, 1)


@pytest.mark.parametrize("way", WAYS)
def test_the_second_refusal_is_the_callers(way: str) -> None:
    """There is no third request, and by default no second."""
    for retries, calls in ((True, 2), (False, 1)):
        _handler(retry_overflow=retries)
        with refusing(_words(way), refuses=lambda _: True) as served:
            with pytest.raises(Exception, match="maximum") as raised:
                WAYS[way](served, TALK)
            assert len(served.bodies) == calls
        notes = getattr(raised.value, "__notes__", [])
        assert any("sent this call twice" in note for note in notes) is retries


def test_what_litellm_sends_again_itself_is_fitted_by_what_was_said() -> None:
    """A Router goes on to another group, as a proxy does; the call that nobody wraps is the caller's."""
    seen = _handler()
    with refusing(WORDS["openai"]) as served:
        router = _router(served, context_window_fallbacks=[{"fast": ["again"]}])
        assert asyncio.run(router.acompletion(model="fast", messages=TALK))
        assert (len(served.bodies), served.refused, len(seen)) == (2, 1, 2)
    _handler()
    with refusing(WORDS["openai"]) as served:
        with pytest.raises(litellm.ContextWindowExceededError):
            asyncio.run(litellm.acompletion(messages=TALK, **_gpt(served)))
        assert asyncio.run(litellm.acompletion(messages=TALK, **_gpt(served)))
        assert (len(served.bodies), served.refused) == (2, 1)


def _thought(text: str, signature: str) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": "Hm.", "signature": signature}
    return {"role": "assistant", "content": text, "thinking_blocks": [block]}


@pytest.mark.parametrize("is_async", [False, True])
def test_thinking_of_another_conversation_is_left_out_now_and_later(is_async: bool) -> None:
    """What the model thought since stays."""
    seen = _handler()
    talk = [
        {"role": "user", "content": "Where?"},
        _thought("In Utrecht.", "EqQBold"),
        {"role": "user", "content": "Really?"},
    ]
    more = [_thought("Yes.", "EqQBnew"), {"role": "user", "content": "Sure?"}]
    with refusing(THINKING, refuses=lambda body: "EqQBold" in str(body)) as served:
        for said in (talk, [*talk, *more]):
            given = {"messages": said, **_claude(served, "claude-opus-5-5")}
            assert asyncio.run(ours.acompletion(**given)) if is_async else ours.completion(**given)
    hold_left_out(served, seen[2])


def test_the_thinking_that_opens_a_turn_stays_beside_the_cut() -> None:
    """A Claude thinks once and then calls a tool again and again: the judge takes what is left of it."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCgIYAhIM"}
    said: list[Any] = [{"role": "user", "content": "Look around."}]
    for at in range(12):
        call = {"id": f"t{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        opening = {"thinking_blocks": [thought]} if not at else {}
        said += [
            {"role": "assistant", "content": None, **opening, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"t{at}", "content": "sunny " * 60},
        ]
    look = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    litellm.callbacks = [TrimHandler(1_300)]
    with provider() as served:
        ours.completion(
            model="anthropic/claude-sonnet-4-6",
            api_base=served.address,
            api_key="none",
            max_tokens=3_000,
            thinking={"type": "enabled", "budget_tokens": 1_024},
            messages=said,
            tools=[look],
        )
    [(_, body)] = served.bodies
    assert 5 < len(body["messages"]) < len(said)
    assert body["messages"][1]["content"][0] == thought
