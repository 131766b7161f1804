"""Faults at both ends of a gateway, many at a time: none hangs, none shows a key, and it goes on."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from tests.gateway.faulty import CHAT, FAULTS, FILES, HELLO, calls_in_progress, faulty
from tests.gateway.gateways import gateway

KEY = "sk-never-in-a-log"
AT_A_TIME = 32
LONGEST_SECONDS = 300
"""Far above all limits of the gateway: what takes longer hangs."""

BODIES = (
    HELLO,
    HELLO[:-9],
    b"[" * 5_000,
    HELLO[:-1] + b', "pad": ' + b'{"a": ' * 500 + b"1" + b"}" * 501,
    b"\x1f\x8b garbage",
)
HEADERS = (
    "",
    "Authorization: Bearer other\r\n",
    "Content-Encoding: gzip\r\n",
    "Upgrade: websocket\r\nConnection: Upgrade\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Origin: https://evil.example\r\n",
    "X-Long: " + "x" * 70_000 + "\r\n",
    "Expect: 100-continue\r\n",
)
ENDS = ("reads", "closes at once", "closes in its body", "resets", "closes in the answer", "stops sending")


def _request(dice: random.Random) -> bytes:
    """Write a request, mostly a good one."""
    path, body = dice.choice((CHAT, FILES)), HELLO if dice.random() < 0.7 else dice.choice(BODIES)
    more = "" if dice.random() < 0.7 else dice.choice(HEADERS)
    length = len(body) + (0 if dice.random() < 0.9 else dice.choice((-3, 50)))
    host = "localhost" if dice.random() < 0.95 else "evil.example"
    fault = dice.choice(list(FAULTS))
    head = (
        f"POST {path}?key={KEY} HTTP/1.1\r\nHost: {host}\r\n"
        f"Authorization: Bearer {KEY}\r\nx-api-key: {KEY}\r\napi-key: {KEY}\r\nCookie: a={KEY}\r\n"
        f"x-fault: {fault}\r\nContent-Length: {length}\r\n{more}\r\n"
    )
    return head.encode() + body


async def _call(front: str, dice: random.Random) -> str:
    """Send a request and end as the dice say; gives how it ended, once it has."""
    place = urlsplit(front)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    data, end = _request(dice), "reads" if dice.random() < 0.5 else dice.choice(ENDS)
    with suppress(OSError):
        if end in ("closes in its body", "stops sending"):
            data = data[: dice.randrange(1, len(data))]
        writer.write(data)
        await writer.drain()
        if end == "closes in the answer":
            await reader.read(20)
        elif end in ("reads", "stops sending"):
            if end == "reads":  # the gateway keeps the connection where the answer was whole
                writer.write(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while await reader.read(65_536):
                pass
    if end == "resets":
        place_of: socket.socket = writer.get_extra_info("socket")
        place_of.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return end


@pytest.mark.parametrize("calls", [150, pytest.param(5_000, marks=pytest.mark.long, id="at size")])
def test_a_storm_of_faults_hangs_nothing_and_shows_no_key(calls: int) -> None:
    """Each call has its end within the limits; then none is in progress, and a good request is served."""
    limits = {
        "answer_seconds": 3,
        "body_seconds": 3,
        "stall_seconds": 3,
        "header_seconds": 3,
        "idle_seconds": 3,
    }
    with faulty() as address, gateway(address, limits=limits, learn=False) as front:

        async def storm() -> list[str]:
            gate = asyncio.Semaphore(AT_A_TIME)

            async def one(number: int) -> str:
                async with gate, asyncio.timeout(LONGEST_SECONDS):
                    return await _call(front.address, random.Random(number))

            return await asyncio.gather(*(one(number) for number in range(calls)))

        ended = asyncio.run(storm())
        assert set(ended) == set(ENDS)
        assert any(calls_in_progress(front) == 0 for _ in range(10_000))
        assert any(front.ask(CHAT, HELLO).status == 200 for _ in range(20))
        said = front.end()
    assert KEY not in said
    ends = {line.split('"end": "')[1].split('"')[0] for line in said.splitlines()}
    assert {"done", "client_gone", "upstream_failed", "upstream_silent"} <= ends
    assert [end for end in ends if end.startswith("failed")] == []
