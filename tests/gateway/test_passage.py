"""What passes through a gateway: requests and answers as they are, in parts, as they come."""

from __future__ import annotations

import asyncio
import base64
import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.gateway.gateways import Recorder, Running, Seen, gateway, recorder
from tests.loopback import JSONHandler, loopback
from trimtab.errors import ConfigurationError
from trimtab.gateway import Upstream, make_app

PAIR = tuple[Running, Recorder]


def basic(words: str) -> str:
    """Write a user and a password as RFC 7617 does."""
    return "Basic " + base64.b64encode(words.encode()).decode()


@pytest.fixture(scope="module")
def pair() -> Iterator[PAIR]:
    """A gateway before an upstream that writes down."""

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        if one.target.startswith("/v1/limited"):
            return 429, {"Retry-After": "7", "X-Limit": "3"}, b'{"error": "slow down"}'
        if one.target.startswith("/v1/gzip"):
            return 200, {"Content-Encoding": "gzip"}, gzip.compress(b"text " * 100, mtime=0)
        return 200, {"Connection": "X-Inner, keep-alive", "X-Inner": "1", "X-Outer": "2"}, b'{"ok": true}'

    with recorder(answer) as behind, gateway(behind.address) as front:
        yield front, behind


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_any_path_is_passed_on_with_its_method_query_and_body(pair: PAIR, method: str) -> None:
    """The target is the client's, byte for byte, and so is the body."""
    front, behind = pair
    body = None if method == "GET" else b"\x00\xff not JSON"
    answer = front.ask("/v1/files/a%2Fb?after=%20x&limit=2", body, method=method)
    seen = behind.seen[-1]
    assert (seen.method, seen.target, seen.body) == (
        method,
        "/v1/files/a%2Fb?after=%20x&limit=2",
        body or b"",
    )
    assert (answer.status, answer.data) == (200, {"ok": True})


def test_what_is_said_from_machine_to_machine_ends_at_the_gateway(pair: PAIR) -> None:
    """RFC 9110, 7.6.1, on both sides; Host is the upstream's, the key is passed on."""
    front, behind = pair
    sent = {
        "Authorization": "Bearer secret-one",
        "Connection": "keep-alive, X-Mine",
        "X-Mine": "1",
        "Keep-Alive": "timeout=5",
        "TE": "trailers",
        "Proxy-Authorization": "Basic x",
        "trimtab-token": "t",
        "X-Theirs": "2",
    }
    answer = front.ask("/v1/files", b"x", sent)
    seen = behind.seen[-1]
    assert seen.values("host") == [urlsplit(behind.address).netloc]
    assert seen.values("authorization") == ["Bearer secret-one"]
    assert seen.values("x-theirs") == ["2"]
    gone = ("x-mine", "keep-alive", "te", "proxy-authorization", "trimtab-token", "connection")
    assert {name: seen.values(name) for name in gone} == {name: [] for name in gone}
    assert (answer.headers.get("X-Inner"), answer.headers["X-Outer"]) == (None, "2")
    assert len(answer.headers["trimtab-request-id"]) == 16
    assert "trimtab-report" not in answer.headers


def test_a_body_of_unknown_length_passes_in_chunks(pair: PAIR) -> None:
    """Uploads are not held: their parts go on as they come."""
    front, behind = pair
    connection = front.connect()
    parts = [b"one ", b"two ", b"three"]
    connection.request("POST", "/v1/files", iter(parts), encode_chunked=True)
    assert connection.getresponse().read() == b'{"ok": true}'
    connection.close()
    assert behind.seen[-1].body == b"one two three"
    assert behind.seen[-1].values("transfer-encoding") == ["chunked"]


def test_what_an_upstream_refuses_passes_with_its_headers(pair: PAIR) -> None:
    """A limit is the client's to see, and to wait for."""
    answer = pair[0].ask("/v1/limited", b"x")
    assert (answer.status, answer.body) == (429, b'{"error": "slow down"}')
    assert (answer.headers["Retry-After"], answer.headers["X-Limit"]) == ("7", "3")


def test_a_compressed_answer_stays_compressed(pair: PAIR) -> None:
    """The very bytes of the upstream."""
    answer = pair[0].ask("/v1/gzip", b"x", {"Accept-Encoding": "gzip, br"})
    assert pair[1].seen[-1].values("accept-encoding") == ["gzip, br"]
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.body) == b"text " * 100


def test_the_part_of_a_path_that_client_and_upstream_share_is_there_once() -> None:
    """A base URL ends with the version in most clients, and so it does where an upstream is named."""
    with recorder() as behind:
        bases = {"openai": f"{behind.address}/openai/v1", "anthropic": f"{behind.address}/v1/"}
        named = [{"api": api, "url": url} for api, url in bases.items()]
        with gateway(named) as front:
            front.ask("/v1/models", method="GET")
            front.ask("/models", method="GET")
            front.ask("/v1/models", headers={"anthropic-version": "1"}, method="GET")
    assert [one.target for one in behind.seen] == ["/openai/v1/models", "/openai/v1/models", "/v1/models"]


def test_a_part_of_a_stream_passes_before_the_next_is_there() -> None:
    """Held by events: the upstream sends the second part only once the client has read the first."""
    read = threading.Event()
    waited: list[bool] = []

    class Slow(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            self.begin_stream()
            for event in (b"data: 1\n\n", b'data: {"usage": {"prompt_tokens": 5}}\n\n', b"data: [DONE]\n\n"):
                self.send_part(event)
                waited.append(read.wait(30))
                read.clear()
            self.wfile.write(b"0\r\n\r\n")

    with loopback(Slow) as address, gateway(address) as front:
        connection = front.connect()
        body = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        lines = []
        for _ in range(3):
            lines.append(answer.readline() + answer.readline())
            read.set()
        assert answer.read() == b""
        connection.close()
        assert front.line()["billed"] == 5
    assert lines == [b"data: 1\n\n", b'data: {"usage": {"prompt_tokens": 5}}\n\n', b"data: [DONE]\n\n"]
    assert waited == [True, True, True]


def test_a_client_that_closes_behind_the_last_event_is_still_billed() -> None:
    """Clients stop at `[DONE]`: what a request was billed was said before, and counts."""
    closed = threading.Event()

    class Waiting(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            self.begin_stream()
            self.send_part(b'data: {"usage": {"prompt_tokens": 5}}\n\ndata: [DONE]\n\n')
            closed.wait(300)
            self.close_connection = True

    with loopback(Waiting) as address, gateway(address) as front:
        connection = front.connect()
        body = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        while answer.readline() != b"data: [DONE]\n":
            pass
        answer.close()
        connection.close()
        line = front.line()
        closed.set()
    assert (line["end"], line["billed"]) == ("client_gone", 5)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
def test_a_client_that_goes_away_ends_the_call_of_the_upstream(path: str) -> None:
    """Nobody pays for an answer that nobody reads."""
    asked, gone = threading.Event(), threading.Event()

    class Silent(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            asked.set()
            if not self.connection.recv(1):
                gone.set()
            self.close_connection = True

    with loopback(Silent) as address, gateway(address) as front:
        connection = front.connect()
        connection.request(
            "POST", path, b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}'
        )
        assert asked.wait(30)
        connection.close()
        assert gone.wait(30)
        line = front.line()
    assert (line["end"], line["status"]) == ("client_gone", 499)


def test_an_answer_that_breaks_off_breaks_off_for_the_client() -> None:
    """An end that nobody said would be taken for a whole answer."""

    class Dying(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            self.begin_stream()
            self.send_part(b"data: 1\n\n")
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    with loopback(Dying) as address, gateway(address) as front:
        connection = front.connect()
        connection.request("POST", "/v1/files", b"1")
        answer = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()
        connection.close()
        assert front.line()["end"] == "upstream_failed"


def test_the_length_of_an_answer_that_comes_in_chunks_is_not_believed() -> None:
    """RFC 9112, 6.3: the chunks are the body; a client that believed the length would get three bytes."""
    reply = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    )
    with loopback(_refuser(reply)) as address, gateway(address) as front:
        answer = front.ask("/v1/files", b"1")
    assert answer.line["end"] == "done"
    assert (answer.status, answer.body, answer.headers.get("Content-Length")) == (200, b"hello", None)


def _refuser(reply: bytes | None) -> type[JSONHandler]:
    class Odd(JSONHandler):
        def do_POST(self) -> None:
            self.received()
            if reply is None:
                self.connection.recv(1)  # until the gateway gives up
            else:
                self.connection.sendall(reply)
            self.close_connection = True

    return Odd


@pytest.mark.parametrize(
    ("reply", "status", "end"),
    [
        (b"not HTTP at all\r\n\r\n", 502, "upstream_failed"),
        (b"", 502, "upstream_failed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 502, "upstream_failed"),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\n{}", 502, "upstream_failed"),
        (None, 504, "upstream_silent"),
    ],
    ids=["garbage", "nothing", "wrong length", "no status", "silence"],
)
def test_an_upstream_that_does_not_answer_is_an_error_of_the_api(
    reply: bytes | None, status: int, end: str
) -> None:
    """In the shape that the client of the API reads; 504 once the time is over."""
    limits = {"answer_seconds": 0.3 if reply is None else 300}
    with loopback(_refuser(reply)) as address, gateway(address, limits=limits) as front:
        answer = front.ask("/v1/messages", {"model": "claude-sonnet-4-5", "messages": [], "max_tokens": 9})
    assert (answer.status, answer.data["type"], answer.line["end"]) == (status, "error", end)
    assert answer.data["error"]["type"] == ("timeout_error" if status == 504 else "api_error")


def test_an_upstream_that_is_not_there_is_502() -> None:
    """And its address, which is of an inner network, is not told."""
    with socket.socket() as place:  # nobody else gets its port, and it does not listen
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
        with gateway(f"http://127.0.0.1:{port}") as front:
            answer = front.ask("/v1/embeddings", {"input": "x"})
    assert answer.line["end"] == "upstream_unreachable"
    assert (answer.status, answer.data["error"]["type"]) == (502, "server_error")
    assert str(port) not in answer.body.decode()


def test_an_api_without_an_upstream_is_404() -> None:
    """A closed list: no request adds to it."""
    with recorder() as behind:
        named = [{"api": "openai", "url": behind.address}, {"api": "openai", "url": behind.address}]
        with gateway(named) as front:
            answer = front.ask("/v1/messages", {"model": "claude-sonnet-4-5", "messages": []})
    assert (answer.status, answer.data["error"]["type"], behind.seen) == (404, "not_found_error", [])
    assert answer.line["end"] == "no_upstream"


@pytest.mark.parametrize("named", [None, [Upstream(api="openai", url="https://api.openai.com/v1")]])
def test_a_key_of_azures_is_not_sent_to_openai(named: list[Upstream] | None) -> None:
    """OpenAI's own address has none of these paths; a server of one's own may, and is asked."""
    app = make_app(named)
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {
            "type": "http.request",
            "body": b'{"messages": [{"role": "user", "content": "hi"}]}',
            "more_body": False,
        }

    path = "/openai/deployments/gpt-4o/chat/completions"
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    asyncio.run(app({**scope, "headers": [(b"host", b"localhost"), (b"api-key", b"k")]}, receive, send))
    assert sent[0]["status"] == 404
    with recorder() as behind, gateway([{"api": "openai", "url": behind.address}]) as front:
        assert front.ask(path, {"messages": []}).status == 200


def test_models_of_a_pattern_go_to_their_own_server() -> None:
    """Whichever is named first; the rest goes to the one without a pattern."""
    with recorder() as main, recorder() as other:
        named = [
            {"api": "openai", "url": main.address},
            {"api": "openai", "url": other.address, "models": "qwen*"},
        ]
        with gateway(named, budgets={"*": "8k"}) as front:
            for model in ("qwen3", "gpt-4o"):
                body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
                assert front.ask("/v1/chat/completions", body).status == 200
    assert [[one.data["model"] for one in place.seen] for place in (main, other)] == [["gpt-4o"], ["qwen3"]]


def test_no_key_and_no_text_is_in_the_log(tmp_path: Path) -> None:
    """In headers, in the query as Gemini takes it, and in a body; whether an answer comes or an error."""
    key, text = "sk-very-secret-key", "my very own words"
    lines = []
    with recorder() as behind, gateway(behind.address, budgets={"*": "40"}) as front:
        for words in (1, 100):
            messages = [{"role": "user", "content": f"{text} " * words}]
            headers = {"Authorization": f"Bearer {key}", "x-api-key": key}
            lines.append(
                front.ask("/v1/chat/completions", {"model": "gpt-4o", "messages": messages}, headers).line
            )
            contents = [{"role": "user", "parts": [{"text": f"{text} " * words}]}]
            path = f"/v1beta/models/gemini-2.5-flash:generateContent?key={key}"
            lines.append(front.ask(path, {"contents": contents}, headers).line)
        said = json.dumps(lines) + front.end()
    assert sorted(line["status"] for line in lines) == [200, 200, 400, 400]
    assert key not in said
    assert text not in said
    assert [one.target.endswith(f"?key={key}") for one in behind.seen] == [False, True]


@pytest.mark.parametrize(
    ("written", "sent"),
    [("http://us%40er:pa%3Ass@{}", [basic("us@er:pa:ss")]), ("{}", []), ("http://u@{}/", [basic("u:")])],
)
def test_a_proxy_of_the_environment_is_asked_as_other_programs_ask_it(
    written: str, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its user and password, and by an address without a scheme, as curl takes it."""
    with recorder() as proxy:
        monkeypatch.setenv("http_proxy", written.format(proxy.address.removeprefix("http://")))
        monkeypatch.setenv("no_proxy", "")
        with gateway("http://upstream.example:8000") as front:
            assert front.ask("/v1/files", {}).status == 200
    (seen,) = proxy.seen
    assert seen.target == "http://upstream.example:8000/v1/files"
    assert seen.values("proxy-authorization") == sent


@pytest.mark.parametrize(
    "written", ["socks5://user:secret@127.0.0.1:1", "socks5h://x:1", "http://", "x:port"]
)
def test_a_proxy_that_cannot_be_asked_is_an_error_at_the_start(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each request; a password is not shown."""
    monkeypatch.setenv("https_proxy", written)
    monkeypatch.setenv("no_proxy", "inner.example")
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as told:
        make_app([Upstream(api="openai", url="https://upstream.example/v1")])
    assert "secret" not in str(told.value)
    make_app([Upstream(api="openai", url="https://inner.example/v1")])


def test_a_host_and_a_path_in_any_letters_are_asked_as_browsers_ask_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By RFC 3490 and RFC 3986; the value for this host is Python's own documentation's."""
    with recorder() as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        monkeypatch.setenv("no_proxy", "")
        with gateway("http://pyth\u00f6n.org/\u00e9 x/v1") as front:
            assert front.ask("/v1/files", {}).status == 200
    (seen,) = proxy.seen
    assert seen.target == "http://xn--pythn-mua.org:80/%C3%A9%20x/v1/files"
    assert seen.values("host") == ["xn--pythn-mua.org"]
    with pytest.raises(ConfigurationError, match="no name of a host"):
        Upstream(api="openai", url="http://" + "\u00f6" * 300)
