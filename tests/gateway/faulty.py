"""An upstream that goes wrong in the way that a request asks for, by its header x-fault."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tests.gateway.gateways import Running

CHAT = "/v1/chat/completions"
FILES = "/v1/files"
HELLO = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}).encode()

USAGE = b'{"usage": {"prompt_tokens": 5, "completion_tokens": 1}}'
TOO_LONG = json.dumps(
    {
        "error": {
            "message": "This model's maximum context length is 3 tokens.",
            "code": "context_length_exceeded",
        }
    }
).encode()
EVENT = b"data: " + USAGE + b"\n\n"
DEEP = b'{"usage": {"prompt_tokens": ' + b"[" * 100_000

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
_CHUNKED = _HEAD + b"transfer-encoding: chunked\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _whole(status: int, body: bytes, *headers: bytes) -> bytes:
    lines = (b"HTTP/1.1 %d Status" % status, b"content-length: %d" % len(body), *headers, b"", b"")
    return b"\r\n".join(lines) + body


class Fault(NamedTuple):
    """What an upstream answers, and what a client of the gateway gets."""

    sent: bytes
    """All that it sends, before it closes the connection."""
    status: int
    """Of the answer of the gateway."""
    body: bytes | None = None
    """Of that; None: the gateway's own words."""
    is_cut: bool = False
    """Whether the answer breaks off behind the body."""
    is_silent: bool = False
    """Whether the connection stays open, and nothing more is said."""


FAULTS = {
    "whole": Fault(_whole(200, USAGE), 200, USAGE),
    "a stream": Fault(_CHUNKED + _chunk(EVENT) * 3 + b"0\r\n\r\n", 200, EVENT * 3),
    # httpcore drops what is behind the last chunk, and uvicorn could not send it: so it is not announced.
    "trailers": Fault(
        _HEAD
        + b"trailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n"
        + _chunk(EVENT)
        + b"0\r\nx-sum: 1\r\n\r\n",
        200,
        EVENT,
    ),
    "to its close": Fault(_HEAD + b"connection: close\r\n\r\n" + EVENT, 200, EVENT),
    "no gzip": Fault(_whole(200, b"hello", b"content-encoding: gzip"), 200, b"hello"),
    "deep": Fault(_whole(200, DEEP), 200, DEEP),
    "a hint before": Fault(
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + _whole(200, b"{}"), 200, b"{}"
    ),
    "limited": Fault(_whole(429, b"slow down", b"retry-after: 7"), 429, b"slow down"),
    "failed": Fault(_whole(500, b"<html>oops"), 500, b"<html>oops"),
    "overloaded": Fault(_whole(529, b"{}"), 529, b"{}"),
    "too long": Fault(_whole(400, TOO_LONG), 400, TOO_LONG),
    "nothing": Fault(b"", 502),
    "half a head": Fault(_HEAD[:30], 502),
    "no protocol": Fault(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 502),
    "two lengths": Fault(_HEAD + b"content-length: 3\r\ncontent-length: 5\r\n\r\nhello", 502),
    "a long head": Fault(_HEAD + b"x: " + b"x" * 300_000 + b"\r\n\r\n", 502),
    "silence": Fault(b"", 504, is_silent=True),
    "half a stream": Fault(_CHUNKED + _chunk(EVENT), 200, EVENT, is_cut=True),
    "half an event": Fault(_CHUNKED + _chunk(EVENT[:9]), 200, EVENT[:9], is_cut=True),
    "no chunk": Fault(_CHUNKED + _chunk(EVENT) + b"zz\r\nhello\r\n", 200, EVENT, is_cut=True),
    "short": Fault(_HEAD + b"content-length: 99\r\n\r\nhello", 200, b"hello", is_cut=True),
    "half a stream and silence": Fault(_CHUNKED + _chunk(EVENT), 200, EVENT, is_cut=True, is_silent=True),
}
"""By a name for the header x-fault."""


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            headers = dict(line.split(b": ", 1) for line in lines[1:] if line)
            if b"transfer-encoding" in headers:
                await reader.readuntil(b"0\r\n\r\n")
            else:
                await reader.readexactly(int(headers.get(b"content-length", b"0")))
            fault = FAULTS[headers.get(b"x-fault", b"whole").decode()]
            writer.write(fault.sent)
            await writer.drain()
            if fault.is_silent:
                await reader.read()
            if fault is not FAULTS["whole"]:
                break
    writer.close()


@contextmanager
def faulty() -> Iterator[str]:
    """Serve the faults for as long as a block lasts; gives the address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> asyncio.Server:
        return await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=2_048)

    async def end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for _ in range(9):  # until their connections are closed, too
            await asyncio.sleep(0)

    server = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def calls_in_progress(front: Running) -> int:
    """Ask a gateway how many requests are in progress."""
    return int(front.ask("/health", method="GET").data["calls"])
