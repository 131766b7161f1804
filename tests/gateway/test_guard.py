"""Who may ask a gateway, what is no request, and how much it takes."""

from __future__ import annotations

import gzip
import json
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.gateway.gateways import Answer, Recorder, Running, gateway, recorder
from tests.loopback import JSONHandler, loopback
from trimtab.errors import ConfigurationError
from trimtab.gateway import Limits, Upstream, make_app, public_upstreams, serve

TOKEN = "a-token-of-16-or-more"
CHAT = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Running, Recorder]]:
    """A gateway of this machine, with small limits."""
    with (
        recorder() as behind,
        gateway(behind.address, limits={"max_body_bytes": 10_000, "max_header_bytes": 4_000}) as front,
    ):
        yield front, behind


def talk_raw(front: Running, data: bytes) -> bytes:
    """Send bytes, and read all there is until the connection is closed."""
    place = urlsplit(front.address)
    with socket.create_connection((place.hostname, place.port or 0), timeout=30) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def head(*lines: str, method: str = "POST", path: str = "/v1/files") -> bytes:
    """Write the head of a request."""
    return "\r\n".join((f"{method} {path} HTTP/1.1", *lines, "", "")).encode()


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (("Host: localhost", "Content-Length: 0"), 200),
        (("Host: evil.example", "Content-Length: 0"), 421),
        (("Host: localhost", "Origin: https://evil.example", "Content-Length: 0"), 403),
        (("Host: localhost", "Origin: null", "Content-Length: 0"), 403),
        (("Host: localhost", "Origin: http://localhost:3000", "Content-Length: 0"), 200),
        (("Host: localhost", "Origin: vscode-webview://x", "Content-Length: 0"), 200),
        (("Host: localhost", "Authorization: Bearer a", "Authorization: Bearer b", "Content-Length: 0"), 400),
        (("Host: localhost", "Content-Length: 0", "Transfer-Encoding: chunked"), 400),
        (("Host: localhost", "Content-Length: 5", "Content-Length: 6"), 400),
        (("Host: localhost", "Content-Length: -5"), 400),
        (("Host: localhost", "Content-Length: 5x"), 400),
        (("Host: localhost", "Transfer-Encoding: gzip"), 400),
        (("Host: localhost", "X-Long: " + "x" * 8_000), 431),
        (("Content-Length: 0",), 400),
    ],
)
def test_what_could_be_read_in_two_ways_or_comes_from_a_page_is_refused(
    pair: tuple[Running, Recorder], lines: tuple[str, ...], status: int
) -> None:
    """Hosts of others, pages of others, two keys, two lengths; and none of it reaches the upstream."""
    front, behind = pair
    before = len(behind.seen)
    answer = talk_raw(front, head(*lines, "Connection: close"))
    assert re.match(rb"HTTP/1.1 (\d+)", answer)
    assert int(answer.split()[1]) == status
    assert len(behind.seen) - before == (status == 200)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/v1/../admin",
            "/v1/%2e%2e/admin",
            "/v1/..%2fadmin",
            "/v1/..;a=1/admin",
            "/v1/..%3B/admin",
            "/v1/..",
        ),
        *("/v1/files#x", "/..#x", "http://evil.example/v1/files", "*"),
    ],
)
def test_no_path_leads_out_of_the_upstream(pair: tuple[Running, Recorder], path: str) -> None:
    """Neither by dot segments, however they are written, nor by an address of its own."""
    front, behind = pair
    before = len(behind.seen)
    answer = talk_raw(front, head("Host: localhost", "Content-Length: 0", "Connection: close", path=path))
    assert (answer.split()[1], len(behind.seen)) == (b"400", before)


def test_smuggled_bytes_are_no_second_request(pair: tuple[Running, Recorder]) -> None:
    """Behind a chunked body stands the next request of the client, with a head and checks of its own."""
    front, behind = pair
    before = len(behind.seen)
    inner = head("Host: evil.example", "Content-Length: 0", path="/v1/smuggled")
    lines = ("Host: localhost", "Transfer-Encoding: chunked", "Content-Length: 4")
    talk_raw(front, head(*lines) + b"0\r\n\r\n" + inner)
    assert [one.target for one in behind.seen[before:]] == []


def test_an_upgrade_to_websocket_is_refused_in_a_way_that_clients_fall_back_from(
    pair: tuple[Running, Recorder],
) -> None:
    """426 at once, and nothing is asked of the upstream."""
    lines = ("Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    answer = talk_raw(pair[0], head(*lines, "Sec-WebSocket-Key: eA==", method="GET", path="/v1/responses"))
    assert answer.startswith(b"HTTP/1.1 426 ")
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/chat/completions", ("error", "type", "invalid_request_error")),
        ("/v1/messages", ("error", "type", "request_too_large")),
        ("/v1beta/models/gemini-2.5-flash:generateContent", ("error", "status", "INVALID_ARGUMENT")),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_413_of_its_api(
    pair: tuple[Running, Recorder], path: str, kind: tuple[str, str, str], chunked: bool
) -> None:
    """Whether its length is said or not."""
    front, behind = pair
    before = len(behind.seen)
    connection = front.connect()
    data = b" " * 10_001
    connection.request("POST", path, iter([data]) if chunked else data, encode_chunked=chunked)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    assert (answer.status, told[kind[0]][kind[1]], len(behind.seen)) == (413, kind[2], before)


@pytest.mark.parametrize(
    "body",
    [b"", b"[" * 5_000, b'{"a":' * 1_000, b"not JSON", b"[1]", b'{"messages": 1e999}', b"\xff\xfe{}"],
    ids=["empty", "deep lists", "deep objects", "no JSON", "a list", "a number", "UTF-16"],
)
def test_a_body_that_cannot_be_read_is_an_error_of_the_client(
    pair: tuple[Running, Recorder], body: bytes
) -> None:
    """What is not read is not known to fit, so it is not sent."""
    front, behind = pair
    before = len(behind.seen)
    answer = front.ask("/v1/chat/completions", body)
    assert (answer.status, answer.data["error"]["type"]) == (400, "invalid_request_error")
    assert len(behind.seen) == before


def test_other_machines_need_the_token() -> None:
    """In a header or in the path; it is not passed on, and a wrong one is 401."""
    with recorder() as behind, gateway(behind.address, token=TOKEN) as front:
        answers = [
            front.ask("/v1/files", b"1"),
            front.ask("/v1/files", b"2", {"trimtab-token": "wrong"}),
            front.ask("/t/wrong-token-of-16-letters/v1/files", b"3"),
            front.ask("/v1/files", b"4", {"trimtab-token": TOKEN, "Host": "gate.example"}),
            front.ask(f"/t/{TOKEN}/v1/files?a=1", b"5"),
            front.ask("/health", method="GET"),
        ]
    lines = [one.line for one in answers]
    assert [one.status for one in answers] == [401, 401, 401, 200, 200, 200]
    assert [bool(one) for one in lines] == [True] * 5 + [False]
    assert [(one.target, one.values("trimtab-token")) for one in behind.seen] == [
        ("/v1/files", []),
        ("/v1/files?a=1", []),
    ]
    assert TOKEN not in json.dumps(lines)


@pytest.mark.parametrize("token", [TOKEN, None])
def test_a_token_in_an_odd_place_of_a_path_is_not_in_the_log(token: str | None) -> None:
    """Where it does not count, it is still a secret: also for a gateway that asks for none."""
    odd = [f"//t/{TOKEN}", f"/T/{TOKEN}", f"/%74/{TOKEN}", f"/t%2F{TOKEN}", f"/t//{TOKEN}", f"/v1/t/{TOKEN}"]
    paths = [f"{one}/models" for one in odd] + ([f"/{TOKEN}/models"] if token else [f"/t/{TOKEN}/models"])
    with recorder() as behind, gateway(behind.address, token=token) as front:
        lines = []
        for path in paths:
            talk_raw(front, head("Host: localhost", "Connection: close", method="GET", path=path))
            lines.append(front.line())
        said = json.dumps(lines) + front.end()
    assert TOKEN not in said
    # What stands within a path is the upstream's own.
    assert {one.target for one in behind.seen if TOKEN in one.target} <= {f"/v1/t/{TOKEN}/models"}
    assert [one["path"].endswith("/models") for one in lines] == [True] * len(paths)


def test_a_token_that_nobody_asks_for_is_not_the_upstreams() -> None:
    """A program that is told one asks the gateway of this machine as it asks any other."""
    with recorder() as behind, gateway(behind.address) as front:
        statuses = [front.ask(f"{beginning}{TOKEN}/v1/files", b"1").status for beginning in ("/t/", "/t//")]
        odd = [
            front.ask(f"{beginning}{TOKEN}/v1/files", b"1").status for beginning in ("/T/", "//t/", "/%74/")
        ]
    assert (statuses, odd) == ([200, 200], [400, 400, 400])
    assert [one.target for one in behind.seen] == ["/v1/files"] * 2


def test_bodies_of_all_requests_together_have_a_limit() -> None:
    """Bodies with a length, chunks, and what is behind a compression; each gives its room back at its end."""
    asked, free = threading.Event(), threading.Event()

    class Waiting(JSONHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.set()
            free.wait(30)
            self.answer(200, {})

    limits = {"max_body_bytes": 9_000, "max_bodies_bytes": 10_000}
    body = json.dumps({**CHAT, "pad": " " * 6_000}).encode()
    chat = "/v1/chat/completions"
    with loopback(Waiting) as address, gateway(address, limits=limits) as front:
        for data, headers in (
            (body, {}),
            (iter([body]), {}),
            (gzip.compress(body), {"Content-Encoding": "gzip"}),
        ):
            asked.clear()
            free.clear()
            first = front.connect()
            first.request("POST", chat, data, headers, encode_chunked=not isinstance(data, bytes))
            assert asked.wait(30)
            full = [front.ask(chat, body), front.ask(chat, gzip.compress(body), {"Content-Encoding": "gzip"})]
            small = threading.Thread(target=front.ask, args=(chat, CHAT))
            small.start()
            free.set()
            small.join()
            assert first.getresponse().read() == b"{}"
            first.close()
            assert [(one.status, one.headers["retry-after"]) for one in full] == [(503, "1")] * 2
        assert [front.ask(chat, body).status for _ in range(3)] == [200] * 3


def test_a_length_that_is_said_takes_no_room() -> None:
    """Heads without a body stop nobody; bytes that are there do, and `/ready` says so until they are gone."""
    limits = {"max_body_bytes": 10_000, "max_bodies_bytes": 20_000}
    chat = "/v1/chat/completions"
    slow = head("Host: localhost", "Content-Length: 10000", path=chat)
    with ExitStack() as stack:
        behind = stack.enter_context(recorder())
        front = stack.enter_context(gateway(behind.address, limits=limits))
        place = urlsplit(front.address)
        sockets = [socket.create_connection((place.hostname, place.port or 0), timeout=30) for _ in range(8)]
        for one in sockets:
            stack.enter_context(one)
            one.sendall(slow)
        _wait_for(front, "/health", lambda answer: answer.data["calls"] == len(sockets))
        assert front.ask(chat, CHAT).status == 200
        assert front.ask("/ready", method="GET").status == 200
        for one in sockets[:2]:
            one.sendall(b" " * 9_500)
        _wait_for(front, "/ready", lambda answer: answer.status == 503)
        assert front.ask("/health", method="GET").status == 200
        sockets[0].close()
        _wait_for(front, "/ready", lambda answer: answer.status == 200)
        assert front.ask(chat, CHAT).status == 200


def _wait_for(front: Running, path: str, is_so: Callable[[Answer], bool]) -> None:
    """Ask for a page until it says something; what is on its way over a socket has no other sign."""
    assert any(is_so(front.ask(path, method="GET")) for _ in range(20_000))


def test_pages_of_the_gateway_that_nobody_reads_keep_no_connection() -> None:
    """One request behind the other, more than sockets take; the next client is served."""
    limits = {"max_connections": 1, "stall_seconds": 0.2, "idle_seconds": 1, "header_seconds": 1}
    with recorder() as behind, gateway(behind.address, limits=limits) as front, socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        silent.settimeout(0.5)
        place = urlsplit(front.address)
        silent.connect((place.hostname, place.port))
        with suppress(OSError):  # nothing more is taken, or the connection is cut off
            silent.sendall(head("Host: localhost", method="GET", path="/metrics") * 5_000)
        assert any(_is_served(front) for _ in range(20_000))


def test_a_gateway_that_is_full_says_so_in_the_words_of_the_api() -> None:
    """And is not ready, until a request has its answer."""
    asked, free = threading.Event(), threading.Event()

    class Waiting(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            asked.set()
            free.wait(30)
            self.answer(200, {})

    with loopback(Waiting) as address, gateway(address, limits={"max_calls": 1}) as front:
        assert front.ask("/ready", method="GET").status == 200
        first = front.connect()
        first.request("POST", "/v1/files", b"1")
        assert asked.wait(30)
        ready, live = (front.ask(path, method="GET").status for path in ("/ready", "/health"))
        full = front.ask("/v1/messages", {"model": "claude-sonnet-4-5", "messages": []})
        free.set()
        assert first.getresponse().read() == b"{}"
        first.close()
        assert (full.line["end"], front.line()["end"]) == ("busy", "done")
        assert front.ask("/ready", method="GET").status == 200
    assert (ready, live, full.status, full.data["error"]["type"]) == (503, 200, 503, "overloaded_error")
    assert full.headers["retry-after"] == "1"


def _begun(front: Running, stack: ExitStack, many: int) -> list[socket.socket]:
    """Open connections that say half a head."""
    place = urlsplit(front.address)
    made = [socket.create_connection((place.hostname, place.port or 0), timeout=300) for _ in range(many)]
    for one in made:
        stack.enter_context(one).sendall(b"POST /v1/files HTTP/1.1\r\nHost: loc")
    return made


def test_slow_heads_are_closed() -> None:
    """And no upstream hears of them."""
    with (
        recorder() as behind,
        gateway(behind.address, limits={"header_seconds": 0.3}) as front,
        ExitStack() as stack,
    ):
        assert [_said(one) for one in _begun(front, stack, 20)] == [b""] * 20
    assert behind.seen == []


def _said(one: socket.socket) -> bytes:
    """Read what is said before a connection is closed; it may be closed before its head was sent."""
    try:
        return one.recv(1_000)
    except ConnectionResetError:
        return b""


def test_a_connection_above_the_limit_is_answered_503() -> None:
    """At once; those below it are not touched."""
    with (
        recorder() as behind,
        gateway(behind.address, limits={"max_connections": 20}) as front,
        ExitStack() as stack,
    ):
        first = _begun(front, stack, 20)[0]
        place = urlsplit(front.address)
        with socket.create_connection((place.hostname, place.port or 0), timeout=300) as late:
            assert late.recv(1_000).startswith(b"HTTP/1.1 503 ")
        first.sendall(b"alhost\r\nContent-Length: 0\r\n\r\n")
        assert first.recv(1_000).startswith(b"HTTP/1.1 200 ")


def test_a_slow_body_is_told_and_given_up() -> None:
    """In the words of its API; the next request is served."""
    with recorder() as behind, gateway(behind.address, limits={"body_seconds": 0.3}) as front:
        connection = front.connect()
        connection.putrequest("POST", "/v1/chat/completions")
        connection.putheader("Content-Length", "100")
        connection.endheaders(b"{")
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.close()
        assert (answer.status, told["error"]["type"]) == (408, "invalid_request_error")
        assert front.ask("/v1/files", b"1").status == 200
    assert len(behind.seen) == 1


def test_a_client_that_takes_nothing_keeps_no_connection() -> None:
    """There is room for one: the next client is served although the first one's socket stays open."""
    limits = {"max_connections": 1, "stall_seconds": 0.2}
    with (
        recorder(lambda one: (200, {}, b"x" * 40_000_000)) as behind,
        gateway(behind.address, limits=limits) as front,
        socket.socket() as silent,
    ):
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        place = urlsplit(front.address)
        silent.connect((place.hostname, place.port))
        silent.sendall(head("Host: localhost", method="GET", path="/v1/long"))
        assert front.line()["end"] == "client_gone"
        assert any(_is_served(front) for _ in range(20_000))


def _is_served(front: Running) -> bool:
    """Tell whether a client more is served."""
    try:
        return front.ask("/health", method="GET").status == 200
    except ConnectionError:  # closed before the request was read
        return False


def test_an_upload_that_pauses_is_given_up() -> None:
    """As many as there are calls, on a path that passes through; the next request is served."""
    limits = {"max_calls": 2, "stall_seconds": 0.3}
    with recorder() as behind, gateway(behind.address, limits=limits) as front, ExitStack() as stack:
        place = urlsplit(front.address)
        slow = []
        for _ in range(2):
            one = socket.create_connection((place.hostname, place.port or 0), timeout=300)
            stack.enter_context(one)
            one.sendall(head("Host: localhost", "Content-Length: 1000") + b"x")
            slow.append(one)
        assert [one.recv(12) for one in slow] == [b"HTTP/1.1 408"] * 2
        assert [front.line()["end"] for _ in slow] == ["slow_body"] * 2
        assert front.ask("/v1/files", method="GET").status == 200  # a body of its own could pause, too


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_answers_in_progress_come_to_their_end(number: int) -> None:
    """New connections are refused meanwhile, and the process ends well."""
    begun, go = threading.Event(), threading.Event()

    class Halting(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            self.send_response(200)
            self.send_header("Content-Length", "8")
            self.end_headers()
            self.wfile.write(b"four")
            self.wfile.flush()
            begun.set()
            go.wait(30)
            self.wfile.write(b"more")

    with loopback(Halting) as address, gateway(address) as front:
        connection = front.connect()
        connection.request("POST", "/v1/files", b"1")
        answer = connection.getresponse()
        assert begun.wait(30)
        assert answer.read(4) == b"four"
        front.process.send_signal(number)
        while _takes(front):
            pass
        go.set()
        assert answer.read() == b"more"
        connection.close()
        assert front.process.wait(30) == 0
        assert front.line()["end"] == "done"


def test_a_signal_ends_a_gateway_that_has_just_said_its_address() -> None:
    """Supervisors wait for that line, and nothing else."""
    for _ in range(3):
        with gateway("http://127.0.0.1:9") as front:
            front.process.send_signal(signal.SIGTERM)
            assert front.process.wait(20) == 0


def _takes(front: Running) -> bool:
    """Tell whether a gateway takes a connection."""
    place = urlsplit(front.address)
    try:
        socket.create_connection((place.hostname, place.port or 0), timeout=30).close()
    except ConnectionError:  # refused; reset, if it waited to be taken when the port was closed
        return False
    return True


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: make_app([], budgets={}), "a server to ask"),
        (lambda: make_app(token="short"), "at least 16"),
        (lambda: make_app(token="with spaces and more letters"), "letters, digits"),
        (lambda: make_app(budgets={"*": "8kk"}), "8kk"),
        (lambda: make_app(budgets={"*": -1}), "-1"),
        (lambda: make_app(strategy=3), "strategy"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Limits(max_calls=0), "max_calls"),
        (lambda: Limits(answer_seconds=float("nan")), "answer_seconds"),
        (lambda: Upstream(api="opnai", url="http://x"), "did you mean openai"),
        (lambda: Upstream(api="openai", url="x.example"), "http://"),
        (lambda: Upstream(api="openai", url="https://user:secret@x.example"), "clients send their own"),
        (lambda: Upstream(api="openai", url="https://x.example?key=1"), "query"),
        (lambda: Upstream(api="openai", url="https://x.example:port"), "port"),
        (lambda: serve(make_app(), host="0.0.0.0"), "other machines"),
        (lambda: serve(make_app(), host="192.0.2.1"), "other machines"),
        (lambda: serve(make_app(token=TOKEN), host="192.0.2.1"), "cannot be used"),
    ],
)
def test_a_gateway_that_cannot_be_is_refused_at_once(make: Any, words: str) -> None:
    """Before a client waits for it; and a password in an address is not repeated."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        make()
    assert "secret@" not in str(caught.value)
    assert "user:" not in str(caught.value)


def test_the_providers_own_addresses_are_asked_over_tls() -> None:
    """Where nobody names an upstream."""
    assert {one.api for one in public_upstreams()} == {"openai", "anthropic", "gemini"}
    assert all(one.url.startswith("https://") for one in public_upstreams())
