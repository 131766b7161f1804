"""`with_budget` around clients of hosts that speak Chat Completions: what is sent, and what is billed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cerebras.cloud.sdk import AsyncCerebras, Cerebras
from groq import AsyncGroq, Groq
from together import AsyncTogether, Together

from tests.integrations.loops import LOOPS, SYSTEM, LookError, Loop
from tests.integrations.refusing import WORDS, refusing
from tests.integrations.upstream import BUDGET_TOKENS, hold, upstream
from tests.judge.server import Provider, provider
from trimtab import Budget, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.openai_compatible import with_budget

CLIENTS = [Groq, Together, Cerebras]
ASYNC = [AsyncGroq, AsyncTogether, AsyncCerebras]

TALK: list[Any] = [
    {"role": role, "content": f"{turn}: " + "It is sunny in Utrecht. " * 20}
    for turn in range(30)
    for role in ("user", "assistant")
] + [{"role": "user", "content": "And now?"}]
LOOK: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "integer"}}, "required": ["place"]},
    },
}
OK: dict[str, Any] = {"model": "llama-3.3-70b-versatile", "messages": TALK}


def _client(kind: Any, served: Any) -> Any:
    """Make a client of this machine's server: no key, no second try."""
    options = {"warm_tcp_connection": False} if kind in (Cerebras, AsyncCerebras) else {}
    return kind(api_key="none", base_url=served.address, max_retries=0, **options)


def _sent(served: Provider) -> int:
    """Count the messages of the last request."""
    return len(served.bodies[-1][1]["messages"])


@pytest.mark.parametrize("kind", CLIENTS)
def test_every_way_to_ask_is_fitted_and_the_client_given_is_as_it_was(kind: Any) -> None:
    """Created, streamed, raw, by `with_options` and by `copy`."""
    with provider() as served:
        plain = _client(kind, served)
        client = with_budget(plain, 1_000)
        asks = [
            lambda: client.chat.completions.create(**OK),
            lambda: [*client.chat.completions.create(**OK, stream=True)],
            lambda: client.chat.completions.with_raw_response.create(**OK).parse(),
            lambda: client.with_options(timeout=9).chat.completions.create(**OK),
            lambda: client.copy().chat.completions.create(**OK),
        ]
        for number, ask in enumerate(asks, start=1):
            assert ask()
            assert len(served.bodies) == number
            assert 1 < _sent(served) < 30
        plain.chat.completions.create(**OK)
        assert _sent(served) == len(TALK)
        assert type(client) is kind


@pytest.mark.parametrize("kind", ASYNC)
def test_async_clients_are_fitted(kind: Any) -> None:
    """Plain and streamed."""

    async def run(served: Provider) -> None:
        async with _client(kind, served) as plain:
            client = with_budget(plain, 1_000)
            for stream in (False, True):
                said = await client.chat.completions.create(**OK, stream=stream)
                assert not stream or [one async for one in said]
                assert 1 < _sent(served) < 30

    with provider() as served:
        asyncio.run(run(served))


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_was_billed_is_the_count_of_the_next_call_and_what_is_refused_is_sent_once_more(
    kind: Any,
) -> None:
    """By what each raises."""
    seen: list[Fitted[Any]] = []
    with refusing("", limit_tokens=10**6) as served:
        client = with_budget(_client(kind, served), Budget(100_000), on_fitted=seen.append)
        for _ in range(2):
            client.chat.completions.create(**OK)
    estimated, learned = (one.report.tokens_after for one in seen)
    assert abs(learned - served.sizes[0]) <= 5 < abs(estimated - served.sizes[0])
    with refusing(WORDS["openai"], limit_tokens=4_000) as served:
        client = with_budget(_client(kind, served), 50_000, retry_overflow=True)
        assert client.chat.completions.create(**OK)
        assert (len(served.bodies), served.refused) == (2, 1)


def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters() -> None:
    """With Groq's client, and a model whose tokenizer nobody here has: the bills say what it takes."""
    loop: Loop = LOOPS[1]
    with upstream(loop, bills=True, charges=("gpt-4o", 0.85)) as served:
        client = with_budget(_client(Groq, served), BUDGET_TOKENS)
        said: list[Any] = [{"role": "system", "content": SYSTEM}]
        for question in loop.questions:
            said.append({"role": "user", "content": question.text})
            while True:
                asked = {"model": OK["model"], "messages": said, "tools": [LOOK]}
                answer = client.chat.completions.create(**asked).choices[0].message
                said.append(answer.model_dump(exclude_none=True))
                for call in answer.tool_calls or ():
                    said.append(_result_of(loop, call))
                if not answer.tool_calls:
                    break
        hold(served.score, loop)


def _result_of(loop: Loop, call: Any) -> dict[str, Any]:
    try:
        text = loop.look(int("".join(filter(str.isdigit, call.function.arguments))))
    except LookError as error:
        text = str(error)
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def test_what_is_no_such_client_is_refused_and_what_cannot_fit_is_not_sent() -> None:
    """With what to give."""
    for wrong in ("groq", object(), Groq):
        with pytest.raises(
            ConfigurationError,
            match=r"must be a Groq, Together or Cerebras client.*trimtab\.integrations\.openai",
        ):
            with_budget(wrong, 600)
    with provider() as served:
        with pytest.raises(BudgetExceededError):
            with_budget(_client(Groq, served), 3).chat.completions.create(**OK)
        assert served.bodies == []
