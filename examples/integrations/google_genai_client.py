"""Google's client with a budget: a scripted server answers, and the program's list only grows.

`pip install 'trimtab[exact,google-genai]'`, then `python examples/integrations/google_genai_client.py`; it
needs no network beyond this machine.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from google.genai import Client, types

from trimtab import Fitted
from trimtab.integrations.google_genai import with_budget

PAGE = "the harbour was quiet that night. " * 40
ANSWER: dict[str, Any] = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "It was quiet."}]}, "finishReason": "STOP"}
    ],
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
    print(f"{kept:3} of {all_of_them:3} contents, {report.tokens_after:,} tokens")


def main() -> None:
    """Ask about forty pages; print the requests, and what the program keeps."""
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    options = types.HttpOptions(base_url=address, client_args={"trust_env": False})
    bare = Client(api_key="none", vertexai=False, http_options=options)
    client = with_budget(bare, 4_000, on_fitted=show)
    chat = client.chats.create(model="gemini-2.5-flash")
    for page in range(1, 41):
        chat.send_message(f"Page {page}: {PAGE} Was it quiet?")
    said = chat.get_history()
    print(f"{len(said)} contents in the program's list, none of them changed")
    server.shutdown()


if __name__ == "__main__":
    main()
