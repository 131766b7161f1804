"""A server that counts tokens as three providers' endpoints do, on this machine; real clients talk to it."""

from __future__ import annotations

import json
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_SECONDS = 30.0
"""How long a hanging answer waits for the client to go away; far longer than any test waits."""


def tokens_of(value: Any) -> int:
    """Count the words in all texts of a body: a rule of this server's own."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, dict):
        return sum(tokens_of(one) for key, one in value.items() if key not in ("model", "role", "type"))
    return sum(map(tokens_of, value)) if isinstance(value, list) else 0


class CountServer:
    """What was asked, and how to answer."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        """Bodies with their path, in the order they came."""
        self.status = 200
        self.hangs = False
        self.asked = threading.Event()
        """Set once a body came."""
        self.left = threading.Event()
        """Set once a client closed the connection on a hanging answer."""
        self.url = ""
        self._lock = threading.Lock()
        self._inside = 0
        self.most_at_once = 0

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Count a body as the endpoint of its path does.

        Raises:
            ValueError: No provider takes a request without messages.
        """
        with self._lock:
            self.bodies.append({"path": path, **body})
            self._inside += 1
            self.most_at_once = max(self.most_at_once, self._inside)
        self.asked.set()
        try:
            key = {"count_tokens": "messages", "input_tokens": "input"}.get(
                path.rpartition("/")[2], "contents"
            )
            if not body[key]:
                raise ValueError(f"{key}: at least one is required")
            tokens = tokens_of(body)
            return {"totalTokens": tokens} if key == "contents" else {"input_tokens": tokens}
        finally:
            with self._lock:
                self._inside -= 1


@contextmanager
def count_server() -> Iterator[CountServer]:
    """Run a server for as long as the block lasts."""
    state = CountServer()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer: dict[str, Any] = {"error": {"message": "no", "type": "api_error", "code": 400}}
            status = state.status
            try:
                answer = state.answer(self.path.partition("?")[0], body) if status == 200 else answer
            except ValueError:
                status = 400
            if state.hangs:
                readable, _, _ = select.select([self.connection], [], [], PATIENCE_SECONDS)
                if readable and not self.connection.recv(1):
                    state.left.set()
                self.close_connection = True
                return
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
