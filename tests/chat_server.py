"""A server that speaks the chat completions protocol on this machine, and keeps what it was sent."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.loopback import JSONHandler, loopback

PATIENCE_SECONDS = 30.0
"""How long a hanging answer waits for the client to go away; far longer than any test waits."""


class Reply(NamedTuple):
    """One answer of the server."""

    status: int = 200
    body: Any = None
    """Sent as JSON."""
    hangs: bool = False
    """Answers nothing, and waits for the client to close the connection."""


def said(text: str | None, *, finish_reason: str = "stop", **message: Any) -> Reply:
    """Make a completion with this text."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish_reason,
    }
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return Reply(body=body)


def failed(status: int) -> Reply:
    """Make an error as the provider words it."""
    return Reply(status, {"error": {"message": "no", "type": "some", "param": None, "code": None}})


HANGS = Reply(hangs=True)


class ChatServer:
    """Gives its replies in turn, the last again and again."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = list(replies)
        self._lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []
        """The bodies of the requests, in the order they came."""
        self.keys: list[str | None] = []
        """Their Authorization headers."""
        self.asked = threading.Event()
        """Set once a request has come in whole."""
        self.left = threading.Event()
        """Set once a client closed the connection on a hanging answer."""
        self.base_url = ""

    def take(self, body: dict[str, Any], key: str | None) -> Reply:
        """Keep a request, and return what to answer."""
        with self._lock:
            self.bodies.append(body)
            self.keys.append(key)
            reply = self._replies[min(len(self.bodies), len(self._replies)) - 1]
        self.asked.set()
        return reply


@contextmanager
def chat_server(*replies: Reply) -> Iterator[ChatServer]:
    """Run a server for as long as the block lasts."""
    state = ChatServer(replies)

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            data = self.received()
            reply = state.take({"path": self.path, **data}, self.headers["Authorization"])
            if reply.hangs:
                readable, _, _ = select.select([self.connection], [], [], PATIENCE_SECONDS)
                if readable and not self.connection.recv(1):
                    state.left.set()
                self.close_connection = True
                return
            self.answer(reply.status, reply.body, {"retry-after-ms": "1"})

    with loopback(Answering) as address:
        state.base_url = f"{address}/v1"
        yield state
