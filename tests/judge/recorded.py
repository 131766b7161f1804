"""Requests that were sent and billed (golden_usage.jsonl), made whole again."""

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


def _refilled(value: Any) -> Any:
    """Put something where the recording stripped media."""
    if isinstance(value, list):
        return [_refilled(one) for one in value]
    if isinstance(value, dict):
        return {key: _refilled(one) for key, one in value.items() if not key.endswith("_meta")}
    return value.replace("<stripped>", "aGk=") if isinstance(value, str) else value
