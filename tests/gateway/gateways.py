"""Gateways as processes, for as long as a block lasts, and upstreams that write down what they were sent."""

from __future__ import annotations

import http.client
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


@dataclass(slots=True)
class Running:
    """A gateway that runs."""

    address: str
    process: subprocess.Popen[str]
    _lines: queue.Queue[str] = field(default_factory=queue.Queue)
    """Of its log; "": its end."""
    inspect_path: str = ""
    """Where texts are seen; "": none are kept."""

    def read(self) -> None:
        """Take what the process writes, to its end: a pipe that is full would stop who writes."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def line(self) -> dict[str, Any]:
        """Wait for the next line of its log."""
        found: dict[str, Any] = json.loads(self._lines.get())
        return found

    def end(self) -> str:
        """End the process; gives what it wrote and nobody read, on both outputs."""
        self.process.terminate()
        assert self.process.wait() == 0
        assert self.process.stderr is not None
        return "".join(iter(self._lines.get, "")) + self.process.stderr.read()

    def connect(self, timeout: float = 300) -> http.client.HTTPConnection:
        """Open a connection that sends what it is told and nothing else."""
        place = urlsplit(self.address)
        assert place.hostname is not None
        return http.client.HTTPConnection(place.hostname, place.port, timeout=timeout)

    def ask(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, *, method: str = "POST"
    ) -> Answer:
        """Send a request, and read the whole answer."""
        connection = self.connect()
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        found = connection.getresponse()
        answer = Answer(found.status, dict(found.getheaders()), found.read())
        connection.close()
        return answer


@dataclass(slots=True)
class Answer:
    """An answer, read whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """Read it as JSON."""
        return json.loads(self.body)

    @property
    def report(self) -> dict[str, int | str]:
        """Read the report of the gateway: a dictionary as RFC 9651 writes it."""
        pairs = (one.split("=") for one in self.headers["trimtab-report"].split(", "))
        return {key: int(value) if value.isdigit() else value for key, value in pairs}


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
        limits: Arguments of `Limits`.
        options: Arguments of `make_app`.
    """
    if isinstance(upstreams, str):
        upstreams = [{"api": api, "url": upstreams} for api in APIS]
    given = {"upstreams": upstreams, "limits": limits or {}, "options": options}
    with run([sys.executable, "-c", PROGRAM, json.dumps(given)], lambda process: process.stdout) as running:
        yield running


@contextmanager
def run(
    words: Sequence[str],
    told: Callable[[subprocess.Popen[str]], Any],
    *,
    reads: bool = True,
    **given: Any,
) -> Iterator[Running]:
    """Run a process that says its address in a line of one of its outputs.

    Args:
        words: The command.
        told: Which output that is.
        reads: Whether its standard output is read.
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
        running = Running(address, process, inspect_path=next((one for one in more if one[0] == "/"), ""))
        if reads:
            reader = threading.Thread(target=running.read)
            reader.start()
        yield running
    finally:
        process.terminate()
        process.wait()
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


def talk(turns: int, *, words: int = 20) -> list[dict[str, Any]]:
    """Write a conversation of so many turns and a question."""
    said = [
        {"role": role, "content": f"{role} {turn}: " + "It is sunny in Utrecht. " * words}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    return [*said, {"role": "user", "content": "And now?"}]
