"""ADK's own ways to keep a request small, and ours, on the same loops: rows of docs/integrations/google-adk.md."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.genai import types

from tests.integrations.google_adk.test_google_adk import COUNTER, play
from tests.integrations.loops import WORDS
from tests.integrations.upstream import BUDGET_TOKENS
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


class Unbilled(BasePlugin):
    """Takes the bill of the model on this machine away, which says one token: ADK estimates then."""

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse:
        """Return the answer without its bill."""
        return llm_response.model_copy(update={"usage_metadata": None})


def _compacting(**options: int) -> EventsCompactionConfig:
    return EventsCompactionConfig(summarizer=LlmEventSummarizer(llm=Summarizing()), **options)


POLICIES: dict[str, Any] = {
    "`TrimPlugin(4_000)`": lambda: ([TrimPlugin(BUDGET_TOKENS, counter=COUNTER)], None),
    "ADK: no plugin": lambda: ([], None),
    "ADK: `ContextFilterPlugin(num_invocations_to_keep=3)`": lambda: (
        [ContextFilterPlugin(num_invocations_to_keep=3)],
        None,
    ),
    "ADK: `EventsCompactionConfig`, by interval as its guide has it": lambda: (
        [],
        _compacting(compaction_interval=3, overlap_size=1),
    ),
    "ADK: `EventsCompactionConfig`, by tokens as its guide has it": lambda: (
        [Unbilled("unbilled")],
        _compacting(token_threshold=BUDGET_TOKENS, event_retention_size=5),
    ),
}
"""What is compared, by the words of the table: plugins of the app, and its compaction."""


def score(loop: Any, name: str) -> Any:
    """Play a loop with what is compared."""
    plugins, compaction = POLICIES[name]()
    return play(loop, *plugins, events_compaction_config=compaction)[0]
