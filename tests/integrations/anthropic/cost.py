"""A call of Anthropic's client with a budget, as far as its body, without the server."""

from __future__ import annotations

from typing import Any

import anthropic

from tests.integrations.seam import Run, bare, bill_below, calls_of
from trimtab.integrations.anthropic import with_budget

MODEL = "claude-sonnet-4-5"


class _Bare(anthropic.Anthropic):
    """A client whose posts send nothing, and are billed other than was counted."""

    tokens = 0

    def post(self, path: str, *, body: Any = None, **given: Any) -> Any:
        return {"usage": {"input_tokens": self.tokens}}


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    said = [_message(message) for message in messages[1:]]
    form: Any = {"model": MODEL, "format": "anthropic"}
    bare_client: Any = _Bare(api_key="none")
    bare_client.__class__.tokens = bill_below(said, budget, **form)
    client: Any = with_budget(bare_client, budget)
    body = {"model": MODEL, "messages": said}
    return lambda: client.post("/v1/messages", body=body, cast_to=object), bare(said, budget, **form)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    text = message["content"] or ""
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text}
        return {"role": "user", "content": [result]}
    made = [
        {"type": "tool_use", "id": one, "name": name, "input": args} for one, name, args in calls_of(message)
    ]
    said = [{"type": "text", "text": text}] if text else []
    return {"role": message["role"], "content": [*said, *made] if made else text}
