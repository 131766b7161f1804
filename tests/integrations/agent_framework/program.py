"""What users write with trimtab's module for Microsoft's Agent Framework, for the type checkers."""

from __future__ import annotations

from agent_framework import Agent, CompactionProvider, InMemoryHistoryProvider, Message
from agent_framework.openai import OpenAIChatClient

from trimtab import Budget, Fitted
from trimtab.integrations.agent_framework import TrimMiddleware, TrimStrategy


def report(fitted: Fitted[Message]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


def look(place: int) -> str:
    """Look at a place."""
    return str(place)


client = OpenAIChatClient(model="gpt-4o")
agent = Agent(client, tools=[look], middleware=[TrimMiddleware("80%", on_fitted=report, pin=[0])])
trim = TrimStrategy(Budget(8_000), instructions="Be brief.", tools=[look], model="gpt-4o", persist=True)
other = Agent(
    client,
    "Be brief.",
    tools=[look],
    compaction_strategy=trim,
    context_providers=[InMemoryHistoryProvider(), CompactionProvider(after_strategy=trim)],
)
