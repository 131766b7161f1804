"""Gateways as processes, for as long as a block lasts, and upstreams that write down what they were sent."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.loopback import JSONHandler, loopback

PROGRAM = """
import json, sys
from trimtab.gateway import Limits, Upstream, make_app, serve
given = json.loads(sys.argv[1])
app = make_app(
    [Upstream(**one) for one in given["upstreams"]],
    limits=Limits(**given["limits"]),
    log=lambda line: print(json.dumps(line), flush=True),
    **given["options"],
)
serve(app, ready=lambda address: print(address, app.inspect_path, flush=True))
"""
APIS = ("openai", "anthropic", "gemini")
PATIENCE = {"connect_seconds": 300, "header_seconds": 300, "stall_seconds": 300, "share_seconds": 60}
"""Limits of time that a busy machine reaches by itself; a test gives those that it is about."""


@dataclass(slots=True)
class Running:
    """A gateway that runs."""

    address: str
    process: subprocess.Popen[str]
    inspect_path: str = ""
    """Where texts are seen; "": none are kept."""
    has_log: bool = True
    """Whether each request is a line on its standard output, which is read."""
    _lines: list[str] = field(default_factory=list)
    """Of its log, those that nobody took."""
    _came: threading.Condition = field(default_factory=threading.Condition)
    _is_over: bool = False

    def read(self) -> None:
        """Take what the process writes, to its end: a pipe that is full would stop who writes."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._came:
                self._lines.append(line)
                self._came.notify_all()
        with self._came:
            self._is_over = True
            self._came.notify_all()

    def line(self, request: str = "") -> dict[str, Any]:
        """Wait for a line of its log, and take it.

        Args:
            request: The identifier of a request; "": the next line, which is of none that `ask` sent.
        """
        with self._came:
            while not (found := [one for one in self._lines if request in one]):
                assert not self._is_over, f"the log ended without a line of {request or 'a request more'}"
                assert self._came.wait(300), f"no line of {request or 'a request more'} comes"
            self._lines.remove(found[0])
        line: dict[str, Any] = json.loads(found[0])
        return line

    def end(self) -> str:
        """End the process; gives what it wrote and nobody took, on both outputs."""
        self.process.terminate()
        assert self.process.wait(300) == 0
        assert self.process.stderr is not None
        with self._came:
            assert self._came.wait_for(lambda: self._is_over, 300)
        return "".join(self._lines) + self.process.stderr.read()

    def connect(self, timeout: float = 300) -> http.client.HTTPConnection:
        """Open a connection that sends what it is told and nothing else."""
        return _connection(self.address, timeout)

    def ask(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, *, method: str = "POST"
    ) -> Answer:
        """Send a request, read the whole answer, and wait until the gateway is done with both.

        What it learns, counts and writes of a request comes behind the answer: a test that asks again, or
        looks at a page, would meet it in any order.
        """
        answer = fetch(self.address, path, body, headers, method=method)
        if self.has_log and (request := answer.headers.get("trimtab-request-id")):
            answer.line = self.line(request)
        return answer


@dataclass(slots=True)
class Answer:
    """An answer, read whole."""

    status: int
    headers: dict[str, str]
    body: bytes
    line: dict[str, Any] = field(default_factory=dict)
    """Of the log; {}: this is a page of the gateway's own, or there is no log."""

    @property
    def data(self) -> Any:
        """Read it as JSON."""
        return json.loads(self.body)

    @property
    def report(self) -> dict[str, int | str]:
        """Read the report of the gateway: a dictionary as RFC 9651 writes it."""
        pairs = (one.split("=") for one in self.headers["trimtab-report"].split(", "))
        return {key: int(value) if value.isdigit() else value for key, value in pairs}


def fetch(
    address: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
) -> Answer:
    """Send a request to a server, and read the whole answer."""
    with closing(_connection(address, 300)) as connection:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        found = connection.getresponse()
        return Answer(found.status, dict(found.getheaders()), found.read())


def _connection(address: str, timeout: float) -> http.client.HTTPConnection:
    place = urlsplit(address)
    assert place.hostname is not None
    return http.client.HTTPConnection(place.hostname, place.port, timeout=timeout)


@contextmanager
def gateway(
    upstreams: str | Sequence[Mapping[str, str]],
    *,
    limits: Mapping[str, float] | None = None,
    **options: Any,
) -> Iterator[Running]:
    """Run a gateway.

    Args:
        upstreams: The address of one server for all APIs, or arguments of `Upstream`.
        limits: Arguments of `Limits`, which go before those of patience.
        options: Arguments of `make_app`.
    """
    if isinstance(upstreams, str):
        upstreams = [{"api": api, "url": upstreams} for api in APIS]
    given = {"upstreams": upstreams, "limits": PATIENCE | dict(limits or {}), "options": options}
    with run([sys.executable, "-c", PROGRAM, json.dumps(given)], lambda process: process.stdout) as running:
        yield running


@contextmanager
def run(
    words: Sequence[str],
    told: Callable[[subprocess.Popen[str]], Any],
    *,
    reads: bool = True,
    has_log: bool = True,
    **given: Any,
) -> Iterator[Running]:
    """Run a process that says its address in a line of one of its outputs.

    Args:
        words: The command.
        told: Which output that is.
        reads: Whether its standard output is read.
        has_log: Whether a line of each request is there.
        given: Arguments of `subprocess.Popen`.
    """
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given)
    assert process.stdout is not None
    assert process.stderr is not None
    reader: threading.Thread | None = None
    try:
        line = told(process).readline()
        where = line.find("http://")
        assert where >= 0, line + process.stderr.read()
        address, *more = line[where:].split()
        path = next((one for one in more if one[0] == "/"), "")
        running = Running(address, process, path, has_log)
        if reads:
            reader = threading.Thread(target=running.read)
            reader.start()
        yield running
    finally:
        process.terminate()
        process.wait(300)
        if reader is not None:
            reader.join()
        process.stdout.close()
        process.stderr.close()


@dataclass(slots=True)
class Seen:
    """A request as an upstream got it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        """List the values of a header."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def data(self) -> Any:
        """Read the body as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class Recorder:
    """An upstream that writes down what it is sent."""

    address: str = ""
    seen: list[Seen] = field(default_factory=list)


Reply = tuple[int, Mapping[str, str], bytes]


@contextmanager
def recorder(answer: Callable[[Seen], Reply] | None = None) -> Iterator[Recorder]:
    """Serve every path and method; the answer is `{}` unless another is written."""
    state = Recorder()

    class Writing(JSONHandler):
        def _serve(self) -> None:
            if self.headers["Transfer-Encoding"]:
                body = b"".join(iter(self._chunk, b""))
            else:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            one = Seen(self.command, self.path, list(self.headers.items()), body)
            state.seen.append(one)
            status, headers, said = (200, {}, b"{}") if answer is None else answer(one)
            self._send(status, said, {"Content-Type": "application/json", **headers})

        def _chunk(self) -> bytes:
            size = int(self.rfile.readline(), 16)
            data = self.rfile.read(size)
            self.rfile.readline()
            return data

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve

    with loopback(Writing) as state.address:
        yield state


async def end_app(app: Any) -> None:
    """End a gateway as a server does: its connections are closed."""
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.shutdown"}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await app({"type": "lifespan"}, receive, send)


async def ask_app(app: Any, body: bytes) -> list[dict[str, Any]]:
    """Ask a gateway as a server does; gives what it sends."""
    headers = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer sk-1"), (b"accept-encoding", b"gzip")]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    path = b"/v1/chat/completions"
    scope = {"type": "http", "method": "POST", "raw_path": path, "query_string": b"", "headers": headers}
    waiting, sent = [{"type": "http.request", "body": body}], list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def talk(turns: int, *, words: int = 20) -> list[dict[str, Any]]:
    """Write a conversation of so many turns and a question."""
    said = [
        {"role": role, "content": f"{role} {turn}: " + "It is sunny in Utrecht. " * words}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    return [*said, {"role": "user", "content": "And now?"}]
