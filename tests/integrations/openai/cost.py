"""A call of OpenAI's client with a budget, as far as its body, without the server."""

from __future__ import annotations

from typing import Any

import openai

from tests.integrations.seam import MODEL, Run, bare, bill_below
from trimtab.integrations.openai import with_budget


class _Bare(openai.OpenAI):
    """A client whose posts send nothing, and are billed other than was counted."""

    tokens = 0

    def post(self, path: str, *, body: Any = None, **given: Any) -> Any:
        return {"usage": {"prompt_tokens": self.tokens}}


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    bare_client: Any = _Bare(api_key="none")
    bare_client.__class__.tokens = bill_below(messages, budget)
    client: Any = with_budget(bare_client, budget)
    body = {"model": MODEL, "messages": messages}
    return lambda: client.post("/chat/completions", body=body, cast_to=object), bare(messages, budget)
