"""A call of Google's client with a budget, as far as its body, without the server."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from google import genai

from tests.integrations.seam import Run, bare, bill_below, calls_of
from trimtab.integrations.google_genai import with_budget

MODEL = "gemini-2.5-flash"


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    names = {one: name for message in messages for one, name, _ in calls_of(message)}
    said = [_content(message, names) for message in messages[1:]]
    form: Any = {"model": MODEL, "format": "gemini"}
    usage = {"usageMetadata": {"promptTokenCount": bill_below(said, budget, **form)}}
    answer = SimpleNamespace(body=json.dumps(usage))
    given: Any = genai.Client(api_key="none", vertexai=False)
    given._api_client.request = lambda *_: answer
    api: Any = with_budget(given, budget).models._api_client
    path, body = f"models/{MODEL}:generateContent", {"contents": said}
    return lambda: api.request("post", path, body, None), bare(said, budget, **form)


def _content(message: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    text = message["content"] or ""
    if message["role"] == "tool":
        call = message["tool_call_id"]
        result = {"id": call, "name": names.get(call, "look"), "response": {"output": text}}
        return {"role": "user", "parts": [{"functionResponse": result}]}
    made = [
        {"functionCall": {"id": one, "name": name, "args": args}} for one, name, args in calls_of(message)
    ]
    said = [{"text": text}] if text or not made else []
    return {"role": "model" if message["role"] == "assistant" else "user", "parts": [*said, *made]}
