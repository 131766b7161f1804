"""What users write with trimtab's module for Strands, for the type checkers."""

from __future__ import annotations

from strands import Agent
from strands.middleware import InvokeModelStage
from strands.models.openai import OpenAIModel
from strands.types.content import Message

from trimtab import Budget, Fitted
from trimtab.integrations.strands import TrimConversationManager, trim_middleware


def report(fitted: Fitted[Message]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


model = OpenAIModel(model_id="gpt-4o")
agent = Agent(model)
agent.add_middleware(InvokeModelStage.Input, trim_middleware("80%", on_fitted=report, pin=[0]))
shorter = Agent(model, conversation_manager=TrimConversationManager(Budget(8_000)))
