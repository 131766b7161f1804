"""Google's client with `retry_overflow`: what is refused is sent once more, shorter or without thoughts."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from google.genai import errors, types

from tests.integrations.google_genai.play import client_of
from tests.integrations.refusing import LIMIT_TOKENS, WORDS, refusing
from trimtab import Fitted
from trimtab.integrations.google_genai import with_budget

MODEL = "gemini-3-pro-preview"
TALK: list[Any] = [
    {"role": role, "parts": [{"text": f"{turn}: " + "It is sunny in Utrecht. " * 20}]}
    for turn in range(30)
    for role in ("user", "model")
] + [{"role": "user", "parts": [{"text": "And now?"}]}]
OK: dict[str, Any] = {"model": MODEL, "contents": TALK}
BUDGET = 50_000


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_call_that_is_too_long_is_sent_once_more(is_streamed: bool) -> None:
    """Plain and streamed; the next call fits at once, and chats ask in the same way."""
    seen: list[Fitted[Any]] = []
    with refusing(WORDS["gemini"]) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True, on_fitted=seen.append)
        for _ in range(2):
            if is_streamed:
                assert [one.text for one in client.models.generate_content_stream(**OK)] == ["ok"]
            else:
                assert client.models.generate_content(**OK).text == "ok"
        chat = client.chats.create(model=MODEL, history=TALK[:-1])
        assert chat.send_message("And now?").text == "ok"
    assert (len(served.bodies), served.refused, len(seen)) == (4, 1, 4)
    whole, *rest = served.sizes
    assert all(whole > LIMIT_TOKENS >= size > LIMIT_TOKENS // 4 for size in rest)
    assert seen[1].report.notes[-1].startswith("Sent once more, shorter")


def test_async_calls_are_sent_once_more() -> None:
    """Plain and streamed, each by a client that knows nothing yet."""

    async def run(served: Any) -> None:
        client = with_budget(client_of(served).aio, BUDGET, retry_overflow=True)
        assert (await client.models.generate_content(**OK)).text == "ok"
        client = with_budget(client_of(served).aio, BUDGET, retry_overflow=True)
        assert [one.text async for one in await client.models.generate_content_stream(**OK)] == ["ok"]

    with refusing(WORDS["gemini"]) as served:
        asyncio.run(run(served))
    assert (len(served.bodies), served.refused) == (4, 2)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_it_is_sent_at_most_twice_and_only_if_that_is_asked_for(is_streamed: bool) -> None:
    """The error is the provider's own."""

    def ask(client: Any) -> Any:
        return (
            list(client.models.generate_content_stream(**OK))
            if is_streamed
            else client.models.generate_content(**OK)
        )

    with refusing(WORDS["gemini"], refuses=lambda _: True) as served:
        with pytest.raises(errors.ClientError, match="input token count"):
            ask(with_budget(client_of(served), BUDGET))
        assert len(served.bodies) == 1
        with pytest.raises(errors.ClientError, match="input token count") as caught:
            ask(with_budget(client_of(served), BUDGET, retry_overflow=True))
        assert len(served.bodies) == 3
        assert "trimtab sent this call twice" in caught.value.__notes__[-1]


SIGNED = "c2lnbmVk" * 20


def test_thoughts_of_another_conversation_are_left_out() -> None:
    """A call keeps the value that nobody checks; an answer loses its signature."""
    contents: list[Any] = [
        {"role": "user", "parts": [{"text": "Where is it sunny?"}]},
        {
            "role": "model",
            "parts": [{"text": "Hm.", "thought": True}, {"text": "Wait.", "thoughtSignature": SIGNED}],
        },
        {"role": "user", "parts": [{"text": "And?"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": SIGNED}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "sunny"}}}]},
    ]
    with refusing("Thought signature is not valid.", refuses=lambda body: SIGNED in str(body)) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True)
        given = [types.Content.model_validate(copy.deepcopy(one)) for one in contents]
        assert client.models.generate_content(model=MODEL, contents=given).text == "ok"
    sent = served.bodies[1]["contents"]
    assert sent[1]["parts"] == [{"text": "Wait."}]
    [call] = sent[3]["parts"]
    assert call["functionCall"]["name"] == "look"
    assert call["thoughtSignature"] not in (None, SIGNED)
    assert served.bodies[0]["contents"][3]["parts"][0]["thoughtSignature"] == SIGNED
