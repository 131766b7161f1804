"""What Anthropic's answers say they were billed, in every order in which servers and proxies stream it."""

from __future__ import annotations

import asyncio
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


CLOUDS: dict[str, dict[str, Any]] = {
    "AWS": {"api_key": "none", "aws_region": "r", "workspace_id": "w"},
    "Bedrock": {"api_key": "none", "aws_region": "r"},
    "BedrockMantle": {"api_key": "none", "aws_region": "r"},
    "Foundry": {"api_key": "none", "resource": "r"},
    "GoogleCloud": {"project": "p", "location": "l", "workspace_id": "w", "skip_auth": True},
    "Vertex": {"region": "r", "project_id": "p", "access_token": "t"},
}
"""What a client of each cloud is made with."""


def test_every_cloud_of_the_sdk_is_known_here() -> None:
    """A client that a new version brings is tried below."""
    names = {name.partition("Anthropic")[2] for name in dir(anthropic) if "Anthropic" in name}
    assert names == {"", "Error", *CLOUDS}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_clients_of_clouds_are_fitted_whichever_way_they_make_their_resources(cloud: str) -> None:
    """Vertex's and Bedrock's make `messages` with the client, and not when it is first asked for."""
    sent: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json=answered("anthropic", MODEL))

    talk = [*TALK[:2] * 8, TALK[2]]
    call: Any = {"model": MODEL, "max_tokens": 10, "messages": talk}
    answers = httpx2.MockTransport(answer)
    bare = getattr(anthropic, f"Anthropic{cloud}")(
        http_client=httpx2.Client(transport=answers), **CLOUDS[cloud]
    )
    client = with_budget(bare, 600)
    for messages in (client.messages, client.beta.messages, client.with_options(timeout=3).messages):
        messages.create(**call)
    awaited = httpx2.AsyncClient(transport=answers)
    client = with_budget(
        getattr(anthropic, f"AsyncAnthropic{cloud}")(http_client=awaited, **CLOUDS[cloud]), 600
    )
    asyncio.run(client.messages.create(**call))
    assert len(sent) == 4
    assert all(len(body["messages"]) < len(talk) for body in sent)
    bare.messages.create(**call)
    assert len(sent[-1]["messages"]) == len(talk)


STEPS = [
    {"type": kind, "input_tokens": 20, "cache_read_input_tokens": 0, "output_tokens": 5}
    | {"cache_creation_input_tokens": 0}
    for kind in ("compaction", "message")
]


@pytest.mark.parametrize("streams", [True, False])
def test_a_bill_after_a_compaction_is_passed_over_with_a_word(streams: bool) -> None:
    """The call goes through; the server's own messages were billed, and those that were sent are counted."""
    small = {"input_tokens": 20, "output_tokens": 5, "iterations": STEPS}
    found: list[Fitted[Any]] = []
    with _streams(small, {"output_tokens": 5}) if streams else _answers(small) as server:
        client = with_budget(client_of(server), 50_000, counter=EstimateCounter(), on_fitted=found.append)
        for _ in range(2):
            with pytest.warns(UserWarning, match="passed over: the server compacted"):
                list(client.messages.create(**OK, stream=streams))
    assert [one.report.tokens_after for one in found] == [COUNTED] * 2


def test_what_the_server_cleared_was_sent() -> None:
    """Its bill and what was cleared are that of the request."""
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": BILLED - 20}
    found: list[Fitted[Any]] = []
    with _answers({"input_tokens": 20, "output_tokens": 5}, {"applied_edits": [edit]}) as server:
        client = with_budget(client_of(server), 50_000, counter=EstimateCounter(), on_fitted=found.append)
        for _ in range(2):
            client.beta.messages.create(**OK)
    assert [one.report.tokens_after for one in found] == [COUNTED, BILLED]


@contextmanager
def _answers(usage: dict[str, Any], edits: dict[str, Any] | None = None) -> Iterator[_Server]:
    """Serve an answer that is not streamed."""
    server = _Server(usage)

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            server.sent.append(len(self.received()["messages"]))
            said = {**answered("anthropic", MODEL), "usage": usage}
            self.answer(200, {**said, "context_management": edits} if edits else said)

    with loopback(Answering) as server.address:
        yield server
