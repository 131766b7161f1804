"""A model on this machine: it answers in pieces, stops where a question says so, and judges requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.judge.server import Provider, answered
from tests.judge.streams import streamed
from tests.loopback import JSONHandler, loopback

HOLD = "[hold]"
"""A question with this is answered by half, until `Model.go` is set or the client goes away."""

BREAK = "[break]"
"""A question with this is answered by half, and then the connection is closed."""


SLOW_SECONDS = 0.02
SLOW = "[slow]"
"""A question with this is answered in pieces that come one after the other, so that a client can stop it."""

END = "That is all."
"""The last words of every answer."""


class Model(Provider):
    """Numbers its answers; the last question is in each."""

    def __init__(self) -> None:
        super().__init__(self._say)
        self.said = 0
        self.refusals: list[Any] = []
        """What was answered to requests that are not valid."""
        self.holds, self.go, self.client_left = threading.Event(), threading.Event(), threading.Event()
        self.is_away, self.breaks, self.garbles = (threading.Event() for _ in range(3))
        """Whether each request is refused, each stream closed in its middle, or no JSON from there on."""
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Hold again where a question says so."""
        for event in (self.holds, self.go, self.client_left):
            event.clear()

    def _say(self, form: str, body: dict[str, Any]) -> Any:
        with self._lock:
            self.said += 1
            number = self.said
        whole = answered(form, body["model"])
        asked = str(body["messages"][-1]["content"])[:60]
        whole["choices"][0]["message"]["content"] = (
            f"Answer {number} to {asked!r}: " + "it depends. " * 12 + END
        )
        return whole

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Judge a request, and remember what was refused."""
        status, answer = super().reply(path, body)
        if status != 200:
            self.refusals.append(answer)
        return status, answer

    @property
    def views(self) -> list[list[str]]:
        """The texts of each request for an answer, in order."""
        chats = [body["messages"] for _, body in self.bodies if body["model"] == "gpt-4o"]
        return [[message["content"] for message in messages] for messages in chats]


class _Handler(JSONHandler):
    model: Model
    disable_nagle_algorithm = True  # pieces that wait for an acknowledgement take 40 ms

    def do_POST(self) -> None:
        body = self.received()
        status, answer = self.model.reply(self.path, body)
        if self.model.is_away.is_set():
            status, answer = 403, {"error": {"message": "away"}}  # which the client does not try again
        if status != 200 or not body.get("stream"):
            self.answer(status, answer)
            return
        try:
            self._say(str(streamed("openai_chat", answer)), str(body["messages"][-1]["content"]))
        except OSError:
            self.close_connection = True
            self.model.client_left.set()

    def _say(self, answer: str, asked: str) -> None:
        """Send the pieces of an answer, and do in its middle what the question says."""
        events = answer.split("\n\n")[:-1]
        self.begin_stream()
        for at, event in enumerate(events):
            if at == len(events) // 2 and (BREAK in asked or self.model.breaks.is_set()):
                self.close_connection = True
                return
            if at == len(events) // 2 and HOLD in asked:
                self.model.holds.set()
                while not self.model.go.wait(0.01):
                    self.send_part(b": nothing new\n\n")  # fails once nobody hears it
            if at == len(events) // 2 and self.model.garbles.is_set():
                event = "data: <html>"
            if SLOW in asked:
                time.sleep(SLOW_SECONDS)
            self.send_part(f"{event}\n\n".encode())
        self.wfile.write(b"0\r\n\r\n")

    def handle(self) -> None:
        """Answer until the client goes away, which may leave words that nobody hears."""
        with suppress(OSError):
            super().handle()

    def finish(self) -> None:
        """Close the connection, as far as the client has not done it."""
        with suppress(OSError):
            super().finish()


@contextmanager
def model() -> Iterator[Model]:
    """Serve a model for as long as the block lasts."""
    state = Model()
    with loopback(type("_", (_Handler,), {"model": state})) as state.address:
        try:
            yield state
        finally:
            state.go.set()
