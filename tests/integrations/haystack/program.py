"""What users write with trimtab's Haystack module, for the type checkers."""

from __future__ import annotations

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage

from trimtab import Budget, Fitted
from trimtab.integrations.haystack import TrimHook


def report(fitted: Fitted[ChatMessage]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


agent = Agent(
    chat_generator=OpenAIChatGenerator(model="gpt-4o"),
    hooks={"before_llm": [TrimHook("80%", model="gpt-4o", on_fitted=report, pin=[0])]},
)
shorter = Agent(
    chat_generator=OpenAIChatGenerator(model="gpt-4o"),
    hooks={"before_llm": [TrimHook(Budget(8_000), persist=True)]},
)
written: dict[str, object] = TrimHook(8_000).to_dict()
again: TrimHook = TrimHook.from_dict(written)
