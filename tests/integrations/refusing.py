"""A provider on this machine that refuses what is too long, in the words of one that is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.judge.server import answered, form_of, is_streamed
from tests.judge.streams import streamed
from tests.loopback import JSONHandler, loopback
from trimtab import Fitted

LIMIT_TOKENS = 2_000
"""What a request may have, by the server's own count."""

WORDS: dict[str, str] = {
    "openai": "This model's maximum context length is {limit} tokens. However, your messages resulted in"
    " {sent} tokens. Please reduce the length of the messages.",
    "openai, gpt-5": "Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in"
    " {sent} tokens. Please reduce the length of the messages.",
    "openai, responses": "Your input exceeds the context window of this model. Please adjust your input and"
    " try again.",
    "anthropic": "prompt is too long: {sent} tokens > {limit} maximum",
    "anthropic, with an answer": "input length and `max_tokens` exceed context limit: {sent} + 100 > {both},"
    " decrease input length or `max_tokens` and try again",
    "gemini": "The input token count ({sent}) exceeds the maximum number of tokens allowed ({limit}).",
    "bedrock": "Input is too long for requested model.",
    "mistral": "Prompt contains {sent} tokens, too large for model with {limit} maximum context length",
    "vllm": "This model's maximum context length is {both} tokens. However, you requested {whole} tokens"
    " ({sent} in the messages, 100 in the completion). Please reduce the length of the messages.",
    "vllm 0.15": "This model's maximum context length is {both} tokens. However, your request has {sent}"
    " input tokens plus 100 'max_tokens'. Please reduce one or the other.",
    "llama.cpp": "request ({sent} tokens) exceeds the available context size ({limit} tokens), try"
    " increasing it",
    "ollama": "prompt too long; exceeded max context length by {excess} tokens",
}
"""By who says it; read 2026-11-27 in threads that formats/api_errors.py names."""

THINKING = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different"
    " conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to"
    ' "drop_block".'
)
"""What Claude 5.1 and later say of thinking that stands behind a change."""


def tokens_of(body: Mapping[str, Any]) -> int:
    """Count a request as this provider does: a token for each 3.9 characters of all there is."""
    return len(json.dumps(body, ensure_ascii=False)) * 10 // 39


@dataclass(slots=True)
class Refusing:
    """What refuses, and what it was sent."""

    words: str
    limit_tokens: int = LIMIT_TOKENS
    refuses: Callable[[dict[str, Any]], bool] | None = None
    """Which it refuses; None: those that are too long."""
    in_stream: bool = False
    """Whether a request for a stream is answered with one that begins with the error."""
    address: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0

    @property
    def sizes(self) -> list[int]:
        """List how long each request was."""
        return [*map(tokens_of, self.bodies)]

    def error(self, form: str, body: Mapping[str, Any]) -> Any:
        """Write a refusal in the shape of a form."""
        sent = tokens_of(body)
        text = self.words.format(
            sent=sent,
            limit=self.limit_tokens,
            both=self.limit_tokens + 100,
            whole=sent + 100,
            excess=sent - self.limit_tokens,
        )
        if form == "gemini":
            return {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}
        if form == "bedrock":
            return {"__type": "ValidationException", "message": text}
        said = {"type": "invalid_request_error", "message": text}
        if form == "anthropic":
            return {"type": "error", "error": said, "request_id": "req_1"}
        return {"error": {**said, "param": None, "code": None}}

    def answer(self, form: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Write the smallest answer, with what it was billed."""
        made, tokens = answered(form, str(body.get("model"))), tokens_of(body)
        if form == "gemini":
            return {**made, "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": 1}}
        if form == "bedrock":
            return {**made, "usage": {"inputTokens": tokens, "outputTokens": 1, "totalTokens": tokens + 1}}
        if form == "openai_chat":
            return {**made, "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": 0}}
        return {**made, "usage": {"input_tokens": tokens, "output_tokens": 1, "total_tokens": 0}}


@contextmanager
def refusing(words: str, **options: Any) -> Iterator[Refusing]:
    """Serve all APIs for as long as the block lasts.

    Args:
        words: What is said of a request that is refused.
        options: Further fields of `Refusing`.
    """
    state = Refusing(words, **options)

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            body, form = self.received(), form_of(self.path)
            state.bodies.append(body)
            is_stream = is_streamed(self.path, body)
            if tokens_of(body) > state.limit_tokens if state.refuses is None else state.refuses(body):
                state.refused += 1
                if is_stream and state.in_stream:
                    self.stream(f"event: error\ndata: {json.dumps(state.error(form, body))}\n\n")
                else:
                    self.answer(400, state.error(form, body))
            elif is_stream:
                self.stream(streamed(form, state.answer(form, body)))
            else:
                self.answer(200, state.answer(form, body))

    with loopback(Answering) as state.address:
        yield state


def hold_left_out(served: Refusing, later: Fitted[Any]) -> None:
    """Hold two calls to what was said of them, of which the first was refused for its old thinking.

    It was sent once more, and the later call left that thinking out at once and said so; the newer one and
    all words were sent.
    """
    assert (len(served.bodies), served.refused) == (3, 1)
    assert "EqQBnew" in str(served.bodies[2])
    assert all("In Utrecht." in str(body) for body in served.bodies)
    told = "Without the thinking of 1 message, which the provider refused"
    assert later.report.notes[-1].startswith(told)
