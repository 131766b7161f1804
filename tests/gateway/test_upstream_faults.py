"""What a client gets where its upstream fails, on paths that are fitted and on those that pass through."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpcore2 as httpcore
import pytest

from tests.gateway.faulty import CHAT, FAULTS, FILES, HELLO, calls_in_progress, faulty
from tests.gateway.gateways import Running, gateway
from tests.judge.server import provider
from tests.loopback import JSONHandler, loopback
from trimtab.gateway import Upstream, make_app

KEY = "sk-never-in-a-log"


@pytest.fixture(scope="module")
def front() -> Iterator[Running]:
    """A gateway before a faulty upstream; at its end its log is searched for keys."""
    with faulty() as address, gateway(address, limits={"answer_seconds": 3}, learn=False) as front:
        yield front
        assert any(calls_in_progress(front) == 0 for _ in range(20_000))
        assert KEY not in front.end()


@pytest.mark.parametrize("path", [CHAT, FILES])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_an_error_of_the_api_or_an_answer_that_breaks_off(
    front: Running, name: str, path: str
) -> None:
    """What was said passes byte for byte with its status; an end that was not said is not made up."""
    fault = FAULTS[name]
    connection = front.connect(timeout=120)
    connection.request("POST", path, HELLO, {"X-Fault": name, "Authorization": f"Bearer {KEY}"})
    answer = connection.getresponse()
    is_cut, body = False, b""
    try:
        body = answer.read()
    except http.client.IncompleteRead as error:
        is_cut, body = True, error.partial
    connection.close()
    assert (answer.status, is_cut) == (fault.status, fault.is_cut)
    if fault.body is None:
        assert b'"type": "server_error"' in body
    else:
        assert body == fault.body
    assert answer.getheader("trailer") is None
    assert answer.getheader("retry-after") == ("7" if fault.status == 429 else None)


def test_a_client_that_goes_away_within_a_stream_ends_the_call_of_the_upstream() -> None:
    """It has read the first event; the upstream, which has more to say, is told."""
    gone = threading.Event()

    class Endless(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            self.begin_stream()
            self.send_part(b"data: 1\n\n")
            self.connection.settimeout(60)
            if self.connection.recv(1) == b"":
                gone.set()
            self.close_connection = True

    with loopback(Endless) as address, gateway(address) as front:
        connection = front.connect()
        connection.request("POST", CHAT, HELLO)
        assert connection.getresponse().readline() == b"data: 1\n"
        assert connection.sock is not None
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        assert gone.wait(60)
        assert front.line()["end"] == "client_gone"


@pytest.mark.parametrize("path", [CHAT, FILES])
def test_an_upstream_that_takes_nothing_of_a_request_is_given_up(path: str) -> None:
    """More than sockets hold: without a limit a write would wait for ever; the client reads why."""
    done = threading.Event()

    class Deaf(JSONHandler):
        def do_POST(self) -> None:
            done.wait(120)
            self.close_connection = True

    body = json.dumps({**json.loads(HELLO), "pad": "x" * 30_000_000})
    with loopback(Deaf) as address, gateway(address, limits={"answer_seconds": 0.5}) as front:
        answer = front.ask(path, body.encode())
        done.set()
        assert (answer.status, answer.data["error"]["type"]) == (504, "server_error")
        assert answer.line["end"] == "upstream_silent"
        assert any(calls_in_progress(front) == 0 for _ in range(20_000))


def test_a_connection_that_cannot_be_given_back_is_a_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client has its answer; the line has no words of others, which may quote an address."""
    close = httpcore.Response.aclose

    async def fail(response: httpcore.Response) -> None:
        await close(response)
        raise httpcore.ReadError("secret address")

    async def ask(address: str) -> list[dict[str, Any]]:
        app = make_app([Upstream(api="openai", url=address)], learn=False)
        sent: list[dict[str, Any]] = []
        came = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if came.is_set():
                await asyncio.Event().wait()
            came.set()
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/v1/models",
            "raw_path": b"/v1/models",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await app(scope, receive, send)
        while not caplog.records:
            await asyncio.sleep(0)
        return sent

    monkeypatch.setattr(httpcore.Response, "aclose", fail)
    with provider() as behind:
        sent = asyncio.run(ask(behind.address))
    assert sent[0]["status"] == 501  # of a server that knows no GET
    lines = [(one.name, one.levelname, one.getMessage()) for one in caplog.records]
    told = "a connection to a server ended with ReadError; the answer was passed on"
    assert lines == [("trimtab.gateway", "WARNING", told)]
