"""A call of OpenAI's client with a budget, as far as its body, without the server."""

from __future__ import annotations

from typing import Any

import openai

from tests.integrations.seam import MODEL, Run, bare
from trimtab.integrations.openai import with_budget


class _Bare(openai.OpenAI):
    """A client whose posts send nothing."""

    def post(self, path: str, *, body: Any = None, **given: Any) -> Any:
        return body


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    client: Any = with_budget(_Bare(api_key="none"), budget)
    body = {"model": MODEL, "messages": messages}
    return lambda: client.post("/chat/completions", body=body, cast_to=object), bare(messages, budget)
