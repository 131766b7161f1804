"""The five APIs on this machine: what the judge refuses is answered with status 400, in their shapes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.judge import Refusal, judge
from tests.judge.streams import streamed
from tests.loopback import JSONHandler, loopback

PATHS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
}
GEMINI = re.compile(
    r"/v1(beta|alpha)?/models/(?P<model>[^:]+):(?P<verb>(stream)?[gG]enerateContent|countTokens)"
)
CONVERSE = re.compile(r"/model/(?P<model>[^/]+)/(?P<verb>converse|converse-stream|count-tokens)")

Answers = Callable[[str, dict[str, Any]], Any]
"""Writes the answer to a request of a form that is accepted."""


class Provider:
    """All of them, at one address."""

    def __init__(self, answers: Answers | None = None) -> None:
        self.address = ""
        self._answers = answers or (lambda form, body: answered(form, str(body.get("model"))))
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        """Form and body of what was asked, in order; the model of a path is in the body."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Judge a request, and say what to answer."""
        form, path = form_of(path), path.partition("?")[0]
        counts = path.endswith("count_tokens")
        if place := CONVERSE.fullmatch(path):
            counts = place["verb"] == "count-tokens"
            held = body.get("input", {}).get("converse", {}) if counts else body
            body = {**held, "modelId": unquote(place["model"])}
        if place := GEMINI.fullmatch(path):
            body = {**body, "model": place["model"]}
            counts = place["verb"] == "countTokens"
        elif form == "gemini":
            return 404, {"error": {"code": 404, "message": f"no path {path}", "status": "NOT_FOUND"}}
        self.bodies.append((form, body))
        refusals = judge(form, body)
        if refusals:
            return 400, refused(form, refusals[0])
        return 200, counted(form) if counts else self._answers(form, body)


def form_of(path: str) -> str:
    """Name the form of a path; "gemini" where it is no other's."""
    path = path.partition("?")[0].removeprefix("/openai")  # Groq puts that before OpenAI's paths
    return "bedrock" if CONVERSE.fullmatch(path) else PATHS.get(path, "gemini")


def is_streamed(path: str, body: Mapping[str, Any]) -> bool:
    """Tell whether the answer to a request is to be streamed."""
    return body.get("stream") is True or ":stream" in path or path.endswith("/converse-stream")


@contextmanager
def provider(answers: Answers | None = None) -> Iterator[Provider]:
    """Serve all five APIs for as long as the block lasts; the smallest answer unless another is written."""
    state = Provider(answers)

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            body = self.received()
            status, answer = state.reply(self.path, body)
            if status == 200 and is_streamed(self.path, body):
                self.stream(streamed(form_of(self.path), answer))
            else:
                self.answer(status, answer)

    with loopback(Answering) as state.address:
        yield state


def variables(address: str) -> dict[str, str]:
    """Give the environment that leads the SDKs to the server at an address, with keys of nobody.

    What reports to its maker, or asks the network when it is imported, does so no more.
    """
    openai = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "k"}
    anthropic = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "k"}
    gemini = {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "k"}
    bedrock = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": address, "AWS_REGION": "us-east-1"}
    bedrock |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "k"}
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    quiet |= {"AGNO_TELEMETRY": "false"}
    return openai | anthropic | gemini | bedrock | quiet


def run_alone(words: Sequence[str | Path], api: Provider, folder: Path, **more: str) -> str:
    """Run a Python program in a folder, led to the server; gives what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **variables(api.address), **more},
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(form: str, refusal: Refusal) -> dict[str, Any]:
    """Write a refusal as the provider of a form does."""
    if form == "bedrock":
        return {"__type": "ValidationException", "message": refusal.words}
    if form == "gemini":
        return {"error": {"code": 400, "message": refusal.words, "status": "INVALID_ARGUMENT"}}
    error = {"type": "invalid_request_error", "message": refusal.words}
    if form == "anthropic":
        return {"type": "error", "error": error, "request_id": "req_1"}
    return {"error": {**error, "param": refusal.where, "code": None}}


def counted(form: str) -> dict[str, Any]:
    """Write a count as the provider of a form does."""
    names = {"gemini": "totalTokens", "bedrock": "inputTokens"}
    return {names.get(form, "input_tokens"): 1}


def answered(form: str, model: str) -> dict[str, Any]:
    """Write the smallest answer of a form."""
    if form == "openai_chat":
        message = {"role": "assistant", "content": "ok"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return {"id": "c", "object": "chat.completion", "created": 0, "model": model, "choices": choices}
    if form == "openai_responses":
        said = {"type": "output_text", "text": "ok", "annotations": []}
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [said],
        }
        head = {"id": "resp_1", "object": "response", "created_at": 0, "model": model, "status": "completed"}
        return {**head, "output": [message], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    if form == "anthropic":
        head = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "stop_reason": "end_turn",
        }
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {**head, "content": [{"type": "text", "text": "ok"}], "stop_sequence": None, "usage": usage}
    if form == "bedrock":
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        output = {"message": {"role": "assistant", "content": [{"text": "ok"}]}}
        return {"output": output, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}
    candidate = {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2}}
