"""Requests that are meant to harm: read in two ways, too many, too slow, too long, too deep."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.gateway.faulty import CHAT, FILES, HELLO
from tests.gateway.gateways import Recorder, Running, gateway, recorder, talk
from tests.judge import judge

KEY = "sk-never-in-a-log"
INNER = b"POST /v1/smuggled HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Running, Recorder]]:
    """A gateway before an upstream that writes down; at its end its log is searched for keys."""
    with recorder() as behind, gateway(behind.address, budgets={"*": "8k"}) as front:
        yield front, behind
        assert KEY not in front.end()


def talk_raw(front: Running, data: bytes, *, ends: bool = True) -> bytes:
    """Send bytes, say that there are no more if it ends, and read all there is."""
    place = urlsplit(front.address)
    with socket.create_connection((place.hostname, place.port or 0), timeout=120) as connection:
        connection.sendall(data)
        try:
            if ends:
                connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65_536), b""))
        except OSError:  # closed by the gateway before all was sent
            return b""


SMUGGLED = {
    "both lengths": (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "chunks twice": (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "chunks of another kind": (b"Transfer-Encoding: xchunked", b"0\r\n\r\n"),
    "chunks, then something": (b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
    "something, then chunks": (b"Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"),
    "a blank in the name": (b"Transfer-Encoding : chunked", b"0\r\n\r\n"),
    "a tab in the name": (b"Content-Length\t: 9", b""),
    "a vertical tab": (b"Transfer-Encoding: \x0bchunked", b"0\r\n\r\n"),
    "a NUL": (b"Content-Length: 9\x00", b""),
    "a sign": (b"Content-Length: +9", b""),
    "another base": (b"Content-Length: 0x9", b""),
    "two lengths in one": (b"Content-Length: 0, 9", b""),
    "a length twice": (b"Content-Length: 0\r\nContent-Length: 9", b""),
    "a chunk without an end": (b"Transfer-Encoding: chunked", b"5\r\nhelloXX0\r\n\r\n"),
    "a chunk that is too large": (b"Transfer-Encoding: chunked", b"f" * 30 + b"\r\n"),
    "a chunk below zero": (b"Transfer-Encoding: chunked", b"-5\r\n"),
    "a line within an extension": (b"Transfer-Encoding: chunked", b"5;a=\nb\r\nhello\r\n0\r\n\r\n"),
    "another protocol": (b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x", b""),
}


@pytest.mark.parametrize("path", [CHAT, FILES])
@pytest.mark.parametrize("name", SMUGGLED)
def test_no_request_hides_behind_another(pair: tuple[Running, Recorder], name: str, path: str) -> None:
    """What could end at two places is refused, and what stands behind it is no request of anybody's."""
    front, behind = pair
    before = len(behind.seen)
    lines, body = SMUGGLED[name]
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n" % (
        path.encode(),
        KEY.encode(),
    )
    answer = talk_raw(front, head + lines + b"\r\n\r\n" + body + INNER)
    assert "/v1/smuggled" not in [one.target for one in behind.seen[before:]]
    assert re.match(rb"HTTP/1\.1 4\d\d |$", answer)
    assert b"HTTP/1.1 200" not in answer


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"POST /v1/files /v1/smuggled HTTP/1.1", b""),
        (b"POST /v1/files HTTP/1.1 HTTP/1.1", b""),
        (b"PRI * HTTP/2.0", b""),
        (b"POST /v1/files", b""),
        (b"POST  /v1/files HTTP/1.1", b""),
        (b"CONNECT evil.example:443 HTTP/1.1", b""),
        (b"POST /v1/files HTTP/1.1", b"\r\n X-Folded: 1"),
        (b"\x16\x03\x01\x02\x00\x01\x00", b""),
    ],
)
def test_what_is_no_request_reaches_no_upstream(
    pair: tuple[Running, Recorder], first: bytes, more: bytes
) -> None:
    """A wrong first line, a line that goes on, another protocol."""
    front, behind = pair
    before = len(behind.seen)
    lines = b"\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    answer = talk_raw(front, first + more + lines, ends=False)
    assert re.match(rb"HTTP/1\.1 4\d\d ", answer)
    assert len(behind.seen) == before


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "api-key", "x-goog-api-key"])
@pytest.mark.parametrize("path", [CHAT, FILES])
def test_two_keys_are_refused_however_they_are_written(
    pair: tuple[Running, Recorder], path: str, name: str
) -> None:
    """One of them is not the one that somebody checked; both are missing in the log."""
    front, behind = pair
    before = len(behind.seen)
    lines = f"{name}: Bearer {KEY}\r\n{name.upper()}: Bearer {KEY}-2\r\nContent-Length: {len(HELLO)}\r\n\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}".encode()
    answer = talk_raw(front, head + HELLO, ends=False)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert (KEY.encode() in answer, len(behind.seen)) == (False, before)


@pytest.mark.parametrize("length", [len(HELLO) + 9, len(HELLO) - 9])
def test_a_body_that_is_not_as_long_as_it_says_is_not_sent(
    pair: tuple[Running, Recorder], length: int
) -> None:
    """Too short: the client is gone; too long: broken JSON, and behind it no request."""
    front, behind = pair
    before = len(behind.seen)
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    talk_raw(front, head.encode() + HELLO)
    front.ask(FILES, b"1")  # served behind it
    assert [one.target for one in behind.seen[before:]] == [FILES]


@pytest.mark.parametrize("depth", [50, 900, 5_000, 100_000])
@pytest.mark.parametrize("where", ["tools", "content", "pad"])
def test_deep_json_is_fitted_or_an_error_of_the_client(
    pair: tuple[Running, Recorder], where: str, depth: int
) -> None:
    """Never an error of the gateway's, and never its end."""
    front, _ = pair
    deep = '{"a": ' * depth + "1" + "}" * depth
    message = '{"role": "user", "content": %s}' % (
        f'[{{"type": "text", "text": "hi", "x": {deep}}}]' if where == "content" else '"hi"'
    )
    tools = '[{"type": "function", "function": {"name": "f", "parameters": %s}}]' % (
        deep if where == "tools" else "{}"
    )
    pad = deep if where == "pad" else "1"
    body = f'{{"model": "gpt-4o", "messages": [{message}], "tools": {tools}, "pad": {pad}}}'
    assert front.ask(CHAT, body.encode()).status in (200, 400)
    assert front.ask(CHAT, HELLO).status == 200


def _peak_bytes(front: Running) -> int:
    """Read the most memory that a process has had."""
    status = Path(f"/proc/{front.process.pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def test_an_upload_of_50_mb_passes_through_in_parts() -> None:
    """Its bytes are the client's, and at no time are all of them in memory."""
    data = bytes(range(256)) * 200_000
    with recorder() as behind, gateway(behind.address) as front:
        assert front.ask(FILES, b"1").status == 200
        before = _peak_bytes(front)
        assert front.ask(FILES, data).status == 200
        grown = _peak_bytes(front) - before
    assert hashlib.sha256(behind.seen[-1].body).digest() == hashlib.sha256(data).digest()
    assert grown < len(data) / 4


@pytest.mark.long
@pytest.mark.parametrize("budget", ["8k", "100m"])
def test_a_conversation_of_50_mb_is_fitted_or_passed_on_as_it_is(budget: str) -> None:
    """A valid request within the budget, or the client's very bytes."""
    body = json.dumps({"model": "my-model", "messages": talk(2_500, words=430)}).encode()
    assert len(body) > 50_000_000
    with recorder() as behind, gateway(behind.address, budgets={"*": budget}) as front:
        answer = front.ask(CHAT, body)
        assert (answer.status, front.ask(CHAT, HELLO).status) == (200, 200)
    sent = behind.seen[0]
    if budget == "8k":
        assert judge("openai_chat", sent.data) == []
        assert sent.data["messages"][-1] == {"role": "user", "content": "And now?"}
        assert answer.report["after"] <= 8_000
    else:
        assert hashlib.sha256(sent.body).digest() == hashlib.sha256(body).digest()


def test_a_thousand_slow_connections_keep_nobody_out() -> None:
    """Half a head, or half a body, and nothing more: another client is served, and SIGTERM ends it all."""
    count = 1_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10_000), hard))  # the gateway inherits it
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        behind = stack.enter_context(recorder())
        limits = {"header_seconds": 3_000, "body_seconds": 3_000, "stall_seconds": 3_000, "drain_seconds": 1}
        front = stack.enter_context(gateway(behind.address, limits=limits))
        place = urlsplit(front.address)
        slow = []
        for number in range(count):
            one = stack.enter_context(
                socket.create_connection((place.hostname, place.port or 0), timeout=120)
            )
            head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n".encode()
            one.sendall(head + (b"\r\n{" if number % 2 else b"X-"))
            slow.append(one)
        while front.ask("/health", method="GET").data["calls"] < count // 2:
            pass
        assert front.ask(CHAT, HELLO).status == 200
        assert front.end().count('"end": "drained"') == count // 2
        told = [b"".join(iter(lambda one=one: one.recv(9), b"")) for one in slow]  # type: ignore[misc]
    assert {answer[:12] for answer in told[1::2]} == {b"HTTP/1.1 503"}
    assert set(told[0::2]) == {b""}
    assert len(behind.seen) == 1
