"""What goes wrong within a gateway, at moments that a client of another process cannot choose."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.gateway.gateways import Reply, Seen, recorder, talk
from trimtab.gateway import Limits, Upstream, make_app

CHAT = "/v1/chat/completions"
TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 2000 tokens. However, your messages resulted in"
        " 4000 tokens.",
        "code": "context_length_exceeded",
    }
}


def refuse_long(one: Seen) -> Reply:
    """Refuse what has many messages, as OpenAI does."""
    if len(one.data.get("messages", ())) > 20:
        return 400, {}, json.dumps(TOO_LONG).encode()
    return 200, {}, b"{}"


async def ask(app: Any, path: str, body: Any, *, gone: asyncio.Event | None = None) -> list[dict[str, Any]]:
    """Send a request to an application of this process; gives the messages of its answer.

    Args:
        app: The application.
        path: The path.
        body: The body.
        gone: Set once the client goes away.
    """
    sent: list[dict[str, Any]] = []
    data = json.dumps(body).encode()
    came = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if came:
            return came.pop()
        await (asyncio.Event() if gone is None else gone).wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(data))]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
    await app({**scope, "query_string": b"", "headers": headers}, receive, send)
    return sent


async def ask_and_close(app: Any, path: str, body: Any) -> None:
    """Send a request as a client that closes its connection as soon as it has the whole answer."""
    data, has_all = json.dumps(body).encode(), asyncio.Event()
    came = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if came:
            return came.pop()
        await has_all.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message.get("body"):
            has_all.set()
            for _ in range(10):  # whoever waits for it hears of it before the answer's end is there
                await asyncio.sleep(0)

    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(data))]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
    await app({**scope, "query_string": b"", "headers": headers}, receive, send)


async def end(app: Any) -> None:
    """Tell an application that its server ends."""

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.shutdown"}

    async def send(message: dict[str, Any]) -> None:
        assert message == {"type": "lifespan.shutdown.complete"}

    await app({"type": "lifespan"}, receive, send)


def with_gateway(test: Callable[[Any, list[Any], Any], Awaitable[None]], **options: Any) -> None:
    """Run a test with a gateway of this process that has two connections to its upstream, and its log."""
    lines: list[Any] = []
    with recorder(refuse_long) as behind:

        async def run() -> None:
            limits = Limits(max_calls=2, connect_seconds=60)
            upstreams = [Upstream(api="openai", url=behind.address)]
            app = make_app(upstreams, limits=limits, log=lines.append, budgets={"*": "50k"}, **options)
            try:
                await test(app, lines, behind)
            finally:
                await end(app)

        asyncio.run(run())


@pytest.mark.parametrize("end", ["client_gone", "failed: ZeroDivisionError"])
def test_a_refused_request_that_comes_to_nothing_costs_no_connection(end: str) -> None:
    """As many as there are connections: the client goes away, or a callback fails, in the second fit."""
    in_fit, go = threading.Event(), threading.Event()
    state = {"behind": 0}

    def pin(message: Any, index: int) -> bool:
        if state["behind"]:
            in_fit.set()
            go.wait(30)
            if end != "client_gone":
                raise ZeroDivisionError
        return False

    async def test(app: Any, lines: list[Any], behind: Any) -> None:
        for number in range(2):
            state["behind"], gone, before = 0, asyncio.Event(), len(behind.seen)
            in_fit.clear()
            go.clear()
            body = {"model": f"model-{number}", "messages": talk(40)}
            asked = asyncio.create_task(ask(app, CHAT, body, gone=gone))
            while len(behind.seen) == before:
                await asyncio.sleep(0)
            state["behind"] = 1
            assert await asyncio.to_thread(in_fit.wait, 20)
            if end == "client_gone":
                gone.set()
            else:
                go.set()
            said = await asked
            go.set()
            assert lines[-1]["end"] == end
            if end != "client_gone":
                told = json.loads(said[1]["body"])
                assert (said[0]["status"], lines[-1]["status"]) == (500, 500)
                assert told["error"]["type"] == "server_error"
        answer = await ask(app, "/v1/files", {})
        assert answer[0]["status"] == 200

    with_gateway(test, pin=pin)


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
def test_a_client_that_closes_when_it_has_all_is_not_gone(path: str) -> None:
    """The length of an answer says when it is whole, before its server says that it ends."""

    async def test(app: Any, lines: list[Any], behind: Any) -> None:
        await ask_and_close(app, path, {"model": "gpt-4o", "messages": talk(2)})
        assert [line["end"] for line in lines] == ["done"]

    with_gateway(test)
