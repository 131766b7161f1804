"""The program of docs/guides/web-app.md, served by uvicorn over a real store, and a browser that asks it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests import servers
from tests.judge.server import variables

HERE = Path(__file__).resolve().parent
FREE: dict[str, Any] = {"trust_env": False, "timeout": 60}
REDIS_DATABASE = 11
"""Of the server that all tests share; it is emptied before and after."""


@contextmanager
def store_url(kind: str) -> Iterator[str]:
    """Make a place for sessions, and give its URL; SQLite needs a folder only, the others run."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/chats.db"
    elif kind == "postgres":
        server = servers.postgres()
        with server.database() as name:
            yield server.of(name)
    else:
        redis = servers.redis_server()
        with redis.client(REDIS_DATABASE) as client:
            client.flushdb()
            yield redis.of(REDIS_DATABASE)
            client.flushdb()


@contextmanager
def process(
    url: str, model: str, *, workers: int = 1, **more: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve a program as its page says; gives its address, and the process."""
    port = servers.free_port()
    program = more.pop("program", "program")
    command = [sys.executable, "-m", "uvicorn", f"{program}:app", "--port", str(port)]
    command += ["--workers", str(workers), "--log-level", "warning"]
    surroundings = {**os.environ, **variables(model), "STORE_URL": url, **more}
    service = subprocess.Popen(command, cwd=HERE, env=surroundings)
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert service.poll() is None, "the service has ended"
        try:
            return httpx.get(f"{address}/openapi.json", **FREE).status_code == 200
        except httpx.TransportError:
            return False

    try:
        servers.until(answers, "the service")
        yield address, service
    finally:
        if service.poll() is None:
            service.send_signal(signal.SIGINT)
            assert service.wait(60) in (0, -signal.SIGINT)


@contextmanager
def served(url: str, model: str, *, workers: int = 1, **more: str) -> Iterator[str]:
    """Serve a program as its page says; gives its address."""
    with process(url, model, workers=workers, **more) as (address, _):
        yield address


def lines_of(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Read server-sent events."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


@dataclass(frozen=True, slots=True)
class Said:
    """What a browser got for a question."""

    status: int
    pieces: list[str]
    last: dict[str, Any]
    """The last event; of an answer that is no stream its body."""

    @property
    def message(self) -> dict[str, Any]:
        """The answer as it was stored."""
        found: dict[str, Any] = self.last["message"]
        return found

    @property
    def text(self) -> str:
        """What it says."""
        return str(self.message["content"])


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser of one user, in one conversation."""

    address: str
    user: str = "ada"
    chat: str = "bicycle"

    @property
    def _given(self) -> dict[str, Any]:
        return {"headers": {"X-User": self.user}, **FREE}

    def call(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Call any route."""
        return httpx.request(method, f"{self.address}{path}", json=body or None, **self._given)

    @contextmanager
    def open(self, text: str, *, id: str, attempt: int = 1) -> Iterator[httpx.Response]:
        """Ask, and hold the stream; leaving the block closes the connection."""
        body = {"id": id, "text": text, "attempt": attempt}
        with httpx.stream("POST", f"{self.address}/chats/{self.chat}", json=body, **self._given) as response:
            yield response

    def ask(self, text: str, *, id: str, attempt: int = 1) -> Said:
        """Ask, and read the answer to its end."""
        with self.open(text, id=id, attempt=attempt) as response:
            return said_by(response)

    def branch(self, text: str, *, id: str, version: int, to: str) -> Said:
        """Replace a message in a new conversation."""
        body = {"id": id, "text": text, "version": version, "chat": to}
        path = f"{self.address}/chats/{self.chat}/branch"
        with httpx.stream("POST", path, json=body, **self._given) as response:
            return said_by(response)

    def read(self) -> list[dict[str, Any]]:
        """Read the conversation."""
        found = self.call("GET", f"/chats/{self.chat}")
        assert found.status_code == 200, found.text
        messages: list[dict[str, Any]] = found.json()
        return messages

    def texts(self) -> list[str]:
        """List what was said."""
        return [message["content"] for message in self.read()]


def said_by(response: httpx.Response) -> Said:
    """Read an answer to its end, whether it is a stream or a refusal."""
    if not response.headers["Content-Type"].startswith("text/event-stream"):
        return Said(response.status_code, [], json.loads(response.read()))
    *pieces, last = lines_of(response)
    return Said(response.status_code, [piece["text"] for piece in pieces], last)
