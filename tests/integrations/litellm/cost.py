"""A call of LiteLLM's whose handler fits it, without the model."""

from __future__ import annotations

from typing import Any

from litellm.types.utils import CallTypes

from tests.integrations.seam import MODEL, Run, bare, complete
from trimtab.integrations.litellm import TrimHandler


def pair(messages: list[dict[str, Any]], budget: int) -> tuple[Run, Run]:
    """Make a run of the adapter, and one of a bare fit of the same."""
    trim, call = TrimHandler(budget), {"model": f"openai/{MODEL}", "messages": messages}
    run = complete(lambda: trim.async_pre_call_deployment_hook(call, CallTypes.acompletion))
    return run, bare(messages, budget)
