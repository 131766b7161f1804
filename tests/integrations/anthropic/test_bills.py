"""What Anthropic's answers say they were billed, in every order in which servers and proxies stream it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx2
import pytest

from tests.integrations.anthropic.play import MODEL, client_of
from tests.judge.server import answered
from tests.loopback import JSONHandler, loopback
from trimtab import EstimateCounter, Fitted
from trimtab.integrations.anthropic import with_budget

pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

TALK: list[Any] = [
    {"role": "user", "content": "Where is it sunny?"},
    {"role": "assistant", "content": "It is sunny in Utrecht. " * 80},
    {"role": "user", "content": "And now?"},
]
OK: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "messages": TALK}

COUNTED = EstimateCounter().count(TALK)
BILLED = 2 * COUNTED


class _Server:
    address = ""

    def __init__(self, *usages: dict[str, Any]) -> None:
        self.usages = usages
        self.sent: list[int] = []


@contextmanager
def _streams(*usages: dict[str, Any]) -> Iterator[_Server]:
    """Serve an answer whose first event has the first usage, and whose further events have the others."""
    server = _Server(*usages)

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            server.sent.append(len(self.received()["messages"]))
            begins = {**answered("anthropic", MODEL), "content": [], "usage": server.usages[0]}
            events = [{"type": "message_start", "message": begins}]
            block = {"type": "text", "text": "ok"}
            events += [{"type": "content_block_start", "index": 0, "content_block": block}]
            events += [{"type": "content_block_stop", "index": 0}]
            delta = {"stop_reason": "end_turn", "stop_sequence": None}
            events += [
                {"type": "message_delta", "delta": delta, "usage": usage} for usage in server.usages[1:]
            ]
            events += [{"type": "message_stop"}]
            self.stream("".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events))

    with loopback(Answering) as server.address:
        yield server


@pytest.mark.parametrize(
    "usages",
    [
        ({"input_tokens": BILLED, "output_tokens": 1}, {"output_tokens": 9}),
        (
            {"input_tokens": 5, "cache_read_input_tokens": BILLED - 5, "output_tokens": 1},
            {"output_tokens": 9},
        ),
        (
            {"input_tokens": 5, "cache_read_input_tokens": BILLED - 5, "output_tokens": 1},
            {"input_tokens": 5, "output_tokens": 9},
        ),
        (
            {"input_tokens": 5, "cache_creation_input_tokens": BILLED - 5, "output_tokens": 1},
            {"input_tokens": 5, "cache_creation_input_tokens": BILLED - 5, "output_tokens": 4},
            {"input_tokens": 5, "cache_read_input_tokens": 0, "output_tokens": 9},
        ),
        (
            {"input_tokens": 5, "cache_read_input_tokens": BILLED - 5, "output_tokens": 1},
            {"input_tokens": BILLED, "output_tokens": 9},
        ),
        ({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": BILLED, "output_tokens": 9}),
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 0, "cache_read_input_tokens": BILLED, "output_tokens": 9},
        ),
        (
            {"input_tokens": 4, "output_tokens": 1},
            {"input_tokens": 5, "cache_read_input_tokens": BILLED - 5, "output_tokens": 9},
        ),
    ],
    ids=[
        "said once",
        "cached parts said once",
        "input repeated without cached parts",
        "cached parts repeated now and then",
        "repeated as one number",
        "said at the end",
        "all from a cache, said at the end",
        "cached parts said at the end",
    ],
)
def test_what_a_stream_says_it_billed_is_put_together(usages: tuple[dict[str, Any], ...]) -> None:
    """Numbers are those of the whole answer so far, and an event may leave out what another has said."""
    seen: list[Fitted[Any]] = []
    with _streams(*usages) as served:
        client = with_budget(client_of(served), 50_000, counter=EstimateCounter(), on_fitted=seen.append)
        for _ in range(2):
            with client.messages.stream(**OK) as stream:
                assert stream.get_final_text() == "ok"
        list(client.messages.create(**OK, stream=True))
    counts = [one.report.tokens_after for one in seen]
    assert abs(counts[1] - BILLED) <= 3
    assert abs(counts[2] - BILLED) <= 3


def _answers(client: str) -> tuple[Any, list[dict[str, Any]]]:
    """Make a client of a cloud, with connections that answer themselves, and list what is sent."""
    sent: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json=answered("anthropic", MODEL))

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    if client == "vertex":
        vertex = anthropic.AnthropicVertex(region="r", project_id="p", access_token="t", http_client=http)
        return vertex, sent
    if client == "bedrock":
        return anthropic.AnthropicBedrock(api_key="none", aws_region="us-east-1", http_client=http), sent
    return anthropic.AnthropicFoundry(api_key="none", resource="r", http_client=http), sent


@pytest.mark.parametrize("cloud", ["vertex", "bedrock", "foundry"])
def test_clients_of_clouds_are_fitted_whichever_way_they_make_their_resources(cloud: str) -> None:
    """Vertex's and Bedrock's make `messages` with the client, and not when it is first asked for."""
    bare, sent = _answers(cloud)
    client = with_budget(bare, 600)
    talk = [*TALK[:2] * 8, TALK[2]]
    asks = (client.messages, client.beta.messages, client.with_options(timeout=3).messages)
    for messages in asks:
        messages.create(model=MODEL, max_tokens=10, messages=talk)
        assert len(sent[-1]["messages"]) < len(talk)
    bare.messages.create(model=MODEL, max_tokens=10, messages=talk)
    assert len(sent[-1]["messages"]) == len(talk)
