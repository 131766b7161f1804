"""A model on this machine for coding agents, which have tools of their own and ask for more than answers."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.integrations.loops import Loop, Says
from tests.integrations.upstream import Upstream
from tests.judge.server import answered, counted, form_of, is_streamed
from tests.judge.streams import streamed
from tests.loopback import JSONHandler, loopback


class _Model(Upstream):
    """Plays the model of a loop for an agent, whose own words and tools fill the budget, too."""

    def answer(self, form: str, body: dict[str, Any]) -> Any:
        """Take a request, and answer as the script says; where Claude is to think, with a thought."""
        if not self.score.requests:
            self._whole_tokens = self._charge(form, body)
        answer = super().answer(form, body)
        if body.get("thinking", {}).get("type") in ("enabled", "adaptive"):
            number = self.score.requests
            signature = b64encode(b"%08d" % number * 20).decode()
            thought = f"For answer {number} I think of what I saw. " * 3
            answer["content"].insert(0, {"type": "thinking", "thinking": thought, "signature": signature})
        return answer


@contextmanager
def agents_model(
    loop: Loop,
    named: Callable[[dict[str, Any]], None],
    *,
    budget_tokens: int,
    charges: tuple[str, float] = ("gpt-4o", 1.0),
) -> Iterator[Upstream]:
    """Serve the model of a loop for as long as the block lasts.

    Args:
        loop: What it says to requests that have the tool `look`; others get the smallest answer.
        named: Names the tool in the parts of an answer as the agent does.
        budget_tokens: What a request may have.
        charges: Whose tokens are charged, and which part of that count.
    """
    state = _Model(loop, budget_tokens, True, charges)

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            body, form = self.received(), form_of(self.path)
            if "count_tokens" in self.path or "input_tokens" in self.path:
                self.answer(200, counted(form))
                return
            answer = answered(form, body["model"])
            if "look" in json.dumps(body.get("tools", ())):
                answer = state.answer(form, body)
                for part in answer.get("content") or answer.get("output") or ():
                    if part.get("name") == "look":
                        named(part)
            if is_streamed(self.path, body):
                self.stream(streamed(form, answer))
            else:
                self.answer(200, answer)

        def do_GET(self) -> None:
            self.answer(200, {"data": [], "models": []})

        def do_HEAD(self) -> None:
            self.answer(200, {})

    with loopback(Answering) as state.address:
        yield state


def last_words(loop: Loop) -> list[str]:
    """List what the model answers to each question in the end."""
    ends = [question.steps[-1] for question in loop.questions]
    return [end.text for end in ends if isinstance(end, Says)]
