"""Answers of the judge's server that are streamed, read by the providers' own clients."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.integrations.loops import Calls, Says
from tests.integrations.upstream import WRITERS
from tests.judge.clients import bedrock_client
from tests.judge.server import provider
from tests.judge.talks import talk

SAID = [Says("A sentence that is longer than a single piece of it, so that there are two."), Calls((3, 4))]


def _read(form: str, body: dict[str, Any], address: str) -> Any:
    """Stream a request with the real client; returns what it makes of the events."""
    if form == "gemini":
        from google import genai

        options = genai.types.HttpOptions(base_url=address, client_args={"trust_env": False})
        with genai.Client(api_key="none", vertexai=False, http_options=options) as client:
            chunks = client.models.generate_content_stream(model=body["model"], contents=body["contents"])
            return [part.model_dump(exclude_none=True) for chunk in chunks for part in chunk.parts or ()]
    if form == "anthropic":
        from anthropic import Anthropic

        with (
            Anthropic(api_key="none", base_url=address, max_retries=0) as client,
            client.messages.stream(**body) as stream,
        ):
            message = stream.get_final_message()
        return [block.model_dump(exclude_none=True) for block in message.content]
    if form == "bedrock":
        return _joined(bedrock_client(address).converse_stream(**body)["stream"])
    from openai import OpenAI

    with OpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0) as client:
        if form == "openai_chat":
            with client.chat.completions.stream(**body) as chat:
                message = chat.get_final_completion().choices[0].message
            calls = [(call.id, call.function.arguments) for call in message.tool_calls or ()]
            return message.content, calls
        with client.responses.stream(**body) as stream:
            response = stream.get_final_response()
    return [item.model_dump(exclude_none=True) for item in response.output]


def _joined(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put together the blocks of a message that boto3 reads from a stream, piece by piece."""
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        if started := event.get("contentBlockStart"):
            blocks[started["contentBlockIndex"]] = {"toolUse": {**started["start"]["toolUse"], "input": ""}}
        if piece := event.get("contentBlockDelta"):
            block = blocks.setdefault(piece["contentBlockIndex"], {"text": ""})
            if "text" in piece["delta"]:
                block["text"] += piece["delta"]["text"]
            else:
                block["toolUse"]["input"] += piece["delta"]["toolUse"]["input"]
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return list(blocks.values())


@pytest.mark.parametrize("said", SAID, ids=["text", "calls"])
@pytest.mark.parametrize("form", WRITERS)
def test_a_real_client_reads_events_as_the_whole_answer(form: str, said: Calls | Says) -> None:
    """Texts and calls in pieces: what the client puts together is what the server wrote."""
    whole = WRITERS[form](said, "m", 1)
    named = "modelId" if form == "bedrock" else "model"
    body = {**talk(form, 2), named: "any"}  # clients warn of models that are going
    with provider(lambda *_: whole) as server:
        found = _read(form, body, server.address)
    if form == "openai_chat":
        message = whole["choices"][0]["message"]
        calls = [(call["id"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
        assert found == (message["content"], calls)
    else:
        wanted = whole["candidates"][0]["content"]["parts"] if form == "gemini" else None
        wanted = whole["output"]["message"]["content"] if form == "bedrock" else wanted
        wanted = wanted or whole["content" if form == "anthropic" else "output"]
        assert [_plain(one) for one in found] == [_plain(one) for one in wanted]


def test_anthropics_client_reads_thinking_as_the_whole_answer() -> None:
    """In pieces, and its signature behind them."""
    thought = {"type": "thinking", "thinking": "It is far, and I look there twice. " * 3, "signature": "c2ln"}
    whole = WRITERS["anthropic"](Calls((3,)), "m", 1)
    whole["content"].insert(0, thought)
    with provider(lambda *_: whole) as server:
        found = _read("anthropic", {**talk("anthropic", 2), "model": "any"}, server.address)
    assert [_plain(one) for one in found] == whole["content"]


def _plain(one: dict[str, Any]) -> dict[str, Any]:
    """Take what a part says: keys that the clients write otherwise are left out."""
    names = {"functionCall": "function_call", "parsed_arguments": ""}
    return {names.get(key, key): value for key, value in one.items() if names.get(key, key)}
