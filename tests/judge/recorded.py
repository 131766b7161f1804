"""Requests that were sent and billed, made whole again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMS = {
    ("api.openai.com", "chat"): "openai_chat",
    ("api.openai.com", "responses"): "openai_responses",
    ("anthropic", "messages"): "anthropic",
    ("anthropic", "count_tokens"): "anthropic",
    ("google", "generateContent"): "gemini",
}


APIS = {
    "chat": "openai_chat",
    "responses": "openai_responses",
    "messages": "anthropic",
    "count_tokens": "anthropic",
    "generateContent": "gemini",
}
"""Forms by the API of golden_usage.jsonl; golden_usage_2.jsonl names them."""


def recorded(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield id, form and body, with the model each was sent to."""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        form = FORMS.get((entry["provider"], entry["api"]))
        body = {**_refilled(entry["request"]), "model": entry["model"]}
        if "conversation_id" in entry["id"]:  # the recording leaves that parameter out
            body["conversation"] = "conv_1"
        if form:
            yield entry["id"], form, body


def accepted(folder: Path) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield id, form, model and body of all that were answered and billed, in both files, as they were sent.

    A body of Gemini's or Bedrock's holds no model.
    """
    for file in ("golden_usage.jsonl", "golden_usage_2.jsonl"):
        for line in (folder / file).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            body = _refilled(entry["request"])
            if "conversation_id" in entry["id"]:
                body["conversation"] = "conv_1"
            yield entry["id"], entry.get("format") or APIS[entry["api"]], entry["model"], body


def _refilled(value: Any) -> Any:
    """Put something where the recording stripped media."""
    if isinstance(value, list):
        return [_refilled(one) for one in value]
    if isinstance(value, dict):
        return {key: _refilled(one) for key, one in value.items() if not key.endswith("_meta")}
    return value.replace("<stripped>", "aGk=") if isinstance(value, str) else value
