"""A server on this machine for as long as a block lasts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JSONHandler(BaseHTTPRequestHandler):
    """Reads and answers JSON, and says nothing of it."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two wait for each other, 40 ms a request

    def received(self) -> Any:
        """Return the body that was sent."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        """Send a body."""
        self._send(status, json.dumps(body), {"Content-Type": "application/json", **(headers or {})})

    def stream(self, events: str | bytes) -> None:
        """Send events that a client reads one by one: server-sent, or AWS's frames of bytes."""
        kind = "text/event-stream" if isinstance(events, str) else "application/vnd.amazon.eventstream"
        self._send(200, events, {"Content-Type": kind})

    def begin_stream(self) -> None:
        """Begin an answer of events that are sent one by one, without a length."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_part(self, events: bytes) -> None:
        """Send events at once, as a chunk."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(events), events))
        self.wfile.flush()

    def _send(self, status: int, text: str | bytes, headers: Mapping[str, str]) -> None:
        sent = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(sent))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # clients come by the dozen; above the usual five they wait a second
    daemon_threads = True


@contextmanager
def loopback(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a free port of the loopback; gives the address, without a slash at its end."""
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
