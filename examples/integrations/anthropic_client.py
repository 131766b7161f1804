"""Anthropic's client with a budget: a scripted server answers, and the program's list only grows.

`pip install 'trimtab[exact,anthropic]'`, then `python examples/integrations/anthropic_client.py`; it needs no
network beyond this machine.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from anthropic import Anthropic, DefaultHttpxClient
from anthropic.types import MessageParam

from trimtab import Fitted
from trimtab.integrations.anthropic import with_budget

PAGE = "the harbour was quiet that night. " * 40
ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [{"type": "text", "text": "It was quiet."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 4},
}


class Server(BaseHTTPRequestHandler):
    """Answers every request alike."""

    def do_POST(self) -> None:
        """Read the request, and answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def show(fitted: Fitted[Any]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} messages, {report.tokens_after:,} tokens")


def main() -> None:
    """Ask about forty pages; print the requests, and what the program keeps."""
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    http = DefaultHttpxClient(trust_env=False)
    client = with_budget(Anthropic(api_key="none", base_url=address, http_client=http), 4_000, on_fitted=show)
    said: list[MessageParam] = []
    for page in range(1, 41):
        said.append({"role": "user", "content": f"Page {page}: {PAGE} Was it quiet?"})
        answer = client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=said)
        said.append({"role": "assistant", "content": answer.content})
    print(f"{len(said)} messages in the program's list, none of them changed")
    server.shutdown()


if __name__ == "__main__":
    main()
