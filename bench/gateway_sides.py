"""The sides of `gateway_cost.py`, each a process of its own: an upstream, and the bare pass-through.

`python bench/gateway_sides.py upstream`, and the same with `passage URL`, write their address in a line, and end
with their standard input.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"It is sunny in Utrecht. "}}]}\n\n'
CHUNKS = 20
"""Of a stream."""

# The upstream: as little work as a server can do, since what it does is in nobody's numbers.


class _Upstream(asyncio.Protocol):
    """Answers every request: with a stream where that is asked for, and with a bill of its length."""

    def connection_made(self, transport: Any) -> None:
        self._transport, self._came, self._due = transport, bytearray(), -1

    def data_received(self, data: bytes) -> None:
        self._came += data
        if self._due < 0:
            end = self._came.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._came[:end]).lower()
            at = head.index(b"content-length:") + len(b"content-length:")
            self._due = end + 4 + int(head[at:].split(b"\r\n", 1)[0])
        if len(self._came) >= self._due:
            self._transport.write(_answer(bytes(self._came)))
            self._came, self._due = bytearray(), -1


def _answer(request: bytes) -> bytes:
    # A bill that no counter takes for a mistake: five characters of English and JSON are about a token.
    usage = b'"usage":{"prompt_tokens":%d,"completion_tokens":12,"total_tokens":%d}' % (
        len(request) // 5,
        len(request) // 5 + 12,
    )
    if b'"stream": true' in request or b'"stream":true' in request:
        events = CHUNK * CHUNKS + b'data: {"choices":[],%s}\n\ndata: [DONE]\n\n' % usage
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(events), events)
    said = b'"choices":[{"index":0,"message":{"role":"assistant","content":"Sunny."}}]'
    body = b'{"id":"chatcmpl-1","object":"chat.completion",%s,%s}' % (said, usage)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


async def _upstream() -> None:
    server = await asyncio.get_running_loop().create_server(_Upstream, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


# The floor: what a gateway of the same stack costs that looks at nothing.


class _Passage:
    """Passes every request on, and its answer as it comes.

    Args:
        url: The server that is asked.
    """

    def __init__(self, url: str) -> None:
        import httpcore2

        place = urlsplit(url)
        self._http, self._host, self._port = httpcore2, place.hostname, place.port
        self._pool = httpcore2.AsyncConnectionPool(max_connections=512, keepalive_expiry=4.0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
        headers.append((b"host", b"%s:%d" % (str(self._host).encode(), self._port)))
        url = self._http.URL(scheme="http", host=self._host, port=self._port, target=scope["raw_path"])
        request = self._http.Request(scope["method"], url, headers=headers, content=b"".join(parts))
        answer = await self._pool.handle_async_request(request)
        try:
            passed = [one for one in answer.headers if one[0].lower() != b"transfer-encoding"]
            await send({"type": "http.response.start", "status": answer.status, "headers": passed})
            async for part in answer.aiter_stream():
                await send({"type": "http.response.body", "body": part, "more_body": True})
        finally:
            await answer.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _passage(url: str) -> None:
    import uvicorn

    place = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{place.getsockname()[1]}", flush=True)
    given: Any = {"http": "h11", "ws": "none", "lifespan": "off", "log_config": None, "access_log": False}
    given |= {"server_header": False, "date_header": False, "proxy_headers": False}
    config = uvicorn.Config(_Passage(url), **given, timeout_keep_alive=75)
    uvicorn.Server(config).run(sockets=[place])


def _end_with(file: Any) -> None:
    """End the process once a file is at its end, as it is when who started the process is gone."""
    import os

    file.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    if sys.argv[1] == "upstream":
        asyncio.run(_upstream())
    else:
        _passage(sys.argv[2])
