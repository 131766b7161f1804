"""ADK's own ways to keep a request small, and ours: rows of docs/integrations/google-adk.md."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.models import BaseLlm, Gemini, LlmRequest, LlmResponse
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.genai import types

from tests.integrations.google_adk.test_google_adk import COUNTER, play
from tests.integrations.loops import WORDS
from tests.integrations.upstream import BUDGET_TOKENS, Upstream
from trimtab.integrations.google_adk import TrimPlugin


class Summarizing(BaseLlm):
    """A model that sums up in a hundred words."""

    model: str = "summarizing"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Say the same of everything."""
        text = " ".join(WORDS[at % len(WORDS)] for at in range(100))
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


class Unbilled(Gemini):
    """ADK's own model without the bill, which says one token on this machine: ADK estimates then."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Give the answer without its bill."""
        async for answer in super().generate_content_async(llm_request, stream):
            answer.usage_metadata = None
            yield answer


def _unbilled(served: Upstream) -> BaseLlm:
    return Unbilled(model="gemini-2.5-flash", base_url=served.address, client_kwargs={"api_key": "none"})


def _compacting(**options: int) -> EventsCompactionConfig:
    return EventsCompactionConfig(summarizer=LlmEventSummarizer(llm=Summarizing()), **options)


POLICIES: dict[str, Any] = {
    "`TrimPlugin(4_000)`": lambda: {"plugins": [TrimPlugin(BUDGET_TOKENS, counter=COUNTER)]},
    "ADK: no plugin": lambda: {},
    "ADK: `ContextFilterPlugin(num_invocations_to_keep=3)`": lambda: {
        "plugins": [ContextFilterPlugin(num_invocations_to_keep=3)]
    },
    "ADK: `EventsCompactionConfig`, by interval as its guide has it": lambda: {
        "events_compaction_config": _compacting(compaction_interval=3, overlap_size=1)
    },
    "ADK: `EventsCompactionConfig`, by tokens as its guide has it": lambda: {
        "model": _unbilled,
        "events_compaction_config": _compacting(token_threshold=BUDGET_TOKENS, event_retention_size=5),
    },
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop with what is compared."""
    return play(loop, **POLICIES[name]())[0]
